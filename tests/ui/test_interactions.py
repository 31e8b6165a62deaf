"""The page Interactions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from inline_executor import InlineExecutor
from ui.driving import choose, metrics, page, press, words, written

from fmviz.lab.background import tasks
from fmviz.lab.catalog import DataChoice
from fmviz.lab.experiment import Experiment
from fmviz.lab.store import Growth
from fmviz.report import html, of_stored
from fmviz.ui.interactions import opened, pairs

pytestmark = pytest.mark.faultless

SMALL = {"rank": 4, "max_epochs": 15, "tol": 0.0, "lambda_p": 1e-3, "lambda_sparse": 1e-3}
MONKS = {**SMALL, "dataset": "monks1", "loss": "logistic", "validation": 0.2}


def trained(**settings) -> str:
    """Train a model and return its run."""
    return tasks.manager().start(Experiment.from_dict({**SMALL, **settings})).id


def test_without_a_run_there_is_a_link_to_an_example(store):
    assert "No run chosen" in words(page("interactions"))
    assert "No run chosen" not in words(page("interactions", hide="run"))


def test_an_unknown_run_is_said(store, sentences):
    trained()
    sentences(page("interactions", run="gone"), "interactions", "a run that is not here")


def test_pairs_are_searched_sorted_and_told(store, sentences):
    app = page("interactions", run=trained(**MONKS), view="pairs")
    sentences(app, "interactions", "pairs")
    table = app.dataframe[0].value
    assert table["weight"].abs().is_monotonic_decreasing
    assert (table["rows_with_both"] > 0).all()
    assert table["sentence"].str.contains("odds ×").all()
    choose(app, interactions_find="head_shape; body_shape")
    assert len(app.dataframe[0].value) <= 9
    choose(app, interactions_find="no such word")
    sentences(app, "interactions", "nothing fits the search")


def test_columns_are_read_before_features(store, sentences):
    run = trained(**MONKS)
    app = page("interactions", run=run)
    sentences(app, "interactions", "columns")
    table = next(frame.value for frame in app.dataframe if "sentence" in frame.value)
    assert table["size"].is_monotonic_decreasing
    assert len(table) == 6 + 15
    assert "body_shape" in [head.value for head in page("interactions", run=run, pair="1").subheader]
    chosen = page("interactions", run=run, pair="0,4")
    assert "head_shape × jacket_color" in [head.value for head in chosen.subheader]
    press(chosen, "interactions_to_pairs")
    assert chosen.dataframe[0].value["feature_i"].str.startswith("head_shape").all()
    assert "the typical size of a pair of columns" in words(page("interactions", run=run, view="matrix"))
    report = html(
        replace(of_stored(store.get(run), store), findings=[opened.latest_findings(opened_run(store, run))])
    )
    assert "Pairs of columns" in report
    assert table["sentence"][0] in report


def opened_run(store, run):
    return opened.opened(run, store.get(run).updated, str(store.path), store)


def test_columns_that_take_long_are_waited_for_and_stopped(store):
    run = trained(**MONKS)
    tasks._manager = tasks.TaskManager(InlineExecutor(hold=True))
    app = press(
        page("interactions", run=run), "interactions_columns_best_stop", "interactions_columns_best_go_on"
    )
    assert "interactions_columns_best_stop" in {button.key for button in app.button}


def test_the_matrix_is_that_of_the_strongest_features(store, sentences, monkeypatch):
    app = page("interactions", run=trained(), view="matrix", window="0-90-0-90", compact="1")
    sentences(app, "interactions", "the matrix")
    monkeypatch.setattr(pairs, "MOST_FEATURES", 5)
    assert "The 5 strongest of " in words(page("interactions", run=trained(seed=1), view="matrix"))


def test_the_rows_that_look_wrong_are_listed(store, sentences):
    wrong = {"n_samples": 150, "d_true": 4, "b": 2, "d_noise": 1, "gross": 0.1}
    run = trained(dataset=DataChoice.of("synthetic", wrong))
    app = page("interactions", run=run, view="suspects", by="huber")
    sentences(app, "interactions", "wrong rows")
    assert len(app.dataframe[0].value) >= 10
    assert app.dataframe[0].value["wrong in truth"].any()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"dataset": "flights", "loss": "logistic", "validation": 0.25, "max_epochs": 2},
        {"dataset": "diabetes"},
        {"dataset": "breast_cancer", "loss": "squared_hinge"},
        {"model": "hofm", "regularizer": "omega_ti", "dataset": "planted_triples", "init_scale": 0.3},
        {"model": "all_subsets", "regularizer": "omega_ti", "dataset": "monks1", "max_epochs": 4},
        {"model": "expansion", "regularizer": "l2", "lambda_sparse": 0.0, "dataset": "diabetes"},
        {"model": "lifted", "regularizer": "l2", "model_degree": 3, "max_epochs": 4},
        {"model": "qr", "regularizer": "l1", "lambda_sparse": 1.0, "lambda_p": 0.0, "max_epochs": 3},
        {"model": "convex_fm", "regularizer": "l2", "lambda_sparse": 0.0, "max_epochs": 4, "lambda_p": 5.0},
    ],
    ids=lambda settings: "-".join(str(v) for v in settings.values())[:40] or "fm",
)
def test_every_model_and_data_set_is_read_in_every_way(store, settings):
    run = trained(**settings)
    for view in ("attributes", "pairs", "matrix", "row"):
        app = page("interactions", run=run, view=view)
        assert not app.warning
    assert app.get("plotly_chart")


def test_what_if_changes_a_whole_attribute_and_the_link_holds_it(store, sentences):
    run = trained(**MONKS)
    app = page("interactions", run=run, view="row", row="3", part="validation")
    before = metrics(app)
    box = app.selectbox(key="interactions_value_0")
    other = next(value for value in (0, 1, 2) if value != box.value)
    box.set_value(other).run()
    assert written(app)["change"] == f"0={float(other)}"
    after = metrics(app)
    assert after["Probability of “yes”"] != before["Probability of “yes”"]
    linked = page("interactions", **written(app))
    assert metrics(linked) == after
    press(linked, "interactions_unchange")
    assert metrics(linked) == before
    broken = page("interactions", run=run, view="row", change="0=9,77=1,x")
    sentences(broken, "interactions", "a change that cannot be")


def test_numbers_are_changed_in_their_own_units(store):
    app = page("interactions", run=trained(dataset="diabetes"), view="row")
    age = app.number_input(key="interactions_value_0")
    assert age.value == pytest.approx(59.0)
    age.set_value(30.0).run()
    assert written(app)["change"] == "0=30.0"
    assert np.isfinite(float(metrics(app)["Prediction"].replace(",", "")))
    choose(app, interactions_row=7)
    assert "change" not in written(app), "another row has its own values"


@pytest.mark.faultless(False)
def test_a_run_that_cannot_be_read_says_why(store, sentences):
    run = trained()
    parameters = store.parameters(run)
    parameters.P[0, 0] = np.nan
    store.grow(run, Growth(parameters=parameters, status="diverged", message="It diverged."))
    app = page("interactions", run=run)
    sentences(app, "interactions", "a run that diverged")
    press(app, "interactions_other")
    assert "No run chosen" in words(app)


def test_a_link_hides_and_locks(store):
    run = trained(**MONKS)
    app = page("interactions", run=run, view="row", lock="change,row", hide="view")
    assert app.selectbox(key="interactions_value_0").disabled
    assert app.number_input(key="interactions_row").disabled
    assert not any(control.key == "interactions_view" for control in app.segmented_control)
    hidden = page("interactions", run=run, view="row", hide="change")
    assert not any(box.label == "head_shape" for box in hidden.selectbox)
