"""Entry and row views of penalties whose weights depend on sums over all other entries or rows.

Along an entry of P, TI, Ω_TI, ℓ1 and ℓ2² are quad·p² + (fixed + coupled·Σ_{i≠j} |p_is|)·|p|; along a row,
CS, Ω_CS and ℓ2,1 have the same form in the row norms. The penalties of order m, and of all subsets, replace
the sum by other functions of the remaining sizes. `Sizes` contains everything that a view needs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._jit import jitable, zero
from .base import EntryView, RowView
from .operators.thresholds import entry_minimum, norm, shrink_norm, soft

FIXED, COUPLED, SUMS = 0, 1, 2


@dataclass(frozen=True)
class Sizes:
    """Function of the sizes of all entries of a column, or of all rows, that gives each a weight.

    Attributes
    ----------
    name : str
        Names the compiled kernels, and identifies the function.
    first, width : int
        The offset of the first column's numbers in a cache, and their number per column.
    active : callable
        ``active(cache)``: whether the weights depend on sizes.
    reset, add : callable
        ``reset(cache, at)`` starts with no sizes, and ``add(cache, at, first, size)`` adds one; both return
        the first number, which the caller stores: sums in a local variable are vectorized.
    weight : callable
        ``weight(cache, at, size, strength)``: strength times the weight of one of the sizes.
    update : callable
        ``update(cache, at, old, new)``: one size has changed.
    """

    name: str
    first: int
    width: int
    active: Callable[..., bool]
    reset: Callable[..., None]
    add: Callable[..., None]
    weight: Callable[..., float]
    update: Callable[..., None]


@functools.cache
def linear_minimum(threshold: Callable[..., float]) -> Callable[..., float]:
    """Return the `minimum` of an `EntryView` with ω(q) = `threshold`·|q|."""

    @jitable
    def minimum(cache, j, p, g, h, lam_p, lam):
        return entry_minimum(p, g, h, lam_p, lam * threshold(cache, j, p))

    return minimum


@functools.cache
def _of_entries(sizes: Sizes) -> tuple[Any, ...]:
    """Return `begin`, `minimum`, `threshold` and `update` of an `EntryView`."""
    first, active, reset, add = sizes.first, sizes.active, sizes.reset, sizes.add
    weight, update_size = sizes.weight, sizes.update

    @jitable
    def begin(P, s, cache):
        if active(cache):
            total = reset(cache, first)
            for j in range(P.shape[1]):
                total = add(cache, first, total, abs(P[s, j]))
            cache[first] = total

    @jitable
    def threshold(cache, j, p):
        return weight(cache, first, abs(p), 1.0)

    @jitable
    def update(cache, j, old, new):
        if active(cache):
            update_size(cache, first, abs(old), abs(new))

    return begin, linear_minimum(threshold), threshold, update


@functools.cache
def _of_rows(sizes: Sizes) -> tuple[Callable[..., Any], ...]:  # noqa: C901 (compiled loops)
    """Return `begin`, `shrink`, `penalty` and `update` of a `RowView` along the entries of a row."""
    first, width, active, reset, add = sizes.first, sizes.width, sizes.active, sizes.reset, sizes.add
    weight, update_size = sizes.weight, sizes.update

    @jitable
    def begin(P, cache):
        if active(cache):
            for s in range(P.shape[1]):
                cache[first + s * width] = reset(cache, first + s * width)
            for j in range(P.shape[0]):
                for s in range(P.shape[1]):
                    at = first + s * width
                    cache[at] = add(cache, at, cache[at], abs(P[j, s]))

    @jitable
    def shrink(u, strength, j, P, cache):
        for s in range(u.size):
            u[s] = soft(u[s], weight(cache, first + s * width, abs(P[j, s]), strength))

    @jitable
    def penalty(q, j, P, cache):
        total = 0.0
        for s in range(q.size):
            total += weight(cache, first + s * width, abs(P[j, s]), 1.0) * abs(q[s])
        return total

    @jitable
    def update(cache, j, P, q):
        if active(cache):
            for s in range(q.size):
                update_size(cache, first + s * width, abs(P[j, s]), abs(q[s]))

    return begin, shrink, penalty, update


@functools.cache
def _of_norms(sizes: Sizes) -> tuple[Callable[..., Any], ...]:
    """Return `begin`, `shrink`, `penalty` and `update` of a `RowView` along the norm of a row."""
    first, active, reset, add = sizes.first, sizes.active, sizes.reset, sizes.add
    weight, update_size = sizes.weight, sizes.update

    @jitable
    def begin(P, cache):
        if active(cache):
            total = reset(cache, first)
            for j in range(P.shape[0]):
                total = add(cache, first, total, norm(P[j]))
            cache[first] = total

    @jitable
    def shrink(u, strength, j, P, cache):
        shrink_norm(u, weight(cache, first, norm(P[j]) if active(cache) else 0.0, strength))

    @jitable
    def penalty(q, j, P, cache):
        return weight(cache, first, norm(P[j]) if active(cache) else 0.0, 1.0) * norm(q)

    @jitable
    def update(cache, j, P, q):
        if active(cache):
            update_size(cache, first, norm(P[j]), norm(q))

    return begin, shrink, penalty, update


@jitable
def is_coupled(cache):
    return cache[COUPLED] != 0.0


@jitable
def add_to_sum(cache, at, total, size):
    return total + size


@jitable
def weigh(cache, at, size, strength):
    # The subtraction may fall below 0 by rounding.
    return strength * (cache[FIXED] + cache[COUPLED] * max(cache[at] - size, 0.0))


@jitable
def update_sum(cache, at, old, new):
    cache[at] += new - old


SUM = Sizes("sum", SUMS, 1, is_coupled, zero, add_to_sum, weigh, update_sum)
"""The sum; its cache begins with `fixed` and `coupled`: one compiled kernel serves all penalties."""


def _cache(sizes: Sizes, fixed: float, coupled: float, by_column: bool = False) -> Any:
    return lambda d, k: np.append(
        [fixed, coupled][: sizes.first], np.zeros(sizes.width * (k if by_column else 1))
    )


def entry_penalty(
    quad: float = 0.0, fixed: float = 0.0, coupled: float = 0.0, sizes: Sizes = SUM
) -> EntryView:
    """Return the view along an entry, weighted by the sizes in its column ([A] Algorithm 1)."""
    view = EntryView(sizes.name, quad, _cache(sizes, fixed, coupled), *_of_entries(sizes))
    return replace(view, separate=sizes is SUM and not coupled)


def entries_penalty(
    quad: float = 0.0, fixed: float = 0.0, coupled: float = 0.0, sizes: Sizes = SUM
) -> RowView:
    """Return the view along a row whose entries are weighted by the sizes in their columns."""
    return RowView(sizes.name, quad, _cache(sizes, fixed, coupled, by_column=True), *_of_rows(sizes))


def norm_penalty(quad: float = 0.0, fixed: float = 0.0, coupled: float = 0.0, sizes: Sizes = SUM) -> RowView:
    """Return the view along a row whose norm is weighted by the norms of all other rows ([A] 5.2)."""
    return RowView(f"{sizes.name}_of_norms", quad, _cache(sizes, fixed, coupled), *_of_norms(sizes))


@jitable
def begin_with_row_sums(P, s, cache):
    if s == 0:
        cache[SUMS:] = 0.0
        for r in range(P.shape[0]):
            for j in range(P.shape[1]):
                cache[SUMS + j] += abs(P[r, j])


@jitable
def weight_in_row(cache, j, p):
    return weigh(cache, SUMS + j, abs(p), 1.0)


@jitable
def update_row_sum(cache, j, old, new):
    cache[SUMS + j] += abs(new) - abs(old)


def entry_penalty_in_row(quad: float, coupled: float) -> EntryView:
    """Return the view along an entry that is coupled to the entries of its row."""
    minimum = linear_minimum(weight_in_row)
    functions = begin_with_row_sums, minimum, weight_in_row, update_row_sum
    return EntryView(
        "entry_in_row", quad, lambda d, k: np.append([0.0, coupled], np.zeros(d)), *functions, shared=True
    )
