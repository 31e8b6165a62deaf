r"""The duality gap of models that are convex in W, computed from parameters, X and y alone.

The objectives F of `models.quadratic` and `models.convex` are convex, with the Fenchel
dual over α, shape (N,),

    D(α) = −(1/N) Σ_n c_n ℓ*(N α_n / c_n, y_n) − ‖Xᵀα‖² / (4 λ_w)

subject to A*α being a sum S + T with ‖S‖_op ≤ λ_tr and max|t_ij| ≤ λ (T = 0 in the convex factorization
machine), to Σα = 0 where there is a bias, and to Xᵀα = 0 where there is a linear term with λ_w = 0. A*α is
the gradient of Σ_n α_n f(x_n) in W: Xᵀdiag(α)X where f depends on the diagonal of W, else half of it with a
zero diagonal. D(α) ≤ min F for every such α, so F(here) − D(α) bounds the suboptimality of `here`. At the
optimum α is the slope of the risk; elsewhere the slope is made feasible: corrected for the equalities, and
scaled down by `Model.gauge`. No result of a solver is used.

Without a penalty on W, λ_tr = λ = 0, hardly any α is feasible. There the minimum is taken over the W of trace
norm at most r = ‖W‖_tr of the parameters: any α is, and D(α) has −r‖A*α‖_op in place of the constraint.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..parameters import Parameters
from ..problem import Problem

# Candidate scales, relative to the largest feasible one: early in a run smaller ones are better, and a slope
# on the border of the conjugate's domain may be outside by rounding.
_SCALES = (1.0, 1.0 - 1e-13, 1.0 - 1e-10, 1.0 - 1e-7, 1.0 - 1e-4, 0.99, 0.9, 0.7, 0.5, 0.2, 0.05)


def relative_gaps(
    problem: Problem, parameters: Parameters, thorough: bool = True
) -> tuple[float, float | None]:
    """Return (F − D)/F, from 0 at the optimum to 1: the objective is at most this part of itself too high.

    Every loss here is at least 0 and its infimum is 0, so that F ≥ D(0) = 0. With λ_tr = λ = 0 the
    bound holds for all W of no larger trace norm.

    The second number is a lower bound of it for the best possible bounds, None where it is exact.
    """
    objective = problem.objective(parameters)
    if not np.isfinite(objective):
        return float("inf"), None
    if objective <= 0.0:
        return 0.0, None
    dual, most = dual_values(problem, parameters, thorough)
    gap = max(0.0, objective - dual) / objective
    return gap, None if most is None else max(0.0, objective - most) / objective


def dual_values(
    problem: Problem, parameters: Parameters, thorough: bool = True
) -> tuple[float, float | None]:
    """Return the best D(α) found from the slope of the risk at the parameters; at least 0.

    The second number is an upper bound of it for the best possible bound of the gauge.
    """
    dual = _Dual(problem, parameters)
    gauge, least = problem.model.gauges(
        problem.design, problem.penalty, parameters, dual.alpha, dual.strengths, thorough
    )
    return dual.best(gauge), None if least is None else dual.best(least)


class _Dual:
    """D along multiples of the slope of the risk at some parameters.

    Attributes
    ----------
    alpha : (N,) or (N, m) ndarray
        The slope, corrected for the equalities.
    strengths : tuple of float
        (λ_p, λ), or (1, 0) where the problem has neither.
    """

    def __init__(self, problem: Problem, parameters: Parameters) -> None:
        self._problem, self._parameters = problem, parameters
        slope = problem.loss.derivative(problem.predict(parameters), problem.y)
        c = problem.unit_weights.reshape((-1,) + (1,) * (slope.ndim - 1))
        self.alpha = balance(problem, problem.design.matrix, c * slope / len(slope))
        strengths = problem.lambda_p, problem.lambda_sparse
        self._free = not any(strengths)
        self.strengths = (1.0, 0.0) if self._free else strengths

    def best(self, gauge: float) -> float:
        """Return the largest value along the multiples that a gauge allows; at least 0."""
        problem, alpha, free = self._problem, self.alpha, self._free
        n, c = problem.design.n_samples, problem.unit_weights
        scale = 1.0 if free else 1.0 / max(1.0, gauge)
        ball = gauge * problem.model.ball(problem.penalty, self._parameters) if free else 0.0
        linear = problem.model.dual_quadratic(
            problem.design, problem.penalty, self._parameters, alpha, self.strengths
        )
        if problem.fit_linear and problem.lambda_w > 0.0:
            linear += float(np.square(problem.design.transpose_dot(alpha)).sum()) / (4.0 * problem.lambda_w)
        counted = c > 0
        weights = c[counted]
        per_row = (-1,) + (1,) * (alpha.ndim - 1)
        best = 0.0
        for s in _SCALES if scale > 0.0 else ():
            s *= scale
            values = problem.loss.conjugate(
                s * alpha[counted] * n / weights.reshape(per_row), problem.y[counted]
            )
            if values is None:
                # Without a conjugate the only bound is that losses are at least 0.
                break
            value = -float((weights * values).sum()) / n - s * s * linear - s * ball
            best = max(best, value)
        return best


def balance(problem: Problem, X: Any, alpha: np.ndarray) -> np.ndarray:
    """Return α, of the rows of X, with Σα = 0 and Xᵀα = 0, for every output, where the problem requires it.

    The least correction in the norm Σ δ_n²/|α_n|: entries move in proportion to their size, so that those at
    the border 0 of a conjugate's domain stay there.
    """
    columns = []
    if problem.fit_intercept:
        columns.append(np.ones((len(alpha), 1)))
    if problem.fit_linear and problem.lambda_w == 0.0:
        columns.append(X.toarray() if sp.issparse(X) else np.asarray(X))
    if not columns:
        return alpha
    C = np.hstack(columns)
    if alpha.ndim == 1:
        return _balanced(C, alpha)
    if "class" not in getattr(problem.loss, "kinds", ()):
        return np.column_stack([_balanced(C, column) for column in alpha.T])
    return _balanced_rows(C, alpha)


def _balanced(C: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return α, shape (N,), with Cᵀα = 0."""
    root = np.sqrt(np.abs(alpha))
    # Twice: the second round removes the rounding of the first.
    for _ in range(2):
        scaled = root[:, None] * C
        ratio = np.divide(alpha, root, out=np.zeros_like(alpha), where=root > 0)
        fitted = scaled @ np.linalg.lstsq(scaled, ratio, rcond=None)[0]
        alpha = alpha - root * fitted
    return alpha


def _balanced_rows(C: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return α, shape (N, m), with Cᵀα = 0 and rows that sum to 0, as multi-class conjugates require.

    δ_nc = |α_nc|(⟨C_n, θ_c⟩ − μ_n), with the μ_n that lets rows sum to 0, and θ by conjugate gradients.
    """
    size = np.abs(alpha)
    rows = np.maximum(size.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    shape = (C.shape[1], alpha.shape[1])

    def moved(theta: np.ndarray) -> np.ndarray:
        correction = size * (C @ theta)
        return correction - size * (correction.sum(axis=1, keepdims=True) / rows)

    for _ in range(2):
        theta, residual = np.zeros(shape), C.T @ alpha
        direction = residual
        square = first = float((residual * residual).sum())
        for _ in range(10 * residual.size):
            image = C.T @ moved(direction)
            bend = float((direction * image).sum())
            if square <= 1e-26 * first or bend <= 0.0:
                break
            theta = theta + square / bend * direction
            residual = residual - square / bend * image
            before, square = square, float((residual * residual).sum())
            direction = residual + square / before * direction
        alpha = alpha - moved(theta)
    return alpha
