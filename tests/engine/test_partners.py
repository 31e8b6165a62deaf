"""Designs whose rows are pairs of ones: they are found, and their kernels make the same epochs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem, make_solver
from oracles import slow_fm
from small_data import pairs

from fmviz.engine._jit import python_version
from fmviz.engine.design import LAYOUTS, Design
from fmviz.engine.parameters import Parameters
from fmviz.engine.solvers.kernels.matrix_factorization import add_products, predict_pairs
from fmviz.engine.warmup import sample_of

D = 9
RNG = np.random.default_rng(7)
Y = RNG.normal(size=40)


def users_and_items() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.hstack([np.eye(4)[rng.integers(0, 4, 40)], np.eye(5)[rng.integers(0, 5, 40)]])


def started(X: np.ndarray, solver: str, P: np.ndarray, **settings):
    problem = build_problem(sp.csr_array(X), Y, rank=4, **settings)
    method = make_solver(solver, problem)
    method.start(Parameters(P, np.zeros(D), 0.0), np.random.default_rng(0))
    return method


@pytest.mark.parametrize("make", [pairs, users_and_items])
def test_the_partners_are_found(make):
    X = make()
    design = Design(sp.csr_array(X))
    result = design.partners
    assert design.layout == "pairs"
    assert design.storage.name == "binary"
    assert np.array_equal(np.flatnonzero(X[0]), [result.first[0], result.second[0]])
    assert (result.first < result.second).all()
    assert np.array_equal(np.eye(D)[result.first] + np.eye(D)[result.second], X)
    _, indices, indptr = design.columns
    for j in range(D):
        for i in range(indptr[j], indptr[j + 1]):
            assert X[indices[i], result.other[i]] == 1.0
            assert result.other[i] != j


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
def test_the_warm_up_has_the_layout_of_the_problem(layout):
    X, y = np.tile(pairs(), (50, 1)), RNG.normal(size=2_000)
    # The layout differs from that of pairs by a row that is not drawn.
    X[-1] = {"sparse": 0.5, "binary": 1.0}.get(layout, X[-1])
    problem = build_problem(X if layout == "dense" else sp.csr_array(X), y)
    sample = sample_of(problem, np.random.default_rng(0))
    assert (sample.design.layout, problem.design.layout) == (layout, layout)
    assert sample.design.n_samples <= 64
    assert sample.y.min() == y.min()
    assert sample.y.max() == y.max()


def test_predictions_are_the_models():
    X, P, w = pairs(), RNG.normal(size=(D, 4)), RNG.normal(size=D)
    design = Design(sp.csr_array(X))
    result = predict_pairs(design, design.partners, P, w, 0.3)
    assert result == pytest.approx(slow_fm.predict(X, w, P, 0.3), abs=1e-13)
    plain = X @ w + 0.3
    python_version(add_products)(design.partners.first, design.partners.second, P, plain)
    assert result == pytest.approx(plain, abs=1e-14)


@pytest.mark.parametrize(("regularizer", "solver"), [("omega_ti", "pcd"), ("omega_cs", "pbcd")])
def test_a_lone_entry_has_no_slope_at_all(regularizer, solver):
    lone = np.zeros((D, 4))
    lone[6] = [0.5, -0.25, 0.0, 1.0]
    method = started(pairs(), solver, lone, regularizer=regularizer, lambda_sparse=0.3)
    for _ in range(12):
        method.epoch()
        assert np.array_equal(method.parameters().P, lone)


@pytest.mark.parametrize("solver", ["pcd", "pbcd"])
def test_a_partner_next_to_nothing_makes_no_step(solver):
    P = np.zeros((D, 4))
    P[:4, 0], P[4, 0], P[5:, 0] = 0.6, 1.0, 1e-160
    method = started(users_and_items(), solver, P, regularizer="l1")
    for _ in range(3):
        assert np.isfinite(method.epoch())
        assert np.abs(method.parameters().P).max() < 1e3
