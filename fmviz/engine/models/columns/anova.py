r"""The ANOVA kernel of degree m ([A] Eq. 39): A^m(p, x) = Σ_{j1<…<jm} Π_t p_jt x_jt.

It is computed by the recursion a_t ← a_t + p_j x_j a_{t−1} over the entries of x, in O(nnz(x)·m). The
gradient runs the recursion backwards over the stored values of the forward pass, without subtraction or
division.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..._jit import cached_factory, jitable, nothing, zero
from ...design import Design, Storage, line
from ...memory import aligned, aligned_copy
from ...penalties.higher_order import elementary_sums
from .base import (
    EntryColumnView,
    MultilinearKernel,
    RowColumnsView,
    State,
    largest_of,
)


@cached_factory()
def anova_of_rows(storage: Storage):
    """Return the kernel that writes A^t(p_s, x_n) of the highest degrees t ≤ m to out[n, …, s].

    The work array `table` has shape (m + 1, k).
    """
    entry, value = storage.row, storage.value

    def anova(data, indices, indptr, P, table, out):
        degree = table.shape[0] - 1
        first = table.shape[0] - out.shape[1]
        k = P.shape[1]
        for n in range(out.shape[0]):
            row, features, count = line(data, indices, indptr, n)
            table[:] = 0.0
            table[0] = 1.0
            for i in range(count):
                j = entry(features, i)
                x = value(row, i)
                for t in range(min(degree, i + 1), 0, -1):
                    for s in range(k):
                        table[t, s] += x * P[j, s] * table[t - 1, s]
            out[n] = table[first:]

    return anova


@cached_factory()
def anova_slopes_of_rows(storage: Storage, power):
    """Return the kernel that adds Σ_n weight[n, s] power(∂A^m(p_s, x_n)/∂p_js) to G[j, s].

    `tables` has shape (longest row + 1, m, k): the a_0 … a_{m−1} before each entry; `back`, (m + 1, k).
    """
    entry, value = storage.row, storage.value

    def slopes(data, indices, indptr, P, weight, tables, back, G):
        degree = back.shape[0] - 1
        k = P.shape[1]
        slope = np.empty(k)
        for n in range(weight.shape[0]):
            row, features, count = line(data, indices, indptr, n)
            tables[0] = 0.0
            tables[0, 0] = 1.0
            for i in range(count):
                j = entry(features, i)
                x = value(row, i)
                tables[i + 1, 0] = 1.0
                for t in range(1, degree):
                    for s in range(k):
                        tables[i + 1, t, s] = tables[i, t, s] + x * P[j, s] * tables[i, t - 1, s]
            back[:] = 0.0
            back[degree] = 1.0
            for i in range(count - 1, -1, -1):
                j = entry(features, i)
                x = value(row, i)
                slope[:] = 0.0
                for t in range(1, degree + 1):
                    for s in range(k):
                        slope[s] += back[t, s] * tables[i, t - 1, s]
                        back[t - 1, s] += x * P[j, s] * back[t, s]
                for s in range(k):
                    G[j, s] += weight[n, s] * power(x * slope[s])

    return slopes


@functools.cache
def _recursion(degree: int) -> tuple[Any, Any]:
    """Return the cofactor of an entry with z = x·p, from A^1 … A^{m−1} in `table[:, n]`.

    The second function also changes the contribution of the entry by `move`, and returns the prior cofactor.
    """

    @jitable
    def without(table, n, z):
        partial = 1.0
        for t in range(degree - 1):
            partial = table[t, n] - z * partial
        return partial

    @jitable
    def moved(table, n, z, move):
        partial = 1.0
        for t in range(degree - 1):
            lower = table[t, n] - z * partial
            table[t, n] += move * partial
            partial = lower
        return partial

    return without, moved


@functools.cache
def anova_entries(degree: int) -> EntryColumnView:
    """Return the view of A^m, m ≥ 2, along an entry ([B] Section 7, for any m).

    A row's state is its A^1 … A^{m−1}. Without feature j, A^t is E_{t+1} = A^t − x_j p_j E_t with E_1 = 1,
    and the cofactor is E_m. For m = 2, the state XP is kept between sweeps. For m > 2, it is rebuilt for
    every column, which saves memory and prevents the accumulation of rounding errors.
    """
    kept_order = degree == 2
    without, moved = _recursion(degree)

    def state(design: Design, P: np.ndarray, sums: np.ndarray | None = None) -> State:
        n, k = design.n_samples, P.shape[0]
        if degree > 2:
            return (aligned_copy(np.zeros((1, degree - 1, n))), np.zeros(1))
        return (aligned((design.dot(P.T) if sums is None else sums).T).reshape(k, 1, n), np.zeros(k))

    @jitable
    def open_rebuilt(P, s, state):
        state[0][0] = 0.0
        state[1][0] = 0.0

    @jitable
    def column(P, s, state):
        return state[0][s if kept_order else 0]

    @jitable
    def absorb(kept, n, x, p):
        z = x * p
        for t in range(degree - 2, 0, -1):
            kept[t, n] += z * kept[t - 1, n]
        kept[0, n] += z

    @jitable
    def scale(s, state):
        at = s if kept_order else 0
        state[1][at] = max(state[1][at], largest_of(state[0][at, degree - 2]))
        return state[1][at]

    @jitable
    def cofactor(kept, n, x, p, own):
        return without(kept, n, x * p)

    @jitable
    def advance(kept, n, x, p, q, own):
        move = x * (q - p)
        return move * moved(kept, n, x * p, move)

    return EntryColumnView(
        f"anova({degree})",
        state,
        nothing if kept_order else open_rebuilt,
        column,
        absorb,
        scale,
        zero,
        cofactor,
        advance,
        nothing,
        needs=degree - 1,
        rebuilt=not kept_order,
    )


def _powers(design: Design, P: np.ndarray, degree: int, count: int) -> np.ndarray:
    """Return the last `count` of A^1 … A^m of every row and column, shape (N, count, k)."""
    out = np.empty((design.n_samples, count, P.shape[1]))
    table = np.empty((degree + 1, P.shape[1]))
    anova_of_rows(design.storage)(*design.rows, np.ascontiguousarray(P), table, out)
    return out


@jitable
def gather_pairs(state, at, x, first, second, p, g, h):
    """Implement `RowColumnsView.gather` for m = 2.

    Four rows are processed together, which quarters the reads and writes of g and h.
    """
    A = state[0]
    count, rank = at.size, p.size
    fours = count // 4
    for block in range(fours):
        i = 4 * block
        a0, a1, a2, a3 = A[at[i]], A[at[i + 1]], A[at[i + 2]], A[at[i + 3]]
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        u0, u1, u2, u3 = first[i], first[i + 1], first[i + 2], first[i + 3]
        v0, v1, v2, v3 = second[i], second[i + 1], second[i + 2], second[i + 3]
        for s in range(rank):
            d0 = a0[s] - x0 * p[s]
            d1 = a1[s] - x1 * p[s]
            d2 = a2[s] - x2 * p[s]
            d3 = a3[s] - x3 * p[s]
            g[s] += (u0 * d0 + u1 * d1) + (u2 * d2 + u3 * d3)
            h[s] += (v0 * d0 * d0 + v1 * d1 * d1) + (v2 * d2 * d2 + v3 * d3 * d3)
    for i in range(4 * fours, count):
        a0 = A[at[i]]
        for s in range(rank):
            d0 = a0[s] - x[i] * p[s]
            g[s] += first[i] * d0
            h[s] += second[i] * d0 * d0


@jitable
def rise_of_pairs(state, n, x, p, scaled, along):
    a = state[0][n]
    inner = 0.0
    for s in range(scaled.size):
        inner += a[s] * scaled[s]
    return inner - x * along


@jitable
def advance_pairs(state, n, x, p, step, scaled, along):
    a = state[0][n]
    inner = 0.0
    for s in range(step.size):
        inner += a[s] * scaled[s]
        a[s] += x * step[s]
    return inner - x * along


@jitable
def largest_of_pairs(state, live_only):
    A, tops, largest = state
    if not live_only:
        tops[:] = 0.0
        for n in range(A.shape[0]):
            a = A[n]
            for s in range(tops.size):
                tops[s] = max(tops[s], abs(a[s]))
        for s in range(tops.size):
            largest[0] = max(largest[0], tops[s])
    return largest[0]


def _pairs_state(design: Design, P: np.ndarray, sums: np.ndarray | None = None) -> State:
    A = aligned_copy(np.zeros((design.n_samples, P.shape[1])))
    products = design.dot(P) if sums is None else sums
    A[:, : products.shape[1]] = products
    return A, np.zeros(P.shape[1]), np.zeros(1)


@functools.cache
def anova_rows(degree: int) -> RowColumnsView:
    """Return the view of A^m, m ≥ 2, of all columns along a row; the state of a row of X is A^1 … A^{m−1}."""
    if degree == 2:
        return RowColumnsView(
            "anova(2)", _pairs_state, largest_of_pairs, gather_pairs, rise_of_pairs, advance_pairs
        )

    without, moved = _recursion(degree)

    def state(design: Design, P: np.ndarray, sums: np.ndarray | None = None) -> State:
        return _powers(design, P, degree - 1, degree - 1), np.zeros(1)

    @jitable
    def scale(state, live_only):
        tables, largest = state
        for n in range(tables.shape[0]):
            for s in range(tables.shape[2]):
                largest[0] = max(largest[0], abs(tables[n, degree - 2, s]))
        return largest[0]

    @jitable
    def gather(state, at, x, first, second, p, g, h):
        tables = state[0]
        for i in range(at.size):
            table = tables[at[i]]
            for s in range(p.size):
                partial = without(table, s, x[i] * p[s])
                g[s] += first[i] * partial
                h[s] += second[i] * partial * partial

    @jitable
    def rise(state, n, x, p, scaled, along):
        table = state[0][n]
        total = 0.0
        for s in range(p.size):
            total += scaled[s] * without(table, s, x * p[s])
        return total

    @jitable
    def advance(state, n, x, p, step, scaled, along):
        table = state[0][n]
        total = 0.0
        for s in range(p.size):
            total += scaled[s] * moved(table, s, x * p[s], x * step[s])
        return total

    return RowColumnsView(f"anova({degree})", state, scale, gather, rise, advance)


class Anova(MultilinearKernel):
    """The ANOVA kernel of degree m ([A] Eq. 39).

    Parameters
    ----------
    degree : int
        m ≥ 1.
    """

    def __init__(self, degree: int) -> None:
        self.degree: int = degree

    @property
    def entries(self) -> EntryColumnView:
        return anova_entries(self.degree)

    @property
    def rows(self) -> RowColumnsView:
        return anova_rows(self.degree)

    def values(self, design: Design, P: np.ndarray) -> np.ndarray:
        return _powers(design, P, self.degree, 1)[:, 0]

    def split(self, dummies: np.ndarray) -> dict[int, np.ndarray]:
        """Return weight_t = A^{m−t}(γ, 1), by [B] Eq. 15 applied once per dummy feature."""
        table = elementary_sums(dummies, self.degree)
        return {t: table[self.degree - t] for t in range(self.degree + 1)}

    def _slopes(self, design: Design, P: np.ndarray, weight: np.ndarray, power: Any) -> np.ndarray:
        G, k = np.zeros(P.shape), P.shape[1]
        anova_slopes_of_rows(design.storage, power)(
            *design.rows,
            np.ascontiguousarray(P),
            np.ascontiguousarray(weight),
            np.empty((design.longest_row + 1, self.degree, k)),
            np.empty((self.degree + 1, k)),
            G,
        )
        return G
