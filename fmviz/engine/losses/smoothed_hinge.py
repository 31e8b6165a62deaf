"""The smoothed multiclass hinge loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._jit import jitable
from .multiclass_logistic import soft_maximum
from .vector import RowLoss, SoftMaximum, simplex_conjugate


@jitable
def row(f, y, g):
    return soft_maximum(f, y, g, 1.0)


@dataclass(frozen=True)
class SmoothedHinge(SoftMaximum):
    """ℓ(f, y) = log(1 + Σ_{c≠y} exp(1 + f_c − f_y)): a smooth maximum over classes of the hinge loss."""

    name = "smoothed_hinge"
    label = "Smoothed multi-class hinge"
    formula = r"\log\big(1+\sum_{c\neq y} e^{1+f_c-f_y}\big)"
    rows = RowLoss("smoothed_hinge", row)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the logistic conjugate; a shift of f by 1[c ≠ y] subtracts ⟨a, 1[c ≠ y]⟩ = −a_y."""
        return simplex_conjugate(a, y) + a[np.arange(len(a)), y.astype(np.int64)]
