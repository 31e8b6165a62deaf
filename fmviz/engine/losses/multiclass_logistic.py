"""The multiclass logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from .._exponential import exp_ratio
from .._jit import jitable
from .vector import RowLoss, SoftMaximum, simplex_conjugate


@jitable
def soft_maximum(f, y, g, margin):
    """Write the gradient of log Σ_c exp(f_c + margin·[c ≠ y] − f_y) into g and return its value."""
    top = f[y] - margin
    for c in range(f.size):
        top = max(top, f[c])
    total = 0.0
    for c in range(f.size):
        # The term of the class itself is corrected below; without a branch the loop is vectorized.
        below, above = exp_ratio(f[c] - top)
        g[c] = above / below
        total += g[c]
    below, above = exp_ratio(f[y] - margin - top)
    own = above / below
    total += own - g[y]
    g[y] = own
    scale = 1.0 / total
    for c in range(f.size):
        g[c] *= scale
    g[y] -= 1.0
    return log(total) + (top - (f[y] - margin))


@jitable
def row(f, y, g):
    return soft_maximum(f, y, g, 0.0)


@dataclass(frozen=True)
class MulticlassLogistic(SoftMaximum):
    """ℓ(f, y) = log Σ_c exp(f_c − f_y): the negative log-likelihood of softmax probabilities."""

    name = "multiclass_logistic"
    label = "Multi-class logistic"
    formula = r"\log\big(1+\sum_{c\neq y} e^{f_c-f_y}\big)"
    rows = RowLoss("multiclass_logistic", row)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        return simplex_conjugate(a, y)

    def probability(self, f: np.ndarray) -> np.ndarray:
        """Return the softmax of every row, shape (B, m)."""
        e = np.exp(f - f.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))
