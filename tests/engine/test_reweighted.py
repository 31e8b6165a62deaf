"""Losses with kinks and caps in every machine: one more loop around its solvers."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from by_name import build_problem, iterate
from small_data import assert_resumable

from fmviz.engine.fit import Budget
from fmviz.engine.losses import LOSSES, Absolute, CappedHinge, CappedInsensitive, Insensitive
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import Reweighted


def build(loss="absolute", regularizer="ti", *, share=0.2, seed=0, **more) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 5))
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + X[:, 4] + 0.05 * rng.normal(size=80)
    y = np.where(rng.random(80) < share, y + 10 * rng.normal(size=80), y)
    task = (LOSSES[loss] if isinstance(loss, str) else loss).task
    given = {"rank": 2, "lambda_w": 1e-3, "lambda_p": 1e-3, "lambda_sparse": 0.01}
    return build_problem(
        X, np.sign(y) if task == "binary" else y, loss=loss, regularizer=regularizer, **(given | more)
    )


CASES = [
    (Absolute(), "ti", "pcd"),
    (CappedInsensitive(0.05, 1.0), "ti", "pcd"),
    (CappedInsensitive(0.05, 1.0), "cs", "pbcd"),
    (Insensitive(0.1), "l1", "nmapgd"),
    (CappedHinge(), "l2", "lbfgs"),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("loss", "regularizer", "inner"), CASES, ids=lambda value: str(value))
def test_the_smoothed_objective_never_rises(loss, regularizer, inner):
    for seed in range(3):
        problem = build(loss, regularizer, seed=seed, lambda_sparse=0.0 if regularizer == "l2" else 0.01)
        method = Reweighted(inner=inner, inner_epochs=1 + 2 * seed, smoothing=10.0**-seed).on(problem)
        method.start(problem.start(0.3, np.random.default_rng(seed)), np.random.default_rng(seed))

        def objective(delta, method=method, problem=problem):
            here = method.parameters()
            risk = problem.mean(problem.loss.majoriser.value(problem.predict(here), problem.y, delta))
            return risk + sum(problem.penalties(here).values())

        for _ in range(15):
            delta, before = method._smoothing.delta, objective(method._smoothing.delta)
            raw = problem.objective(method.parameters())
            method.epoch()
            assert objective(delta) <= before * (1 + 1e-12)
            assert method._smoothing.delta <= delta
            assert problem.objective(method.parameters()) <= raw + 0.5 * delta


def test_the_certificate_proves_a_least_absolute_fit():
    # Without interactions it is convex: the linear least absolute deviations.
    problem = build(regularizer="l2", rank=0, lambda_sparse=0.0)
    budget = Budget(200, tol=1e-6, report_every=None)
    *_, end = iterate(
        problem, Reweighted(inner="lbfgs", inner_epochs=50), budget, rng=np.random.default_rng(0)
    )
    assert end.certificate < 5e-3
    moved = end.parameters.replace(w=end.parameters.w * 1.05)
    assert problem.objective(moved) > end.objective


@pytest.mark.parametrize("loss", [Absolute(), *(Insensitive(e) for e in (0.01, 0.1, 0.5, 1.0))], ids=repr)
@pytest.mark.parametrize("lambda_w", [1e-3, 0.1])
def test_a_linear_fit_with_kinks_reaches_the_minimum(loss, lambda_w, rng):
    X, c = rng.normal(size=(120, 6)), rng.uniform(0.2, 2.0, 120)
    y = X @ rng.normal(size=6) + rng.normal(size=120) + 3.0
    settings = {"loss": loss, "penalty": "l2", "rank": 0, "lambda_w": lambda_w, "sample_weight": c}
    problem = Problem.build(X, y, **settings).centred()
    *_, end = iterate(problem, budget=Budget(1_000, report_every=None), rng=rng)
    w, b = cp.Variable(6), cp.Variable()
    excess = cp.pos(cp.abs(X @ w + b - y) - getattr(loss, "epsilon", 0.0))
    least = cp.Problem(cp.Minimize(c / c.sum() @ excess + lambda_w * cp.sum_squares(w)))
    assert end.status.converged
    assert end.objective <= (1.0 + 1e-4) * least.solve()


def test_a_run_that_is_resumed_has_the_same_iterates():
    assert_resumable(build(), "auto", Budget(9, tol=0.0, certify_every=100), init_scale=0.3)
