"""The kernel of all subsets of features, Π_j (1 + p_j x_j) ([A] Eq. 54)."""

from __future__ import annotations

from math import frexp, ldexp
from typing import Any

import numpy as np

from ..._jit import cached_factory, jitable, nothing, zero
from ...design import Design, Storage, line
from ...memory import aligned_copy
from .base import (
    EntryColumnView,
    MultilinearKernel,
    RowColumnsView,
    State,
)

# Mantissas of products are rescaled before they can leave the range of doubles.
_SAFE = 2.0**500


@jitable
def rescaled(mantissa, exponent):
    """Rescale the pair (mantissa, exponent) of mantissa·2^exponent if the mantissa is far from 1."""
    size = abs(mantissa)
    if size > _SAFE or (size < 1.0 / _SAFE and size > 0.0):
        mantissa, shift = frexp(mantissa)
        exponent += shift
    return mantissa, exponent


@cached_factory()
def subsets_of_rows(storage: Storage):
    """Return the kernel that writes Π_j (1 + p_js x_nj) to out[n, s], infinite only on overflow."""
    entry, value = storage.row, storage.value

    def subsets(data, indices, indptr, P, out):
        for n in range(out.shape[0]):
            row, features, count = line(data, indices, indptr, n)
            for s in range(P.shape[1]):
                product = 1.0
                exponent = 0
                for i in range(count):
                    product *= 1.0 + value(row, i) * P[entry(features, i), s]
                    product, exponent = rescaled(product, exponent)
                out[n, s] = ldexp(product, exponent)

    return subsets


@cached_factory()
def subsets_slopes_of_rows(storage: Storage, power):
    """Return the kernel that adds Σ_n weight[n, s] power(∂K_all(p_s, x_n)/∂p_js) to G[j, s].

    `before` and `shifts`, of the length of the longest row, are mantissa and exponent of the product of all
    preceding factors.
    """
    entry, value = storage.row, storage.value

    def slopes(data, indices, indptr, P, weight, before, shifts, G):
        for n in range(weight.shape[0]):
            row, features, count = line(data, indices, indptr, n)
            for s in range(P.shape[1]):
                product = 1.0
                exponent = 0
                for i in range(count):
                    before[i] = product
                    shifts[i] = exponent
                    product *= 1.0 + value(row, i) * P[entry(features, i), s]
                    product, exponent = rescaled(product, exponent)
                after = 1.0
                exponent = 0
                for i in range(count - 1, -1, -1):
                    j = entry(features, i)
                    x = value(row, i)
                    slope = x * ldexp(before[i] * after, int(shifts[i]) + exponent)
                    G[j, s] += weight[n, s] * power(slope)
                    after *= 1.0 + x * P[j, s]
                    after, exponent = rescaled(after, exponent)

    return slopes


@jitable
def others(product, zeros, factor):
    """Return the product of all other factors, given the product of the non-zero ones."""
    # Selects instead of branches let loops over rows use vector instructions.
    zero = 1.0 if factor == 0.0 else 0.0
    remaining = product / (factor + zero)
    return remaining if zeros == zero else 0.0


def _state(design: Design, P: np.ndarray, sums: np.ndarray | None = None) -> State:
    # A single array: unpacking a tuple for every row would count references each time.
    return (aligned_copy(np.empty((2, design.n_samples))),)


@jitable
def _open(P, s, state):
    state[0][0] = 1.0
    state[0][1] = 0.0


@jitable
def _column(P, s, state):
    return state[0]


@jitable
def _absorb(kept, n, x, p):
    factor = 1.0 + x * p
    if factor == 0.0:
        kept[1, n] += 1.0
    else:
        kept[0, n] *= factor


@jitable
def _cofactor(kept, n, x, p, own):
    return others(kept[0, n], kept[1, n], 1.0 + x * p)


