"""The ℓ1 norm of the factors, or lasso on the entries of P."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._coupled import entries_penalty, entry_penalty
from .base import MatrixView, Penalty
from .operators.lazy import ENTRIES
from .operators.matrix import soften


@dataclass(frozen=True)
class L1(Penalty):
    """Ω(P) = Σ |p_js|."""

    name = "l1"
    label = "ℓ₁"
    formula = r"\|P\|_1 = \sum_{j,s} |p_{js}|"
    prox_formula = r"q_{js} = \operatorname{sign}(p_{js})\,\max(|p_{js}|-\lambda,\,0)"
    selects = "entries of P that are large in absolute terms; in effect, features"
    stands_for = "the lasso: the sum of the absolute values of all entries of P"
    mechanism = (
        "ℓ₁ has the same threshold, λ, for all entries of P. It ignores the other entries of a column, and "
        "features of different groups end up sharing columns."
    )
    source = "atarashi2021, Eq. 8"
    row_norm = 1.0
    entry = entry_penalty(fixed=1.0)
    row = entries_penalty(fixed=1.0)
    matrix = MatrixView(name, soften, lazy=ENTRIES)

    def value(self, P: np.ndarray) -> float:
        """Return the sum of |p_js|."""
        return float(np.abs(P).sum())

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Shrink every entry by `strength` ([A] Eq. 8)."""
        # Adding 0 turns −0 into 0.
        return np.sign(P) * np.maximum(np.abs(P) - strength, 0.0) + 0.0

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return ones."""
        return np.ones_like(P)
