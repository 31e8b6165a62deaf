"""The page Train, driven with AppTest."""

from __future__ import annotations

import dataclasses
import json
import re
from unittest.mock import Mock

import numpy as np
import pytest
from inline_executor import InlineExecutor
from streamlit.testing.v1 import AppTest
from ui.driving import address, choose, figures, numbers, press, stage, values, words

from fmviz.engine.interactions.weights import pairs_of
from fmviz.engine.losses import LOSSES
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.lab.background import tasks
from fmviz.lab.background.task import TaskState
from fmviz.lab.background.tasks import ServerLimits, TaskManager
from fmviz.lab.datasets import DATASETS
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.runner import Run
from fmviz.typography import typeset
from fmviz.ui.escape import plain
from fmviz.ui.train.matrices import sets_table

SMALL = {"dataset": "balance_scale", "rank": "3", "lambda_p": "0.001", "lambda_sparse": "0.001"}


def informed(*chosen: str) -> Experiment:
    """Return what the page sets at first: what is suggested, with a start that does not collapse."""
    return dataclasses.replace(suggested(*chosen), start="informed")


def enabled(app: AppTest) -> set[str]:
    names = ("play", "pause", "step", "stop", "reset", "reseed")
    return {name for name in names if not app.button(key=f"train_{name}").disabled}


# ------------------------------------------------------------------------------------------------ controls


def test_the_empty_page_shows_the_truth_and_a_way_to_begin(open_train):
    app = open_train(dataset="balance_scale")
    assert enabled(app) == {"play", "step", "reseed"}
    # The truth is there before anything is learned.
    learned, truth = stage(app)["panels"]
    assert (learned["frames"][0]["notice"], truth["frames"][0]["counts"]) == ("Press Play", [4, 2])


def test_play_trains_to_the_end_and_shows_what_came_out(open_train, manager):
    app = press(open_train(**SMALL), "train_play")
    (job,) = manager.jobs()
    last = job.view().last
    assert job.state is TaskState.FINISHED
    shown = figures(app)
    assert (shown["Epoch"], shown["Objective"]) == (f"{last['epoch']:,}", f"{last['objective']:.5g}")
    assert shown["Interactions"] == f"{last['used_interactions']:,}"
    assert enabled(app) == {"play", "reset", "reseed"}
    assert address(app)["run"] == job.id
    assert job.view().message in words(app)


def test_groups_of_a_link_are_shown_and_stay(open_train):
    app = open_train(
        dataset="monks1", level="expert", regularizer="group", regularizer_groups="[[0,1,2],[3]]"
    )
    (field,) = [item for item in app.text_input if item.label.startswith("Groups")]
    assert (field.value, field.disabled) == ("[[0,1,2],[3]]", True)
    assert address(app)["regularizer_groups"] == field.value


def test_rows_are_held_out_by_default_whatever_the_query(open_train):
    app = open_train()
    assert app.session_state["fmviz:train:validation"] == 0.1
    (chart,) = (c for c in stage(app)["stage"]["charts"] if c["title"] == "RMSE")
    assert [series["name"] for series in chart["rows"][0]["series"]] == ["training", "validation"]
    assert open_train(dataset="monks1").session_state["fmviz:train:validation"] == 0.1
    # A link with settings keeps them.
    assert open_train(lambda_sparse="0.3").session_state["fmviz:train:validation"] == 0.0


def test_another_solver_trains_the_same_problem_and_is_drawn_beside(open_train, store, sentences):
    app = press(open_train(**SMALL), "train_play")
    (job,) = tasks.manager().jobs()
    assert f"this run at epoch {job.view().epoch}" in words(app)
    assert not app.get("plotly_chart")
    press(app, "train_rival").run()
    rival = tasks.manager().jobs()[-1].experiment
    assert rival == dataclasses.replace(job.experiment, solver=rival.solver)
    (chart,) = app.get("plotly_chart")
    drawn = json.loads(chart.proto.spec)["data"]
    assert [trace["yaxis"] for trace in drawn] == ["y", "y", "y2", "y2"]
    assert drawn[0]["name"] == "PCD, this run"
    assert drawn[1]["name"].startswith(rival.solver.label)
    assert "Convergence, log scale" in [c["title"] for c in stage(app)["stage"]["charts"]]
    sentences(app, "train", "another solver")


