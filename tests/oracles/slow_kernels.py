"""Reference implementations of column kernels, as sums over subsets."""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np


def anova(p: np.ndarray, x: np.ndarray, degree: int) -> float:
    """The definition ([A] Eq. 39)."""
    return sum(prod(p[j] * x[j] for j in subset) for subset in combinations(range(len(p)), degree))


def all_subsets(p: np.ndarray, x: np.ndarray) -> float:
    """The definition ([A] Eq. 54), a sum over all subsets, the empty one included."""
    return sum(anova(p, x, m) for m in range(len(p) + 1))


def polynomial(p: np.ndarray, x: np.ndarray, degree: int) -> float:
    """The definition ([B] Section 3)."""
    return float(p @ x) ** degree
