"""Models that are sums of column kernels: objectives, epochs, counts and reasons."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import best_solver, build_problem, iterate, make_solver
from oracles import slow_columns, slow_fm

from fmviz.choices import why_not
from fmviz.engine.certificates.stationarity import stationarity
from fmviz.engine.drive import Budget
from fmviz.engine.models import MODELS, get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import SOLVERS

CASES = {
    "hofm2": ("hofm", {"order": 2}, [("anova", 2)]),
    "hofm3": ("hofm", {"order": 3}, [("anova", 2), ("anova", 3)]),
    "hofm4": ("hofm", {"order": 4}, [("anova", 2), ("anova", 3), ("anova", 4)]),
    "all": ("all_subsets", {}, [("subsets", None)]),
    "signs": ("expansion", {"kernel": "anova", "degree": 3, "coefficients": "signs"}, [("anova", 3)]),
    "squares": ("expansion", {"kernel": "polynomial", "coefficients": "signs"}, [("polynomial", 2)]),
}
MULTILINEAR = [case for case in CASES if case != "squares"]


def data(storage: str, loss: str, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 5))
    if storage != "dense":
        X[rng.random(X.shape) < 0.4] = 0.0
    if storage == "binary":
        X = (X != 0).astype(float)
    y = rng.normal(size=12)
    return X, np.sign(y) if loss in ("logistic", "squared_hinge") else y


def build(case: str, X, y, storage="dense", **changes):
    model, params, _ = CASES[case]
    given = {"lambda_w": 0.01, "lambda_p": 0.02, "lambda_sparse": 0.03, "rank": 2} | changes
    design = X if storage == "dense" else sp.csr_array(X)
    return build_problem(design, y, model=model, model_params=params, **given)


def start_of(problem: Problem, seed: int = 1) -> Parameters:
    rng = np.random.default_rng(seed)
    start = problem.start(0.7, rng)
    start.P[rng.random(start.P.shape) < 0.15] = 0.0
    w = rng.normal(size=start.w.shape) if problem.fit_linear else start.w
    bias = float(rng.normal()) if problem.fit_intercept else 0.0
    return Parameters(start.P, w, bias, coefficients=start.coefficients)


@pytest.mark.sample(6)
@pytest.mark.parametrize("storage", ["dense", "sparse", "binary"])
@pytest.mark.parametrize("case", CASES)
def test_predictions_and_objective_are_the_definition(case, storage):
    X, y = data(storage, "squared")
    problem = build(case, X, y, storage, regularizer="l2")
    here = start_of(problem)
    expected = slow_columns.predict(CASES[case][2], X, here.P, here.w, here.intercept, here.multipliers)
    assert problem.predict(here) == pytest.approx(expected, rel=1e-10)
    value = np.mean(slow_fm.LOSS["squared"](expected, y)) + 0.01 * here.w @ here.w
    value += 0.02 * (np.abs(here.multipliers) * (here.P**2).sum(axis=0)).sum() + 0.03 * (here.P**2).sum()
    assert problem.objective(here) == pytest.approx(value, rel=1e-10)


SWEEPS = [
    (case, solver, regularizer, storage, loss)
    for case in MULTILINEAR
    for solver, regularizer in [
        ("cd", "l2"),
        ("pcd", "l1"),
        ("pcd", "omega_ti"),
        ("pbcd", "l1"),
        ("pbcd", "l21"),
        ("pbcd", "omega_ti"),
        ("pbcd", "omega_cs"),
    ]
    for storage, loss in [("dense", "squared"), ("sparse", "logistic"), ("binary", "huber")]
    # Every kernel in every storage; the others differ in the degree alone.
    if storage == "dense" or case in ("hofm3", "all")
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("case", "solver", "regularizer", "storage", "loss"), SWEEPS)
def test_epochs_equal_the_oracle(case, solver, regularizer, storage, loss):
    X, y = data(storage, loss)
    linear = storage != "sparse"
    weights = np.arange(1.0, 13.0) if storage == "binary" else None
    problem = build(
        case,
        X,
        y,
        storage,
        loss=loss,
        regularizer=regularizer,
        fit_linear=linear,
        fit_intercept=linear,
        sample_weight=weights,
    )
    here = start_of(problem)
    setting = slow_columns.Setting(
        CASES[case][2], X, y, loss, regularizer, 0.01, 0.02, 0.03, linear, linear, weights
    )
    method = make_solver(solver, problem)
    method.start(here, np.random.default_rng(0))
    P, w, b = here.P, here.w, here.intercept
    for _ in range(2):
        method.epoch()
        one_epoch = setting.row_epoch if solver == "pbcd" else setting.coordinate_epoch
        P, w, b = one_epoch(P, w, b, here.multipliers)
    found = method.parameters()
    assert pytest.approx(P, abs=1e-9) == found.P
    if regularizer in ("l1", "l21"):
        assert ((found.P == 0) == (P == 0)).all()
    else:
        # Where a column dies, slopes and thresholds both are products of next to nothing.
        assert found.P[np.abs(P) > 1e-12].all()
    assert found.w == pytest.approx(w, abs=1e-9)
    assert found.intercept == pytest.approx(b, abs=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("storage", ["dense", "sparse", "binary"])
@pytest.mark.parametrize(
    ("solver", "regularizer"), [("pcd", "l1"), ("pcd", "omega_ti"), ("pbcd", "omega_cs")]
)
def test_order_two_is_the_factorization_machine(solver, regularizer, storage):
    X, y = data(storage, "squared")
    ours = build("hofm2", X, y, storage, regularizer=regularizer)
    plain = build_problem(
        X if storage == "dense" else sp.csr_array(X),
        y,
        regularizer=regularizer,
        rank=2,
        lambda_w=0.01,
        lambda_p=0.02,
        lambda_sparse=0.03,
    )
    here = start_of(ours)
    methods = [make_solver(solver, problem) for problem in (ours, plain)]
    for method in methods:
        method.start(here, np.random.default_rng(0))
        for _ in range(5):
            method.epoch()
    first, second = (method.parameters() for method in methods)
    assert pytest.approx(second.P, abs=1e-11) == first.P
    assert first.w == pytest.approx(second.w, abs=1e-11)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber"])
@pytest.mark.parametrize("case", CASES)
def test_gradients_are_finite_differences(case, loss):
    X, y = data("dense", loss)
    problem = build(case, X, y, loss=loss, regularizer="l2", lambda_sparse=0.0)
    here = start_of(problem)
    f = problem.predict(here)
    slope = slow_fm.SLOPE[loss](f, y) / y.size
    in_P, in_w, in_bias = problem.model.gradient(problem.design, here, slope)

    def risk(P, w, bias):
        return problem.empirical_risk(problem.predict(Parameters(P, w, bias, coefficients=here.coefficients)))

    for j, s in np.ndindex(here.P.shape):
        E = np.zeros_like(here.P)
        E[j, s] = 1e-6
        rise = risk(here.P + E, here.w, here.intercept) - risk(here.P - E, here.w, here.intercept)
        assert in_P[j, s] == pytest.approx(rise / 2e-6, abs=1e-5)
    e = np.array([1e-6, 0, 0, 0, 0])
    rise = risk(here.P, here.w + e, here.intercept) - risk(here.P, here.w - e, here.intercept)
    assert in_w[0] == pytest.approx(rise / 2e-6, abs=1e-5)
    assert in_bias == pytest.approx(slope.sum(), abs=1e-12)


def runnable():
    for case, (model, params, _) in CASES.items():
        for regularizer in PENALTIES:
            for solver in SOLVERS:
                if why_not(regularizer, solver, model=model, model_params=params) is None:
                    yield case, regularizer, solver


@pytest.mark.sample(1)
@pytest.mark.parametrize(("case", "regularizer", "solver"), list(runnable()))
def test_every_solver_falls_from_every_start(case, regularizer, solver):
    X, y = data("dense", "squared")
    problem = build(case, X, y, regularizer=regularizer, lambda_sparse=0.01)
    snapshots = list(
        iterate(problem, solver, Budget(20, tol=0.0), init_scale=0.5, rng=np.random.default_rng(0))
    )
    values = [s.objective for s in snapshots]
    assert values[-1] < values[0]
    if SOLVERS[solver].monotone:
        assert (np.diff(values) <= 1e-10 * values[0]).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("case", "regularizer", "solvers"),
    [
        ("hofm3", "l1", ("pcd", "pbcd", "apgd")),
        ("hofm3", "l2", ("cd", "pbcd", "apgd", "lbfgs")),
        ("hofm3", "omega_ti", ("pcd", "pbcd")),
        ("all", "l1", ("pcd", "pbcd", "apgd")),
        ("signs", "l2", ("cd", "pbcd", "apgd", "lbfgs")),
        ("squares", "l2", ("cd", "apgd", "lbfgs")),
    ],
)
def test_solvers_meet_from_a_near_optimal_point(case, regularizer, solvers):
    X, y = data("dense", "squared")
    problem = build(case, X, y, regularizer=regularizer, lambda_p=0.05, lambda_sparse=0.02)
    *_, near = iterate(
        problem, solvers[0], Budget(3_000, tol=1e-5), init_scale=0.5, rng=np.random.default_rng(3)
    )
    ends = []
    for solver in solvers:
        *_, last = iterate(problem, solver, Budget(20_000, tol=1e-10), start=near.parameters)
        assert last.objective <= near.objective + 1e-12
        ends.append(last.objective)
    assert max(ends) <= min(ends) * (1 + 1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", ["hofm3", "all", "signs"])
def test_certificate_is_small_just_at_a_stationary_point(case):
    X, y = data("dense", "squared")
    problem = build(case, X, y, regularizer="omega_ti", lambda_sparse=0.01)
    first, *_, last = iterate(
        problem, "pcd", Budget(5_000, tol=1e-11), init_scale=0.5, rng=np.random.default_rng(0)
    )
    assert last.certificate <= 1e-8 < first.certificate
    moved = Parameters(
        last.parameters.P * 1.01,
        last.parameters.w,
        last.parameters.intercept,
        coefficients=last.parameters.coefficients,
    )
    assert stationarity(problem, moved) > 1e-4


@pytest.mark.slow
def test_fitted_coefficients_reach_lower_than_fixed_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] ** 2 - X[:, 1] ** 2 + 0.1 * rng.normal(size=60)
    ends = {}
    for coefficients in ("fitted", "signs", "ones"):
        problem = build_problem(
            X,
            y,
            model="expansion",
            model_params={"coefficients": coefficients},
            regularizer="l2",
            rank=2,
            lambda_p=0.01,
        )
        runs = [
            list(iterate(problem, "cd", Budget(500), init_scale=0.3, rng=np.random.default_rng(seed)))[-1]
            for seed in range(3)
        ]
        ends[coefficients] = min(run.objective for run in runs)
    assert ends["fitted"] < 0.5 * ends["ones"]
    assert ends["fitted"] <= ends["signs"] + 1e-6


@pytest.mark.sample(1)
@pytest.mark.parametrize("kernel", ["polynomial", "anova"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_cd_and_lbfgs_meet_with_fitted_coefficients(kernel, loss):
    X, y = data("dense", loss)
    problem = build_problem(
        X,
        y,
        loss=loss,
        model="expansion",
        model_params={"kernel": kernel},
        regularizer="l2",
        rank=2,
        lambda_p=0.05,
        lambda_w=0.01,
    )
    *_, near = iterate(problem, "cd", Budget(3_000, tol=1e-5), init_scale=0.5, rng=np.random.default_rng(0))
    ends = [
        list(iterate(problem, solver, Budget(5_000, tol=1e-9), start=near.parameters))[-1].objective
        for solver in ("cd", "lbfgs")
    ]
    assert max(ends) <= min(ends) * (1 + 1e-6)


def test_counts_are_those_of_all_subsets():
    rng = np.random.default_rng(0)
    for _ in range(20):
        P = rng.normal(size=(7, 6)) * (rng.random((7, 6)) < 0.4)
        model = get_model("hofm", {"order": 4})
        here = Parameters(P, np.zeros(7), 0.0)
        expected = {
            m: sum(
                any(all(P[j, s] for j in subset) for s in range(2 * (m - 2), 2 * (m - 1)))
                for subset in itertools.combinations(range(7), m)
            )
            for m in (2, 3, 4)
        }
        assert model.used_by_order(here) == expected
        assert model.used_interactions(here) == sum(expected.values())


def test_auto_finds_a_solver_for_whatever_can_be_run():
    for name, model in MODELS.items():
        for regularizer in PENALTIES:
            if why_not(regularizer, model=name) is None:
                assert why_not(regularizer, best_solver(regularizer, model=name), model=name) is None
            else:
                assert len(why_not(regularizer, model=name)) > 40, (name, model)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": "hofm", "model_params": {"order": 6}}, "order 6"),
        ({"model": "hofm", "model_params": {"order": 11}}, "order"),
        ({"model": "hofm", "model_params": {"degree": 3}}, "no parameter 'degree'"),
        ({"model": "all_subsets", "regularizer": "ti"}, "open problem"),
        ({"model": "expansion", "regularizer": "l1"}, "scale of a column is free"),
        ({"model": "expansion", "regularizer": "l2", "lambda_sparse": 1.0}, "lambda_sparse"),
    ],
)
def test_bad_input_is_a_sentence(given, words):
    X, y = data("dense", "squared")
    with pytest.raises(ValueError, match=words):
        build_problem(X, y, **given)
