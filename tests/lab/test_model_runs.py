"""Machines on a shared basis and lifted models as experiments: targets, the store, links, the report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fmviz.engine.models import get_model
from fmviz.engine.solvers import ConditionalGradient
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.interpretation.reading import pair_table
from fmviz.lab.runner import Run, prepare
from fmviz.lab.search.tuning import can_be_tuned, tuned
from fmviz.lab.store.packing import pack_parameters, unpack_parameters
from fmviz.paths.validation import finished
from fmviz.report import Outcome, html

FEW = {"max_epochs": 2, "rank": 3, "validation": 0.25, "solver": ConditionalGradient(bases=1)}
NAMES = ("a", "b", "c", "d")


def dataset(task: str) -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    score = np.column_stack([X[:, 0] * X[:, 1], X[:, 2] ** 2 - 1.0, X[:, 0] * X[:, 3]])
    labels: tuple[str, ...] | None = ("low", "mid", "high")
    y = {
        "class": score.argmax(axis=1).astype(float),
        "ordinal": np.digitize(score[:, 0], [-0.4, 0.4]).astype(float),
        "several": np.where(score > 0, 1.0, -1.0),
        "regression": score,
    }[task]
    targets = () if task != "regression" else ("p", "q", "r")
    return Dataset(
        name=task, title=task, task=task, X=X, y=y, feature_names=NAMES, groups=NAMES,
        class_labels=None if targets else labels, targets=targets,
    )  # fmt: skip


@pytest.mark.parametrize("task", ["class", "ordinal", "several", "regression"])
def test_every_kind_of_target_is_fitted_measured_and_reported(task):
    data = dataset(task)
    loss = "squared" if task == "regression" else "logistic"
    experiment = replace(suggested("iris", "shared_basis"), loss=loss, **FEW)
    run = prepare(data, experiment, np.arange(60), np.arange(60, 80))
    end = run.end()
    model, result = run.problem.model, end.parameters
    assert end.metrics["used_bases"] == 2
    assert {"train_loss", "validation_loss"} <= end.metrics.keys()
    assert end.metrics["validation_loss"] == pytest.approx(
        run.problem.on_rows(*run.validation).empirical_risk(model.predict(run.validation[0], result))
    )
    assert list(pair_table(model, result, data, 1)["output"]) == list(data.outputs)
    page = html(Outcome("t", experiment, model, "", [end.record()], result, data))
    assert all(name.replace("≤", "&le;") in page or name in page for name in data.outputs)
    # What a store and an archive hold of it.
    again = unpack_parameters(pack_parameters(result))
    assert all(np.array_equal(array, again[name]) for name, array in result.items())


def test_its_strength_is_chosen_by_validation():
    experiment = replace(suggested("iris", "shared_basis"), rank=4)
    run = prepare(dataset("class"), experiment, np.arange(60), np.arange(60, 80))
    assert can_be_tuned(run.problem)
    settings, result = finished(tuned(run))
    assert settings["lambda_sparse"] == pytest.approx(result.best.lambda_sparse, rel=1e-3)
    assert result.best.loss == min(trial.loss for trial in result.trials)
    assert isinstance(run, Run)


# ---------------------------------------------------------------------------------------------- lifted models


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
