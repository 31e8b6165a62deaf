"""The robust factorization machine: its model, both solvers, certificates, and caps found from the data."""

from __future__ import annotations

import warnings
from dataclasses import replace

import cvxpy
import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem, iterate
from small_data import assert_resumable

from fmviz.engine.certificates.stationarity import certify
from fmviz.engine.fit import Budget
from fmviz.engine.interactions.weights import pairs_of
from fmviz.engine.losses import LOSSES, Absolute, CappedHinge, CappedInsensitive, Insensitive
from fmviz.engine.losses.majoriser import Smoothed, smooth_part
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import IncrementalSVD, TwoStage
from fmviz.engine.solvers.incremental_svd import curvatures, updated
from fmviz.engine.starts.robust import Caps, estimate_caps


def planted(n=120, d=6, rank=2, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X, V = rng.normal(size=(n, d)), rng.normal(size=(d, rank))
    f = np.square(X @ V).sum(axis=1) + X @ rng.normal(size=d)
    outlier = rng.random(n) < share
    gross = rng.choice([-1.0, 1.0], n) * rng.uniform(3, 8, n) * f.std()
    return X, f + 0.1 * f.std() * rng.normal(size=n) + outlier * gross, V @ V.T, outlier


def build(
    loss=None, spectrum="capped", *, cap=0.5, rank=None, n=120, d=6, seed=0, sparse=False, **more
) -> Problem:
    X, y, _, _ = planted(n, d, seed=seed)
    if sparse:
        X = X * (np.random.default_rng(seed).random(X.shape) < 0.6)
    loss = CappedInsensitive(0.4, 3.0) if loss is None else loss
    given = {"lambda_w": 1e-3, "lambda_p": 0.05, "rank": d if rank is None else rank}
    return Problem.build(
        sp.csr_array(X) if sparse else X,
        np.where(y > np.median(y), 1.0, -1.0) if loss.task == "binary" else y,
        loss=loss,
        penalty="l2",
        model=RobustFM(spectrum, cap),
        **(given | more),
    )


def solve(problem: Problem, solver=None, epochs=40, tol=1e-7, **more):
    budget = Budget(epochs, tol=tol, certify_every=10**6)
    return list(iterate(problem, solver or TwoStage(), budget, rng=np.random.default_rng(0), **more))


def weights_of(result: Parameters) -> np.ndarray:
    return (result.P * result.multipliers) @ result.P.T


def generic(problem: Problem) -> float:
    """The convex problem without caps, by an interior-point method."""
    X, y, d = problem.design.matrix, problem.y, problem.design.n_features
    Z, w, b = cvxpy.Variable((d, d), PSD=True), cvxpy.Variable(d), cvxpy.Variable()
    f = (X[:, :, None] * X[:, None, :]).reshape(len(y), -1) @ cvxpy.vec(Z, order="C") + X @ w + b
    epsilon = problem.loss.settings.get("epsilon", 0.0)
    risk = cvxpy.sum(cvxpy.pos(cvxpy.abs(f - y) - epsilon)) / len(y)
    shrunk = cvxpy.trace(Z) if problem.model.spectrum == "trace" else cvxpy.sum_squares(Z)
    objective = risk + problem.lambda_w * cvxpy.sum_squares(w) + problem.lambda_p * shrunk
    settings = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        return cvxpy.Problem(cvxpy.Minimize(objective)).solve(solver="CLARABEL", **settings)


# ------------------------------------------------------------------------------------------------- the model


@pytest.mark.parametrize("sparse", [False, True])
def test_prediction_objective_and_pairs_are_those_of_z(sparse):
    problem = build(sparse=sparse)
    rng = np.random.default_rng(1)
    here = Parameters(rng.normal(size=(6, 6)), rng.normal(size=6), 0.3, coefficients=rng.random(6))
    Z, X = weights_of(here), problem.design.matrix
    X = X.toarray() if sparse else X
    f = np.array([0.3 + x @ here.w + x @ Z @ x for x in X])
    assert problem.predict(here) == pytest.approx(f, rel=1e-12)
    loss = np.minimum(np.maximum(np.abs(f - problem.y) - 0.4, 0.0), 3.0).mean()
    shrunk = np.minimum(np.linalg.eigvalsh(Z) ** 2, 0.5).sum()
    assert problem.objective(here) == pytest.approx(loss + 1e-3 * here.w @ here.w + 0.05 * shrunk, rel=1e-12)
    pairs = pairs_of(problem.model, here)
    assert pairs.block(slice(None), slice(None))[0][0, 1] == pytest.approx(2 * Z[0, 1], rel=1e-12)


def test_what_the_exact_solver_does_not_take_is_refused():
    assert TwoStage().why_not(build(LOSSES["logistic"])).code == "no_excess"
    with pytest.raises(ValueError, match="at most 61 features; there are 62"):
        TwoStage().on(build(d=62))


# ------------------------------------------------------------------------------------------- never a rise

RANDOM = [pytest.param(range(5), id="few"), pytest.param(range(5, 500), marks=pytest.mark.slow, id="500")]


@pytest.mark.parametrize("seeds", RANDOM)
def test_the_objective_never_rises_whatever_the_inner_accuracy(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        epsilon, cap = rng.uniform(0, 1), 10.0 ** rng.uniform(-1, 1)
        loss = CappedHinge(0.5 * epsilon, cap) if seed % 5 == 4 else CappedInsensitive(epsilon, cap)
        spectrum = ("capped", "squared", "trace")[seed % 3]
        d = int(rng.integers(2, 6))
        problem = build(
            loss,
            spectrum,
            cap=10.0 ** rng.uniform(-2, 1),
            n=40,
            d=d,
            seed=seed,
            rank=int(rng.integers(1, d + 1)),
        )
        exact = TwoStage(accuracy=10.0 ** rng.uniform(-6, -1))
        batch = IncrementalSVD(
            batch_size=8 * (1 + seed % 200), decay=1.0, smoothing=10.0 ** rng.uniform(-3, 0)
        )
        for solver in (exact, batch):
            method = solver.on(problem)
            start = problem.start(0.0, rng).replace(
                P=np.eye(d)[:, : problem.rank], coefficients=rng.random(problem.rank)
            )
            method.start(start, rng)
            # With smoothing the objective itself may rise by δ/2 a row.
            delta = method._smoothing.delta if solver is batch else 0.0
            value = problem.objective(method.parameters())
            smoothed = replace(problem, loss=Smoothed(loss, delta)) if delta else problem
            smooth = smoothed.objective(method.parameters())
            for _ in range(6):
                method.epoch()
                new = problem.objective(method.parameters())
                assert new <= value + 0.5 * delta + 1e-9 * value, (seed, solver)
                if delta and method._share > 1e-2:
                    before, smooth = smooth, smoothed.objective(method.parameters())
                    assert smooth <= before * (1 + 1e-12)
                value = new


def test_a_mini_batch_of_all_rows_makes_a_projected_gradient_step():
    for loss, spectrum in ((None, "capped"), (LOSSES["huber"], "trace"), (CappedHinge(), "squared")):
        problem = build(loss, spectrum)
        method = IncrementalSVD(batch_size=1000, smoothing=0.1).on(problem)
        method.start(
            problem.start(0.0, None).replace(P=np.eye(6), intercept=0.0, coefficients=np.ones(6)),
            np.random.default_rng(0),
        )
        X, y, lam, delta = problem.design.matrix, problem.y, problem.lambda_p, method._smoothing.delta
        kinks, half = problem.loss.majoriser, smooth_part(problem.loss)
        f = np.square(X).sum(axis=1)
        weights = np.full(len(y), 1 / len(y)) * (1.0 if kinks is None else kinks.weights(f, y, delta))
        in_Z, in_w = (half.mu() * bound for bound in curvatures(X, weights))
        slope = weights * half.derivative(f, y)
        w, bias = -X.T @ slope / (in_w + 2e-3), -slope.sum() / (in_w + 2e-3)
        slope = weights * half.derivative(f + X @ w + bias, y)
        pull = {"trace": lam * np.eye(6), "squared": 2 * lam * np.eye(6), "capped": np.zeros((6, 6))}[
            spectrum
        ]
        step = 1.0 / (in_Z + (0.0 if spectrum == "trace" else 2 * lam))
        values, vectors = np.linalg.eigh(np.eye(6) - step * ((X.T * slope) @ X + pull))
        method.epoch()
        assert weights_of(method.parameters()) == pytest.approx(
            (vectors * values.clip(0)) @ vectors.T, abs=1e-10
        )
        assert [*method.parameters().w, method.parameters().intercept] == pytest.approx([*w, bias], abs=1e-10)


@pytest.mark.parametrize("sparse", [False, True])
def test_mini_batches_lower_the_objective_and_bound_the_rank(sparse):
    problem = build(rank=2, n=200, sparse=sparse)
    snapshots = solve(problem, IncrementalSVD(batch_size=25), epochs=15)
    assert snapshots[-1].objective < 0.95 * snapshots[1].objective
    result = snapshots[-1].parameters
    assert result.P.shape == (6, 2)
    assert pytest.approx(np.diag((result.multipliers > 0).astype(float)), abs=1e-12) == result.P.T @ result.P


def test_the_incremental_decomposition_is_the_dense_one(rng):
    d, c, rank = 25, 4, 7
    P, values = np.linalg.qr(rng.normal(size=(d, 5)))[0], rng.random(5) + 0.5
    Z = (P * values) @ P.T
    for step in range(1000):
        A, signs = 0.3 * rng.normal(size=(d, c)), rng.choice([-1.0, 1.0], c)
        if step % 50 == 0:
            A = P @ rng.normal(size=(values.size, c))  # Nothing new.
        P, values = updated(P, 0.97 * values, A, signs, rank)
        result, vectors = np.linalg.eigh(0.97 * Z + (A * signs) @ A.T)
        kept = np.argsort(-result)[:rank]
        kept = kept[result[kept] > 0]
        Z = (vectors[:, kept] * result[kept]) @ vectors[:, kept].T
        assert values.size <= rank
    assert (P * values) @ P.T == pytest.approx(Z, abs=1e-12 * np.abs(Z).max())
    assert pytest.approx(np.eye(values.size), abs=1e-12) == P.T @ P


# --------------------------------------------------------------------------------------------- convex limits


@pytest.mark.sample(3)
@pytest.mark.parametrize("spectrum", ["squared", "trace"])
@pytest.mark.parametrize("loss", [Absolute(), Insensitive(0.4), CappedInsensitive(0.4, 1e12)], ids=repr)
def test_without_caps_a_generic_solver_agrees(loss, spectrum):
    problem = build(loss, spectrum, n=60, d=5)
    direct = solve(problem)[-1]
    assert direct.objective == pytest.approx(generic(problem), rel=1e-6)
    assert direct.certificate <= 1e-6


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "squared_hinge"])
def test_smooth_losses_reach_the_optimum(loss):
    solver = TwoStage() if loss in ("squared", "huber") else IncrementalSVD(batch_size=1000)
    end = solve(build(LOSSES[loss], "trace"), solver, epochs=20_000, tol=1e-9)[-1]
    assert end.status.converged
    assert end.certificate <= 1e-6


