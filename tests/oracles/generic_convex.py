"""The optimum of a model that is convex in W, by a generic interior-point method."""

from __future__ import annotations

import warnings

import cvxpy
import numpy as np
import scipy.sparse as sp

from fmviz.engine.problem import Problem


def generic_optimum(problem: Problem, diagonal: bool = False) -> float:
    """Return the least objective over all symmetric W; with `diagonal` f(x) is b + ⟨w, x⟩ + xᵀWx."""
    X = problem.design.matrix
    X = X.toarray() if sp.issparse(X) else X
    n, d = X.shape
    W, w, b = cvxpy.Variable((d, d), symmetric=True), cvxpy.Variable(d), cvxpy.Variable()
    pairs = X[:, :, None] * X[:, None, :] * (1.0 if diagonal else np.triu(np.ones((d, d)), 1))
    f = pairs.reshape(n, -1) @ cvxpy.vec(W, order="C")
    f = f + (X @ w if problem.fit_linear else 0) + (b if problem.fit_intercept else 0)
    y, c = problem.y, np.ones(n) if problem.sample_weight is None else problem.sample_weight
    risk = {
        "squared": lambda: 0.5 * cvxpy.square(f - y),
        "logistic": lambda: cvxpy.logistic(-cvxpy.multiply(y, f)),
        "squared_hinge": lambda: cvxpy.square(cvxpy.pos(1 - cvxpy.multiply(y, f))),
        "huber": lambda: 0.5 * cvxpy.huber(f - y, *problem.loss.theta),
    }[problem.loss.name]()
    objective = c @ risk / n + problem.lambda_w * cvxpy.sum_squares(w)
    # ‖W‖_tr of a symmetric W is the least tr(A + B) over W = A − B, both positive semidefinite.
    A, B = cvxpy.Variable((d, d), PSD=True), cvxpy.Variable((d, d), PSD=True)
    if problem.lambda_p:
        objective = objective + problem.lambda_p * cvxpy.trace(A + B)
    objective = objective + problem.lambda_sparse * cvxpy.sum(cvxpy.abs(W))
    generic = cvxpy.Problem(cvxpy.Minimize(objective), [W == A - B] if problem.lambda_p else [])
    with warnings.catch_warnings():
        # On some processors rounding stops it short of 1e-9, of which it warns; callers compare to 1e-6.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        return generic.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
