r"""Upper bounds of max_h ‖g_h‖_p over the unit ball, for duality gaps of a shared basis.

Selection gives lower bounds. From above, with q(h) = Σ_c (hᵀΓ_c h)²:

- p = ∞: the largest |eigenvalue| of the Γ_c, exactly up to 2,000 features. Up to 6,000 the inertia of
  ±Γ_c − t, by an LDLᵀ decomposition, proves that none is beyond t. Beyond that it is the bound of Kuczyński
  and Woźniakowski (1992) for Lanczos iterations from a random start, which fails with a probability of at
  most 10⁻⁶ and is called probabilistic: the residual of an eigenvector shows that an eigenvalue is near, not
  that it is the largest one.
- p = 2: q is a quartic form, bounded by a sum of squares (below) up to 40
  features, by a part of that up to 60, and beyond by the norms of matrices of size m and d.
- p = 1: over all signs s, the largest |eigenvalue| of Σ_c s_c Γ_c, exactly up to 11 outputs; else √m times
  the bound for p = 2, which is loose.

q(h) = ⟨hhᵀ, A hhᵀ⟩ with A = Σ_c Γ_c Γ_cᵀ as a symmetric matrix on symmetric matrices, and as ‖hhᵀ‖ = 1 it is
at most λ_max(A). It does not change where any T with ⟨hhᵀ, T hhᵀ⟩ = 0 for all h is added to A, that is for
T whose full symmetrisation S(T) is 0. The least λ_max(A + T) over all these T is the sum of squares bound:
the least t for which t‖h‖⁴ − q(h) is a sum of squares. Any T proves its bound; the best is searched by L-BFGS
on a smooth maximum of the eigenvalues.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal, ldl

from ..design import Design
from ..linalg.lowrank import PairGradient
from .gradients import BasisGradient

# The relative excess of the smooth maximum over the maximum, by stage.
_SMOOTHING = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
_STEPS = 60
_ROUNDING = 1e-12
# Beyond so many rows the largest eigenvalue is computed by Lanczos iterations, to this accuracy.
_SMALL, _LANCZOS = 100, 1e-5


class _Pairs(NamedTuple):
    """Pairs i ≤ j of features as coordinates of symmetric matrices that preserve inner products.

    Attributes
    ----------
    i, j : (D,) int ndarray
        The features of each pair.
    scale : (D,) ndarray
        1 on the diagonal, √2 off it.
    first, second : tuples of (D, D) int ndarray
        For pairs (i, j), (k, l): the places of (i, k) and (j, l), and of (i, l) and (j, k).
    """

    i: np.ndarray
    j: np.ndarray
    scale: np.ndarray
    first: tuple[np.ndarray, np.ndarray]
    second: tuple[np.ndarray, np.ndarray]


@lru_cache(maxsize=4)
def _pairs(d: int) -> _Pairs:
    i, j = np.triu_indices(d)
    place = np.zeros((d, d), dtype=np.int64)
    place[i, j] = place[j, i] = np.arange(i.size)
    scale = np.where(i == j, 1.0, np.sqrt(2.0))
    rows, columns = i[:, None], j[:, None]
    return _Pairs(
        i,
        j,
        scale,
        (place[rows, i[None]], place[columns, j[None]]),
        (place[rows, j[None]], place[columns, i[None]]),
    )


def _form(matrices: np.ndarray) -> tuple[np.ndarray, _Pairs]:
    """Return A, shape (D, D), D = d(d + 1)/2."""
    pairs = _pairs(matrices.shape[1])
    vectors = matrices[:, pairs.i, pairs.j] * pairs.scale
    return vectors.T @ vectors, pairs


def symmetrised(A: np.ndarray, pairs: _Pairs) -> np.ndarray:
    """Return S(A): the mean over the three pairings of four indices, which preserves ⟨hhᵀ, A hhᵀ⟩."""
    outer = pairs.scale[:, None] * pairs.scale
    entries = A / outer
    return (entries + entries[pairs.first] + entries[pairs.second]) * (outer / 3.0)


def _largest(A: np.ndarray) -> float:
    values = np.linalg.eigvalsh(A)
    return float(values[-1]) + _ROUNDING * float(np.abs(values).max())


def _approximate_largest(A: np.ndarray) -> float:
    """Return λ_max(A) by Lanczos iterations, from below, faster than all eigenvalues."""
    from scipy.sparse.linalg import eigsh

    start = np.ones(len(A))
    return float(eigsh(A, 1, which="LA", tol=_LANCZOS, v0=start, return_eigenvectors=False)[0])


def _bound_of_largest(A: np.ndarray) -> float:
    """Return a proven t > λ_max(A), about 1e-5 above it: t − A has a Cholesky decomposition."""
    near, margin = _approximate_largest(A), _LANCZOS
    while True:
        t = near + margin * abs(near)
        try:
            np.linalg.cholesky(t * np.eye(len(A)) - A)
        except np.linalg.LinAlgError:
            margin *= 4.0
            continue
        return t


def one_parameter_bound(matrices: np.ndarray) -> float:
    """Return the root of min_α λ_max(A + α(S(A) − A)) for Γ of shape (m, d, d)."""
    from scipy.optimize import minimize_scalar

    A, pairs = _form(matrices)
    T = symmetrised(A, pairs) - A
    largest = _approximate_largest if len(A) > _SMALL else _largest
    result = minimize_scalar(
        lambda alpha: largest(A + alpha * T), bounds=(0.0, 1.5), method="bounded", options={"xatol": 1e-2}
    )
    value = _bound_of_largest(A + result.x * T) if len(A) > _SMALL else result.fun
    return float(np.sqrt(max(0.0, value)))


def sum_of_squares_bound(matrices: np.ndarray, enough: float = 0.0) -> float:
    """Return the root of the least λ_max(A + T), S(T) = 0, found; the search ends at `enough`."""
    A, pairs = _form(matrices)
    size = float(np.abs(np.linalg.eigvalsh(A)[-1]))
    if size == 0.0:
        return 0.0
    A = A / size
    # S(T) = 0 to rounding, since otherwise the bound is that of another form.
    T = 1.0 * (symmetrised(A, pairs) - A)
    best = np.inf

    def smooth(x: np.ndarray, width: float) -> tuple[float, np.ndarray]:
        nonlocal best
        B = x.reshape(A.shape)
        T = B - symmetrised(B, pairs)
        values, vectors = np.linalg.eigh(A + T)
        best = min(best, float(values[-1]) + _ROUNDING * float(np.abs(values).max()))
        weights = np.exp((values - values[-1]) / width)
        total = float(weights.sum())
        slope = (vectors * (weights / total)) @ vectors.T
        return float(values[-1]) + width * float(np.log(total)), (slope - symmetrised(slope, pairs)).ravel()

    def stop(x: np.ndarray) -> None:
        if np.sqrt(max(best, 0.0) * size) <= enough:
            raise StopIteration

    from scipy.optimize import minimize

    x = T.ravel()
    for share in _SMOOTHING:
        width = share / np.log(len(A))
        options = {"maxiter": _STEPS, "maxcor": 20}
        result = minimize(smooth, x, (width,), "L-BFGS-B", jac=True, callback=stop, options=options)
        x = result.x
        if np.sqrt(max(best, 0.0) * size) <= enough:
            break
    return float(np.sqrt(max(0.0, best) * size))


_DENSE, _INERTIA = 2_000, 6_000
_MARGIN = 1e-6
FAILURE = 1e-6
"""The probability with which a probabilistic bound fails."""
_LANCZOS_STEPS = 150
MOST_SIGNS = 11
"""The most outputs whose signs are enumerated."""
_SIGN_WORK = 3e8
_SOS, _ONE_PARAMETER = 40, 60


class Bound(NamedTuple):
    """An upper bound.

    Attributes
    ----------
    value : float
        The bound.
    kind : {"exact", "inertia", "probabilistic", "sum_of_squares", "one_parameter", "norms", "loose"}
        How it is proved.
    """

    value: float
    kind: str


def largest_norm(gradient: BasisGradient, p: float, thorough: bool = True, enough: float = 0.0) -> Bound:
    """Return an upper bound of max_h ‖g_h‖_p.

    Parameters
    ----------
    gradient : BasisGradient
        Γ_1, …, Γ_m.
    p : float
        1, 2 or ∞.
    thorough : bool
        Whether to spend time on a tight bound.
    enough : float
        A sufficient bound, at which the search ends.
    """
    if gradient.m == 1 or p == np.inf:
        return _largest_eigenvalue(gradient)
    if p == 2.0:
        return _euclidean(gradient, thorough, enough)
    work = 2.0 ** (gradient.m - 1) * gradient.d**3
    if gradient.m <= MOST_SIGNS and gradient.small and work <= (_SIGN_WORK if thorough else 0.1 * _SIGN_WORK):
        return Bound(_over_signs(gradient), "exact")
    root = float(np.sqrt(gradient.m))
    euclidean = _euclidean(gradient, thorough, enough / root)
    return Bound(root * euclidean.value, "loose")


def _largest_eigenvalue(gradient: BasisGradient) -> Bound:
    if gradient.d <= _DENSE:
        matrices = gradient.matrices if gradient.small else map(gradient.matrix, range(gradient.m))
        return Bound(max(float(np.abs(np.linalg.eigvalsh(G)[[0, -1]]).max()) for G in matrices), "exact")
    if gradient.d <= _INERTIA:
        return Bound(max(_by_inertia(gradient.matrix(c)) for c in range(gradient.m)), "inertia")
    rng = np.random.default_rng(0)
    share = FAILURE / (2 * gradient.m)
    return Bound(
        max(
            _probable_norm(gradient.design, gradient.slopes[:, c], gradient.diagonal, share, rng)
            for c in range(gradient.m)
        ),
        "probabilistic",
    )


def _by_inertia(G: np.ndarray) -> float:
    """Return a t, about 1e-6 above the largest |eigenvalue|, proved by the inertia of G ± t."""
    # Power iterations approach it from below.
    v = np.random.default_rng(0).normal(size=len(G))
    size = 0.0
    for _ in range(100):
        v = G @ (G @ v)
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return 0.0
        v /= size
    t = float(np.sqrt(size)) * (1.0 + _MARGIN)
    while not (_positive(t, G) and _positive(t, -G)):
        t *= 1.0 + 10.0 * _MARGIN
    return t


def _positive(t: float, G: np.ndarray) -> bool:
    """Return whether t·I − G is positive definite, by the blocks of its LDLᵀ decomposition."""
    D = ldl(t * np.eye(len(G)) - G)[1]
    values = eigh_tridiagonal(np.diagonal(D), np.diagonal(D, 1), eigvals_only=True)
    return bool(values[0] > 0.0)


def _probable_norm(
    design: Design, slopes: np.ndarray, diagonal: bool, failure: float, rng: np.random.Generator
) -> float:
    """Return an upper bound of the largest |eigenvalue| that fails with at most this probability at each end.

    After k steps from a start that is uniform on the sphere the largest Ritz value is below the largest
    eigenvalue by more than ε times the width of the spectrum with probability at most 1.648 √d exp(−√ε (2k −
    1)).
    """
    d, operator = design.n_features, PairGradient(design, slopes, diagonal)
    steps = min(_LANCZOS_STEPS, d - 1)
    v = rng.normal(size=d)
    basis = np.empty((steps, d))
    basis[0] = v / np.linalg.norm(v)
    along, beside = np.zeros(steps), np.zeros(steps)
    for k in range(steps):
        image = operator.dot(basis[k])
        along[k] = float(basis[k] @ image)
        # Orthogonalised to all previous vectors, twice: the theorem is for exact arithmetic.
        for _ in range(2):
            image -= basis[: k + 1].T @ (basis[: k + 1] @ image)
        beside[k] = float(np.linalg.norm(image))
        if k + 1 == steps or beside[k] <= 1e-13 * max(float(np.abs(along).max()), 1e-300):
            steps = k + 1
            break
        basis[k + 1] = image / beside[k]
    ritz = eigh_tridiagonal(along[:steps], beside[: steps - 1], eigvals_only=True)
    epsilon = (np.log(1.648 * np.sqrt(d) / failure) / (2 * steps - 1)) ** 2
    if epsilon >= 0.4:
        rows = np.asarray(abs(design.matrix).sum(axis=1)).ravel()
        return float((abs(design.matrix).T @ (np.abs(slopes) * rows)).max())
    # Both ends are off by at most ε of the true width, which is at most the computed one over 1 − 2ε.
    slack = epsilon * (ritz[-1] - ritz[0]) / (1.0 - 2.0 * epsilon)
    return float(max(abs(ritz[0]), abs(ritz[-1])) + slack)


def _over_signs(gradient: BasisGradient) -> float:
    signs = np.array([(1.0, *others) for others in product((-1.0, 1.0), repeat=gradient.m - 1)])
    largest = 0.0
    for begin in range(0, len(signs), 256):
        sums = np.tensordot(signs[begin : begin + 256], gradient.matrices, axes=1)
        largest = max(largest, float(np.abs(np.linalg.eigvalsh(sums)[:, [0, -1]]).max()))
    return largest


def _euclidean(gradient: BasisGradient, thorough: bool, enough: float) -> Bound:
    norms = _by_norms(gradient)
    if not gradient.small or gradient.d > _ONE_PARAMETER or norms == 0.0:
        return Bound(norms, "norms")
    if gradient.d <= _SOS and thorough:
        return Bound(min(norms, sum_of_squares_bound(gradient.matrices, enough)), "sum_of_squares")
    return Bound(min(norms, one_parameter_bound(gradient.matrices)), "one_parameter")


def _by_norms(gradient: BasisGradient) -> float:
    """Return the least of three bounds of max_h ‖g_h‖₂ by matrices of size m and d.

    The largest singular value of the unfolding (Γ_1, …, Γ_m); the root of the norm of ΣΓ_c², as
    (hᵀΓ_c h)² ≤ ‖Γ_c h‖²; and the root of the sum of the squared norms of the Γ_c.
    """
    if not gradient.small and gradient.d > _DENSE:
        columns = (gradient.slopes[:, c : c + 1] for c in range(gradient.m))
        singles = (BasisGradient(gradient.design, column, gradient.diagonal) for column in columns)
        return float(np.linalg.norm([_largest_eigenvalue(single).value for single in singles]))
    matrices = gradient.matrices if gradient.small else [gradient.matrix(c) for c in range(gradient.m)]
    inner = np.array([[float((A * B).sum()) for B in matrices] for A in matrices])
    squares = sum(G @ G for G in matrices)
    each = [float(np.abs(np.linalg.eigvalsh(G)[[0, -1]]).max()) for G in matrices]
    return float(
        min(
            np.sqrt(np.linalg.eigvalsh(inner)[-1]),
            np.sqrt(np.linalg.eigvalsh(squares)[-1]),
            np.linalg.norm(each),
        )
    )
