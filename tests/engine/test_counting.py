from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from oracles import slow_fm

from fmviz.engine.counting import used_features, used_interactions, used_mask, used_sets
from fmviz.engine.interactions.weights import pairs_of
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters


@pytest.mark.parametrize("k", [1, 3, 8, 9, 63, 64, 65, 130])
def test_counts_equal_a_double_loop(k):
    rng = np.random.default_rng(k)
    for density in (0.0, 0.02, 0.2, 1.0):
        P = rng.normal(size=(25, k)) * (rng.random((25, k)) < density)
        assert used_interactions(P) == slow_fm.used_pairs(P) == np.triu(used_mask(P), 1).sum()
        assert used_features(P) == sum(row.any() for row in P)


def test_structure_decides_not_products():
    # ⟨p_1, p_2⟩ cancels, ⟨p_1, p_3⟩ underflows: both pairs are used all the same.
    P = np.array([[1.0, 1.0], [1.0, -1.0], [1e-300, 0.0], [0.0, 0.0]])
    assert used_interactions(P) == 3
    assert used_features(P) == 3
    assert used_interactions(np.array([[1e-200], [1e-200]])) == 1


@pytest.mark.parametrize("k", [1, 3, 64, 65, 130])
@pytest.mark.parametrize("degree", [3, 4])
def test_larger_sets_equal_a_look_at_each(k, degree):
    rng = np.random.default_rng(k)
    for density in (0.0, 0.03, 0.3, 1.0):
        P = rng.random((16, k)) < density
        P[5:9] = P[4]  # rows that are alike
        P = P * 1.0
        wanted = sum(
            P[list(combination)].all(axis=0).any() for combination in combinations(range(16), degree)
        )
        assert used_sets(P[None], degree) == wanted
    # More rows than a word has bits.
    P = np.zeros((200, 2))
    P[:150, 0] = P[100:, 1] = 1.0
    # Those of the first 150 and those of the last 100, less those that are both.
    assert used_sets(P[None], 3) == comb(150, 3) + comb(100, 3) - comb(50, 3)
    # More sets than a machine integer counts.
    assert used_sets(np.ones((1, 700, 2)), 9) == comb(700, 9)


@pytest.mark.parametrize("top", [None, 1, 7, 10_000])
def test_ranked_pairs_are_the_largest(top, rng):
    P = rng.normal(size=(700, 4)) * (rng.random((700, 4)) < 0.05)
    result = pairs_of(get_model("fm"), Parameters(P, np.zeros(700), 0.0)).ranked(top)
    W = P @ P.T
    a, b = np.nonzero(np.triu(used_mask(P), 1))
    order = np.lexsort((b, a, -np.abs(W[a, b])))[:top]
    assert np.array_equal(result.sets, np.column_stack([a, b])[order])
    assert result.weight == pytest.approx(W[a, b][order])
