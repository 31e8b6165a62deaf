"""What every estimator of pairs or products of features keeps: one contract, whatever the model."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from functools import partial
from math import factorial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from by_name import build_problem
from oracles import slow_lifted
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from sklearn_checks import own_checks

import fmviz
from fmviz.engine.models import ConvexFM, HigherOrder, Lifted, PolynomialNetwork
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.solvers import PCD, PSGD
from fmviz.engine.target import Target

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
Y = 2 * X[:, 0] * X[:, 1] - X[:, 2] + 0.05 * RNG.normal(size=120)
TRIPLE = 2 * X[:, 0] * X[:, 1] * X[:, 2] - X[:, 2] + X[:, 3] * X[:, 4] + 0.05 * RNG.normal(size=120)
NAMED = pd.DataFrame(X, columns=list("abcdef"))

# Short fits: what is asked of them does not need their end.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MACHINE, CLASSIFIER = fmviz.FactorizationMachineRegressor, fmviz.FactorizationMachineClassifier
# The objective of the papers, of which oracles know, on X as it is.
RAW = partial(MACHINE, standardize=False)
A2 = Lifted(2, "anova")
# With dummy features, one P for products of all orders up to 3.
SHARED, SIGNED = PolynomialNetwork(3, "anova", "ones"), PolynomialNetwork(4, "anova", "signs")

PAIRS = {
    "fm": RAW(4, lambda_sparse=0.02, random_state=0),
    "convex": RAW(model="convex", lambda_p=0.02, random_state=0),
    "squares": RAW(model=ConvexFM(diagonal=True), lambda_p=0.02, random_state=0),
    "quadratic": RAW(model="quadratic", lambda_p=0.01, lambda_sparse=0.02),
}
PRODUCTS = {
    "hofm": RAW(3, model="hofm", random_state=0),
    "shared": RAW(3, model=SHARED, augment=True, regularizer="omega_ti", random_state=0),
    "shared4": RAW(2, model=SIGNED, augment=True, regularizer="l1", init_scale=0.5, random_state=0),
    "shared fitted": RAW(3, model=PolynomialNetwork(2, "anova"), augment=True, random_state=0),
    "network": RAW(3, model=PolynomialNetwork(2), random_state=0),
    "network3": RAW(3, model=PolynomialNetwork(3, coefficients="ones"), augment=True, random_state=0),
    "network augmented": RAW(3, model=PolynomialNetwork(), augment=True, random_state=0),
    "H2": RAW(3, model=Lifted(2), random_state=0),
    "all subsets": RAW(3, model="all_subsets", init_scale=0.3, random_state=0),
    "A2": RAW(3, model=A2, regularizer="ti", lambda_sparse=0.1, random_state=0),
    "A2 augmented": RAW(3, model=A2, augment=True, random_state=0),
    "H3": RAW(2, model=Lifted(3), regularizer="l1", lambda_sparse=0.01, init_scale=0.5, random_state=0),
    "H3 augmented": RAW(2, model=Lifted(3), augment=True, init_scale=0.5, random_state=0),
}
CASES = PAIRS | PRODUCTS
SMALL = {"rank": 2, "max_iter": 30}


@pytest.mark.sample(45)
@pytest.mark.filterwarnings("ignore::fmviz.CollapseWarning")
@parametrize_with_checks(
    [fmviz.FactorizationMachineRegressor(rank=3), fmviz.FactorizationMachineClassifier(rank=3)]
)
def test_sklearn_contract(estimator, check):
    check(estimator)


# Few epochs: a choice between bases that are nearly as good may depend on rounding.
QUICK = {"rank": 3, "max_iter": 2, "tol": 0.0, "random_state": 0}
MODELS = [
    {"model": HigherOrder(2)},
    {"model": SHARED, "augment": True},
    # With the default λ_p some decisions pass 37, where probabilities are 1 and can no longer be ranked.
    {"model": PolynomialNetwork(2), "lambda_p": 1.0},
    # As P falls to 0, rounding decides which epoch is the last within a tolerance.
    {"model": PolynomialNetwork(3, coefficients="ones"), "augment": True, "lambda_p": 1.0, "tol": 0.0},
    {"model": "all_subsets"},
    {"model": A2},
    {"model": Lifted(3), "augment": True},
    {"model": "quadratic", "rank": None, "max_iter": 100},
    {"model": "convex", "rank": None, "max_iter": None},
]
SLOW = [
    *(kind(**{**SMALL, **model}) for model in MODELS for kind in (MACHINE, CLASSIFIER)),
    fmviz.RobustFMRegressor(),
    fmviz.RobustFMClassifier(),
    fmviz.BayesianFMRegressor(2, n_draws=20, burn_in=5),
    fmviz.BayesianFMClassifier(2, n_draws=20, burn_in=5),
]


@pytest.mark.filterwarnings("ignore::fmviz.CollapseWarning")
@pytest.mark.parametrize(
    ("estimator", "check"),
    own_checks([fmviz.SharedBasisClassifier(**QUICK), fmviz.SharedBasisRegressor(**QUICK)])
    + own_checks(SLOW, pytest.mark.slow),
)
def test_sklearn_contract_of_what_depends_on_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["Regressor", "Classifier"])
def test_scikit_learn_has_nothing_to_say_of_searches_but_that_weights_round(kind):
    # A weight of 2 rounds otherwise than two rows, and where a column of P dies is decided by the last digit.
    why = "where a column of P falls to 0 a rounding error decides between two paths"
    expected = {f"check_sample_weight_equivalence_on_{name}_data": why for name in ("dense", "sparse")}
    check_estimator(getattr(fmviz, f"FactorizationMachine{kind}CV")(), expected_failed_checks=expected)


# ----------------------------------------------------------------------------------- what is found, and told


@pytest.mark.parametrize(("case", "certificate"), [("fm", 1e-2), ("convex", 1e-4), ("quadratic", 1e-3)])
def test_the_pair_is_found_and_its_weight_is_right(case, certificate):
    fitted = clone(CASES[case]).fit(NAMED, Y)
    assert fitted.score(NAMED, Y) > 0.97
    assert fitted.status_.converged
    assert fitted.n_iter_ == fitted.history_["epoch"].iloc[-1]
    assert fitted.certificate_ == fitted.history_["certificate"].iloc[-1] < certificate
    table = fitted.interactions()
    assert table.iloc[0, :2].tolist() == ["a", "b"]
    assert table.weight[0] == pytest.approx(2.0, abs=0.3)
    assert len(table) == fitted.n_used_interactions_ == (15 if case == "convex" else len(table))
    assert len(fitted.interactions(top=1)) == 1
    assert {"abcdef"[j] for j in fitted.used_features_} >= set(table.feature_i) | set(table.feature_j)
    indices = clone(fitted).fit(X, Y).interactions(3)
    assert indices.columns.tolist() == ["feature_i", "feature_j", "weight", "weight_in_units"]
    assert (indices.feature_i < indices.feature_j).all()
    if case == "convex":
        P = fitted.P_[:, : fitted.rank_]
        assert pytest.approx(np.eye(fitted.rank_), abs=1e-12) == P.T @ P
        W = (P * fitted.coefficients_[: fitted.rank_]) @ P.T
        assert table.weight[0] == pytest.approx(W[0, 1], rel=1e-12)
        assert (fitted.P_.shape, np.count_nonzero(fitted.coefficients_)) == ((6, 30), fitted.rank_)
    if case == "quadratic":
        assert (fitted.W_ == fitted.W_.T).all()
        assert len(table) < 15


@pytest.mark.parametrize("case", PAIRS)
def test_history_is_the_objective_and_prediction_the_model(case):
    target = Y + (3 * X[:, 4] ** 2 if case == "squares" else 0.0)
    fitted = clone(CASES[case]).set_params(max_iter=20).fit(X, target)
    problem = fitted._problem(X, Target.of(target), None)[0]
    problem = problem.at(**{name: getattr(fitted, f"{name}_") for name in STRENGTHS})
    # The parameters are those of the attributes, also where these are changed.
    assert fitted.history_["objective"].iloc[-1] == problem.objective(fitted._fitted_parameters())
    fitted.w_ = fitted.w_ + 1.0
    assert fitted.predict(X) == pytest.approx(problem.predict(fitted._parameters) + X.sum(axis=1))
    assert fitted.score(X, target + X.sum(axis=1)) > 0.97


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", PRODUCTS)
def test_predictions_weights_and_counts_are_those_of_the_products(case):
    fitted = clone(CASES[case]).set_params(max_iter=15, tol=0.0).fit(NAMED, TRIPLE + 1.0)
    every, repeated = case == "all subsets", case.startswith(("network", "H"))
    # Every product of features and its weight, of all orders; of distinct features a set has m! orders.
    wanted: dict[tuple[int, ...], float] = {}
    for m in range(1, 7) if every else fitted.factors_:
        P = fitted.P_ if every else fitted.factors_[m]
        c = np.ones(3) if every else fitted.coefficients_[m]
        lifted = case[0] in "HA"
        U = P if lifted else np.tile(P, (m, 1, 1))
        wanted |= slow_lifted.weights(U, c if lifted or repeated else c / factorial(m), repeated)
    f = fitted.intercept_ + X @ fitted.w_ + 3.0 * every
    f += sum(weight * X[:, list(features)].prod(axis=1) for features, weight in wanted.items())
    assert fitted.predict(NAMED) == pytest.approx(f, rel=1e-9, abs=1e-9)
    for m in fitted.used_interactions_:
        table = fitted.interactions(order=m).drop(columns="weight_in_units")
        assert (np.diff(table.weight.abs()) <= 0).all()
        got = {tuple("abcdef".index(item) for item in row[:-1]): row[-1] for row in table.to_numpy()}
        of_order = {key: weight for key, weight in wanted.items() if len(key) == m}
        assert got == pytest.approx(of_order, rel=1e-9, abs=1e-12)
        distinct = [key for key in got if len(set(key)) == m]
        assert fitted.used_interactions_[m] == len(distinct)
        for key in distinct[:4]:
            assert fitted.interaction_weight(["abcdef"[j] for j in key]) == pytest.approx(got[key], rel=1e-9)
        assert len(fitted.interactions(2, m)) == min(2, len(got))
    highest = fitted._fitted_model.order
    lowest = highest if case in ("network", "H2", "A2", "H3") else 2
    assert every or set(fitted.factors_) == {*range(lowest, highest + 1)}
    assert fitted.n_used_interactions_ == sum(fitted.used_interactions_.values())
    assert set(fitted.used_features_) == {j for key in wanted for j in key}
    assert fitted.n_iter_ == fitted.history_["epoch"].iloc[-1]
    assert fitted.certificate_ == fitted.history_["certificate"].iloc[-1]


def test_a_planted_triple_is_found_and_squares_are_weighed():
    best = RAW(4, model="hofm", random_state=0).fit(X, TRIPLE).interactions(top=1)
    assert best.iloc[0, :3].astype(int).tolist() == [0, 1, 2]
    assert best.weight[0] == pytest.approx(2.0, abs=0.2)
    y = 3 * X[:, 0] ** 2 - 2 * X[:, 1] ** 2 + X[:, 2] * X[:, 3]
    network = RAW(5, model=PolynomialNetwork(2), lambda_p=1e-5, max_iter=2_000, tol=1e-6, random_state=0).fit(
        X[:, :5], y
    )
    table = network.interactions(3)
    assert table.iloc[:, :2].to_numpy().tolist() == [[0, 0], [1, 1], [2, 3]]
    assert table.weight.tolist() == pytest.approx([3.0, -2.0, 1.0], abs=0.02)
    W = fmviz.Interactions.of(network.P_, 2, network.coefficients_[2]).matrix()
    assert np.linalg.eigvalsh(W) == pytest.approx([-2.0, -0.5, 0.0, 0.5, 3.0], abs=0.05)


ANY_LOSS = [
    CLASSIFIER(4, random_state=0, max_iter=300),
    CLASSIFIER(model="quadratic"),
    CLASSIFIER(model="convex"),
]
OF_ORDER = {
    2: [CLASSIFIER(4, model=Lifted(2), random_state=0)],
    3: [
        CLASSIFIER(4, model="hofm", random_state=0),
        CLASSIFIER(4, model=PolynomialNetwork(3), random_state=0),
        CLASSIFIER(4, model="all_subsets", init_scale=0.3, random_state=0),
    ],
}


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(
    ("classifier", "loss", "order"),
    [(item, loss, 2) for item in ANY_LOSS for loss in ("logistic", "squared_hinge", "squared", "huber")]
    + [
        pytest.param(item, "logistic", order, marks=() if at == 0 and order == 3 else pytest.mark.slow)
        for order, some in OF_ORDER.items()
        for at, item in enumerate(some)
    ],
    ids=lambda value: str(getattr(value, "model", value)),
)
def test_classifiers_take_any_labels(classifier, loss, order):
    labels = np.where(X[:, :order].prod(axis=1) > 0, "yes", "no")
    fitted = clone(classifier).set_params(loss=loss).fit(X, labels)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.score(X, labels) > (0.9 if isinstance(classifier.model, Lifted) else 0.85)
    assert hasattr(fitted, "predict_proba") == (loss == "logistic")
    if loss == "logistic":
        proba = fitted.predict_proba(X)
        assert proba.sum(axis=1) == pytest.approx(1)
        assert ((proba[:, 1] > 0.5) == (fitted.predict(X) == "yes")).all()


# ------------------------------------------------------------------------------------------ data and settings


@pytest.mark.sample(5)
@pytest.mark.parametrize("case", CASES)
def test_sparse_and_dense_agree_and_warm_starts_go_on(case):
    mask, convex = X * (np.abs(X) > 0.7), case in ("convex", "squares")
    short = {} if convex else {"max_iter": 5, "tol": 0.0}
    estimator = clone(CASES[case]).set_params(warm_start=True, **short)
    dense = clone(estimator).fit(mask, TRIPLE)
    sparse = clone(estimator).fit(sp.csr_array(mask), TRIPLE)
    tolerance = 1e-3 if convex else 1e-8
    assert dense.predict(mask) == pytest.approx(sparse.predict(sp.coo_array(mask)), abs=tolerance)
    if not convex:
        name = "W_" if case == "quadratic" else "P_"
        assert pytest.approx(getattr(sparse, name), abs=tolerance) == getattr(dense, name)
    end = dense.history_["objective"].iloc[-1]
    assert dense.fit(mask, TRIPLE).history_["objective"].iloc[0] == pytest.approx(end, rel=1e-12)


SOLVERS = (
    *(("l21", "pbcd"), ("ti", "pcd"), ("l2", "cd"), ("l1", "apgd"), ("l2", "lbfgs")),
    *(("ti", "pgd"), ("l1", "nmapgd"), ("omega_star", "subgd")),
)
SHORT = {"max_iter": 40, "tol": 0.0, "random_state": 1}


@pytest.mark.parametrize(
    ("estimator", "attributes", "tolerance"),
    [
        *(
            (
                fmviz.FactorizationMachineRegressor(
                    3,
                    solver=solver,
                    regularizer=regularizer,
                    init_scale=0.3,
                    **({"lambda_sparse": 0.0} if regularizer == "l2" else {}),
                    **SHORT,
                ),
                ("P_", "w_"),
                1e-9,
            )
            for regularizer, solver in SOLVERS
        ),
        (clone(PAIRS["quadratic"]).set_params(max_iter=40, tol=0.0), ("W_", "w_"), 1e-9),
        (PAIRS["convex"], (), 1e-3),
    ],
    ids=[*("-".join(both) for both in SOLVERS), "quadratic", "convex"],
)
def test_whole_weights_are_repeated_rows(estimator, attributes, tolerance):
    counts = np.random.default_rng(1).integers(0, 3, size=120)
    weighted = clone(estimator).fit(X, Y, sample_weight=counts)
    repeated = clone(estimator).fit(np.repeat(X, counts, 0), np.repeat(Y, counts))
    assert repeated.predict(X) == pytest.approx(weighted.predict(X), abs=max(tolerance, 1e-8))
    for name in attributes:
        assert pytest.approx(getattr(repeated, name), abs=tolerance) == getattr(weighted, name)


def test_predictions_are_those_of_what_was_fitted_and_attributes_follow_the_model():
    machine = clone(CASES["shared"]).set_params(max_iter=3).fit(X, Y)
    before, attributes = machine.predict(X), {*vars(machine)}
    other = machine.set_params(model="convex", augment=False, rank=None, regularizer="auto")
    assert (other.predict(X) == before).all()
    other.fit(X, Y)
    assert {*vars(other)} ^ attributes == {"rank_", "factors_", "used_interactions_"}
    assert other.interaction_weight([0, 1]) == other.interactions(1).weight[0]
    assert other.interaction_weight([0, 1, 2]) == 0.0
    assert repr(pickle.loads(pickle.dumps(clone(CASES["A2"]))).model) == repr(A2)


@pytest.mark.parametrize(
    ("case", "name", "grid", "warning"),
    [
        ("fm", "lambda_sparse", [1e-3, 10.0], "Choose λ below"),
        ("hofm", "lambda_sparse", [1e-3, 10.0], ""),
        ("quadratic", "lambda_sparse", [1e-3, 10.0], None),
        ("convex", "lambda_p", [1e-2, 100.0], None),
    ],
)
def test_grid_search_works(case, name, grid, warning):
    search = GridSearchCV(CASES[case], {name: grid}, cv=2)
    with nullcontext() if warning is None else pytest.warns(fmviz.CollapseWarning, match=warning):
        search.fit(X, Y)
    assert search.best_params_ == {name: grid[0]}


def test_a_search_that_ends_without_interactions_blames_no_strength_that_nobody_set():
    noise = np.random.default_rng(1)
    machine = fmviz.FactorizationMachineRegressorCV(rank=2, random_state=0, max_iter=50)
    with pytest.warns(fmviz.CollapseWarning, match="Validation prefers no interactions"):
        machine.fit(noise.normal(size=(80, 4)), noise.normal(size=80))
    assert machine.n_used_interactions_ == 0


def test_cross_validation_chooses_what_predicts():
    machine = fmviz.FactorizationMachineRegressorCV(rank=3, cv=2, random_state=0).fit(X, Y)
    assert machine.path_["validation_loss"].min() < np.var(Y) / 2
    assert machine.lambda_sparse_ in set(machine.path_["lambda_sparse"])
    assert machine.status_.converged
    first = fmviz.FactorizationMachineRegressorCV(rank=3, cv=2, one_se=True, random_state=0).fit(X, Y)
    assert first.lambda_sparse_ >= machine.lambda_sparse_
    binary = np.where(np.median(Y) < Y, "yes", "no")
    classifier = fmviz.FactorizationMachineClassifierCV(rank=3, cv=2, random_state=0).fit(X, binary)
    assert classifier.predict_proba(X).shape == (len(X), 2)
    assert set(classifier.predict(X)) <= {"yes", "no"}


@pytest.mark.parametrize(
    ("kind", "scoring", "y"),
    [
        ("Regressor", "neg_mean_absolute_error", Y),
        ("Classifier", "roc_auc", np.where(np.median(Y) < Y, "yes", "no")),
        ("Classifier", "f1", np.digitize(Y, [-1.0, 1.0])),
        ("Regressor", "r2", np.column_stack([Y, -Y])),
    ],
)
def test_scorers_choose_strengths_and_threads_change_nothing(kind, scoring, y):
    settings = {"rank": 2, "cv": 2, "scoring": scoring, "random_state": 0, "max_iter": 50}
    each = [getattr(fmviz, f"FactorizationMachine{kind}CV")(n_jobs=n, **settings).fit(X, y) for n in (1, 2)]
    assert each[0].path_.equals(each[1].path_)
    assert each[0].path_["validation_loss"].min() < (1.0 if scoring.startswith("neg") else -0.5)
    assert (each[0].predict(X) == each[1].predict(X)).all()


# ------------------------------------------------------------------------------------------------- refusals

WRONG = {
    "fm": [
        ({"rank": -1}, "rank = -1"),
        ({"verbose": "much"}, "verbose = 'much'"),
        ({"early_stopping": True, "validation_fraction": 2}, "validation_fraction = 2"),
        ({"early_stopping": True, "n_iter_no_change": 0}, "n_iter_no_change = 0"),
        ({"augment": True}, "augment = True .* model = 'fm' is not one"),
        ({"model": "fmm"}, "model = 'fmm' is not known"),
        ({"model": "robust"}, "RobustFMRegressor and RobustFMClassifier"),
        ({"model": "quadratic"}, r"rank = 4 does not apply to model = 'quadratic'.* Leave rank=None"),
        ({"max_iter": 0}, "max_iter = 0"),
        ({"tol": -1}, "tol = -1"),
        ({"regularizer": "ti2"}, "Did you mean 'ti'"),
        ({"regularizer": "l21", "solver": "pcd"}, "Use PBCD"),
        ({"loss": "logistic"}, "needs labels -1"),
        ({"init_scale": -1.0}, "init_scale"),
        ({"solver": PCD}, "solver = PCD is a class.* Pass an instance"),
        ({"regularizer": {"axis": "rows"}}, "regularizer = .*is not known"),
        ({"loss": 2.0}, "loss = 2.0 is not known"),
        ({"callback": 3}, "must be a function"),
        ({"fit_linear": "no"}, "neither True nor False"),
        ({"warm_start": "no"}, "neither True nor False"),
        ({"random_state": "abc"}, "random_state = 'abc'"),
        ({"dtype": "half"}, r"dtype.*half.*float64"),
    ],
    "convex": [
        ({"lambda_p": -1.0}, "lambda_p = -1"),
        ({"lambda_sparse": 1.0}, "lambda_sparse = 1 has no penalty term"),
        ({"rank": -1}, "rank = -1"),
        ({"init_scale": 0.1}, r"init_scale = 0.1 does not apply .* starts from 0"),
        ({"regularizer": "ti"}, "is a function only of W"),
        ({"solver": "pcd"}, "only on the eigenvalues"),
        ({"solver": 3}, "solver = 3 is not known"),
        ({"solver": PCD(anderson=5)}, "only on the eigenvalues"),
    ],
    "quadratic": [
        ({"lambda_p": -1.0}, "lambda_p = -1"),
        ({"lambda_sparse": -1.0}, "lambda_sparse = -1"),
        ({"solver": "pcd"}, "has no factors"),
        ({"max_iter": 0}, "max_iter = 0"),
    ],
    "hofm": [
        ({"augment": True}, "choose fmviz.models.PolynomialNetwork"),
    ],
    "shared": [({"model": PolynomialNetwork(3)}, "scale of a column is free")],
    "network": [
        ({"lambda_sparse": 1.0}, "lambda_sparse = 1"),
        ({"augment": "yes"}, "neither True nor False"),
    ],
    "all subsets": [
        ({"regularizer": "ti"}, "open problem"),
        ({"rank": -1}, "rank = -1"),
        ({"loss": "logistic"}, "needs labels -1"),
    ],
    "H2": [
        ({"augment": "yes"}, "neither True nor False"),
        ({"regularizer": "omega_ti"}, "two different columns"),
        ({"rank": -1}, "rank = -1"),
    ],
    "robust": [
        ({"cap_loss": "none"}, "cap_loss = 'none'"),
        ({"eps_insensitive": -1.0}, "eps_insensitive = -1.0"),
        ({"rank": 0}, "rank = 0"),
        ({"solver": "pcd"}, "robust factorization machine"),
    ],
    "bayesian": [({"groups": [1, 2]}, "groups has shape")],
    "basis": [({"radius": 0.3, "lambda_sparse": 0.1}, "use one of them")],
}
OTHERS = {
    "robust": fmviz.RobustFMRegressor(),
    "bayesian": fmviz.BayesianFMRegressor(),
    "basis": fmviz.SharedBasisRegressor(),
}


@pytest.mark.parametrize(
    ("case", "settings", "words"), [(case, *wrong) for case, some in WRONG.items() for wrong in some]
)
def test_bad_settings_get_a_sentence(case, settings, words):
    with pytest.raises(ValueError, match=words):
        clone((CASES | OTHERS)[case]).set_params(**settings).fit(X, Y)


def test_bad_data_get_a_sentence():
    regressor, classifier = fmviz.FactorizationMachineRegressor(), fmviz.FactorizationMachineClassifier()
    for ask, words in [
        (lambda: regressor.fit(np.where(X > 2, np.nan, X), Y), "NaN"),
        (lambda: classifier.fit(X, np.ones(120)), "one class only"),
        (lambda: classifier.fit(X, np.arange(240).reshape(120, 2) % 3), "values other than 0 and 1"),
        (lambda: clone(CASES["hofm"]).set_params(model=HigherOrder(4)).fit(X[:, :1], Y), r"1 feature\(s\)"),
        (lambda: regressor.fit(X, Y * 1e300), "y has a value of size"),
        (lambda: regressor.fit(X, np.full(120, 1e200)), "y has a value of size 1e"),
        (lambda: OTHERS["basis"].fit(X, np.full(120, 1e200)), "y has a value of size 1e"),
    ]:
        with pytest.raises(ValueError, match=words):
            ask()


@pytest.mark.parametrize(("case", "missing", "orders"), [("hofm", 4, "order 2, 3"), ("H2", 3, "order 2")])
def test_bad_questions_get_a_sentence(case, missing, orders):
    machine = clone(CASES[case]).set_params(max_iter=2).fit(NAMED, Y)
    for ask, words in [
        (
            lambda: machine.interactions(order=missing),
            f"order = {missing} is not an order of this .* {orders}",
        ),
        (lambda: machine.interactions(0), "top = 0"),
        (lambda: machine.interaction_weight(["a", "z"]), "feature = 'z'"),
        (lambda: machine.interaction_weight(["a"]), "at least two"),
        (lambda: machine.interaction_weight(["a", 0]), "without repetition"),
    ]:
        with pytest.raises(ValueError, match=words):
            ask()
    assert machine.interaction_weight([*"abcd"[:missing]]) == 0.0
    with pytest.raises(ValueError, match="top = 0"):
        clone(CASES["fm"]).set_params(max_iter=1).fit(X, Y).interactions(top=0)


@pytest.mark.parametrize(
    "estimator",
    [
        fmviz.SharedBasisClassifier(),
        fmviz.FactorizationMachineClassifier(),
        fmviz.BayesianFMClassifier(),
        fmviz.OrdinalRegressor(),
    ],
)
def test_a_target_of_none_is_refused_in_words(estimator):
    y = np.array([1.0, 0.0, None, 1.0], dtype=object)
    with pytest.raises(ValueError, match=r"y is None in row 2 .*Remove the rows"):
        estimator.fit(np.eye(4), y if isinstance(estimator, fmviz.OrdinalRegressor) else np.c_[y, y])


WIDE = sp.csr_array((np.ones(2), ([0, 1], [0, 199_999])), shape=(2, 200_000))


@pytest.mark.parametrize(
    ("machine", "data", "module", "free", "words"),
    [
        *(
            (MACHINE(10_000, model=model), (X[:, :5], Y), "engine.models.base", 1e6, words)
            for model, words in [
                ("all_subsets", r"rank = 10,000 and 5 features need 2.4 MB, but only 1 MB are free"),
                ("hofm", r"for each of 2 orders .* 1 MB .* smaller rank or fewer"),
                ("lifted", r"for each of 2 factors .* 1 MB .* smaller rank or fewer"),
                ("fm", r"rank = 10,000 .* 1 MB are free"),
                ("expansion", r"rank = 10,000 .* 1 MB are free"),
            ]
        ),
        (
            MACHINE(model="quadratic"),
            (WIDE, [1.0, -1.0]),
            "engine.models.quadratic",
            1e9,
            "200,000 features needs",
        ),
        (
            fmviz.FactorizationMachineRegressor(),
            (WIDE, [1.0, -1.0]),
            "estimators.fitting",
            1e6,
            r"rank = 10 and 200,000 features need 17\.6 MB, but only 1 MB are free",
        ),
    ],
)
def test_what_cannot_fit_into_memory_is_a_sentence(machine, data, module, free, words, monkeypatch):
    monkeypatch.setattr(f"fmviz.{module}.available_bytes", lambda: free)
    with pytest.raises(ValueError, match=words):
        machine.fit(*data)


# ------------------------------------------------------------------------------------------------- the edges


@pytest.mark.filterwarnings("ignore::fmviz.CollapseWarning")
def test_orders_beyond_the_number_of_features_are_left_out():
    for machine, d, orders in [
        (MACHINE(model=HigherOrder(4), max_iter=2, tol=0.0), 3, {2, 3}),
        (MACHINE(model="hofm"), 2, {2}),
        (MACHINE(model=HigherOrder(2)), 2, {2}),
    ]:
        assert machine.fit(X[:, :d], Y).used_interactions_.keys() == orders
    # With M − 1 dummy features there are enough.
    assert MACHINE(model=SHARED, augment=True, max_iter=3).fit(X[:, :2], Y).w_.size == 2
    with pytest.raises(ValueError, match=r"degree 3, but the data have only 2 .* Choose degree = 2 or less"):
        build_problem(X[:, :2], Y, regularizer="l2", model=PolynomialNetwork(3, "anova", "ones"))


def test_an_overflow_names_its_cause_and_a_way_out():
    wide = np.abs(np.random.default_rng(0).normal(size=(20, 400))) * 1e6
    with pytest.warns(ConvergenceWarning, match=r"grows exponentially.* Scale the features"):
        RAW(2, model="all_subsets", init_scale=1.0, random_state=0).fit(wide, Y[:20])
    fitted = MACHINE(2, model="all_subsets", init_scale=0.3, random_state=0).fit(X[:, :5], TRIPLE)
    with pytest.raises(ValueError, match="overflows"):
        fitted.predict(X[:, :5] * 1e100)
    with pytest.warns(ConvergenceWarning, match="Diverged"):
        clone(CASES["fm"]).set_params(solver=PSGD(eta0=1e6, monotone=False)).fit(X, Y)
    machine = fmviz.FactorizationMachineClassifier(rank=2, random_state=0, lambda_sparse=0.0).fit(X, Y > 0)
    with pytest.raises(ValueError, match="whose square overflows"):
        machine.predict_proba(X * 1e200)