def test_the_certificate_is_0_at_a_stationary_point_alone():
    problem = build()
    end = solve(problem, epochs=100)[-1]
    assert end.status.converged
    assert end.certificate <= 1e-6
    assert problem.model.free(end.parameters.multipliers).any()
    here = end.parameters
    for moved in (
        here.replace(w=here.w * 1.05),
        here.replace(coefficients=here.multipliers * 0.98),
        here.replace(intercept=here.intercept + 0.05),
    ):
        assert certify(problem, moved) > 1e-4


def test_a_run_that_is_resumed_has_the_same_end():
    problem = build()
    for solver in (TwoStage(), IncrementalSVD(batch_size=40)):
        assert_resumable(problem, solver, Budget(8, tol=0.0, certify_every=100), close=1e-12)


# ----------------------------------------------------------------------------------------- caps from data


def test_caps_are_found_from_the_data():
    X, y, Z, outlier = planted(n=300, d=6, share=0.2)
    problem = build_problem(
        X,
        y,
        loss="capped",
        regularizer="l2",
        model="robust",
        rank=6,
        lambda_w=1e-6,
        lambda_p=1.0,
        lambda_sparse=0.0,
    )
    solver = TwoStage(accuracy=1e-6)
    rng = np.random.default_rng(0)
    result, start, _ = estimate_caps(problem, Caps(), solver, problem.start(0.0, rng), rng)
    *_, end = iterate(result, solver, Budget(3, report_every=None), start=start)
    assert int(result.model.free(end.parameters.multipliers).sum()) == 2
    assert np.linalg.norm(weights_of(end.parameters) - Z) < 0.1 * np.linalg.norm(Z)
    loss = result.loss
    aside = np.abs(result.predict(end.parameters) - y) > loss.epsilon + loss.cap
    assert 2 * (aside & outlier).sum() >= 0.9 * (aside.sum() + outlier.sum())
    given, *_ = estimate_caps(problem, Caps(0.1, 2.0, 0.3, 0.5), solver, start, rng)
    assert (given.loss, given.model.cap, given.lambda_p) == (CappedInsensitive(0.1, 2.0), 0.3, 0.5)
