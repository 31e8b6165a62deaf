"""Weights of products against the tensors that they are entries of."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracles import slow_lifted

from fmviz.engine._jit import python_version
from fmviz.engine.design import Design, augmented
from fmviz.engine.interactions import search
from fmviz.engine.interactions.search import largest_products
from fmviz.engine.interactions.weights import Interactions
from fmviz.engine.models.columns import Anova, Polynomial


def columns(seed: int, d: int = 9, k: int = 4, density: float = 0.6):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(d, k)) * np.exp(rng.normal(size=(d, 1))) * (rng.random((d, k)) < density)
    c = rng.normal(size=k)
    c[seed % k] *= seed % 2
    return P, c


def lifted_factors(m: int, d: int = 6, k: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(m, d, k)) * (rng.random((m, d, k)) < 0.6)
    U[:, 2] = 0.0
    return U


def lifted(U: np.ndarray, c: np.ndarray) -> Interactions:
    m, d, _ = U.shape
    return Interactions(np.arange(d), d, m, U, c, True, int(np.prod(np.arange(1, m + 1))))


def brute(P, c, degree: int, repeated: bool):
    """Return every used product and its weight, largest first."""
    times = 1 if repeated else math.factorial(degree)
    weights = slow_lifted.weights(np.tile(P, (degree, 1, 1)), c / times, repeated)
    return sorted(weights.items(), key=lambda item: -abs(item[1]))


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_ranking_is_that_of_the_whole_tensor(degree, repeated, seed):
    P, c = columns(seed)
    expected = brute(P, c, degree, repeated)
    for top in (None, 1, 7, 10_000):
        every = Interactions.of(P, degree, c, repeats=repeated)
        sets, weight, total, _ = every.ranked(top, repeated=repeated)
        wanted = expected[:top]
        assert [tuple(row) for row in sets.tolist()] == [subset for subset, _ in wanted]
        assert weight == pytest.approx([value for _, value in wanted], rel=1e-12)
        assert repeated or every.n_used() == len(expected)
        assert total == len(expected) or ((total == len(wanted) and every.order > 2) or repeated)


def test_cancelled_and_tiny_weights_are_used_and_come_last():
    P = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [1e-200, 0.0]])
    sets, weight, *_ = Interactions.of(P, 3).ranked()
    assert sets.tolist() == [[0, 1, 3], [0, 2, 3], [1, 2, 3], [0, 1, 2]]
    assert weight.tolist() == [1e-200, 1e-200, 1e-200, 0.0]
    small = Interactions.of(P * 1e-100, 3).ranked()
    assert small.sets.tolist() == [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]


@pytest.mark.parametrize("top", [None, 0, 3])
def test_nothing_used_is_an_empty_ranking(top):
    for P, c in [(np.zeros((5, 2)), None), (np.eye(5), None), (np.ones((5, 2)), [0.0, 0.0])]:
        sets, weight, *_ = Interactions.of(P, 3, c).ranked(top)
        assert sets.shape == (0, 3)
        assert weight.shape == (0,)
    assert lifted(np.zeros((3, 5, 2)), np.ones(2)).ranked(top).sets.shape == (0, 3)


def test_a_search_among_many_features_sees_few_of_them(rng):
    P, c = rng.normal(size=(20_000, 3)) * 0.01, np.array([1.0, -1.0, 0.5])
    P[[5, 600, 7_000, 19_999]] += 2.0
    sets, weight = largest_products(P[None], c, 3, top=4, effort=1e6)
    assert {tuple(row) for row in sets} == set(itertools.combinations([5, 600, 7_000, 19_999], 3))
    for subset, value in zip(sets, weight, strict=True):
        assert value == pytest.approx(c @ P[subset].prod(axis=0))
    U = 1e-3 * rng.normal(size=(3, 300, 4))
    U[:, :6] += rng.normal(size=(3, 6, 4))
    assert largest_products(U, np.ones(4), 3, 10, effort=1e7)[0].max() < 6
    with pytest.raises(ValueError, match=r"more than 1e\+07 multiplications.*smaller top"):
        largest_products(np.ones((3, 300, 4)), np.ones(4), 3, effort=1e7)


@pytest.mark.needs_jit
@pytest.mark.parametrize("repeated", [False, True])
def test_kernel_agrees_with_its_source(monkeypatch, repeated):
    P, c = columns(1, d=12, density=0.8)
    for factors, weights in ((P[None], c), (lifted_factors(3, seed=1), np.ones(3))):
        compiled = largest_products(factors, weights, 3, 5, repeated=repeated)
        with monkeypatch.context() as patch:
            patch.setattr(search, "search", python_version(search.search))
            plain = largest_products(factors, weights, 3, 5, repeated=repeated)
        assert (compiled[0] == plain[0]).all()
        assert compiled[1] == pytest.approx(plain[1], rel=1e-13)


def test_slices_and_matrices_are_parts_of_the_tensor():
    P, c = columns(3, d=6)
    W = np.einsum("s,is,js,ls->ijl", c, P, P, P)
    every = Interactions.of(P, 3, c)
    assert Interactions.of(P, 3, c, repeats=True).at([2]).matrix() == pytest.approx(W[2], abs=1e-12)
    distinct = every.at([2]).matrix()
    for i, j in np.ndindex(6, 6):
        if len({2, i, j}) == 3:
            assert distinct[i, j] == pytest.approx(W[2, i, j], abs=1e-12)
            assert every.entry([i, 2, j]) == pytest.approx(W[2, i, j], abs=1e-12)
    assert not distinct[2].any()
    assert Interactions.of(P, 2, c).matrix() == pytest.approx(P @ np.diag(c) @ P.T, abs=1e-12)
    assert Interactions.of(P).matrix() == pytest.approx(P @ P.T, abs=1e-12)


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
        (lambda: Interactions.of(np.ones((4, 2)), 1), "order = 1"),
        (lambda: Interactions.of(np.ones((4, 2)), 3, [1.0]), "needs one finite number"),
        (lambda: Interactions.of(np.ones((4, 2))).entry([1, 1]), "without repetition"),
        (lambda: Interactions.of(np.ones((4, 2))).entry([]), "at least one"),
        (lambda: Interactions.of(np.ones((4, 2))).entry([0, 4]), "feature = 4"),
        (lambda: Interactions.of(np.ones((4, 2)), 3).at([-1]), "feature = -1"),
        (lambda: Interactions.of(np.array([[np.nan]])), "NaN"),
        (lambda: augmented(np.ones((2, 2)), -1), "n = -1"),
    ],
)
def test_bad_input_is_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_what_cannot_fit_into_memory_is_a_sentence(monkeypatch):
    monkeypatch.setattr(search, "available_bytes", lambda: 1e5)
    many = Interactions.of(np.ones((200, 1)), 3)
    for call in (many.ranked, many.at([0]).matrix, lifted(lifted_factors(3, 80), np.ones(3)).ranked):
        with pytest.raises(ValueError, match="100 kB are free"):
            call()
