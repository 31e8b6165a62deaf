r"""λ_max of a factorization machine: the strength above which P = 0 is a minimum.

At the linear fit (the minimum over w and the bias with P = 0), let G, shape (d, d), be the gradient of the
risk in the pair weights, with zero diagonal. Factors P change the objective by

    ½ tr(PᵀGP) + λ_p‖P‖²_F + λ Ω(P) = −⟨M, W⟩ + λ Ω(P) + O(‖P‖⁴),   M = −½G − λ_p I,   W = PPᵀ,

and for a convex loss by at least the first three terms, since f is linear in W. Hence P = 0 is a global
minimum if ⟨M, W⟩ ≤ λ Ω(P) for all P, and otherwise a saddle point: the objective decreases along √τ·P for
small τ. If Ω(P) ≥ ω(W) with equality for a single column, the smallest such λ lies between max_v vᵀMv /
ω(vvᵀ) and the same maximum over all positive semidefinite W:

=====================  ===================  ===================================================
ω(W)                   Ω                    λ_max
=====================  ===================  ===================================================
tr W                   ℓ2², TI by rows      −λ_min(G)/2 − λ_p, exactly
Σ_ij |w_ij|            TI, CS               between (max|G_ij| − 2λ_p)/4 and max|G_ij|/2
Σ_{i<j} |w_ij|         Ω_TI, Ω_CS, Ω_*      between max|G_ij| − 2λ_p and max|G_ij|
=====================  ===================  ===================================================

and 0 if λ_p ≥ −λ_min(G)/2. The upper bounds are tightened by a positive semidefinite S: since ⟨S, W⟩ ≥ 0,
⟨M, W⟩ ≤ ⟨M + S, W⟩ ≤ max|m_ij + s_ij| · Σ|w_ij|. The best S solves a semidefinite program, the dual of the
relaxation of sparse principal components (d'Aspremont, El Ghaoui, Jordan and Lanckriet 2007).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..blas import one_thread
from ..errors import WhyNot
from ..fit import Budget, Fit
from ..linalg.descent_direction import descent_direction, pair_starts
from ..linalg.lowrank import DENSE, PairGradient
from ..models import get_model
from ..parameters import Parameters
from ..penalties import get_penalty
from ..problem import Problem
from ..solvers import get_solver

# The maximum number of features for the semidefinite program, whose steps are eigendecompositions.
SMALL = 100
_SDP_STEPS, _SDP_EVERY, _SDP_TOL = 400, 20, 1e-3
_LINEAR = Budget(epochs=500, tol=1e-9, report_every=None)
_ROUGHLY_LINEAR = Budget(epochs=100, tol=1e-4, report_every=None)
_ANDERSON = 5
_BY_LBFGS = {"inner": "lbfgs", "inner_epochs": 50}
_LANCZOS_TOL = 1e-6


@dataclass(frozen=True, eq=False)
class ZeroThreshold:
    """An interval that contains λ_max, the strength above which P = 0 is a minimum.

    Attributes
    ----------
    lower : float
        Just below this strength, P = 0 is a saddle point with the descent direction `direction`. 0 if there
        is no such λ > 0.
    upper : float
        The strength at which P = 0 is proved to be a minimum, global for a convex loss.
    direction : (d,) ndarray or None
        A unit vector v: for λ < `lower`, the objective decreases along P = √τ·v for small τ.
    dual : (d, d) ndarray or None
        The S that proves `upper`; None if a simple bound proves it.
    loose : bool
        Whether only simple bounds were used: on request, or for more than 100 features.
    linear : Parameters
        The linear fit, with P = 0.
    """

    lower: float
    upper: float
    direction: np.ndarray | None
    dual: np.ndarray | None
    loose: bool
    linear: Parameters

    @property
    def exact(self) -> bool:
        """Whether both ends agree to rounding."""
        return self.upper <= self.lower * (1.0 + 1e-9)


def why_no_threshold(problem: Problem) -> WhyNot | None:
    """Return why a problem has no λ_max, with an alternative, or None; depends only on y of the data."""
    if (m := problem.n_machines) is not None:
        return WhyNot("several_outputs", f"y has {m} outputs with a λ_max each: pass one at a time.")
    return problem.model.no_threshold or problem.penalty.why_no_threshold()


@one_thread()
def zero_threshold(problem: Problem, linear: Parameters | None = None, tight: bool = True) -> ZeroThreshold:
    """Return an interval that contains λ_max; the λ of the problem is ignored.

    Parameters
    ----------
    problem : Problem
        The problem of a second-order factorization machine.
    linear : Parameters, optional
        The linear fit, if known.
    tight : bool
        Whether to tighten the interval by the semidefinite program, which takes up to a second.

    Raises
    ------
    ValueError
        If there is no λ_max for the model and the penalty, with an alternative.
    """
    if (reason := why_no_threshold(problem)) is not None:
        raise ValueError(reason)
    linear = linear_fit(problem) if linear is None else linear
    gradient = gradient_at(problem, linear)
    if problem.design.n_features <= DENSE:
        A = -gradient.matrix
        return _of_dense(problem, linear, A, tight and len(A) <= SMALL)
    return _of_operator(problem, linear, gradient)


def gradient_at(problem: Problem, linear: Parameters) -> PairGradient:
    """Return ½G, the gradient of the risk in a symmetric W with zero diagonal, at the linear fit."""
    return PairGradient(problem.design, problem.slope(problem.predict(linear)), diagonal=False)


@one_thread()
def linear_fit(problem: Problem, rough: bool = False, start: Parameters | None = None) -> Parameters:
    """Return the minimum over w and the bias with P = 0, regardless of P and its strengths in the problem.

    With `rough`, it is the result of some unit-free sweeps of coordinate descent: accurate to about four
    digits, and fast, especially from a close `start`.
    """
    if problem.n_machines is not None:
        return problem.joined(problem.by_machine(linear_fit, rough, start))
    smooth = replace(problem, model=get_model("fm"), penalty=get_penalty("l2"), rank=1)
    smooth = smooth.at(lambda_p=0.0, lambda_sparse=0.0)
    parameters = smooth.start(0.0, np.random.default_rng(0))
    if start is not None:
        parameters = parameters.replace(w=start.w, intercept=start.intercept)
    if problem.fit_linear or problem.fit_intercept:
        if rough and problem.loss.mu() is not None:
            # Collinear features, such as all categories of an attribute with a bias, need many sweeps
            # without extrapolation.
            sweeps = get_solver("pcd", {"anderson": _ANDERSON})
            sweeps.unit_free = True
            fit = Fit.of(smooth, sweeps, _ROUGHLY_LINEAR, start=parameters)
        else:
            solver = get_solver("lbfgs") if problem.loss.smooth else get_solver("reweighted", _BY_LBFGS)
            fit = Fit.of(smooth, solver, _LINEAR, start=parameters)
        parameters = fit.end().parameters
    return problem.start(0.0, np.random.default_rng(0)).replace(
        w=parameters.w, intercept=parameters.intercept
    )


def _of_dense(problem: Problem, linear: Parameters, A: np.ndarray, tight: bool) -> ZeroThreshold:
    """Return the threshold of A = −½G, shape (d, d)."""
    values, vectors = np.linalg.eigh(A)
    spectral = float(values[-1]) - problem.lambda_p
    kind = problem.penalty.in_weights
    if spectral <= 0.0 or not A.any():
        return ZeroThreshold(0.0, 0.0, None, None, False, linear)
    if kind == "trace":
        return ZeroThreshold(spectral, spectral, vectors[:, -1], None, False, linear)
    pairs = kind == "pairs"
    largest = float(np.abs(A).max())
    upper = 2.0 * largest if pairs else min(largest, spectral)
    starts = pair_starts(A)
    dual = None
    if tight and not (pairs and problem.lambda_p == 0.0):
        bound, dual, W = _relaxed(A / largest, problem.lambda_p / largest, pairs)
        if bound * largest < upper:
            upper, dual = bound * largest, dual * largest
        else:
            dual = None
        starts += _rounded(W)
    directions = [descent_direction(A, problem.lambda_p, pairs, start) for start in starts]
    lower, v = max(directions, key=lambda pair: pair[0])
    if lower <= 0.0:
        return ZeroThreshold(0.0, upper, None, dual, not tight, linear)
    return ZeroThreshold(
        float(min(lower, upper)), upper, v / np.linalg.norm(v), dual, not (tight or lower >= upper), linear
    )


def _of_operator(problem: Problem, linear: Parameters, gradient: PairGradient) -> ZeroThreshold:
    """Return the threshold from the simple bounds, using only products with G."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    d = problem.design.n_features
    largest, i, j = gradient.largest_pair()
    operator = LinearOperator((d, d), matvec=lambda u: -gradient.dot(np.ravel(u)), dtype=np.float64)
    start = np.random.default_rng(0).normal(size=d)
    spectral, vector = float("inf"), None
    if largest > 0.0:
        try:
            values, vectors = eigsh(operator, 1, which="LA", v0=start, tol=_LANCZOS_TOL)
            vector = vectors[:, 0]
            residual = np.linalg.norm(operator.matvec(vector) - values[0] * vector)
            spectral = float(values[0] + residual) - problem.lambda_p
        except ArpackNoConvergence:
            pass
    if largest == 0.0 or spectral <= 0.0:
        return ZeroThreshold(0.0, 0.0, None, None, False, linear)
    kind = problem.penalty.in_weights
    if kind == "trace":
        exact = np.isfinite(spectral)
        lower = float(values[0]) - problem.lambda_p if exact else 0.0
        return ZeroThreshold(max(lower, 0.0), spectral, vector, None, not exact, linear)
    pair = np.zeros(d)
    unit = np.zeros(d)
    unit[i] = 1.0
    pair[i], pair[j] = 1.0, -np.sign(gradient.dot(unit)[j])
    upper = largest if kind == "pairs" else min(0.5 * largest, spectral)
    lower = (largest - 2.0 * problem.lambda_p) * (1.0 if kind == "pairs" else 0.25)
    lower = min(max(lower, 0.0), upper)
    return ZeroThreshold(lower, upper, pair / np.sqrt(2.0) if lower else None, None, lower < upper, linear)


