r"""Machines of several outputs on a shared basis (blondel2017).

Output c of m is o_c(x) = b_c + ⟨w_c, x⟩ + Σ_r v_rc σ(h_r, x) with every h_r in the unit ball, the columns of
P, shape (d, k), and V, shape (k, m). Two choices of σ:

- ``kernel="polynomial"``: σ(h, x) = ⟨h, x⟩², the polynomial network; on data with a dummy feature of 1 it
  includes linear terms and biases;
- ``kernel="anova"``: σ(h, x) = Σ_{i<j} h_i h_j x_i x_j, the factorization machine.

The objective of `fmviz.engine.problem.Problem` has λΩ(V) with Ω the ℓ1, ℓ1/ℓ2 or ℓ1/ℓ∞ norm of the rows of V,
and no λ_p; or, with a `radius` τ, the constraint Ω(V) ≤ τ instead. With enough bases it is convex: V consists
of the non-zero rows of an infinite matrix U with a row for every h.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..design import Design
from ..errors import WhyNot
from ..parameters import Parameters
from ..penalties import Penalty
from ..settings import setting
from ..shared_basis.bounds import largest_norm
from ..shared_basis.gradients import DUAL_ORDER, BasisGradient, activations
from ..shared_basis.selection import random_directions, select
from .base import Model, ObjectiveNotation
from .columns import Anova, ColumnKernel, Polynomial
from .convex import ConvexFM

# The relative gap between the bound on a norm and the largest norm found at which the search ends.
_ENOUGH = 1e-3
# The LaTeX of a norm of the rows of V, and its selection.
_NORMS: Mapping[float | None, tuple[str, str]] = {
    1.0: (r"\sum_{r,c} |v_{rc}|", "single weights; outputs have separate bases"),
    2.0: (r"\sum_r \|v_r\|_2", "bases, shared by all outputs"),
    np.inf: (
        r"\sum_r \max_c |v_{rc}|",
        "bases, shared by all outputs, with weights that tend to be equal in size",
    ),
}


@dataclass(frozen=True)
class SharedBasis(Model):
    """o(x) = b + W x + Vᵀσ(H x), for all outputs jointly; see the module.

    Parameters
    ----------
    kernel : {"polynomial", "anova"}
        The kernel σ.
    radius : float
        τ of the constraint Ω(V) ≤ τ; 0 for none.
    n_outputs : int
        The number m of outputs; `fmviz.engine.problem.Problem` sets it from the target.
    """

    kernel: str = setting(
        "polynomial",
        choices=("polynomial", "anova"),
        help="Squares of ⟨h, x⟩, or only products of two distinct features.",
    )
    radius: float = setting(
        0.0,
        low=0.0,
        high=1e9,
        symbol=r"\tau",
        help="The bound on Ω(V), which replaces λ; 0 for no bound.",
    )
    n_outputs: int = 1

    name: ClassVar[str] = "shared_basis"
    label: ClassVar[str] = "Shared basis (several outputs)"
    formula: ClassVar[str] = (
        r"f_c(x) = b_c + \langle w_c, x\rangle + \sum_{r=1}^{k} v_{rc}\,\sigma(h_r, x),\quad \|h_r\|_2\le 1"
    )
    notation: ClassVar[ObjectiveNotation] = ObjectiveNotation(
        matrix="V",
        weights="W",
        penalty=r"\Omega(V)",
        shrinkage="",
        shrinkage_term="",
        penalty_term="λ Ω(V)",
        rank="Most bases",
    )
    convex: ClassVar[bool] = True
    certificate: ClassVar[str] = "gap"
    columnar: ClassVar[bool] = True
    multi_output: ClassVar[bool] = True
    # One basis per epoch, to let plots show each addition.
    suited: ClassVar[Mapping[str, Any]] = {
        "max_epochs": 60,
        "tol": 1e-4,
        "lambda_p": 0.0,
        "lambda_sparse": 5e-3,
        "rank": 30,
        "regularizer": "l21",
        "solver": "conditional_gradient",
        "solver_bases": 1,
    }

    no_threshold: ClassVar[WhyNot | None] = WhyNot(
        "convex",
        "It is convex in its output layer: V = 0 is the global minimum if no ‖g_h‖ at the linear fit exceeds "
        "λ.",
    )

    @cached_property
    def kernels(self) -> tuple[ColumnKernel, ...]:
        """σ as a kernel of columns."""
        return (Polynomial(2) if self.kernel == "polynomial" else Anova(2),)

    def for_outputs(self, n_outputs: int) -> SharedBasis:
        return replace(self, n_outputs=n_outputs)

    def why_not(self, penalty: Penalty) -> WhyNot | None:
        if penalty.row_norm is not None or penalty.smooth:
            return None
        return WhyNot(
            "rows_of_v",
            f"{penalty.label} is not a sum of norms of the rows of V, which the selection of bases needs. "
            "Choose ℓ₁, ℓ₂,₁ (here ℓ₁/ℓ₂) or ℓ₁/ℓ∞, or ℓ₂² for a fixed number of bases.",
        )

    def why_no_solver(self, solver: Any) -> WhyNot:
        return WhyNot(
            "outputs_together",
            f"{solver.label} fits single outputs, but the {self.label[0].lower()}{self.label[1:]} fits bases "
            "shared by all outputs, with a penalty on its output layer. Choose conditional_gradient, or "
            "projected_gradient on a fixed number of bases.",
        )

    def penalty_words(self, penalty: Penalty) -> tuple[str, str]:
        return _NORMS.get(penalty.row_norm, (r"\|V\|_F^2", "nothing: every basis stays"))

    def check_strengths(self, lambda_p: float, lambda_sparse: float) -> None:
        if lambda_p > 0:
            raise ValueError(
                f"lambda_p = {lambda_p:g} has no term in a machine on a shared basis, whose bases lie in the "
                "unit ball; set it to 0 and increase lambda_sparse, the strength of Ω(V)."
            )
        if self.radius > 0 and lambda_sparse > 0:
            raise ValueError(
                f"radius = {self.radius:g} bounds Ω(V), and lambda_sparse = {lambda_sparse:g} penalizes it; "
                "use one of them, and 0 for the other."
            )

    def shapes(self, d: int, rank: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes; w and the bias of a single output have no axis of outputs."""
        outputs = (self.n_outputs,) if self.n_outputs > 1 else ()
        return {"P": (d, rank), "w": (*outputs, d), "intercept": outputs, "V": (rank, self.n_outputs)}

    def start(self, d: int, rank: int, init_scale: float, rng: np.random.Generator) -> Parameters:
        """Return random directions of unit length and V = 0, ignoring `init_scale`."""
        arrays = {name: np.zeros(shape) for name, shape in self.shapes(d, rank).items()}
        return Parameters(**arrays | {"P": random_directions(d, rank, rng)})

    def predict(self, design: Design, parameters: Parameters) -> np.ndarray:
        """Return the outputs of every row, shape (N, m), or (N,) for a single output."""
        V = parameters["V"]
        f = parameters["intercept"] + design.dot(np.atleast_2d(parameters["w"]).T)
        f += activations(design, self.live(parameters), self.repeats) @ V[V.any(axis=1)]
        return f if f.shape[1] > 1 else f[:, 0]

    def penalised(self, parameters: Parameters) -> np.ndarray:
        """Return V."""
        return parameters["V"]

    def live(self, parameters: Parameters) -> np.ndarray:
        """Return the bases in use, shape (d, k')."""
        return parameters.P[:, parameters["V"].any(axis=1)]

    def n_outputs_of(self, parameters: Parameters) -> int:
        return int(parameters["V"].shape[1])

    def further_counts(self, parameters: Parameters) -> dict[str, int]:
        """Return the numbers of bases in use and of their non-zero weights."""
        weights = int(np.count_nonzero(parameters["V"]))
        return {"used_bases": self.live(parameters).shape[1], "used_weights": weights}

    def of_output(self, parameters: Parameters, output: int) -> tuple[Model, Parameters]:
        """Return one output as a separate machine: P diag(V_:c) Pᵀ with its linear part."""
        return ConvexFM(diagonal=self.repeats), Parameters(
            parameters.P,
            np.atleast_2d(parameters["w"])[output],
            float(np.atleast_1d(parameters["intercept"])[output]),
            coefficients=np.ascontiguousarray(parameters["V"][:, output]),
        )

    def gauges(
        self,
        design: Design,
        penalty: Penalty,
        parameters: Parameters,
        alpha: np.ndarray,
        strengths: tuple[float, float],
        thorough: bool,
    ) -> tuple[float, float | None]:
        """Return an upper bound on max_h ‖g_h‖ and the largest value found, divided by λ."""
        if penalty.row_norm is None:
            # A smooth penalty has no threshold; it enters through `dual_quadratic`.
            return (0.0 if strengths[1] else np.inf), None
        strength = strengths[1] or 1.0
        gradient = BasisGradient(design, alpha.reshape(len(alpha), -1), self.repeats)
        p = DUAL_ORDER[penalty.row_norm]
        # Norms found by eigen-steps, and those of the bases in use.
        _, sizes = select(gradient, p, "eigen", 1, np.random.default_rng(0))
        largest = float(gradient.norms(self.live(parameters), p).max(initial=sizes.max(initial=0.0)))
        # The bound is at least the largest norm, and values below λ make no difference.
        enough = max((1.0 + _ENOUGH) * largest, strengths[1])
        return largest_norm(gradient, p, thorough, enough) / strength, largest / strength

    def ball(self, penalty: Penalty, parameters: Parameters) -> float:
        """Return τ or, without one, Ω(V) of the parameters."""
        return self.radius or penalty.value(parameters["V"])

    def dual_quadratic(
        self,
        design: Design,
        penalty: Penalty,
        parameters: Parameters,
        alpha: np.ndarray,
        strengths: tuple[float, float],
    ) -> float:
        """Return the term of λ‖V‖² over the current bases."""
        if not (penalty.smooth and strengths[1]):
            return 0.0
        inner = activations(design, parameters.P, self.repeats).T @ alpha
        return float(np.square(inner).sum()) / (4.0 * strengths[1])
