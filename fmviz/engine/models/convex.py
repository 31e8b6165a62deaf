r"""The convex factorization machine (Blondel, Fujino and Ueda 2015, "Convex factorization machines").

Minimizes over a symmetric W, shape (d, d), w and the bias the convex function

    (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_tr‖W‖_tr,  ‖W‖_tr = Σ|eigenvalues|,

where λ_tr is ``lambda_p`` of `Problem`, and there is no sparse penalty. f has one of two forms, the two
kernels of a kernel expansion of degree 2 ([B] Lemma 5):

- ``diagonal=False``: f(x) = b + ⟨w, x⟩ + Σ_{i<j} w_ij x_i x_j, which is Σ_s λ_s A²(p_s, x) for
  W = Σ_s λ_s p_s p_sᵀ. f does not depend on the diagonal of W; only the trace norm does, as a W of low rank
  needs a diagonal.
- ``diagonal=True``: f(x) = b + ⟨w, x⟩ + xᵀWx, which is Σ_s λ_s H²(p_s, x) for this W. Both triangles of W
  then count: the product x_i x_j, i ≠ j, has the weight 2w_ij and x_i² the weight w_ii.

W is stored as P diag(λ) Pᵀ with ‖W‖_tr = Σ|λ_s| for orthonormal columns; its rank is at most `rank`. If the
rank of the optimum is not larger, the result is a global optimum, and the duality gap proves it; by [B]
Theorem 2, its value is also the minimum of (1/N) Σ ℓ + λ_w‖w‖² + λ_tr Σ_s|λ_s|‖p_s‖² of the kernel expansion.

The paper's objective sums over samples and has factors ½: its terms (α/2)‖w‖² + β‖W‖_tr, added to
Σ_n ½(f − y)², correspond to λ_w = α/(2N) and λ_tr = β/N.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..design import Design
from ..errors import WhyNot
from ..linalg.lowrank import PairGradient, eigenform
from ..parameters import Parameters
from ..penalties import Penalty
from ..settings import setting
from .base import ObjectiveNotation
from .columnar import ColumnModel
from .columns import Anova, ColumnKernel, Polynomial


class EigenModel(ColumnModel):
    """f(x) = b + ⟨w, x⟩ + Σ_s λ_s K(p_:,s, x), a function only of W = P diag(λ) Pᵀ.

    Subclasses have the attribute `diagonal`: whether f depends on the diagonal of W, with K = H² instead of
    A².
    """

    diagonal: Any

    convex: ClassVar[bool] = True
    copies: ClassVar[int] = 32
    # A single feature has no pairs, and W is 0.
    least_features = 1

    @cached_property
    def kernels(self) -> tuple[ColumnKernel, ...]:
        return (Polynomial(2) if self.diagonal else Anova(2),)

    def why_not(self, penalty: Penalty) -> WhyNot | None:
        if not penalty.smooth:
            return WhyNot(
                "trace_norm_only",
                f"{penalty.label} depends on the columns of P, but the "
                f"{self.label.partition(' (')[0].lower()} is a function only of W = P diag(λ) Pᵀ, and its "
                f"penalty is {self.shrunk}, with the strength lambda_p. Choose ℓ₂² with lambda_sparse = 0.",
            )
        return None

    def why_no_solver(self, solver: Any) -> WhyNot:
        moved = "the entries of a fixed number of columns" if solver.factorised else "a d × d matrix"
        return WhyNot(
            "convex_in_w",
            f"{solver.label} updates {moved}, but the {self.label[0].lower()}{self.label[1:]} is a function "
            "of W = P diag(λ) Pᵀ of unknown rank, and its penalty depends only on the eigenvalues of W. "
            f"Choose {self.solvers}.",
        )

    def check_strengths(self, lambda_p: float, lambda_sparse: float) -> None:
        if lambda_sparse > 0:
            raise ValueError(
                f"lambda_sparse = {lambda_sparse:g} has no penalty term in a "
                f"{self.label.partition(' (')[0].lower()}; set it to 0 and increase lambda_p, the strength "
                f"of {self.shrunk}."
            )

    def shapes(self, d: int, rank: int) -> dict[str, tuple[int, ...]]:
        return super().shapes(d, rank) | {"coefficients": (rank,)}

    def start(self, d: int, rank: int, init_scale: float, rng: np.random.Generator) -> Parameters:
        """Return zeros: the objective is convex, and 0 is not stationary as in a factorization machine."""
        return Parameters(np.zeros((d, rank)), np.zeros(d), 0.0, coefficients=np.zeros(rank))

    def predict(self, design: Design, parameters: Parameters) -> np.ndarray:
        """Return f for every row of the design, shape (N,)."""
        f = self.linear_part(design, parameters)
        live = parameters.multipliers != 0
        if live.any():
            P, coefficients = parameters.P[:, live], parameters.multipliers[live]
            pairs = np.square(design.dot(P)) @ coefficients
            if not self.diagonal:
                pairs -= np.asarray(design.power(2) @ (np.square(P) @ coefficients))
                pairs *= 0.5
            f += pairs
        return f

    def gradient(
        self, design: Design, parameters: Parameters, slope: np.ndarray, sums: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the gradient of Σ_n slope_n f(x_n) in P, with λ fixed, in w, and in the bias."""
        in_P = 2.0 * PairGradient(design, slope, self.diagonal).dot(parameters.P) * parameters.multipliers
        return in_P, design.transpose_dot(slope), float(slope.sum())


