"""Passing over zeros and sweeping over the live entries alone change the time, not the result."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from by_name import build_problem, iterate, make_solver
from oracles import slow_fm
from pairwise import sampled
from scipy.sparse import csr_array
from small_data import stored

from fmviz.datasets import make_sparse_interactions
from fmviz.engine._jit import python_version
from fmviz.engine.certificates.stationarity import stationarity
from fmviz.engine.fit import Budget
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.solvers._anderson import Extrapolation, combine, note
from fmviz.engine.solvers._sweeping import SweepingSolver
from fmviz.engine.solvers.kernels.sweeps import end_sweep
from fmviz.engine.solvers.pcd import PCD

X, Y, _ = make_sparse_interactions(60, 16, 2, 4, random_state=0)


def problem(
    loss: str = "squared", regularizer: str = "ti", lam: float = 0.05, storage: str = "dense", **settings
) -> Problem:
    return build_problem(
        stored(X, storage),
        Y / Y.std() if loss in ("squared", "huber") else np.sign(Y),
        loss=loss,
        regularizer=regularizer,
        **({"rank": 4, "lambda_w": 0.01, "lambda_p": 0.01, "lambda_sparse": lam} | settings),
    )


def started(of: Problem, solver: str = "pcd", **settings) -> Any:
    rng = np.random.default_rng(0)
    method = make_solver(solver, of, **settings)
    method.start(of.start(0.3, rng), rng)
    return method


def without_screen(of: Problem, order: str) -> PCD:
    method = started(of, order=order)
    # An infinite norm bounds nothing, so that every entry is looked at.
    method._screen = method._screen._replace(norms=np.full(X.shape[1], np.inf))
    return method


@pytest.mark.sample(1)
@pytest.mark.parametrize("order", ["columns", "features"])
@pytest.mark.parametrize("regularizer", ["ti", "l1", "omega_ti"])
@pytest.mark.parametrize(
    ("loss", "weighted"),
    [("squared", False), ("squared", True), ("logistic", True), ("huber", False), ("squared_hinge", False)],
)
def test_entries_that_are_passed_over_would_have_stayed(loss, weighted, regularizer, order):
    weights = np.linspace(0.0, 2.0, Y.size) if weighted else None
    of = problem(loss, regularizer, sample_weight=weights)
    quick, slow = started(of, order=order), without_screen(of, order)
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
    # By features, zeros that the screen does not know are looked at together, which renews their marks.
    assert passed > (100 if order == "columns" else 0)


@pytest.mark.parametrize(
    ("solver", "regularizer", "loss", "order"),
    sampled(
        (
            [
                ("pcd", "ti", loss, order)
                for loss in ("squared", "logistic")
                for order in ("columns", "features", "mixed")
            ],
            1,
        ),
        ([("pbcd", "cs", "squared", None)], 1),
    ),
)
def test_many_epochs_equal_the_oracle(solver, regularizer, loss, order):
    of = problem(loss, regularizer, fit_linear=False, fit_intercept=False)
    method = started(of, solver, **({"order": order} if order else {}))
    P = method.parameters().P
    settings = {"loss": loss, "penalty": regularizer, "lam_p": 0.01, "lam": 0.05}
    for epoch in range(8):
        method.epoch()
        if solver == "pbcd":
            P = slow_fm.pbcd_epoch(X, of.y, np.zeros(20), P, 0.0, **settings)
        else:
            by_features = order == "features" or (order == "mixed" and epoch >= 2)
            P = slow_fm.pcd_epoch(X, of.y, np.zeros(20), P, 0.0, **settings, by_features=by_features)
        # On some processors a rounding error stays of a column's last live entry, from which sweeps without
        # our test for that would wake the column again.
        P[np.abs(P) <= 1e-14] = 0.0
        assert ((method.parameters().P != 0) == (P != 0)).all()
    assert pytest.approx(P, abs=1e-10) == method.parameters().P


@pytest.mark.sample(1)
@pytest.mark.parametrize("order", ["features", "columns"])
def test_nudged_slopes_stay_right(order):
    of = problem("logistic", lam=1e-4)
    method = started(of, order=order)
    for _ in range(method.refresh_every):
        method.epoch()
        exact = of.loss.derivative(method._f, of.y)
        assert (np.abs(method._slope - exact) <= 1e-13 * np.abs(exact)).all()


def of_pairs(regularizer: str) -> Problem:
    """Return a problem in which a user and an item are in every row."""
    rng, weights = np.random.default_rng(2), np.random.default_rng(0)
    M = np.hstack([np.eye(4)[rng.integers(0, 4, 400)], np.eye(5)[rng.integers(0, 5, 400)]])
    U, V = weights.normal(size=(4, 2)), weights.normal(size=(5, 2))
    y = ((M[:, :4] @ U) * (M[:, 4:] @ V)).sum(axis=1)
    return build_problem(csr_array(M), y, regularizer=regularizer, rank=4, lambda_p=1e-4, lambda_sparse=2e-3)


@pytest.mark.parametrize(
    ("solver", "regularizer", "lam", "loss", "storage"),
    sampled(
        (
            [
                ("pcd", "ti", 0.02, loss, storage)
                for loss in ("squared", "logistic")
                for storage in ("dense", "sparse")
            ],
            4,
        ),
        (
            [
                (solver, *penalty, "squared", storage)
                for solver in ("pbcd", "pbcd_ls")
                for penalty in (("cs", 0.02), ("l21", 0.1))
                for storage in ("dense", "sparse")
            ],
            1,
        ),
        ([(*case, 2e-3, "squared", "pairs") for case in (("pcd", "ti"), ("pcd", "l1"), ("pbcd", "cs"))], 3),
    ),
)
def test_active_sweeps_end_at_the_same_point_in_fewer_epochs(solver, regularizer, lam, loss, storage):
    of = of_pairs(regularizer) if storage == "pairs" else problem(loss, regularizer, lam, storage=storage)
    ends = {}
    for most in (0, 10):
        budget, rng = Budget(20_000, tol=1e-11, report_every=2**31), np.random.default_rng(1)
        *_, ends[most] = iterate(of, solver, budget, rng=rng, init_scale=0.3, active_sweeps=most)
        assert ends[most].status.converged
        assert stationarity(of, ends[most].parameters) < 1e-7
    plain, active = ends[0], ends[10]
    zeros = plain.parameters.P == 0
    assert 0 < zeros.sum() < zeros.size
    assert active.objective == pytest.approx(plain.objective, rel=1e-8)
    assert np.array_equal(active.parameters.P == 0, zeros)
    assert active.epoch < 0.7 * plain.epoch or storage == "pairs"


def test_active_sweeps_wait_until_the_zeros_are_settled():
    # From a dense start the first sweep kills entries, so that the first epoch is the paper's.
    of = problem()
    plain, active = started(of), started(of, active_sweeps=10)
    plain.epoch()
    active.epoch()
    assert np.array_equal(plain.parameters().P, active.parameters().P)


def noted(of, theta, bias=0.0, live=None):
    """Note an iterate without linear weights; return whether there are as many as are combined."""
    live = np.ones(theta.size, dtype=bool) if live is None else live
    of.note(theta.reshape(1, -1), np.empty(0), bias, live)
    return of.full


def test_extrapolation_finds_the_limit_of_an_affine_map(rng):
    M = 0.95 * np.linalg.qr(rng.normal(size=(3, 3)))[0] @ np.diag([1.0, 0.9, 0.5])
    fixed = rng.normal(size=3)
    of = Extrapolation(4, np.array([2, 1, 0]), 0, np.empty(0))
    theta = np.ones(3)
    for _ in range(4):
        assert not noted(of, theta[::-1].copy(), 7.0)
        theta = fixed + M @ (theta - fixed)
    assert noted(of, theta[::-1].copy(), 7.0)
    result = of.point()
    assert result[:3] == pytest.approx(fixed, abs=1e-5)
    # What stays the same in all iterates stays exactly.
    assert result[3] == 7.0


def test_iterates_are_noted_by_features_whatever_the_order_of_their_solver():
    outcomes = np.array([[4.0, -1.0, 0.0, 2.0], [2.0, -0.5, 0.0, 1.0], [1.0, 0.0, 0.0, 0.5]])
    for how in (note, python_version(note)):
        live, iterates = np.array([True, True, False, True]), np.zeros((3, 6))
        places, w = np.array([3, 0, 1]), np.array([7.0, 8.0])
        assert how(iterates, 0, outcomes[:2], places, w, 0.5, live) == 2
        assert iterates.tolist() == [
            [2.0, 4.0, -1.0, 7.0, 8.0, 0.5],
            [1.0, 2.0, -0.5, 7.0, 8.0, 0.5],
            [0.0] * 6,
        ]
        assert how(iterates, 2, outcomes[2:], places, w, 0.5, live) == 1
        assert iterates[0].tolist() == [0.5, 1.0, 0.0, 7.0, 8.0, 0.5]
        assert live.tolist() == [True, False, False, True]
        # What a file says of their number is not trusted.
        assert [how(iterates, count, outcomes[2:], places, w, 0.5, live) for count in (-9, 3, 99)] == [
            1,
            1,
            1,
        ]


@pytest.mark.needs_jit
def test_a_sweep_ends_with_its_relative_change_compiled_and_in_python():
    compiled = numba.njit(lambda outcomes, created, P, moved: end_sweep(outcomes, created, P, moved))
    P = np.array([4.0, -1.0, 0.0, 2.0])
    for moved, expected in ((2.0, 0.5), (8.0, 1.0), (0.0, 0.0), (np.inf, np.inf), (np.nan, np.inf)):
        for end in (end_sweep, compiled):
            outcomes = np.zeros((2, 4))
            assert end(outcomes, 1, P, moved) == expected
            assert outcomes.tolist() == [[0.0] * 4, P.tolist()]
            # There is no room for more.
            assert end(outcomes, 2, P, moved) == expected


@pytest.mark.parametrize("design", ["dense", "sparse", "pairs"])
@pytest.mark.parametrize(("regularizer", "solver"), [("ti", "pcd"), ("cs", "pbcd")])
def test_sweeps_in_one_call_are_those_made_one_by_one(regularizer, solver, design, monkeypatch, rng):
    settings = {"active_sweeps": 20, "anderson": 4}
    X = rng.normal(size=(40, 12))
    if design == "pairs":
        X = np.eye(6)[rng.integers(0, 6, (40, 2))].reshape(40, 12)
    problem = build_problem(
        X if design == "dense" else csr_array(X),
        rng.normal(size=40),
        regularizer=regularizer,
        rank=3,
        lambda_sparse=0.002,
        fit_linear=False,
        fit_intercept=False,
    )
    start = Parameters(rng.normal(size=(12, 3)) * 0.3, np.zeros(12), 0.0)

    def run():
        method, calls = make_solver(solver, problem, **settings), []
        sweep_factors = method._sweep_factors

        def counted(rounds):
            calls.append(1)
            sweep_factors(rounds)

        method._sweep_factors = counted
        method.start(start, np.random.default_rng(0))
        changes = [method.epoch() for _ in range(15)]
        return changes, method.parameters().P, len(calls)

    together = run()
    sweep = SweepingSolver._sweep
    monkeypatch.setattr(SweepingSolver, "_sweep", lambda self, most=1, enough=0.0: sweep(self, 1, enough))
    single = run()
    assert together[0] == single[0]
    assert np.array_equal(together[1], single[1])
    assert together[2] < 0.6 * single[2]


@pytest.mark.parametrize("sized", [False, True])
def test_the_combination_has_the_smallest_step(sized, rng):
    iterates, first = rng.normal(size=(6, 11)), 7
    sizes = rng.uniform(0.5, 2.0, 11) if sized else np.empty(0)
    result, slow = np.empty(11), np.empty(11)
    assert combine(iterates, sizes, first, result)
    assert python_version(combine)(iterates, sizes, first, slow)
    assert result == pytest.approx(slow, rel=1e-9)
    scales = np.ones(11)
    if sized:
        for part in (slice(first), slice(first, None)):
            scales[part] = sizes[part] / np.linalg.norm(sizes[part] * iterates[-1, part])
    steps = np.diff(iterates, axis=0) * scales
    # With c = (1 − Σ rest, rest) the smallest ‖Σ c_i steps_i‖ is a least squares problem.
    remaining = np.linalg.lstsq((steps[1:] - steps[0]).T, -steps[0], rcond=None)[0]
    assert result == pytest.approx(np.append(1.0 - remaining.sum(), remaining) @ iterates[1:], rel=1e-6)


@pytest.mark.parametrize("value", [0.0, np.inf, np.nan])
def test_what_does_not_move_or_is_not_finite_is_not_extrapolated(value):
    of = Extrapolation(2, np.arange(1), 0, np.empty(0))
    with np.errstate(invalid="ignore"):
        live = np.array([value != 0.0])
        assert [noted(of, np.array([value]), live=live) for _ in range(3)] == [False, False, True]
        assert of.point() is None


@pytest.mark.parametrize(
    ("shape", "order"), [((2_500, 1_000), "mixed"), ((20_000, 110), "columns"), ((200, 100), "columns")]
)
def test_large_dense_data_is_swept_by_features_after_the_first_epochs(shape, order):
    of = build_problem(np.ones(shape), np.arange(shape[0]), rank=30)
    assert make_solver("pcd", of).settings["order"] == order
    few = build_problem(csr_array((shape[0], shape[1] + 10**4)), np.arange(shape[0]), rank=3)
    assert make_solver("pcd", few).settings["order"] == "columns"


@pytest.mark.parametrize("model", ["hofm", "lifted"])
def test_other_models_say_that_they_are_swept_by_columns(model):
    of = build_problem(X, Y, model=model, regularizer="l2", rank=2)
    with pytest.raises(ValueError, match="choose 'auto' or 'columns'"):
        make_solver("cd", of, order="features")
    assert make_solver("cd", of, order="columns").settings["order"] == "columns"


@pytest.mark.parametrize("active", [0, 10])
@pytest.mark.parametrize(
    ("solver", "regularizer", "loss"), [("pcd", "ti", "squared"), ("pbcd", "cs", "logistic")]
)
def test_extrapolation_never_raises_the_objective_and_ends_at_a_certified_point(
    solver, regularizer, loss, active
):
    of = problem(loss, regularizer, lam=0.02)
    epochs = {}
    for depth in (0, 5):
        objectives = []
        for end in iterate(
            of,
            solver,
            Budget(20_000, tol=1e-11, report_every=1),
            rng=np.random.default_rng(0),
            init_scale=0.3,
            active_sweeps=active,
            anderson=depth,
        ):
            objectives.append(end.objective)
        assert end.status.converged
        assert stationarity(of, end.parameters) < 1e-7
        assert (np.diff(objectives) <= 1e-12).all()
        epochs[depth] = end.epoch
    assert epochs[5] < (0.8 if active == 0 else 1.0) * epochs[0]


# --------------------------------------------------------------------------------------------- sweeps of rows


@pytest.mark.slow
def test_line_search_takes_the_lipschitz_constant_where_the_loss_is_flat():
    # All margins are met: the second derivative of the squared hinge is 0 everywhere.
    y = np.where(X[:, 0] * X[:, 1] > 0.0, 1.0, -1.0)
    of = build_problem(
        X, y, loss="squared_hinge", regularizer="cs", rank=1, fit_linear=False, fit_intercept=False
    )
    P = np.zeros((20, 1))
    P[:2] = 1e3
    here = of.start(0.3, np.random.default_rng(0))
    here.P[:] = P
    plain, search = (make_solver(name, of) for name in ("pbcd", "pbcd_ls"))
    for method in (plain, search):
        method.start(here, np.random.default_rng(0))
        method.epoch()
    assert np.isfinite(search.parameters().P).all()
    assert of.objective(search.parameters()) <= of.objective(here)
    assert pytest.approx(plain.parameters().P) == search.parameters().P


def test_active_sweeps_pass_over_dead_rows():
    method = started(problem(regularizer="cs", lam=0.02, fit_linear=False, fit_intercept=False), "pbcd")
    for _ in range(30):
        method.epoch()
    P = method.parameters().P
    method._live_only = True
    revived = int(np.flatnonzero(P.any(axis=1))[0])
    method._P[0, revived] = 0.0
    method._sweep()
    assert not method.parameters().P[revived].any()
    method._live_only = False
    method._refresh()
    method._sweep()
    assert method.parameters().P[revived].any()
