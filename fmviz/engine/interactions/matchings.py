r"""Weights and rankings of interactions in lifted models, 𝒲 = S(Σ_s c_s u_s¹ ⊗ … ⊗ u_s^m).

In Σ_s c_s Π_t ⟨u_s^t, x⟩ the product of m distinct features is multiplied by the sum, over all assignments
of them to the m factors, of the products of their entries: Σ_s c_s times the permanent of an m × m matrix
([B] Lemma 6). A product with repetitions counts each of its different arrangements once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from .._heap import keep_largest
from .._jit import named
from ..memory import available_bytes, in_words

# Bounds are sums and products of many rounded numbers.
_SLACK = 1.0 + 1e-9


@named()
def search_matchings(factors, peaks, repeated, effort, sizes, slots, features, weights):
    """Find the sets of m rows with the largest |weight|; return their number, or -1 if too slow.

    `factors` has shape (d, m, k); ``peaks[j]`` holds the largest |entries| of the rows from j on; `features`,
    (top, m), and `weights`, (top,), take the result in no order; `sizes` and `slots`, (top,), are a heap.
    ``sums[t, S]`` holds for every column the sum over all assignments of the t rows taken so far to
    the factors in the set S, and `alive` whether there is one without a 0. A branch ends where the remaining
    factors, at their largest, cannot exceed the smallest weight kept.
    """
    d, degree, k = factors.shape
    top = features.shape[0]
    subsets = 1 << degree
    sums = np.zeros((degree + 1, subsets, k))
    alive = np.zeros((degree + 1, subsets, k), dtype=np.bool_)
    sums[0, 0] = 1.0
    alive[0, 0] = True
    index = np.zeros(degree + 1, dtype=np.int64)
    run = np.zeros(degree + 1, dtype=np.int64)
    ways = np.ones(degree + 1)
    count = 0
    spent = 0.0
    level = 0
    while level >= 0 and spent <= effort:
        j = index[level]
        ends = j >= d
        if not ends and count == top:
            spent += subsets * k
            bound = 0.0
            for S in range(subsets):
                for s in range(k):
                    if alive[level, S, s]:
                        most = abs(sums[level, S, s])
                        for t in range(degree):
                            if S & (1 << t) == 0:
                                most *= peaks[j, t, s]
                        bound += most
            for t in range(2, degree - level + 1):
                bound *= t
            ends = bound * _SLACK <= sizes[0]
        if ends:
            level -= 1
            if level >= 0:
                index[level] += 1
        else:
            spent += subsets * degree * k
            following = level + 1
            sums[following] = 0.0
            alive[following] = False
            meets = False
            for S in range(subsets):
                for t in range(degree):
                    if S & (1 << t) == 0:
                        T = S | (1 << t)
                        for s in range(k):
                            if alive[level, S, s] and factors[j, t, s] != 0.0:
                                sums[following, T, s] += sums[level, S, s] * factors[j, t, s]
                                alive[following, T, s] = True
                                meets = True
            run[following] = run[level] + 1 if level > 0 and index[level - 1] == j else 1
            ways[following] = ways[level] * run[following]
            if not meets:
                index[level] += 1
            elif following < degree:
                index[following] = j if repeated else j + 1
                level = following
            else:
                weight = 0.0
                for s in range(k):
                    weight += sums[degree, subsets - 1, s]
                weight /= ways[degree]
                count = keep_largest(count, top, sizes, slots, weight, weights, features, index)
                index[level] += 1
    return count if level < 0 else -1


def ranked_matchings(
    factors: np.ndarray, top: int | None = None, *, repeated: bool = False, effort: float = 2e10
) -> tuple[np.ndarray, np.ndarray]:
    """Return the used products of m features and their weights in Σ_s Π_t ⟨u_s^t, x⟩, largest |weight| first.

    The search is exact and forms no tensor. In the worst case, without `top` or where all rows are alike, it
    visits every used product.

    Parameters
    ----------
    factors : (m, d, k) ndarray
        U¹, …, U^m, with m from 2 to 10.
    top : int, optional
        The most products to return; without it all.
    repeated : bool
        Whether a feature may occur in a product more than once.
    effort : float
        The most multiplications.

    Returns
    -------
    features : (n, m) int ndarray
        The features of each product, ascending.
    weight : (n,) float ndarray
        Its weight. A product is used where its features can be assigned to the factors of some column with
        all entries non-zero, so a weight may be 0 by cancellation.

    Raises
    ------
    ValueError
        If the result does not fit into memory, or the search takes more effort.
    """
    degree = factors.shape[0]
    live = np.flatnonzero(factors.any(axis=(0, 2)))
    rows = factors[:, live].transpose(1, 0, 2)
    order = np.argsort(-np.abs(rows).max(axis=(1, 2), initial=0.0), kind="stable")
    live, rows = live[order], np.ascontiguousarray(rows[order])
    peaks = np.ascontiguousarray(np.maximum.accumulate(np.abs(rows[::-1]), axis=0)[::-1])
    most = comb(live.size + (degree - 1 if repeated else 0), degree)
    room = min(4096 if top is None else top, most)
    count = 0
    while room:
        needed, free = 8.0 * room * (2 * degree + 6), available_bytes()
        if needed > free:
            raise ValueError(
                f"{room:,} products of {degree} features need {in_words(needed)}, and {in_words(free)} are "
                "free. Ask for fewer: give `top`."
            )
        features, values = np.empty((room, degree), dtype=np.int64), np.empty(room)
        heap = np.empty(room), np.empty(room, dtype=np.int64)
        count = search_matchings(rows, peaks, bool(repeated), float(effort), *heap, features, values)
        if count < 0:
            raise ValueError(
                f"Ranking the products of {degree} among {live.size:,} features takes more than "
                f"{effort:.3g} multiplications: too many weights are of like size. Ask for a smaller top, or "
                "fit with a larger lambda_sparse."
            )
        if top is not None or count < room or room == most:
            break
        room = min(8 * room, most)
    if not count:
        return np.empty((0, degree), dtype=np.int64), np.empty(0)
    features, values = np.sort(live[features[:count]], axis=1), values[:count]
    by = np.lexsort((*features.T[::-1], -np.abs(values)))
    return features[by], values[by]


def matching_weight(factors: np.ndarray, subset: Sequence[int]) -> float:
    """Return the weight of the product of m distinct features in Σ_s Π_t ⟨u_s^t, x⟩.

    Parameters
    ----------
    factors : (m, d, k) ndarray
        U¹, …, U^m.
    subset : sequence of int
        m features.
    """
    degree, _, k = factors.shape
    sums = {0: np.ones(k)}
    for j in subset:
        dealt: dict[int, np.ndarray] = {}
        for S, total in sums.items():
            for t in range(degree):
                if not S & (1 << t):
                    T = S | (1 << t)
                    dealt[T] = dealt.get(T, 0.0) + total * factors[t, j]
        sums = dealt
    return float(sums[(1 << degree) - 1].sum())


def contracted_factors(
    factors: np.ndarray, coefficients: np.ndarray, feature: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return factors and coefficients of the products of m − 1 features with one feature fixed.

    Parameters
    ----------
    factors : (m, d, k) ndarray
        U¹, …, U^m, m ≥ 2.
    coefficients : (k,) ndarray
        c_s.
    feature : int
        The fixed feature j: the terms of Σ_s c_s Π_t ⟨u_s^t, x⟩ in which one factor takes x_j alone.

    Returns
    -------
    (m − 1, d, m·k) ndarray, (m·k,) ndarray
        Every factor in turn contributes its entry u_js^t to the coefficient.
    """
    m = factors.shape[0]
    parts = [np.delete(factors, t, axis=0) for t in range(m)]
    return np.concatenate(parts, axis=2), np.concatenate(
        [coefficients * factors[t, feature] for t in range(m)]
    )
