from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import SMOOTH, best_solver, build_problem, iterate

from fmviz.engine.certificates.stationarity import curvature, loss_gradient, stationarity
from fmviz.engine.drive import Budget
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


def shifted(here: Parameters, what: str, index, by: float) -> Parameters:
    P, w, b = here.P.copy(), here.w.copy(), here.intercept
    if what == "P":
        P[index] += by
    elif what == "w":
        w[index] += by
    else:
        b += by
    return Parameters(P, w, b)


# One penalty with a quadratic part, and one that acts on rows.
FAST = {("squared", "elastic_net"), ("squared", "cs")}


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("sparse", [False, True])
def test_gradient_is_the_finite_difference(loss, sparse):
    problem = build(loss, weights=np.linspace(0.5, 1.5, 40), sparse=sparse)
    here = Parameters(RNG.normal(size=(5, 3)) * 0.4, RNG.normal(size=5) * 0.3, 0.1)
    in_P, in_w, in_b = loss_gradient(problem, here)

    def slope(what, index=None, h=1e-6):
        up, down = (problem.parts(shifted(here, what, index, s * h))["loss"] for s in (1, -1))
        return (up - down) / (2 * h)

    for j in range(5):
        assert in_w[j] == pytest.approx(slope("w", j), abs=1e-7)
        for s in range(3):
            assert in_P[j, s] == pytest.approx(slope("P", (j, s)), abs=1e-7)
    assert in_b == pytest.approx(slope("b"), abs=1e-7)


def test_curvature_is_the_second_difference_of_squared_error():
    problem = build()
    here = Parameters(RNG.normal(size=(5, 3)), np.zeros(5), 0.0)
    h = curvature(problem, here)
    for j in range(5):
        for s in range(3):
            up, mid, down = (problem.parts(shifted(here, "P", (j, s), t))["loss"] for t in (0.5, 0.0, -0.5))
            assert h[j, s] == pytest.approx((up - 2 * mid + down) / 0.25)


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
    problem = build(loss, regularizer, lam=0.002)
    solver = best_solver(regularizer)
    budget = Budget(epochs=20_000, tol=1e-11, report_every=20_000)
    *_, last = iterate(problem, solver, budget, init_scale=0.5, rng=np.random.default_rng(1))
    assert last.status.converged
    assert last.used_features > 0
    assert last.certificate < 1e-7
    there = last.parameters
    j, s = np.unravel_index(np.abs(there.P).argmax(), there.P.shape)
    off = shifted(there, "P", (j, s), 0.1 * np.abs(there.P).max())
    assert 0.01 < stationarity(problem, off) < 1.0
    assert stationarity(problem, shifted(there, "w", 0, 0.1 * np.abs(there.w).max())) > 0.01
    assert stationarity(problem, shifted(there, "b", None, 0.1)) > 0.01


@pytest.mark.parametrize("regularizer", PENALTIES)
def test_zero_is_stationary_for_every_machine_without_linear_part(regularizer):
    problem = build(regularizer=regularizer, fit_linear=False, fit_intercept=False)
    nothing = Parameters(np.zeros((5, 3)), np.zeros(5), 0.0)
    assert stationarity(problem, nothing) == 0.0
