"""Ω_TI: the pairwise part of TI, without the squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._coupled import entries_penalty, entry_penalty
from .base import MatrixView, Penalty
from .higher_order import HigherOmegaTI, OmegaTIAll
from .operators.coupled import COUPLED_ENTRIES
from .operators.matrix import shrink_pairs
from .operators.squared_norm import ALGORITHMS, prox_squared_l1
from .ti import sum_of_others


def prox_pairs(M: np.ndarray, strength: float, algorithm: str | None) -> np.ndarray:
    """Apply prox of strength·½(‖·‖₁² − ‖·‖₂²) to every row of M.

    For strength < 1 the objective is strictly convex and the operator equals that of λ'‖·‖₁² with
    λ' = strength/(2(1 − strength)), scaled by 1/(1 − strength). For strength ≥ 1 it is concave along the
    faces of the ℓ1 ball: the minimum keeps only the largest entry of each row.
    """
    if strength < 1.0:
        shrunk = prox_squared_l1(M, 0.5 * strength / (1.0 - strength), algorithm)
        return np.asarray(shrunk / (1.0 - strength))
    kept = np.zeros_like(M)
    rows = np.arange(M.shape[0])
    largest = np.abs(M).argmax(axis=1)
    kept[rows, largest] = M[rows, largest]
    return kept


@dataclass(frozen=True)
class OmegaTI(Penalty):
    """Ω_TI(P) = Σ_s Σ_{i<j} |p_is p_js| = ½(TI(P) − ‖P‖²_F). Not convex."""

    name = "omega_ti"
    label = "Ω_TI"
    formula = r"\Omega_{\mathrm{TI}}(P) = \sum_{s}\sum_{i<j} |p_{is}\,p_{js}|"
    prox_formula = (
        r"Q = \tfrac{1}{1-\lambda}\operatorname{prox}_{\lambda'\|\cdot\|_1^2}(P)"
        r",\ \lambda'=\tfrac{\lambda}{2(1-\lambda)}\ (\lambda<1);\quad"
        r"\text{else the largest entry of each column}"
    )
    selects = "interactions: like TI, without shrinking the last non-zero entry of a column"
    source = "atarashi2021, Eq. 21"
    algorithms = tuple(ALGORITHMS)
    convex = False
    in_weights = "pairs"
    entry = entry_penalty(coupled=1.0)
    row = entries_penalty(coupled=1.0)
    matrix = MatrixView(name, shrink_pairs, lazy=COUPLED_ENTRIES, pairs=True)

    def of_order(self, order: int | None) -> Penalty:
        """Return Ω_TI^m or Ω_TI^all ([A] Eq. 41 and 56)."""
        if order is None:
            return OmegaTIAll()
        return self if order == 2 else HigherOmegaTI(order)

    def value(self, P: np.ndarray) -> float:
        """Return the sum over columns of |p_i p_j|, i < j."""
        size = np.abs(P)
        return float((0.5 * size * sum_of_others(size, 0)).sum())

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Return a global minimizer, column by column; see `prox_pairs`."""
        return np.ascontiguousarray(prox_pairs(np.ascontiguousarray(P.T), strength, algorithm).T)

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return Σ_i |p_is| − |p_js|."""
        return sum_of_others(np.abs(P), 0)
