"""Ω_CS: the pairwise part of CS, without the squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._coupled import norm_penalty
from .base import MatrixView, Penalty, prox_of_norms, unit_rows
from .higher_order import HigherOmegaCS, OmegaCSAll
from .omega_ti import prox_pairs
from .operators.coupled import COUPLED_ROWS
from .operators.matrix import shrink_norm_pairs
from .operators.squared_norm import ALGORITHMS
from .ti import sum_of_others


@dataclass(frozen=True)
class OmegaCS(Penalty):
    """Ω_CS(P) = Σ_{i<j} ‖p_i‖₂ ‖p_j‖₂ = ½(CS(P) − ‖P‖²_F). Not convex."""

    name = "omega_cs"
    label = "Ω_CS"
    formula = r"\Omega_{\mathrm{CS}}(P) = \sum_{i<j} \|p_i\|_2\,\|p_j\|_2"
    prox_formula = (
        r"Q = \tfrac{1}{1-\lambda}\operatorname{prox}_{\lambda'\|\cdot\|_{2,1}^2}(P)"
        r",\ \lambda'=\tfrac{\lambda}{2(1-\lambda)}\ (\lambda<1);\quad"
        r"\text{else the row of largest norm}"
    )
    selects = "features: like CS, without shrinking the last non-zero row"
    source = "atarashi2021, Eq. 34"
    algorithms = tuple(ALGORITHMS)
    row_wise = True
    convex = False
    in_weights = "pairs"
    row = norm_penalty(coupled=1.0)
    matrix = MatrixView(name, shrink_norm_pairs, lazy=COUPLED_ROWS, pairs=True)

    def of_order(self, order: int | None) -> Penalty:
        """Return Ω_CS^m or Ω_CS^all ([A] Eq. 48 and 57)."""
        if order is None:
            return OmegaCSAll()
        return self if order == 2 else HigherOmegaCS(order)

    def value(self, P: np.ndarray) -> float:
        """Return the sum of ‖p_i‖‖p_j‖ over i < j."""
        norms = unit_rows(P)[0]
        return float((0.5 * norms * sum_of_others(norms, 0)).sum())

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Return a global minimizer: `prox_pairs` on the row norms."""
        return prox_of_norms(P, strength, lambda norms: prox_pairs(norms, strength, algorithm))

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return Σ_{i≠j} ‖p_i‖, shape (d, 1)."""
        return sum_of_others(unit_rows(P)[0], 0)
