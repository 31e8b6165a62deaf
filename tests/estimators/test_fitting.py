"""How the estimators run: warm starts, early stopping, rows part by part, weights of classes, rank 0."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold

import fmviz
from fmviz.engine.models import Lifted, PolynomialNetwork
from fmviz.engine.solvers import GCD, PSGD, SOLVERS, get_solver
from fmviz.engine.target import Target
from fmviz.estimators.fitting import merged_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
Y = 2 * X[:, 0] * X[:, 1] - X[:, 2] + 0.05 * RNG.normal(size=60)
LABELS = np.where(Y > 0, "yes", "no")

# A part of the rows stays as it is, and so do all of them here.
MACHINE = fmviz.FactorizationMachineRegressor(
    rank=3, init_scale=0.3, standardize=False, tol=0.0, random_state=0
)
SMOOTH = clone(MACHINE).set_params(regularizer="l2", lambda_sparse=0.0)


def test_a_fit_that_has_not_converged_warns():
    with pytest.warns(ConvergenceWarning, match="limit of 3 epochs"):
        clone(MACHINE).set_params(max_iter=3, tol=1e-6).fit(X, Y)
    # Asked for so many epochs and no more, nobody is surprised.
    clone(MACHINE).set_params(max_iter=3).fit(X, Y)


# ------------------------------------------------------------------------------------------------ warm starts


def on(solver: str, **settings):
    """Return an estimator that the solver takes."""
    if solver in ("exact_pgd", "incremental_pgd"):
        return fmviz.FactorizationMachineRegressor(model="quadratic", solver=solver, tol=0.0, **settings)
    if solver == "gcd":
        return fmviz.FactorizationMachineRegressor(
            3, model="convex", solver=GCD(bases=1), tol=0.0, **settings
        )
    if solver == "subgd":
        return clone(MACHINE).set_params(regularizer="omega_star", solver=solver, **settings)
    smooth = fmviz.why_not("ti", solver) is not None
    return clone(SMOOTH if smooth else MACHINE).set_params(solver=solver, **settings)


# The others are for losses and models of their own.
GOING_ON = [
    name
    for name in SOLVERS
    if name not in ("lbfgs", "reweighted") and any(fmviz.why_not(r, name) is None for r in ("ti", "cs", "l2"))
]


AUGMENTED = [
    fmviz.FactorizationMachineRegressor(2, model=model, augment=True, random_state=0, tol=0.0, **own)
    for model, own in (
        (PolynomialNetwork(3, "anova", "ones"), {"regularizer": "omega_ti"}),
        (Lifted(2), {"solver": "apgd"}),
        (PolynomialNetwork(2), {}),
    )
]


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("estimator", "target"),
    [
        *((estimator, Y) for estimator in (*map(on, GOING_ON), *AUGMENTED)),
        (clone(MACHINE), np.column_stack([Y, -Y])),
    ],
    ids=lambda value: str(getattr(value, "shape", value)),
)
def test_fits_of_one_epoch_are_one_fit(estimator, target):
    at_once = clone(estimator).set_params(max_iter=10).fit(X, target)
    by_one = clone(estimator).set_params(max_iter=1, warm_start=True)
    for _ in range(10):
        by_one.fit(X, target)
    assert by_one.predict(X) == pytest.approx(at_once.predict(X), rel=1e-8, abs=1e-8)
    assert by_one.certificate_ == pytest.approx(at_once.certificate_, rel=1e-5, abs=1e-9)


def test_parameters_set_by_hand_are_where_a_warm_start_begins():
    P, seen = RNG.normal(size=(5, 3)), []
    machine = clone(MACHINE).set_params(warm_start=True, max_iter=1, callback=seen.append)
    machine.P_ = P
    machine.fit(X, Y)
    assert (seen[0].parameters.P == P).all()
    assert not seen[0].parameters.w.any()
    # Of a fit, too: what its solver remembers is that of other parameters.
    machine.P_ = 2 * P
    machine.fit(X, Y)
    assert (seen[2].parameters.P == 2 * P).all()
    assert (seen[2].parameters.w == seen[1].parameters.w).all()
    augmented = clone(AUGMENTED[1]).set_params(rank=3, warm_start=True, max_iter=1, callback=seen.append)
    augmented.P_ = np.hstack([P, P])
    augmented.fit(X, Y)
    assert (seen[4].parameters.P[:5, 3:] == P).all()


@pytest.mark.parametrize("regularizer", ["l1", "l21"])
def test_the_first_fit_with_a_warm_start_is_one_without(regularizer):
    machine = fmviz.FactorizationMachineRegressor(3, regularizer=regularizer, random_state=0).fit(X, Y)
    first = clone(machine).set_params(warm_start=True).fit(X, Y)
    assert machine.P_.any()
    assert (first.P_ == machine.P_).all()


def test_a_warm_start_of_another_shape_is_a_sentence():
    machine = clone(MACHINE).set_params(warm_start=True, max_iter=1).fit(X, Y)
    unfitted = clone(MACHINE).set_params(warm_start=True)
    unfitted.w_ = np.zeros(7)
    other = clone(machine).fit(X, Y).set_params(model="hofm")
    classifier = fmviz.FactorizationMachineClassifier(warm_start=True, max_iter=1, tol=0.0).fit(X, LABELS)
    for fit, words in (
        (lambda: machine.set_params(rank=4).fit(X, Y), r"P_ of shape \(5, 3\).*needs the shape \(5, 4\)"),
        (lambda: machine.set_params(rank=3).fit(X[:, :4], Y), "warm_start=False"),
        (lambda: unfitted.fit(X, Y), "w_ of shape"),
        (lambda: classifier.fit(X, Y > 0), r"\['no', 'yes'\]"),
        (lambda: other.fit(X, Y), "model 'hofm' from a fit of 'fm' is not possible: set warm_start=False"),
    ):
        with pytest.raises(ValueError, match=words):
            fit()


# --------------------------------------------------------------------------------------- stopping and showing


def test_a_callback_ends_the_run_after_its_epoch():
    seen = []
    machine = clone(MACHINE).set_params(
        callback=lambda snapshot: seen.append(snapshot.epoch) or snapshot.epoch == 5
    )
    machine.fit(X, Y)
    assert machine.status_.message.startswith("Stopped by the callback")
    assert machine.n_iter_ == 5
    assert seen == machine.history_["epoch"].tolist() == list(range(6))
    assert machine.certificate_ == machine.history_["certificate"].iloc[-1] > 0
    alike = clone(MACHINE).set_params(max_iter=5).fit(X, Y)
    assert (alike.P_ == machine.P_).all()
    assert alike.certificate_ == machine.certificate_


@pytest.mark.parametrize("solver", ["pcd", "lbfgs"])
def test_early_stopping_keeps_what_suits_the_rows_held_out(solver):
    noisy = Y + 3.0 * RNG.normal(size=60)
    seen = {}
    machine = on(solver, early_stopping=True, validation_fraction=0.25, n_iter_no_change=4, max_iter=500)
    machine.set_params(
        rank=5,
        lambda_p=1e-6,
        lambda_w=1e-6,
        callback=lambda snapshot: seen.update({snapshot.epoch: snapshot.parameters}) or False,
    ).fit(X, noisy)
    best = machine.history_["validation_loss"].idxmin()
    assert machine.n_iter_ == best + 4 < 500
    assert f"epoch {best}" in machine.status_.message
    assert (machine.P_ == seen[best].P).all()
    assert machine.n_used_interactions_ == machine.history_["used_interactions"][best]
    assert (clone(machine).set_params(callback=None).fit(X, noisy).P_ == machine.P_).all()


def test_verbose_prints_a_line_every_so_many_epochs(capsys):
    machine = clone(MACHINE).set_params(max_iter=5, verbose=2).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == ["Epoch 0", "Epoch 2", "Epoch 4", "Epoch 5"]
    assert lines[-1] == machine.status_.message
    clone(MACHINE).set_params(max_iter=1).fit(X, Y)
    assert not capsys.readouterr().out


def test_no_random_state_is_the_global_one():
    machine = clone(MACHINE).set_params(random_state=None, max_iter=1)
    draws = []
    for seed in (0, 0, 1):
        np.random.seed(seed)
        draws.append(clone(machine).fit(X, Y).P_)
    assert (draws[0] == draws[1]).all()
    assert (draws[0] != draws[2]).any()


# ------------------------------------------------------------------------------------------------ partial_fit


@pytest.mark.parametrize("solver", ["psgd", "sgd", "mb_psgd"])
def test_parts_that_are_everything_are_epochs(solver):
    machine = on(solver, max_iter=4).set_params(solver=get_solver(solver, {"eta0": 0.01}))
    full = clone(machine).fit(X, Y)
    for _ in range(4):
        machine.partial_fit(X, Y)
    assert pytest.approx(full.P_, rel=1e-12) == machine.P_


def test_parts_carry_the_count_of_steps_and_their_scale():
    machine = on("psgd").set_params(solver=PSGD(eta0=0.01))
    full = clone(machine)
    for rows in np.split(np.arange(60), 4):
        machine.partial_fit(X[rows], Y[rows])
    assert machine._memory.state.memory["_t"] == 60
    full.partial_fit(X, Y)
    assert full._memory.state.memory["_t"] == 60
    # Steps that are too long are shortened for the rows to come.
    wild = on("psgd").set_params(solver=PSGD(eta0=10.0))
    scales = []
    for rows in np.split(np.arange(60), 4):
        wild.partial_fit(X[rows], Y[rows])
        scales.append(wild._memory.state.memory["_guard"]["scale"])
    assert scales == sorted(scales, reverse=True)
    assert scales[-1] < 0.5
    assert np.isfinite(wild.P_).all()


@pytest.mark.slow
def test_a_classifier_learns_from_parts_with_one_class():
    classifier = fmviz.FactorizationMachineClassifier(rank=3, init_scale=0.3, random_state=0)
    with pytest.raises(ValueError, match="name all classes"):
        classifier.partial_fit(X, LABELS)
    for _ in range(30):
        for label in ("yes", "no"):
            rows = label == LABELS
            classifier.partial_fit(
                X[rows], LABELS[rows], classes=["no", "yes"], sample_weight=np.ones(rows.sum())
            )
    assert classifier.score(X, LABELS) > 0.8
    for given, words in (
        ((X, np.full(60, "maybe")), "maybe"),
        ((X, LABELS, ["a", "b"]), "earlier calls"),
        ((X[:, :3], LABELS), "features"),
    ):
        with pytest.raises(ValueError, match=words):
            classifier.partial_fit(*given)


def test_parts_are_taken_where_a_stochastic_solver_is_possible():
    assert hasattr(MACHINE, "partial_fit")
    for other in (
        fmviz.FactorizationMachineRegressor(solver="pcd"),
        *(fmviz.FactorizationMachineRegressor(model=name) for name in ("hofm", "lifted", "qr", "convex")),
    ):
        assert not hasattr(other, "partial_fit")
    with pytest.raises(AttributeError) as raised:
        fmviz.FactorizationMachineRegressor(solver="pcd").partial_fit(X, Y)
    assert "choose one of sgd, psgd" in str(raised.value.__cause__)
    with pytest.raises(ValueError, match="early_stopping"):
        clone(MACHINE).set_params(early_stopping=True).partial_fit(X, Y)


# ------------------------------------------------------------------------------ probabilities, weights, rank


def test_probabilities_are_those_of_the_fitted_loss():
    classifier = fmviz.FactorizationMachineClassifier(rank=2, max_iter=3, tol=0.0, random_state=0)
    assert hasattr(classifier, "predict_proba")
    before = classifier.fit(X, LABELS).predict_proba(X)
    assert (classifier.set_params(loss="squared_hinge").predict_proba(X) == before).all()
    classifier.fit(X, LABELS)
    assert not hasattr(classifier.set_params(loss="logistic"), "predict_proba")
    with pytest.raises(AttributeError) as raised:
        classifier.predict_proba(X)
    assert "not probabilities" in str(raised.value.__cause__)


def test_class_weights_multiply_sample_weights():
    settings = {"rank": 2, "max_iter": 5, "tol": 0.0, "random_state": 0}
    weights = RNG.uniform(0.5, 2.0, size=60)
    share = np.where(LABELS == "yes", 3.0, 1.0)

    def fitted(class_weight, sample_weight):
        classifier = fmviz.FactorizationMachineClassifier(class_weight=class_weight, **settings)
        return classifier.fit(X, LABELS, sample_weight=sample_weight).decision_function(X)

    assert (fitted({"yes": 3.0, "no": 1.0}, weights) == fitted(None, share * weights)).all()
    balanced = np.where(LABELS == "yes", 60 / (LABELS == "yes").sum(), 60 / (LABELS == "no").sum())
    assert fitted("balanced", None) == pytest.approx(fitted(None, balanced), rel=1e-9)


@pytest.mark.parametrize("model", ["fm", "hofm", "all_subsets", "expansion", "lifted", "convex"])
def test_rank_0_is_the_linear_model(model):
    linear = fmviz.FactorizationMachineRegressor(0, model=model, lambda_w=0.1, tol=1e-12, max_iter=2000)
    linear.set_params(standardize=False).fit(X, Y)
    ridge = Ridge(alpha=2 * 0.1 * len(Y)).fit(X, Y)
    assert linear.w_ == pytest.approx(ridge.coef_, abs=1e-8)
    assert linear.intercept_ == pytest.approx(ridge.intercept_, abs=1e-8)
    assert linear.predict(X) == pytest.approx(ridge.predict(X), abs=1e-8)
    assert linear.n_used_interactions_ == len(linear.interactions()) == linear.used_features_.size == 0
    assert model == "convex" or linear.certificate_ < 1e-10


@pytest.mark.parametrize("solver", ["pcd", "pbcd", "nmapgd", "apgd", "psgd", "katyusha"])
def test_every_solver_takes_rank_0(solver):
    machine = clone(MACHINE).set_params(rank=0, solver=solver, max_iter=30).fit(X, Y)
    assert machine.P_.shape == (5, 0)
    assert machine.w_[2] == pytest.approx(-1.0, abs=0.5)


# -------------------------------------------------------------------- rows that repeat, features that are met


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.pairwise(1)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "name", ["SharedBasisClassifier", "SharedBasisRegressor", "RobustFMRegressor", "RobustFMClassifier"]
)
def test_weights_are_repeated_rows_wherever_rounding_would_decide(name, storage, rng):
    X, weights = rng.random((20, 5)).round(1), rng.integers(0, 5, size=20)
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.normal(size=20)
    if "Classifier" in name:
        y = np.digitize(y, [0.7] if name.startswith("Robust") else [0.5, 0.9])
    again = rng.permutation(np.repeat(np.arange(20), weights))
    weighted, repeated = (getattr(fmviz, name)(random_state=0, max_iter=5) for _ in range(2))
    weighted.fit(storage(X), y, sample_weight=weights)
    repeated.fit(storage(X[again]), y[again])
    scores = [getattr(item, "decision_function", item.predict)(X) for item in (weighted, repeated)]
    assert np.abs(scores[0] - scores[1]).max() <= 1e-9


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_rows_are_merged_by_x_and_y(storage):
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [1.0, 0.0], [3.0, 0.0]])
    y = np.array([1.0, 1.0, 1.0, 5.0, 1.0])
    result, target, weights = merged_rows(storage(X), Target.of(y), [0.5, 1.0, 0.25, 1.0, 0.0])
    dense = result.toarray() if sp.issparse(result) else result
    rows = sorted(zip(dense[:, 0], target.values, weights, strict=True))
    assert rows == [(1.0, 1.0, 0.75), (1.0, 5.0, 1.0), (2.0, 1.0, 1.0)]


@pytest.mark.parametrize("weights", [[1.0, -1.0], [np.nan, 1.0], [1.0], [0.0, 0.0]])
def test_weights_that_are_none_are_left_to_be_refused(weights):
    with pytest.raises(ValueError, match="sample_weight"):
        fmviz.SharedBasisRegressor().fit([[1.0, 2.0], [2.0, 1.0]], [1.0, 2.0], sample_weight=weights)


MET = np.sort(np.random.default_rng(0).choice(200_000, 5, replace=False))


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    ("machine", "y"),
    [
        (fmviz.FactorizationMachineRegressor(2), Y),
        (fmviz.FactorizationMachineRegressor(2), np.stack([Y, -Y], axis=1)),
        (fmviz.FactorizationMachineRegressor(2, model="expansion", augment=True, fit_linear=False), Y),
    ],
    ids=["one output", "several", "dummy features"],
)
def test_features_that_are_never_met_have_parameters_of_0(machine, y, form):
    few = X * (np.random.default_rng(1).random(X.shape) < 0.6)
    where = np.nonzero(few)
    wide = form((few[where], (where[0], MET[where[1]])), shape=(60, 200_000))
    machine = clone(machine).set_params(max_iter=5, tol=0.0, random_state=0)
    result, alone = clone(machine).fit(wide, y), clone(machine).fit(form(few), y)
    np.testing.assert_array_equal(result.P_[..., MET, :], alone.P_[..., :5, :])
    np.testing.assert_array_equal(result.w_[..., MET], alone.w_)
    assert np.count_nonzero(result.P_[..., :200_000, :]) == np.count_nonzero(alone.P_[..., :5, :])
    np.testing.assert_allclose(result.predict(wide), alone.predict(form(few)), rtol=1e-12)
    shape = result.P_.shape
    assert result.set_params(warm_start=True).fit(wide, y).P_.shape == shape


@pytest.mark.parametrize(
    "machine",
    [
        fmviz.FactorizationMachineClassifier,
        fmviz.FactorizationMachineClassifierCV,
        fmviz.RobustFMClassifier,
        fmviz.SharedBasisClassifier,
    ],
)
def test_a_class_without_weight_is_refused(machine):
    with pytest.raises(ValueError, match="class 'yes' have the weight 0"):
        machine(random_state=0).fit(X, LABELS, sample_weight=LABELS == "no")
    with pytest.raises(ValueError, match="class 'no' have the weight 0"):
        machine(random_state=0, class_weight={"no": 0.0}).fit(X, LABELS)


def test_groups_reach_the_splitter():
    groups, seen = np.arange(60) % 6, []

    class Noting(GroupKFold):
        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                seen.append(set(groups[train]) & set(groups[test]))
                yield train, test

    fmviz.FactorizationMachineRegressorCV(2, cv=Noting(2), random_state=0).fit(X, Y, groups=groups)
    assert seen == [set(), set()]
    with pytest.raises(ValueError, match="GroupKFold"):
        fmviz.FactorizationMachineRegressorCV(2).fit(X, Y, groups=groups)


def test_words_in_a_table_lead_to_the_encoder():
    table = pd.DataFrame(X).rename(columns=str).assign(town=["Bern", "Rome"] * 30)
    with pytest.raises(ValueError, match=r"column 'town'.*TableEncoder"):
        MACHINE.fit(table, Y)


def test_a_target_of_a_single_column_is_a_vector():
    with pytest.warns(DataConversionWarning):
        assert clone(MACHINE).fit(X, Y[:, None]).predict(X).shape == Y.shape
