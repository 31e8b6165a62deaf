"""The page Train: changed strengths, comparison of supports, zero entries."""

from __future__ import annotations

import numpy as np
from inline_executor import InlineExecutor
from streamlit.testing.v1 import AppTest
from ui.driving import address, choose, figures, finish, page, press, words

from fmviz.engine.schedule import Change
from fmviz.lab.background import tasks
from fmviz.lab.background.job import Job
from fmviz.lab.experiment import Experiment

SMALL = {
    "dataset": "balance_scale",
    "rank": "3",
    "lambda_p": "0.001",
    "lambda_sparse": "0.001",
    "init_scale": "0.3",
    "tol": "0.0",
    "max_epochs": "12",
}


def step(app: AppTest, times: int = 1) -> AppTest:
    return press(app, *["train_step"] * times)


def the_job() -> Job:
    return tasks.manager().jobs()[-1]


def test_a_strength_changed_in_a_run_is_marked_linked_and_repeated(store, sentences):
    app = choose(step(page("train", **SMALL), 4), train_now_lambda_sparse=0.02)
    assert the_job().experiment.changes == (Change(4, "lambda_sparse", 0.02),)
    assert address(app)["changes"] == "4:lambda_sparse:0.02"
    assert "after epoch 4: λ = 0.02" in words(app)
    assert "Settings changed" not in words(app)
    press(app, "train_play")
    seen, link = figures(app), address(app)
    assert seen["Epoch"] == "12"
    view = the_job().view()
    # As on a server that has never seen it.
    again = page("train", **{**link, "run": "elsewhere"})
    assert {k: v for k, v in figures(again).items() if k != "Solver time"} == {
        k: v for k, v in seen.items() if k != "Solver time"
    }
    assert "started again" in words(again)
    # And from the store of this one.
    tasks._manager = tasks.TaskManager(InlineExecutor(), open_store=lambda: store)
    opened = page("train", **link)
    assert figures(opened)["Objective"] == seen["Objective"]
    assert the_job().experiment == view.experiment
    press(opened, "train_forget")
    assert "changes" not in address(opened)
    sentences(opened, "train", "changes forgotten")


def test_a_strength_moved_after_the_end_goes_on_there(store):
    app = press(page("train", **SMALL), "train_play")
    job = the_job()
    choose(app, train_now_lambda_sparse=0.02)
    assert (the_job(), figures(app)["Epoch"], job.view().epoch) == (job, "24", 24)
    assert (address(app)["changes"], address(app)["max_epochs"]) == ("12:lambda_sparse:0.02", "24")
    # What another browser has started is not changed from here.
    job.browser = "another"
    choose(app.run(), train_lambda_sparse=0.05)
    assert "Settings changed since this run" in words(app)
    # The page knows what was added after a reload, too.
    for here in (page("train", **address(app)), app):
        finish(here, "train_forget")
        assert (address(here)["max_epochs"], job.view().epoch) == ("12", 24)


def test_a_link_with_changes_that_cannot_be_says_so(store):
    app = page("train", **SMALL, changes="4:rank:3")
    assert "name of a change" in words(app)
    assert "changes" not in address(app)


def test_a_cell_is_explained_by_its_rows_and_thresholds(store, sentences):
    app = page("train", dataset="planted_interactions", max_epochs="60", play="1", cell_i="0", cell_j="1")
    P = the_job().view().parameters.P
    choose(app, train_cell_j=int(np.flatnonzero((P[0] != 0) @ (P != 0).T)[-1]))
    assert "interact with weight" in words(app)
    live = (P != 0).any(axis=1)
    disjoint = [
        (i, j)
        for i in np.flatnonzero(live)
        for j in np.flatnonzero(live)
        if i < j and not ((P[i] != 0) & (P[j] != 0)).any()
    ]
    i, j = map(int, disjoint[0])
    app = page("train", **{**address(app), "cell_i": str(i), "cell_j": str(j)})
    assert "their rows are disjoint" in words(app)
    assert "threshold" in words(app)
    choose(app, train_cell_j=i)
    sentences(app, "train", "one feature twice")


def test_only_changes_of_the_run_itself_are_adopted(store):
    app = step(page("train", **SMALL), 2)
    job = the_job()
    job.change(lambda_p=0.5)
    app.run()
    assert address(app)["changes"] == "2:lambda_p:0.5"
    finish(app, "train_forget")
    assert "changes" not in address(app)
    press(app, "train_reset")
    assert the_job().experiment == Experiment(**{**vars(job.experiment), "changes": ()})


def test_rows_beyond_the_caps_are_in_the_histogram_and_listed_elsewhere(store):
    planted = {"n_samples": "60", "d_true": "4", "b": "2", "d_noise": "1", "gross": "0.1"}
    query = {f"dataset_{name}": value for name, value in planted.items()}
    robust = {
        "dataset": "synthetic",
        "model": "robust",
        "loss": "capped",
        "regularizer": "l2",
        "caps": "given",
    }
    app = page("train", **query, **robust, lambda_sparse="0", max_epochs="5", play="1").run()
    assert len(app.get("plotly_chart")) == 1
    assert "of 60 rows lie beyond ε₁ + ε₂" in words(app)
    assert not any("off by" in frame.value for frame in app.dataframe)
