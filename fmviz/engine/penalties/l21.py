"""The ℓ2,1 norm, or group lasso over the rows of P."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._coupled import norm_penalty
from .base import MatrixView, Penalty, unit_rows
from .operators.lazy import ROWS
from .operators.matrix import shrink_norms


@dataclass(frozen=True)
class L21(Penalty):
    """Ω(P) = Σ_j ‖p_j‖₂."""

    name = "l21"
    label = "ℓ₂,₁"
    formula = r"\|P\|_{2,1} = \sum_{j} \|p_j\|_2"
    prox_formula = r"q_j = \max\!\Big(1-\dfrac{\lambda}{\|p_j\|_2},\,0\Big)\,p_j"
    selects = "features: rows of P whose norm is large in absolute terms"
    stands_for = "the group lasso: the sum of the Euclidean norms of its rows"
    mechanism = (
        "ℓ₂,₁ removes whole rows of P, that is, features. The remaining ones share all columns and therefore "
        "interact with each other."
    )
    source = "atarashi2021, Eq. 6"
    row_wise = True
    row_norm = 2.0
    row = norm_penalty(fixed=1.0)
    matrix = MatrixView(name, shrink_norms, lazy=ROWS)

    def value(self, P: np.ndarray) -> float:
        """Return the sum of row norms."""
        return float(unit_rows(P)[0].sum())

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Shrink the norm of every row by `strength` ([A] Eq. 6)."""
        norms, unit = unit_rows(P)
        return np.maximum(norms - strength, 0.0) * unit

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return ones, shape (d, 1)."""
        return np.ones((P.shape[0], 1))