def test_step_advances_one_epoch(open_train, sentences):
    app = press(open_train(**SMALL), "train_step")
    assert figures(app)["Epoch"] == "1"
    assert enabled(app) == {"play", "step", "stop", "reset", "reseed"}
    assert figures(press(app, "train_step"))["Epoch"] == "2"
    assert "2" in numbers(app)
    sentences(app, "train", "paused")
    press(app, "train_play")
    assert int(figures(app)["Epoch"]) > 2


def test_stop_ends_a_paused_run_and_reset_goes_to_the_start(open_train, sentences):
    app = press(open_train(**SMALL), "train_step", "train_stop")
    sentences(app, "train", "stopped")
    assert enabled(app) == {"play", "reset", "reseed"}
    start = figures(press(app, "train_reset"))
    assert start["Epoch"] == "0"
    assert enabled(app) == {"play", "step", "stop", "reset", "reseed"}
    assert figures(press(app, "train_step", "train_reset"))["Objective"] == start["Objective"]


def test_reseed_takes_the_next_seed_and_reset_does_not(open_train):
    app = press(open_train(**SMALL, seed="4"), "train_step")
    first = figures(press(app, "train_reset"))["Objective"]
    assert address(app)["seed"] == "4"
    other = figures(press(app, "train_reseed"))
    assert address(app)["seed"] == "5"
    assert other["Epoch"] == "0"
    assert other["Objective"] != first


def test_a_running_job_can_be_paused_and_stopped(open_train, sentences):
    executor = InlineExecutor(hold=True)
    tasks._manager = TaskManager(executor)
    app = press(open_train(**SMALL, max_epochs="100000", tol="0.0"), "train_play")
    assert enabled(app) == {"pause", "stop", "reset", "reseed"}
    sentences(app, "train", "waiting")
    executor.run(2)  # The first loads the data for the page before there is a run.
    app.run()
    assert "100,000" in words(app)
    press(app, "train_pause")
    assert enabled(app) == {"play", "step", "stop", "reset", "reseed"}
    press(app, "train_play", "train_stop")
    executor.run()
    app.run()
    assert enabled(app) == {"play", "reset", "reseed"}
    assert "Stopped on request" in words(app)


def test_a_full_server_is_a_sentence(open_train, sentences):
    tasks._manager = TaskManager(InlineExecutor(hold=True), limits=ServerLimits(active=0, waiting=0))
    app = press(open_train(**SMALL), "train_play")
    sentences(app, "train", "a full server")
    assert "run" not in address(app)


# ------------------------------------------------------------------------------------------------ settings


def test_changed_settings_are_said_and_taken_over_by_play(open_train, manager, sentences):
    app = choose(press(open_train(**SMALL), "train_play"), train_rank=2)
    sentences(app, "train", "another rank")
    press(app, "train_play")
    assert "Settings changed" not in words(app)
    assert manager.jobs()[-1].experiment.rank == 2


def test_another_data_set_brings_its_settings(open_train):
    app = choose(open_train(**SMALL), shared_dataset="breast_cancer")
    wanted = informed("breast_cancer")
    assert values(app, "train_regularizer", "train_rank") == (wanted.regularizer.name, wanted.rank)


@pytest.mark.sample(5)
@pytest.mark.parametrize("dataset", [name for name, spec in DATASETS.items() if spec.unavailable() is None])
def test_a_link_with_a_data_set_alone_takes_its_suggestion(open_train, dataset):
    app = open_train(dataset=dataset)
    wanted = suggested(dataset)
    assert values(app, "train_regularizer", "train_rank", "train_lambda_sparse") == (
        wanted.regularizer.name,
        wanted.rank,
        wanted.lambda_sparse,
    )
    assert enabled(app) == {"play", "step", "reseed"}


