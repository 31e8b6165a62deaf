"""The solvers that move P, w and the bias at once: PGD, APGD, nmAPGD, SubGD and L-BFGS."""

from __future__ import annotations

import gc
import re
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import SMOOTH, best_solver, build_problem, iterate, make_solver
from oracles import slow_batch

import fmviz
from fmviz.choices import why_not
from fmviz.engine.compatibility import cost_note
from fmviz.engine.drive import Budget
from fmviz.engine.losses import LOSSES
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Formulation, Problem
from fmviz.engine.snapshot import Reason
from fmviz.engine.solvers import SOLVERS

BATCH = ("pgd", "apgd", "nmapgd", "subgd", "lbfgs")
READINGS = [(r, {}) for r in PENALTIES] + [("ti", {"axis": "rows"})]
CASES = [
    (regularizer, params, solver)
    for regularizer, params in READINGS
    for solver in BATCH
    if why_not(regularizer, solver, regularizer_params=params) is None
]
IDS = [f"{r}{''.join(p.values())}-{s}" for r, p, s in CASES]


def data(storage: str, loss: str):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 5))
    if storage != "dense":
        X *= rng.random(X.shape) < 0.5
    if storage == "binary":
        X = (X != 0).astype(float)
    X[:, 2] = 0.0
    y = rng.normal(size=14)
    return X, np.sign(y) if LOSSES[loss].task == "binary" else y


def start(linear: bool = True, bias: bool = True) -> Parameters:
    rng = np.random.default_rng(1)
    P = rng.normal(size=(5, 3)) * 0.6
    P[1] = 0.0
    P[3, 1] = 0.0
    return Parameters(P, rng.normal(size=5) * 0.2 * linear, 0.3 * bias)


@pytest.mark.pairwise
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize(("regularizer", "params", "solver"), CASES, ids=IDS)
def test_epochs_equal_the_oracle(regularizer, params, solver, loss):
    storages = {"squared": ("dense", "sparse", "binary"), "logistic": ("dense", "sparse")}
    for storage in storages.get(loss, ("dense",)):
        X, y = data(storage, loss)
        for linear, bias, lam, lam_p, weighted in (
            (True, True, 0.05, 0.03, False),
            (False, False, 0.1, 0.05, False),
            (True, False, 0.0, 0.0, False),
            (False, True, 0.02, 0.02, True),
        ):
            weights = np.linspace(0.0, 2.0, y.size) if weighted else None
            begin = start(linear, bias)
            settings = {"lambda_w": 0.04, "lambda_p": lam_p, "lambda_sparse": lam}
            problem = build_problem(
                X if storage == "dense" else sp.coo_array(X),
                y,
                loss=loss,
                regularizer=regularizer,
                rank=3,
                fit_linear=linear,
                fit_intercept=bias,
                regularizer_params=params,
                sample_weight=weights,
                **settings,
            )
            slow = slow_batch.Setting(
                X,
                y,
                loss=loss,
                name="ti_rows" if params else regularizer,
                lam_w=0.04,
                lam_p=lam_p,
                lam=lam,
                linear=linear,
                bias=bias,
                weights=weights,
            )
            theta = [begin.P, begin.w, np.array([begin.intercept])]
            method = make_solver(solver, problem)
            method.start(begin, np.random.default_rng(0))
            for epochs in (1, 2, 3):
                method.epoch()
                found = method.parameters()
                P, w, b = getattr(slow_batch, solver)(slow, theta, epochs)
                assert pytest.approx(P, abs=1e-10) == found.P
                assert found.w == pytest.approx(w, abs=1e-10)
                assert found.intercept == pytest.approx(b[0], abs=1e-10)
            method.close()


def test_every_solver_has_an_oracle():
    assert set(SOLVERS) >= {"cd", "pcd", "pbcd", "pbcd_ls", *BATCH}


