"""Machines on a shared basis as experiments: every kind of target, the store, links, the report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fmviz.engine.solvers import ConditionalGradient
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import suggested
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
    assert "Shared bases" in page
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
