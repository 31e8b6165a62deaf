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


def anova_slope(p: np.ndarray, x: np.ndarray, degree: int, j: int) -> float:
    """∂A^m/∂p_j: the subsets with j, without its factor p_j ([B] Lemma 2)."""
    others = [i for i in range(len(p)) if i != j]
    return x[j] * sum(prod(p[i] * x[i] for i in subset) for subset in combinations(others, degree - 1))


def all_subsets_slope(p: np.ndarray, x: np.ndarray, j: int) -> float:
    """∂K_all/∂p_j."""
    return sum(anova_slope(p, x, m, j) for m in range(1, len(p) + 1))
