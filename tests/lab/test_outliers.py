"""Wrong rows on purpose, caps that follow from the data, and the rows that look wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from inline_executor import InlineExecutor

from fmviz.lab.background.task import TaskState
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.catalog import DataChoice
from fmviz.lab.datasets.drawn import contaminated
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.interpretation.outliers import rows_table, suspicious_rows
from fmviz.lab.interpretation.threshold import under_loss
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.runs import found_caps
from fmviz.lab.runs.program import experiment_source
from fmviz.lab.search.sweep_plan import SweepPlan

SMALL = (
    ("n_samples", 150),
    ("d_true", 4),
    ("b", 2),
    ("d_noise", 1),
    ("gross", 0.1),
)
SOURCE = DataChoice.of("synthetic", dict(SMALL))
ROBUST = replace(suggested(SOURCE, "robust"), validation=0.2)


@pytest.mark.parametrize("task", ["regression", "binary", "class", "several"])
def test_as_many_rows_are_wrong_as_were_asked_for_and_the_others_are_what_they_were(task, rng):
    y = {
        "regression": rng.normal(size=200),
        "binary": rng.choice([-1.0, 1.0], 200),
        "class": rng.integers(0, 3, 200).astype(float),
        "several": rng.choice([-1.0, 1.0], (200, 3)),
    }[task]
    share = {"gross" if task == "regression" else "flipped": 0.1}
    wrong_y = contaminated(y, task, **share)
    different = wrong_y != y if y.ndim == 1 else (wrong_y != y).any(axis=1)
    assert different.sum() == 20
    more = contaminated(y, task, swapped=0.2, **share)
    also = more != y if y.ndim == 1 else (more != y).any(axis=1)
    assert (also | ~different).all()
    assert also.sum() <= 60
    if task == "regression":
        size = np.abs(wrong_y - y)[different] / y.std()
        assert 3.0 <= size.min() <= size.max() <= 8.0
        np.testing.assert_allclose(np.sort(more[~different]), np.sort(y[~different]))
    assert contaminated(y, task) is y


def test_validation_rows_keep_their_true_targets():
    run = Run.prepare(replace(ROBUST, caps="given"))
    assert run.dataset.wrong.sum() == 15
    truth = load_dataset("synthetic", **{k: v for k, v in SMALL if k != "gross"}).y
    assert np.isin(run.validation[1], truth).all()
    np.testing.assert_array_equal(run.dataset.true_y, truth)


def test_caps_from_the_data_travel_in_links_programs_and_records():
    assert ROBUST.finds_caps
    assert Experiment.from_query(ROBUST.to_query()) == ROBUST
    assert Experiment.from_json(ROBUST.to_json()) == ROBUST
    assert eval(experiment_source(ROBUST), {"Experiment": Experiment}) == ROBUST
    assert "caps" not in replace(ROBUST, caps="given").to_json()
    sets = [{"dataset": "diabetes"}, {"dataset": "monks1"}]
    plan = SweepPlan.from_dict({"dataset": sets, "base": {"model": "robust"}, "suggested": True})
    assert {cell.loss.name for cell in plan.cells} == {"capped", "capped_hinge"}
    assert all(cell.finds_caps for cell in plan.cells)


def test_a_job_that_is_stopped_while_caps_are_searched_says_so(monkeypatch):
    executor, loaded = InlineExecutor(hold=True), Run.loaded
    job = TaskManager(executor).start(replace(ROBUST, seed=1))
    monkeypatch.setattr(Run, "loaded", lambda experiment: (job.stop(), loaded(experiment))[1])
    executor.run()
    assert job.state is TaskState.STOPPED
    assert job.view().message == "Stopped on request."


def test_caps_that_a_record_tells_are_not_searched_again(monkeypatch):
    run = Run.prepare(ROBUST)
    record = {**found_caps.caps_record(run.problem), "epoch": 3}
    caps = found_caps.numbers(ROBUST)
    assert (caps.cap, caps.lambda_p) == (run.problem.loss.cap, run.problem.lambda_p)
    monkeypatch.setattr(found_caps, "_known", {})
    monkeypatch.setattr(found_caps, "_starts", {})
    monkeypatch.setattr(found_caps, "find", None)
    found_caps.remember(ROBUST, {"found_epsilon": np.inf, "found_cap": 1.0})
    found_caps.remember(ROBUST, record)
    assert found_caps.numbers(ROBUST) == caps
    again = Run.prepare(replace(ROBUST, max_epochs=7)).problem
    assert (again.loss, again.model, again.lambda_p) == (
        run.problem.loss,
        run.problem.model,
        run.problem.lambda_p,
    )


def test_strengths_go_along_with_another_loss():
    squared = Experiment(dataset="diabetes", lambda_sparse=20.0, lambda_p=10.0, lambda_w=0.0)
    capped = under_loss(squared, "capped")
    assert (capped.loss.name, capped.caps, capped.lambda_w) == ("capped", "auto", 0.0)
    assert 0.1 < capped.lambda_sparse < 1.0
    assert capped.lambda_sparse == pytest.approx(2 * capped.lambda_p, rel=0.3)
    back = under_loss(capped, "squared")
    assert (back.caps, back.lambda_sparse) == ("given", pytest.approx(20.0, rel=0.2))
    assert under_loss(squared, "huber").lambda_p == 10.0


def test_caps_are_refused_for_several_outputs():
    assert "single output" in str(replace(suggested("iris", "robust"), caps="auto").why_not())


def test_what_a_robust_run_sets_aside_is_wrong_and_rows_are_told_in_their_units():
    run = Run.prepare(ROBUST)
    assert run.problem.loss.epsilon < run.problem.loss.cap
    end = run.end()
    capped = suspicious_rows(ROBUST, end.parameters)
    assert capped.label == "Capped epsilon-insensitive"
    assert (capped.aside == capped.errors.wrong).mean() > 0.85
    table = rows_table(run.dataset, capped.errors, capped.listed[:3])
    np.testing.assert_allclose(table["target"], run.dataset.y[table["row"] - 1])
    np.testing.assert_allclose(table["off by"], table["prediction"] - table["target"])
    assert list(table.columns[-5:]) == list(run.dataset.feature_names)


def test_any_machine_is_asked_with_a_cap_whose_strengths_weigh_as_much():
    experiment = Experiment(
        dataset=SOURCE,
        rank=4,
        lambda_p=0.01,
        lambda_sparse=0.01,
        lambda_w=0.01,
        max_epochs=60,
        start="informed",
    )
    run = Run.prepare(experiment)
    end = run.end()
    capped = suspicious_rows(experiment, end.parameters)
    assert capped.label == "Capped epsilon-insensitive"
    assert capped.errors.wrong[capped.listed[:15]].mean() > 0.6


def test_flipped_labels_are_ranked_by_a_fit_to_the_rows_that_are_kept():
    errors = DataChoice.of("breast_cancer", {"flipped": 0.05, "errors_seed": 1})
    experiment = suggested(errors, "fm")
    suspicion = suspicious_rows(experiment, Run.prepare(experiment).end().parameters)
    assert suspicion.logistic
    assert "Rows are ranked by a logistic fit to the others" in suspicion.message
    assert 0 < suspicion.aside.sum() < 40
    assert suspicion.errors.wrong[suspicion.listed[:27]].mean() >= 0.8
