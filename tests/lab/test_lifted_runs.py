"""Runs of lifted models: what is measured is the weight of a pair in f, however it is factorised."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.models import get_model
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run

SETTINGS = {"regularizer": "l2", "solver": "cd", "lambda_sparse": 0.0, "rank": 3}


def run_of(**params) -> Run:
    return Run.prepare(Experiment(**SETTINGS, model=get_model("lifted", params), max_epochs=2))


@pytest.mark.parametrize("kernel", ["anova", "polynomial"])
def test_recovery_is_that_of_the_pairs_in_f(kernel):
    run = run_of(kernel=kernel)
    truth = run.dataset.truth
    start = run.problem.start(0.0, np.random.default_rng(0))
    assert run.measure(start)["estimation_error"] == pytest.approx(1.0)
    # U = P and V = P give PPᵀ; in xᵀWx every pair stands twice.
    d, columns = start.P.shape
    P = np.random.default_rng(0).normal(size=(d, columns // 2))
    start.P[:] = np.tile(P, 2)
    W = (P @ P.T) * (1.0 if kernel == "anova" else 2.0)
    upper = np.triu_indices(d, 1)
    error = np.linalg.norm((truth - W)[upper]) / np.linalg.norm(truth[upper])
    assert run.measure(start)["estimation_error"] == pytest.approx(error)


def test_higher_degrees_have_no_pairs_to_recover():
    last = run_of(degree=3).end()
    assert "train_rmse" in last.metrics
    assert not {"estimation_error", "support_f1"} & set(last.metrics)
    assert last.used_interactions > 0