@jitable
def _advance(kept, n, x, p, q, own):
    old = 1.0 + x * p
    new = 1.0 + x * q
    was_zero = 1.0 if old == 0.0 else 0.0
    is_zero = 1.0 if new == 0.0 else 0.0
    without = kept[0, n] / (old + was_zero)
    cofactor = without if kept[1, n] == was_zero else 0.0
    kept[0, n] = without * (new + is_zero)
    kept[1, n] += is_zero - was_zero
    return x * (q - p) * cofactor


SUBSETS_ENTRIES = EntryColumnView(
    "subsets",
    _state,
    _open,
    _column,
    _absorb,
    zero,
    zero,
    _cofactor,
    _advance,
    nothing,
    rebuilt=True,
)
"""The view of the product along an entry ([A] Section 6.2).

The state of a row is the product of its non-zero factors, and the number of zero ones. The cofactor, the
product of the other factors, therefore needs no division by 0, and a zero factor can become non-zero again.
"""


@cached_factory()
def subsets_tables(storage: Storage):
    """Return the kernel that writes the products of non-zero factors and the counts of zero ones, (N, k)."""
    entry, value = storage.row, storage.value

    def fill(data, indices, indptr, P, product, zeros):
        product[:] = 1.0
        zeros[:] = 0
        for n in range(product.shape[0]):
            row, features, count = line(data, indices, indptr, n)
            for i in range(count):
                j = entry(features, i)
                for s in range(P.shape[1]):
                    factor = 1.0 + value(row, i) * P[j, s]
                    if factor == 0.0:
                        zeros[n, s] += 1.0
                    else:
                        product[n, s] *= factor

    return fill


def _rows_state(design: Design, P: np.ndarray, sums: np.ndarray | None = None) -> State:
    shape = design.n_samples, P.shape[1]
    product, zeros = np.empty(shape), np.empty(shape)
    subsets_tables(design.storage)(*design.rows, np.ascontiguousarray(P), product, zeros)
    return product, zeros


@jitable
def _gather(state, at, x, first, second, p, g, h):
    for i in range(at.size):
        product, zeros = state[0][at[i]], state[1][at[i]]
        for s in range(p.size):
            cofactor = others(product[s], zeros[s], 1.0 + x[i] * p[s])
            g[s] += first[i] * cofactor
            h[s] += second[i] * cofactor * cofactor


@jitable
def _rise(state, n, x, p, scaled, along):
    product, zeros = state
    total = 0.0
    for s in range(p.size):
        total += scaled[s] * others(product[n, s], zeros[n, s], 1.0 + x * p[s])
    return total


@jitable
def _advance_row(state, n, x, p, step, scaled, along):
    product, zeros = state[0][n], state[1][n]
    total = 0.0
    for s in range(p.size):
        old = 1.0 + x * p[s]
        new = 1.0 + x * (p[s] + step[s])
        was = 1.0 if old == 0.0 else 0.0
        now = 1.0 if new == 0.0 else 0.0
        without = product[s] / (old + was)
        total += scaled[s] * (without if zeros[s] == was else 0.0)
        product[s] = without * (new + now)
        zeros[s] += now - was
    return total


SUBSETS_ROWS = RowColumnsView("subsets", _rows_state, zero, _gather, _rise, _advance_row)
"""The view of the products of all columns along a row; the state is that of `SUBSETS_ENTRIES`."""


class AllSubsetsKernel(MultilinearKernel):
    """The product Π_j (1 + p_j x_j) ([A] Eq. 54)."""

    degree = None
    entries = SUBSETS_ENTRIES
    rows = SUBSETS_ROWS

    def values(self, design: Design, P: np.ndarray) -> np.ndarray:
        out = np.empty((design.n_samples, P.shape[1]))
        subsets_of_rows(design.storage)(*design.rows, np.ascontiguousarray(P), out)
        return out

    def _slopes(self, design: Design, P: np.ndarray, weight: np.ndarray, power: Any) -> np.ndarray:
        G, longest = np.zeros(P.shape), max(1, design.longest_row)
        subsets_slopes_of_rows(design.storage, power)(
            *design.rows,
            np.ascontiguousarray(P),
            np.ascontiguousarray(weight),
            np.empty(longest),
            np.empty(longest, dtype=np.int64),
            G,
        )
        return G
