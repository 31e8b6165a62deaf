"""Kernels of sweeps for matrix factorization, in which every row of X is a pair of ones.

The other feature of the row then determines ⟨p_:,s, x⟩ − x_j p_js; neither XP nor its updates are needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..._jit import cached_factory, named
from ...design import Design, Partners
from ...losses import ScalarLoss
from ...memory import aligned_copy
from ...penalties import EntryView, RowView
from ...penalties.operators.thresholds import norm
from .coefficients import NOISE
from .row_sweep import row_minimum
from .sweeps import end_sweep

_FOUR = 4
# The number of derivatives computed together.
_VECTORS = 8


@named()
def add_products(first, second, P, f):
    """Add ⟨p_a, p_b⟩ to f for every row n of X with the features a = first[n] and b = second[n]."""
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
    """The entries of X in the order of `pair_entry_sweep`, and its work arrays.

    Every column consists of the entries whose partner is swept before it, followed by those whose partner is
    swept after. Each part is padded to a multiple of four by entries without effect, with partner d.

    Attributes
    ----------
    partners, rows : (L,) unsigned ndarrays
        The other feature of the entry's row, and the row.
    edges : (2d + 1,) int64 ndarray
        The beginnings of the parts.
    y, weights : (L + 8,) ndarrays
        Target and sample weight of the entry's row; `weights` is empty if all are 1.
    predictions : (L,) ndarray
        Work space for the predictions.
    table : (d + 1, 2) ndarray
        Work space: every feature's current entry, and its entry at the end of the previous component.
    steps : (d + 1,) ndarray
        Work space: every feature's last step.
    work : (2, longest column + 8) ndarray
        Work space.
    """

    partners: np.ndarray
    rows: np.ndarray
    edges: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    predictions: np.ndarray
    table: np.ndarray
    steps: np.ndarray
    work: np.ndarray

    @classmethod
    def of(cls, design: Design, partners: Partners, y: np.ndarray, weights: np.ndarray) -> Lanes:
        """Lay out the entries of a design of pairs."""
        if (layout := _LAYOUTS.get(design)) is None:
            layout = _LAYOUTS[design] = _layout(design, partners)
        others, rows, edges = layout
        d, tail = design.n_features, np.zeros(_VECTORS)
        return cls(
            others,
            rows,
            edges,
            aligned_copy(np.concatenate([y[rows], tail])),
            aligned_copy(np.concatenate([weights[rows], tail]) if weights.size else weights),
            aligned_copy(np.zeros(rows.size)),
            aligned_copy(np.zeros((d + 1, 2))),
            aligned_copy(np.zeros(d + 1)),
            aligned_copy(np.zeros((2, int((edges[2::2] - edges[:-2:2]).max()) + _VECTORS))),
        )


# Layouts of designs in use: fits along a path share one, and sorting takes as long as an epoch.
_LAYOUTS: WeakKeyDictionary[Design, tuple[np.ndarray, np.ndarray, np.ndarray]] = WeakKeyDictionary()


def _layout(design: Design, partners: Partners) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `partners`, `rows` and `edges` of `Lanes`."""
    d = design.n_features
    column = np.repeat(np.arange(d), np.diff(design.columns.indptr))
    # Neighbours in memory also have neighbouring partners.
    order = np.lexsort((partners.other, column))
    part = (2 * column + (partners.other > column))[order]
    counts = np.bincount(part, minlength=2 * d)
    edges = np.concatenate([[0], np.cumsum(-(-counts // _FOUR) * _FOUR)])
    begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place = np.arange(order.size) + (edges[:-1] - begins)[part]
    others = np.full(edges[-1], d, dtype=partners.other.dtype)
    others[place] = partners.other[order]
    rows = np.zeros(edges[-1], dtype=design.columns.indices.dtype)
    rows[place] = design.columns.indices[order]
    return others, rows, edges.astype(np.int64)


@cached_factory()
def pair_entry_sweep(loss: ScalarLoss, penalty: EntryView, weight):
    """Return the kernel of sweeps over the entries of P, equivalent to `entry_sweep`.

    The arguments that differ from those of `entry_sweep` are the fields of `Lanes`. Predictions are stored
    twice, at the entries of the row in both columns, to make the predictions of a column contiguous. When a
    column is visited, the steps of its partners since the last visit are added. Let p be its entry and q its
    partner's, and P and Q their values after the previous component. If the partner is swept before, the
    stored prediction precedes the last step of p: that step times Q, and the current step of q times p, are
    missing. If it is swept after, the stored prediction lacks the contribution PQ of the previous component.
    """
    derivative = loss.derivative
    begin, minimum, update = penalty.begin, penalty.minimum, penalty.update
    # Derivatives with cheap updates are expensive to compute and therefore computed in vectors, from an
    # array.
    dear = loss.nudged is not None

    def sweeps(
        most,
        enough,
        flat_P,
        outcomes,
        partners,
        rows,
        edges,
        y,
        weights,
        predictions,
        table,
        steps,
        work,
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
        now, force = work[0], work[1]
        done, largest_change, last_change = 0, 0.0, 0.0
        while done < most and (done == 0 or last_change > enough):
            for lane in range(rows.size):
                predictions[lane] = f[rows[lane]]
            table[:] = 0.0
            steps[:] = 0.0
            change = 0.0
            for s in range(rank):
                begin(P, s, cache)
                largest = 0.0
                for j in range(d):
                    largest = max(largest, abs(P[s, j]))
                if largest == 0.0:
                    # No entry has a slope while all others of its component are 0.
                    continue
                for j in range(d):
                    table[j, 1] = table[j, 0]
                    table[j, 0] = P[s, j]
                for j in range(d):
                    p = P[s, j]
                    own = steps[j]
                    was = table[j, 1]
                    stays = live_only and p == 0.0
                    # Sums in four independent parts.
                    g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
                    h0, h1, h2, h3 = 0.0, 0.0, 0.0, 0.0
                    if not (stays and own == 0.0 and was == 0.0):
                        here, ends = edges[2 * j], edges[2 * j + 2]
                        at, r, target, c = (
                            partners[here:ends],
                            predictions[here:ends],
                            y[here:],
                            weights[here:],
                        )
                        before = (edges[2 * j + 1] - here) // 4
                        for block in range(before):
                            # Unsigned: a kernel need not check for negative indices.
                            i: Any = np.uint64(4 * block)
                            n0, n1, n2, n3 = at[i], at[i + 1], at[i + 2], at[i + 3]
                            d0, d1, d2, d3 = table[n0, 0], table[n1, 0], table[n2, 0], table[n3, 0]
                            r0 = r[i] + own * table[n0, 1] + p * steps[n0]
                            r1 = r[i + 1] + own * table[n1, 1] + p * steps[n1]
                            r2 = r[i + 2] + own * table[n2, 1] + p * steps[n2]
                            r3 = r[i + 3] + own * table[n3, 1] + p * steps[n3]
                            r[i], r[i + 1], r[i + 2], r[i + 3] = r0, r1, r2, r3
                            c0, c1 = weight(c, i) * d0, weight(c, i + 1) * d1
                            c2, c3 = weight(c, i + 2) * d2, weight(c, i + 3) * d3
                            h0, h1, h2, h3 = h0 + d0 * c0, h1 + d1 * c1, h2 + d2 * c2, h3 + d3 * c3
                            if dear:
                                now[i], now[i + 1], now[i + 2], now[i + 3] = r0, r1, r2, r3
                                force[i], force[i + 1], force[i + 2], force[i + 3] = c0, c1, c2, c3
                            else:
                                g0 += derivative(r0, target[i], theta) * c0
                                g1 += derivative(r1, target[i + 1], theta) * c1
                                g2 += derivative(r2, target[i + 2], theta) * c2
                                g3 += derivative(r3, target[i + 3], theta) * c3
                        for block in range(before, at.size // 4):
                            i = np.uint64(4 * block)
                            n0, n1, n2, n3 = at[i], at[i + 1], at[i + 2], at[i + 3]
                            d0, d1, d2, d3 = table[n0, 0], table[n1, 0], table[n2, 0], table[n3, 0]
                            r0 = r[i] + was * table[n0, 1]
                            r1 = r[i + 1] + was * table[n1, 1]
                            r2 = r[i + 2] + was * table[n2, 1]
                            r3 = r[i + 3] + was * table[n3, 1]
                            r[i], r[i + 1] = r0 - p * d0, r1 - p * d1
                            r[i + 2], r[i + 3] = r2 - p * d2, r3 - p * d3
                            c0, c1 = weight(c, i) * d0, weight(c, i + 1) * d1
                            c2, c3 = weight(c, i + 2) * d2, weight(c, i + 3) * d3
                            h0, h1, h2, h3 = h0 + d0 * c0, h1 + d1 * c1, h2 + d2 * c2, h3 + d3 * c3
                            if dear:
                                now[i], now[i + 1], now[i + 2], now[i + 3] = r0, r1, r2, r3
                                force[i], force[i + 1], force[i + 2], force[i + 3] = c0, c1, c2, c3
                            else:
                                g0 += derivative(r0, target[i], theta) * c0
                                g1 += derivative(r1, target[i + 1], theta) * c1
                                g2 += derivative(r2, target[i + 2], theta) * c2
                                g3 += derivative(r3, target[i + 3], theta) * c3
                        if dear:
                            i = np.uint64(at.size)
                            force[i], force[i + 1], force[i + 2], force[i + 3] = 0.0, 0.0, 0.0, 0.0
                            for i in range((at.size + _VECTORS - 1) // _VECTORS * _VECTORS):
                                g0 += derivative(now[i], target[i], theta) * force[i]
                    q = p
                    if not stays:
                        g = ((g0 + g1) + (g2 + g3)) / n_samples
                        h = (h0 + h1) + (h2 + h3)
                        # A negligible entry gives a negligible slope, which would overflow when divided by
                        # the square of the entry.
                        if h <= NOISE * largest * largest * moments[j]:
                            g = 0.0
                            h = 0.0
                        h *= mu / n_samples
                        q = minimum(cache, j, p, g, h, lam_p, lam)
                    step = q - p
                    steps[j] = step
                    table[j, 0] = q
                    if step != 0.0:
                        P[s, j] = q
                        update(cache, j, p, q)
                        change = max(change, abs(step))
            for j in range(d):
                for i in range(edges[2 * j], edges[2 * j + 1]):
                    n = partners[i]
                    if n < d:
                        f[rows[i]] = predictions[i] + steps[j] * table[n, 0]
            last_change = end_sweep(outcomes, done, flat_P, change)
            largest_change = max(largest_change, last_change)
            done += 1
        return done, largest_change, last_change

    return sweeps


@cached_factory()
def pair_row_sweep(loss: ScalarLoss, penalty: RowView, weight):
    """Return the kernel of sweeps over the rows of P, equivalent to `row_sweep`.

    P has shape (d, k), by `row_sweep.in_lines`; `other` has the partner of every entry of X. `sizes`, shape
    (d,), and `slope`, shape (longest column,), are work space.
    """
    derivative = loss.derivative
    begin, update, minimum = penalty.begin, penalty.update, row_minimum(penalty)

    def sweeps(
        most,
        enough,
        flat_P,
        outcomes,
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
        done, largest_change, last_change = 0, 0.0, 0.0
        while done < most and (done == 0 or last_change > enough):
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
                # Four partners are processed together, which quarters the reads and writes of g.
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
                minimum(step, P[j], g, bend, n_samples, lam_p, lam, j, P, cache)
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
            last_change = end_sweep(outcomes, done, flat_P, change)
            largest_change = max(largest_change, last_change)
            done += 1
        return done, largest_change, last_change

    return sweeps
