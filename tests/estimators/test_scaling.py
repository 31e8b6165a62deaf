"""Columns on one scale: the same fit whatever their units and zeros, and what is said of it in both."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel

import fmviz
from fmviz.engine.models import Lifted, PolynomialNetwork
from fmviz.engine.solvers import PSGD

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5))
X[:, 4] = X[:, 4] > 0.5
Y = 2 * X[:, 0] * X[:, 1] + X[:, 2] - X[:, 3] * X[:, 4] + 0.3 * RNG.normal(size=200)
UNITS = 10.0 ** RNG.uniform(-3, 3, 5)
MOVED = (X + RNG.uniform(-10, 10, 5)) * UNITS

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::fmviz.CollapseWarning"),
]

MACHINE, CLASSIFIER = fmviz.FactorizationMachineRegressor, fmviz.FactorizationMachineClassifier
MODELS = ("fm", "hofm", "all_subsets", "expansion", "lifted", "quadratic", "convex")
INVARIANT = [
    *((MACHINE(model=name, random_state=0), 1e-6) for name in MODELS),
    *((MACHINE(regularizer=name, random_state=0), 1e-6) for name in ("cs", "l1", "l21")),
    (MACHINE(2, model=PolynomialNetwork(3), augment=True, random_state=0), 1e-6),
    (CLASSIFIER(random_state=0), 1e-6),
    (fmviz.FactorizationMachineRegressorCV(random_state=0, cv=3), 1e-6),
    (fmviz.FactorizationMachineClassifierCV(3, random_state=0, cv=3), 1e-6),
    (fmviz.BayesianFMRegressor(3, n_draws=30, burn_in=10, random_state=0), 1e-6),
    (fmviz.BayesianFMClassifier(3, n_draws=30, burn_in=10, random_state=0), 1e-6),
    (fmviz.RobustFMRegressor(random_state=0), 1e-6),
    (fmviz.RobustFMClassifier(random_state=0, cap_spectrum=1.0, lambda_spectrum=0.01), 1e-6),
    (fmviz.SharedBasisRegressor(random_state=0), 1e-4),
    (fmviz.SharedBasisClassifier(random_state=0), 1e-4),
    (fmviz.OrdinalRegressor(), 1e-6),
]


def target_of(estimator, y=Y):
    labels = estimator.__class__.__name__
    return y > 0 if "Classifier" in labels else np.digitize(y, [-1.0, 1.0]) if "Ordinal" in labels else y


def scores(fitted, X):
    """Return f, or what is predicted of it where a classifier has no scores."""
    return (
        getattr(fitted, "decision_function", None) or getattr(fitted, "predict_proba", None) or fitted.predict
    )(X)


@pytest.mark.parametrize(("estimator", "tolerance"), INVARIANT, ids=lambda value: str(value)[:70])
def test_units_and_zeros_of_columns_have_no_say(estimator, tolerance):
    y = target_of(estimator)
    plain, moved = clone(estimator).fit(X, y), clone(estimator).fit(MOVED, y)
    f = scores(plain, X)
    assert np.abs(scores(moved, MOVED) - f).max() <= tolerance * f.std()
    if hasattr(plain, "interactions"):
        pairs = [
            {tuple(row) for row in fitted.interactions().filter(like="feature").to_numpy().tolist()}
            for fitted in (plain, moved)
        ]
        assert pairs[0] == pairs[1]
        assert moved.scale_ == pytest.approx(plain.scale_ * UNITS, rel=1e-9)


REGRESSORS = [
    pair for pair in INVARIANT if "Classifier" not in str(pair[0]) and "Ordinal" not in str(pair[0])
]


@pytest.mark.parametrize(("estimator", "tolerance"), REGRESSORS, ids=lambda value: str(value)[:70])
def test_a_constant_added_to_the_target_is_added_to_predictions(estimator, tolerance):
    far = 1e5 * Y.std()
    plain, moved = clone(estimator).fit(X, Y), clone(estimator).fit(X, Y + far)
    f = plain.predict(X)
    assert np.abs(moved.predict(X) - far - f).max() <= tolerance * f.std()
    assert np.mean(moved.intercept_) == pytest.approx(far + np.mean(plain.intercept_), rel=1e-9)


# The docstring of machines says why units count in models of all subsets; robust ones estimate their caps.
@pytest.mark.parametrize("factor", [1e-3, 1e3])
@pytest.mark.parametrize(
    ("estimator", "tolerance"),
    [pair for pair in REGRESSORS if "all_subsets" not in str(pair[0]) and "Robust" not in str(pair[0])],
    ids=lambda value: str(value)[:70],
)
def test_the_unit_of_the_target_is_that_of_predictions(estimator, tolerance, factor):
    f = clone(estimator).fit(X, Y).predict(X)
    scaled = clone(estimator).fit(X, Y * factor).predict(X)
    # Those of several orders have a tolerance in the unit of P, and rounding decides between equal strengths.
    tolerance = max(tolerance, 1e-2 if "CV" in str(estimator) else 1e-5)
    assert np.abs(scaled / factor - f).max() <= tolerance * f.std()


def test_callbacks_and_warm_starts_see_the_bias_of_the_target():
    biases = []
    machine = MACHINE(
        random_state=0, warm_start=True, max_iter=5, callback=lambda s: biases.append(s.parameters)
    )
    machine.fit(X, Y + 1e5)
    assert biases[-1].intercept == pytest.approx(machine.intercept_)
    assert biases[-1].intercept == pytest.approx(1e5, rel=1e-3)
    for _ in range(3):
        machine.fit(X, Y + 1e5)
    at_once = MACHINE(random_state=0, max_iter=20, tol=0).fit(X, Y + 1e5)
    assert machine.set_params(tol=0).predict(X) == pytest.approx(at_once.predict(X), abs=1e-3)
    moved = machine.set_params(max_iter=1).fit(X, Y - 1e5)
    assert moved.intercept_ == pytest.approx(-1e5, rel=1e-3)


def test_scorers_of_a_search_see_the_target_as_it_is():
    searched = fmviz.FactorizationMachineRegressorCV(
        2, cv=2, scoring="neg_mean_absolute_percentage_error", random_state=0
    ).fit(X[:60], Y[:60] + 1e3)
    assert 0.0 < searched.path_["validation_loss"].min() < 1e-2


@pytest.mark.parametrize("settings", [{"fit_linear": False}, {"model": PolynomialNetwork(3)}], ids=str)
def test_columns_are_divided_alone_where_centring_would_add_terms(settings):
    fitted, moved = (MACHINE(random_state=0, **settings).fit(data, Y) for data in (X, X * UNITS))
    assert not fitted.center_.any()
    assert fitted.scale_ == pytest.approx(X.std(axis=0))
    f = fitted.predict(X)
    assert np.abs(moved.predict(X * UNITS) - f).max() <= 1e-6 * f.std()


@pytest.mark.parametrize(
    ("kind", "good"),
    [
        (MACHINE, 0.93),
        (fmviz.FactorizationMachineRegressorCV, 0.98),
        (fmviz.BayesianFMRegressor, 0.98),
    ],
)
@pytest.mark.parametrize(("zero", "units"), [(3.0, 1.0), (10.0, np.array([10.0, 10.0, 0.1, 0.1, 1.0, 1.0]))])
def test_ages_are_fitted_as_deviations_are(kind, good, zero, units):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1200, 6))
    y = 2 * rows[:, 0] * rows[:, 1] + rows[:, 2] - rows[:, 3] * rows[:, 4] + 0.3 * rng.normal(size=1200)
    rows = (rows + zero) * units
    assert kind(random_state=0).fit(rows[:200], y[:200]).score(rows[200:], y[200:]) > good


def test_moments_are_weighted_and_constants_stay_finite():
    weights = RNG.integers(0, 3, size=200)
    data = np.column_stack([X, np.full(200, 0.1)])
    repeated = np.repeat(data, weights, axis=0)
    for given in (data, sp.csr_array(data)):
        fitted = MACHINE(standardize=True, random_state=0).fit(given, Y, sample_weight=weights)
        deviations = np.where(np.ptp(data, axis=0) > 0, repeated.std(axis=0), 1.0)
        assert fitted.scale_ == pytest.approx(deviations)
        assert fitted.center_ == pytest.approx(0.0 if sp.issparse(given) else repeated.mean(axis=0))
    labels = Y > 0.5
    balanced = CLASSIFIER(class_weight="balanced", random_state=0).fit(X, labels)
    assert balanced.center_ == pytest.approx(0.5 * (X[labels].mean(axis=0) + X[~labels].mean(axis=0)))


def test_a_sparse_matrix_stays_as_it_is_and_equals_a_dense_one_that_does():
    few = X * (np.abs(X) > 0.7)
    sparse, dense = MACHINE(random_state=0).fit(sp.csr_array(few), Y), MACHINE(random_state=0).fit(few, Y)
    raw = MACHINE(random_state=0, standardize=False).fit(few, Y)
    np.testing.assert_array_equal([sparse.center_, sparse.scale_], [np.zeros(5), np.ones(5)])
    assert sparse.predict(few) == pytest.approx(raw.predict(sp.csr_array(few)), abs=1e-8)
    # What a dense fit has learned can be asked of sparse rows.
    assert dense.predict(sp.csr_array(few)) == pytest.approx(dense.predict(few))
    divided = MACHINE(random_state=0, standardize=True)
    f = clone(divided).fit(sp.csr_array(few), Y).predict(few)
    assert clone(divided).fit(sp.csr_array(few * UNITS), Y).predict(few * UNITS) == pytest.approx(f, abs=1e-6)
    with pytest.raises(ValueError, match="standardize = 'yes' must be 'auto', True or False"):
        MACHINE(standardize="yes").fit(X, Y)


def test_fits_that_go_on_stay_on_their_scale():
    machine = MACHINE(random_state=0, warm_start=True).fit(MOVED, Y)
    first = machine.center_.copy()
    again = pickle.loads(pickle.dumps(machine)).fit(MOVED[:150], Y[:150])
    assert (again.center_ == first).all()
    assert (machine.set_params(warm_start=False).fit(MOVED[:150], Y[:150]).center_ != first).any()
    parts = MACHINE(3, random_state=0, init_scale=0.3, solver=PSGD(eta0=0.01))
    on_scale = clone(parts)
    on_scale.center_, on_scale.scale_ = MOVED.mean(axis=0), MOVED.std(axis=0)
    standard = (MOVED - MOVED.mean(axis=0)) / MOVED.std(axis=0)
    for _ in range(2):
        parts.partial_fit(standard, Y)
        on_scale.partial_fit(MOVED, Y)
    assert (parts.scale_ == 1.0).all()
    assert on_scale.predict(MOVED) == pytest.approx(parts.predict(standard), abs=1e-7)


@pytest.mark.parametrize(
    "estimator",
    [
        MACHINE(random_state=0),
        MACHINE(model="quadratic"),
        MACHINE(model=PolynomialNetwork(2), random_state=0),
        MACHINE(model="hofm", random_state=0),
        fmviz.BayesianFMRegressor(3, n_draws=20, burn_in=5, random_state=0),
        fmviz.SharedBasisRegressor(random_state=0),
    ],
    ids=str,
)
def test_weights_in_units_are_those_of_the_products_of_the_columns(estimator):
    fitted = clone(estimator).fit(MOVED, Y)
    table = fitted.interactions(top=3)
    for *features, weight in table.filter(regex="feature|units").to_numpy():
        chosen = np.array(features, dtype=int)
        if np.unique(chosen).size == chosen.size:
            # The mixed difference of f is what the product alone adds.
            moved = np.array([*product((0, 1), repeat=chosen.size)])
            rows, steps = np.repeat(MOVED[:1], len(moved), axis=0), MOVED.std(axis=0)[chosen]
            rows[:, chosen] += moved * steps
            difference = (-1.0) ** (chosen.size - moved.sum(axis=1)) @ fitted.predict(rows)
            assert weight * steps.prod() == pytest.approx(difference, rel=1e-6, abs=1e-9)
    if estimator.get_params().get("model") == "hofm":
        assert "weight_in_units" not in fitted.interactions(order=2)


def test_effects_are_read_in_the_units_of_the_columns():
    fitted = MACHINE(random_state=0).fit(MOVED, Y)
    curve = fmviz.plot.effects(fitted, "2", X=MOVED).data[-1]
    assert MOVED[:, 2].min() <= min(curve.x) < max(curve.x) <= MOVED[:, 2].max()
    P, w, bias = fitted._scale.in_units(fitted.P_, fitted.w_, fitted.intercept_)
    f = bias + MOVED @ w + 0.5 * ((MOVED @ P) ** 2 - MOVED**2 @ P**2).sum(axis=1)
    assert fitted.predict(MOVED) == pytest.approx(f, abs=1e-9)


def test_strengths_of_paths_are_those_of_the_scaled_columns():
    known = {"lambda_w": 0.1, "lambda_p": 0.01}
    tops = [fmviz.lambda_max(data, Y, **known) for data in (X, MOVED)]
    assert tops[1].lower == pytest.approx(tops[0].lower, rel=1e-6)
    assert fmviz.lambda_max(MOVED, Y, standardize=False, **known).lower != pytest.approx(tops[0].lower)
    given = {"lambdas": [0.1], "random_state": 0, **known}
    paths = [fmviz.regularization_path(data, Y, validation=(data, Y), **given) for data in (X, MOVED)]
    assert paths[1]["validation_loss"][0] == pytest.approx(paths[0]["validation_loss"][0], rel=1e-6)
    assert (paths[1].scaling.center == MACHINE(max_iter=1).fit(MOVED, Y).center_).all()
    probes = [[*fmviz.find_lambda(data, Y, 3, (2, 4), random_state=0, **known)] for data in (X, MOVED)]
    assert [probe.used_interactions for probe in probes[0]] == [
        probe.used_interactions for probe in probes[1]
    ]


@pytest.mark.parametrize(
    "estimator",
    [
        MACHINE(random_state=0),
        MACHINE(model="all_subsets", random_state=0),
        MACHINE(model=Lifted(2), random_state=0),
        fmviz.BayesianFMRegressor(3, n_draws=20, random_state=0),
        fmviz.SharedBasisRegressor(random_state=0),
    ],
    ids=str,
)
def test_features_are_selected_by_what_they_change(estimator):
    noisy = np.column_stack([MOVED, RNG.normal(size=(200, 3))])
    chosen = SelectFromModel(clone(estimator), threshold=-np.inf, max_features=5).fit(noisy, Y)
    assert chosen.get_support().tolist() == [True] * 5 + [False] * 3
    assert not hasattr(clone(estimator), "feature_importances_")
    if estimator.get_params().get("model") == "fm":
        assert RFE(clone(estimator), n_features_to_select=5).fit(noisy, Y).support_[:5].all()


def test_an_importance_is_the_size_of_a_change():
    columns = RNG.normal(size=(4000, 3)) * [1.0, 10.0, 1.0] + 5.0
    deviations = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    for setting in ("auto", False):
        fitted = MACHINE(lambda_w=0, lambda_p=0, lambda_sparse=0, standardize=setting, random_state=0).fit(
            columns, deviations[:, 0] * (3.0 + 4.0 * deviations[:, 1])
        )
        assert fitted.feature_importances_ == pytest.approx([5.0, 4.0, 0.0], abs=0.3)


@pytest.mark.parametrize("outputs", [Y, np.column_stack([Y, -Y])], ids=["one", "several"])
def test_coefficients_are_taken_back_for_a_warm_start(outputs):
    machine = MACHINE(2, model=PolynomialNetwork(2), random_state=0, max_iter=20, tol=0.0).fit(X, outputs)
    other = clone(machine).set_params(warm_start=True, max_iter=1, callback=(seen := []).append)
    for name in ("P_", "w_", "intercept_", "coefficients_"):
        setattr(other, name, getattr(machine, name))
    other.fit(X, outputs)
    assert (seen[0].parameters["coefficients"] == machine.coefficients_[2]).all()
    assert seen[0].objective == pytest.approx(machine.history_["objective"].iloc[-1], rel=1e-12)
