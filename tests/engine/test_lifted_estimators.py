"""Estimators of lifted models: what they predict, weigh and count, beside sums written out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from oracles import slow_lifted
from sklearn.base import clone

import fmviz

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
Y = 2 * X[:, 0] * X[:, 1] * X[:, 2] - X[:, 2] + X[:, 3] * X[:, 4] + 0.05 * RNG.normal(size=120)

# Short fits: what is asked of them does not need their end.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CASES = {
    "H2": fmviz.LiftedRegressor(rank=3, random_state=0),
    "A2": fmviz.LiftedRegressor(rank=3, kernel="anova", regularizer="ti", lambda_sparse=0.1, random_state=0),
    "A2 augmented": fmviz.LiftedRegressor(rank=3, kernel="anova", augment=True, random_state=0),
    "H3": fmviz.LiftedRegressor(
        rank=2, degree=3, regularizer="l1", lambda_sparse=0.01, init_scale=0.5, random_state=0
    ),
    "H3 augmented": fmviz.LiftedRegressor(rank=2, degree=3, augment=True, init_scale=0.5, random_state=0),
}


def written_out(fitted) -> dict[tuple[int, ...], float]:
    """What every product of features is multiplied by, by ascending features, of all orders."""
    found: dict[tuple[int, ...], float] = {}
    for order, U in fitted.factors_.items():
        found |= slow_lifted.weights(U, fitted.coefficients_[order], fitted.kernel == "polynomial")
    return found


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES)
def test_predictions_weights_and_counts_are_those_of_the_products(case):
    frame = pd.DataFrame(X, columns=list("abcde"))
    fitted = clone(CASES[case]).set_params(max_iter=15, tol=0.0).fit(frame, Y + 1.0)
    wanted = written_out(fitted)
    f = fitted.intercept_ + X @ fitted.w_
    f += sum(weight * X[:, list(features)].prod(axis=1) for features, weight in wanted.items())
    assert fitted.predict(frame) == pytest.approx(f, rel=1e-9, abs=1e-9)
    lowest = 2 if "augmented" in case else fitted.degree
    assert set(fitted.factors_) == set(range(lowest, fitted.degree + 1))
    for order in fitted.factors_:
        table = fitted.interactions(order=order)
        got = {
            tuple("abcde".index(one) for one in row[:-1]): row[-1]
            for row in table.itertuples(index=False, name=None)
        }
        of_order = {key: weight for key, weight in wanted.items() if len(key) == order}
        assert got == pytest.approx(of_order, rel=1e-9, abs=1e-12)
        distinct = [key for key in got if len(set(key)) == order]
        assert fitted.used_interactions_[order] == len(distinct)
        for key in distinct[:4]:
            assert fitted.interaction_weight(["abcde"[j] for j in key]) == pytest.approx(got[key], rel=1e-9)
        assert len(fitted.interactions(2, order)) == min(2, len(got))
    assert fitted.n_used_interactions_ == sum(fitted.used_interactions_.values())
    assert set(fitted.used_features_) == {j for key in wanted for j in key}
    assert fitted.U_.shape == (fitted.degree, 5, fitted.rank)


@pytest.mark.parametrize("case", CASES)
def test_sparse_and_dense_agree_and_warm_starts_go_on(case):
    mask = X * (np.abs(X) > 0.7)
    estimator = clone(CASES[case]).set_params(max_iter=5, tol=0.0, warm_start=True)
    dense = clone(estimator).fit(mask, Y)
    sparse = clone(estimator).fit(sp.csr_array(mask), Y)
    assert pytest.approx(sparse.P_, abs=1e-8) == dense.P_
    assert dense.predict(mask) == pytest.approx(sparse.predict(sp.coo_array(mask)), abs=1e-8)
    end = dense.history_["objective"].iloc[-1]
    assert dense.fit(mask, Y).history_["objective"].iloc[0] == pytest.approx(end, rel=1e-12)


def test_the_minimum_of_degree_2_is_that_of_the_convex_machine():
    given = {"lambda_w": 0.01, "max_iter": 3_000, "tol": 1e-9, "random_state": 0}
    for kernel in ("polynomial", "anova"):
        one = fmviz.LiftedRegressor(rank=8, kernel=kernel, lambda_p=0.05, init_scale=0.5, **given).fit(X, Y)
        two = fmviz.ConvexFMRegressor(
            rank=8, diagonal=kernel == "polynomial", lambda_trace=0.05, **given
        ).fit(X, Y)
        assert one.history_["objective"].iloc[-1] == pytest.approx(
            two.history_["objective"].iloc[-1], rel=1e-6
        )


@pytest.mark.slow
def test_triples_are_found_and_classified():
    found = fmviz.LiftedRegressor(rank=4, degree=3, augment=True, init_scale=0.5, random_state=0).fit(X, Y)
    assert found.interactions(top=1).iloc[0, :3].astype(int).tolist() == [0, 1, 2]
    assert found.interactions(top=1, order=2).iloc[0, :2].astype(int).tolist() == [3, 4]
    labels = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    classifier = fmviz.LiftedClassifier(rank=4, random_state=0).fit(X, labels)
    assert classifier.score(X, labels) > 0.9
    assert classifier.predict_proba(X).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"degree": 1}, "degree = 1"),
        ({"kernel": "rbf"}, "kernel = 'rbf'"),
        ({"kernel": "anova", "degree": 3}, "Choose degree 2"),
        ({"augment": "yes"}, "neither True nor False"),
        ({"regularizer": "omega_ti"}, "two different columns"),
        ({"rank": -1}, "rank = -1"),
    ],
)
def test_bad_settings_get_a_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        clone(CASES["H2"]).set_params(**settings).fit(X, Y)


def test_bad_questions_get_a_sentence():
    machine = clone(CASES["H2"]).set_params(max_iter=2).fit(pd.DataFrame(X, columns=list("abcde")), Y)
    for ask, words in [
        (lambda: machine.interactions(order=3), "order = 3 is not in this .* order 2"),
        (lambda: machine.interactions(0), "top = 0"),
        (lambda: machine.interaction_weight(["a", "z"]), "feature = 'z'"),
        (lambda: machine.interaction_weight(["a"]), "at least two"),
        (lambda: machine.interaction_weight(["a", 0]), "none twice"),
    ]:
        with pytest.raises(ValueError, match=words):
            ask()
    assert machine.interaction_weight(["a", "b", "c"]) == 0.0
