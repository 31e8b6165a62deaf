r"""Upper bounds on max_h ‖g_h‖_p over the unit ball, for duality gaps of a shared basis.

Selection gives lower bounds. Upper bounds, with q(h) = Σ_c (hᵀΓ_c h)²:

- p = ∞: the largest |eigenvalue| of the Γ_c, exact up to 2,000 features; beyond that, the result of Lanczos
  iterations plus its residual, as for a single convex machine.
- p = 2: q is a quartic form, bounded by a sum of squares (below) up to 40 features, by a partial one up to
60,
  and by the norms of matrices of size m and d.
- p = 1: the largest |eigenvalue| of Σ_c s_c Γ_c over all signs s, exact up to 11 outputs; otherwise √m times
the
  bound for p = 2, which is loose.

q(h) = ⟨hhᵀ, A hhᵀ⟩ with A = Σ_c Γ_c Γ_cᵀ as a symmetric matrix on symmetric matrices; since ‖hhᵀ‖ = 1, it is
at most λ_max(A). It is unchanged by adding to A any T with ⟨hhᵀ, T hhᵀ⟩ = 0 for all h, that is, any T whose
full symmetrization S(T) is 0. The smallest λ_max(A + T) over all these T is the sum of squares bound: the
smallest t for which t‖h‖⁴ − q(h) is a sum of squares. Any T proves its bound; L-BFGS on a smooth maximum of
the eigenvalues searches for the best.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..linalg.lowrank import PairGradient
from ..linalg.spectral import spectral_norm
from .gradients import BasisGradient
from .selection import every_sign

# The relative excess of the smooth maximum over the maximum, by stage.
_SMOOTHING = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
_STEPS = 60
_ROUNDING = 1e-12
# The maximum numbers of features for exact eigenvalues, for a sum of squares, and for a partial one.
_DENSE, _SOS, _ONE_PARAMETER = 2_000, 40, 60
# The maximum number of outputs whose signs are enumerated, and of the work.
MOST_SIGNS, _SIGN_WORK = 11, 3e8


def largest_norm(gradient: BasisGradient, p: float, thorough: bool = True, enough: float = 0.0) -> float:
    """Return an upper bound on max_h ‖g_h‖_p.

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
    m = gradient.m
    if p == 1.0 and m > 1:
        work = 2.0 ** (m - 1) * gradient.d**3
        if m <= MOST_SIGNS and gradient.small and work <= (_SIGN_WORK if thorough else 0.1 * _SIGN_WORK):
            return float(gradient.norms(every_sign(gradient, np.random.default_rng(0)), 1.0).max())
        root = float(np.sqrt(m))
        return root * largest_norm(gradient, 2.0, thorough, enough / root)
    if gradient.d <= _DENSE:
        each = [spectral_norm(G) for G in (gradient.matrices if gradient.small else gradient.each())]
    else:
        tol = 1e-9 if thorough else 1e-4
        each = [PairGradient(gradient.design, a, gradient.diagonal).norm(tol) for a in gradient.slopes.T]
    if p == np.inf or m == 1:
        return max(each)
    bounds = [float(np.linalg.norm(each))]
    if gradient.d <= _DENSE:
        # The largest singular value of the unfolding (Γ_1, …, Γ_m), and, since (hᵀΓ_c h)² ≤ ‖Γ_c h‖², the
        # root of the norm of ΣΓ_c².
        matrices = gradient.matrices if gradient.small else [*gradient.each()]
        inner = np.array([[float((A * B).sum()) for B in matrices] for A in matrices])
        bounds += [float(np.sqrt(np.linalg.eigvalsh(G)[-1])) for G in (inner, sum(G @ G for G in matrices))]
    if gradient.small and gradient.d <= _ONE_PARAMETER and min(bounds) > 0.0:
        tight = partial(sum_of_squares_bound, enough=enough)
        bounds.append((tight if gradient.d <= _SOS and thorough else one_parameter_bound)(gradient.matrices))
    return min(bounds)


