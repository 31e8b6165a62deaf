r"""Upper bounds of the quartic form q(h) = Σ_c (hᵀΓ_c h)² on the unit sphere.

q(h) = ⟨hhᵀ, A hhᵀ⟩ with A = Σ_c Γ_c Γ_cᵀ as a symmetric matrix on symmetric matrices, and as ‖hhᵀ‖ = 1 it is
at most λ_max(A). It does not change where any T with ⟨hhᵀ, T hhᵀ⟩ = 0 for all h is added to A, that is one
whose full symmetrisation S(T) is 0. The least λ_max(A + T) over them all is the sum of squares bound: the
least t for which t‖h‖⁴ − q(h) is a sum of squares. Any T proves its bound; the best is looked for by L-BFGS
on a smooth maximum of the eigenvalues.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

# The share of the maximum by which the smooth one is above it, from stage to stage.
_SMOOTHING = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
_STEPS = 60
_ROUNDING = 1e-12
# Matrices beyond so many rows have their largest eigenvalue found by Lanczos iterations, to this accuracy.
_SMALL, _LANCZOS = 100, 1e-5


class _Pairs(NamedTuple):
    """Pairs i ≤ j of features as coordinates of symmetric matrices, in which inner products are kept.

    Attributes
    ----------
    i, j : (D,) int ndarray
        Them.
    scale : (D,) ndarray
        1 on the diagonal, √2 beside it.
    first, second : tuples of (D, D) int ndarray
        Of the pairs (i, j), (k, l): the places of (i, k) and (j, l), and of (i, l) and (j, k).
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
    one, two = i[:, None], j[:, None]
    return _Pairs(
        i, j, scale, (place[one, i[None]], place[two, j[None]]), (place[one, j[None]], place[two, i[None]])
    )


def _form(matrices: np.ndarray) -> tuple[np.ndarray, _Pairs]:
    """Return A, shape (D, D), D = d(d + 1)/2."""
    pairs = _pairs(matrices.shape[1])
    vectors = matrices[:, pairs.i, pairs.j] * pairs.scale
    return vectors.T @ vectors, pairs


def symmetrised(A: np.ndarray, pairs: _Pairs) -> np.ndarray:
    """Return S(A): the mean over the three ways to pair four indices, which leaves ⟨hhᵀ, A hhᵀ⟩ as it is."""
    outer = pairs.scale[:, None] * pairs.scale
    entries = A / outer
    return (entries + entries[pairs.first] + entries[pairs.second]) * (outer / 3.0)


def _largest(A: np.ndarray) -> float:
    values = np.linalg.eigvalsh(A)
    return float(values[-1]) + _ROUNDING * float(np.abs(values).max())


def _about_largest(A: np.ndarray) -> float:
    """Return λ_max(A) as Lanczos iterations find it, from below, for a fraction of what all of them cost."""
    from scipy.sparse.linalg import eigsh

    start = np.ones(len(A))
    return float(eigsh(A, 1, which="LA", tol=_LANCZOS, v0=start, return_eigenvectors=False)[0])


def _proved_largest(A: np.ndarray) -> float:
    """Return a t beyond λ_max(A), about 1e-5 above it: t − A has a Cholesky decomposition."""
    near, margin = _about_largest(A), _LANCZOS
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
    largest = _about_largest if len(A) > _SMALL else _largest
    found = minimize_scalar(
        lambda alpha: largest(A + alpha * T), bounds=(0.0, 1.5), method="bounded", options={"xatol": 1e-2}
    )
    value = _proved_largest(A + found.x * T) if len(A) > _SMALL else found.fun
    return float(np.sqrt(max(0.0, value)))


def sum_of_squares_bound(matrices: np.ndarray, enough: float = 0.0) -> float:
    """Return the root of the least λ_max(A + T), S(T) = 0, that is found; `enough` ends the search."""
    A, pairs = _form(matrices)
    size = float(np.abs(np.linalg.eigvalsh(A)[-1]))
    if size == 0.0:
        return 0.0
    A = A / size
    # S(T) = 0 to rounding: where T strays from that, the bound is of another form.
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
        found = minimize(smooth, x, (width,), "L-BFGS-B", jac=True, callback=stop, options=options)
        x = found.x
        if np.sqrt(max(best, 0.0) * size) <= enough:
            break
    return float(np.sqrt(max(0.0, best) * size))
