"""Tiles of PPᵀ: no interaction is lost, and none appears."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.counting import used_mask
from fmviz.engine.interactions.weights import GivenPairs, Interactions, tile_edges
from fmviz.ui.train.matrices import tile_labels


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
