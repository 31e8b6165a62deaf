r"""How far a quadratic regression is from its optimum: the duality gap, from W, w, b, X and y alone.

The objective F of `fmviz.engine.models.qr` is convex, with the Fenchel dual over α, shape (N,),

    D(α) = −(1/N) Σ_n c_n ℓ*(N α_n / c_n, y_n) − ‖Xᵀα‖² / (4 λ_w)

subject to A*α = ½ Xᵀdiag(α)X (zero diagonal) being a sum S + T with ‖S‖_op ≤ λ_tr and max|t_ij| ≤ λ̃, to
Σα = 0 where there is a bias, and to Xᵀα = 0 where there is a linear term with λ_w = 0. D(α) ≤ min F for
every such α, so F(here) − D(α) bounds how far `here` is above the optimum. At the optimum α is the slope
of the risk; elsewhere the slope is made feasible: corrected for the equalities, split, and scaled down.
Nothing is taken from a solver, and both bounds are measured on the split that is used.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .losses import evaluate
from .models.qr import pair_sums_transposed
from .problem import Problem
from .snapshot import Parameters
from .spectral import prox_trace_l1, spectral_norm

# Candidate scales, relative to the largest that is feasible: early in a run shorter ones are better, and a
# slope on the border of the conjugate's domain may be outside by rounding.
_SCALES = (1.0, 1.0 - 1e-13, 1.0 - 1e-10, 1.0 - 1e-7, 1.0 - 1e-4, 0.99, 0.9, 0.7, 0.5, 0.2, 0.05)


def relative_gap(problem: Problem, parameters: Parameters, thorough: bool = True) -> float:
    """Return (F − D)/F, from 0 at the optimum to 1: the objective is at most this part of itself too high.

    Every loss here is at least 0 and its infimum is 0, so that F ≥ D(0) = 0. With λ_tr = λ̃ = 0 no slope but
    A*α = 0 is feasible, and the gap is 1 unless the fit is perfect.
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
    c = np.ones(n) if problem.sample_weight is None else problem.sample_weight
    f = problem.predict(parameters)
    alpha = c * evaluate(problem.loss.derivative, f, problem.y, problem.loss_param) / n
    alpha = _balance(problem, alpha)
    gauge = _gauge(problem, parameters.weights, pair_sums_transposed(problem.design, alpha), thorough)
    scale = 1.0 / max(1.0, gauge)
    linear = 0.0
    if problem.fit_linear and problem.lambda_w > 0.0:
        linear = float(np.square(problem.design.transpose_dot(alpha)).sum()) / (4.0 * problem.lambda_w)
    counted = c > 0
    conjugate = problem.loss.conjugate
    assert conjugate is not None, "every loss with a quadratic regression has one"
    best = 0.0
    for s in _SCALES if scale > 0.0 else ():
        s *= scale
        values = evaluate(
            conjugate, s * alpha[counted] * n / c[counted], problem.y[counted], problem.loss_param
        )
        value = -float((c[counted] * values).sum()) / n - s * s * linear
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


def _gauge(problem: Problem, W: np.ndarray, G: np.ndarray, thorough: bool) -> float:
    """Return a t ≥ the least one for which G/t = S + T with ‖S‖_op ≤ λ_tr and max|t_ij| ≤ λ̃."""
    trace, entries = problem.lambda_p, problem.lambda_sparse
    if trace == 0.0 and entries == 0.0:
        return float("inf") if G.any() else 0.0
    if trace == 0.0:
        return float(np.abs(G).max()) / entries
    if entries == 0.0:
        return spectral_norm(G) / trace
    # Any split gives a bound; a good one comes from the operator of the sum at W, whose solution is W itself
    # at the optimum: W − ηG = W + S + T there. η weighs W, which shows the structure, against G.
    best = min(float(np.abs(G).max()) / entries, spectral_norm(G) / trace)
    if best <= 1.0:
        return best
    eta = (float(np.abs(W).max()) or 1.0) / float(np.abs(G).max())
    S = None
    for most in (50, 50, 100, 200, 600) if thorough else (30,):
        found = prox_trace_l1(W - eta * G, eta * trace, eta * entries, S, rtol=1e-13, most=most)
        S = found.S
        part = S / eta
        rest = -G - part
        before, clipped = best, np.clip(rest, -entries, entries)
        best = min(
            best,
            max(spectral_norm(part) / trace, float(np.abs(rest).max()) / entries),
            spectral_norm(G + clipped) / trace,
        )
        # Far from the optimum no split is much better than the first good one.
        if best <= 1.0 or found.rounds < most or (most > 50 and before - best < 0.2 * (before - 1.0)):
            break
    return best
