from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from by_name import build_problem
from sklearn.model_selection import GridSearchCV
from sklearn_checks import parametrize_with_own_checks

import fmviz
from fmviz import ConvexFMClassifier, ConvexFMRegressor
from fmviz.engine.parameters import Parameters

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
Y = 2 * X[:, 0] * X[:, 1] - X[:, 2] + 0.05 * RNG.normal(size=120)

# Short fits: what is asked of them does not need their end.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.slow
@parametrize_with_own_checks([ConvexFMRegressor(), ConvexFMClassifier()])
def test_sklearn_contract(estimator, check):
    check(estimator)


def test_regressor_finds_the_interaction_and_proves_its_optimum():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    fitted = ConvexFMRegressor(lambda_trace=0.02).fit(frame, Y)
    assert fitted.score(frame, Y) > 0.97
    assert fitted.status_.converged
    assert fitted.n_iter_ == fitted.history_["epoch"].iloc[-1]
    assert fitted.certificate_ == fitted.history_["certificate"].iloc[-1] < 1e-4
    assert fitted.P_.shape == (6, 30)
    assert 1 <= fitted.rank_ == np.count_nonzero(fitted.coefficients_) <= 6
    P = fitted.P_[:, : fitted.rank_]
    assert pytest.approx(np.eye(fitted.rank_), abs=1e-12) == P.T @ P
    table = fitted.interactions()
    assert (table.feature_i[0], table.feature_j[0]) == ("a", "b")
    W = (fitted.P_ * fitted.coefficients_) @ fitted.P_.T
    assert table.weight[0] == pytest.approx(W[0, 1], rel=1e-12)
    assert W[0, 1] == pytest.approx(2.0, abs=0.3)
    assert len(table) == fitted.n_used_interactions_ == 15
    assert fitted.used_features_.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("diagonal", [False, True])
def test_history_is_the_objective_and_prediction_the_model(diagonal):
    target = Y + (3 * X[:, 4] ** 2 if diagonal else 0.0)
    fitted = ConvexFMRegressor(diagonal=diagonal, lambda_trace=0.02, random_state=0).fit(X, target)
    problem = build_problem(
        X,
        target,
        model="convex_fm",
        regularizer="l2",
        rank=30,
        lambda_w=fitted.lambda_w_,
        lambda_p=0.02,
        lambda_sparse=0.0,
        model_params={"diagonal": diagonal},
    )
    here = Parameters(fitted.P_, fitted.w_, fitted.intercept_, coefficients=fitted.coefficients_)
    assert fitted.history_["objective"].iloc[-1] == pytest.approx(problem.objective(here))
    assert fitted.predict(X) == pytest.approx(problem.predict(here))
    assert fitted.score(X, target) > 0.97


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared", "huber"])
def test_classifier_takes_any_labels(loss):
    labels = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    fitted = ConvexFMClassifier(loss=loss).fit(X, labels)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.score(X, labels) > 0.85
    if loss == "logistic":
        proba = fitted.predict_proba(X)
        assert ((proba[:, 1] > 0.5) == (fitted.predict(X) == "yes")).all()


def test_sparse_and_dense_and_weights_agree():
    mask = X * (np.abs(X) > 0.7)
    settings = {"lambda_trace": 0.02, "random_state": 0}
    dense, sparse = (ConvexFMRegressor(**settings).fit(data, Y) for data in (mask, sp.csr_array(mask)))
    assert sparse.predict(mask) == pytest.approx(dense.predict(mask), abs=1e-3)
    counts = np.random.default_rng(1).integers(0, 3, size=120)
    weighted = ConvexFMRegressor(**settings).fit(X, Y, sample_weight=counts)
    repeated = ConvexFMRegressor(**settings).fit(np.repeat(X, counts, 0), np.repeat(Y, counts))
    assert repeated.predict(X) == pytest.approx(weighted.predict(X), abs=1e-3)


def test_warm_start_goes_on_and_a_callback_stops():
    fitted = ConvexFMRegressor(warm_start=True, max_iter=3, tol=0.0)
    first = fitted.fit(X, Y).history_["objective"].iloc[-1]
    assert fitted.fit(X, Y).history_["objective"].iloc[0] == pytest.approx(first, rel=1e-12)
    stopped = ConvexFMRegressor(callback=lambda snapshot: snapshot.epoch >= 1, tol=0.0).fit(X, Y)
    assert stopped.status_.message.startswith("Stopped by the callback")


def test_grid_search_works():
    search = GridSearchCV(ConvexFMRegressor(), {"lambda_trace": [1e-2, 100.0]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"lambda_trace": 1e-2}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"lambda_trace": -1.0}, "lambda_trace = -1"),
        ({"rank": -1}, "rank = -1"),
        ({"diagonal": "no"}, "neither True nor False"),
        ({"solver": "pcd"}, "eigenvalues alone"),
        ({"loss": "logistic"}, "wants labels -1"),
        ({"solver_params": {"refit": "all"}}, "refit = 'all'"),
        ({"solver_params": 3}, "must be a dict"),
        ({"random_state": "x"}, "random_state = 'x'"),
    ],
)
def test_bad_settings_get_a_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        ConvexFMRegressor(**settings).fit(X, Y)


def test_planted_groups_are_of_low_rank():
    table, y, _ = fmviz.datasets.make_sparse_interactions(random_state=0)
    fitted = ConvexFMRegressor(lambda_trace=1.0, fit_linear=False, random_state=0).fit(table, y)
    assert 8 <= fitted.rank_ <= 12
    assert fitted.certificate_ < 1e-10
