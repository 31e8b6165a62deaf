"""Reference implementations for a shared basis: kernels by loops, and ℓ1 as a convex matrix problem."""

from __future__ import annotations

import warnings

import cvxpy
import numpy as np

from fmviz.engine.problem import Problem

from . import slow_kernels


def brute_force_value(X: np.ndarray, slopes: np.ndarray, h: np.ndarray, diagonal: bool) -> float:
    """Return Σ_n slope_n σ(h, x_n)."""
    kernel = slow_kernels.polynomial if diagonal else slow_kernels.anova
    return sum(slope * kernel(h, x, 2) for x, slope in zip(X, slopes, strict=True))


def l1_optimum(problem: Problem) -> float:
    """Return the least objective of multi-class logistic loss with λ Σ_c ‖W_c‖_*, no linear weights."""
    X = np.asarray(problem.design.matrix)
    n, d = X.shape
    m = problem.target.n_outputs
    products = (X[:, :, None] * X[:, None, :]).reshape(n, -1)
    if problem.model.settings["kernel"] == "anova":
        products *= np.triu(np.ones((d, d)), 1).ravel()
    ups = [cvxpy.Variable((d, d), PSD=True) for _ in range(m)]
    downs = [cvxpy.Variable((d, d), PSD=True) for _ in range(m)]
    bias = cvxpy.Variable(m)
    scores = [products @ cvxpy.vec(a - b, order="C") for a, b in zip(ups, downs, strict=True)]
    F = cvxpy.vstack(scores).T + cvxpy.reshape(bias, (1, m), order="C")
    own = problem.y.astype(int)
    picked = cvxpy.sum(cvxpy.multiply(np.eye(m)[own], F), axis=1)
    risk = cvxpy.sum(cvxpy.log_sum_exp(F, axis=1) - picked) / n
    norm = sum(cvxpy.trace(a) + cvxpy.trace(b) for a, b in zip(ups, downs, strict=True))
    generic = cvxpy.Problem(cvxpy.Minimize(risk + problem.lambda_sparse * norm))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        return generic.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
