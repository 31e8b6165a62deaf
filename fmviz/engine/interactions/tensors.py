r"""Weights and rankings of interactions in sums of kernels, W = Σ_s c_s p_s ⊗ … ⊗ p_s.

In Σ_s c_s A^m(p_s, x) the product of m distinct features is multiplied by w = Σ_s c_s Π_{j∈S} p_js; in
Σ_s c_s⟨p_s, x⟩^m a product with repetitions is multiplied by w times the number of its arrangements
([B] Section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np

from .._heap import keep_largest
from .._jit import named
from ..counting import used_subsets
from ..errors import finite_matrix, finite_number, whole_number
from ..linalg.lowrank import spectrum
from ..memory import available_bytes, in_words

__all__ = ["ranked_subsets", "subset_weight", "tensor_slice", "weight_matrix", "weight_spectrum"]

# Bounds are sums and powers of many rounded numbers.
_SLACK = 1.0 + 1e-9
_TINY = 1e-300


@named()
def search_subsets(P, used, signs, norms, repeated, effort, sizes, slots, features, weights):
    """Find the subsets of rows with the largest |Σ_s signs_s Π p_js|; return their number, or -1 if too slow.

    P and `used` have shape (d, k), rows by falling `norms`; `features`, (top, m), and `weights`, (top,), take
    the result in no order; `sizes` and `slots`, (top,), are a heap. A branch with t features taken and the
    product q of their rows ends where ‖q‖_{m/t}·‖p_j‖_m^{m−t}, which by Hölder's inequality bounds all
    subsets below it, is no larger than the smallest weight kept. Subsets without a common column are
    excluded.
    """
    d, k = P.shape
    top, degree = features.shape
    product = np.ones((degree + 1, k))
    alive = np.ones((degree + 1, k), dtype=np.bool_)
    bound = np.ones(degree + 1)
    ways = np.ones(degree + 1)
    run = np.zeros(degree + 1, dtype=np.int64)
    index = np.zeros(degree + 1, dtype=np.int64)
    most = _SLACK
    if repeated:
        for t in range(2, degree + 1):
            most *= t
    count = 0
    spent = 0.0
    level = 0
    while level >= 0 and spent <= effort:
        j = index[level]
        ends = j >= d
        if not ends and count == top:
            ends = most * bound[level] * norms[j] ** (degree - level) <= sizes[0]
        if ends:
            level -= 1
            if level >= 0:
                index[level] += 1
        else:
            spent += k
            following = level + 1
            meets = False
            total = 0.0
            for s in range(k):
                alive[following, s] = alive[level, s] and used[j, s]
                meets = meets or alive[following, s]
                product[following, s] = product[level, s] * P[j, s]
                total += signs[s] * product[following, s]
            if repeated:
                run[following] = run[level] + 1 if level > 0 and index[level - 1] == j else 1
                ways[following] = ways[level] * following / run[following]
            if not meets:
                index[level] += 1
            elif following < degree:
                # Relative to the largest, so that no power of a small number vanishes.
                largest = 0.0
                for s in range(k):
                    largest = max(largest, abs(product[following, s]))
                size = 0.0
                for s in range(k):
                    size += (abs(product[following, s]) / max(largest, _TINY)) ** (degree / following)
                bound[following] = largest * size ** (following / degree)
                index[following] = j if repeated else j + 1
                level = following
            else:
                weight = ways[degree] * total
                count = keep_largest(count, top, sizes, slots, weight, weights, features, index)
                index[level] += 1
    return count if level < 0 else -1


def _factors(P: Any, coefficients: Any) -> tuple[np.ndarray, np.ndarray]:
    factors = finite_matrix("P", P)
    if coefficients is None:
        return factors, np.ones(factors.shape[1])
    weights = np.asarray(coefficients, dtype=np.float64)
    if weights.shape != (factors.shape[1],) or not np.isfinite(weights).all():
        raise ValueError(
            f"coefficients have shape {weights.shape}; P has {factors.shape[1]} column(s), and each "
            "needs one finite number."
        )
    return factors, weights


def _check_room(what: str, entries: int) -> None:
    needed, free = 8.0 * entries, available_bytes()
    if needed > free:
        raise ValueError(
            f"{what} need {in_words(needed)}, and {in_words(free)} are free. Ask for fewer: give `top`, or "
            "the features that matter alone."
        )


def ranked_subsets(
    P: Any,
    degree: int = 3,
    coefficients: Any = None,
    top: int | None = None,
    *,
    repeated: bool = False,
    effort: float = 2e10,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the used products of `degree` features and their weights, largest |weight| first.

    The search is exact and forms no tensor: features are taken by descending norm, and a branch ends where
    Hölder's inequality shows that it has no product among the `top`. In the worst case, without `top` or
    where all rows are alike, it visits every used subset: O(d^m k) time for degree m. Where few weights are
    large, it visits little more than those. Memory is O(dk + m·top).

    Parameters
    ----------
    P : (d, k) array_like
        The factors.
    degree : int
        The number m of features in a product, from 2 to 10.
    coefficients : (k,) array_like, optional
        c_s; ones by default.
    top : int, optional
        The most products to return; without it all. Ties for the last place are broken arbitrarily.
    repeated : bool
        Whether a feature may occur in a product more than once, as in polynomial networks; a weight is then
        that of the product in Σ_s c_s⟨p_s, x⟩^m.
    effort : float
        The most multiplications of an entry of P.

    Returns
    -------
    features : (n, m) int ndarray
        The features of each product, ascending.
    weight : (n,) float ndarray
        The weights. A product is used where its rows share a column in which all are non-zero and whose
        coefficient is not 0, so a weight may be 0 by cancellation.

    Raises
    ------
    ValueError
        If something is out of range, the result does not fit into memory, or the search takes more effort.

    Examples
    --------
    >>> import fmviz
    >>> P = [[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]]
    >>> features, weight = fmviz.ranked_subsets(P, degree=2)
    >>> features.tolist(), weight.tolist()
    ([[1, 2], [0, 1]], [3.0, 2.0])
    """
    factors, weights = _factors(P, coefficients)
    degree = whole_number("degree", degree, 2, 10)
    limit = finite_number("effort", effort, low=0)
    factors = factors[:, weights != 0]
    weights = weights[weights != 0]
    live = np.flatnonzero(factors.any(axis=1))
    scaled = factors[live] * np.abs(weights) ** (1.0 / degree)
    largest = np.maximum(np.abs(scaled).max(axis=1, initial=0.0), _TINY)
    norms = largest * ((np.abs(scaled) / largest[:, None]) ** degree).sum(axis=1) ** (1.0 / degree)
    order = np.argsort(-norms, kind="stable")
    live, scaled, norms = live[order], np.ascontiguousarray(scaled[order]), norms[order]
    if top is None:
        room = _used(factors, degree, repeated)
    else:
        all_of_them = comb(live.size + (degree - 1 if repeated else 0), degree)
        room = min(whole_number("top", top, 1), all_of_them)
    _check_room(f"{room:,} products of {degree} features", room * (2 * degree + 6))
    features = np.empty((room, degree), dtype=np.int64)
    values = np.empty(room)
    count = 0
    if room:
        count = search_subsets(
            scaled,
            factors[live] != 0,
            np.sign(weights),
            norms,
            bool(repeated),
            limit,
            np.empty(room),
            np.empty(room, dtype=np.int64),
            features,
            values,
        )
    if count < 0:
        raise ValueError(
            f"Ranking the products of {degree} among {live.size:,} features takes more than {limit:.3g} "
            "multiplications: too many weights are of like size. Ask for a smaller top, fit with a larger "
            "lambda_sparse, or raise effort and wait."
        )
    features = np.sort(live[features[:count]], axis=1)
    values = values[:count]
    by = np.lexsort((*features.T[::-1], -np.abs(values)))
    return features[by], values[by]


