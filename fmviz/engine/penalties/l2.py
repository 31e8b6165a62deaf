"""The squared Frobenius norm, or ridge penalty, which shrinks all entries and selects none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._jit import nothing
from ._coupled import entries_penalty, entry_penalty
from .base import MatrixView, Penalty
from .operators.lazy import ENTRIES


@dataclass(frozen=True)
class L2(Penalty):
    """Ω(P) = ‖P‖²_F."""

    name = "l2"
    label = "ℓ₂²"
    formula = r"\|P\|_F^2 = \sum_{j,s} p_{js}^2"
    prox_formula = r"q_{js} = \dfrac{p_{js}}{1+2\lambda}"
    selects = "nothing: every entry shrinks by the same factor"
    source = "atarashi2021, Eq. 2"
    smooth = True
    in_weights = "trace"
    entry = entry_penalty(quad=1.0)
    row = entries_penalty(quad=1.0)
    matrix = MatrixView(name, nothing, quad=1.0, weight=0.0, lazy=ENTRIES)

    def value(self, P: np.ndarray) -> float:
        """Return ‖P‖²_F."""
        return float(np.square(P).sum())

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Return P/(1 + 2·strength)."""
        return P / (1.0 + 2.0 * strength)

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return zeros: there is no |p| term."""
        return np.zeros_like(P)