def test_restart_by_gradients_equals_the_oracle():
    X, y = data("dense", "squared")
    problem = build_problem(X, y, regularizer="ti", rank=3, lambda_w=0.04, lambda_p=0.03, lambda_sparse=0.05)
    slow = slow_batch.Setting(X, y, loss="squared", name="ti", lam_w=0.04, lam_p=0.03, lam=0.05)
    begin = start()
    for scheme in ("function", "gradient"):
        method = make_solver("apgd", problem, restart=scheme)
        method.start(begin, np.random.default_rng(0))
        for _ in range(25):
            method.epoch()
        theta = [begin.P, begin.w, np.array([begin.intercept])]
        P, w, _ = slow_batch.apgd(slow, theta, 25, scheme=scheme)
        assert pytest.approx(P, abs=1e-9) == method.parameters().P
        assert method.parameters().w == pytest.approx(w, abs=1e-9)


def test_the_objective_before_a_restart_is_not_taken_for_that_after():
    X, y = np.random.default_rng(0).normal(size=(40, 6)), np.random.default_rng(1).normal(size=40)
    problem = build_problem(X, y, regularizer="ti", rank=3, lambda_p=0.01, lambda_sparse=0.05)
    method = make_solver("apgd", problem)
    method.start(problem.start(0.5, np.random.default_rng(2)), np.random.default_rng(2))
    restarts = 0
    for _ in range(200):
        method.epoch()
        restarts += method._momentum == 0.0
        assert method._value == pytest.approx(problem.objective(method.parameters()), rel=1e-12)
    assert restarts


def solved(
    problem: Problem, solver: str, begin: Parameters, epochs: int = 20_000, tol: float = 1e-10, **more
):
    budget = Budget(epochs=epochs, tol=tol, report_every=epochs)
    first, *_, last = iterate(problem, solver, budget, start=begin, rng=np.random.default_rng(0), **more)
    return first, last


@pytest.mark.parametrize("solver", ["pgd", "apgd", "nmapgd"])
@pytest.mark.parametrize("regularizer", ["l1", "ti", "cs", "omega_cs"])
def test_a_small_change_means_a_small_certificate(regularizer, solver):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 6))
    y = 2 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=60)
    problem = build_problem(X, y, regularizer=regularizer, rank=3, lambda_p=0.02, lambda_sparse=0.02)
    last = solved(problem, solver, problem.start(0.5, rng), tol=1e-8)[1]
    assert last.status.converged
    assert last.certificate <= 1e-5


@pytest.mark.parametrize("solver", BATCH)
def test_no_start_is_left_upwards_even_where_it_is_optimal(solver):
    regularizer = {"subgd": "omega_star", "lbfgs": "l2"}.get(solver, "ti")
    X, y = data("dense", "squared")
    problem = build_problem(X, y, regularizer=regularizer, rank=3, lambda_p=0.02, lambda_sparse=0.02)
    for begin in (start(), Parameters(np.zeros((5, 3)), np.zeros(5), float(y.mean()))):
        for _ in range(3):
            first, last = solved(problem, solver, begin, 300, 0.0)
            assert last.objective <= first.objective * (1 + 1e-14)
            begin = last.parameters


@pytest.mark.parametrize("solver", BATCH)
def test_divergence_and_bad_settings_are_told(solver):
    regularizer = {"subgd": "omega_star", "lbfgs": "l2"}.get(solver, "ti")
    X, y = data("dense", "squared")
    problem = build_problem(X, y, regularizer=regularizer, rank=3, lambda_p=0.02, lambda_sparse=0.02)
    huge = Parameters(np.full((5, 3), 1e120), np.zeros(5), 0.0)
    *_, last = iterate(problem, solver, start=huge)
    assert last.status.reason is Reason.DIVERGED
    # Finite at first, but its gradient is not.
    large = Parameters(np.full((5, 3), 1e76), np.zeros(5), 0.0)
    *_, last = iterate(problem, solver, Budget(5, tol=0.0), start=large)
    assert np.isfinite(last.objective)
    with pytest.raises(ValueError, match="has no parameter 'speed'"):
        list(iterate(problem, solver, speed=1))


