"""Kernel expansions: polynomial networks, and factorization machines with a weight for every column ([B])."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from ..kernels import Anova, ColumnKernel, Polynomial
from ..params import ParamSpec
from ..regularizers import Regularizer
from ..snapshot import Parameters
from .base import Notation
from .columns import ColumnModel


class KernelExpansion(ColumnModel):
    r"""f(x) = b + ⟨w, x⟩ + Σ_s λ_s K(p_:,s, x) ([B] Eq. 1), with K = H^m or A^m.

    H² with a linear term is the polynomial network of Livni et al. (2014); A² with λ = 1 the factorization
    machine. λ_p multiplies Σ_s |λ_s|‖p_:,s‖² ([B] Eq. 13).

    Parameters
    ----------
    kernel : {"polynomial", "anova"}
        H^m(p, x) = ⟨p, x⟩^m, or A^m.
    degree : int
        m ≥ 2.
    coefficients : {"fitted", "ones", "signs"}
        λ is fitted, fixed at 1, or fixed at random signs ±1. For odd m signs can be absorbed into P; for
        even m they cannot ([B] Lemma 4).
    """

    name = "expansion"
    label = "Kernel expansion (polynomial network)"
    formula = r"f(x) = b + \langle w, x\rangle + \sum_{s} \lambda_s\,\mathcal{K}(p_{:,s}, x)"
    notation: ClassVar[Notation] = Notation(
        weights="P diag(λ) Pᵀ",
        shrinkage=r"\sum_s |\lambda_s|\,\|p_{:,s}\|^2",
        shrinkage_term="λₚ Σ|λₛ| ‖pₛ‖²",
    )
    params = (
        ParamSpec(
            "kernel",
            "choice",
            "polynomial",
            choices=("polynomial", "anova"),
            help="Products of features with repetition, as in polynomial networks, or without.",
        ),
        ParamSpec("degree", "int", 2, 2, 10, symbol="m", help="The number of features in a product."),
        ParamSpec(
            "coefficients",
            "choice",
            "fitted",
            choices=("fitted", "ones", "signs"),
            symbol=r"\lambda_s",
            help="Fit the weight of every column, fix it at 1, or fix it at a random sign.",
        ),
    )

    @cached_property
    def _kernels(self) -> tuple[ColumnKernel, ...]:
        degree = self.settings["degree"]
        return (Polynomial(degree) if self.settings["kernel"] == "polynomial" else Anova(degree),)

    def why_not(self, regularizer: Regularizer) -> str | None:
        """See `Model.why_not`."""
        if self.fits_coefficients and regularizer.name != "l2":
            return (
                f"With fitted λ_s the scale of a column is free: {regularizer.label} of P could be made as "
                "small as one likes by moving it into λ_s, and would select nothing. Choose ℓ₂², with its "
                "strength at 0: λ_p binds both through Σ|λ_s|‖p_s‖². Or fix λ_s at 1 or at signs."
            )
        return super().why_not(regularizer)

    def check_strengths(self, lambda_p: float, lambda_sparse: float) -> None:
        """See `Model.check_strengths`."""
        if self.fits_coefficients and lambda_sparse > 0:
            raise ValueError(
                f"lambda_sparse = {lambda_sparse:g} would multiply ‖P‖², whose scale moves freely into the "
                "fitted λ_s; set it to 0 and raise lambda_p, which multiplies Σ|λ_s|‖p_s‖²."
            )

    def kernels(self) -> tuple[ColumnKernel, ...]:
        """See `ColumnModel.kernels`."""
        return self._kernels

    @property
    def fits_coefficients(self) -> bool:  # type: ignore[override]
        """Whether λ is fitted."""
        return self.settings["coefficients"] == "fitted"

    def shapes(self, d: int, rank: int) -> dict[str, tuple[int, ...]]:
        """See `Model.shapes`."""
        return super().shapes(d, rank) | {"coefficients": (rank,)}

    def start(self, d: int, rank: int, init_scale: float, rng: np.random.Generator) -> Parameters:
        """Return P ~ N(0, init_scale²), λ = 1 or random signs, w = 0, bias 0."""
        start = super().start(d, rank, init_scale, rng)
        signs = self.settings["coefficients"] == "signs"
        coefficients = rng.choice((-1.0, 1.0), rank) if signs else np.ones(rank)
        return Parameters(start.P, start.w, start.intercept, coefficients=coefficients)

    def column_weights(self, parameters: Parameters) -> np.ndarray:
        """Return |λ_s|."""
        return np.abs(parameters.multipliers)
