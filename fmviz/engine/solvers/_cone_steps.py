"""Proximal steps of the robust machine, shared by its batch and mini-batch solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..losses import Loss
from ..losses.majoriser import Majoriser
from ..problem import Problem

# Rounds of the power iteration, and the largest number of rows whose products are precomputed.
_ROUNDS, _MOST_ROWS = 12, 2_048
_WIDE = 2_000


def tangent_weights(problem: Problem, f: np.ndarray, rows: Any, delta: float) -> np.ndarray:
    """Return c_n·2e_n of some rows at their predictions f: the weights of ½u² in the tangent."""
    c = problem.unit_weights[rows]
    loss = problem.loss.majoriser
    return c if loss is None else c * loss.weights(f, problem.y[rows], delta)


def smooth_part(loss: Loss) -> Loss:
    """Return ½u² of a loss with kinks, or the loss itself, which is smooth."""
    return loss if loss.majoriser is None else loss.majoriser.half_square


def smoothed_risk(problem: Problem, f: np.ndarray, delta: float) -> float:
    """Return (1/N) Σ c_n ℓ_δ(f_n, y_n)."""
    loss: Majoriser | None = problem.loss.majoriser
    values = problem.loss.value(f, problem.y) if loss is None else loss.value(f, problem.y, delta)
    return problem.mean(values)


def quadratic_forms(X: Any, Z: np.ndarray) -> np.ndarray:
    """Return x_nᵀZx_n for every row of X, shape (n,)."""
    right = np.asarray(X @ Z)
    if sp.issparse(X):
        return np.asarray(X.multiply(right).sum(axis=1)).ravel()
    return np.einsum("nj,nj->n", X, right)


def linear_gradient(problem: Problem, X: Any, slope: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the gradient in w and the bias of Σ_n slope_n f(x_n) + λ_w‖w‖²: 0 where not fitted."""
    in_w = np.asarray(X.T @ slope) + 2.0 * problem.lambda_w * w if problem.fit_linear else np.zeros(w.size)
    return in_w, float(slope.sum()) if problem.fit_intercept else 0.0


def curvatures(X: Any, weights: np.ndarray) -> tuple[float, float]:
    """Return bounds of the curvature of ½ Σ_n weights_n f_n² in Z, and in (w, b) together.

    They are the largest eigenvalues of the matrices √(a_n a_m) (x_n·x_m)² and, bounded by that of its
    absolute entries, √(a_n a_m) (1 + x_n·x_m). Both have entries of at least 0, so that the largest ratio of
    a power iteration from a positive start is an upper bound in every round (Collatz and Wielandt). For too
    many rows of too many features the trace is used.
    """
    root = np.sqrt(weights)
    n, d = X.shape
    if n <= _MOST_ROWS:
        products = X @ X.T
        products = products.toarray() if sp.issparse(products) else np.asarray(products)
        outer = root[:, None] * root
        return _largest(lambda u: (outer * products**2) @ u, n), _largest(
            lambda u: (outer * np.abs(1.0 + products)) @ u, n
        )
    lengths = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.square(X).sum(axis=1)
    linear = float(weights @ (1.0 + lengths))
    if d > _WIDE:
        return float(weights @ np.square(lengths)), linear

    def gram(u: np.ndarray) -> np.ndarray:
        scaled = root * u
        inner = X.T @ (sp.diags_array(scaled) @ X if sp.issparse(X) else scaled[:, None] * X)
        inner = inner.toarray() if sp.issparse(inner) else np.asarray(inner)
        return root * quadratic_forms(X, inner)

    return _largest(gram, n), linear


def _largest(product: Any, n: int) -> float:
    u = np.ones(n)
    bound = 0.0
    for _ in range(_ROUNDS):
        image = product(u)
        live = u > 0.0
        bound = float((image[live] / u[live]).max(initial=0.0))
        top = float(image.max(initial=0.0))
        if top == 0.0:
            return 0.0
        u = np.maximum(image / top, 1e-12)
    return bound
