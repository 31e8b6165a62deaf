"""Estimators of the models that are sums of column kernels."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from by_name import build_problem
from oracles import slow_kernels
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn_checks import parametrize_with_own_checks

import fmviz

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
Y = 2 * X[:, 0] * X[:, 1] * X[:, 2] - X[:, 2] + 0.05 * RNG.normal(size=120)

# Short fits: what is asked of them does not need their end.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CASES = {
    "hofm": fmviz.HigherOrderFMRegressor(rank=3, random_state=0),
    "shared": fmviz.HigherOrderFMRegressor(rank=3, shared=True, random_state=0),
    "shared4": fmviz.HigherOrderFMRegressor(
        rank=2, order=4, shared=True, coefficients="signs", regularizer="l1", init_scale=0.5, random_state=0
    ),
    "shared fitted": fmviz.HigherOrderFMRegressor(
        rank=3,
        order=2,
        shared=True,
        coefficients="fitted",
        regularizer="l2",
        lambda_sparse=0.0,
        random_state=0,
    ),
    "network": fmviz.PolynomialNetworkRegressor(rank=3, random_state=0),
    "network3": fmviz.PolynomialNetworkRegressor(
        rank=3, degree=3, augment=True, coefficients="ones", random_state=0
    ),
    "network augmented": fmviz.PolynomialNetworkRegressor(rank=3, augment=True, random_state=0),
    "all subsets": fmviz.AllSubsetsRegressor(rank=3, init_scale=0.3, random_state=0),
}

SMALL = {"rank": 2, "max_iter": 30}


@pytest.mark.filterwarnings("ignore::fmviz.CollapseWarning")
@pytest.mark.slow
@parametrize_with_own_checks(
    [
        fmviz.HigherOrderFMRegressor(order=2, **SMALL),
        fmviz.HigherOrderFMClassifier(order=2, **SMALL),
        fmviz.HigherOrderFMRegressor(shared=True, **SMALL),
        fmviz.PolynomialNetworkRegressor(**SMALL),
        # With the default λ_p some decisions pass 37, where probabilities are 1 and can no longer be ranked.
        fmviz.PolynomialNetworkClassifier(augment=True, degree=3, coefficients="ones", lambda_p=1.0, **SMALL),
        fmviz.AllSubsetsRegressor(**SMALL),
        fmviz.AllSubsetsClassifier(**SMALL),
        fmviz.LiftedRegressor(**SMALL),
        fmviz.LiftedRegressor(kernel="anova", **SMALL),
        fmviz.LiftedClassifier(augment=True, degree=3, **SMALL),
    ]
)
def test_sklearn_contract(estimator, check):
    check(estimator)


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", [case for case in CASES if case != "all subsets"])
def test_predictions_are_the_sum_of_the_orders(case):
    fitted = clone(CASES[case]).set_params(max_iter=15, tol=0.0).fit(X, Y + 1.0)
    repeated = "network" in case
    kernel = slow_kernels.polynomial if repeated else slow_kernels.anova
    expected = []
    for x in X[:10]:
        f = fitted.intercept_ + fitted.w_ @ x
        for order, P in fitted.factors_.items():
            for s, c in enumerate(fitted.coefficients_[order]):
                f += c * kernel(P[:, s], x, order)
        expected.append(f)
    assert fitted.predict(X[:10]) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    highest = fitted.degree if repeated else fitted.order
    lowest = highest if case in ("network",) else 2
    assert set(fitted.factors_) == set(range(lowest, highest + 1))


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", list(CASES))
def test_interactions_multiply_products_in_the_predictions(case):
    frame = pd.DataFrame(X, columns=list("abcde"))
    fitted = clone(CASES[case]).set_params(max_iter=25).fit(frame, Y)
    for order in fitted.used_interactions_:
        table = fitted.interactions(order=order)
        assert (np.diff(table.weight.abs()) <= 0).all()
        names = table.iloc[:, :order].to_numpy()
        distinct = [len(set(row)) == order for row in names]
        assert sum(distinct) == fitted.used_interactions_[order]
        assert len(fitted.interactions(2, order)) == min(2, len(table))
        for row, weight in zip(names[:4], table.weight[:4], strict=False):
            if len(set(row)) == order:
                assert fitted.interaction_weight(list(row)) == pytest.approx(weight, rel=1e-9)
            if "network" not in case:
                # On rows of 0 and 1, weights are alternating sums of predictions over subsets.
                total = 0.0
                for size in range(order + 1):
                    for subset in itertools.combinations(row, size):
                        one = pd.DataFrame([[float(c in subset) for c in "abcde"]], columns=list("abcde"))
                        total += (-1) ** (order - size) * fitted.predict(one)[0]
                assert total == pytest.approx(weight, rel=1e-6, abs=1e-8)
    assert fitted.n_used_interactions_ == sum(fitted.used_interactions_.values())
    used = set()
    for order in fitted.used_interactions_:
        used |= set(fitted.interactions(order=order).iloc[:, :order].to_numpy().ravel())
    assert {"abcde"[j] for j in fitted.used_features_} >= used
    assert len(fitted.used_features_) == len(used) or "network" not in case
    assert fitted.n_iter_ == fitted.history_["epoch"].iloc[-1]
    assert fitted.certificate_ == fitted.history_["certificate"].iloc[-1]


def test_a_planted_triple_is_found_and_squares_are_weighed():
    machine = fmviz.HigherOrderFMRegressor(rank=4, random_state=0).fit(X, Y)
    best = machine.interactions(top=1)
    assert best.iloc[0, :3].astype(int).tolist() == [0, 1, 2]
    assert best.weight[0] == pytest.approx(2.0, abs=0.2)
    y = 3 * X[:, 0] ** 2 - 2 * X[:, 1] ** 2 + X[:, 2] * X[:, 3]
    network = fmviz.PolynomialNetworkRegressor(
        rank=5, lambda_p=1e-5, max_iter=2_000, tol=1e-6, random_state=0
    ).fit(X, y)
    table = network.interactions(3)
    assert table.iloc[:, :2].to_numpy().tolist() == [[0, 0], [1, 1], [2, 3]]
    assert table.weight.tolist() == pytest.approx([3.0, -2.0, 1.0], abs=0.02)
    values, _ = fmviz.weight_spectrum(network.P_, network.coefficients_[2])
    assert np.sort(values) == pytest.approx([-2.0, -0.5, 0.0, 0.5, 3.0], abs=0.05)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "classifier",
    [
        fmviz.HigherOrderFMClassifier(rank=4, random_state=0),
        fmviz.PolynomialNetworkClassifier(rank=4, degree=3, random_state=0),
        fmviz.AllSubsetsClassifier(rank=4, init_scale=0.3, random_state=0),
    ],
)
def test_classifiers_learn_the_sign_of_a_triple(classifier):
    labels = np.where(X[:, 0] * X[:, 1] * X[:, 2] > 0, "yes", "no")
    assert classifier.fit(X, labels).loss == "logistic"
    assert classifier.score(X, labels) > 0.85
    assert classifier.predict_proba(X).sum(axis=1) == pytest.approx(1)


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", list(CASES))
def test_sparse_and_dense_agree_and_warm_starts_go_on(case):
    mask = X * (np.abs(X) > 0.7)
    estimator = clone(CASES[case]).set_params(max_iter=5, tol=0.0, warm_start=True)
    dense = clone(estimator).fit(mask, Y)
    sparse = clone(estimator).fit(sp.csr_array(mask), Y)
    assert pytest.approx(sparse.P_, abs=1e-8) == dense.P_
    assert dense.predict(mask) == pytest.approx(sparse.predict(sp.coo_array(mask)), abs=1e-8)
    end = dense.history_["objective"].iloc[-1]
    assert dense.fit(mask, Y).history_["objective"].iloc[0] == pytest.approx(end, rel=1e-12)


def test_predictions_are_those_of_what_was_fitted():
    machine = clone(CASES["shared"]).set_params(max_iter=3).fit(X, Y)
    before = machine.predict(X)
    assert (machine.set_params(order=5, shared=False).predict(X) == before).all()


def test_grid_search_works():
    with pytest.warns(fmviz.CollapseWarning):
        search = GridSearchCV(CASES["hofm"], {"lambda_sparse": [1e-3, 10.0]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"lambda_sparse": 1e-3}


@pytest.mark.parametrize(
    ("case", "settings", "words"),
    [
        ("hofm", {"order": 1}, "order = 1"),
        ("hofm", {"coefficients": "fitted"}, "shared=True"),
        ("hofm", {"shared": "no"}, "neither True nor False"),
        ("shared", {"order": 11}, "order = 11"),
        ("shared", {"coefficients": "some"}, "coefficients = 'some'"),
        ("shared", {"coefficients": "fitted"}, "scale of a column is free"),
        ("network", {"lambda_sparse": 1.0}, "lambda_sparse = 1"),
        ("network", {"degree": 1}, "degree = 1"),
        ("network", {"augment": "yes"}, "neither True nor False"),
        ("all subsets", {"regularizer": "ti"}, "open problem"),
        ("all subsets", {"rank": -1}, "rank = -1"),
        ("all subsets", {"loss": "logistic"}, "wants labels -1"),
    ],
)
def test_bad_settings_get_a_sentence(case, settings, words):
    with pytest.raises(ValueError, match=words):
        clone(CASES[case]).set_params(**settings).fit(X, Y)


def test_orders_beyond_the_number_of_features_are_left_out():
    machine = clone(CASES["hofm"]).set_params(order=4, max_iter=2, tol=0.0)
    assert list(machine.fit(X[:, :3], Y).factors_) == [2, 3]
    with pytest.raises(ValueError, match=r"1 feature\(s\)"):
        machine.fit(X[:, :1], Y)


def test_bad_questions_get_a_sentence():
    machine = clone(CASES["hofm"]).set_params(max_iter=2).fit(pd.DataFrame(X, columns=list("abcde")), Y)
    for ask, words in [
        (
            lambda: machine.interactions(order=4),
            "order = 4 is not in this .* order 2, 3",
        ),
        (lambda: machine.interactions(0), "top = 0"),
        (lambda: machine.interaction_weight(["a", "z"]), "feature = 'z'"),
        (lambda: machine.interaction_weight(["a"]), "at least two"),
        (lambda: machine.interaction_weight(["a", 0]), "none twice"),
    ]:
        with pytest.raises(ValueError, match=words):
            ask()
    assert machine.interaction_weight(["a", "b", "c", "d"]) == 0.0
    with pytest.raises(TypeError, match="speed"):
        fmviz.AllSubsetsRegressor(speed=1)


def test_what_cannot_fit_into_memory_is_a_sentence(monkeypatch):
    monkeypatch.setattr("fmviz.engine.models.base.available_bytes", lambda: 1e6)
    for machine, words in [
        (fmviz.AllSubsetsRegressor, r"rank = 10,000 and 5 features need 2.4 MB, and 1 MB are free"),
        (
            fmviz.HigherOrderFMRegressor,
            r"for each of 2 orders .* 1 MB are free. Choose a smaller rank or fewer",
        ),
        (fmviz.LiftedRegressor, r"for each of 2 factors .* 1 MB are free. Choose a smaller rank or fewer"),
        (fmviz.FactorizationMachineRegressor, r"rank = 10,000 .* 1 MB are free"),
        (fmviz.PolynomialNetworkRegressor, r"rank = 10,000 .* 1 MB are free"),
    ]:
        with pytest.raises(ValueError, match=words):
            machine(rank=10_000).fit(X, Y)


@pytest.mark.filterwarnings("ignore::fmviz.CollapseWarning")
def test_two_features_have_no_triples_and_the_sentence_says_what_to_do():
    two = X[:, :2]
    assert fmviz.HigherOrderFMRegressor().fit(two, Y).used_interactions_.keys() == {2}
    assert fmviz.HigherOrderFMRegressor(order=2).fit(two, Y).used_interactions_.keys() == {2}
    # With M − 1 dummy features there are enough.
    assert fmviz.HigherOrderFMRegressor(shared=True, max_iter=3).fit(two, Y).w_.size == 2
    problem = {"model": "expansion", "model_params": {"kernel": "anova", "degree": 3, "coefficients": "ones"}}
    with pytest.raises(ValueError, match=r"degree 3, but the data have 2 .* Choose degree = 2 or less"):
        build_problem(two, Y, regularizer="l2", **problem)


def test_an_overflow_names_its_cause_and_a_way_out():
    wide = np.abs(np.random.default_rng(0).normal(size=(20, 400))) * 1e6
    with pytest.warns(ConvergenceWarning, match=r"grows like an exponential .* Scale the features"):
        fmviz.AllSubsetsRegressor(rank=2, init_scale=1.0, random_state=0).fit(wide, Y[:20])
    fitted = fmviz.AllSubsetsRegressor(rank=2, init_scale=0.3, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="overflows"):
        fitted.predict(X * 1e100)
