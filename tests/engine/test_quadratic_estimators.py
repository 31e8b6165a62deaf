from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from by_name import build_problem
from sklearn.model_selection import GridSearchCV
from sklearn_checks import parametrize_with_own_checks

import fmviz
from fmviz import QuadraticClassifier, QuadraticRegressor
from fmviz.engine.parameters import Parameters

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
Y = 2 * X[:, 0] * X[:, 1] - X[:, 2] + 0.05 * RNG.normal(size=120)

# Short fits: what is asked of them does not need their end.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.slow
@parametrize_with_own_checks([QuadraticRegressor(max_iter=100), QuadraticClassifier(max_iter=100)])
def test_sklearn_contract(estimator, check):
    check(estimator)


def test_regressor_finds_the_interaction_and_proves_its_optimum():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    fitted = QuadraticRegressor(lambda_sparse=0.02).fit(frame, Y)
    assert fitted.score(frame, Y) > 0.97
    assert fitted.W_.shape == (6, 6)
    assert (fitted.W_ == fitted.W_.T).all()
    assert fitted.status_.converged
    assert fitted.n_iter_ == fitted.history_["epoch"].iloc[-1]
    assert fitted.certificate_ == fitted.history_["certificate"].iloc[-1] < 1e-3
    table = fitted.interactions()
    assert (table.feature_i[0], table.feature_j[0]) == ("a", "b")
    assert table.weight[0] == pytest.approx(2.0, abs=0.3)
    assert len(table) == fitted.n_used_interactions_ < 15
    assert len(fitted.interactions(top=1)) == 1
    used = set(table.feature_i) | set(table.feature_j)
    assert used == {"abcdef"[j] for j in fitted.used_features_}


def test_history_is_the_objective():
    fitted = QuadraticRegressor(max_iter=20, lambda_trace=0.02).fit(X, Y)
    problem = build_problem(
        X,
        Y,
        model="qr",
        regularizer="l1",
        lambda_w=fitted.lambda_w_,
        lambda_p=0.02,
        lambda_sparse=fitted.lambda_sparse_,
    )
    here = Parameters.of_weights(fitted.W_, fitted.w_, fitted.intercept_)
    assert fitted.history_["objective"].iloc[-1] == pytest.approx(problem.objective(here))
    assert fitted.predict(X) == pytest.approx(problem.predict(here))


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared", "huber"])
def test_classifier_takes_any_labels(loss):
    labels = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    fitted = QuadraticClassifier(loss=loss).fit(X, labels)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.score(X, labels) > 0.85
    if loss == "logistic":
        proba = fitted.predict_proba(X)
        assert proba.sum(axis=1) == pytest.approx(1)
        assert ((proba[:, 1] > 0.5) == (fitted.predict(X) == "yes")).all()
    else:
        assert not hasattr(fitted, "predict_proba")


def test_sparse_and_dense_and_weights_agree():
    mask = X * (np.abs(X) > 0.7)
    settings = {"lambda_sparse": 0.02, "max_iter": 40, "tol": 0.0}
    dense = QuadraticRegressor(**settings).fit(mask, Y)
    sparse = QuadraticRegressor(**settings).fit(sp.csr_array(mask), Y)
    assert pytest.approx(sparse.W_, abs=1e-9) == dense.W_
    counts = np.random.default_rng(1).integers(0, 3, size=120)
    weighted = QuadraticRegressor(**settings).fit(X, Y, sample_weight=counts)
    repeated = QuadraticRegressor(**settings).fit(np.repeat(X, counts, 0), np.repeat(Y, counts))
    assert pytest.approx(repeated.W_, abs=1e-9) == weighted.W_
    assert weighted.w_ == pytest.approx(repeated.w_, abs=1e-9)


def test_terms_can_be_left_out():
    fitted = QuadraticRegressor(fit_linear=False, fit_intercept=False).fit(X, Y + 3)
    assert not fitted.w_.any()
    assert fitted.intercept_ == 0.0
    assert QuadraticRegressor().fit(X, Y + 3).intercept_ == pytest.approx(3.0, abs=0.1)


def test_warm_start_goes_on_and_a_callback_stops():
    fitted = QuadraticRegressor(warm_start=True, max_iter=10, tol=0.0)
    first = fitted.fit(X, Y).history_["objective"].iloc[-1]
    assert fitted.fit(X, Y).history_["objective"].iloc[0] == pytest.approx(first, rel=1e-12)
    stopped = QuadraticRegressor(callback=lambda snapshot: snapshot.epoch >= 5, tol=0.0).fit(X, Y)
    assert stopped.status_.message.startswith("Stopped by the callback")


def test_grid_search_works():
    search = GridSearchCV(QuadraticRegressor(), {"lambda_sparse": [1e-3, 10.0]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"lambda_sparse": 1e-3}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"lambda_trace": -1.0}, "lambda_trace = -1"),
        ({"lambda_sparse": -1.0}, "lambda_sparse = -1"),
        ({"solver": "pcd"}, "has no factors"),
        ({"loss": "logistic"}, "wants labels -1"),
        ({"max_iter": 0}, "max_iter = 0"),
        ({"callback": 3}, "must be a function"),
        ({"warm_start": "no"}, "neither True nor False"),
    ],
)
def test_bad_settings_get_a_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        QuadraticRegressor(**settings).fit(X, Y)


def test_what_cannot_fit_into_memory_is_a_sentence(monkeypatch):
    monkeypatch.setattr("fmviz.engine.models.quadratic.available_bytes", lambda: 1e9)
    wide = sp.csr_array((np.ones(2), ([0, 1], [0, 199_999])), shape=(2, 200_000))
    with pytest.raises(ValueError, match="200,000 features needs"):
        QuadraticRegressor().fit(wide, [1.0, -1.0])


@pytest.mark.slow
def test_planted_groups_are_found():
    table, y, W = fmviz.datasets.make_sparse_interactions(random_state=0)
    settings = {"fit_linear": False, "fit_intercept": False}
    fitted = QuadraticRegressor(lambda_trace=1.0, lambda_sparse=0.3, **settings).fit(table, y)
    assert fitted.certificate_ < 1e-3
    assert fmviz.metrics.support_f1(W, Parameters.of_weights(fitted.W_)) > 0.9
