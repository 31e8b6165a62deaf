"""Columns of P at 0: a saddle that sweeps never leave, and the option that does."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem, iterate
from small_data import assert_resumable, same_iterates

from fmviz.engine.fit import Budget
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import get_penalty
from fmviz.engine.problem import Problem

TWO_PAIRS = {"rank": 3, "fit_linear": False, "fit_intercept": False}


def two_pairs(n: int = 200, d: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Return data in which the products of the first two and of the next two features count."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d))
    return X, 2.0 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + 0.1 * rng.normal(size=n)


def problem_of(layout: str = "dense", regularizer: str = "ti", loss: str = "squared", **more) -> Problem:
    X, y = two_pairs()
    if layout == "pairs":
        rng = np.random.default_rng(0)
        first, second = rng.integers(0, 6, 200), rng.integers(6, 12, 200)
        rows = np.repeat(np.arange(200), 2)
        X = sp.csr_array((np.ones(400), (rows, np.column_stack([first, second]).ravel())), shape=(200, 12))
        y = 1.0 * (first % 3 == second % 3) - 0.3
    if loss in ("logistic", "squared_hinge"):
        y = np.where(y > 0.0, 1.0, -1.0)
    X = sp.csr_array(X) if layout == "sparse" else X
    strength = 0.002 if layout == "pairs" else 0.02
    return build_problem(
        X,
        y,
        loss=loss,
        regularizer=regularizer,
        **({"lambda_p": strength, "lambda_sparse": strength} | TWO_PAIRS | more),
    )


def zeros(problem: Problem) -> Parameters:
    return Parameters(np.zeros((problem.design.n_features, problem.rank)), np.zeros(12), 0.0)


def run(problem: Problem, epochs: int = 500, tol: float = 1e-6, seed: int = 0, **own):
    start = own.pop("start", zeros(problem))
    rng = np.random.default_rng(seed)
    return list(iterate(problem, "pcd", Budget(epochs, tol=tol), start=start, rng=rng, **own))


@pytest.mark.parametrize(
    ("layout", "regularizer", "loss"),
    [
        ("dense", "ti", "squared"),
        ("sparse", "ti", "squared"),
        ("pairs", "ti", "squared"),
        ("dense", "omega_ti", "squared"),
        ("dense", "l2", "squared"),
        ("dense", "ti", "huber"),
        ("dense", "ti", "logistic"),
        ("pairs", "ti", "squared_hinge"),
    ],
)
def test_what_is_stuck_at_zero_gets_away(layout, regularizer, loss):
    problem = problem_of(layout, regularizer, loss)
    stuck, free = run(problem)[-1], run(problem, revive=True)
    assert stuck.status.converged
    assert not stuck.parameters.P.any()
    assert stuck.certificate == 0.0
    objectives = [snapshot.objective for snapshot in free]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(objectives))
    assert objectives[-1] < 0.95 * stuck.objective
    assert free[-1].status.converged
    assert free[-1].certificate <= 1e-6


def test_a_dead_column_takes_up_what_the_others_left():
    problem = problem_of()
    start = zeros(problem)
    start.P[:2, 0] = 1.0  # the first pair alone
    stuck, free = (run(problem, start=start, **own)[-1] for own in ({}, {"revive": True}))
    assert not stuck.parameters.P[:, 1:].any()
    assert abs(stuck.parameters.P[2] @ stuck.parameters.P[3]) < 0.1
    assert free.parameters.P[2] @ free.parameters.P[3] < -0.8
    assert free.objective < 0.75 * stuck.objective


@pytest.mark.parametrize("weighted", [False, True])
def test_the_first_step_is_the_best_one_along_its_direction(weighted):
    c = np.random.default_rng(1).uniform(0.5, 2.0, 200) if weighted else None
    problem = problem_of(sample_weight=c)
    first = run(problem, epochs=1, revive=True)[-1].parameters
    assert first.P.any(axis=0).tolist() == [True, False, False]
    objectives = [problem.objective(first.replace(P=t * first.P)) for t in (0.99, 1.0, 1.01)]
    assert min(objectives) == objectives[1] < problem.objective(zeros(problem))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("regularizer", "more"),
    [
        ("ti", {"lambda_sparse": 5.0}),
        ("ti", {"regularizer_params": {"axis": "rows"}}),
        ("l1", {}),
    ],
)
def test_nothing_changes_where_nothing_is_gained(regularizer, more):
    problem = problem_of(regularizer=regularizer, **more)
    start = problem.start(0.3, np.random.default_rng(0))
    start.P[:, 2] = 0.0
    plain, with_it = (run(problem, 30, 0.0, start=start, **own) for own in ({}, {"revive": True}))
    for first, other in zip(plain, with_it, strict=True):
        assert np.array_equal(first.parameters.P, other.parameters.P)


def test_runs_are_the_same_for_the_same_seed_and_go_on_from_checkpoints():
    problem, budget = problem_of("sparse", loss="huber"), Budget(25, tol=0.0)
    own = {"revive": True, "active_sweeps": 3, "anderson": 3}
    full, _ = assert_resumable(problem, "pcd", budget, start=zeros(problem), **own)
    same_iterates(full, run(problem, 25, 0.0, **own))


def test_other_models_say_that_they_have_no_such_columns():
    X, y = two_pairs()
    problem = build_problem(X, y, model="hofm", regularizer="omega_ti", rank=2)
    with pytest.raises(ValueError, match="revive = True is for second-order machines"):
        next(iterate(problem, "pcd", revive=True))


@pytest.mark.parametrize("name", ["ti", "omega_ti", "l2"])
def test_penalties_with_saddles_are_sums_over_columns_of_degree_two(name):
    penalty = get_penalty(name)
    assert penalty.saddles
    P = np.random.default_rng(0).normal(size=(7, 3))
    parts = sum(4.0 * penalty.value(np.ascontiguousarray(P[:, [s]])) for s in range(3))
    assert penalty.value(2.0 * P) == pytest.approx(parts, rel=1e-13)
