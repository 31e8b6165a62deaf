"""Estimators of more than two classes, of several labels and of several targets."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import fmviz
from fmviz.engine.design import Design
from fmviz.engine.models import Lifted, PolynomialNetwork
from fmviz.engine.snapshot import Reason

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
NAMES = np.array(["low", "mid", "top"])
CLASSES = NAMES[(X[:, 0] * X[:, 1] > -0.4).astype(int) + (X[:, 0] * X[:, 1] > 0.4)]
TARGETS = np.column_stack([X[:, 0] * X[:, 1], X[:, 2] - 1.0])
FIXED = {
    "lambda_sparse": 0.01,
    "lambda_p": 0.01,
    "lambda_w": 0.01,
    "init_scale": 0.1,
    "random_state": 0,
    "standardize": False,
}

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::fmviz.CollapseWarning"),
]


def machine(**settings):
    return fmviz.FactorizationMachineClassifier(2, **{**FIXED, "max_iter": 12, **settings})


def test_classes_stand_on_a_first_axis():
    fitted = machine().fit(X, CLASSES)
    assert fitted.classes_.tolist() == NAMES.tolist()
    assert (fitted.P_.shape, fitted.w_.shape, fitted.intercept_.shape) == ((3, 4, 2), (3, 4), (3,))
    f = fitted.decision_function(X)
    for c in range(3):
        alone = fitted._fitted_model.predict(Design(X), fitted._fitted_parameters().of_output(c))
        assert np.array_equal(f[:, c], alone)
    p = fitted.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert np.array_equal(fitted.predict(X), NAMES[p.argmax(axis=1)])
    assert fitted.score(X, CLASSES) > 0.8
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    assert fitted.lambda_sparse_ == 0.01


def test_strengths_that_follow_the_data_are_those_of_each_output():
    fitted = fmviz.FactorizationMachineClassifier(2, max_iter=2, random_state=0).fit(X, CLASSES)
    remaining = fmviz.FactorizationMachineClassifier(2, max_iter=2, random_state=0).fit(X, CLASSES == "mid")
    assert fitted.lambda_sparse_.shape == (3,)
    assert fitted.lambda_sparse_[1] == remaining.lambda_sparse_
    assert fitted.lambda_w_ == remaining.lambda_w_


def test_interactions_are_told_by_output():
    fitted = machine(max_iter=60).fit(X, CLASSES)
    every = fitted.interactions(top=2)
    assert set(every["output"]) <= set(NAMES)
    first = fitted.interactions(top=2, output="top")
    assert first.iloc[0, :2].tolist() == [0, 1]
    shown = every[every["output"] == "top"].drop(columns="output").reset_index(drop=True)
    assert shown.equals(first)
    assert fitted.interactions(output=2).equals(fitted.interactions(output="top"))
    with pytest.raises(
        ValueError, match=r"output = 'best' does not exist in this model; it has 'low', 'mid', 'top'"
    ):
        fitted.interactions(output="best")
    used = {j for c in range(3) for j in np.flatnonzero(fitted.P_[c].any(axis=1))}
    assert set(fitted.used_features_) == used


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        pytest.param(
            PolynomialNetwork(3, "anova", "ones"),
            {"augment": True, "regularizer": "omega_ti"},
            marks=pytest.mark.slow,
        ),
        (PolynomialNetwork(2), {"augment": True, **FIXED, "lambda_sparse": 0.0}),
        pytest.param(Lifted(2), {"augment": True}, marks=pytest.mark.slow),
        ("quadratic", {"rank": None}),
        ("convex", {"max_iter": 2}),
    ],
    ids=str,
)
def test_relatives_take_classes_and_dummy_features(model, settings):
    given = {"rank": 2, "max_iter": 3, "random_state": 0, **settings}
    fitted = fmviz.FactorizationMachineClassifier(model=model, warm_start=True, **given).fit(X, CLASSES)
    assert fitted.predict_proba(X).shape == (90, 3)
    assert fitted.w_.shape == (3, 4)
    assert fitted.intercept_.shape == (3,)
    first = fitted.interactions(top=1, output="low")
    again = fitted.fit(X, CLASSES).interactions(top=1, output="low")
    assert len(first) == len(again) == 1
    if hasattr(fitted, "factors_"):
        order = max(fitted.factors_)
        assert fitted.factors_[order].shape[0] == fitted.coefficients_[order].shape[0] == 3
        assert np.isfinite(fitted.interaction_weight([0, 1], output="mid"))


def test_parts_of_the_rows_need_not_hold_all_classes():
    fitted = machine(solver="psgd")
    order = np.argsort(CLASSES, kind="stable")
    for rows in np.split(order, 3):
        fitted.partial_fit(X[rows], CLASSES[rows], classes=NAMES)
    assert fitted.P_.shape == (3, 4, 2)
    regressor = fmviz.FactorizationMachineRegressor(2, solver="psgd", **FIXED)
    for rows in np.split(np.arange(90), 2):
        regressor.partial_fit(X[rows], TARGETS[rows])
    assert regressor.predict(X).shape == (90, 2)


def test_early_stopping_looks_at_all_outputs():
    free = {"lambda_sparse": 0.0, "lambda_p": 0.0, "lambda_w": 0.0, "tol": 0.0}
    fitted = machine(early_stopping=True, n_iter_no_change=2, max_iter=300, **free).fit(X, CLASSES)
    assert fitted.status_.reason is Reason.STOPPED
    assert np.isfinite(fitted.history_["validation_loss"].min())
    assert fitted.P_.shape == (3, 4, 2)


def test_rows_may_have_several_labels():
    labels = np.column_stack([CLASSES == "top", X[:, 2] > 0]).astype(int)
    fitted = machine(max_iter=60).fit(X, labels)
    assert fitted.classes_.tolist() == [0, 1]
    result = fitted.predict(X)
    assert np.mean(result == labels) > 0.85
    assert set(np.unique(result)) == {0, 1}
    assert not np.allclose(fitted.predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="rows with several labels have no class"):
        machine(class_weight="balanced").fit(X, labels)


def test_several_targets_are_fitted_side_by_side():
    fitted = fmviz.FactorizationMachineRegressor(2, **FIXED, max_iter=80).fit(X, TARGETS)
    assert fitted.predict(X).shape == (90, 2)
    assert fitted.score(X, TARGETS) > 0.8
    linear = fmviz.FactorizationMachineRegressor(0).fit(X, TARGETS)
    assert linear.P_.shape == (2, 4, 0)
    assert linear.predict(X).shape == (90, 2)
    assert linear.interactions().empty


def test_samples_are_drawn_for_every_output():
    settings = {"n_draws": 6, "burn_in": 2, "random_state": 0}
    classifier = fmviz.BayesianFMClassifier(2, **settings).fit(X, CLASSES)
    assert classifier.P_.shape == (3, 6, 4, 2)
    assert np.allclose(classifier.predict_proba(X).sum(axis=1), 1.0)
    assert len(classifier.interactions(top=1)) == 3
    assert classifier.interactions(top=1, output="mid").columns[0] == "feature_i"
    regressor = fmviz.BayesianFMRegressor(2, **settings).fit(X, TARGETS)
    mean, deviation = regressor.predict(X, return_std=True)
    assert mean.shape == deviation.shape == (90, 2)
    assert regressor.noise_.shape == (2, 6)
