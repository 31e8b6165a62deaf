"""Estimators of machines on a shared basis: scikit-learn's checks, shapes, classes, labels and targets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import fmviz


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["low", "middle", "top"])[y]


@pytest.mark.parametrize(
    ("penalty", "kernel", "loss"),
    [
        ("l1", "polynomial", "logistic"),
        ("l1_l2", "anova", "squared_hinge"),
        ("l1_linf", "polynomial", "smoothed_hinge"),
        ("l2", "anova", "logistic"),
    ],
)
def test_classes_share_a_basis(wine, penalty, kernel, loss):
    X, y = wine
    machine = fmviz.SharedBasisClassifier(
        rank=8,
        kernel=kernel,
        penalty=penalty,
        loss=loss,
        standardize=False,
        max_iter=5,
        tol=0.0,
        random_state=0,
    ).fit(X, y)
    k = len(machine.bases_)
    assert machine.score(X, y) > 0.97
    assert (machine.bases_.shape, machine.output_weights_.shape) == ((k, 13), (k, 3))
    assert (machine.w_.shape, machine.intercept_.shape) == ((3, 13), (3,))
    assert (np.linalg.norm(machine.bases_, axis=1) <= 1.0 + 1e-9).all()
    # The attributes say what the machine does.
    inner = X @ machine.bases_.T
    phi = inner**2
    if kernel == "anova":
        phi = 0.5 * (phi - X**2 @ machine.bases_.T**2)
    scores = machine.intercept_ + X @ machine.w_.T + phi @ machine.output_weights_
    assert machine.decision_function(X) == pytest.approx(scores, abs=1e-9)
    if loss == "logistic":
        assert machine.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    else:
        assert not hasattr(machine, "predict_proba")
    table = machine.interactions(output="top")
    i, j, weight, _ = table.iloc[0]
    W = machine.bases_.T @ np.diag(machine.output_weights_[:, 2]) @ machine.bases_
    times = 1.0 if kernel == "anova" else 2.0
    assert weight == pytest.approx(times * W[int(i), int(j)])
    assert machine.interactions(output=2, top=1).weight[0] == weight
    assert machine.interactions(top=1)["output"].tolist() == machine.classes_.tolist()


def test_two_classes_have_one_score(wine):
    X, y = wine
    two = y != "top"
    machine = fmviz.SharedBasisClassifier(rank=5, augment=True, standardize=False, max_iter=3, tol=0.0).fit(
        X[two], y[two]
    )
    assert machine.decision_function(X[two]).shape == (two.sum(),)
    assert machine.predict_proba(X[two]).shape == (two.sum(), 2)
    assert machine.w_.shape == (13,)
    assert machine.offsets_.shape == (len(machine.bases_),)
    assert isinstance(machine.intercept_, float)
    assert machine.score(X[two], y[two]) > 0.97
    phi = (machine.offsets_ + X[two] @ machine.bases_.T) ** 2
    scores = machine.intercept_ + X[two] @ machine.w_ + phi @ machine.output_weights_[:, 0]
    assert machine.decision_function(X[two]) == pytest.approx(scores, abs=1e-9)
    machine.interactions(top=3)


def test_labels_and_targets_keep_their_shape(wine):
    X, y = wine
    labels = np.column_stack([y != "low", y != "middle"]).astype(int)
    machine = fmviz.SharedBasisClassifier(rank=5, max_iter=3, tol=0.0, random_state=0).fit(X, labels)
    assert machine.predict(X).shape == labels.shape
    assert (machine.predict(X) == labels).mean() > 0.97
    assert machine.predict_proba(X).shape == labels.shape
    for y in (X[:, :2] * X[:, 2:4], X[:, 0] * X[:, 1], (X[:, 0] * X[:, 1])[:, None]):
        fitted = fmviz.SharedBasisRegressor(rank=30, max_iter=5, tol=0.0, random_state=0).fit(X, y)
        assert fitted.predict(X).shape == y.shape
        assert fitted.score(X, y) > 0.8


def test_a_radius_takes_the_place_of_a_strength(wine):
    X, y = wine
    machine = fmviz.SharedBasisClassifier(rank=5, radius=0.3, max_iter=2, tol=0.0, random_state=0).fit(X, y)
    assert np.linalg.norm(machine.output_weights_, axis=1).sum() <= 0.3 * (1.0 + 1e-9)
