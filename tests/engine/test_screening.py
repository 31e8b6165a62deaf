"""Passing over zeros and sweeping over the live entries alone change the time, not the result."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import slow_fm

from fmviz.datasets import make_sparse_interactions
from fmviz.engine.certificate import stationarity
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.losses import evaluate
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import get_solver
from fmviz.engine.solvers.pcd import PCD

X, Y, _ = make_sparse_interactions(60, 16, 2, 4, random_state=0)


def problem(loss: str = "squared", regularizer: str = "ti", lam: float = 0.05, **settings) -> Problem:
    return Problem.build(
        X,
        Y / Y.std() if loss in ("squared", "huber") else np.sign(Y),
        loss=loss,
        regularizer=regularizer,
        rank=4,
        lambda_w=0.01,
        lambda_p=0.01,
        lambda_sparse=lam,
        **settings,
    )


def started(of: Problem, **settings) -> PCD:
    rng = np.random.default_rng(0)
    method = get_solver("pcd")(of, **settings)
    method.start(of.start(0.3, rng), rng)
    return method


def without_screen(of: Problem) -> PCD:
    method = started(of)
    # An infinite norm bounds nothing, so that every entry is looked at.
    method._screen = method._screen._replace(norms=np.full(X.shape[1], np.inf))
    return method


@pytest.mark.parametrize("regularizer", ["ti", "l1", "omega_ti"])
@pytest.mark.parametrize(
    ("loss", "weighted"),
    [("squared", False), ("squared", True), ("logistic", True), ("huber", False), ("squared_hinge", False)],
)
def test_entries_that_are_passed_over_would_have_stayed(loss, weighted, regularizer):
    weights = np.linspace(0.0, 2.0, Y.size) if weighted else None
    of = problem(loss, regularizer, sample_weight=weights)
    quick, slow = started(of), without_screen(of)
    passed = 0
    for _ in range(60):
        marks = quick._screen.marks.copy()
        quick.epoch()
        slow.epoch()
        passed += int((marks == quick._screen.marks).sum())
        ours, plain = quick.parameters(), slow.parameters()
        assert ((ours.P != 0) == (plain.P != 0)).all()
        assert pytest.approx(plain.P, abs=1e-9) == ours.P
    assert np.count_nonzero(ours.P == 0) > 10
    assert passed > 100


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_many_epochs_equal_the_oracle(loss):
    of = problem(loss, fit_linear=False, fit_intercept=False)
    method = started(of)
    P = method.parameters().P
    for _ in range(8):
        method.epoch()
        P = slow_fm.pcd_epoch(X, of.y, np.zeros(20), P, 0.0, loss=loss, name="ti", lam_p=0.01, lam=0.05)
        assert ((method.parameters().P != 0) == (P != 0)).all()
    assert pytest.approx(P, abs=1e-10) == method.parameters().P


def test_nudged_slopes_stay_right():
    of = problem("logistic", lam=1e-4)
    method = started(of)
    for _ in range(method.refresh_every):
        method.epoch()
        exact = evaluate(of.loss.derivative, method._f, of.y, 0.0)
        assert (np.abs(method._slope - exact) <= 1e-13 * np.abs(exact)).all()


def test_a_dead_component_stays_dead():
    of = problem()
    rng = np.random.default_rng(0)
    start = of.start(0.3, rng)
    start.P[:, 1] = 0.0
    method = get_solver("pcd")(of)
    method.start(start, rng)
    for _ in range(3):
        method.epoch()
    assert not method.parameters().P[:, 1].any()
    assert method.parameters().P[:, 0].any()


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("sparse", [False, True])
def test_active_sweeps_end_at_the_same_point_in_fewer_epochs(loss, sparse):
    of = problem(loss, lam=0.02)
    if sparse:
        from scipy.sparse import csr_array

        of = Problem.build(
            csr_array(X),
            of.y,
            loss=loss,
            regularizer="ti",
            rank=4,
            lambda_w=0.01,
            lambda_p=0.01,
            lambda_sparse=0.02,
        )
    ends = {}
    for most in (0, 10):
        *_, ends[most] = iterate(
            of,
            "pcd",
            Budget(20_000, tol=1e-11, report_every=2**31),
            rng=np.random.default_rng(0),
            init_scale=0.3,
            active_sweeps=most,
        )
        assert ends[most].status.converged
        assert stationarity(of, ends[most].parameters) < 1e-7
    plain, active = ends[0], ends[10]
    assert active.objective == pytest.approx(plain.objective, rel=1e-8)
    assert ((active.parameters.P != 0) == (plain.parameters.P != 0)).all()
    assert active.epoch < 0.7 * plain.epoch


def test_active_sweeps_wait_until_the_zeros_are_settled():
    # From a dense start the first sweep kills entries, so that the first epoch is the paper's.
    of = problem()
    plain, active = started(of), started(of, active_sweeps=10)
    plain.epoch()
    active.epoch()
    assert np.array_equal(plain.parameters().P, active.parameters().P)