@lru_cache(maxsize=4)
def _pairs(d: int) -> tuple[Any, ...]:
    """Return the pairs i ≤ j of features as inner-product preserving coordinates of symmetric matrices.

    Returns
    -------
    i, j : (D,) int ndarrays
        The features of each pair.
    scale : (D,) ndarray
        1 on the diagonal, √2 off it.
    outer : (D, D) ndarray
        The products of two scales.
    first, second : (D, D) int ndarrays
        For pairs (i, j), (k, l): the indices of (i, k) and (j, l), and of (i, l) and (j, k).
    """
    i, j = np.triu_indices(d)
    place = np.zeros((d, d), dtype=np.int64)
    place[i, j] = place[j, i] = np.arange(i.size)
    first = place[i[:, None], i], place[j[:, None], j]
    scale = np.where(i == j, 1.0, np.sqrt(2.0))
    return i, j, scale, scale[:, None] * scale, first, (place[i[:, None], j], place[j[:, None], i])


def _form(matrices: np.ndarray) -> np.ndarray:
    """Return A, shape (D, D), D = d(d + 1)/2, for Γ of shape (m, d, d)."""
    i, j, scale, *_ = _pairs(matrices.shape[1])
    vectors = matrices[:, i, j] * scale
    return np.asarray(vectors.T @ vectors)


def symmetrised(A: np.ndarray, d: int) -> np.ndarray:
    """Return S(A): the mean over the three pairings of four indices, which preserves ⟨hhᵀ, A hhᵀ⟩."""
    *_, outer, first, second = _pairs(d)
    entries = A / outer
    return np.asarray((entries + entries[first] + entries[second]) * (outer / 3.0))


def _largest(values: np.ndarray) -> float:
    """Return an upper bound on the largest of computed eigenvalues."""
    return float(values[-1]) + _ROUNDING * float(np.abs(values).max())


def one_parameter_bound(matrices: np.ndarray) -> float:
    """Return the root of min_α λ_max(A + α(S(A) − A)) for Γ of shape (m, d, d)."""
    from scipy.optimize import minimize_scalar

    A = _form(matrices)
    T = symmetrised(A, matrices.shape[1]) - A
    result = minimize_scalar(
        lambda alpha: _largest(np.linalg.eigvalsh(A + alpha * T)),
        bounds=(0.0, 1.5),
        method="bounded",
        options={"xatol": 1e-2},
    )
    return float(np.sqrt(max(0.0, result.fun)))


def sum_of_squares_bound(matrices: np.ndarray, enough: float = 0.0) -> float:
    """Return the root of the smallest λ_max(A + T), S(T) = 0, found for Γ that are not all 0.

    The search ends at `enough`.
    """
    from scipy.optimize import minimize

    d, A = matrices.shape[1], _form(matrices)
    size = float(np.abs(np.linalg.eigvalsh(A)[-1]))
    A, best, least = A / size, np.inf, enough**2 / size

    def smooth(x: np.ndarray, width: float) -> tuple[float, np.ndarray]:
        nonlocal best
        B = x.reshape(A.shape)
        # S(T) must be 0 to rounding, or the bound would apply to another form.
        values, vectors = np.linalg.eigh(A + B - symmetrised(B, d))
        best = min(best, _largest(values))
        weights = np.exp((values - values[-1]) / width)
        total = float(weights.sum())
        slope = (vectors * (weights / total)) @ vectors.T
        return float(values[-1]) + width * float(np.log(total)), (slope - symmetrised(slope, d)).ravel()

    def stop(x: np.ndarray) -> None:
        if best <= least:
            raise StopIteration

    x = (symmetrised(A, d) - A).ravel()
    options = {"maxiter": _STEPS, "maxcor": 20}
    for share in _SMOOTHING:
        x = minimize(
            smooth, x, (share / np.log(len(A)),), "L-BFGS-B", jac=True, callback=stop, options=options
        ).x
        if best <= least:
            break
    return float(np.sqrt(max(0.0, best) * size))
