"""Averages over samples: what they predict, beside a run, and out of a saved model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import ndtr

from fmviz.engine.design import Design
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.sampling.posterior import Posterior
from fmviz.lab.catalog import load
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, quality
from fmviz.lab.search import averaged as module
from fmviz.lab.search.averaged import averaged
from fmviz.lab.search.tuning import tuned
from fmviz.lab.tables.fit import SavedModel
from fmviz.lab.tables.target import Target
from fmviz.paths.validation import finished

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
    posterior = Posterior(*(one.astype(np.float32) for one in SAMPLES), binary)
    target = Target("y", "binary", labels=("no", "yes")) if binary else Target("y", "regression")
    one = Parameters(np.zeros((3, 2)), np.zeros(3), 0.0)
    model = SavedModel(one, "fm", target, ("a", "b", "c"), None, {}, "logistic", posterior)
    model.save(tmp_path / "model.npz")
    found = SavedModel.load(tmp_path / "model.npz")
    scores, _ = found.scores(X)
    assert scores == pytest.approx(posterior.scores(X))
    probability = found.probability(scores)
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
    sampled = quality(y, posterior.scores(design.matrix))["auc"]
    settings, found = finished(tuned(prepared, quick=True))
    assert settings["lambda_sparse"] == pytest.approx(found.best.lambda_sparse, rel=1e-3)
    end = Run.prepare(dataclasses.replace(prepared.experiment, **settings)).end()
    assert min(sampled, end.metrics["validation_auc"]) > 0.95
    monkeypatch.setattr(module, "_MOST_NUMBERS", 10)
    assert finished(averaged(prepared)) is None
    assert load("balance_scale").task == "binary"
