"""How a run ends: what the certificate says of a small change, and which entries are rounding."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from by_name import build_problem, iterate

import fmviz
from fmviz.engine.fit import Budget
from fmviz.engine.models import MODELS
from fmviz.engine.snapshot import Reason


def unequal_columns(n=200):
    """Return age, income and a yes or no, with a target of unit variance that depends on them and a pair."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.uniform(18, 90, n), rng.uniform(1e4, 1e5, n), rng.integers(0, 2, n)]
    Z = (X - X.mean(0)) / X.std(0)
    return X, Z[:, 0] + Z[:, 0] * Z[:, 1] + Z[:, 2] + 0.5 * rng.normal(size=n)


def last(problem, solver, budget, seed=0, **more):
    *_, end = iterate(problem, solver, budget, rng=np.random.default_rng(seed), **more)
    return end


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("solver", "regularizer"),
    [("apgd", "ti"), ("lbfgs", "l2"), ("psgd", "ti"), ("katyusha", "ti"), ("nmapgd", "ti")],
)
def test_no_run_converges_at_a_certificate_that_contradicts_it(solver, regularizer):
    X, y = unequal_columns()
    strengths = {"lambda_w": 1e-3, "lambda_p": 1e-3, "lambda_sparse": 1e-3}
    problem = build_problem(X, y, regularizer=regularizer, rank=2, **strengths)
    end = last(problem, solver, Budget(epochs=1_200, report_every=None))
    assert end.certificate > 0.5
    assert end.status.reason in (Reason.STALLED, Reason.EPOCHS)
    assert end.status.message.endswith("he columns of X differ in size by 10⁴: scale them.")


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("solver", ["lbfgs", "pcd", "pbcd"])
@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_shrunk_entries_below_rounding_are_zero(solver, strength, rng):
    X = rng.normal(size=(60, 5))
    y = 5.0 + 0.1 * rng.normal(size=60)
    problem = build_problem(X, y, regularizer="l2", rank=3, lambda_p=1.0, lambda_sparse=strength)
    end = last(problem, solver, Budget(epochs=3_000, report_every=None))
    assert not end.parameters.P.any()
    assert end.used_interactions == 0
    assert end.status.converged


@pytest.mark.sample(3)
@pytest.mark.parametrize("model", [name for name in MODELS if MODELS[name].certificate == "stationarity"])
def test_a_constant_target_has_no_interaction(model):
    X = np.random.default_rng(0).normal(size=(40, 4))
    problem = build_problem(X, np.full(40, 5.0), model=model, regularizer="l2", rank=2)
    end = last(problem, "auto", Budget(epochs=50))
    assert not end.parameters.P.any()
    assert end.used_interactions == 0
    np.testing.assert_array_equal(problem.predict(end.parameters), 5.0)
    assert end.status.converged


def test_entries_that_are_small_but_matter_stay(rng):
    """Features in units of 1e9 have entries of 1e-9 that are the whole of f."""
    X = rng.normal(size=(80, 4))
    y = X[:, 0] * X[:, 1]
    ends = [
        last(build_problem(s * X, y, regularizer="l2", rank=2), "pcd", Budget(epochs=300), init_scale=0.1 / s)
        for s in (1.0, 2.0**30)
    ]
    assert ends[0].used_interactions == ends[1].used_interactions > 0
    np.testing.assert_array_equal(ends[0].parameters.P != 0, ends[1].parameters.P != 0)


@pytest.mark.parametrize("rank", [2, 3])
def test_a_machine_of_several_bases_says_that_all_are_in_use(rank, rng):
    X = rng.normal(size=(120, 8))
    Y = np.c_[X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3], X[:, 4] * X[:, 5] + X[:, 1] * X[:, 2]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine = fmviz.SharedBasisRegressor(rank=rank, random_state=0).fit(X, Y)
    assert machine.status_.reason is Reason.RANK
    assert f"all {rank} bases are in use" in machine.status_.message
    assert not machine.status_.converged
