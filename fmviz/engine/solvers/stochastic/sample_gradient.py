"""Model-specific parts of lazy stochastic steps: the kernel term of a sample, and its descent step.

Every function takes the rows of P of the sample in the buffer R, shape (longest, columns), and the entries xs
of the sample; `columns` is the pair (kinds of the columns, coefficients).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._jit import jitable
from ...models.columns import ColumnKernel

# Gradients beyond this count as divergence: the squares of larger values would not be finite.
BEYOND = 1e140


@dataclass(frozen=True)
class Terms:
    """The model-specific parts of a kernel of stochastic steps.

    Attributes
    ----------
    name : str
        Names the compiled kernel.
    work : callable
        ``work(longest, rank, columns)``: the work space of the other functions.
    term : callable
        ``term(R, xs, count, work, columns)``: f without bias and linear term; stores intermediate results for
        `descend` in `work`.
    descend : callable
        ``descend(R, xs, count, work, columns, keep, slope)``: replace R by keep·R − slope·∇f, and return
        the sum of sizes.
    """

    name: str
    work: Callable[..., Any]
    term: Callable[..., float]
    descend: Callable[..., float]


@jitable
def sums_of(longest, rank, columns):
    return np.empty(rank)


@jitable
def pair_term(R, xs, count, A, columns):
    """Return ½ Σ_s ((Σ_i x_i R_is)² − Σ_i x_i² R_is²) ([A] Eq. 4) and write Σ_i x_i R_is into A."""
    rank = A.size
    A[:] = 0.0
    squares = 0.0
    for i in range(count):
        x = xs[i]
        for s in range(rank):
            term = x * R[i, s]
            A[s] += term
            squares += term * term
    total = 0.0
    for s in range(rank):
        total += A[s] * A[s]
    return 0.5 * (total - squares)


@jitable
def descend(R, xs, count, A, columns, keep, slope):
    """Replace R by keep·R − slope·∇f, and return the sum of sizes, at least `BEYOND` on divergence.

    ∂f/∂p_js = x_j (Σ_i x_i p_is − x_j p_js) ([A] Algorithm 5, line 8).
    """
    size = 0.0
    for i in range(count):
        x = xs[i]
        for s in range(A.size):
            R[i, s] = keep * R[i, s] - slope * x * (A[s] - x * R[i, s])
            size += abs(R[i, s])
    return size


PAIRS = Terms("pairs", sums_of, pair_term, descend)


@jitable
def slopes_and_tables(longest, rank, columns):
    """Return ∂f/∂R, shape (longest, rank), and two tables for the recursions."""
    degree = 1
    for kind in columns[0]:
        degree = max(degree, kind)
    return np.empty((longest, rank)), np.empty((longest + 1, degree + 1)), np.empty(degree + 1)


@jitable
def anova_column(R, xs, count, s, degree, scale, slopes, table, back):
    """Return A^m of column s and write scale·∂A^m/∂R to `slopes`, by a forward and a backward pass."""
    for t in range(degree + 1):
        table[0, t] = 0.0
        back[t] = 0.0
    table[0, 0] = 1.0
    back[degree] = 1.0
    for i in range(count):
        z = xs[i] * R[i, s]
        table[i + 1, 0] = 1.0
        for t in range(1, degree + 1):
            table[i + 1, t] = table[i, t] + z * table[i, t - 1]
    for i in range(count - 1, -1, -1):
        z = xs[i] * R[i, s]
        slope = 0.0
        for t in range(1, degree + 1):
            slope += back[t] * table[i, t - 1]
            back[t - 1] += z * back[t]
        slopes[i, s] = scale * xs[i] * slope
    return table[count, degree]


@jitable
def subsets_column(R, xs, count, s, scale, slopes):
    """Return Π_i (1 + x_i R_is) and write scale times its slopes, computed without division, to `slopes`."""
    product = 1.0
    for i in range(count):
        slopes[i, s] = scale * xs[i] * product
        product *= 1.0 + xs[i] * R[i, s]
    after = 1.0
    for i in range(count - 1, -1, -1):
        slopes[i, s] *= after
        after *= 1.0 + xs[i] * R[i, s]
    return product


@jitable
def polynomial_column(R, xs, count, s, degree, scale, slopes):
    """Return ⟨x, R_:,s⟩^m and write scale times its slopes to `slopes`."""
    total = 0.0
    for i in range(count):
        total += xs[i] * R[i, s]
    power = 1.0
    for _ in range(degree - 1):
        power *= total
    for i in range(count):
        slopes[i, s] = scale * degree * power * xs[i]
    return power * total


@jitable
def weighted_columns(R, xs, count, work, columns):
    slopes, table, back = work
    kinds, coefficients = columns
    f = 0.0
    for s in range(kinds.size):
        kind = kinds[s]
        scale = coefficients[s]
        if kind > 0:
            f += scale * anova_column(R, xs, count, s, kind, scale, slopes, table, back)
        elif kind < 0:
            f += scale * polynomial_column(R, xs, count, s, -kind, scale, slopes)
        else:
            f += scale * subsets_column(R, xs, count, s, scale, slopes)
    return f


@jitable
def descend_columns(R, xs, count, work, columns, keep, slope):
    slopes = work[0]
    size = 0.0
    for i in range(count):
        for s in range(slopes.shape[1]):
            R[i, s] = keep * R[i, s] - slope * slopes[i, s]
            size += abs(R[i, s])
    return size


COLUMNS = Terms("columns", slopes_and_tables, weighted_columns, descend_columns)
"""The terms of Σ_s c_s K_s; `columns` is (`kinds_of` the columns, c). O(count·Σm) per sample."""


def kind_of(kernel: ColumnKernel) -> int:
    """Return the code of a kernel in compiled code: m for A^m, −m for H^m, 0 for all subsets."""
    degree = kernel.degree or 0
    return degree if kernel.multilinear else -degree