def _used(P: np.ndarray, degree: int, repeated: bool) -> int:
    """Return the number of used products: sets of features, or multisets of them by their support."""
    if not P.any():
        return 0
    if not repeated:
        return used_subsets(P, degree)[degree]
    return sum(used_subsets(P, t)[t] * comb(degree - 1, t - 1) for t in range(1, degree + 1))


def subset_weight(P: Any, subset: Sequence[int], coefficients: Any = None) -> float:
    """Return Σ_s c_s Π_{j∈S} p_js, the weight of the product of some features.

    It is the weight of S in the all-subsets model ([A] Eq. 54), and in the machine of order |S|.

    Parameters
    ----------
    P : (d, k) array_like
        The factors.
    subset : sequence of int
        The features S, distinct; O(|S|k).
    coefficients : (k,) array_like, optional
        c_s; ones by default.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a feature does not exist or is named twice, or none is named.

    Examples
    --------
    >>> import fmviz
    >>> P = [[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]]
    >>> fmviz.subset_weight(P, [1, 2])
    3.0
    >>> fmviz.subset_weight(P, [1, 2], coefficients=[1.0, 10.0])
    30.0
    """
    factors, weights = _factors(P, coefficients)
    chosen = [_feature(factors, j) for j in subset]
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"subset = {list(subset)!r} must name at least one feature, and none twice.")
    return float(weights @ factors[chosen].prod(axis=0))


