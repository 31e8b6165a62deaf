"""Entry and row views of penalties whose weights depend on the sum of all other entries or rows.

Along an entry of P, TI, Ω_TI, ℓ1 and ℓ2² are quad·p² + (fixed + coupled·Σ_{i≠j} |p_is|)·|p|, and along a row
CS, Ω_CS and ℓ2,1 are the same in the norms of the rows. The cache begins with the two numbers,
followed by the sums, so that one compiled kernel serves them all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._jit import jitable
from .base import EntryView, RowView
from .operators.thresholds import norm, shrink_norm, soft

FIXED, COUPLED, SUMS = 0, 1, 2


def _cache(fixed: float, coupled: float, sums: Callable[[int, int], int]) -> Callable[[int, int], np.ndarray]:
    def cache(d: int, k: int) -> np.ndarray:
        values = np.zeros(SUMS + sums(d, k))
        values[FIXED], values[COUPLED] = fixed, coupled
        return values

    return cache


@jitable
def weigh(cache, at, size):
    """Return the weight of an entry or row that contributes `size` to the sum at `at`."""
    # The subtraction may fall below 0 by rounding.
    return cache[FIXED] + cache[COUPLED] * max(cache[at] - size, 0.0)


@jitable
def begin_with_column_sum(P, s, cache):
    if cache[COUPLED] != 0.0:
        total = 0.0
        for j in range(P.shape[1]):
            total += abs(P[s, j])
        cache[SUMS] = total


@jitable
def weight_of_entry(cache, j, p):
    return weigh(cache, SUMS, abs(p))


@jitable
def update_column_sum(cache, j, old, new):
    if cache[COUPLED] != 0.0:
        cache[SUMS] += abs(new) - abs(old)


def entry_penalty(quad: float = 0.0, fixed: float = 0.0, coupled: float = 0.0) -> EntryView:
    """Return the penalty along an entry, coupled to those of its column ([A] Algorithm 1)."""
    return EntryView(
        "entry",
        quad,
        _cache(fixed, coupled, lambda d, k: 1),
        begin_with_column_sum,
        weight_of_entry,
        update_column_sum,
    )


@jitable
def begin_with_row_sums(P, s, cache):
    if s == 0:
        cache[SUMS:] = 0.0
        for r in range(P.shape[0]):
            for j in range(P.shape[1]):
                cache[SUMS + j] += abs(P[r, j])


@jitable
def weight_in_row(cache, j, p):
    return weigh(cache, SUMS + j, abs(p))


@jitable
def update_row_sum(cache, j, old, new):
    cache[SUMS + j] += abs(new) - abs(old)


def entry_penalty_in_row(quad: float, coupled: float) -> EntryView:
    """Return the penalty along an entry, coupled to those of its row."""
    return EntryView(
        "entry_in_row",
        quad,
        _cache(0.0, coupled, lambda d, k: d),
        begin_with_row_sums,
        weight_in_row,
        update_row_sum,
        shared=True,
    )


@jitable
def begin_with_column_sums(P, cache):
    if cache[COUPLED] != 0.0:
        cache[SUMS:] = 0.0
        for j in range(P.shape[0]):
            for s in range(P.shape[1]):
                cache[SUMS + s] += abs(P[j, s])


@jitable
def shrink_entries(u, strength, j, P, cache):
    for s in range(u.size):
        u[s] = soft(u[s], strength * weigh(cache, SUMS + s, abs(P[j, s])))


@jitable
def weighted_entries(q, j, P, cache):
    total = 0.0
    for s in range(q.size):
        total += weigh(cache, SUMS + s, abs(P[j, s])) * abs(q[s])
    return total


@jitable
def update_column_sums(cache, j, P, q):
    if cache[COUPLED] != 0.0:
        for s in range(q.size):
            cache[SUMS + s] += abs(q[s]) - abs(P[j, s])


def entries_penalty(quad: float = 0.0, fixed: float = 0.0, coupled: float = 0.0) -> RowView:
    """Return the penalty along a row whose entries are coupled to those of their columns."""
    return RowView(
        "entries",
        quad,
        _cache(fixed, coupled, lambda d, k: k),
        begin_with_column_sums,
        shrink_entries,
        weighted_entries,
        update_column_sums,
    )


@jitable
def begin_with_sum_of_norms(P, cache):
    if cache[COUPLED] != 0.0:
        total = 0.0
        for j in range(P.shape[0]):
            total += norm(P[j])
        cache[SUMS] = total


@jitable
def weight_of_norm(cache, p):
    return weigh(cache, SUMS, norm(p) if cache[COUPLED] != 0.0 else 0.0)


@jitable
def shrink_row(u, strength, j, P, cache):
    shrink_norm(u, strength * weight_of_norm(cache, P[j]))


@jitable
def weighted_norm(q, j, P, cache):
    return weight_of_norm(cache, P[j]) * norm(q)


@jitable
def update_sum_of_norms(cache, j, P, q):
    if cache[COUPLED] != 0.0:
        cache[SUMS] += norm(q) - norm(P[j])


def norm_penalty(quad: float = 0.0, fixed: float = 0.0, coupled: float = 0.0) -> RowView:
    """Return the penalty along a row whose norm is coupled to those of all others ([A] 5.2)."""
    return RowView(
        "norm",
        quad,
        _cache(fixed, coupled, lambda d, k: 1),
        begin_with_sum_of_norms,
        shrink_row,
        weighted_norm,
        update_sum_of_norms,
    )
