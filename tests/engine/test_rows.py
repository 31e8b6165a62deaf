"""Row sweeps: memory in whole lines, flat losses, and sweeps over the live rows alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem, iterate, make_solver
from oracles import slow_fm

from fmviz.datasets import make_sparse_interactions
from fmviz.engine.certificates.stationarity import stationarity
from fmviz.engine.drive import Budget
from fmviz.engine.problem import Problem
from fmviz.engine.solvers.pbcd import PBCD, in_lines

X, Y, _ = make_sparse_interactions(60, 8, 1, 12, random_state=0)


def problem(regularizer: str = "cs", lam: float = 0.02, sparse: bool = False, rank: int = 4) -> Problem:
    return build_problem(
        sp.csr_array(X) if sparse else X,
        Y / Y.std(),
        regularizer=regularizer,
        rank=rank,
        lambda_p=0.01,
        lambda_sparse=lam,
        fit_linear=False,
        fit_intercept=False,
    )


def started(of: Problem, solver: str = "pbcd", **settings) -> PBCD:
    rng = np.random.default_rng(0)
    method = make_solver(solver, of, **settings)
    method.start(of.start(0.3, rng), rng)
    return method


@pytest.mark.parametrize("k", [1, 7, 8, 9, 30])
def test_rows_start_lines_and_end_in_zeros(k):
    M = np.random.default_rng(0).normal(size=(5, k))
    lines = in_lines(M)
    assert lines.flags.c_contiguous
    assert lines.ctypes.data % 64 == 0
    assert lines.shape[1] % 8 == 0
    assert lines.shape[1] < k + 8
    assert np.array_equal(lines[:, :k], M)
    assert not lines[:, k:].any()


@pytest.mark.sample(2)
@pytest.mark.parametrize("rank", [3, 8, 11])
@pytest.mark.parametrize("solver", ["pbcd", "pbcd_ls"])
def test_what_fills_the_lines_stays_zero(solver, rank):
    method = started(problem(rank=rank), solver)
    for _ in range(method.refresh_every + 2):
        method.epoch()
    assert method.parameters().P.shape == (20, rank)
    (P,) = method._P
    assert P.shape[1] % 8 == 0
    assert not P[:, rank:].any()
    # XP and what its columns were at most.
    ((A, tops, _),) = method._states
    assert A.shape == (X.shape[0], P.shape[1])
    assert not A[:, rank:].any()
    assert not tops[rank:].any()


def test_many_epochs_equal_the_oracle():
    of = problem()
    method = started(of)
    P = method.parameters().P
    for _ in range(6):
        method.epoch()
        P = slow_fm.pbcd_epoch(X, of.y, np.zeros(20), P, 0.0, loss="squared", name="cs", lam_p=0.01, lam=0.02)
        assert ((method.parameters().P != 0) == (P != 0)).all()
    assert pytest.approx(P, abs=1e-10) == method.parameters().P


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


@pytest.mark.sample(1)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("regularizer", "lam"), [("cs", 0.02), ("l21", 0.1)])
@pytest.mark.parametrize("solver", ["pbcd", "pbcd_ls"])
def test_active_sweeps_end_at_a_certified_point_in_fewer_epochs(solver, regularizer, lam, sparse):
    of = problem(regularizer, lam, sparse)
    epochs = {}
    for most in (0, 10):
        *_, end = iterate(
            of,
            solver,
            Budget(20_000, tol=1e-11, report_every=2**31),
            rng=np.random.default_rng(0),
            init_scale=0.3,
            active_sweeps=most,
        )
        assert end.status.converged
        assert stationarity(of, end.parameters) < 1e-7
        dead = ~end.parameters.P.any(axis=1)
        assert 0 < dead.sum() < 20
        epochs[most] = end.epoch
    assert epochs[10] < 0.7 * epochs[0]


def test_active_sweeps_pass_over_dead_rows():
    of = problem()
    method = started(of)
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
