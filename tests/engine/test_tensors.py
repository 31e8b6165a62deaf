"""Weights of products against the tensors that they are entries of."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fmviz.engine._jit import python_version
from fmviz.engine.design import Design, augmented
from fmviz.engine.interactions import tensors
from fmviz.engine.interactions.tensors import (
    ranked_subsets,
    subset_weight,
    tensor_slice,
    weight_matrix,
    weight_spectrum,
)
from fmviz.engine.models.columns import Anova, Polynomial


def factors(seed: int, d: int = 9, k: int = 4, density: float = 0.6):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(d, k)) * np.exp(rng.normal(size=(d, 1))) * (rng.random((d, k)) < density)
    c = rng.normal(size=k)
    c[seed % k] *= seed % 2
    return P, c


def brute(P, c, degree: int, repeated: bool):
    """Return every used product and its weight, largest first."""
    choose = itertools.combinations_with_replacement if repeated else itertools.combinations
    result = []
    for subset in choose(range(P.shape[0]), degree):
        columns = [s for s in range(P.shape[1]) if c[s] != 0 and all(P[j, s] != 0 for j in subset)]
        if columns:
            arrangements = len(set(itertools.permutations(subset))) if repeated else 1
            weight = sum(c[s] * np.prod([P[j, s] for j in subset]) for s in columns)
            result.append((subset, arrangements * weight))
    return sorted(result, key=lambda value: -abs(value[1]))


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_ranking_is_that_of_the_whole_tensor(degree, repeated, seed):
    P, c = factors(seed)
    expected = brute(P, c, degree, repeated)
    for top in (None, 1, 7, 10_000):
        features, weight = ranked_subsets(P, degree, c, top, repeated=repeated)
        wanted = expected[:top]
        assert [tuple(row) for row in features.tolist()] == [subset for subset, _ in wanted]
        assert weight == pytest.approx([value for _, value in wanted], rel=1e-12)


def test_cancelled_and_tiny_weights_are_used_and_come_last():
    P = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [1e-200, 0.0]])
    features, weight = ranked_subsets(P, 3)
    assert features.tolist() == [[0, 1, 3], [0, 2, 3], [1, 2, 3], [0, 1, 2]]
    assert weight.tolist() == [1e-200, 1e-200, 1e-200, 0.0]
    assert ranked_subsets(P * 1e-100, 3)[0].tolist() == [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]


@pytest.mark.parametrize("top", [None, 3])
def test_nothing_used_is_an_empty_ranking(top):
    for P, c in [(np.zeros((5, 2)), None), (np.eye(5), None), (np.ones((5, 2)), [0.0, 0.0])]:
        features, weight = ranked_subsets(P, 3, c, top)
        assert features.shape == (0, 3)
        assert weight.shape == (0,)


def test_a_search_among_many_features_sees_few_of_them(rng):
    P = rng.normal(size=(20_000, 3)) * 0.01
    P[[5, 600, 7_000, 19_999]] += 2.0
    features, weight = ranked_subsets(P, 3, [1.0, -1.0, 0.5], top=4, effort=1e6)
    assert {tuple(row) for row in features.tolist()} == set(
        itertools.combinations([5, 600, 7_000, 19_999], 3)
    )
    for subset, value in zip(features, weight, strict=True):
        assert value == pytest.approx(subset_weight(P, list(subset), [1.0, -1.0, 0.5]))


@pytest.mark.needs_jit
@pytest.mark.parametrize("repeated", [False, True])
def test_kernel_agrees_with_its_source(monkeypatch, repeated):
    P, c = factors(1, d=12, density=0.8)
    compiled = ranked_subsets(P, 3, c, 5, repeated=repeated)
    monkeypatch.setattr(tensors, "search_subsets", python_version(tensors.search_subsets))
    plain = ranked_subsets(P, 3, c, 5, repeated=repeated)
    assert (compiled[0] == plain[0]).all()
    assert compiled[1] == pytest.approx(plain[1], rel=1e-13)


def test_slices_and_matrices_are_parts_of_the_tensor():
    P, c = factors(3, d=6)
    W = np.einsum("s,is,js,ls->ijl", c, P, P, P)
    assert tensor_slice(P, 2, c, repeated=True) == pytest.approx(W[2], abs=1e-12)
    distinct = tensor_slice(P, 2, c)
    for i, j in np.ndindex(6, 6):
        expected = W[2, i, j] if len({2, i, j}) == 3 else 0.0
        assert distinct[i, j] == pytest.approx(expected, abs=1e-12)
        if len({2, i, j}) == 3:
            assert subset_weight(P, [i, 2, j], c) == pytest.approx(W[2, i, j], abs=1e-12)
    assert weight_matrix(P, c) == pytest.approx(P @ np.diag(c) @ P.T, abs=1e-12)
    assert weight_matrix(P) == pytest.approx(P @ P.T, abs=1e-12)


@pytest.mark.parametrize(("d", "k"), [(8, 3), (3, 8), (5, 5)])
def test_spectrum_is_that_of_the_matrix(d, k):
    rng = np.random.default_rng(d)
    P, c = rng.normal(size=(d, k)), rng.normal(size=k)
    values, vectors = weight_spectrum(P, c)
    assert values.shape == (min(d, k),)
    W = weight_matrix(P, c)
    assert (vectors * values) @ vectors.T == pytest.approx(W, abs=1e-10)
    assert vectors.T @ vectors == pytest.approx(np.eye(min(d, k)), abs=1e-10)
    assert (np.diff(np.abs(values)) <= 0).all()


@pytest.mark.parametrize("kernel", [Anova(2), Anova(3), Anova(4), Polynomial(2), Polynomial(3)])
@pytest.mark.parametrize("dummies", [0, 1, 3])
def test_dummy_features_add_lower_orders(kernel, dummies, rng):
    X, P, gamma = rng.normal(size=(5, 6)), rng.normal(size=(6, 2)), rng.normal(size=(dummies, 2))
    full = kernel.values(Design(augmented(X, dummies)), np.vstack([P, gamma]))
    parts = sum(
        weight * (type(kernel)(t).values(Design(X), P) if t else 1.0)
        for t, weight in kernel.split(gamma).items()
    )
    assert parts == pytest.approx(full, rel=1e-10)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ranked_subsets(np.ones((4, 2)), 1), "degree = 1"),
        (lambda: ranked_subsets(np.ones((4, 2)), 3, top=0), "top = 0"),
        (lambda: ranked_subsets(np.ones((4, 2)), 3, [1.0]), "needs one finite number"),
        (lambda: ranked_subsets(np.ones((90, 2)), 3, effort=10.0), "smaller top"),
        (lambda: subset_weight(np.ones((4, 2)), [1, 1]), "none twice"),
        (lambda: subset_weight(np.ones((4, 2)), []), "at least one"),
        (lambda: subset_weight(np.ones((4, 2)), [4]), "feature = 4"),
        (lambda: tensor_slice(np.ones((4, 2)), -1), "feature = -1"),
        (lambda: weight_matrix(np.array([[np.nan]])), "NaN"),
        (lambda: augmented(np.ones((2, 2)), -1), "n = -1"),
    ],
)
def test_bad_input_is_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_what_cannot_fit_into_memory_is_a_sentence(monkeypatch):
    monkeypatch.setattr(tensors, "available_bytes", lambda: 1e6)
    for call in (lambda: ranked_subsets(np.ones((200, 1)), 3), lambda: weight_matrix(np.ones((2_000, 1)))):
        with pytest.raises(ValueError, match="1 MB are free"):
            call()
