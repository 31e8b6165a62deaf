"""The history of runs, and runs that the training page opens from the store."""

from __future__ import annotations

import pytest
from inline_executor import InlineExecutor
from ui.driving import figures, page, press, words

from fmviz.lab.background import tasks
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.experiment import Experiment
from fmviz.lab.store.stored_run import this_process
from fmviz.lab.store.table import (
    differing,
    title_of_run,
)
from fmviz.ui import runs as view
from fmviz.ui.escape import plain

SMALL = {"rank": 3, "max_epochs": 5, "tol": 0.0}


@pytest.fixture
def some(store) -> list[str]:
    """Three runs, the newest first: TI, CS, and CS on other data."""
    created = [
        Experiment(**SMALL, regularizer="cs", dataset="planted_features"),
        Experiment(**SMALL, regularizer="cs", validation=0.2),
        Experiment(**SMALL),
    ]
    return [tasks.manager().start(experiment).id for experiment in created][::-1]


@pytest.mark.faultless
def test_all_runs_are_listed(some):
    app = page("runs")
    (table,) = app.dataframe
    assert list(table.value["regularizer"]) == ["TI", "CS", "CS"]
    assert app.button(key="runs_delete").disabled


@pytest.mark.parametrize(
    ("query", "result"),
    [
        ({"penalty": "ti"}, 1),
        ({"data": "planted_features"}, 1),
        ({"penalty": "cs"}, 2),
        ({"find": "0.2"}, 1),
        ({"origin": "page"}, 3),
    ],
)
def test_filters_are_in_the_link(some, query, result):
    (table,) = page("runs", **query).dataframe
    assert len(table.value) == result


def test_filters_that_let_nothing_through_can_be_taken_off(some):
    app = page("runs", find="no such words")
    assert "No run matches the filters." in words(app)
    press(app, "runs_all")
    assert len(app.dataframe[0].value) == 3


def test_deleting_asks_first_and_is_final(some, store, monkeypatch):
    # AppTest cannot pick rows.
    monkeypatch.setattr(view, "_table", lambda result: [run for run in result if run.id in some[:2]])
    app = page("runs")
    assert all(f"**{plain(title_of_run(run))}**" in words(app) for run in store.get_many(some[:2]))
    press(app, "runs_delete")
    assert "2 runs deleted." in words(app)
    assert [run.id for run in store.runs()] == some[2:]
    app.run()
    assert "2 runs deleted." not in words(app)


def test_a_store_that_cannot_be_opened_is_said(tmp_path, monkeypatch):
    path = tmp_path / "broken.sqlite"
    path.write_text("no database " * 500)
    monkeypatch.setenv("FMVIZ_STORE", str(path))
    assert "cannot be opened" in words(page("runs"))


@pytest.mark.faultless
def test_a_link_shows_the_run_of_the_store(some, store):
    tasks._manager = TaskManager(InlineExecutor(), open_store=lambda: store)  # as after a new start
    run = store.get(some[0])
    app = page("train", **{**run.experiment.to_query(), "run": run.id})
    shown = figures(app)
    assert (shown["Epoch"], shown["Objective"]) == ("5", f"{run.last['objective']:.5g}")
    assert shown["Interactions"] == f"{run.last['used_interactions']:,}"
    assert store.count() == 3, "nothing was started again"


def test_a_link_to_a_run_that_was_cut_off_waits_to_go_on(store):
    job = tasks.manager().start(Experiment(**SMALL), steps=3)
    with store.database.write() as connection:
        host = this_process().split("/")[0]
        connection.execute("UPDATE runs SET owner = ?", (f"{host}/1/0",))
    tasks._manager = TaskManager(InlineExecutor(), open_store=lambda: store)
    app = page("train", **{**Experiment(**SMALL).to_query(), "run": job.id})
    assert "This run was interrupted and restored from its last save, at epoch 0." in words(app)
    press(app, "train_play")
    assert store.get(job.id).status == "epochs"
    assert [r["epoch"] for r in store.trace(job.id)] == list(range(6))


def test_tables_of_runs(some, store):
    runs = store.get_many(some)
    assert title_of_run(runs[0]) == "Planted interactions (eight groups) · TI · λ 1 · seed 0"
    store.rename(some[0], "mine")
    assert title_of_run(store.get(some[0])) == "mine"
    different = differing([[run] for run in runs]).set_index("what")
    assert list(different.loc["regularizer"]) == ["ti", "cs", "cs"]
    assert "rank" not in different.index
    assert "rank" in set(differing([[run] for run in runs], only=False)["what"])
