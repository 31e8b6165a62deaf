"""Weights of interactions of any order, against sums written out."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import factorial

import numpy as np
import pytest
from oracles import slow_lifted

from fmviz.engine.interactions.weights import Interactions, interactions_of, tile_edges
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.lab.background.thinned import N_TILES, thin

CASES = [
    ("fm", {}, 2, 1, False),
    ("hofm", {"order": 4}, 2, 3, False),
    ("hofm", {"order": 4}, 3, 3, False),
    ("hofm", {"order": 4}, 4, 3, False),
    ("all_subsets", {}, 2, 1, False),
    ("all_subsets", {}, 3, 1, False),
    ("expansion", {"kernel": "anova", "degree": 3}, 3, 1, False),
    ("expansion", {"kernel": "polynomial", "degree": 2}, 2, 1, True),
]


def drawn(name, params, blocks, d=9, k=4):
    """Return a model, sparse parameters, and for every column of a block its coefficient."""
    rng = np.random.default_rng(3)
    model = get_model(name, params)
    P = rng.normal(size=(d, k * blocks)) * (rng.random((d, k * blocks)) < 0.6)
    P[2] = 0.0
    coefficients = None
    if name == "expansion":
        coefficients = rng.normal(size=k)
        coefficients[1] = 0.0
    return model, Parameters(P, np.zeros(d), 0.0, coefficients=coefficients)


def written_out(name, parameters, order, k=4):
    """Return the weight of every used set of `order` features."""
    P, c = parameters.P, parameters.multipliers
    if name == "hofm":
        P, c = P[:, (order - 2) * k : (order - 1) * k], c[:k]
    return slow_lifted.weights(np.tile(P, (order, 1, 1)), c / factorial(order), False)


@pytest.mark.parametrize(("name", "params", "order", "blocks", "repeats"), CASES)
def test_ranked_sets_are_all_used_sets_by_size(name, params, order, blocks, repeats):
    model, parameters = drawn(name, params, blocks)
    times = factorial(order) if repeats else 1
    wanted = {features: times * weight for features, weight in written_out(name, parameters, order).items()}
    factors = interactions_of(model, parameters, order)
    sets, weight, *_ = factors.ranked(1000)
    got = {tuple(int(j) for j in features): w for features, w in zip(sets, weight, strict=True)}
    assert got.keys() == wanted.keys()
    assert all(got[features] == pytest.approx(wanted[features], rel=1e-12) for features in wanted)
    assert (np.diff(np.abs(weight)) <= 0).all()
    top_sets, top_weight, *_ = factors.ranked(7)
    np.testing.assert_array_equal(top_sets, sets[:7])
    np.testing.assert_array_equal(top_weight, weight[:7])
    for features, w in list(wanted.items())[:5]:
        assert factors.entry(features) == pytest.approx(w, rel=1e-12)
    assert factors.entry((0, 2)) == 0.0
    used = {features for features in combinations(range(9), order) if factors.uses(features)}
    assert used == wanted.keys()
    assert factors.n_used() == len(wanted)
    # A thinned model that drops nothing is the same.
    thinned = interactions_of(model, thin(parameters), order).ranked(1000)
    np.testing.assert_array_equal(thinned.sets, sets)


def test_pairs_of_an_expansion_have_signs_and_no_dead_columns():
    model, parameters = drawn("expansion", {}, 1)
    factors = interactions_of(model, parameters, 2, entries=True)
    W = (parameters.P * parameters.coefficients) @ parameters.P.T
    np.testing.assert_allclose(factors.matrix(), W, rtol=1e-12, atol=1e-15)
    live = parameters.P[:, parameters.coefficients != 0]
    assert factors.rows.size == live.any(axis=1).sum() == model.used_features(parameters)
    only_dead = Parameters(parameters.P, parameters.w, 0.0, coefficients=np.zeros(4))
    assert model.used_interactions(only_dead) == model.used_features(only_dead) == 0
    assert interactions_of(model, only_dead, 2).ranked(3).weight.size == 0


def test_products_that_cancel_or_underflow_are_still_drawn():
    P = np.zeros((5, 4))
    P[:2] = [[1, 1, 0, 0], [1, -1, 0, 0]]
    P[2:] = [[0, 0, 1e-120, 0]] * 3
    model = get_model("hofm", {"order": 2})
    assert interactions_of(model, Parameters(P, np.zeros(5), 0.0), 2).matrix()[0, 1] != 0
    triple = interactions_of(
        get_model("expansion", {"kernel": "anova", "degree": 3}), Parameters(P, np.zeros(5), 0.0), 3
    )
    assert triple.at([2]).matrix()[3, 4] != 0


def test_orders_and_limits():
    assert get_model("qr").orders == ()
    assert get_model("fm").orders == (2,)
    assert get_model("hofm", {"order": 5}).orders == (2, 3, 4, 5)
    assert get_model("all_subsets").orders == (2, 3)
    assert get_model("expansion", {"degree": 4}).orders == (4,)
    many = Interactions.of(np.ones((600, 1)), 3)
    assert many.within().rows.size >= 512
    assert replace(many, order=4).within().rows.size < 200
    assert many.within(work=1).rows.size == 3
    model, parameters = drawn("hofm", {}, 2)
    with pytest.raises(ValueError, match="has products of 2 or 3 features and no weights of sets of 4"):
        interactions_of(model, parameters, 4)
    few = interactions_of(model, parameters, 3).within(most=3)
    assert few.rows.size == 3
    assert interactions_of(model, parameters, 3).ranked(0).weight.size == 0


LIFTED = [("polynomial", 2), ("anova", 2), ("polynomial", 3), ("polynomial", 4)]


def lifted(kernel, degree, d=6, k=3):
    rng = np.random.default_rng(4)
    P = rng.normal(size=(d, k * degree)) * (rng.random((d, k * degree)) < 0.6)
    P[2] = 0.0
    model = get_model("lifted", {"kernel": kernel, "degree": degree})
    return model, Parameters(P, np.zeros(d), 0.0)


@pytest.mark.parametrize(("kernel", "degree"), LIFTED)
def test_sets_and_slices_of_a_lifted_model_are_those_of_its_tensor(kernel, degree):
    model, parameters = lifted(kernel, degree)
    U = slow_lifted.split(parameters.P, degree)
    scale = 0.5 if kernel == "anova" else 1.0
    wanted = {features: scale * w for features, w in slow_lifted.weights(U, np.ones(3), False).items()}
    assert model.orders == (degree,)
    factors = interactions_of(model, thin(parameters), degree)
    sets, weight, *_ = factors.ranked(1000)
    got = {tuple(int(j) for j in features): w for features, w in zip(sets, weight, strict=True)}
    assert got == pytest.approx(wanted, rel=1e-12)
    few = factors.ranked(3).sets
    np.testing.assert_array_equal(few, sets[:3])
    assert all(factors.entry(features) == pytest.approx(w, rel=1e-12) for features, w in wanted.items())
    assert factors.entry(tuple(range(degree))[::-1]) == pytest.approx(wanted.get(tuple(range(degree)), 0))
    assert model.used_interactions(parameters) == len(wanted)
    used = {features for features in combinations(range(6), degree) if factors.uses(features)}
    assert used == wanted.keys()
    assert factors.n_used() == len(wanted)
    # A slice at m − 2 features is the matrix of the tensor there, zero where no set is used.
    tensor = slow_lifted.tensor(U)
    for fixed in combinations(range(6), degree - 2):
        matrix = (
            factors.at(fixed) if fixed else interactions_of(model, thin(parameters), entries=True)
        ).matrix()
        for j, l in combinations(range(6), 2):  # noqa: E741 - as on the page
            features = tuple(sorted({*fixed, j, l}))
            if len(features) == degree:
                assert matrix[j, l] == pytest.approx(tensor[(*fixed, j, l)], rel=1e-12, abs=1e-15)
                assert matrix[j, l] == matrix[l, j]
                assert (matrix[j, l] != 0) == (features in wanted)
    assert factors.within(most=3).rows.size == 3
    assert factors.ranked(0).weight.size == 0


def test_the_tiles_of_a_lifted_model_are_those_of_its_matrix():
    model, _ = lifted("polynomial", 2)
    P = np.zeros((700, 4))
    P[[3, 300, 699]] = np.random.default_rng(0).normal(size=(3, 4))
    tiles = interactions_of(model, thin(Parameters(P, np.zeros(700), 0.0)), entries=True).pooled(N_TILES)
    place = np.searchsorted(tile_edges(700, N_TILES), [3, 300, 699], side="right") - 1
    W = 0.5 * (P[:, :2] @ P[:, 2:].T + P[:, 2:] @ P[:, :2].T)
    assert tiles[place[0], place[1]] == pytest.approx(W[3, 300])
    assert np.count_nonzero(tiles) == 6
