"""Sums of column kernels and lifted models: predictions, gradients and epochs beside slow ones."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from by_name import build_problem, make_solver
from oracles import slow_columns, slow_fm, slow_lifted
from oracles.slow_stochastic import eta
from small_data import STORAGES, agree, differences, some_zeros, stored, table, target

from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.solvers._flat_problem import Joint
from fmviz.engine.solvers.stochastic.psgd import SCHEDULES

# Name, parameters, and the kernels of the oracle.
CASES = {
    "fm": ("fm", {}, [("anova", 2)]),
    "hofm2": ("hofm", {"order": 2}, [("anova", 2)]),
    "hofm3": ("hofm", {"order": 3}, [("anova", 2), ("anova", 3)]),
    "hofm4": ("hofm", {"order": 4}, [("anova", 2), ("anova", 3), ("anova", 4)]),
    "all": ("all_subsets", {}, [("subsets", None)]),
    "signs": ("expansion", {"kernel": "anova", "degree": 3, "coefficients": "signs"}, [("anova", 3)]),
    "squares": ("expansion", {"kernel": "polynomial", "coefficients": "signs"}, [("polynomial", 2)]),
    "cubes": ("expansion", {"degree": 3, "coefficients": "ones"}, [("polynomial", 3)]),
    "fitted": ("expansion", {"kernel": "polynomial"}, [("polynomial", 2)]),
    "fitted A2": ("expansion", {"kernel": "anova"}, [("anova", 2)]),
    "convex": ("convex_fm", {"diagonal": False}, [("anova", 2)]),
    "convex squares": ("convex_fm", {"diagonal": True}, [("polynomial", 2)]),
    "H2": ("lifted", {"kernel": "polynomial", "degree": 2}, None),
    "H3": ("lifted", {"kernel": "polynomial", "degree": 3}, None),
    "H4": ("lifted", {"kernel": "polynomial", "degree": 4}, None),
    "A2": ("lifted", {"kernel": "anova", "degree": 2}, None),
}
LIFTED = ("H2", "H3", "H4", "A2")
MULTILINEAR = ("hofm2", "hofm3", "hofm4", "all", "signs")
LAM_W, LAM_P, LAM = 0.04, 0.05, 0.03
# Longer steps diverge on columns of third and fourth order.
ETA0 = 0.01


def build(case: str, storage: str = "dense", loss: str = "squared", **more):
    """Return a table, y and the problem."""
    n, d = (10, 4) if case in LIFTED else (12, 5)
    X, y = table(storage, n, d), target(np.random.default_rng(3).normal(size=n), loss)
    model, params, _ = CASES[case]
    given = {"lambda_w": LAM_W, "lambda_p": LAM_P, "lambda_sparse": LAM, "rank": 2, "regularizer": "l2"}
    given |= {"lambda_sparse": 0.0} if case.startswith(("fitted", "convex")) else {}
    problem = build_problem(
        stored(X, storage), y, model=model, model_params=params, loss=loss, **(given | more)
    )
    return X, y, problem


def start_of(problem: Problem, scale: float = 0.7) -> Parameters:
    start = problem.start(scale, np.random.default_rng(1))
    if problem.model.name == "convex_fm":
        start = start.replace(P=np.random.default_rng(1).normal(size=start.P.shape), coefficients=[2.0, -0.5])
    return some_zeros(start, problem.fit_linear, problem.fit_intercept)


@pytest.mark.sample(8)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("case", CASES)
def test_predictions_and_objective_are_the_definition(case, storage):
    X, y, problem = build(case, storage)
    here = start_of(problem)
    _, params, blocks = CASES[case]
    at, m = (here.P, here.w, here.intercept), params.get("degree")
    if case in LIFTED:
        f = slow_lifted.predict(params["kernel"], m, X, *at)
    else:
        f = slow_columns.predict(blocks, X, *at, here.multipliers)
    assert problem.predict(here) == pytest.approx(f, rel=1e-10, abs=1e-10)
    squares = (here.P**2).sum(axis=0)
    shrunk = squares.sum() / m if case in LIFTED else (np.abs(here.multipliers) * squares).sum()
    if case.startswith("convex"):
        shrunk = np.linalg.norm((here.P * here.multipliers) @ here.P.T, "nuc")
    value = np.mean(slow_fm.LOSS["squared"](f, y)) + LAM_W * here.w @ here.w + LAM_P * shrunk
    assert problem.objective(here) == pytest.approx(value + problem.lambda_sparse * squares.sum(), rel=1e-10)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber"])
@pytest.mark.parametrize("case", CASES)
def test_gradients_and_curvatures_are_finite_differences(case, loss):
    _, y, problem = build(case, loss=loss)
    here = start_of(problem)
    slope = slow_fm.SLOPE[loss](problem.predict(here), y) / y.size

    def risk(name, array):
        return problem.empirical_risk(problem.predict(here.replace(**{name: array})))

    for name, result in zip(
        ["P", "w", "intercept"], problem.model.gradient(problem.design, here, slope), strict=True
    ):
        expected = differences(lambda array, name=name: risk(name, array), np.asarray(here[name]))
        assert result == pytest.approx(expected, abs=1e-5), name
    if loss == "squared" and case in ("fm", *MULTILINEAR, *LIFTED):
        # Along an entry the squared error is a parabola.
        for (j, s), result in np.ndenumerate(problem.evaluated(here).curvature):
            E = np.zeros_like(here.P)
            E[j, s] = 1.0
            second = risk("P", here.P + E) - 2.0 * risk("P", here.P) + risk("P", here.P - E)
            assert result == pytest.approx(second, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(
    ("model", "params", "strength"),
    [
        *(
            ("expansion", {"kernel": kernel, "degree": degree}, 0.0)
            for kernel, degree in product(("polynomial", "anova"), (3, 4))
        ),
        ("hofm", {"order": 3}, 0.1),
    ],
)
def test_gradients_of_all_that_is_smooth_are_finite_differences(model, params, strength):
    given = {"model": model, "model_params": params, "regularizer": "l2", "lambda_sparse": strength}
    problem = build_problem(table(), table()[:, 0], **given)
    joint, rng = Joint(problem), np.random.default_rng(1)
    shapes = problem.model.shapes(5, problem.rank)
    theta = joint.pack(Parameters(**{name: rng.normal(size=shape) for name, shape in shapes.items()}))
    _, gradient = joint.smooth_value_and_gradient(theta)
    assert gradient == pytest.approx(differences(joint.objective, theta), rel=1e-5, abs=1e-6)


# ----------------------------------------------------------------------------------------------- the epochs


def oracle_epoch(case, solver, problem, X, y, weights, at, draw, schedule, first):
    """Return P, w, the bias and the multipliers after an epoch."""
    P, w, b, c = at
    _, params, blocks = CASES[case]
    loss, name, linear = problem.loss.name, problem.penalty.name, problem.fit_linear
    same = {"loss": loss, "lam_w": LAM_W, "lam_p": LAM_P, "lam": problem.lambda_sparse, "weights": weights}
    if case in LIFTED:
        kernel, degree = params["kernel"], params["degree"]
        return *slow_lifted.coordinate_epoch(
            kernel, degree, X, y, P, w, b, penalty=name, linear=linear, **same
        ), c
    if solver not in ("sgd", "psgd"):
        setting = slow_columns.Setting(blocks, X, y, loss, name, LAM_W, LAM_P, LAM, linear, linear, weights)
        return *(setting.row_epoch if solver == "pbcd" else setting.coordinate_epoch)(P, w, b, c), c
    if case.startswith("fitted"):
        c = slow_columns.fitted_coefficients(blocks, X, y, P, w, b, c, loss=loss, lam_p=LAM_P)
    n = y.size
    sizes = [
        tuple(eta(schedule, ETA0, 0.5, strength, t) for strength in (LAM_P, LAM_W))
        for t in range(first * n, (1 + first) * n)
    ]
    order = draw.permutation(n)
    return *slow_columns.stochastic_epoch(
        blocks, X, y, P, w, b, c, order, sizes, name=solver, linear=linear, **same
    ), c


def compare(case, solver, regularizer, storage, loss, tolerance):
    """Make two epochs beside the oracle's."""
    linear = storage != "sparse"
    weights = np.arange(1.0, 11.0 if case in LIFTED else 13.0) if storage == "binary" else None
    fitted = {"fit_linear": linear, "fit_intercept": linear, "sample_weight": weights}
    X, y, problem = build(case, storage, loss, regularizer=regularizer, **fitted)
    stochastic = solver in ("sgd", "psgd")
    here = start_of(problem, 0.4 if stochastic else 0.7)
    schedule = SCHEDULES[list(CASES).index(case) % len(SCHEDULES)]
    own = {"monotone": False, "schedule": schedule, "eta0": ETA0} if stochastic else {}
    method, draw = make_solver(solver, problem, **own), np.random.default_rng(4)
    method.start(here, np.random.default_rng(4))
    at = here.P, here.w, here.intercept, here.multipliers
    for i in range(2):
        method.epoch()
        at = oracle_epoch(case, solver, problem, X, y, weights, at, draw, schedule, i)
    result, P = method.parameters(), at[0]
    agree(result, *at[:3], abs=tolerance)
    assert result.multipliers == pytest.approx(at[3], abs=tolerance)
    if stochastic or regularizer in ("l1", "l21"):
        assert ((result.P == 0) == (np.abs(P) < 1e-13 if case in LIFTED else P == 0)).all()
    else:
        # Where a column dies, slopes and thresholds both are products of next to nothing.
        assert result.P[np.abs(P) > 1e-12].all()


