"""Fits in any units of X and y, and numbers at the edge of what can be computed."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import fmviz

FACTORS = [("y", s) for s in (1e-8, 1e-6, 1e-3, 1e3, 1e6)] + [("X", s) for s in (1e-6, 1e-3, 1e3, 1e6)]
# Ratings have no unit; the docstring of machines says why units count in the models of several orders.
REGRESSORS = [name for name in dir(fmviz) if "Regressor" in name and name != "OrdinalRegressor"]
REGRESSORS += ["lifted", "expansion", "quadratic", "convex"]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def machine(name, **settings):
    """Return an estimator by its name, or a regressor by that of its model."""
    if hasattr(fmviz, name):
        return getattr(fmviz, name)(random_state=0, **settings)
    return fmviz.FactorizationMachineRegressor(model=name, random_state=0, **settings)


@cache
def gross_errors(seed):
    """Return X, y and y without errors: rank 2 in 6 features, one row in ten off by 6 deviations."""
    g = np.random.default_rng(seed)
    A = g.normal(size=(6, 2))
    Z = A @ A.T
    X = g.normal(size=(500, 6))
    clean = np.einsum("ni,ij,nj->n", X, Z, X) + X[:, 0] + 0.2 * g.normal(size=500)
    wrong = g.random(500) < 0.1
    return X, clean + wrong * g.choice([-1, 1], 500) * 6 * clean.std(), clean


@cache
def one_pair(seed):
    """Return X, y = 2 x0 x1 + x2 + noise, and y again."""
    g = np.random.default_rng(seed)
    X = g.normal(size=(200, 6))
    y = 2 * X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * g.normal(size=200)
    return X, y, y


@cache
def score(name, data, seed, what="y", factor=1.0):
    """Return R² of a fit with defaults in other units of X or y."""
    X, y, clean = data(seed)
    in_X, in_y = (1.0, factor) if what == "y" else (factor, 1.0)
    fitted = machine(name).fit(in_X * X, in_y * y)
    residual = clean - fitted.predict(in_X * X) / in_y
    return 1.0 - np.square(residual).mean() / clean.var()


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(("what", "factor"), FACTORS)
@pytest.mark.parametrize("seed", [0, 1, 3])
@pytest.mark.parametrize("data", [gross_errors, one_pair])
@pytest.mark.parametrize("name", REGRESSORS)
def test_units_have_no_say(name, data, seed, what, factor):
    assert score(name, data, seed, what, factor) == pytest.approx(score(name, data, seed), abs=1e-3)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", [*REGRESSORS, "all_subsets", "hofm"])
def test_a_constant_target_is_predicted_exactly(name):
    X = one_pair(0)[0][:60]
    for constant in (3.0, -1e100):
        fitted = machine(name).fit(X, np.full(60, constant))
        assert fitted.predict(X) == pytest.approx(constant, rel=1e-10)
    if name == "SharedBasisRegressor":
        fitted.fit(X, np.tile([3.0, 5.0], (60, 1)))
        assert fitted.predict(X) == pytest.approx(np.tile([3.0, 5.0], (60, 1)))


@pytest.mark.parametrize(
    ("name", "own", "tolerance"),
    [
        *(("FactorizationMachineRegressor", {"regularizer": name}, 1e-9) for name in ("ti", "cs", "l1")),
        ("FactorizationMachineClassifier", {}, 1e-9),
        ("convex", {}, 1e-4),
        ("quadratic", {}, 1e-4),
    ],
)
def test_strengths_follow_units_that_round_nothing(name, own, tolerance):
    X, y = one_pair(0)[:2]
    labels = "Classifier" in name
    estimator = machine(name, **own)

    def scores(a, b):
        fitted = estimator.fit(a * X, y > np.median(y) if labels else b * y)
        assert fitted.n_used_interactions_ > 0
        return getattr(fitted, "decision_function" if labels else "predict")(a * X) / b

    plain = scores(1.0, 1.0)
    for a, b in ((8.0, 1.0),) if labels else ((8.0, 1.0), (1.0, 64.0), (8.0, 64.0)):
        np.testing.assert_allclose(scores(a, b), plain, rtol=1e-9, atol=tolerance)


@pytest.mark.parametrize(("model", "strength"), [("convex", "lambda_p"), ("quadratic", "lambda_sparse")])
def test_the_whole_strength_leaves_no_interaction_and_less_of_it_does(model, strength):
    X, y = one_pair(0)[:2]
    full = getattr(machine(model).fit(X, y), f"{strength}_") / 0.15
    for share, some in ((1.01, False), (0.97, True)):
        fitted = machine(model, **{strength: share * full}).fit(X, y)
        assert (fitted.n_used_interactions_ > 0) == some


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("size", [1e-160, 1e-31, 1e31, 1e120])
@pytest.mark.parametrize(
    "name", [name for name in dir(fmviz) if name.endswith(("Regressor", "Classifier", "CV"))]
)
def test_sizes_that_cannot_be_computed_are_refused(name, size):
    X, y, _ = one_pair(0)
    estimator = getattr(fmviz, name)()
    labels = np.digitize(y, [-1.0, 1.0]) if name == "OrdinalRegressor" else y > 0
    numbers = "Regressor" in name and name != "OrdinalRegressor"
    with pytest.raises(ValueError, match="scale the columns first"):
        estimator.fit(size * X, y if numbers else labels)
    if numbers:
        with pytest.raises(ValueError, match=r"y varies by .*; scale it"):
            estimator.fit(X, size**2 * y if size < 1.0 else 1e60 * y)
