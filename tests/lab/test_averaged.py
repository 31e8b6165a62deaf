"""Averages over samples: what they predict, beside a run, and out of a saved model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import ndtr

from fmviz.engine.design import Design
from fmviz.engine.losses import Logistic
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.sampling.posterior import Posterior
from fmviz.lab.catalog import load
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, prepare
from fmviz.lab.saved_model import SavedModel
from fmviz.lab.search import averaged as module
from fmviz.lab.search.averaged import Average, averaged
from fmviz.lab.search.tuning import tuned
from fmviz.metrics.prediction import auc_by_row, roc_auc, standard_error
from fmviz.paths.validation import finished
from fmviz.tables.columns import WordColumn
from fmviz.tables.target import TargetEncoding

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 3))
SAMPLES = (RNG.normal(size=(4, 3, 2)), RNG.normal(size=(4, 3)), RNG.normal(size=4))


def slowly():
    """Return the predictions of every sample, shape (4, 7)."""
    P, w, b = SAMPLES
    model = get_model("fm")
    return np.array([model.predict(Design(X), Parameters(P[s], w[s], b[s])) for s in range(4)])


def test_scores_are_means_of_predictions_or_of_probabilities(monkeypatch):
    monkeypatch.setattr("fmviz.engine.sampling.posterior._ROWS", 3)
    assert Posterior(*SAMPLES, binary=False).scores(X) == pytest.approx(slowly().mean(axis=0))
    probit = Posterior(*SAMPLES, binary=True).scores(sp.csc_array(X))
    assert ndtr(probit) == pytest.approx(ndtr(slowly()).mean(axis=0))
    posterior = Posterior(*SAMPLES, binary=True)
    L = posterior.mean_factors()
    i, j = np.array([0, 1]), np.array([1, 2])
    assert (L @ L.T)[i, j] == pytest.approx(posterior.weights(i, j).mean(axis=0))


@pytest.mark.parametrize("binary", [False, True])
def test_a_saved_model_predicts_with_its_samples(tmp_path, binary):
    posterior = Posterior(*(array.astype(np.float32) for array in SAMPLES), binary)
    target = (
        TargetEncoding("y", "binary", labels=("no", "yes")) if binary else TargetEncoding("y", "regression")
    )
    parameters = Parameters(np.zeros((3, 2)), np.zeros(3), 0.0)
    model = SavedModel(parameters, get_model("fm"), target, ("a", "b", "c"), None, Logistic(), posterior)
    model.save(tmp_path / "model.npz")
    loaded = SavedModel.load(tmp_path / "model.npz")
    scores, _ = loaded.scores(X)
    assert scores == pytest.approx(posterior.scores(X))
    probability = loaded.probability(scores)
    assert (probability is None) != binary
    if binary:
        assert probability == pytest.approx(ndtr(slowly()).mean(axis=0), abs=1e-5)
    plain = dataclasses.replace(model, averaged=None)
    assert plain.scores(X)[0] == pytest.approx(np.zeros(7))


def test_samples_of_a_run_and_tuned_strengths_predict_its_rows_kept_out(monkeypatch):
    prepared = Run.prepare(Experiment(dataset="balance_scale", rank=3, validation=0.3, loss="logistic"))
    monkeypatch.setattr(module, "_DRAWS", 20)
    monkeypatch.setattr(module, "_BURN_IN", 20)
    posterior = finished(averaged(prepared))
    assert posterior.P.shape[0] == 20
    design, y = prepared.validation
    sampled = roc_auc(y, posterior.scores(design.matrix))
    settings, tuning = finished(tuned(prepared))
    assert settings["lambda_sparse"] == pytest.approx(tuning.best.lambda_sparse, rel=1e-3)
    end = Run.prepare(dataclasses.replace(prepared.experiment, **settings)).end()
    assert min(sampled, end.metrics["validation_auc"]) > 0.95
    monkeypatch.setattr(module, "_MOST_NUMBERS", 10)
    assert finished(averaged(prepared)) is None
    assert load("balance_scale").task == "binary"


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_samples_that_predict_as_a_fit_does_have_its_weights(loss):
    settings = {"rank": 4, "lambda_p": 1e-3, "lambda_sparse": 1e-3, "max_epochs": 20, "loss": loss}
    prepared = Run.prepare(Experiment(dataset="monks1", **settings))
    fit = prepared.end().parameters
    groups = np.unique(prepared.dataset.groups, return_inverse=True)[1]
    i, j = np.nonzero(np.triu(groups[:, None] != groups, 1))
    # Log-odds are 1.702 probit scores, nearly.
    unit = 1.702 if loss == "logistic" else 1.0
    P, w, b = fit.P / np.sqrt(unit), fit.w / unit, fit.intercept / unit
    drawn = []
    for _ in range(5):
        # Every row has one level of each attribute: what its levels share goes into the linear weights.
        common = RNG.normal(size=(groups.max() + 1, P.shape[1]))
        other = P + common[groups]
        sums = common.sum(axis=0)
        taken = np.einsum("jk,jk->j", P, sums - common[groups])
        constant = 0.5 * (sums @ sums - np.square(common).sum())
        drawn.append((other, w - taken, b - constant))
    posterior = Posterior(*(np.array(each) for each in zip(*drawn, strict=True)), loss == "logistic")
    each = np.concatenate([*posterior.each(prepared.dataset.X)], axis=1)
    assert each == pytest.approx(np.tile(each[0], (5, 1)), abs=1e-9)
    assert unit * each[0] == pytest.approx(prepared.problem.model.predict(prepared.problem.design, fit))
    table = Average.beside(prepared, fit, posterior).intervals(i, j)
    weights = np.einsum("pk,pk->p", fit.P[i], fit.P[j])
    assert np.abs(weights).max() > 0.1
    for name in ("mean", "lower", "upper"):
        assert table[name].to_numpy() == pytest.approx(weights, abs=1e-5)


@pytest.mark.parametrize("task", ["binary", "class", "regression"])
def test_an_average_is_better_only_beyond_a_standard_error(task):
    # Rows of which a thousandth more noise is no better: by chance it is better on one set in six.
    rng = np.random.default_rng(1)
    sign, noise = rng.choice([-1.0, 1.0], 400), rng.normal(size=400)
    y, names = (sign + 1.0) / 2.0 if task == "class" else sign, ("a", "b")
    labels = None if task == "regression" else ("no", "yes")
    dataset = Dataset("x", "X", task, np.c_[sign, noise], y, names, names, class_labels=labels)
    settings = Experiment(loss="squared" if task == "regression" else "logistic", rank=1)
    prepared = prepare(dataset, settings, np.arange(200), np.arange(200, 400))

    def machine(noise: float) -> Posterior:
        w = np.array([[-1.0], [1.0]] if task == "class" else [[1.0]])[:, :, None] * [1.0, noise]
        arrays = np.zeros((*w.shape, 1)), w, np.zeros(w.shape[:2])
        return Posterior(*(each if task == "class" else each[0] for each in arrays), task != "regression")

    for sampled, fit, words in (
        (0.5, 0.501, "about as good as"),
        (0, 20, "better than"),
        (20, 0, "worse than"),
    ):
        average = Average.beside(prepared, machine(fit).mean_parameters(), machine(sampled))
        assert f"are {words} those of this fit" in average.message
        assert average.better == (words == "better than")


def test_the_error_of_an_area_is_that_of_other_rows_drawn(rng):
    y = np.where(np.arange(300) < 60, 1.0, -1.0)
    drawn = [rng.normal(size=300) + 0.7 * y for _ in range(400)]
    assert auc_by_row(y, drawn[0]).mean() == pytest.approx(roc_auc(y, drawn[0]))
    errors = [standard_error(auc_by_row(y, f)) for f in drawn]
    assert np.mean(errors) == pytest.approx(np.std([roc_auc(y, f) for f in drawn]), rel=0.15)
    # Rows that were entered twice say no more than once.
    values, twice = auc_by_row(y, drawn[0]), np.tile(np.arange(300), 2)
    assert standard_error(np.tile(values, 2), twice) == pytest.approx(standard_error(values))


def test_an_interval_has_the_estimate_of_a_fit_to_the_same_rows(rng):
    levels = [rng.integers(0, count, 4_000) for count in (4, 5, 6)]
    names = tuple(
        f"{name}={level}" for name, count in zip("abc", (4, 5, 6), strict=True) for level in range(count)
    )
    columns = tuple(
        WordColumn(name=name, levels=tuple(map(str, range(count))))
        for name, count in zip("abc", (4, 5, 6), strict=True)
    )
    groups = tuple(name[0] for name in names)
    X = np.hstack([np.eye(at.max() + 1)[at] for at in levels])
    codes = np.unique(groups, return_inverse=True)[1]
    W = np.triu(rng.normal(size=(15, 15)) * (codes[:, None] != codes), 1)
    y = np.einsum("ni,ij,nj->n", X, W, X) + rng.normal(size=4_000)
    dataset = Dataset("levels", "Levels", "regression", X, y - y.mean(), names, groups, columns=columns)
    strengths = {"lambda_w": 0.1, "lambda_p": 1e-5, "lambda_sparse": 0.0, "max_epochs": 300}
    experiment = Experiment(rank=8, regularizer="l2", **strengths)
    prepared = prepare(dataset, experiment, np.arange(4_000))
    fit = prepared.end().parameters
    average = Average.beside(prepared, fit, finished(averaged(prepared)))
    i, j = np.nonzero(np.triu(codes[:, None] != codes, 1))
    table = average.intervals(i, j)
    weights = np.einsum("pk,pk->p", fit.P[i], fit.P[j])
    inside = (table["lower"] <= weights) & (weights <= table["upper"])
    assert inside.mean() > 0.9
