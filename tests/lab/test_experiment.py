"""Experiments: validation, links, JSON, suggestions, and metrics of their runs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fmviz.engine.losses import Huber
from fmviz.engine.models import MODELS
from fmviz.engine.penalties import L1, TI
from fmviz.engine.solvers import PBCDLineSearch
from fmviz.lab.catalog import DataChoice
from fmviz.lab.datasets import DATASETS
from fmviz.lab.experiment import Experiment, changed_of, suggested
from fmviz.lab.runner import Run, cost_note, pairs_matrix, too_large


@pytest.mark.parametrize("model", tuple(MODELS))
@pytest.mark.parametrize("name", DATASETS)
def test_suggestions_can_be_run_and_survive_url_and_json(name, model):
    experiment = suggested(name, model)
    assert experiment.model.name == model
    assert experiment.why_not() is None
    assert Experiment.from_query(experiment.to_query()) == experiment
    assert Experiment.from_json(experiment.to_json()) == experiment
    assert hash(experiment) == hash(Experiment.from_json(experiment.to_json()))


def test_data_set_parameters_travel_too():
    experiment = Experiment(dataset=DataChoice.of("synthetic", {"n_samples": 120, "d_noise": 5, "b": 8}))
    assert changed_of(experiment.dataset) == {"n_samples": 120, "d_noise": 5}  # b = 8 is the default
    assert experiment.to_query()["dataset_n_samples"] == "120"
    assert Experiment.from_query(experiment.to_query()) == experiment
    assert Run.prepare(experiment).problem.design.shape == (120, 85)


def test_own_parameters_of_every_choice_travel():
    experiment = Experiment(
        regularizer=TI(axis="rows"),
        loss=Huber(2.0),
        solver="pcd",
    )
    assert experiment.to_query() == {
        "regularizer_axis": "rows",
        "loss": "huber",
        "loss_delta": "2.0",
        "solver": "pcd",
    }
    assert Experiment.from_query(experiment.to_query()) == experiment
    assert Experiment.from_json(experiment.to_json()) == experiment
    problem = Run.prepare(experiment).problem
    assert (problem.loss, problem.penalty) == (Huber(2.0), TI(axis="rows"))
    line_search = Experiment(solver=PBCDLineSearch(rho=0.25, sigma=0.01), regularizer="cs")
    assert changed_of(line_search.solver) == {"rho": 0.25}
    with pytest.raises(ValueError, match="has no parameter 'axis'"):
        Experiment.from_dict({"regularizer": "l1", "regularizer_axis": "rows"})


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("rank", "many", "rank = 'many' must be a whole number"),
        ("lambda_p", "-1", "lambda_p = -1.0 is out of range"),
        ("regularizer", "tii", "Did you mean 'ti'"),
        ("fit_linear", "maybe", "fit_linear = 'maybe' is neither True nor False"),
    ],
)
def test_bad_links_get_a_sentence(name, text, words):
    assert Experiment.from_query({"seed": "7", "x": "1"}) == Experiment(seed=7)
    with pytest.raises(ValueError, match=words):
        Experiment.from_query({"seed": "7", name: text})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "property name"),
        ("[]", "object"),
        ('{"ranks": 3}', "Unknown setting"),
        ('{"rank": -3}', "rank = -3"),
    ],
)
def test_bad_json_gets_a_sentence(text, words):
    with pytest.raises(ValueError, match=words):
        Experiment.from_json(text)


class Unregistered(L1):
    """A penalty that no name brings back."""


def test_what_cannot_be_written_is_refused():
    with pytest.raises(ValueError, match=r"regularizer = Unregistered\(\) cannot be stored: its name 'l1'"):
        Experiment(regularizer=Unregistered())


def test_what_does_not_suit_the_model_is_replaced():
    cs = Experiment(model="qr", regularizer="cs", solver=PBCDLineSearch(rho=0.25))
    assert cs.applicable() == Experiment(model="qr", regularizer="l1", solver="auto")
    assert Experiment(solver="cd").applicable() == Experiment()
    fine = Experiment(model="qr", regularizer="l1", solver="incremental_pgd")
    assert fine.applicable() is fine


def test_costs_and_sizes_are_known_before_a_run(monkeypatch):
    qr = suggested("monks1", "qr")
    assert cost_note(suggested("monks1")) is None
    assert "136 pairs of its 17 features" in cost_note(qr)
    assert "up to 100" in cost_note(qr)
    assert "up to 100" not in cost_note(dataclasses.replace(qr, solver="incremental_pgd"))
    assert cost_note(dataclasses.replace(qr, regularizer="ti")) is None
    assert "136 pairs of rows" in cost_note(dataclasses.replace(qr, model="fm", regularizer="omega_star"))
    assert too_large(qr) is None
    monkeypatch.setattr("fmviz.engine.models.quadratic.available_bytes", lambda: 1e3)
    assert "17 features needs" in too_large(qr)
    assert too_large(suggested("monks1")) is None
    with pytest.raises(ValueError, match="17 features needs"):
        Run.prepare(qr)


def test_a_run_is_repeated_exactly_and_measured():
    experiment = Experiment(
        lambda_p=0.1, lambda_sparse=0.1, rank=8, validation=0.25, max_epochs=15, fit_linear=False
    )
    first = list(Run.prepare(experiment).snapshots())
    again = list(Run.prepare(experiment).snapshots())
    assert [s.objective for s in first] == [s.objective for s in again]
    assert set(first[-1].metrics) >= {
        "train_loss",
        "train_rmse",
        "validation_loss",
        "validation_rmse",
        "estimation_error",
        "support_f1",
        "support_recovered",
    }
    run = Run.prepare(experiment)
    assert run.problem.design.n_samples == 150
    assert run.validation[1].size == 50
    rmse = np.sqrt(2 * first[-1].metrics["train_loss"])
    assert first[-1].metrics["train_rmse"] == pytest.approx(rmse)


def test_planted_features_are_recovered():
    last = list(Run.prepare(suggested("planted_features")).snapshots())[-1]
    assert last.metrics["support_recovered"] == 1.0
    assert last.used_interactions == 190


def test_known_pairs_without_weights_are_measured():
    run = Run.prepare(dataclasses.replace(suggested("monks1"), max_epochs=3))
    last = list(run.snapshots())[-1]
    assert {"support_f1", "train_auc", "train_accuracy"} <= set(last.metrics)
    assert "estimation_error" not in last.metrics
    assert pairs_matrix(run.dataset).sum() == 6
