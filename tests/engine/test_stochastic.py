"""The stochastic solvers: epochs against a slow oracle, sparse steps against dense ones, divergence."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem, iterate, make_solver

import fmviz
from fmviz.engine.fit import Budget
from fmviz.engine.parameters import Parameters
from fmviz.engine.snapshot import Reason
from fmviz.engine.solvers.stochastic.monotone import Safeguard
from fmviz.engine.solvers.stochastic.psgd import SCHEDULES, batch_size

STOCHASTIC = ("sgd", "psgd", "mb_psgd", "katyusha", "mb_katyusha")


def random_problem(rng, regularizer: str, trial: int):
    """A small sparse problem; the trials walk through the odd cases."""
    d = 1 if trial % 20 == 0 else int(rng.integers(1, 30))
    k = 1 if trial % 7 == 0 else int(rng.integers(1, 6))
    n = int(rng.integers(1, 60))
    dense = 0.5 * rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.uniform(0.05, 0.5))
    if trial % 4 == 1:
        dense = (dense != 0).astype(float)
    if trial % 3 == 0:
        dense[:, rng.random(d) < 0.4] = 0.0
    X = sp.coo_array(dense)
    if trial % 5 == 0 and X.nnz:
        # Features that repeat within a sample: their values add up.
        X = sp.coo_array((np.tile(X.data, 2), tuple(np.tile(c, 2) for c in X.coords)), shape=X.shape)
    P = rng.normal(size=(d, k))
    if trial % 6 == 0:
        P = np.round(P * 2) / 2
    if trial % 6 == 1:
        P = np.sign(P)
    if trial % 6 == 2:
        P[rng.random(d) < 0.5] = 0.0
    # Larger steps diverge now and then, and then rounding errors grow as fast as all else.
    eta0 = 0.1 / max(1.0, float(np.square(X.toarray()).sum(axis=1).max())) ** 2
    strengths = (10.0 ** rng.uniform(-6, 0), 10.0 ** rng.uniform(-3, 0), 1e-9, 10.0 ** rng.uniform(0, 3), 0.0)
    strength = float(rng.choice(strengths, p=(0.4, 0.3, 0.1, 0.1, 0.1))) * 0.1 / eta0
    if regularizer.startswith("omega"):
        # Not convex: a step of strength λ drives entries apart by 1/(1 − λ), rounding errors of ties too.
        strength = min(strength, 0.05 / eta0)
    problem = build_problem(
        X,
        rng.normal(size=n),
        regularizer=regularizer,
        rank=k,
        lambda_w=float(rng.choice([0.0, 0.1])),
        lambda_p=float(rng.choice([0.0, 1e-3, 1.0])),
        lambda_sparse=strength,
        sample_weight=rng.random(n) + 0.1 if trial % 8 == 0 else None,
    )
    return eta0, problem, Parameters(P * rng.choice([0.01, 0.1, 0.3]), rng.normal(size=d) * 0.1, 0.1)


# The others compile kernels of their own.
@pytest.mark.parametrize(
    ("regularizer", "monotone"),
    [
        pytest.param(*case, marks=() if case == ("ti", True) else pytest.mark.slow)
        for case in product(("l2", "l1", "l21", "ti", "cs", "omega_ti", "omega_cs"), (False, True))
    ],
)
def test_exact_sparse_steps_equal_the_dense_operator(regularizer, monotone, rng):
    alive = dead = 0
    for trial in range(200):
        eta0, problem, start = random_problem(rng, regularizer, trial)
        schedule = SCHEDULES[trial % 4]
        methods = []
        for operator in ("sparse", "dense"):
            settings = {"operator": operator, "eta0": eta0, "schedule": schedule, "monotone": monotone}
            method = make_solver("psgd", problem, **settings)
            method.start(start, np.random.default_rng(trial))
            methods.append(method)
        for _ in range(3):
            for method in methods:
                assert np.isfinite(method.epoch())
            first, two = (method.parameters() for method in methods)
            assert np.abs(two.P).max() < 100
            assert np.abs(first.P - two.P).max() < 1e-9
            assert np.abs(first.w - two.w).max() < 1e-9
            assert abs(first.intercept - two.intercept) < 1e-9
            assert ((np.abs(first.P) > 1e-12) == (np.abs(two.P) > 1e-12)).all()
        alive += np.count_nonzero(first.P)
        dead += np.count_nonzero(start.P) - np.count_nonzero(first.P)
    assert alive > 100
    assert dead > 100 or regularizer == "l2"


@pytest.mark.slow
@pytest.mark.parametrize("regularizer", ["ti", "cs"])
def test_many_steps_keep_their_digits(regularizer, rng):
    # Long epochs, with all that makes digits scarce: decay, offsets that grow, lone survivors.
    for lam, lam_p, scale in ((0.5, 0.5, 1.0), (5.0, 0.0, 1.0), (1e-3, 5.0, 1e-3), (1e-2, 0.0, 10.0)):
        X = sp.random_array((4000, 40), density=0.04, rng=rng)
        problem = build_problem(
            X, rng.normal(size=4000), regularizer=regularizer, rank=2, lambda_p=lam_p, lambda_sparse=lam
        )
        start = problem.start(scale, rng)
        ends = []
        for operator in ("sparse", "dense"):
            method = make_solver(
                "psgd", problem, operator=operator, eta0=0.1, schedule="constant", monotone=False
            )
            method.start(start, np.random.default_rng(0))
            method.epoch()
            ends.append(method.parameters())
        assert np.abs(ends[0].P - ends[1].P).max() < 1e-12 * scale
        # Eq. 30 never kills the last entry, and rounding must not either.
        assert ends[0].P.any() == ends[1].P.any()


def test_the_path_follows_the_data_and_can_be_forced():
    def path(regularizer, X, params=None, **settings):
        problem = build_problem(
            X, [1.0, 2.0], regularizer=regularizer, lambda_sparse=2.0, regularizer_params=params
        )
        return make_solver("psgd", problem, **settings).settings["operator"]

    dense = np.eye(2)
    sparse = sp.csr_array(dense)
    assert path("ti", dense) == "dense"
    assert path("ti", sparse) == "sparse"
    assert path("ti", dense, operator="sparse") == "sparse"
    assert path("ti", sparse, operator="dense") == "dense"
    assert path("ti", sparse, {"axis": "rows"}) == "dense"
    assert path("omega_ti", sparse) == "sparse"
    assert path("omega_ti", sparse, eta0=0.5) == "dense"
    with pytest.raises(ValueError, match="a different amount"):
        path("ti", sparse, {"axis": "rows"}, operator="sparse")
    with pytest.raises(ValueError, match="a single entry or row"):
        path("omega_cs", sparse, operator="sparse", eta0=0.5)


def test_automatic_batches():
    problem = build_problem(
        sp.random_array((60, 30), density=0.1, rng=np.random.default_rng(0)), np.zeros(60)
    )
    assert batch_size(problem, 0) == 10
    assert batch_size(problem, 7) == 7
    assert batch_size(problem, 700) == 60
    assert batch_size(build_problem(np.ones((60, 30)), np.zeros(60)), 0) == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("solver", STOCHASTIC)
def test_steps_that_are_too_long(solver, monotone, rng):
    # Without the safeguard the run ends, and keeps its last finite state; with it, such epochs are undone.
    X = sp.random_array((200, 6), density=0.8, rng=rng) * 3
    for regularizer in ("l2", "ti", "cs", "l21"):
        if fmviz.why_not(regularizer, solver) is not None:
            continue
        problem = build_problem(X, rng.normal(size=200), regularizer=regularizer, rank=3, lambda_sparse=1e-3)
        settings = {"eta0": 5.0, "monotone": monotone, "init_scale": 0.5, "rng": np.random.default_rng(0)}
        snapshots = list(iterate(problem, solver, Budget(50, tol=0.0), **settings))
        last = snapshots[-1]
        assert np.isfinite(last.parameters.P).all()
        assert np.isfinite(last.objective)
        if monotone:
            assert last.status.reason is Reason.EPOCHS
            assert last.objective < 0.5 * snapshots[0].objective
        else:
            assert last.status.reason is Reason.DIVERGED
            assert "Decrease eta0" in last.status.message
            assert "monotone = True" in last.status.message


def test_the_scale_of_undone_epochs_stays_above_zero():
    rng = np.random.default_rng(0)
    problem = build_problem(rng.normal(size=(20, 4)), rng.normal(size=20), rank=2, lambda_p=0.1)
    guard, start = Safeguard(problem), problem.start(0.1, rng)
    guard.start(start, rng)
    guard.scale = 5e-324
    guard.fallback(start)
    assert guard.scale > 0.0
