"""Find the products of m features with the largest |weight| in Σ_s c_s Π_t ⟨u_s^t, x⟩ without a tensor.

The weight of a product of m distinct features is the sum, over all assignments of the features to the m
factors, of the products of their entries: Σ_s c_s times the permanent of an m × m matrix ([B] Lemma 6). A
product with repetitions counts each of its distinct arrangements once.
"""

from __future__ import annotations

from math import comb, factorial

import numpy as np

from .._heap import keep_largest
from .._jit import named
from ..counting import used_sets
from ..memory import available_bytes, in_words

# Bounds are sums and powers of many rounded numbers.
_SLACK = 1.0 + 1e-9


@named()
def search(  # noqa: C901, PLR0913 (a compiled loop)
    factors, used, coefficients, norms, assignments, repeated, effort, sizes, slots, features, weights
):
    """Find the sets of m rows with the largest |weight|; return their number, or -1 if too slow.

    `factors` and `used` have shape (d, f, k), f = 1 if all factors are equal; `features`, (top, m), and
    `weights`, (top,), receive the unordered result; `sizes` and `slots`, (top,), are a heap. ``sums[t, S]``
    contains for every column the sum over all assignments of the t rows chosen so far to the factors in the
    set S, and `alive` whether any of them has no 0. By Hölder's inequality, all sets below a branch with t
    rows have at most the weight (m − t)! Σ_S ‖sums[t, S]‖_{m/t}·``norms[j]``^{m−t}, where `norms` is the
    largest ‖u_i‖_m of the rows i ≥ j; norms are weighted by |c_s|, and ``assignments[t]`` is t!, or 1 for f =
    1. A branch ends if this is not larger than the smallest weight kept.
    """
    d, kinds, k = factors.shape
    top, degree = features.shape
    states = 1 if kinds == 1 else 1 << kinds
    sums = np.zeros((degree + 1, states, k))
    alive = np.zeros((degree + 1, states, k), dtype=np.bool_)
    sums[0, 0] = 1.0
    alive[0, 0] = True
    bound = np.full(degree + 1, _SLACK)
    bound[0] *= assignments[degree]
    index = np.zeros(degree + 1, dtype=np.int64)
    run = np.zeros(degree + 1, dtype=np.int64)
    ways = np.ones(degree + 1)
    count = 0
    spent = 0.0
    level = 0
    while level >= 0 and spent <= effort:  # noqa: PLR1702 (a compiled loop)
        j = index[level]
        if j >= d or (count == top and bound[level] * norms[j] ** (degree - level) <= sizes[0]):
            level -= 1
            if level >= 0:
                index[level] += 1
            continue
        spent += states * kinds * k
        following = level + 1
        meets = False
        if kinds == 1:
            for s in range(k):
                sums[following, 0, s] = sums[level, 0, s] * factors[j, 0, s]
                alive[following, 0, s] = alive[level, 0, s] and used[j, 0, s]
                meets = meets or alive[following, 0, s]
        else:
            sums[following] = 0.0
            alive[following] = False
            for S in range(states):
                for t in range(kinds):
                    if S & (1 << t) == 0:
                        T = S | (1 << t)
                        for s in range(k):
                            if alive[level, S, s] and used[j, t, s]:
                                sums[following, T, s] += sums[level, S, s] * factors[j, t, s]
                                alive[following, T, s] = True
                                meets = True
        run[following] = run[level] + 1 if level > 0 and index[level - 1] == j else 1
        ways[following] = ways[level] * run[following]
        if not meets:
            index[level] += 1
        elif following < degree:
            bound[following] = 0.0
            for S in range(states):
                size = np.dot(np.abs(coefficients), np.abs(sums[following, S]) ** (degree / following))
                bound[following] += _SLACK * size ** (following / degree) * assignments[degree - following]
            index[following] = j if repeated else j + 1
            level = following
        else:
            weight = np.dot(coefficients, sums[degree, states - 1]) / ways[degree]
            count = keep_largest(count, top, sizes, slots, weight, weights, features, index)
            index[level] += 1
    return count if level < 0 else -1


def check_room(what: str, numbers: int) -> None:
    """Raise ValueError if so many numbers do not fit into memory."""
    needed, free = 8.0 * numbers, available_bytes()
    if needed > free:
        raise ValueError(
            f"{what} need {in_words(needed)}, but only {in_words(free)} are free. Request fewer: set `top`, "
            "or use only the relevant features."
        )


def largest_products(
    factors: np.ndarray,
    coefficients: np.ndarray,
    order: int,
    top: int | None = None,
    *,
    repeated: bool = False,
    effort: float = 2e10,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the used products of m features and their weights in Σ_s c_s Π_t ⟨u_s^t, x⟩, largest first.

    The search is exact: rows are visited by descending norm, and a branch ends if no product below it can be
    among the `top`. In the worst case, without `top` or for similar rows, it visits every used product. If
    few weights are large, it visits little more than these.

    Parameters
    ----------
    factors : (f, d, k) ndarray
        U¹, …, U^m with f = m; or with f = 1 a matrix used for every factor, whose products are then counted
        in a single arrangement.
    coefficients : (k,) ndarray
        The coefficients c_s.
    order : int
        The order m.
    top : int, optional
        The maximum number of products; by default all. Ties for the last place are broken arbitrarily.
    repeated : bool
        Whether features may be repeated in a product; a product is then divided by the factorials of its
        repetitions.
    effort : float
        The maximum number of multiplications.

    Returns
    -------
    features : (n, m) int ndarray
        The features of each product, ascending; from the largest |weight| to the smallest, ties by these.
    weight : (n,) float ndarray
        The weights. A product is used if its features can be assigned to the factors of a column with all
        entries non-zero; its weight may still be 0 by cancellation.

    Raises
    ------
    ValueError
        If the result does not fit into memory, or the search exceeds the effort.
    """
    # By a power of two, to prevent underflow of powers.
    exponent = int(np.frexp(np.abs(factors).max(initial=0.0))[1])
    rows = np.ldexp(factors, -exponent).transpose(1, 0, 2)
    norms = ((np.abs(rows) ** order @ np.abs(coefficients)) ** (1.0 / order)).max(axis=1)
    by = np.argsort(-norms, kind="stable")
    rows, used = np.ascontiguousarray(rows[by]), np.ascontiguousarray(factors.transpose(1, 0, 2)[by] != 0)
    assignments = np.array([factorial(t) if len(factors) > 1 else 1 for t in range(order + 1)], dtype=float)
    most = comb(by.size + (order - 1 if repeated else 0), order)
    room = top if top is not None else 4096 if repeated else used_sets(factors, order)
    while True:
        room = max(1, min(room, most))
        check_room(f"{room:,} products of {order} features", room * (2 * order + 6))
        features, values = np.empty((room, order), dtype=np.int64), np.empty(room)
        heap = np.empty(room), np.empty(room, dtype=np.int64)
        count = search(
            rows, used, coefficients, norms[by], assignments, repeated, effort, *heap, features, values
        )
        if top is not None or not repeated or count < room or room == most:
            break
        room *= 8
    if count < 0:
        raise ValueError(
            f"Ranking the products of {order} among {by.size:,} features takes more than {effort:.3g} "
            "multiplications: too many weights are of similar size. Use a smaller top, or fit with a larger "
            "lambda_sparse."
        )
    features, values = np.sort(by[features[:count]], axis=1), np.ldexp(values[:count], exponent * order)
    largest = np.lexsort((*features.T[::-1], -np.abs(values)))[:top]
    return features[largest], values[largest]
