"""Ordinal regression: cumulative probabilities of any classifier, and metrics of ratings."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ndcg_score
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import fmviz
from fmviz.metrics import ndcg, rmse

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = 1.0 + (X[:, 0] > -0.5) + (X[:, 0] > 0.5)


class Given(ClassifierMixin, BaseEstimator):
    """Says of every row what it was given."""

    def __init__(self, p=(0.5, 0.3)):
        self.p = p

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X, Y):
        self.seen_, self.fitted_ = Y, True
        return self

    def predict_proba(self, X):
        return np.tile(self.p, (len(X), 1))


def test_expected_relevance_is_that_of_mcrank():
    result = fmviz.OrdinalRegressor(Given()).fit(X, Y)
    assert np.array_equal(result.estimator_.seen_, np.column_stack([Y <= 1, Y <= 2]))
    # p(y ≤ 1) = 0.5 and p(y ≤ 2) = 0.3 are sorted; the expected relevance does not care.
    assert np.allclose(result.predict_proba(X[:1]), [[0.3, 0.2, 0.5]])
    assert np.allclose(result.predict(X), 3.0 - 0.5 - 0.3)


@pytest.mark.parametrize("levels", [2, 3])
def test_it_takes_any_classifier_with_probabilities(levels):
    y = np.minimum(Y, levels)
    assert not get_tags(LogisticRegression()).classifier_tags.multi_label
    result = fmviz.OrdinalRegressor(LogisticRegression(C=100.0)).fit(X, y)
    p = result.predict_proba(X)
    assert p.shape == (90, levels)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert (p >= 0.0).all()
    assert rmse(y, result.predict(X)) < 0.2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_has_nothing_to_say_but_that_regressors_have_no_probabilities():
    estimator = fmviz.FactorizationMachineClassifier(2, max_iter=20, random_state=0)
    why = "it tells the probability of every level"
    expected = {f"check_estimator_{name}": why for name in ("sparse_array", "sparse_matrix")}
    expected["check_regressors_no_decision_function"] = why
    check_estimator(fmviz.OrdinalRegressor(estimator, max_levels=6), expected_failed_checks=expected)


def test_many_values_are_cut_into_levels():
    y = np.exp(X[:, 0])
    result = fmviz.OrdinalRegressor(Given((0.25, 0.5, 0.75)), max_levels=4).fit(X, y)
    assert result.classes_.size == 4
    assert np.isclose(result.classes_ @ [23, 22, 22, 23], y.sum(), rtol=0.02)
    with pytest.raises(ValueError, match="one class only, 1"):
        result.fit(X, np.ones(90))


def test_ranking_is_that_of_scikit_learn_with_exponential_gain():
    y, scores = RNG.integers(0, 5, 60), RNG.integers(0, 8, 60).astype(float)
    users = RNG.integers(0, 6, 60)
    for at in (1, 5, 100):
        each = [ndcg_score([2.0 ** y[users == u] - 1], [scores[users == u]], k=at) for u in range(6)]
        assert np.isclose(ndcg(y, scores, at, users), np.mean(each))
    assert np.isnan(ndcg([0, 0], [1, 2], 1))
    with pytest.raises(ValueError, match="negative"):
        ndcg([-1, 1], [1, 2], 1)
