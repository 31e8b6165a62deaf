"""Lifted expansions: against the tensor itself, against the paper's equivalences, and their counts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import best_solver, build_problem, iterate, make_solver
from oracles import slow_fm, slow_lifted

from fmviz.choices import why_not
from fmviz.engine import counting
from fmviz.engine.certificates.stationarity import stationarity
from fmviz.engine.drive import Budget
from fmviz.engine.interactions.conversion import to_expansion
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import SOLVERS

CASES = {
    "H2": {"kernel": "polynomial", "degree": 2},
    "H3": {"kernel": "polynomial", "degree": 3},
    "H4": {"kernel": "polynomial", "degree": 4},
    "A2": {"kernel": "anova", "degree": 2},
}


def data(storage: str, loss: str):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 4))
    if storage != "dense":
        X[rng.random(X.shape) < 0.4] = 0.0
    if storage == "binary":
        X = (X != 0).astype(float)
    y = rng.normal(size=10)
    return X, np.sign(y) if loss in ("logistic", "squared_hinge") else y


def build(case: str, X, y, storage="dense", **changes) -> Problem:
    given = {"lambda_w": 0.01, "lambda_p": 0.05, "lambda_sparse": 0.02, "rank": 2, "regularizer": "l2"}
    design = X if storage == "dense" else sp.csr_array(X)
    return build_problem(design, y, model="lifted", model_params=CASES[case], **(given | changes))


def start_of(problem: Problem) -> Parameters:
    rng = np.random.default_rng(1)
    start = problem.start(0.7, rng)
    start.P[rng.random(start.P.shape) < 0.15] = 0.0
    linear = problem.fit_linear
    return Parameters(start.P, rng.normal(size=start.w.size) * linear, float(rng.normal()) * linear)


@pytest.mark.parametrize("storage", ["dense", "sparse", "binary"])
@pytest.mark.parametrize("case", CASES)
def test_predictions_and_objective_are_those_of_the_tensor(case, storage):
    X, y = data(storage, "squared")
    problem = build(case, X, y, storage)
    here, m = start_of(problem), CASES[case]["degree"]
    f = slow_lifted.predict(CASES[case]["kernel"], m, X, here.P, here.w, here.intercept)
    assert problem.predict(here) == pytest.approx(f, abs=1e-10)
    squares = (here.P**2).sum()
    value = np.mean(slow_fm.LOSS["squared"](f, y)) + 0.01 * here.w @ here.w
    assert problem.objective(here) == pytest.approx(value + 0.05 / m * squares + 0.02 * squares, rel=1e-11)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("storage", "loss"),
    [("dense", "squared"), ("sparse", "logistic"), ("binary", "huber"), ("dense", "squared_hinge")],
)
@pytest.mark.parametrize(
    ("case", "solver", "regularizer"),
    [("H2", "pcd", "ti"), ("A2", "pcd", "ti")]
    + [(case, *rest) for case in CASES for rest in (("cd", "l2"), ("pcd", "l1"))],
)
def test_epochs_equal_the_oracle(case, solver, regularizer, storage, loss):
    X, y = data(storage, loss)
    linear = storage != "sparse"
    weights = np.arange(1.0, 11.0) if storage == "binary" else None
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
    method = make_solver(solver, problem)
    method.start(here, np.random.default_rng(0))
    P, w, b = here.P, here.w, here.intercept
    for _ in range(2):
        method.epoch()
        P, w, b = slow_lifted.coordinate_epoch(
            CASES[case]["kernel"],
            CASES[case]["degree"],
            X,
            y,
            P,
            w,
            b,
            loss=loss,
            lam_w=0.01,
            lam_p=0.05,
            lam=0.02,
            name=regularizer,
            linear=linear,
            weights=weights,
        )
    found = method.parameters()
    assert pytest.approx(P, abs=1e-10) == found.P
    if regularizer == "l1":
        assert ((found.P == 0) == (np.abs(P) < 1e-13)).all()
    else:
        # Where a column dies, slopes and thresholds both are products of next to nothing.
        assert found.P[np.abs(P) > 1e-12].all()
    assert found.w == pytest.approx(w, abs=1e-10)
    assert found.intercept == pytest.approx(b, abs=1e-10)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("case", CASES)
def test_gradients_and_curvatures_are_finite_differences(case, loss):
    X, y = data("dense", loss)
    problem = build(case, X, y, loss=loss, lambda_sparse=0.0)
    here = start_of(problem)
    slope = slow_fm.SLOPE[loss](problem.predict(here), y) / y.size
    in_P, in_w, in_bias = problem.model.gradient(problem.design, here, slope)
    weight = np.linspace(0.5, 2.0, y.size)
    curvature = problem.model.curvature(problem.design, here, weight)

    def f(P):
        return problem.predict(Parameters(P, here.w, here.intercept))

    for j, s in np.ndindex(here.P.shape):
        E = np.zeros_like(here.P)
        E[j, s] = 1e-5
        rise = problem.empirical_risk(f(here.P + E)) - problem.empirical_risk(f(here.P - E))
        assert in_P[j, s] == pytest.approx(rise / 2e-5, abs=1e-7)
        # f is linear in an entry: its difference is exact.
        df = (f(here.P + 1e5 * E) - f(here.P)) / 1.0
        assert curvature[j, s] == pytest.approx(weight @ df**2, rel=1e-8, abs=1e-9)
    assert in_w == pytest.approx(X.T @ slope)
    assert in_bias == pytest.approx(slope.sum(), abs=1e-12)


RUNS = [
    (case, regularizer, solver)
    for case in ("H2", "H3", "A2")
    for regularizer in PENALTIES
    for solver in SOLVERS
    if why_not(regularizer, solver, model="lifted", model_params=CASES[case]) is None
]


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(("case", "regularizer", "solver"), RUNS)
def test_every_solver_falls(case, regularizer, solver):
    X, y = data("dense", "squared")
    problem = build(case, X, y, regularizer=regularizer, lambda_sparse=0.01)
    snapshots = list(
        iterate(problem, solver, Budget(20, tol=0.0), init_scale=0.5, rng=np.random.default_rng(0))
    )
    values = [s.objective for s in snapshots]
    assert values[-1] < values[0]
    if SOLVERS[solver].monotone:
        assert (np.diff(values) <= 1e-10 * values[0]).all()


def test_cd_is_what_l2_gets_and_others_say_why_not():
    assert {(r, s) for c, r, s in RUNS if c == "A2"} >= {
        ("l2", "cd"),
        ("l2", "lbfgs"),
        ("l2", "apgd"),
        ("l1", "pcd"),
        ("ti", "pcd"),
        ("cs", "apgd"),
        ("l21", "nmapgd"),
    }
    assert best_solver("l2", model="lifted") == "cd"
    assert why_not("l2", "pbcd", model="lifted").code == "rows_not_linear"
    assert why_not("omega_ti", model="lifted").code == "pairs_within_columns"
    assert why_not("l2", "sgd", model="lifted").code == "no_sample_steps"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kernel": "anova", "degree": 3}, "degree = 3 with kernel 'anova'"),
        ({"degree": 1}, "degree"),
        ({"kernel": "rbf"}, "rbf"),
    ],
)
def test_bad_input_is_a_sentence(given, words):
    with pytest.raises(ValueError, match=words):
        build_problem(np.ones((3, 2)), np.ones(3), model="lifted", model_params=given, regularizer="l2")
    with pytest.raises(ValueError, match="two distinct ones"):
        build_problem(np.ones((3, 1)), np.ones(3), model="lifted", model_params={"kernel": "anova"})


def test_a_kernel_without_a_lifted_form_is_refused_before_a_run():
    assert (
        "choose degree 2"
        in why_not("l2", model="lifted", model_params={"kernel": "anova", "degree": 3}).lower()
    )


def best_of(problem: Problem, solver: str, seeds: int, init_scale: float = 0.5):
    runs = [
        list(
            iterate(
                problem,
                solver,
                Budget(5_000, tol=1e-9, report_every=None),
                init_scale=init_scale,
                rng=np.random.default_rng(seed),
            )
        )[-1]
        for seed in range(seeds)
    ]
    return min(runs, key=lambda run: run.objective)


def planted(loss: str):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = rng.normal(size=40) + 2.0 * X[:, 0] * X[:, 1] - X[:, 2] ** 2
    return X, np.sign(y) if loss == "logistic" else y


@pytest.mark.parametrize(
    ("kernel", "loss"), [("polynomial", "squared"), ("anova", "squared"), ("anova", "logistic")]
)
def test_theorem_2_lifted_direct_and_trace_norm_have_one_minimum(kernel, loss):
    X, y = planted(loss)
    lam = 0.15 if loss == "squared" else 0.05

    def problem(model, **params):
        more = {"regularizer": "l1" if model == "qr" else "l2", "rank": 16, "fit_linear": False}
        return build_problem(X, y, loss=loss, model=model, model_params=params, lambda_p=lam, **more)

    lifted = problem("lifted", kernel=kernel)
    one = best_of(lifted, "cd", 2)
    # The dual feasible gradient proves that this is the global minimum over all W.
    f = lifted.predict(one.parameters)
    G = X.T @ (X * (slow_fm.SLOPE[loss](f, y) / y.size)[:, None])
    if kernel == "anova":
        G = 0.5 * (G - np.diag(np.diag(G)))
    assert np.abs(np.linalg.eigvalsh(G)).max() <= lam * (1 + 1e-6)
    direct = problem("expansion", kernel=kernel)
    # Not multi-convex in (λ, P): some starts end in other local minima.
    two = best_of(direct, "cd", 10)
    assert two.objective == pytest.approx(one.objective, rel=1e-5)
    found = to_expansion(lifted.model, one.parameters)
    rank = found.P.shape[1]
    assert 0 < rank <= 5
    padded = Parameters(
        np.pad(found.P, ((0, 0), (0, 16 - rank))),
        found.w,
        found.intercept,
        coefficients=np.pad(found.coefficients, (0, 16 - rank)),
    )
    assert direct.objective(padded) == pytest.approx(one.objective, rel=1e-8)
    if kernel == "anova":
        *_, three = iterate(problem("qr"), "exact_pgd", Budget(3_000, tol=1e-10, report_every=None))
        assert three.objective == pytest.approx(one.objective, rel=1e-5)


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_equal_factors_are_the_direct_model_at_the_same_price(degree):
    X, y = data("dense", "squared")
    params = {"kernel": "polynomial", "degree": degree}
    more = {"regularizer": "l2", "rank": 3, "lambda_p": 0.3}
    ones = {**params, "coefficients": "ones"}
    direct = build_problem(X, y, model="expansion", model_params=ones, **more)
    lifted = build_problem(X, y, model="lifted", model_params=params, **more)
    P = np.random.default_rng(0).normal(size=(4, 3))
    w = np.ones(4)
    one = direct.objective(Parameters(P, w, 0.5, coefficients=np.ones(3)))
    assert lifted.objective(Parameters(np.tile(P, degree), w, 0.5)) == pytest.approx(one, rel=1e-12)


@pytest.mark.parametrize("case", ["H2", "H3", "A2"])
def test_solvers_meet_and_the_certificate_is_small_just_there(case):
    X, y = data("dense", "squared")
    problem = build(case, X, y, lambda_p=0.15, lambda_sparse=0.0)
    near = best_of(problem, "cd", 1)
    assert near.certificate <= 1e-7
    assert near.parameters.P.any()
    ends = [near.objective]
    for solver in ("lbfgs", "apgd"):
        *_, last = iterate(problem, solver, Budget(5_000, tol=1e-9, report_every=None), start=near.parameters)
        ends.append(last.objective)
    assert max(ends) <= min(ends) * (1 + 1e-7)
    here = near.parameters
    assert stationarity(problem, Parameters(1.01 * here.P, here.w, here.intercept)) > 1e-4


def test_a_factor_that_dies_takes_its_column_out_of_use():
    X, y = planted("squared")
    problem = build_problem(
        X, y, model="lifted", regularizer="l1", rank=4, lambda_p=1e-3, lambda_sparse=0.3, fit_linear=False
    )
    end = best_of(problem, "pcd", 1)
    U, V = end.parameters.P[:, :4], end.parameters.P[:, 4:]
    dead = ~U.any(axis=0) | ~V.any(axis=0)
    assert dead.any()
    assert not U[:, dead].any()
    assert not V[:, dead].any()


@pytest.mark.parametrize("case", CASES)
def test_counts_are_those_of_the_definition(case):
    model, m = get_model("lifted", CASES[case]), CASES[case]["degree"]
    rng = np.random.default_rng(0)
    for trial in range(30):
        d = int(rng.integers(1, 7))
        P = rng.normal(size=(d, 2 * m)) * (rng.random((d, 2 * m)) < (0.3, 0.6, 1.0)[trial % 3])
        if trial % 5 == 0:
            P[1:] = P[0]
        here = Parameters(P, np.zeros(d), 0.0)
        U = slow_lifted.split(P, m)
        assert model.used_interactions(here) == slow_lifted.used_sets(U)
        assert model.used_features(here) == slow_lifted.used_features(CASES[case]["kernel"], U)


def test_counts_beyond_machine_integers_are_exact():
    from math import comb

    U = np.ones((4, 200_000, 1))
    assert counting.used_matchings(U) == comb(200_000, 4)
    # Two kinds of rows: two of each can be dealt out.
    U[:2, 100_000:] = 0.0
    U[2:, :100_000] = 0.0
    assert counting.used_matchings(U) == comb(100_000, 2) ** 2


def test_counts_of_many_columns_take_more_than_a_word():
    rng = np.random.default_rng(0)
    U = rng.normal(size=(2, 6, 150)) * (rng.random((2, 6, 150)) < 0.02)
    assert counting.used_matchings(U) == slow_lifted.used_sets(U)
