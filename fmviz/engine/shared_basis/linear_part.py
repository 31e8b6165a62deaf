"""Alternating fits of the linear part and the output layer, for a wide X."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..problem import Problem
from .output_layer import OutputLayer, Risk, is_wide

# The most rounds of a refit, and of iterations on the linear weights in each.
_ROUNDS, _STEPS = 20, 100


def fit_linear_part(problem: Problem, F: np.ndarray, w: np.ndarray, tol: float) -> np.ndarray:
    """Return the best linear weights, shape (d, m), for an offset F of predictions, by L-BFGS from w."""
    from scipy.optimize import minimize

    risk, design = Risk(problem), problem.design

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        W = x.reshape(w.shape)
        value, slopes = risk.value_and_slopes(F + design.dot(W))
        gradient = design.transpose_dot(slopes) + 2.0 * problem.lambda_w * W
        return value + problem.lambda_w * float(x @ x), gradient.ravel()

    options = {"maxiter": _STEPS, "ftol": 0.1 * tol, "gtol": 0.0}
    result = minimize(value_and_gradient, w.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(result.x).reshape(w.shape)


def refit_output_layer(
    problem: Problem,
    activations: np.ndarray,
    T: np.ndarray,
    w: np.ndarray,
    refit: Callable[[OutputLayer, np.ndarray], np.ndarray],
    tol: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Refit Θ and the linear weights of a wide X, shape (d, m).

    Parameters
    ----------
    problem : Problem
        The problem, whose bases are given by their activations.
    activations : (N, k) ndarray
        Φ.
    T : (q, m) ndarray
        The initial Θ; without rows for a wide X.
    w : (d, m) ndarray
        The initial weights of a wide X; returned unchanged where X is not wide.
    refit : callable
        ``refit(layer, T)`` returns Θ refitted.
    tol : float
        Rounds end once one lowers the objective by less than this share of it.
    """
    if not is_wide(problem):
        return refit(OutputLayer(problem, activations), T), w
    before = np.inf
    for _ in range(_ROUNDS):
        layer = OutputLayer(problem, activations, problem.design.dot(w))
        if T.size:
            T = refit(layer, T)
        w = fit_linear_part(problem, layer.Z @ T, w, tol)
        here = OutputLayer(problem, activations, problem.design.dot(w))
        now = here.objective(T) + problem.lambda_w * float(np.square(w).sum())
        if before - now <= tol * abs(now):
            break
        before = now
    return T, w
