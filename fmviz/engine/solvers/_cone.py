"""Convex problems of a semidefinite Z, w and a bias, solved to rounding for few features.

Minimised is Σ_n g_n(f_n) + λ_w‖w‖² + λ_p·T(Z) over Z ⪰ 0, w and b, with f_n = b + ⟨w, x_n⟩ + x_nᵀZx_n, T(Z) =
‖QZ‖²_F for the projector Q on all but some directions that are free, or tr Z, and g_n = ω_n·u(f_n) or
ω_n·½u(f_n)² of an excess u whose ½u² is smooth with slope f − t, t the nearest prediction that costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpotrs

from ..losses import Loss

# Over-relaxation, and how often the penalty parameter of the splitting is looked at.
_RELAXATION, _LOOK = 1.6, 50
# How often it is asked whether the iterates are near enough.
_ASK = 5
MOST_COORDINATES = 2_000
"""Up to so many of Z, w and b the normal equations are factorised."""


@dataclass(frozen=True)
class Convex:
    """One convex problem; see the module.

    Attributes
    ----------
    X : (n, d) ndarray
        The rows that count.
    y : (n,) ndarray
        Their targets.
    weights : (n,) ndarray
        ω > 0.
    half_square : Loss
        ½u².
    squared : bool
        Whether g_n is ω_n·½u², rather than ω_n·u.
    lambda_w, lambda_p : float
        The strengths.
    basis : (d, d) ndarray
        Orthonormal columns, those of the free directions first.
    free : int
        How many are free.
    trace : bool
        Whether T is tr Z.
    fit_linear, fit_intercept : bool
        Whether there are w and b.
    unit : float
        A typical excess.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    half_square: Loss
    squared: bool
    lambda_w: float
    lambda_p: float
    basis: np.ndarray
    free: int
    trace: bool
    fit_linear: bool
    fit_intercept: bool
    unit: float


def coordinates(d: int) -> int:
    """Return how many numbers Z, w and b are."""
    return d * (d + 1) // 2 + d + 1


def solve(
    problem: Convex,
    Z: np.ndarray,
    w: np.ndarray,
    bias: float,
    slope: np.ndarray,
    tol: float,
    most: int,
) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """Return Z, w, the bias and the slopes g_n' at the minimum, from a start near to those that are given.

    By the alternating direction method of multipliers.

    The splitting has copies v of the predictions, where the loss acts, and S of Z, which is projected on the
    cone (Boyd et al. 2011); both in coordinates of `basis`, in which T is diagonal. The steps on (Z, w, b)
    are exact, by a Cholesky factor of the normal equations.
    """
    d = Z.shape[0]
    first, second = np.triu_indices(d)
    double = np.where(first == second, 1.0, np.sqrt(2.0))
    B, rows = problem.basis, problem.X @ problem.basis
    A = np.hstack(
        [
            rows[:, first] * rows[:, second] * double,
            *([rows] if problem.fit_linear else []),
            *([np.ones((len(rows), 1))] if problem.fit_intercept else []),
        ]
    )
    m = first.size
    penalised = (np.arange(d) >= problem.free).astype(float)
    smooth = np.zeros(A.shape[1])
    if not problem.trace:
        smooth[:m] = problem.lambda_p * (penalised[first] + penalised[second])
    if problem.fit_linear:
        smooth[m : m + d] = 2.0 * problem.lambda_w
    # A step of the loss moves an excess by a unit, or by half of itself.
    weight = problem.weights * (1.0 if problem.squared else 1.0 / problem.unit)
    gram = (A * weight[:, None]).T @ A
    size = float(np.diagonal(gram)[:m].mean()) or 1.0
    coupling = np.zeros(A.shape[1])
    coupling[:m] = size
    # Z, w and the bias have units of their own each.
    ridge = np.concatenate(
        [1e-12 * np.full(one.shape, one.max()) for one in np.split(np.diagonal(gram), [m, m + d]) if one.size]
    )

    def packed(M: np.ndarray) -> np.ndarray:
        return (B.T @ M @ B)[first, second] * double

    upper, lower = first * d + second, second * d + first

    def unpacked(z: np.ndarray) -> np.ndarray:
        M = np.zeros(d * d)
        M[upper] = M[lower] = z / double
        return M.reshape(d, d)

    def on_cone(z: np.ndarray, shift: float) -> np.ndarray:
        values, vectors = np.linalg.eigh(unpacked(z))
        values = np.maximum(values - shift, 0.0)
        return ((vectors * values) @ vectors.T).ravel()[upper] * double

    def loss_step(v: np.ndarray, rho: float) -> np.ndarray:
        move = problem.half_square.derivative(v, problem.y)
        if problem.squared:
            return v - move / (1.0 + rho)
        reach = problem.unit / rho
        return v - np.minimum(np.maximum(move, -reach), reach)

    theta = np.concatenate(
        [packed(Z), *([B.T @ w] if problem.fit_linear else []), *([[bias]] if problem.fit_intercept else [])]
    )
    v, s = A @ theta, theta[:m].copy()
    # The multipliers that go with the slopes where (Z, w, b) is stationary.
    mu = slope / weight
    nu = -(smooth[:m] * theta[:m] + A[:, :m].T @ slope) / size
    rho, factor = 1.0, None
    for turn in range(most):
        if factor is None:
            H = rho * gram
            H[np.diag_indices_from(H)] += smooth + rho * coupling + ridge
            factor = scipy.linalg.cholesky(H.T, lower=True, overwrite_a=True, check_finite=False)
        right = rho * (A.T @ (weight * (v - mu)))
        right[:m] += rho * size * (s - nu)
        theta = dpotrs(factor, right, lower=1)[0]
        fitted = A @ theta
        v_before, s_before = v, s
        f = _RELAXATION * fitted + (1.0 - _RELAXATION) * v
        z = _RELAXATION * theta[:m] + (1.0 - _RELAXATION) * s
        v = loss_step(f + mu, rho)
        s = on_cone(z + nu, problem.lambda_p / (rho * size) if problem.trace else 0.0)
        mu += f - v
        nu += z - s
        if (turn + 1) % _ASK:
            continue
        apart = _norm(weight, fitted - v, size, theta[:m] - s)
        moved = _norm(weight, v - v_before, size, s - s_before)
        scale = _norm(weight, v, size, s) or 1.0
        if max(apart, moved) <= tol * scale:
            break
        ratio = apart / max(moved, 1e-300)
        if turn % _LOOK == _LOOK - 1 and turn < 0.6 * most and not 0.2 < ratio < 5.0:
            change = float(np.clip(np.sqrt(ratio), 0.1, 10.0))
            rho *= change
            mu, nu, factor = mu / change, nu / change, None
    found = B @ unpacked(s) @ B.T
    w = B @ theta[m : m + d] if problem.fit_linear else w
    bias = float(theta[-1]) if problem.fit_intercept else bias
    return 0.5 * (found + found.T), w, bias, rho * weight * mu


def _norm(weight: np.ndarray, v: np.ndarray, size: float, z: np.ndarray) -> float:
    return float(np.sqrt(weight @ np.square(v) + size * (z @ z)))
