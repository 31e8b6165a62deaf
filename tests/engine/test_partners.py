"""Designs whose rows are pairs of ones: they are found, and their kernels make the same epochs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem, tiny_problem
from oracles import slow_fm

from fmviz.engine._jit import python_version
from fmviz.engine.design import LAYOUTS, Design
from fmviz.engine.losses import LOSSES
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import get_solver
from fmviz.engine.solvers.kernels.matrix_factorization import add_products, predict_pairs

D = 9


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
