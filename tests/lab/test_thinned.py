"""What is kept of an epoch for its picture, also in tiles: nothing that is drawn gets lost."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.counting import used_mask
from fmviz.engine.interactions.weights import GivenPairs, Interactions, tile_edges
from fmviz.engine.parameters import Parameters
from fmviz.lab.background.thinned import (
    EXACT_FEATURES,
    N_TILES,
    thin,
)
from fmviz.ui.train.matrices import tile_labels


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


# ------------------------------------------------------------------------------------------------------ tiles


@pytest.mark.parametrize(("d", "tiles"), [(37, 5), (600, 128), (7, 128), (1, 3)])
def test_tiles_hold_the_largest_interaction(d, tiles, rng):
    P = rng.standard_normal((d, 4)) * (rng.random((d, 4)) < 0.2)
    got = Interactions.of(P).pooled(tiles)
    W = P @ P.T
    np.testing.assert_allclose(got, GivenPairs.of(W).pooled(tiles), rtol=1e-12, atol=1e-300)
    np.testing.assert_array_equal(got != 0, GivenPairs.of(used_mask(P).astype(float)).pooled(tiles) != 0)
    assert got.shape == (len(tile_labels(d, tiles)),) * 2


def test_an_interaction_that_cancels_or_underflows_is_kept():
    P = np.array([[1.0, 1.0], [1.0, -1.0], [1e-200, 0.0], [1e-200, 0.0]])
    got = Interactions.of(P).pooled(4)
    assert got[0, 1] != 0
    assert got[2, 3] != 0
    assert got[0, 0] == 0


def test_labels_cover_every_feature_once():
    assert tile_edges(10, 3).tolist() == [0, 3, 6, 10]
    assert tile_labels(10, 3) == ["features 1–3", "features 4–6", "features 7–10"]
    assert tile_labels(2, 5) == ["feature 1", "feature 2"]
