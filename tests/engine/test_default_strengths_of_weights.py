"""Strengths that follow the data, of the models that are convex in the pair weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fmviz

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5))
Y = 2.0 * X[:, 0] * X[:, 1] - X[:, 2] + 0.1 * RNG.normal(size=80)


def fitted(name: str, X: np.ndarray, y: np.ndarray, **given: Any) -> Any:
    """Return a machine with the strengths that are not given left to the data."""
    return getattr(fmviz, name)(random_state=0, **given).fit(X, y)


@pytest.mark.parametrize("name", ["ConvexFMRegressor", "QuadraticRegressor"])
def test_units_change_nothing(name):
    one = fitted(name, X, Y)
    other = fitted(name, 8.0 * X, 64.0 * Y)
    assert one.n_used_interactions_ > 0
    np.testing.assert_allclose(other.predict(8.0 * X) / 64.0, one.predict(X), atol=1e-4)


def test_the_whole_strength_leaves_no_interaction_and_less_of_it_does():
    trace = fitted("ConvexFMRegressor", X, Y).lambda_trace_ / 0.15
    assert fitted("ConvexFMRegressor", X, Y, lambda_trace=1.01 * trace).rank_ == 0
    assert fitted("ConvexFMRegressor", X, Y, lambda_trace=0.97 * trace).rank_ > 0
    entries = fitted("QuadraticRegressor", X, Y).lambda_sparse_ / 0.15
    for share, any_left in ((1.01, False), (0.97, True)):
        one = fitted("QuadraticRegressor", X, Y, lambda_sparse=share * entries)
        assert (one.n_used_interactions_ > 0) == any_left