WAYS = [("dense", "squared"), ("sparse", "logistic"), ("binary", "huber")]
COLUMNS = ("case", "solver", "regularizer", "storage", "loss")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    COLUMNS,
    [
        (case, *how, *way)
        for case in MULTILINEAR
        for how in [
            *(("cd", "l2"), ("pcd", "l1"), ("pcd", "omega_ti")),
            *(("pbcd", "l1"), ("pbcd", "l21"), ("pbcd", "omega_ti"), ("pbcd", "omega_cs")),
        ]
        for way in WAYS
        # Every kernel in every storage; the others differ in the degree alone.
        if way[0] == "dense" or case in ("hofm3", "all")
    ],
)
def test_sweeps_of_columns_equal_the_oracle(case, solver, regularizer, storage, loss):
    compare(case, solver, regularizer, storage, loss, 1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    COLUMNS,
    [("H2", "pcd", "ti", *WAYS[0]), ("A2", "pcd", "ti", *WAYS[1])]
    + [
        (case, *how, *way)
        for case in LIFTED
        for how in (("cd", "l2"), ("pcd", "l1"))
        for way in (*WAYS, ("dense", "squared_hinge"))
    ],
)
def test_sweeps_of_lifted_factors_equal_the_oracle(case, solver, regularizer, storage, loss):
    compare(case, solver, regularizer, storage, loss, 1e-10)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    COLUMNS,
    [
        (case, *how, *way)
        for case in ("hofm2", "hofm4", "all", "signs", "cubes")
        for how in (("sgd", "l2"), ("psgd", "l1"))
        for way in WAYS
    ]
    + [
        (case, "sgd", "l2", "dense", loss)
        for case in ("fitted", "fitted A2")
        for loss in ("squared", "logistic")
    ],
)
def test_stochastic_epochs_equal_the_oracle(case, solver, regularizer, storage, loss):
    compare(case, solver, regularizer, storage, loss, 1e-6 if case.startswith("fitted") else 1e-11)


