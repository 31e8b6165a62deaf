"""Kernel expansions: polynomial networks and factorization machines with column weights ([B])."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...typography import superscript
from ..errors import WhyNot
from ..parameters import Parameters
from ..penalties import Penalty
from ..settings import setting
from .base import ObjectiveNotation
from .columnar import LONGER, ColumnModel
from .columns import Anova, ColumnKernel, Polynomial


@dataclass(frozen=True)
class PolynomialNetwork(ColumnModel):
    r"""f(x) = b + ⟨w, x⟩ + Σ_s λ_s K(p_:,s, x), with K = H^m or A^m (blondel2016, Eq. 1).

    H² with a linear term is the polynomial network of Livni et al. (2014); A² with λ = 1 is the factorization
    machine. λ_p multiplies Σ_s |λ_s|‖p_:,s‖² (blondel2016, Eq. 13), or Σ_s |λ_s|‖p_:,s‖^m if λ is fitted,
    which is the same for m = 2. For m > 2 the square would have no effect: K is homogeneous, and
    (t p_s, t^−m λ_s) is the same function at t^(2−m) times the cost, which vanishes for large t. With the
    power m, the cost does not depend on the scale; on columns of unit norm it is the ℓ1 norm of λ, and with
    enough columns the nuclear norm of the symmetric tensor Σ_s λ_s p_s ⊗ … ⊗ p_s, as in Theorem 2 of
    blondel2016 for m = 2.

    Parameters
    ----------
    degree : int, default=2
        m, from 2 to 10.
    kernel : {"polynomial", "anova"}, default="polynomial"
        H^m(p, x) = ⟨p, x⟩^m, or A^m, the sum of the products of m distinct features.
    coefficients : {"fitted", "ones", "signs"}, default="fitted"
        Whether λ is fitted, fixed at 1, or fixed at random signs ±1. For odd m, signs can be absorbed into P;
        for even m, they cannot (blondel2016, Lemma 4).
    """

    degree: int = setting(2, low=2, high=10, symbol="m", help="The number of features in a product.")
    kernel: str = setting(
        "polynomial",
        choices=("polynomial", "anova"),
        help="Whether products repeat features, as in polynomial networks, or have distinct features.",
    )
    coefficients: str = setting(
        "fitted",
        choices=("fitted", "ones", "signs"),
        symbol=r"\lambda_s",
        help="Whether column weights are fitted, fixed at 1, or fixed at random signs.",
    )

    name = "expansion"
    label = "Kernel expansion (polynomial network)"
    formula = r"f(x) = b + \langle w, x\rangle + \sum_{s} \lambda_s\,\mathcal{K}(p_{:,s}, x)"
    suited: ClassVar[Mapping[str, Any]] = {"init_scale": 0.1, **LONGER}
    no_threshold: ClassVar[WhyNot | None] = WhyNot(
        "signed_columns",
        "Its terms include squares of features, and its columns have weights of either sign, fixed or "
        "fitted: the gain at P = 0 differs between columns. Use the λ_max of the factorization machine as a "
        "guide.",
    )

    @property
    def notation(self) -> ObjectiveNotation:
        """The notation of its objective."""
        power = self.shrinkage_power
        return ObjectiveNotation(
            weights="P diag(λ) Pᵀ",
            shrinkage=rf"\sum_s |\lambda_s|\,\|p_{{:,s}}\|^{{{power}}}",
            shrinkage_term=f"λₚ Σ|λₛ| ‖pₛ‖{superscript(power)}",
        )

    @property
    def shrinkage_power(self) -> int:
        return self.degree if self.fits_coefficients else 2

    @cached_property
    def kernels(self) -> tuple[ColumnKernel, ...]:
        return (Polynomial(self.degree) if self.kernel == "polynomial" else Anova(self.degree),)

    def why_not(self, penalty: Penalty) -> WhyNot | None:
        if self.fits_coefficients and not penalty.smooth:
            return WhyNot(
                "free_scale",
                f"With fitted λ_s the scale of a column is free: {penalty.label} of P could be made "
                "arbitrarily small by moving the scale into λ_s, and would select nothing. Choose ℓ₂² with "
                "strength 0: λ_p penalizes both through Σ|λ_s|‖p_s‖^m. Or fix λ_s at 1 or at signs.",
            )
        return super().why_not(penalty)

    def why_no_solver(self, solver: Any) -> WhyNot | None:
        if not self.fits_coefficients or not solver.factorised:
            return None
        if not solver.fits_coefficients:
            return WhyNot(
                "fitted_coefficients",
                f"{solver.label} updates P, w and the bias, but this model also fits the column weights λ_s, "
                "in which the objective is not smooth. Use CD or L-BFGS, which fit λ between their steps on "
                "P, or fix λ at 1 or at signs.",
            )
        if self.shrinkage_power > 2 and not solver.takes_powers:
            return WhyNot(
                "powers_of_norms",
                f"{solver.label} shrinks all entries of P equally, as squared norms do, but with fitted λ_s "
                f"and degree {self.shrinkage_power} the column norms are raised to that power. Use CD or "
                "L-BFGS, or fix λ at 1 or at signs.",
            )
        return None

    def check_strengths(self, lambda_p: float, lambda_sparse: float) -> None:
        if self.fits_coefficients and lambda_sparse > 0:
            raise ValueError(
                f"lambda_sparse = {lambda_sparse:g} would multiply ‖P‖², whose scale can move into the "
                "fitted λ_s; set it to 0 and increase lambda_p, the strength of Σ|λ_s|‖p_s‖^m."
            )

    @property
    def fits_coefficients(self) -> bool:
        """Whether λ is fitted."""
        return self.coefficients == "fitted"

    def shapes(self, d: int, rank: int) -> dict[str, tuple[int, ...]]:
        return super().shapes(d, rank) | {"coefficients": (rank,)}

    def start(self, d: int, rank: int, init_scale: float, rng: np.random.Generator) -> Parameters:
        """Return P ~ N(0, init_scale²), λ = 1 or random signs, w = 0, bias 0."""
        start = super().start(d, rank, init_scale, rng)
        signs = self.coefficients == "signs"
        coefficients = rng.choice((-1.0, 1.0), rank) if signs else np.ones(rank)
        return Parameters(start.P, start.w, start.intercept, coefficients=coefficients)

    def column_weights(self, parameters: Parameters) -> np.ndarray:
        """Return |λ_s|, or ½m|λ_s|‖p_:,s‖^(m−2) if the norm has the power m."""
        power, size = self.shrinkage_power, self.shrinkage_weights(parameters)
        if power == 2:
            return size
        return 0.5 * power * size * np.linalg.norm(parameters.P, axis=0) ** (power - 2)

    def shrinkage(self, parameters: Parameters) -> float:
        """Return Σ_s |λ_s|‖p_:,s‖^m, or Σ_s |λ_s|‖p_:,s‖² with fixed λ."""
        norms = np.linalg.norm(parameters.P, axis=0)
        return float(np.abs(parameters.multipliers) @ norms**self.shrinkage_power)
