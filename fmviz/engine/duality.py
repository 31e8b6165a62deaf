r"""How far a model that is convex in W is from its optimum: the duality gap, from parameters, X and y alone.

The objectives F of `models.quadratic` and `models.convex` are convex, with the Fenchel
dual over α, shape (N,),

    D(α) = −(1/N) Σ_n c_n ℓ*(N α_n / c_n, y_n) − ‖Xᵀα‖² / (4 λ_w)

subject to A*α being a sum S + T with ‖S‖_op ≤ λ_tr and max|t_ij| ≤ λ (T = 0 in the convex factorization
machine), to Σα = 0 where there is a bias, and to Xᵀα = 0 where there is a linear term with λ_w = 0. A*α is
the gradient of Σ_n α_n f(x_n) in W: Xᵀdiag(α)X where f sees the diagonal of W, else half of it with a zero
diagonal. D(α) ≤ min F for every such α, so F(here) − D(α) bounds how far `here` is above the optimum. At the
optimum α is the slope of the risk; elsewhere the slope is made feasible: corrected for the equalities, and
scaled down by `Model.gauge`. Nothing is taken from a solver.

Without a penalty on W, λ_tr = λ = 0, hardly any α is feasible. There the minimum is taken over the W of trace
norm at most r = ‖W‖_tr of the parameters: any α is, and D(α) has −r‖A*α‖_op in place of the constraint.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .parameters import Parameters
from .problem import Problem

# Candidate scales, relative to the largest that is feasible: early in a run shorter ones are better, and a
# slope on the border of the conjugate's domain may be outside by rounding.
_SCALES = (1.0, 1.0 - 1e-13, 1.0 - 1e-10, 1.0 - 1e-7, 1.0 - 1e-4, 0.99, 0.9, 0.7, 0.5, 0.2, 0.05)


def relative_gap(problem: Problem, parameters: Parameters, thorough: bool = True) -> float:
    """Return (F − D)/F, from 0 at the optimum to 1: the objective is at most this part of itself too high.

    Every loss here is at least 0 and its infimum is 0, so that F ≥ D(0) = 0. With λ_tr = λ = 0 that is said
    of all W of no larger trace norm.
    """
    objective = problem.objective(parameters)
    if not np.isfinite(objective):
        return float("inf")
    if objective <= 0.0:
        return 0.0
    return float(max(0.0, objective - dual_value(problem, parameters, thorough)) / objective)


def dual_value(problem: Problem, parameters: Parameters, thorough: bool = True) -> float:
    """Return the best D(α) found from the slope of the risk at the parameters; at least 0."""
    n = problem.design.n_samples
    c = problem.unit_weights
    f = problem.predict(parameters)
    alpha = c * problem.loss.derivative(f, problem.y) / n
    alpha = _balance(problem, alpha)
    strengths = problem.lambda_p, problem.lambda_sparse
    free = not any(strengths)
    gauge = problem.model.gauge(
        problem.design, parameters, alpha, (1.0, 0.0) if free else strengths, thorough
    )
    scale = 1.0 if free else 1.0 / max(1.0, gauge)
    ball = gauge * problem.model.shrinkage(parameters) if free else 0.0
    linear = 0.0
    if problem.fit_linear and problem.lambda_w > 0.0:
        linear = float(np.square(problem.design.transpose_dot(alpha)).sum()) / (4.0 * problem.lambda_w)
    counted = c > 0
    best = 0.0
    for s in _SCALES if scale > 0.0 else ():
        s *= scale
        values = problem.loss.conjugate(s * alpha[counted] * n / c[counted], problem.y[counted])
        if values is None:
            # Without a conjugate nothing is known but that losses are at least 0.
            break
        value = -float((c[counted] * values).sum()) / n - s * s * linear - s * ball
        best = max(best, value)
    return best


def _balance(problem: Problem, alpha: np.ndarray) -> np.ndarray:
    """Return α with Σα = 0 and Xᵀα = 0 as far as the problem asks.

    The least correction in the norm Σ δ_n²/|α_n|: entries move in proportion to themselves, so that those at
    the border 0 of a conjugate's domain stay there.
    """
    columns = []
    if problem.fit_intercept:
        columns.append(np.ones((alpha.size, 1)))
    if problem.fit_linear and problem.lambda_w == 0.0:
        X = problem.design.matrix
        columns.append(X.toarray() if sp.issparse(X) else np.asarray(X))
    if not columns:
        return alpha
    C = np.hstack(columns)
    root = np.sqrt(np.abs(alpha))
    # Twice: the second round removes the rounding of the first.
    for _ in range(2):
        scaled = root[:, None] * C
        ratio = np.divide(alpha, root, out=np.zeros_like(alpha), where=root > 0)
        fitted = scaled @ np.linalg.lstsq(scaled, ratio, rcond=None)[0]
        alpha = alpha - root * fitted
    return alpha
