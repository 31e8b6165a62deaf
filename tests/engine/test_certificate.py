from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import best_solver, build_problem, iterate

from fmviz.engine.certificates.stationarity import stationarity
from fmviz.engine.fit import Budget
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Problem

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5)) * (RNG.random((40, 5)) < 0.7)
Y = np.where(RNG.random(40) < 0.5, -1.0, 1.0)


def build(loss="squared", regularizer="ti", lam=0.02, weights=None, sparse=False, **more) -> Problem:
    return build_problem(
        sp.csr_array(X) if sparse else X,
        Y,
        loss=loss,
        regularizer=regularizer,
        rank=3,
        lambda_w=0.02,
        lambda_p=0.01,
        lambda_sparse=lam,
        sample_weight=weights,
        **more,
    )


# One penalty with a quadratic part, and one that acts on rows.
FAST = {("squared", "elastic_net"), ("squared", "cs")}


@pytest.mark.parametrize(
    ("loss", "regularizer"),
    [
        pytest.param(loss, name, marks=() if (loss, name) in FAST else pytest.mark.slow)
        for loss in ("squared", "logistic")
        for name, penalty in PENALTIES.items()
        if penalty.exact_prox
    ],
)
def test_converged_runs_are_certified_and_others_are_not(regularizer, loss):
    # Small enough that P does not collapse: the labels are noise.
    problem = build(loss, regularizer, 0.002, weights=np.linspace(0.5, 1.5, 40), sparse=loss == "squared")
    solver = best_solver(regularizer)
    budget = Budget(epochs=20_000, tol=1e-11, report_every=20_000)
    *_, last = iterate(problem, solver, budget, init_scale=0.5, rng=np.random.default_rng(1))
    assert last.status.converged
    assert last.used_features > 0
    assert last.certificate < 1e-7
    there = last.parameters
    off = there.P.copy()
    off.flat[np.abs(off).argmax()] += 0.1 * np.abs(off).max()
    assert 0.01 < stationarity(problem, there.replace(P=off)) < 1.0
    aside = there.w + np.eye(5)[0] * 0.1 * np.abs(there.w).max()
    assert stationarity(problem, there.replace(w=aside)) > 0.01
    assert stationarity(problem, there.replace(intercept=there.intercept + 0.1)) > 0.01


@pytest.mark.parametrize("regularizer", PENALTIES)
def test_zero_is_stationary_for_every_machine_without_linear_part(regularizer):
    problem = build(regularizer=regularizer, fit_linear=False, fit_intercept=False)
    nothing = Parameters(np.zeros((5, 3)), np.zeros(5), 0.0)
    assert stationarity(problem, nothing) == 0.0
