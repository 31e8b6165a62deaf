"""Fitted λ of degrees beyond 2: a price that does not depend on the scale of the columns."""

from __future__ import annotations

import numpy as np
import pytest
from by_name import build_problem, iterate

from fmviz.engine.fit import Budget
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.solvers.kernels import entry_sweep

CASES = [("polynomial", 3), ("polynomial", 4), ("anova", 3), ("anova", 4)]


def build(
    kernel: str, degree: int, coefficients: str = "fitted", lam: float = 0.02, loss="squared"
) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = X[:, 0] * X[:, 1] * X[:, 2] - 0.5 * X[:, 1] * X[:, 2] * X[:, 3] + 0.1 * rng.normal(size=40)
    return build_problem(
        X,
        np.sign(y) if loss == "logistic" else y,
        loss=loss,
        model="expansion",
        model_params={"kernel": kernel, "degree": degree, "coefficients": coefficients},
        regularizer="l2",
        rank=3,
        lambda_p=lam,
        lambda_w=0.01,
    )


def ends(problem: Problem, solver: str, start=None, tol: float = 1e-9, epochs: int = 3_000):
    rng = np.random.default_rng(0)
    return list(iterate(problem, solver, Budget(epochs, tol=tol), start=start, init_scale=0.6, rng=rng))


@pytest.mark.parametrize(("kernel", "degree"), CASES)
def test_the_objective_does_not_change_with_the_scale_of_columns(kernel, degree, rng):
    problem = build(kernel, degree)
    P, c = rng.normal(size=(5, 3)), rng.normal(size=3)
    t = np.array([0.1, 3.0, 20.0])
    item = problem.objective(Parameters(P, np.zeros(5), 0.0, coefficients=c))
    two = problem.objective(Parameters(P * t, np.zeros(5), 0.0, coefficients=c / t**degree))
    assert two == pytest.approx(item, rel=1e-12)
    # With λ fixed the paper's square is what stands there.
    fixed = build(kernel, degree, "signs")
    here = Parameters(P, np.zeros(5), 0.0, coefficients=np.ones(3))
    assert fixed.model.shrinkage(here) == pytest.approx((P**2).sum())
    norms = np.linalg.norm(P, axis=0)
    assert problem.model.shrinkage(here) == pytest.approx((norms**degree).sum())
    for item, power in ((problem, "³⁴"[degree - 3]), (fixed, "²")):
        assert f"‖pₛ‖{power}" in item.model.notation.shrinkage_term


def test_a_large_strength_leaves_nothing_and_does_not_run_off():
    last = ends(build("anova", 3, lam=50.0), "cd")[-1]
    assert last.penalty_p == 0.0
    assert not last.parameters.multipliers.any()
    assert np.abs(last.parameters.P).max() < 10


@pytest.mark.parametrize("degree", [3, 4, 7, 10])
def test_steps_minimise_along_an_entry(degree, rng):
    step = entry_sweep.power_minimum
    for _ in range(100):
        p, g = rng.normal(size=2) * 10.0 ** rng.uniform(-3, 3, 2)
        h, c, remaining = 10.0 ** rng.uniform(-4, 4, 3)
        remaining *= rng.integers(0, 2)

        def value(q, p=p, g=g, h=h, c=c, remaining=remaining):
            return g * (q - p) + 0.5 * h * (q - p) ** 2 + c * (remaining + q * q) ** (0.5 * degree)

        q = step(p, g, h, c, remaining, degree)
        far = abs(p - g / h)
        probes = np.concatenate([q * (1 + np.array([-1e-3, 1e-3])), far * np.linspace(-1, 1, 201), [0.0, p]])
        best = min(value(probe) for probe in probes)
        assert value(q) <= best + 1e-9 * max(abs(best), abs(value(p)))
    assert step(2.0, 1.0, 0.0, 1.0, 0.0, degree) == 0.0
    assert step(2.0, 1.0, 0.0, 0.0, 0.0, degree) == 2.0