@dataclass(frozen=True)
class ConvexFM(EigenModel):
    r"""f(x) = b + ⟨w, x⟩ + Σ_s λ_s K(p_:,s, x) with the trace norm of W = P diag(λ) Pᵀ; see the module.

    Parameters
    ----------
    diagonal : bool, default=False
        Whether f depends on the diagonal of W: K = H² instead of A², and f(x) = b + ⟨w, x⟩ + xᵀWx. Both w_ij
        and w_ji then count: x_i x_j has the weight 2w_ij and x_i² the weight w_ii.
    """

    diagonal: bool = setting(
        False, help="Whether to include squares of features: xᵀWx instead of the sum over pairs i < j."
    )

    name: ClassVar[str] = "convex_fm"
    label: ClassVar[str] = "Convex factorization machine (trace norm)"
    formula: ClassVar[str] = (
        r"f(x) = b + \langle w, x\rangle + \sum_{i<j} w_{ij}\,x_i x_j,\quad "
        r"W = P\,\mathrm{diag}(\lambda)\,P^\top"
    )
    notation: ClassVar[ObjectiveNotation] = ObjectiveNotation(
        weights="PΛPᵀ",
        lambda_p=r"\lambda_{\mathrm{tr}}",
        shrinkage=r"\|W\|_{\mathrm{tr}}",
        shrinkage_term="λ_tr ‖W‖_tr",
    )
    certificate: ClassVar[str] = "gap"
    shrunk: ClassVar[str] = "the trace norm of W"
    solvers: ClassVar[str] = "gcd, which adds eigenvectors of the gradient as columns"
    # GCD needs few, long epochs, and the optimum has a higher rank than learned factors need.
    suited: ClassVar[Mapping[str, Any]] = {
        "max_epochs": 100,
        "tol": 1e-6,
        "lambda_sparse": 0.0,
        "rank": 100,
    }
    no_threshold: ClassVar[WhyNot | None] = WhyNot(
        "convex",
        "It is convex in W: W = 0 is the global minimum if no eigenvalue of the gradient in W at the linear "
        "fit exceeds λ_p in absolute value, independently of λ.",
    )

    def shrinkage(self, parameters: Parameters) -> float:
        """Return ‖W‖_tr."""
        return float(np.abs(eigenform(parameters.P, parameters.multipliers)[1]).sum())

    def gauge(
        self,
        design: Design,
        penalty: Penalty,
        parameters: Parameters,
        alpha: np.ndarray,
        strengths: tuple[float, float],
        thorough: bool,
    ) -> float:
        """Return the spectral norm of the gradient divided by λ_tr."""
        return PairGradient(design, alpha, self.diagonal).norm(1e-9 if thorough else 1e-4) / strengths[0]
