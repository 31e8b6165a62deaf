"""MCP under every kind of solver: a penalty that is not convex, and not linear along an entry."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import iterate

from fmviz.engine.fit import Budget
from fmviz.engine.penalties import MCP
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import get_solver
from fmviz.engine.starts.informed import fit_from, informed_solver

CASES = {
    "squared, dense": ("squared", MCP(2.0), 0.05),
    "squared, sparse": ("squared", MCP(2.0), 0.05),
    "logistic, dense": ("logistic", MCP(3.0), 0.02),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", CASES)
def test_all_solvers_agree_from_the_informed_start(case):
    loss, penalty, strength = CASES[case]
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 12))
    if "sparse" in case:
        X *= rng.random(X.shape) < 0.4
    y = X[:, 0] * X[:, 1] + 1.5 * X[:, 2] * X[:, 3] - X[:, 1] * X[:, 4] + X[:, 5] + 0.3 * rng.normal(size=200)
    problem = Problem.build(
        sp.csr_array(X) if "sparse" in case else X,
        np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y,
        loss=loss,
        penalty=penalty,
        model="fm",
        rank=4,
        lambda_w=1e-3,
        lambda_p=1e-2,
        lambda_sparse=strength,
    )
    fit, ends = fit_from("informed", problem, "pcd", 0.01, np.random.default_rng(0)), {}
    for name in ("pcd", "pbcd", "apgd", "psgd"):
        settings, epochs = ({"eta0": 0.05}, 200) if name == "psgd" else ({}, 20_000)
        budget = Budget(epochs, tol=1e-11, certify_every=50, report_every=None)
        solver = informed_solver(get_solver(name, settings), problem)
        *_, ends[name] = iterate(problem, solver, budget, start=fit.start, rng=np.random.default_rng(0))
    best = ends["pcd"].objective
    for name in ("pcd", "pbcd", "apgd"):
        assert ends[name].objective == pytest.approx(best, rel=1e-6)
        assert ends[name].certificate <= 1e-8
    assert ends["psgd"].objective == pytest.approx(best, rel=1e-3)
    # Large entries are not shrunk, and small ones are 0.
    assert 0 < ends["pcd"].used_interactions < 66
