"""Changes of strengths during a run: in its experiment, store, links and programs."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from inline_executor import InlineExecutor
from programs import run_afresh

from fmviz.engine.schedule import Change
from fmviz.lab.background.task import TaskState
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.runs.changes import in_words
from fmviz.lab.runs.program import program
from fmviz.lab.store import recorder
from fmviz.lab.values import changes_from_text, changes_to_text

SHORT = Experiment(
    dataset="balance_scale", rank=3, lambda_p=1e-3, lambda_sparse=1e-3, max_epochs=40, tol=0.0, init_scale=0.3
)


def without_times(record):
    return json.dumps({name: value for name, value in record.items() if name != "seconds"})


def assert_repeated(view):
    """Compare a run with what its experiment gives."""
    expected = list(Run.prepare(view.experiment).snapshots())
    assert [without_times(r) for r in view.history] == [without_times(s.record()) for s in expected]
    assert np.array_equal(view.parameters.P, expected[-1].parameters.P)


def stepped(manager: TaskManager, experiment: Experiment = SHORT):
    """Return a paused job whose strengths were changed twice."""
    job = manager.start(experiment, steps=7)
    job.change(lambda_sparse=0.05)
    for _ in range(14):
        job.step()
    job.change(lambda_sparse=0.01)
    job.change(lambda_p=0.02, lambda_sparse=0.004)
    return job


CHANGES = (
    Change(7, "lambda_sparse", 0.05),
    Change(21, "lambda_sparse", 0.004),
    Change(21, "lambda_p", 0.02),
)


def test_changes_are_part_of_the_experiment_and_travel():
    experiment = dataclasses.replace(SHORT, changes=[[21, "lambda_p", 1], (7, "lambda_sparse", 0.1)])
    assert experiment.changes == (Change(7, "lambda_sparse", 0.1), Change(21, "lambda_p", 1.0))
    assert experiment.to_query()["changes"] == "7:lambda_sparse:0.1,21:lambda_p:1.0"
    assert Experiment.from_query(experiment.to_query()) == experiment
    assert Experiment.from_json(experiment.to_json()) == experiment
    assert experiment.digest != SHORT.digest
    assert "changes" not in SHORT.to_dict()
    assert experiment.strengths(6)["lambda_sparse"] == 1e-3
    assert experiment.strengths(7) == {"lambda_sparse": 0.1, "lambda_p": 1e-3, "lambda_w": 1e-4}
    # What changes nothing is no change.
    assert SHORT.changed(5, lambda_sparse=1e-3) == SHORT
    assert experiment.changed(7, lambda_sparse=1e-3).changes == (Change(21, "lambda_p", 1.0),)
    assert changes_from_text(changes_to_text(CHANGES)) == CHANGES
    assert in_words(CHANGES[1:]) == "λ = 0.004, λₚ = 0.02"
    assert in_words(CHANGES[2:], "qr") == "λ_tr = 0.02"


def test_changes_that_cannot_be_are_refused_in_words():
    for text in ("7", "a:lambda_p:1", "7:lambda_p:much", "7:lambda_p"):
        with pytest.raises(ValueError, match="not a change of a strength"):
            changes_from_text(text)
    with pytest.raises(ValueError, match="name of a change = 'rank' is not known"):
        Experiment.from_query({"changes": "7:rank:3"})
    convex = Experiment(model="convex_fm", lambda_sparse=0.0, regularizer="l2")
    assert dataclasses.replace(convex, changes=((3, "lambda_sparse", 1.0),)).why_not() is not None
    with pytest.raises(ValueError, match="convex"):
        convex.changed(3, lambda_sparse=1.0)


def test_a_run_changed_on_the_way_is_repeated_by_its_experiment(store):
    job = stepped(TaskManager(InlineExecutor(), open_store=lambda: store))
    assert job.strengths == {"lambda_sparse": 0.004, "lambda_p": 0.02, "lambda_w": 1e-4}
    # It is written before the next epoch, so that nothing is lost with the process.
    assert store.get(job.id).experiment.changes == CHANGES
    job.play()
    view = job.view()
    assert view.state is TaskState.FINISHED
    assert view.experiment == dataclasses.replace(SHORT, changes=CHANGES)
    assert_repeated(view)
    opened = TaskManager(InlineExecutor(), open_store=lambda: store).open(job.id).view()
    assert opened.experiment == view.experiment
    assert [without_times(r) for r in opened.history] == [without_times(r) for r in view.history]
    assert f"objective {view.last['objective']:.10g}" in run_afresh("-c", program(view.experiment))


def cut_off(store):
    """Make runs look like those of a process that has ended."""
    with store.database.write() as connection:
        connection.execute("UPDATE runs SET owner = ''")


def test_strengths_act_after_the_end_and_are_repeated(store):
    """From one server to the next, and in a process that is gone before it made an epoch more."""
    manager = TaskManager(InlineExecutor(), open_store=lambda: store)
    job = manager.start(dataclasses.replace(SHORT, tol=1e-3, max_epochs=300))
    first = job.view()
    assert first.converged
    job.change(lambda_sparse=0.02)
    second = job.view()
    assert second.converged
    assert second.experiment.changes == (Change(first.epoch, "lambda_sparse", 0.02),)
    assert second.experiment.max_epochs == first.epoch + 300
    assert second.history[: first.epoch + 1] == first.history
    opened = TaskManager(InlineExecutor(), open_store=lambda: store).open(job.id)
    opened.change(lambda_sparse=0.02)  # which it is
    assert (opened.state, opened.view().epoch) == (TaskState.FINISHED, second.epoch)
    opened._pool = InlineExecutor(hold=True)
    opened.change(lambda_sparse=0.001, lambda_p=0.01)
    assert store.get(job.id).status == "running"
    cut_off(store)
    last = TaskManager(InlineExecutor(), open_store=lambda: store).open(job.id)
    last.play()
    view = last.view()
    assert view.epoch > second.epoch
    assert [change.epoch for change in view.experiment.changes] == [first.epoch, *[second.epoch] * 2]
    assert_repeated(view)


def test_a_run_that_was_stopped_goes_on():
    job = TaskManager(InlineExecutor()).start(SHORT, steps=9)
    job.stop()
    assert (job.state, job.goes_on) == (TaskState.STOPPED, True)
    job.change(lambda_p=0.02)
    view = job.view()
    assert view.epoch == view.experiment.max_epochs == 49
    assert_repeated(view)


@pytest.mark.parametrize("lost_at", [12, 25, 33])
def test_an_interrupted_run_goes_on_with_its_changes(store, monkeypatch, lost_at):
    monkeypatch.setattr(recorder, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(recorder, "FLUSH_SECONDS", 0.0)
    experiment = dataclasses.replace(SHORT, changes=CHANGES[:1])
    job = TaskManager(InlineExecutor(), open_store=lambda: store).start(experiment, steps=21)
    if lost_at > 21:
        job.change(lambda_p=0.02, lambda_sparse=0.004)
        for _ in range(lost_at - 21):
            job.step()
    expected = list(Run.prepare(job.experiment).snapshots())
    cut_off(store)
    other = TaskManager(InlineExecutor(), open_store=lambda: store).open(job.id)
    other.play()
    view = other.view()
    assert view.state is TaskState.FINISHED
    assert [without_times(r) for r in view.history] == [without_times(s.record()) for s in expected]
    assert np.array_equal(view.parameters.P, expected[-1].parameters.P)


def test_a_change_while_an_epoch_is_made_takes_effect_after_it():
    executor = InlineExecutor(hold=True)
    manager = TaskManager(executor)
    job = manager.start(SHORT)
    job.change(lambda_sparse=0.5)
    assert job.strengths["lambda_sparse"] == 0.5
    assert job.experiment == SHORT
    executor.run()
    assert job.experiment.changes == (Change(0, "lambda_sparse", 0.5),)
    with pytest.raises(ValueError, match="lambda_sparse"):
        manager.start(SHORT, steps=1).change(lambda_sparse=-1.0)
