r"""The duality gap of models convex in W, computed only from parameters, X and y.

The objectives F of `models.quadratic` and `models.convex` are convex, with the Fenchel
dual over α, shape (N,),

    D(α) = −(1/N) Σ_n c_n ℓ*(N α_n / c_n, y_n) − ‖Xᵀα‖² / (4 λ_w)

subject to A*α being a sum S + T with ‖S‖_op ≤ λ_tr and max|t_ij| ≤ λ (T = 0 in the convex factorization
machine), to Σα = 0 if there is a bias, and to Xᵀα = 0 if there is a linear term with λ_w = 0. A*α is the
gradient of Σ_n α_n f(x_n) in W: Xᵀdiag(α)X if f depends on the diagonal of W, otherwise half of it with a
zero diagonal. D(α) ≤ min F for every feasible α; F(here) − D(α) therefore bounds the suboptimality of `here`.
At the optimum, α is the slope of the risk; elsewhere, the slope is made feasible by a correction for the
equalities and scaling by `Model.gauge`. No result of a solver is used.

Without a penalty on W, λ_tr = λ = 0, almost no α is feasible. The minimum is then taken over all W with trace
norm at most r = ‖W‖_tr of the parameters: every α is feasible, and D(α) has the term −r‖A*α‖_op instead of
the constraint.
"""

from __future__ import annotations

import numpy as np

from ..design import Design
from ..linalg import conjugate_gradients
from ..parameters import Parameters
from ..problem import Problem

# Candidate scales, relative to the largest feasible one: early in a run, smaller ones are better, and a slope
# on the boundary of the domain of the conjugate may be outside by rounding.
_SCALES = (1.0, 1.0 - 1e-13, 1.0 - 1e-10, 1.0 - 1e-7, 1.0 - 1e-4, 0.99, 0.9, 0.7, 0.5, 0.2, 0.05)


def relative_gaps(
    problem: Problem, parameters: Parameters, thorough: bool = True
) -> tuple[float, float | None]:
    """Return (F − D)/F, from 0 at the optimum to 1: the relative suboptimality is at most this large.

    All losses are non-negative with infimum 0; hence F ≥ D(0) = 0. With λ_tr = λ = 0, the bound holds for all
    W of at most the same trace norm.

    The second number is the gap that the best possible bounds would give, a lower bound; None if exact.
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

    The second number is the D(α) that the best possible bound on the gauge would give, an upper bound.
    """
    slope = problem.loss.derivative(problem.predict(parameters), problem.y)
    n, c = problem.design.n_samples, problem.unit_weights
    per_row = (-1,) + (1,) * (slope.ndim - 1)
    alpha = balance(problem, problem.design, c.reshape(per_row) * slope / n)
    strengths = problem.lambda_p, problem.lambda_sparse
    if free := not any(strengths):
        strengths = 1.0, 0.0
    about = problem.design, problem.penalty, parameters, alpha, strengths

    def best(gauge: float) -> float:
        """Return the largest value over the multiples allowed by a gauge; at least 0."""
        scale = 1.0 if free else 1.0 / max(1.0, gauge)
        ball = gauge * problem.model.ball(problem.penalty, parameters) if free else 0.0
        linear = problem.model.dual_quadratic(*about)
        if problem.fit_linear and problem.lambda_w > 0.0:
            linear += float(np.square(problem.design.transpose_dot(alpha)).sum()) / (4.0 * problem.lambda_w)
        counted = c > 0
        weights = c[counted]
        best = 0.0
        for s in _SCALES if scale > 0.0 else ():
            s *= scale
            values = problem.loss.conjugate(
                s * alpha[counted] * n / weights.reshape(per_row), problem.y[counted]
            )
            if values is None:
                # Without a conjugate, the only bound is that losses are non-negative.
                break
            best = max(best, -float((weights * values).sum()) / n - s * s * linear - s * ball)
        return best

    gauge, least = problem.model.gauges(*about, thorough)
    return best(gauge), None if least is None else best(least)


def balance(problem: Problem, design: Design, alpha: np.ndarray) -> np.ndarray:
    """Correct α to satisfy Σα = 0 and Xᵀα = 0 for every output, as required by the problem.

    The correction is minimal in the norm Σ δ_n²/|α_n|: entries change in proportion to their size, and those
    at the boundary 0 of the domain of a conjugate stay there.
    """
    columns = []
    if problem.fit_intercept:
        columns.append(np.ones((len(alpha), 1)))
    if problem.fit_linear and problem.lambda_w == 0.0:
        columns.append(design.dense())
    if not columns:
        return alpha
    C = np.hstack(columns)
    if alpha.ndim == 1:
        return _balanced(C, alpha)
    if "class" not in getattr(problem.loss, "kinds", ()):
        return np.column_stack([_balanced(C, column) for column in alpha.T])
    return _balanced_rows(C, alpha)


def _balanced(C: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Correct α, shape (N,), to satisfy Cᵀα = 0."""
    root = np.sqrt(np.abs(alpha))
    # Twice, since the second pass removes the rounding errors of the first.
    for _ in range(2):
        scaled = root[:, None] * C
        ratio = np.divide(alpha, root, out=np.zeros_like(alpha), where=root > 0)
        fitted = scaled @ np.linalg.lstsq(scaled, ratio, rcond=None)[0]
        alpha = alpha - root * fitted
    return alpha


def _balanced_rows(C: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Correct α, shape (N, m), to satisfy Cᵀα = 0 with rows that sum to 0, as multiclass conjugates require.

    δ_nc = |α_nc|(⟨C_n, θ_c⟩ − μ_n), with μ_n such that rows sum to 0, and θ by conjugate gradients.
    """
    size = np.abs(alpha)
    rows = np.maximum(size.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    def moved(theta: np.ndarray) -> np.ndarray:
        correction = size * (C @ theta)
        return correction - size * (correction.sum(axis=1, keepdims=True) / rows)

    for _ in range(2):
        right = C.T @ alpha
        theta = conjugate_gradients(lambda theta: C.T @ moved(theta), right, 1e-13, 10 * right.size)
        alpha = alpha - moved(theta)
    return alpha
