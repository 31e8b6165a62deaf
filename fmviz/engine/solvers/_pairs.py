"""Sweeps where every row of X is a pair of ones, as in matrix factorisation.

The other feature of the row then is the whole of ⟨p_:,s, x⟩ − x_j p_js: neither XP nor its updates are needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._jit import cached_factory, named
from ..design import Design, Partners
from ..losses import Loss
from ..memory import aligned_copy
from ..regularizers import CoordinatePenalty, RowPenalty
from ..regularizers.l1 import soft
from ..regularizers.l21 import norm

# The square of a relative rounding error, with room for sums of many.
NOISE = 1e-28
# The strength of the row operator where the smooth part is flat: larger than any entry, yet 0 times it is 0.
BEYOND = 1e300
_FOUR = 4


@named()
def add_products(first, second, P, f):
    """Add ⟨p_a, p_b⟩ to f for every row of X, whose features are a = first[n] and b = second[n]."""
    for n in range(f.size):
        p, q = P[first[n]], P[second[n]]
        total = 0.0
        for s in range(P.shape[1]):
            total += p[s] * q[s]
        f[n] += total


def predict_pairs(design: Design, partners: Partners, P: np.ndarray, w: np.ndarray, bias: float) -> Any:
    """Return the predictions of all rows, shape (N,)."""
    f = design.dot(w) + bias
    add_products(partners.first, partners.second, P, f)
    return f


class Lanes(NamedTuple):
    """The entries of X in the order in which `pair_factor_sweep` reads them, and room for what it keeps.

    First come, of every column, the entries whose partner is swept before it, then those whose partner is
    swept after. Each part ends in entries without effect, of partner d, up to a multiple of four.

    Attributes
    ----------
    partners, rows : (L,) integer ndarrays
        The other feature of the entry's row, and the row.
    edges : (2d + 1,) int64 ndarray
        Where the parts begin.
    y, weights : (L,) ndarrays
        Target and sample weight of the entry's row; `weights` is empty where all are 1.
    held : (L,) ndarray
        Work space for the predictions.
    table : (d + 1, 4) ndarray
        Work space for what an entry wants to know of its partner.
    steps : (d,) ndarray
        Work space for the last step of every feature.
    """

    partners: np.ndarray
    rows: np.ndarray
    edges: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    held: np.ndarray
    table: np.ndarray
    steps: np.ndarray

    @classmethod
    def of(cls, design: Design, partners: Partners, y: np.ndarray, weights: np.ndarray) -> Lanes:
        """Lay out the entries of a design of pairs."""
        d = design.n_features
        column = np.repeat(np.arange(d), np.diff(design.columns.indptr))
        after = partners.other > column
        # Neighbours in memory then have neighbouring partners, too.
        order = np.lexsort((partners.other, column))
        part = (2 * column + after)[order]
        counts = np.bincount(part, minlength=2 * d)
        wide = -(-counts // _FOUR) * _FOUR
        edges = np.concatenate([[0], np.cumsum(wide)])
        place = np.arange(order.size) + (edges[:-1] - np.concatenate([[0], np.cumsum(counts)[:-1]]))[part]
        found = np.full(edges[-1], d, dtype=partners.other.dtype)
        found[place] = partners.other[order]
        rows = np.zeros(edges[-1], dtype=design.columns.indices.dtype)
        rows[place] = design.columns.indices[order]
        return cls(
            found,
            rows,
            edges.astype(np.int64),
            aligned_copy(y[rows]),
            aligned_copy(weights[rows] if weights.size else weights),
            aligned_copy(np.zeros(edges[-1])),
            aligned_copy(np.zeros((d + 1, 4))),
            np.zeros(d),
        )


@cached_factory()
def pair_factor_sweep(loss: Loss, penalty: CoordinatePenalty, weight):
    """Return the kernel of one sweep over the entries of P as `pcd.factor_sweep` makes it.

    The arguments that are not those of `factor_sweep` are the fields of `Lanes`. A prediction is held twice,
    at the row's entry in either column, so that a column finds its own side by side. What both
    features of the row have done since is made up for when the column is next visited: with p its own
    and q its partner's entry, the last step of p times the last q, and p times the last step of q.
    """
    derivative = loss.derivative
    begin, threshold, update = penalty.begin, penalty.threshold, penalty.update

    def sweep(
        partners,
        rows,
        edges,
        y,
        weights,
        held,
        table,
        steps,
        f,
        P,
        moments,
        cache,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
    ):
        rank, d = P.shape
        n_samples = f.size
        for i in range(rows.size):
            held[i] = f[rows[i]]
        # Of every feature: its last step, its entry, and its entry at the end of the component before.
        table[:] = 0.0
        steps[:] = 0.0
        change = 0.0
        for s in range(rank):
            largest = 0.0
            for j in range(d):
                largest = max(largest, abs(P[s, j]))
            if largest == 0.0:
                # No entry has a slope while all others of its component are 0.
                continue
            for j in range(d):
                table[j, 2] = table[j, 1]
                table[j, 1] = P[s, j]
            begin(P, s, cache)
            for j in range(d):
                p = P[s, j]
                own = steps[j]
                was = table[j, 2] - own
                stays = live_only and p == 0.0
                g = 0.0
                h = 0.0
                if not (stays and own == 0.0 and was == 0.0):
                    for part in range(2 * j, 2 * j + 2):
                        # Whose partner was here before has since made the step of this component.
                        by = p if part == 2 * j else was
                        at = partners[edges[part] : edges[part + 1]]
                        r = held[edges[part] : edges[part + 1]]
                        target = y[edges[part] : edges[part + 1]]
                        c = weights[edges[part] : edges[part + 1]]
                        for i in range(at.size):
                            n = at[i]
                            df = table[n, 1]
                            now = r[i] + (own * table[n, 2] + by * table[n, 0])
                            r[i] = now
                            c_df = weight(c, i) * df
                            g += derivative(now, target[i], theta) * c_df
                            h += c_df * df
                q = p
                if not stays:
                    g /= n_samples
                    # As the kernel for any design: what is a rounding error beside its peers is none here,
                    # but to divide by its square would leave the range of numbers.
                    if h <= NOISE * largest * largest * moments[j]:
                        g = 0.0
                        h = 0.0
                    h *= mu / n_samples
                    whole = h + 2.0 * lam_p
                    t = lam * threshold(cache, j, p)
                    if whole > 0.0:
                        q = soft(h * p - g, t) / whole
                    elif t > 0.0:
                        q = 0.0
                step = q - p
                steps[j] = step
                table[j, 0] = step
                table[j, 1] = q
                if step != 0.0:
                    P[s, j] = q
                    update(cache, j, p, q)
                    change = max(change, abs(step))
        for j in range(d):
            for i in range(edges[2 * j], edges[2 * j + 1]):
                n = partners[i]
                if n < d:
                    f[rows[i]] = held[i] + steps[j] * table[n, 1]
        return change

    return sweep


@cached_factory()
def pair_row_sweep(loss: Loss, penalty: RowPenalty, weight):
    """Return the kernel of one sweep over the rows of P as `pbcd.row_sweep` makes it.

    P has shape (d, k), by `pbcd.in_lines`; `other` holds the partner of every entry of X. `sizes`, shape
    (d,), and `slope`, shape (longest column,), are work space.
    """
    derivative = loss.derivative
    begin, shrink, update = penalty.begin, penalty.shrink, penalty.update

    def sweep(
        other,
        indices,
        indptr,
        y,
        weights,
        f,
        P,
        moments,
        sizes,
        slope,
        cache,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
    ):
        d, rank = P.shape
        n_samples = f.size
        g = np.empty(rank)
        step = np.empty(rank)
        change = 0.0
        largest = 0.0
        for j in range(d):
            sizes[j] = 0.0
            for s in range(rank):
                sizes[j] += P[j, s] * P[j, s]
            largest = max(largest, sizes[j])
        begin(P, cache)
        for j in range(d):
            if live_only and norm(P[j]) == 0.0:
                continue
            rows = indices[indptr[j] : indptr[j + 1]]
            at = other[indptr[j] : indptr[j + 1]]
            u = slope[: at.size]
            bend = 0.0
            for i in range(at.size):
                n = rows[i]
                c = weight(weights, n)
                u[i] = c * derivative(f[n], y[n], theta)
                bend += c * sizes[at[i]]
            g[:] = 0.0
            # Four partners are taken together: g is then read and written a quarter as often.
            fours = at.size // 4
            for block in range(fours):
                i = 4 * block
                a0, a1, a2, a3 = P[at[i]], P[at[i + 1]], P[at[i + 2]], P[at[i + 3]]
                u0, u1, u2, u3 = u[i], u[i + 1], u[i + 2], u[i + 3]
                for s in range(rank):
                    g[s] += (u0 * a0[s] + u1 * a1[s]) + (u2 * a2[s] + u3 * a3[s])
            for i in range(4 * fours, at.size):
                a0 = P[at[i]]
                for s in range(rank):
                    g[s] += u[i] * a0[s]
            if bend <= NOISE * largest * moments[j]:
                g[:] = 0.0
                bend = 0.0
            bend *= mu / n_samples
            whole = bend + 2.0 * lam_p
            if whole > 0.0:
                for s in range(rank):
                    step[s] = (bend * P[j, s] - g[s] / n_samples) / whole
                shrink(step, lam / whole, j, P, cache)
            else:
                for s in range(rank):
                    step[s] = P[j, s]
                shrink(step, BEYOND if lam > 0.0 else 0.0, j, P, cache)
            update(cache, j, P, step)
            moved = 0.0
            size = 0.0
            for s in range(rank):
                p = P[j, s]
                P[j, s] = step[s]
                size += step[s] * step[s]
                step[s] -= p
                moved = max(moved, abs(step[s]))
            if moved > 0.0:
                sizes[j] = size
                for i in range(at.size):
                    a = P[at[i]]
                    inner = 0.0
                    for s in range(rank):
                        inner += a[s] * step[s]
                    f[rows[i]] += inner
                change = max(change, moved)
        return change

    return sweep
