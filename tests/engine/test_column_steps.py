"""SGD and PSGD for sums of column kernels: epochs against a slow oracle, descent, reasons."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem, iterate, make_solver
from oracles import slow_columns
from oracles.slow_stochastic import eta

from fmviz.choices import why_not
from fmviz.engine.drive import Budget
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.solvers.stochastic.psgd import SCHEDULES

CASES = {
    "hofm2": ("hofm", {"order": 2}, [("anova", 2)]),
    "hofm4": ("hofm", {"order": 4}, [("anova", 2), ("anova", 3), ("anova", 4)]),
    "all": ("all_subsets", {}, [("subsets", None)]),
    "signs": ("expansion", {"kernel": "anova", "degree": 3, "coefficients": "signs"}, [("anova", 3)]),
    "cubes": ("expansion", {"degree": 3, "coefficients": "ones"}, [("polynomial", 3)]),
}
FITTED = {
    "H2": ("expansion", {"kernel": "polynomial"}, [("polynomial", 2)]),
    "A2": ("expansion", {"kernel": "anova"}, [("anova", 2)]),
}


def data(storage: str, loss: str, n: int = 12):
    rng = np.random.default_rng(0)
    X = 0.7 * rng.normal(size=(n, 5))
    if storage != "dense":
        X[rng.random(X.shape) < 0.4] = 0.0
    if storage == "binary":
        X = (X != 0).astype(float)
    X[3] = 0.0
    y = rng.normal(size=n)
    return X, np.sign(y) if loss == "logistic" else y


def build(case, X, y, storage="dense", **changes) -> Problem:
    model, params, _ = case
    given = {"lambda_w": 0.04, "lambda_p": 0.05, "rank": 2} | changes
    return build_problem(
        X if storage == "dense" else sp.csr_array(X), y, model=model, model_params=params, **given
    )


def start_of(problem: Problem) -> Parameters:
    rng = np.random.default_rng(1)
    start = problem.start(0.4, rng)
    start.P[rng.random(start.P.shape) < 0.15] = 0.0
    linear = problem.fit_linear
    w, bias = rng.normal(size=5) * linear, float(rng.normal()) * linear
    return Parameters(start.P, w, bias, coefficients=start.coefficients)


# Longer steps diverge on columns of third and fourth order.
ETA0 = 0.02


def sizes(schedule, lam_p, lam_w, first, count):
    return [
        (eta(schedule, ETA0, 0.5, lam_p, t), eta(schedule, ETA0, 0.5, lam_w, t))
        for t in range(first, first + count)
    ]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("storage", "loss"), [("dense", "squared"), ("sparse", "logistic"), ("binary", "huber")]
)
@pytest.mark.parametrize(("solver", "regularizer"), [("sgd", "l2"), ("psgd", "l1")])
@pytest.mark.parametrize("case", CASES)
def test_epochs_equal_the_oracle(case, solver, regularizer, storage, loss):
    X, y = data(storage, loss)
    linear = storage != "sparse"
    weights = np.arange(1.0, 13.0) if storage == "binary" else None
    problem = build(
        CASES[case],
        X,
        y,
        storage,
        loss=loss,
        regularizer=regularizer,
        lambda_sparse=0.1,
        fit_linear=linear,
        fit_intercept=linear,
        sample_weight=weights,
    )
    here = start_of(problem)
    schedule = SCHEDULES[list(CASES).index(case) % len(SCHEDULES)]
    method = make_solver(solver, problem, monotone=False, schedule=schedule, eta0=ETA0)
    method.start(here, np.random.default_rng(4))
    draw = np.random.default_rng(4)
    P, w, b = here.P, here.w, here.intercept
    for i in range(2):
        method.epoch()
        P, w, b = slow_columns.stochastic_epoch(
            CASES[case][2],
            X,
            y,
            P,
            w,
            b,
            here.multipliers,
            draw.permutation(12),
            sizes(schedule, 0.05, 0.04, 12 * i, 12),
            loss=loss,
            lam_w=0.04,
            lam_p=0.05,
            lam=0.1,
            name=solver,
            linear=linear,
            weights=weights,
        )
    found = method.parameters()
    assert pytest.approx(P, abs=1e-11) == found.P
    assert ((found.P == 0) == (P == 0)).all()
    assert found.w == pytest.approx(w, abs=1e-11)
    assert found.intercept == pytest.approx(b, abs=1e-11)
    assert found.multipliers == pytest.approx(here.multipliers)


@pytest.mark.sample(1)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("case", FITTED)
def test_epochs_with_fitted_coefficients_equal_the_oracle(case, loss):
    X, y = data("dense", loss)
    problem = build(FITTED[case], X, y, loss=loss, regularizer="l2")
    here = start_of(problem)
    method = make_solver("sgd", problem, monotone=False, eta0=ETA0)
    method.start(here, np.random.default_rng(4))
    draw = np.random.default_rng(4)
    P, w, b, c = here.P, here.w, here.intercept, here.multipliers
    for i in range(2):
        method.epoch()
        c = slow_columns.fitted_coefficients(FITTED[case][2], X, y, P, w, b, c, loss=loss, lam_p=0.05)
        P, w, b = slow_columns.stochastic_epoch(
            FITTED[case][2],
            X,
            y,
            P,
            w,
            b,
            c,
            draw.permutation(12),
            sizes("bottou", 0.05, 0.04, 12 * i, 12),
            loss=loss,
            lam_w=0.04,
            lam_p=0.05,
            lam=0.0,
            name="sgd",
            linear=True,
        )
    found = method.parameters()
    assert found.multipliers == pytest.approx(c, abs=1e-6)
    assert pytest.approx(P, abs=1e-6) == found.P
    assert found.w == pytest.approx(w, abs=1e-6)


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_order_two_takes_the_steps_of_the_machine(storage):
    X, y = data(storage, "squared")
    ends = []
    for case in (CASES["hofm2"], ("fm", {}, None)):
        problem = build(case, X, y, storage, regularizer="l1", lambda_sparse=0.02)
        here = start_of(problem)
        method = make_solver("psgd", problem, operator="sparse")
        method.start(here, np.random.default_rng(0))
        for _ in range(10):
            method.epoch()
        ends.append(method.parameters())
    assert pytest.approx(ends[0].P, abs=1e-10) == ends[1].P
    assert ends[0].w == pytest.approx(ends[1].w, abs=1e-10)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("case", "solver", "regularizer"),
    [(case, solver, reg) for case in CASES for solver, reg in (("sgd", "l2"), ("psgd", "l1"))]
    + [(case, solver, "l2") for case in FITTED for solver in ("sgd", "psgd")],
)
def test_runs_never_rise_and_come_near_a_stationary_point(case, solver, regularizer):
    X, y = data("sparse", "squared", 40)
    problem = build(
        (CASES | FITTED)[case], X, y, "sparse", regularizer=regularizer, lambda_sparse=0.01 * (case in CASES)
    )
    snapshots = list(
        iterate(problem, solver, Budget(200, tol=0.0), init_scale=0.4, rng=np.random.default_rng(0))
    )
    values = [s.objective for s in snapshots]
    assert (np.diff(values) <= 1e-10 * values[0]).all()
    assert values[-1] < 0.95 * values[0]
    # Steps of any length: such epochs are undone.
    wild = list(
        iterate(problem, solver, Budget(20, tol=0.0), eta0=50.0, init_scale=0.4, rng=np.random.default_rng(0))
    )
    assert np.isfinite(wild[-1].parameters.P).all()
    assert wild[-1].objective < wild[0].objective


def test_a_column_without_coefficient_rests():
    X, y = data("dense", "squared")
    problem = build(FITTED["H2"], X, y, regularizer="l2", lambda_p=0.3, rank=3)
    here = start_of(problem)
    method = make_solver("sgd", problem, monotone=False)
    method.start(here, np.random.default_rng(0))
    method.epoch()
    found = method.parameters()
    resting = found.multipliers == 0.0
    assert resting.any()
    assert (found.P[:, resting] == here.P[:, resting]).all()


@pytest.mark.parametrize(
    ("regularizer", "solver", "model", "code"),
    [
        ("ti", "psgd", "hofm", "no_common_shrinkage"),
        ("l21", "psgd", "all_subsets", "no_common_shrinkage"),
        ("l1", "sgd", "hofm", "not_smooth"),
        ("l2", "katyusha", "hofm", "no_sample_steps"),
        ("l2", "mb_psgd", "expansion", "fitted_coefficients"),
    ],
)
def test_what_cannot_be_run_says_why(regularizer, solver, model, code):
    assert why_not(regularizer, solver, model=model).code == code


def test_the_dense_operator_is_for_pairs_only():
    X, y = data("dense", "squared")
    problem = build(CASES["hofm4"], X, y, regularizer="l1")
    with pytest.raises(ValueError, match="operator = 'dense'"):
        make_solver("psgd", problem, operator="dense")
    assert make_solver("psgd", problem).settings["operator"] == "sparse"
