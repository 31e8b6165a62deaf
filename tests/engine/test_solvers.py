"""What solvers keep, whatever the model and the penalty: descent, ends, and the threads of L-BFGS."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from by_name import build_problem, iterate, make_solver
from small_data import table

from fmviz.choices import why_not
from fmviz.engine.fit import Budget
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Reason
from fmviz.engine.solvers import SOLVERS

MODELS = {
    "fm": ("fm", {}),
    "hofm2": ("hofm", {"order": 2}),
    "hofm3": ("hofm", {"order": 3}),
    "hofm4": ("hofm", {"order": 4}),
    "all": ("all_subsets", {}),
    "signs": ("expansion", {"kernel": "anova", "degree": 3, "coefficients": "signs"}),
    "squares": ("expansion", {"kernel": "polynomial", "coefficients": "signs"}),
    "cubes": ("expansion", {"degree": 3, "coefficients": "ones"}),
    "fitted": ("expansion", {"kernel": "polynomial"}),
    "fitted A2": ("expansion", {"kernel": "anova"}),
    "fitted H3": ("expansion", {"kernel": "polynomial", "degree": 3}),
    "H2": ("lifted", {"kernel": "polynomial"}),
    "H3": ("lifted", {"kernel": "polynomial", "degree": 3}),
    "A2": ("lifted", {"kernel": "anova"}),
}
RUNS = [
    (case, regularizer, solver)
    for case, (model, params) in MODELS.items()
    for regularizer in PENALTIES
    for solver in SOLVERS
    if why_not(regularizer, solver, model=get_model(model, params)) is None
]
ALL_AT_ONCE = ("pgd", "apgd", "nmapgd", "subgd", "lbfgs")
STOCHASTIC = ("sgd", "psgd", "mb_psgd", "katyusha", "mb_katyusha")
X = table("dense", 20)
Y = 2 * X[:, 0] * X[:, 1] - X[:, 2] + 0.1 * np.random.default_rng(1).normal(size=20)


def of(regularizer: str = "ti", case: str = "fm", **more) -> Problem:
    model, params = MODELS[case]
    price = 0.0 if case.startswith("fitted") else 0.01
    given = {"lambda_w": 0.01, "lambda_p": 0.02, "lambda_sparse": price, "rank": 3} | more
    return build_problem(X, Y, model=model, model_params=params, regularizer=regularizer, **given)


def of_solver(solver: str) -> Problem:
    """Return a problem that the solver takes."""
    return of({"subgd": "omega_star", "lbfgs": "l2", "sgd": "l2"}.get(solver, "ti"))


@pytest.mark.sample(9)
@pytest.mark.parametrize(("case", "regularizer", "solver"), RUNS)
def test_the_objective_falls_and_never_rises(case, regularizer, solver):
    problem = of(regularizer, case)
    begin = None
    # From a random start; and on from where that ended, whatever the solver knew there.
    for _ in range(2):
        rng, budget = np.random.default_rng(0), Budget(20, tol=0.0)
        snapshots = list(iterate(problem, solver, budget, start=begin, init_scale=0.5, rng=rng))
        values = [s.objective for s in snapshots]
        assert max(values) <= values[0] * (1 + 1e-12)
        assert begin is not None or values[-1] < values[0]
        if SOLVERS[solver].monotone:
            assert (np.diff(values) <= 1e-12 * values[0]).all()
        begin = snapshots[-1].parameters


@pytest.mark.parametrize("solver", ["pcd", *ALL_AT_ONCE, *STOCHASTIC])
def test_divergence_ends_at_the_last_finite_state_and_is_told(solver):
    problem = of_solver(solver)
    with np.errstate(all="ignore"):
        *_, last = iterate(problem, solver, start=Parameters(np.full((5, 3), 1e120), np.zeros(5), 0.0))
        assert last.status.reason is Reason.DIVERGED
        assert "is not finite" in last.status.message
        # Finite at first, but its gradient is not: no step helps, not even one that stands in for an epoch.
        large = Parameters(np.full((5, 3), 1e76), np.zeros(5), 0.0)
        *_, last = iterate(problem, solver, Budget(5, tol=0.0), start=large)
    assert last.status.reason in (Reason.DIVERGED, Reason.EPOCHS)
    assert np.isfinite(last.objective)
    with pytest.raises(ValueError, match="has no parameter 'speed'"):
        list(iterate(problem, solver, speed=1))


@pytest.mark.parametrize("solver", ["pcd", "psgd", "mb_psgd", "katyusha"])
def test_equal_seeds_give_equal_runs_and_others_do_not(solver):
    ends = [
        list(iterate(of(), solver, Budget(3), rng=np.random.default_rng(seed)))[-1].parameters.P
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(ends[0], ends[1])
    assert not np.array_equal(ends[0], ends[2])


def test_the_objective_before_a_restart_is_not_taken_for_that_after():
    X, y = np.random.default_rng(0).normal(size=(40, 6)), np.random.default_rng(1).normal(size=40)
    problem = build_problem(X, y, regularizer="ti", rank=3, lambda_p=0.01, lambda_sparse=0.05)
    method = make_solver("apgd", problem)
    method.start(problem.start(0.5, np.random.default_rng(2)), np.random.default_rng(2))
    restarts = 0
    for _ in range(200):
        method.epoch()
        restarts += method._t_before == 1.0
        assert method._value == pytest.approx(problem.objective(method.parameters()), rel=1e-12)
    assert restarts


# ----------------------------------------------------------------------------------------- threads of L-BFGS


def helpers() -> int:
    return sum(thread.name == "fmviz-lbfgs" for thread in threading.enumerate())


def wait_for(number: int) -> bool:
    for thread in threading.enumerate():
        if thread.name == "fmviz-lbfgs" and helpers() > number:
            thread.join(5.0)
    return helpers() == number


def started(problem: Problem, epochs: int):
    """Return L-BFGS after so many epochs."""
    method = make_solver("lbfgs", problem)
    method.start(problem.start(0.5, np.random.default_rng(0)), np.random.default_rng(0))
    for _ in range(epochs):
        method.epoch()
    return method


def test_no_thread_outlives_its_run():
    gc.collect()
    assert wait_for(0)
    problem = of("l2")
    list(iterate(problem, "lbfgs", Budget(4, tol=0.0)))
    assert helpers() == 0
    # A run that is dropped half-way.
    run = iterate(problem, "lbfgs", Budget(100, tol=0.0))
    next(run), next(run)
    assert helpers() == 1
    run.close()
    assert helpers() == 0
    # A solver that is forgotten, before and after its first epoch.
    for epochs in (0, 2):
        started(problem, epochs)
        gc.collect()
        assert wait_for(0)
    # Closed, it still shows what it reached, and starts again.
    method = started(problem, 1)
    method.close()
    assert helpers() == 0
    assert method.epoch() == 0.0
    start = problem.start(0.5, np.random.default_rng(0))
    assert not np.array_equal(method.parameters().P, start.P)
    method.start(start, np.random.default_rng(0))
    assert method.epoch() > 0.0
    method.close()


def test_an_error_in_the_thread_is_raised_where_it_is_seen(monkeypatch):
    problem = of("l2")
    method = started(problem, 0)
    monkeypatch.setattr(type(problem.model), "gradient", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        method.epoch()
    method.close()
    assert helpers() == 0