@pytest.mark.sample(3)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("regularizer", "solver"),
    [("ti", "pgd"), ("cs", "apgd"), ("l1", "nmapgd"), ("omega_star", "subgd"), ("l2", "lbfgs")],
)
def test_estimators_take_them(regularizer, solver):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 5))
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2]
    machine = fmviz.FactorizationMachineRegressor(
        rank=3,
        regularizer=regularizer,
        solver=solver,
        lambda_sparse=1e-3,
        init_scale=0.3,
        max_iter=400,
        random_state=0,
    ).fit(X, y)
    assert machine.score(X, y) > 0.95
    weights = rng.integers(0, 3, size=80)
    settings = {"rank": 2, "regularizer": regularizer, "solver": solver, "max_iter": 5, "random_state": 0}
    weighted = fmviz.FactorizationMachineRegressor(**settings).fit(X, y, sample_weight=weights)
    repeated = fmviz.FactorizationMachineRegressor(**settings).fit(
        np.repeat(X, weights, 0), np.repeat(y, weights)
    )
    assert pytest.approx(repeated.P_, abs=1e-9) == weighted.P_


def test_reasons_are_mathematical():
    for regularizer, solver, code in (
        ("ti", "lbfgs", "not_smooth"),
        ("l1", "subgd", "exact_operator"),
        ("l2", "subgd", "smooth"),
        ("omega_star", "apgd", "inexact_operator"),
        ("omega_star", "pcd", "no_entry_view"),
        ("omega_star", "pbcd", "no_row_view"),
    ):
        assert why_not(regularizer, solver).code == code
    assert why_not("omega_star", "nmapgd") is None
    assert [best_solver(r) for r in ("l2", "l1", "ti", "l21", "cs")] == ["cd", "pcd", "pcd", "pbcd", "pbcd"]


def test_no_reason_recommends_a_solver_that_refuses():
    labels = {solver.label: name for name, solver in SOLVERS.items()}
    for regularizer, params in READINGS:
        for solver in SOLVERS:
            reason = why_not(regularizer, solver, regularizer_params=params)
            named = re.split(r"\W+", reason.rsplit("Use ", 1)[1]) if reason and "Use " in reason else []
            takers = [labels[word] for word in named if word in labels]
            if takers:
                reasons = [why_not(regularizer, name, regularizer_params=params) for name in takers]
                assert None in reasons, (regularizer, solver, reason)


def test_the_cost_is_told_before_the_start():
    assert cost_note(Formulation.build(penalty="ti"), 200, 30) is None
    note = cost_note(Formulation.build(penalty="omega_star"), 200, 30, "nmapgd")
    assert "19,900 pairs" in note
    assert "1.2e+06" in note
    assert note.endswith(".")


# ----------------------------------------------------------------------------------------- threads of L-BFGS


def helpers() -> int:
    return sum(thread.name == "fmviz-lbfgs" for thread in threading.enumerate())


def wait_for(number: int) -> bool:
    for thread in threading.enumerate():
        if thread.name == "fmviz-lbfgs" and helpers() > number:
            thread.join(5.0)
    return helpers() == number


def test_no_thread_outlives_its_run():
    gc.collect()
    assert wait_for(0)
    X, y = data("dense", "squared")
    problem = build_problem(X, y, regularizer="l2", rank=3, lambda_p=0.02)
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
        method = make_solver("lbfgs", problem)
        method.start(start(), np.random.default_rng(0))
        for _ in range(epochs):
            method.epoch()
        del method
        gc.collect()
        assert wait_for(0)
    # Closed, it still shows what it reached, and starts again.
    method = make_solver("lbfgs", problem)
    method.start(start(), np.random.default_rng(0))
    method.epoch()
    method.close()
    assert helpers() == 0
    assert method.epoch() == 0.0
    assert not np.array_equal(method.parameters().P, start().P)
    method.start(start(), np.random.default_rng(0))
    assert method.epoch() > 0.0
    method.close()


def test_an_error_in_the_thread_is_raised_where_it_is_seen(monkeypatch):
    X, y = data("dense", "squared")
    problem = build_problem(X, y, regularizer="l2", rank=3)
    method = make_solver("lbfgs", problem)
    method.start(start(), np.random.default_rng(0))
    monkeypatch.setattr(type(problem.model), "gradient", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        method.epoch()
    method.close()
    assert helpers() == 0
