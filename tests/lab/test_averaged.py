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
from fmviz.lab.saved_model import SavedModel
from fmviz.metrics.prediction import auc_by_row, roc_auc, standard_error
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


def test_the_error_of_an_area_is_that_of_other_rows_drawn(rng):
    y = np.where(np.arange(300) < 60, 1.0, -1.0)
    drawn = [rng.normal(size=300) + 0.7 * y for _ in range(400)]
    assert auc_by_row(y, drawn[0]).mean() == pytest.approx(roc_auc(y, drawn[0]))
    errors = [standard_error(auc_by_row(y, f)) for f in drawn]
    assert np.mean(errors) == pytest.approx(np.std([roc_auc(y, f) for f in drawn]), rel=0.15)
    # Rows that were entered twice say no more than once.
    values, twice = auc_by_row(y, drawn[0]), np.tile(np.arange(300), 2)
    assert standard_error(np.tile(values, 2), twice) == pytest.approx(standard_error(values))
