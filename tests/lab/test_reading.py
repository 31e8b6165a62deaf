"""Pairs, strengths of attributes, sentences, and predictions taken apart: against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fmviz.engine.design import Design
from fmviz.engine.interactions.weights import GivenPairs, Interactions, PairWeights, pairs_of
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.lab.catalog import load
from fmviz.lab.datasets import Dataset
from fmviz.lab.interpretation.attributes import NONE, Attributes
from fmviz.lab.interpretation.decomposition import decompose
from fmviz.lab.interpretation.reading import (
    exact_search,
    listed_pairs,
    mean_squares,
    name_matches,
    pair_table,
    rows_with_all,
    strongest_features,
)
from fmviz.lab.interpretation.wording import Wording
from fmviz.tables.columns import NumberColumn, TextColumn, WordColumn
from fmviz.tables.encoded import encode
from fmviz.tables.recipe import Choice, Recipe
from fmviz.tables.scaling import Scaling
from fmviz.tables.source import Source

D, K = 9, 4
MODELS = {
    "fm": ("fm", {}),
    "hofm": ("hofm", {"order": 4}),
    "all_subsets": ("all_subsets", {}),
    "squares": ("expansion", {"kernel": "polynomial", "degree": 2}),
    "cubes": ("expansion", {"kernel": "polynomial", "degree": 3}),
    "anova": ("expansion", {"kernel": "anova", "degree": 2}),
    "anova 3": ("expansion", {"kernel": "anova", "degree": 3}),
    "lifted": ("lifted", {"kernel": "polynomial", "degree": 2}),
    "lifted 3": ("lifted", {"kernel": "polynomial", "degree": 3}),
    "lifted anova": ("lifted", {"kernel": "anova", "degree": 2}),
    "qr": ("qr", {}),
    "convex": ("convex_fm", {}),
    "convex, squares": ("convex_fm", {"diagonal": True}),
}
WITHOUT_PAIRS = {"cubes", "anova 3", "lifted 3"}


def fitted(name: str, seed: int = 0, d: int = D):
    """Return a model and random parameters of it, half of them zero."""
    rng = np.random.default_rng(seed)
    kind, params = MODELS[name]
    model = get_model(kind, params)
    shapes = model.shapes(d, K)

    def draw(shape):
        return rng.standard_normal(shape) * (rng.random(shape) < 0.5)

    coefficients = None
    if "coefficients" in shapes:
        coefficients = draw(shapes["coefficients"])
        coefficients[0] = 1.5
    W = None
    if "W" in shapes:
        W = draw(shapes["W"])
        W = W + W.T
    P = draw(shapes["P"]) if W is None else np.zeros(shapes["P"])
    return model, Parameters(P, rng.standard_normal(d), 0.7, W=W, coefficients=coefficients)


def mixed_difference(model, parameters, i, j):
    """Return what the product of two features is multiplied by, from four predictions."""
    X = np.zeros((4, D))
    X[1, i] = X[2, j] = X[3, i] = X[3, j] = 1.0
    none, first, two, both = model.predict(Design(X), parameters)
    return both - first - two + none


@pytest.mark.parametrize("name", sorted(set(MODELS) - WITHOUT_PAIRS))
def test_weights_of_pairs_are_mixed_differences_of_predictions(name):
    model, parameters = fitted(name)
    pairs = pairs_of(model, parameters)
    weight, used = pairs.among(np.arange(D), np.arange(D))
    for i, j in itertools.combinations(range(D), 2):
        assert weight[i, j] == pytest.approx(mixed_difference(model, parameters, i, j), abs=1e-12)
        assert weight[i, j] == pytest.approx(weight[j, i], abs=1e-14)
        assert used[i, j] == used[j, i]
        assert used[i, j] or weight[i, j] == 0
    assert not used.diagonal().any()
    if name in ("fm", "qr", "lifted anova"):
        assert np.triu(used, 1).sum() == model.used_interactions(parameters)
    ranking = pairs.ranked(5)
    upper = np.triu(np.abs(weight), 1)
    np.testing.assert_allclose(np.abs(ranking.weight), np.sort(upper.ravel())[::-1][:5], rtol=1e-12)
    np.testing.assert_array_equal(ranking.weight, weight[tuple(ranking.sets.T)])
    assert ranking.total == np.triu(used, 1).sum()


@pytest.mark.parametrize("name", sorted(WITHOUT_PAIRS))
def test_a_model_without_pairs_says_so(name):
    with pytest.raises(ValueError, match="and no weights of pairs"):
        pairs_of(*fitted(name))


def test_a_ranking_in_many_strips_is_that_of_the_whole(monkeypatch):
    model, parameters = fitted("fm", d=60)
    at_once = pairs_of(model, parameters).ranked(10**6)
    monkeypatch.setattr(
        PairWeights, "_strips", lambda self, between: (slice(at, min(at + 7, 60)) for at in range(0, 60, 7))
    )
    few = pairs_of(model, parameters).ranked(40)
    np.testing.assert_array_equal(few.sets, at_once.sets[:40])
    np.testing.assert_array_equal(few.weight, at_once.weight[:40])
    assert few.total == at_once.total


def test_the_strongest_features_are_those_of_the_largest_weights_of_their_pairs(rng):
    W = np.triu(rng.normal(size=(12, 12)) * (rng.random((12, 12)) < 0.2), 1)
    W[:, 3] = W[3] = 0.0
    W += W.T
    strength = np.abs(W).sum(axis=1)
    features, n_used = strongest_features([GivenPairs.of(W)], 4)
    assert n_used == np.count_nonzero(strength)
    np.testing.assert_array_equal(features, np.sort(np.argsort(-strength)[:4]))
    np.testing.assert_array_equal(strongest_features([GivenPairs.of(W)], 99)[0], np.flatnonzero(strength))
    # A row of P that no other one meets is in no pair.
    P = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    features, n_used = strongest_features([Interactions.of(P)], 4)
    assert (features.tolist(), n_used) == ([0, 1], 2)


def test_search_and_siblings_narrow_the_ranking_down(rng):
    dataset = load("monks1")
    d = dataset.X.shape[1]
    W = rng.standard_normal((d, d))
    pairs = GivenPairs(np.arange(d), d, W + W.T)
    attributes = Attributes(dataset)
    ranking = pairs.ranked(1000, attributes.of_column)
    siblings = sum(math.comb(len(columns), 2) for columns in (a.columns for a in attributes.all))
    assert ranking.siblings == siblings
    assert ranking.total == math.comb(d, 2) - siblings
    hits = name_matches("head_shape; body", dataset.feature_names, dataset.groups)
    ranking = pairs.ranked(1000, attributes.of_column, hits)
    names = np.array(dataset.feature_names)
    for i, j in names[ranking.sets]:
        assert "head_shape" in i + j
        assert "body" in i + j
    assert ranking.total == 9
    (exact,) = name_matches('"jacket=1"', ["jacket=1", "jacket=10"], ["jacket", "jacket"])
    assert exact.tolist() == [True, False]
    assert exact_search("jacket=1") == '"jacket=1"'
    assert exact_search("a;b") == ""


@pytest.mark.parametrize("name", ["planted_interactions", "flights"])
def test_what_occurs_together_is_counted(name):
    dataset = load(name)
    X = dataset.X.toarray() if sp.issparse(dataset.X) else dataset.X
    sets = np.array([[0, 50], [3, 60], [12, 99]])
    products = X[:, sets].prod(axis=2)
    np.testing.assert_array_equal(rows_with_all(dataset, sets), (products != 0).sum(axis=0))
    np.testing.assert_allclose(mean_squares(dataset, sets), np.square(products).mean(axis=0))


# ------------------------------------------------------------------------------------------- predictions


def test_pairs_that_never_meet_are_not_listed():
    X = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]] * 3)
    dataset = Dataset("d", "D", "regression", X, np.zeros(6), ("a", "b", "c"), ("a", "b", "c"))
    machine = get_model("fm"), Parameters(np.array([[9.0], [9.0], [1.0]]), np.zeros(3), 0.0)
    assert pair_table(*machine, dataset, 10)[["feature_i", "feature_j"]].values.tolist() == [
        ["a", "c"],
        ["b", "c"],
    ]
    listed = listed_pairs(*machine, Wording(Attributes(dataset), "squared"), 10)
    assert (len(listed["rows"]), listed["strongest"][:27]) == (2, "When a and c occur together")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("zeros", [0.0, 0.6, 1.0])
def test_the_terms_of_a_prediction_sum_to_it(name, zeros, rng):
    model, parameters = fitted(name, seed=3)
    x = rng.standard_normal(D) * (rng.random(D) >= zeros)
    decomposition = decompose(model, parameters, x)
    predicted = float(model.predict(Design(x[None, :]), parameters)[0])
    assert decomposition.predicted == predicted
    assert decomposition.total == pytest.approx(predicted, rel=1e-12, abs=1e-12)
    for most in (0, 3, 10**6):
        largest = [term.value for _, term in decomposition.largest(most)]
        assert math.fsum(largest) == pytest.approx(predicted, rel=1e-12, abs=1e-12)


def test_terms_are_weights_times_products():
    model, parameters = fitted("hofm", seed=2)
    x = np.linspace(-1.0, 1.5, D)
    terms = {term.features: term.value for term in decompose(model, parameters, x).terms if term.features}
    W = pairs_of(model, parameters).among(np.arange(D), np.arange(D))[0]
    third = parameters.P[:, K : 2 * K]
    for features, value in terms.items():
        rows = list(features)
        weight = {1: lambda r: parameters.w[r[0]], 2: lambda r: W[r[0], r[1]]}.get(len(rows))
        if weight is None and len(rows) == 3:
            weight = lambda r: third[r].prod(axis=0).sum()  # noqa: E731
        if weight is not None:
            assert value == pytest.approx(weight(rows) * x[rows].prod(), abs=1e-12)


# ------------------------------------------------------------------------------------ attributes and words


def test_attributes_are_levels_flags_and_numbers():
    flights = Attributes(load("flights", date="words"))
    kinds = {attribute.name: attribute.kind for attribute in flights.all}
    assert kinds["month"] == "levels"
    assert kinds["log_distance"] == "number"
    assert len(flights.all) == len(set(load("flights").groups))
    diabetes = Attributes(load("diabetes"))
    age = diabetes.all[0]
    x = diabetes.row(0)
    assert age.value(x) == pytest.approx(59.0)
    age.encode_into(x, 48.5)
    assert x[0] == pytest.approx((48.5 - age.scaling.mean) / age.scaling.scale)
    assert not np.array_equal(x, diabetes.row(0)), "the data are as they were"


def test_a_level_is_changed_as_a_whole():
    attributes = Attributes(load("monks1"))
    x = attributes.row(7)
    head = attributes.all[0]
    for place in range(3):
        head.encode_into(x, place)
        assert x[list(head.columns)].sum() == 1.0
        assert head.value(x) == place
    head.encode_into(x, NONE)
    assert not x[list(head.columns)].any()
    assert head.words_for(NONE) == "(none)"
    with pytest.raises(ValueError, match="has no value 3"):
        head.encode_into(x, 3)
    with pytest.raises(ValueError, match="no value nan"):
        head.encode_into(x, math.nan)


def test_columns_that_share_a_name_but_can_hold_together_stand_alone():
    X = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    dataset = Dataset("t", "T", "regression", X, np.zeros(2), ("g=a", "g=b", "c"), ("g", "g", "c"))
    assert [a.kind for a in Attributes(dataset).all] == ["flag", "flag", "flag"]


def words_of(X, names, groups, *, task="regression", loss="squared", **more) -> Wording:
    X = np.asarray(X, dtype=float)
    dataset = Dataset("t", "T", task, X, np.ones(len(X)), names, groups, **more)
    return Wording(Attributes(dataset), loss)


def test_sentences_have_the_sign_the_size_and_the_unit():
    X = [[1, 0, 1, 2.0, 0.5], [0, 1, 0, -2.0, 0.0], [1, 0, 1, 0.5, 0.25]]
    names = ("city=Rome", "city=Oslo", "wet", "age", "share")
    wording = words_of(
        X,
        names,
        ("city", "city", "wet", "age", "share"),
        columns=(
            WordColumn(name="city", levels=("Rome", "Oslo")),
            TextColumn(name="wet", words=("wet",)),
            NumberColumn(name="age", center=40.0, scale=10.0),
            NumberColumn(name="share"),
        ),
        target_scaling=Scaling(100.0, 5.0),
    )
    assert wording.pair(0, 2, 2.0) == "When city is Rome and wet is present, the prediction rises by 10."
    assert wording.pair(0, 3, -0.2) == (
        "When city is Rome, the prediction falls by 1 for each standard deviation of age above its mean."
    )
    assert wording.pair(3, 4, 0.2) == (
        "For each standard deviation of age above its mean and each unit of share above 0, the prediction "
        "rises by 1; with one above and one below, the opposite."
    )
    assert wording.prediction(0.2) == 101.0
    assert wording.probability(0.3) is None
    assert "cancel" in wording.pair(0, 3, 0.0)


def test_log_odds_are_told_for_the_logistic_loss_alone():
    X = [[1, 0], [0, 1], [1, 1]]
    wording = words_of(X, ("a", "b"), ("a", "b"), task="binary", loss="logistic", class_labels=("no", "late"))
    assert wording.pair(0, 1, math.log(2)) == (
        "When a and b occur together, the log-odds of “late” rise by 0.693 (odds × 2)."
    )
    assert wording.probability(0.0) == 0.5
    assert wording.probability(-800.0) == pytest.approx(0.0)
    hinge = words_of(X, ("a", "b"), ("a", "b"), task="binary", loss="squared_hinge")
    assert hinge.pair(0, 1, -1.0).endswith("the score for “+1” falls by 1.")
    assert hinge.probability(0.0) is None
    assert "not a probability" in hinge.why_no_probability()


def test_a_table_of_ones_own_is_told_in_its_own_units(rng):
    table = pd.DataFrame({"age": rng.normal(40, 12, 60), "town": rng.choice(["Rome", "Oslo", "Bern"], 60)})
    table["pay"] = 1000.0 + 50 * table["age"]
    recipe = Recipe(columns=(Choice("age", "number"), Choice("town", "word")), target="pay", numbers="line")
    dataset = Dataset.of_table(encode(Source(recipe.reading, table), recipe), "own", "Own")
    attributes = Attributes(dataset)
    wording = Wording(attributes, "squared")
    assert [a.kind for a in attributes.all] == ["number", "levels"]
    assert attributes.all[0].value(attributes.row(5)) == pytest.approx(table["age"][5])
    assert wording.prediction(0.0) == pytest.approx(table["pay"].mean())
    assert wording.prediction(float(dataset.y[7])) == pytest.approx(table["pay"][7])
    model, parameters = fitted("fm", d=4)
    decomposition = decompose(model, parameters, attributes.row(3))
    total = decomposition.total * wording.scale + wording.prediction(0.0)
    assert total == pytest.approx(wording.prediction(decomposition.predicted))
    sentence = wording.pair(0, 1, 1 / wording.scale)
    assert sentence == (
        "When town is Bern, the prediction rises by 1 for each standard deviation of age above its mean."
    )
