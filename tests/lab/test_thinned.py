"""What is kept of an epoch for its picture: nothing that is drawn gets lost."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.interactions.weights import GivenPairs
from fmviz.engine.parameters import Parameters
from fmviz.lab.background.thinned import (
    EXACT_FEATURES,
    N_TILES,
    thin,
)


def test_thinning_keeps_the_largest_rows():
    P = np.zeros((1000, 2))
    P[::2, 0] = np.arange(500) + 1.0
    result = thin(Parameters(P, np.zeros(1000), 0.0), most=100)
    assert result.n_dropped == 400
    assert result.rows.size == 100
    assert result.values[:, 0].min() == 401.0
    assert (np.diff(result.rows) > 0).all()


def test_few_factors_are_kept_whole(rng):
    P = rng.normal(size=(20, 3)) * (np.arange(20) % 2)[:, None]
    result = thin(Parameters(P, np.zeros(20), 0.0))
    assert np.array_equal(result.dense(), P)
    assert np.array_equal(result.tiles() != 0, (P @ P.T != 0) & ~np.eye(20, dtype=bool))


@pytest.mark.parametrize("d", [1, 7, EXACT_FEATURES, EXACT_FEATURES + 1, 1300])
def test_weights_are_kept_whole_or_as_tiles_without_their_diagonal(d, rng):
    W = rng.normal(size=(d, d)) * (rng.random((d, d)) < 1e-3)
    W = W + W.T + np.eye(d)
    before = W.copy()
    result = thin(Parameters.of_weights(W))
    assert not result.factors
    assert result.n_features == d
    assert np.array_equal(W, before)
    if d <= EXACT_FEATURES:
        np.fill_diagonal(W, 0.0)
        assert np.array_equal(result.values, W)
        assert not np.shares_memory(result.values, W)
    else:
        assert np.array_equal(result.values, GivenPairs.of(W).pooled(N_TILES))
