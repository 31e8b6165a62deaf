"""Reference solutions of convex problems by a generic interior-point method."""

from __future__ import annotations

import warnings

import cvxpy
import numpy as np
import scipy.sparse as sp

from fmviz.engine.problem import Problem


def generic_threshold(M: np.ndarray, pairs: bool) -> float:
    """Return the largest ⟨M, W⟩ over positive semidefinite W with Σ_ij |w_ij| ≤ 1; of `pairs`, Σ_{i<j}."""
    d = len(M)
    W = cvxpy.Variable((d, d), PSD=True)
    size = cvxpy.abs(W)
    if pairs:
        size = cvxpy.multiply(np.triu(np.ones((d, d)), 1), size)
    generic = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.multiply(M, W))), [cvxpy.sum(size) <= 1.0])
    return float(generic.solve(solver=cvxpy.CLARABEL))


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
        "quantile_huber": lambda: _quantile_huber(f - y, *problem.loss.theta),
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


def _quantile_huber(residual: cvxpy.Expression, tau: float, delta: float) -> cvxpy.Expression:
    high, low = (cvxpy.huber(cvxpy.pos(side), delta) for side in (residual, -residual))
    return ((1.0 - tau) * high + tau * low) / (2.0 * delta)


def generic_prox(
    name: str, P: np.ndarray, strength: float, degree: int = 3, rho: float = 0.5, groups: tuple = ()
) -> np.ndarray:
    """Solve the operator's problem by a generic interior-point method."""
    Q = cvxpy.Variable(P.shape)
    penalty = {
        "l1": lambda: cvxpy.sum(cvxpy.abs(Q)),
        "l2": lambda: cvxpy.sum_squares(Q),
        "elastic_net": lambda: rho * cvxpy.sum(cvxpy.abs(Q)) + (1 - rho) * cvxpy.sum_squares(Q),
        "l21": lambda: cvxpy.sum(cvxpy.norm(Q, 2, axis=1)),
        "group": lambda: sum(np.sqrt(len(g)) * cvxpy.norm(Q[list(g)], "fro") for g in groups),
        "ti": lambda: cvxpy.sum([cvxpy.square(cvxpy.norm1(Q[:, s])) for s in range(P.shape[1])]),
        "cs": lambda: cvxpy.square(cvxpy.sum(cvxpy.norm(Q, 2, axis=1))),
        "ti_power": lambda: cvxpy.sum([cvxpy.power(cvxpy.norm1(Q[:, s]), degree) for s in range(P.shape[1])]),
        "cs_power": lambda: cvxpy.power(cvxpy.sum(cvxpy.norm(Q, 2, axis=1)), degree),
    }[name]()
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(Q - P) + strength * penalty))
    # Power cones are solved less accurately than quadratic ones.
    tol = 1e-9 if name.endswith("_power") else 1e-12
    problem.solve(solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
    return Q.value


def least_subgradient(G: np.ndarray, Q: np.ndarray, strength: float) -> float:
    """Return min ‖G − strength·Z Q‖_F over the Z whose Z Q are subgradients of Ω_* in Q."""
    d = Q.shape[0]
    S = Q @ Q.T
    Z = cvxpy.Variable((d, d), symmetric=True)
    fixed = [Z[i, j] == np.sign(S[i, j]) for i in range(d) for j in range(i) if S[i, j] != 0]
    program = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.norm(G - strength * Z @ Q, "fro")),
        [cvxpy.diag(Z) == 0, cvxpy.abs(Z) <= 1, *fixed],
    )
    program.solve(solver="CLARABEL")
    return float(program.value)
