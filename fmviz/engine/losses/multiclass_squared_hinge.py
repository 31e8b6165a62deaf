"""The multiclass squared hinge loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._jit import jitable
from .vector import _SLACK, RowLoss, VectorLoss


@jitable
def row(f, y, g):
    total, own = 0.0, 0.0
    edge = 1.0 - f[y]
    for c in range(f.size):
        slack = max(edge + f[c], 0.0)
        g[c] = 2.0 * slack
        total += slack * slack
        own += g[c]
    # The class itself has a slack of 1, which is not part of the loss.
    g[y] = -(own - 2.0)
    return total - 1.0


@dataclass(frozen=True)
class MulticlassSquaredHinge(VectorLoss):
    """ℓ(f, y) = Σ_{c≠y} max(1 + f_c − f_y, 0)²."""

    name = "multiclass_squared_hinge"
    label = "Multi-class squared hinge"
    formula = r"\sum_{c\neq y} \max(1+f_c-f_y, 0)^2"
    rows = RowLoss("multiclass_squared_hinge", row)
    # No `lipschitz`: it is 2m, twice the largest eigenvalue of Σ_{c≠y} (e_c − e_y)(e_c − e_y)ᵀ.

    def curvature(self, F: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return 2(1 + the number of classes within the margin), or 0."""
        within = (self.derivative(F, Y) > 0.0).sum(axis=1)
        return np.where(within > 0, 2.0 * (1.0 + within), 0.0)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return Σ_{c≠y} ¼a_c² − a_c for a_c ≥ 0 and a_y = −Σ_{c≠y} a_c, else ∞."""
        b = a.copy()
        b[np.arange(len(b)), y.astype(np.int64)] = 0.0
        inside = (b.min(axis=1) >= -_SLACK) & (np.abs(a.sum(axis=1)) <= _SLACK)
        b = np.maximum(b, 0.0)
        return np.where(inside, (b * (0.25 * b - 1.0)).sum(axis=1), np.inf)
