"""A row of weight 2 is the row twice, wherever rounding would decide between fits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fmviz
from fmviz.engine.target import Target
from fmviz.estimators.fitting import merged_rows


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "name", ["SharedBasisClassifier", "SharedBasisRegressor", "RobustFMRegressor", "RobustFMClassifier"]
)
def test_weights_are_repeated_rows(name, storage):
    rng = np.random.default_rng(0)
    X, weights = rng.random((20, 5)).round(1), rng.integers(0, 5, size=20)
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.normal(size=20)
    if "Classifier" in name:
        y = np.digitize(y, [0.7] if name.startswith("Robust") else [0.5, 0.9])
    again = rng.permutation(np.repeat(np.arange(20), weights))
    weighted, repeated = (getattr(fmviz, name)(random_state=0, max_iter=5) for _ in range(2))
    weighted.fit(storage(X), y, sample_weight=weights)
    repeated.fit(storage(X[again]), y[again])
    scores = [getattr(one, "decision_function", one.predict)(X) for one in (weighted, repeated)]
    assert np.abs(scores[0] - scores[1]).max() <= 1e-9


def test_rows_are_merged_by_x_and_y():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [1.0, 0.0], [3.0, 0.0]])
    y = np.array([1.0, 1.0, 1.0, 5.0, 1.0])
    for storage in (np.asarray, sp.csr_array):
        found, target, weights = merged_rows(storage(X), Target.of(y), [0.5, 1.0, 0.25, 1.0, 0.0])
        dense = found.toarray() if sp.issparse(found) else found
        rows = sorted(zip(dense[:, 0], target.values, weights, strict=True))
        assert rows == [(1.0, 1.0, 0.75), (1.0, 5.0, 1.0), (2.0, 1.0, 1.0)]


@pytest.mark.parametrize("weights", [[1.0, -1.0], [np.nan, 1.0], [1.0], [0.0, 0.0]])
def test_weights_that_are_none_are_left_to_be_refused(weights):
    machine = fmviz.SharedBasisRegressor(random_state=0)
    with pytest.raises(ValueError, match="sample_weight"):
        machine.fit([[1.0, 2.0], [2.0, 1.0]], [1.0, 2.0], sample_weight=weights)