def _rounded(W: np.ndarray) -> list[np.ndarray]:
    """Round a relaxed W to columns: its eigenvectors and a few draws of covariance W."""
    values, vectors = np.linalg.eigh(W)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = root @ np.random.default_rng(0).normal(size=(W.shape[0], 8))
    return [v for v in np.hstack([vectors[:, -4:], draws]).T if v.any()]


def _relaxed(A: np.ndarray, lambda_p: float, pairs: bool) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the smallest bound found, the S that proves it, and the W that attains it in the limit.

    Alternating directions on max ⟨M, W⟩ over positive semidefinite W with ω(W) ≤ 1. The S of every iterate is
    positive semidefinite and proves a bound.
    """
    d = len(A)
    M = A - lambda_p * np.eye(d)
    off = ~np.eye(d, dtype=bool)
    W, U = np.zeros((d, d)), np.zeros((d, d))
    rho = 1.0
    best, proof = np.inf, np.zeros((d, d))
    for step in range(1, _SDP_STEPS + 1):
        Y = _in_ball(W - U + M / rho, pairs, off)
        values, vectors = np.linalg.eigh(Y + U)
        last = W
        W = (vectors * np.maximum(values, 0.0)) @ vectors.T
        U = (vectors * np.minimum(values, 0.0)) @ vectors.T
        if step % _SDP_EVERY == 0:
            bound, S = _bound(M, -rho * U, lambda_p, pairs, off)
            if bound < best:
                best, proof = bound, S
            omega = (0.5 * np.abs(W[off]).sum()) if pairs else np.abs(W).sum()
            if omega > 0.0 and best <= (1.0 + _SDP_TOL) * float((M * W).sum()) / omega:
                break
            primal, dual = np.linalg.norm(Y - W), rho * np.linalg.norm(W - last)
            if primal > 10.0 * dual or dual > 10.0 * primal:
                factor = 2.0 if primal > dual else 0.5
                rho, U = rho * factor, U / factor
    return best, proof, W


def _in_ball(Y: np.ndarray, pairs: bool, off: np.ndarray) -> np.ndarray:
    """Return the projection onto ω ≤ 1 with a non-negative diagonal."""
    Y = np.where(off, Y, np.maximum(Y, 0.0))
    entries = np.abs(Y[off] if pairs else Y.ravel())
    radius = 2.0 if pairs else 1.0
    if entries.sum() <= radius:
        return Y
    ordered = -np.sort(-entries)
    excess = (np.cumsum(ordered) - radius) / np.arange(1, ordered.size + 1)
    cut = excess[np.flatnonzero(ordered > excess)[-1]]
    shrunk = np.sign(Y) * np.maximum(np.abs(Y) - cut, 0.0)
    return np.where(off, shrunk, Y) if pairs else shrunk


def _bound(
    M: np.ndarray, S: np.ndarray, lambda_p: float, pairs: bool, off: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the bound proved by a positive semidefinite S, made feasible if necessary, and that S."""
    if pairs:
        # The diagonal of W is free: M + S must not exceed 0 there.
        diagonal = np.maximum(S.diagonal(), 1e-300)
        scale = np.sqrt(np.minimum(1.0, lambda_p / diagonal))
        S = scale[:, None] * S * scale
        return 2.0 * float(np.abs((M + S)[off]).max(initial=0.0)), S
    total = M + S
    return float(max(np.abs(total[off]).max(initial=0.0), total.diagonal().max())), S
