r"""The robust factorization machine, with a learned positive semidefinite Z of low rank (robust_fm).

f(x) = b + ⟨w, x⟩ + xᵀZx with Z = P diag(λ) Pᵀ positive semidefinite, including its diagonal: the product
x_i x_j, i ≠ j, has the weight 2z_ij and x_i² the weight z_ii. The objective is

    (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p R(Z),

where R is a function of the eigenvalues: Σ min{λ_s², ε₃}, the capped squared trace norm, which shrinks small
eigenvalues and leaves large ones free, or its limits ‖Z‖²_F = Σ λ_s² (ε₃ = ∞) and ‖Z‖_tr = Σ λ_s. With the
losses "absolute" or "epsilon_insensitive" and one of the limits it is convex; with "capped" and the capped
norm it is the paper's Eq. 3, whose α, β, ε₁, ε₂, ε₃ are 2Nλ_w, 2Nλ_p, the two parameters of the loss and
`cap`.

We correct misprints of the paper as its theory requires. The majorizer of the loss has the weight
1/(2 max{u, δ}) for every excess 0 ≤ u ≤ ε₂, where Eq. 4 has 1/(2ε₁) and 0 inside the tube. The majorizer of
the norm is Tr(P_Mᵀ Z Zᵀ P_M) with M = {s : λ_s² ≤ ε₃}, where Eq. 7 lacks the square and the text compares
λ_s with ε₃; the cap in Eq. 6 is also ε₃. The gradient of the squares has the factor 2 missing in Eq. 8, and
that of the norm is QZ + ZQ with Q = P_M P_Mᵀ = I − P_M̄ P_M̄ᵀ, which is symmetric for every Z.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import WhyNot
from ..linalg.lowrank import eigenform
from ..parameters import Parameters
from ..settings import LARGE, SMALL, setting
from .base import ObjectiveNotation
from .convex import EigenModel


@dataclass(frozen=True)
class RobustFM(EigenModel):
    r"""f(x) = b + ⟨w, x⟩ + xᵀZx with a positive semidefinite Z of low rank; see the module.

    Parameters
    ----------
    spectrum : {"capped", "squared", "trace"}
        R(Z): Σ min{λ_s², ε₃}, ‖Z‖²_F or ‖Z‖_tr.
    cap : float
        ε₃, for "capped".
    """

    spectrum: str = setting(
        "capped",
        choices=("capped", "squared", "trace"),
        help="The penalty on Z: the capped squared trace norm, the squared norm or the trace norm.",
    )
    cap: float = setting(
        1.0,
        low=SMALL,
        high=LARGE,
        log=True,
        symbol=r"\epsilon_3",
        help="Eigenvalues of Z with a larger square are free; for the capped norm.",
    )

    name: ClassVar[str] = "robust"
    label: ClassVar[str] = "Robust factorization machine"
    formula: ClassVar[str] = (
        r"f(x) = b + \langle w, x\rangle + x^\top Z x,\quad Z = P\,\mathrm{diag}(\lambda)\,P^\top \succeq 0"
    )
    diagonal = True
    certificate: ClassVar[str] = "majoriser"
    solvers: ClassVar[str] = "two_stage or incremental_svd, which project onto the semidefinite cone"
    # Few epochs, each of which solves a convex problem; values derived from the data suit any unit.
    suited: ClassVar[Mapping[str, Any]] = {
        "regularizer": "l2",
        "solver": "auto",
        "caps": "auto",
        "max_epochs": 50,
        "tol": 1e-3,
        "lambda_sparse": 0.0,
        "rank": 30,
        "fit_linear": True,
        "fit_intercept": True,
    }
    suited_loss: ClassVar[Mapping[str, str]] = {"regression": "capped", "binary": "capped_hinge"}

    no_threshold: ClassVar[WhyNot | None] = WhyNot(
        "semidefinite",
        "Its Z is positive semidefinite and does not depend on columns: Z = 0 is a local minimum if the "
        "smallest eigenvalue of the gradient in Z at the linear fit is at least 0 (for the trace norm, "
        "−λ_p), independently of λ.",
    )

    @property
    def notation(self) -> ObjectiveNotation:
        formula, words = {
            "capped": (r"\textstyle\sum_s\min\{\lambda_s^2, \epsilon_3\}", "λ_Z Σ min{λ_s², ε₃}"),
            "squared": (r"\|Z\|_F^2", "λ_Z ‖Z‖²"),
            "trace": (r"\|Z\|_{\mathrm{tr}}", "λ_Z ‖Z‖_tr"),
        }[self.spectrum]
        return ObjectiveNotation(
            weights="2Z", lambda_p=r"\lambda_Z", shrinkage=formula, shrinkage_term=words, penalty_term=""
        )

    @property
    def shrunk(self) -> str:  # type: ignore[override]
        """The name of the term of λ_p."""
        return {
            "capped": "the capped squared trace norm of Z",
            "squared": "the squared norm of Z",
            "trace": "the trace norm of Z",
        }[self.spectrum]

    @property
    def capped(self) -> bool:
        """Whether R has a cap."""
        return self.spectrum == "capped"

    @property
    def traced(self) -> bool:
        """Whether R is the trace of Z, which is linear in it."""
        return self.spectrum == "trace"

    def free(self, eigenvalues: np.ndarray) -> np.ndarray:
        """Return which eigenvalues are beyond the cap and not shrunk by the tangent of R."""
        if not self.capped:
            return np.zeros(eigenvalues.shape, dtype=bool)
        return np.square(eigenvalues) > self.cap

    def shrinkage(self, parameters: Parameters) -> float:
        """Return R(Z)."""
        values = eigenform(parameters.P, parameters.multipliers)[1]
        if self.traced:
            return float(np.abs(values).sum())
        return float(np.minimum(np.square(values), self.cap if self.capped else np.inf).sum())
