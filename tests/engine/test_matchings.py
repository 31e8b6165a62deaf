"""Weights behind lifted models, against their terms written out."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import slow_lifted

from fmviz.engine._jit import python_version
from fmviz.engine.counting import used_matchings
from fmviz.engine.interactions import matchings
from fmviz.engine.interactions.matchings import contracted_factors, matching_weight, ranked_matchings


def sparse_factors(m: int, d: int = 6, k: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(m, d, k)) * (rng.random((m, d, k)) < 0.6)
    U[:, 2] = 0.0
    return U


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_ranked_products_are_all_used_ones_by_size(m, repeated):
    U = sparse_factors(m)
    wanted = slow_lifted.weights(U, np.ones(3), repeated)
    result, weight = ranked_matchings(U, repeated=repeated)
    got = {tuple(int(j) for j in item): w for item, w in zip(result, weight, strict=True)}
    assert got.keys() == wanted.keys()
    assert all(got[item] == pytest.approx(wanted[item], rel=1e-12, abs=1e-14) for item in wanted)
    assert (np.diff(np.abs(weight)) <= 0).all()
    top, top_weight = ranked_matchings(U, 5, repeated=repeated)
    np.testing.assert_array_equal(top, result[:5])
    np.testing.assert_allclose(top_weight, weight[:5], rtol=1e-14)
    if not repeated:
        assert len(result) == used_matchings(U)
        for item in result[:5]:
            assert matching_weight(U, item) == pytest.approx(got[tuple(int(j) for j in item)], rel=1e-12)


def test_a_held_feature_leaves_the_products_of_the_others():
    U, c = sparse_factors(3), np.array([1.0, -2.0, 0.5])
    wanted = slow_lifted.weights(U, c, False)
    for j in range(6):
        remaining, coefficients = contracted_factors(U, c, j)
        for pair in ((a, b) for a in range(6) for b in range(a) if j not in (a, b)):
            weight = matching_weight(remaining * np.stack([coefficients, np.ones(9)])[:, None], pair)
            assert weight == pytest.approx(wanted.get(tuple(sorted((j, *pair))), 0.0), abs=1e-12)


def test_the_kernel_agrees_with_its_python_version():
    U = np.ascontiguousarray(sparse_factors(3, seed=1).transpose(1, 0, 2))
    peaks = np.ascontiguousarray(np.maximum.accumulate(np.abs(U[::-1]), axis=0)[::-1])
    ends = []
    for kernel in (matchings.search_matchings, python_version(matchings.search_matchings)):
        features, values = np.zeros((6, 3), dtype=np.int64), np.zeros(6)
        heap = np.empty(6), np.empty(6, dtype=np.int64)
        number = kernel(U, peaks, True, 1e9, *heap, features, values)
        ends.append((number, features, values))
    assert ends[0][0] == ends[1][0] == 6
    np.testing.assert_array_equal(ends[0][1], ends[1][1])
    np.testing.assert_allclose(ends[0][2], ends[1][2], rtol=1e-13)


def test_little_is_visited_where_few_weights_are_large(rng):
    U = 1e-3 * rng.normal(size=(3, 300, 4))
    U[:, :6] += rng.normal(size=(3, 6, 4))
    result, _ = ranked_matchings(U, 10, effort=1e7)
    assert result.max() < 6
    with pytest.raises(ValueError, match=r"more than 1e\+07 multiplications"):
        ranked_matchings(np.ones((3, 300, 4)), effort=1e7)


def test_nothing_used_is_nothing_found_and_memory_is_asked_first(monkeypatch):
    assert ranked_matchings(np.zeros((3, 5, 2)))[0].shape == (0, 3)
    U = sparse_factors(2)
    monkeypatch.setattr(matchings, "available_bytes", lambda: 100.0)
    with pytest.raises(ValueError, match="100 bytes are free"):
        ranked_matchings(U)