@pytest.mark.parametrize(
    ("query", "says", "way_out", "key", "value"),
    [
        ({"solver": "cd", "play": "1"}, "CD takes plain gradient steps", "fix", "train_solver", "auto"),
        ({"dataset": "movielens_100k"}, "FMVIZ_DATA", "other_data", "shared_dataset", "planted_interactions"),
        (
            {"model": "qr", "regularizer": "ti", "dataset": "balance_scale"},
            "function of factors P",
            *("fix", "train_regularizer", "l1"),
        ),
        (
            {"model": "qr"},
            "100 features needs 16 matrices of 100 × 100, 1.28 MB, but only 1 MB are free",
            *("fix", "train_model", "fm"),
        ),
    ],
)
def test_what_cannot_be_trained_is_explained_and_repaired(
    open_train, monkeypatch, query, says, way_out, key, value
):
    monkeypatch.delenv("FMVIZ_DATA", raising=False)
    monkeypatch.setattr("fmviz.engine.models.quadratic.available_bytes", lambda: 1e6)
    app = open_train(**query)
    assert says in words(app)
    assert enabled(app) == set()
    assert not figures(app)
    press(app, f"train_{way_out}")
    assert values(app, key) == (value,)
    assert "play" in enabled(app)


def test_what_is_not_available_is_listed_with_its_reason(open_train):
    app = open_train()
    assert "CD" not in app.selectbox(key="train_solver").options
    assert any(box.label.startswith("Not available here: CD") for box in app.expander)
    losses = app.selectbox(key="train_loss").options
    assert losses[:3] == ["Squared error", "Huber", "Quantile Huber"]
    assert "Logistic" not in losses
    app = open_train(regularizer="l2", dataset="monks1")
    assert "CD" in app.selectbox(key="train_solver").options
    assert len(app.selectbox(key="train_loss").options) == sum(not loss.log_link for loss in LOSSES.values())


def test_a_loss_that_does_not_fit_the_data_is_explained(open_train, sentences):
    app = open_train(dataset="diabetes", loss="logistic")
    sentences(app, "train", "a loss that does not fit")
    press(app, "train_fix")
    assert app.selectbox(key="train_loss").value == "squared"


def test_parameters_of_the_data_set_are_controls_and_in_the_link(open_train, manager):
    app = open_train(
        dataset="synthetic", dataset_n_samples="50", dataset_d_true="12", dataset_b="3", max_epochs="5"
    )
    assert app.number_input(key="train_dataset_n_samples").value == 50
    choose(app, train_dataset_d_noise=6)
    assert address(app)["dataset_d_noise"] == "6"
    press(app, "train_play")
    (job,) = manager.jobs()
    assert job.view().dataset.X.shape == (50, 18)
    assert Experiment.from_query({k: v for k, v in address(app).items() if k != "run"}) == job.experiment


def test_data_that_cannot_be_made_is_a_sentence(open_train):
    app = press(
        open_train(dataset="synthetic", dataset_d_true="10", dataset_b="4", max_epochs="5"), "train_play"
    )
    assert "not divisible" in words(app)
    assert "play" in enabled(app)
    assert "Traceback" not in words(app)


def test_an_unexpected_error_is_a_sentence_with_folded_details(open_train, monkeypatch):
    app = open_train(**SMALL)
    monkeypatch.setattr(Run, "loaded", Mock(side_effect=KeyError("oops")))
    press(app, "train_play")
    assert "Unexpected KeyError" in words(app)
    assert any("Traceback" in code.value for code in app.code)


# --------------------------------------------------------------------------------------------------- links


def test_a_link_with_play_starts_once(open_train, manager):
    app = open_train(**SMALL, play="1")
    assert "Epoch" in figures(app)
    assert "play" not in address(app)
    app.run()
    assert len(manager.jobs()) == 1


def test_a_link_of_a_known_run_shows_it_and_starts_nothing(open_train, manager):
    first = press(open_train(**SMALL), "train_step")
    # A link that names no more than the run brings its settings, too.
    for link in (address(first), {"run": address(first)["run"]}):
        again = open_train(**link)
        assert (figures(again), address(again)) == (figures(first), address(first))
    assert len(manager.jobs()) == 1


def test_somebody_elses_run_is_watched_and_not_stopped(open_train, manager):
    theirs = manager.start(Experiment(dataset="balance_scale", rank=3), steps=1, browser="theirs")
    app = open_train(**theirs.experiment.to_query(), run=theirs.id)
    assert enabled(app) == {"reset", "reseed"}
    press(app, "train_reset")
    mine = next(job for job in manager.jobs() if job is not theirs)
    assert not theirs.state.ended
    assert not app.button(key="train_play").disabled
    press(app, "train_stop")
    assert mine.state.ended