def tensor_slice(P: Any, feature: int, coefficients: Any = None, *, repeated: bool = False) -> np.ndarray:
    """Return the matrix of all w_{ijl} = Σ_s c_s p_is p_js p_ls with one feature i fixed, shape (d, d).

    Parameters
    ----------
    P : (d, k) array_like
        The factors; O(d²k) time, O(d²) memory.
    feature : int
        i.
    coefficients : (k,) array_like, optional
        c_s; ones by default.
    repeated : bool
        Whether to keep entries in which a feature occurs more than once; else they are 0, as in Σ_s c_s A³.

    Returns
    -------
    (d, d) ndarray, symmetric

    Raises
    ------
    ValueError
        If the feature does not exist, or the matrix does not fit into memory.

    Examples
    --------
    >>> import fmviz
    >>> P = [[1.0, 1.0], [2.0, 1.0], [0.0, 3.0]]
    >>> fmviz.tensor_slice(P, 0).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 3.0], [0.0, 3.0, 0.0]]
    """
    factors, weights = _factors(P, coefficients)
    i = _feature(factors, feature)
    W = weight_matrix(factors, weights * factors[i])
    if not repeated:
        np.fill_diagonal(W, 0.0)
        W[i] = 0.0
        W[:, i] = 0.0
    return W


def weight_matrix(P: Any, coefficients: Any = None) -> np.ndarray:
    """Return W = P diag(c) Pᵀ, shape (d, d), diagonal included.

    Σ_s c_s⟨p_s, x⟩² = xᵀWx, so a polynomial network multiplies x_i x_j by 2w_ij and x_i² by w_ii; in
    Σ_s c_s A²(p_s, x) the diagonal is not used and x_i x_j is multiplied by w_ij ([B] Section 3).

    Parameters
    ----------
    P : (d, k) array_like
        The factors.
    coefficients : (k,) array_like, optional
        c_s; ones by default.

    Returns
    -------
    (d, d) ndarray, symmetric

    Raises
    ------
    ValueError
        If the matrix does not fit into memory.

    Examples
    --------
    >>> import fmviz
    >>> P = [[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]]
    >>> fmviz.weight_matrix(P).tolist()
    [[1.0, 2.0, 0.0], [2.0, 5.0, 3.0], [0.0, 3.0, 9.0]]
    """
    factors, weights = _factors(P, coefficients)
    d = factors.shape[0]
    _check_room(f"The weights of {d:,} × {d:,} features", 2 * d * d)
    W = (factors * weights) @ factors.T
    return np.asarray(0.5 * (W + W.T))


def weight_spectrum(P: Any, coefficients: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of W = P diag(c) Pᵀ that can differ from 0, and their eigenvectors.

    With P = QR they are those of R diag(c) Rᵀ, at most k × k: O(dk²) time, O(dk) memory.

    Parameters
    ----------
    P : (d, k) array_like
        The factors.
    coefficients : (k,) array_like, optional
        c_s; ones by default.

    Returns
    -------
    values : (min(d, k),) ndarray
        By descending absolute value; all other eigenvalues are 0.
    vectors : (d, min(d, k)) ndarray
        Orthonormal columns, in the same order.

    Examples
    --------
    >>> import fmviz
    >>> values, vectors = fmviz.weight_spectrum([[1.0, 1.0], [1.0, -1.0], [0.0, 0.0]], [3.0, -1.0])
    >>> values.round(6).tolist()
    [6.0, -2.0]
    >>> vectors.shape
    (3, 2)
    """
    factors, weights = _factors(P, coefficients)
    Q, R = np.linalg.qr(factors)
    values, vectors = spectrum((R * weights) @ R.T)
    return values, Q @ vectors


def _feature(P: np.ndarray, j: Any) -> int:
    return whole_number("feature", j, 0, P.shape[0] - 1)