def test_a_column_without_coefficient_rests():
    _, _, problem = build("fitted", lambda_p=0.3, rank=3)
    here = start_of(problem, 0.4)
    method = make_solver("sgd", problem, monotone=False)
    method.start(here, np.random.default_rng(0))
    method.epoch()
    result = method.parameters()
    resting = result.multipliers == 0.0
    assert resting.any()
    assert (result.P[:, resting] == here.P[:, resting]).all()


# --------------------------------------------------------------------------------------- counts and choices


def test_counts_are_those_of_all_subsets(rng):
    for _ in range(20):
        P = rng.normal(size=(7, 6)) * (rng.random((7, 6)) < 0.4)
        model = get_model("hofm", {"order": 4})
        here = Parameters(P, np.zeros(7), 0.0)
        expected = {
            m: sum(
                any(all(P[j, s] for j in subset) for s in range(2 * (m - 2), 2 * (m - 1)))
                for subset in combinations(range(7), m)
            )
            for m in (2, 3, 4)
        }
        assert model.used_by_order(here) == expected
        assert model.used_interactions(here) == sum(expected.values())


@pytest.mark.parametrize("case", LIFTED)
def test_counts_of_lifted_factors_are_those_of_the_definition(case):
    _, params, _ = CASES[case]
    model, m, rng = get_model("lifted", params), params["degree"], np.random.default_rng(0)
    for trial in range(30):
        d = int(rng.integers(1, 7))
        P = rng.normal(size=(d, 2 * m)) * (rng.random((d, 2 * m)) < (0.3, 0.6, 1.0)[trial % 3])
        if trial % 5 == 0:
            P[1:] = P[0]
        here, U = Parameters(P, np.zeros(d), 0.0), slow_lifted.split(P, m)
        products, sets = (slow_lifted.weights(U, np.ones(2), repeated) for repeated in (True, False))
        assert model.used_interactions(here) == len(sets)
        used = products if params["kernel"] == "polynomial" else sets
        assert model.used_features(here) == len({j for product in used for j in product})