def test_strong_pairs_are_named_and_compared_with_the_truth():
    dataset = Run.prepare(suggested("monks1")).dataset
    P = np.zeros((17, 2))
    (i, j), *_ = dataset.true_pairs
    P[i, 0], P[j, 0], P[-1, 0] = 2.0, -1.0, 0.1
    table = sets_table(*pairs_of(get_model("fm"), Parameters(P, np.zeros(17), 0.0)).ranked(10)[:2], dataset)
    as_weights = sets_table(
        *pairs_of(get_model("qr"), Parameters.of_weights(P @ P.T)).ranked(10)[:2], dataset
    )
    assert as_weights.equals(table)
    assert table["Weight"].tolist() == pytest.approx([-2.0, 0.2, -0.1])
    assert table["In truth"].tolist() == [True, False, False]
    assert re.search("head_shape", table["Feature"][0])


# ------------------------------------------------------------------------------------- quadratic regression

QR = {
    "dataset": "balance_scale",
    "model": "qr",
    "regularizer": "l1",
    "lambda_p": "0.001",
    "lambda_sparse": "0.01",
    "tol": "0.0",
}


def test_quadratic_regression_is_trained_and_shown(open_train, manager):
    app = press(open_train(**QR, max_epochs="23"), "train_play")
    (job,) = manager.jobs()
    view = job.view()
    assert job.state is TaskState.FINISHED
    assert view.parameters.W.shape == (4, 4)
    shown = figures(app)
    assert "Certificate" not in shown
    assert shown["Duality gap"] == typeset(view.last["certificate"], ".1e")
    assert shown["Interactions"] == f"{view.last['used_interactions']:,}"
    assert stage(app)["panels"][0]["gramLabel"] == "W"
    (table,) = app.dataframe
    assert len(table.value) == view.last["used_interactions"]
    assert figures(press(app, "train_reset"))


def test_the_model_decides_which_penalties_and_solvers_there_are(open_train, manager):
    app = open_train(dataset="monks1")
    assert app.selectbox(key="train_regularizer").value == "ti"
    choose(app, train_model="qr")
    assert app.selectbox(key="train_regularizer").options == ["ℓ₁"]
    assert app.selectbox(key="train_solver").options == ["Auto: Exact PGD", "Exact PGD", "Incremental PGD"]
    assert not [item for item in app.number_input if item.key == "train_rank"]
    (reason,) = [item.value for item in app.caption if "function of factors P" in item.value]
    refused = ", ".join(plain(penalty.label) for name, penalty in PENALTIES.items() if name != "l1")
    assert reason.startswith(f"**{refused}**: ")
    assert sum("has no factors" in item.value for item in app.caption) == 1
    assert {"136", "17"} <= numbers(app)
    assert address(app)["model"] == "qr"
    press(app, "train_play")
    (job,) = manager.jobs()
    expected = suggested("monks1", "qr")
    assert job.experiment == dataclasses.replace(expected, start="informed", validation=0.1)
    assert job.view().last["support_f1"] == 1.0
    choose(app, train_model="fm")
    assert values(app, "train_regularizer", "train_max_epochs") == ("ti", suggested("monks1").max_epochs)
    assert "Settings changed" in words(app)


def test_a_link_with_the_model_alone_takes_what_suits_it(open_train):
    app = open_train(model="qr", dataset="diabetes")
    assert values(app, "train_model", "train_regularizer", "train_max_epochs") == ("qr", "l1", 2_000)
    assert "play" in enabled(app)


def test_what_costs_much_says_so_before_it_starts(open_train):
    assert "O(d³)" in words(open_train(model="qr"))
    assert "4,950 pairs of rows of P" in words(open_train(regularizer="omega_star"))
    assert "d²k" not in words(open_train())


def stale_label_app():
    import streamlit as st

    from fmviz.engine.settings import ParamSpec
    from fmviz.ui.settings.state import Settings

    settings = Settings("train", (ParamSpec("solver", "choice", "auto", choices=("auto", "cd")),))
    bound = settings.bind("solver")
    for brought in ("Auto: CD", "cd", "Auto: PCD"):
        st.session_state[bound["key"]] = brought
        bound["on_change"]()
        st.write(settings["solver"])


def test_words_of_an_option_that_have_changed_are_no_choice():
    at = AppTest.from_function(stale_label_app).run()
    assert [line.value for line in at.markdown] == ["auto", "cd", "cd"]
