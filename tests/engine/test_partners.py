"""Designs whose rows are pairs of ones: they are found, and their kernels make the same epochs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import SMOOTH, build_problem, iterate, make_solver, tiny_problem
from oracles import slow_fm

from fmviz.choices import why_not
from fmviz.engine._jit import python_version
from fmviz.engine.certificates.stationarity import stationarity
from fmviz.engine.design import LAYOUTS, Design
from fmviz.engine.drive import Budget
from fmviz.engine.losses import LOSSES
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import get_solver
from fmviz.engine.solvers.kernels.matrix_factorization import add_products, predict_pairs

D = 9
METHODS = ("cd", "pcd", "pbcd")
CASES = [
    (regularizer, params, solver, loss)
    for regularizer, params in [(r, {}) for r in PENALTIES] + [("ti", {"axis": "rows"})]
    for solver in METHODS
    for loss in SMOOTH
    if why_not(regularizer, solver, regularizer_params=params) is None
    and (loss in ("squared", "logistic") or (regularizer, solver) in (("ti", "pcd"), ("cs", "pbcd")))
]
IDS = [f"{r}{''.join(p.values())}-{s}-{loss}" for r, p, s, loss in CASES]


def pairs(n: int = 40, seed: int = 0) -> np.ndarray:
    """Any two of eight features; the fifth of nine is in no row."""
    rng = np.random.default_rng(seed)
    used = np.delete(np.arange(D), 4)
    X = np.zeros((n, D))
    for row in X:
        row[rng.choice(used, 2, replace=False)] = 1.0
    return X


def users_and_items(n: int = 60, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = np.zeros((n, D))
    X[np.arange(n), rng.integers(0, 4, n)] = 1.0
    X[np.arange(n), rng.integers(4, D, n)] = 1.0
    return X


def target(X: np.ndarray, loss: str) -> np.ndarray:
    y = np.random.default_rng(7).normal(size=X.shape[0])
    return np.where(y > 0, 1.0, -1.0) if LOSSES[loss].task == "binary" else y


def start(scale: float = 0.6) -> Parameters:
    rng = np.random.default_rng(1)
    P = rng.normal(size=(D, 4)) * scale
    P[1] = 0.0
    P[3, 1] = 0.0
    # A component that is dead, between two that live, and one with a single live entry.
    P[:, 2] = 0.0
    P[:, 3] *= np.arange(D) == 6
    return Parameters(P, rng.normal(size=D) * 0.2, 0.3)


def started(problem: Problem, solver: str, begin: Parameters | None = None, pairs: bool = True, **settings):
    own = type(get_solver(solver))
    kind = type(own.__name__, (own,), {"takes_pairs": pairs})
    method = kind(**settings).on(problem)
    method.start(start() if begin is None else begin, np.random.default_rng(0))
    return method


@pytest.mark.parametrize("make", [pairs, users_and_items])
def test_the_partners_are_found(make):
    X = make()
    design = Design(sp.csr_array(X))
    found = design.partners
    assert design.layout == "pairs"
    assert design.storage.name == "binary"
    assert np.array_equal(np.flatnonzero(X[0]), [found.first[0], found.second[0]])
    assert (found.first < found.second).all()
    both = np.zeros_like(X)
    both[np.arange(len(X)), found.first] += 1.0
    both[np.arange(len(X)), found.second] += 1.0
    assert np.array_equal(both, X)
    _, indices, indptr = design.columns
    for j in range(D):
        for i in range(indptr[j], indptr[j + 1]):
            assert X[indices[i], found.other[i]] == 1.0
            assert found.other[i] != j


def test_what_is_no_pair_has_no_partners():
    X = pairs()
    for other in (X, sp.csr_array(2.0 * X), sp.csr_array(np.ones((3, 3))), sp.csr_array((3, 2))):
        assert Design(other).partners is None
    # As many ones as pairs have, but not two in each row.
    X[0] = 0.0
    X[0, 0] = 1.0
    X[1, :3] = 1.0
    X[1, 3:] = 0.0
    assert Design(sp.csr_array(X)).nnz == 2 * len(X)
    assert Design(sp.csr_array(X)).partners is None
    assert Design(sp.csr_array(X)).layout == "binary"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_warm_up_has_problems_of_every_layout(layout):
    assert tiny_problem(layout, "squared", "ti").design.layout == layout


def test_predictions_are_the_models():
    X = pairs()
    problem = build_problem(sp.csr_array(X), target(X, "squared"))
    at = start()
    found = predict_pairs(problem.design, problem.design.partners, at.P, at.w, at.intercept)
    assert found == pytest.approx(slow_fm.predict(X, at.w, at.P, at.intercept), abs=1e-14)
    plain = X @ at.w + at.intercept
    python_version(add_products)(problem.design.partners.first, problem.design.partners.second, at.P, plain)
    assert found == pytest.approx(plain, abs=1e-14)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("regularizer", "params", "solver", "loss"), CASES, ids=IDS)
def test_epochs_equal_the_oracle(regularizer, params, solver, loss):
    for make, linear, bias, lam, lam_p, weighted in (
        (pairs, True, True, 0.05, 0.02, False),
        (users_and_items, False, False, 0.3, 0.01, False),
        (pairs, False, True, 0.02, 0.02, True),
    ):
        # Compiling takes most of the time: few kernels meet both weights and none.
        if weighted != (loss == "logistic") and (regularizer, solver) != ("ti", "pcd"):
            continue
        X = make()
        y = target(X, loss)
        weights = np.linspace(0.0, 2.0, y.size) if weighted else None
        at = start()
        w, b, P = at.w if linear else 0 * at.w, at.intercept if bias else 0.0, at.P
        problem = build_problem(
            sp.csr_array(X),
            y,
            loss=loss,
            regularizer=regularizer,
            regularizer_params=params,
            rank=4,
            lambda_w=0.04,
            lambda_p=lam_p,
            lambda_sparse=lam,
            fit_linear=linear,
            fit_intercept=bias,
            sample_weight=weights,
        )
        method = started(problem, solver, Parameters(P, w, b))
        fitted = {"fit_linear": linear, "fit_intercept": bias, "weights": weights}
        settings = {"name": "ti_rows" if params else regularizer, "lam_p": lam_p, "lam": lam}
        epoch = slow_fm.pbcd_epoch if solver == "pbcd" else slow_fm.pcd_epoch
        for _ in range(3):
            method.epoch()
            w, b = slow_fm.linear_epoch(X, y, w, P, b, loss=loss, lam_w=0.04, **fitted)
            P = epoch(X, y, w, P, b, loss=loss, weights=weights, **settings)
            found = method.parameters()
            assert found.w == pytest.approx(w, abs=1e-10)
            assert found.intercept == pytest.approx(b, abs=1e-10)
            assert pytest.approx(P, abs=1e-10) == found.P
            # What the threshold kills is exactly 0; the quadratic part alone may leave a rounding error.
            assert ((np.abs(found.P) > 1e-14) == (np.abs(P) > 1e-14)).all()
            if regularizer in ("l1", "l21"):
                assert ((found.P != 0) == (P != 0)).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize(("regularizer", "solver"), [("ti", "pcd"), ("omega_ti", "pcd"), ("cs", "pbcd")])
def test_many_epochs_are_those_of_any_binary_design(regularizer, solver, loss):
    X = pairs(80, 3)
    problem = build_problem(
        sp.csr_array(X),
        target(X, loss),
        loss=loss,
        regularizer=regularizer,
        rank=4,
        lambda_w=0.01,
        lambda_p=0.002,
        lambda_sparse=0.001,
    )
    ours, plain = (started(problem, solver, pairs=flag, active_sweeps=3) for flag in (True, False))
    assert plain._partners is None
    assert ours._partners is not None
    for _ in range(12):
        ours.epoch()
        plain.epoch()
        assert ((ours.parameters().P != 0) == (plain.parameters().P != 0)).all()
        assert pytest.approx(plain.parameters().P, abs=1e-9) == ours.parameters().P
    assert not ours.parameters().P[:, 2].any()


@pytest.mark.needs_jit
@pytest.mark.parametrize(("regularizer", "solver"), [("ti", "pcd"), ("l1", "pcd"), ("cs", "pbcd")])
def test_active_sweeps_end_at_the_same_point(regularizer, solver):
    X = users_and_items(400, 2)
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    y = np.einsum("nd,dk->nk", X[:, :4], U) * np.einsum("nd,dk->nk", X[:, 4:], V)
    problem = build_problem(
        sp.csr_array(X), y.sum(axis=1), regularizer=regularizer, rank=4, lambda_p=1e-4, lambda_sparse=2e-3
    )
    ends = {}
    for most in (0, 10):
        budget = Budget(20_000, tol=1e-11, report_every=2**31)
        *_, ends[most] = iterate(
            problem, solver, budget, rng=np.random.default_rng(1), init_scale=0.3, active_sweeps=most
        )
        assert ends[most].status.converged
        assert stationarity(problem, ends[most].parameters) < 1e-7
    assert ends[10].objective == pytest.approx(ends[0].objective, rel=1e-8)
    zeros = ends[0].parameters.P == 0
    assert zeros.any()
    assert np.array_equal(ends[10].parameters.P == 0, zeros)


@pytest.mark.parametrize(("regularizer", "solver"), [("omega_ti", "pcd"), ("omega_cs", "pbcd")])
def test_a_lone_entry_has_no_slope_at_all(regularizer, solver):
    X = pairs()
    problem = build_problem(
        sp.csr_array(X), target(X, "squared"), regularizer=regularizer, rank=4, lambda_sparse=0.3
    )
    lone = np.zeros((D, 4))
    lone[6] = [0.5, -0.25, 0.0, 1.0]
    method = started(problem, solver, Parameters(lone, np.zeros(D), 0.0))
    for _ in range(12):
        method.epoch()
        assert np.array_equal(method.parameters().P, lone)


@pytest.mark.parametrize("solver", ["pcd", "pbcd"])
def test_a_partner_next_to_nothing_makes_no_step(solver):
    X = users_and_items()
    problem = build_problem(sp.csr_array(X), target(X, "squared"), regularizer="l1", rank=4)
    P = np.zeros((D, 4))
    P[:4, 0], P[4, 0], P[5:, 0] = 0.6, 1.0, 1e-160
    method = started(problem, solver, Parameters(P, np.zeros(D), 0.0))
    for _ in range(3):
        assert np.isfinite(method.epoch())
        assert np.abs(method.parameters().P).max() < 1e3


@pytest.mark.slow
def test_the_line_search_takes_pairs_as_any_ones():
    X = pairs()
    y = target(X, "squared")
    problem = build_problem(
        sp.csr_array(X),
        y,
        regularizer="cs",
        rank=4,
        lambda_sparse=0.05,
        fit_linear=False,
        fit_intercept=False,
    )
    at = start()
    method = make_solver("pbcd_ls", problem)
    method.start(Parameters(at.P, 0 * at.w, 0.0), np.random.default_rng(0))
    method.epoch()
    settings = {"loss": "squared", "name": "cs", "lam_p": 0.0, "lam": 0.05, "search": (0.01, 0.5)}
    P = slow_fm.pbcd_epoch(X, y, 0 * at.w, at.P, 0.0, **settings)
    assert pytest.approx(P, abs=1e-10) == method.parameters().P
