"""The page Compare."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest
from ui.driving import choose, decode, finish, numbers, page, words

from fmviz.lab.background import tasks
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.comparison import FOUND
from fmviz.lab.store import Growth
from fmviz.ui.compare import MOST

SMALL = {"rank": 3, "max_epochs": 20, "tol": 0.0, "lambda_sparse": 0.3, "validation": 0.2}


def matrices(app: AppTest) -> list[dict[str, Any]]:
    """Return the headers of the views of matrices on the page."""
    views = (element.proto for element in app.get("bidi_component"))
    return [decode(view.bytes)[0] for view in views if view.component_name.endswith(("matrix_view", "stage"))]


def test_links_to_too_many_runs_and_to_none(store, sentences):
    runs = [store.begin(Experiment(**SMALL, seed=seed)) for seed in range(MOST + 2)]
    app = page("compare", runs=",".join(runs))
    sentences(app, "compare", "too many runs")
    assert {str(MOST + 2), str(MOST)} <= numbers(app)
    app = page("compare", runs="gone,lost")
    sentences(app, "compare", "runs that are not here")


def test_failed_runs_do_not_hide_the_older_ones(store):
    for seed in range(2):
        tasks.manager().start(Experiment(**SMALL, seed=seed))
    for _ in range(8):
        store.grow(store.begin(Experiment(**SMALL)), Growth(status="failed", message="No data."))
    assert page("compare", view="runs").button(key="compare_newest").label == "Compare the newest 2"


def test_runs_of_two_seeds_and_another_method(store, sentences):
    experiments = [Experiment(**SMALL), Experiment(**SMALL, seed=1), Experiment(**SMALL, regularizer="cs")]
    runs = [tasks.manager().start(experiment).id for experiment in experiments]
    app = page("compare", view="runs")
    app.button(key="compare_newest").click().run()
    app = page("compare", runs=",".join([*runs, "gone"]))
    assert {"1", "4"} <= numbers(app)
    # Seeds are folded: two methods, and how far the seeds of one lie apart.
    table = app.dataframe[0].value.set_index("what")
    assert list(table.loc["Regularizer"]) == ["TI", "CS"]
    assert any(" ± " in value for value in table.loc["Objective"])
    assert {"Used interactions", "RMSE, validation"} <= set(table.index)
    assert "Rank" not in table.index
    assert not [what for what in table.index if re.search("[a-z]_[a-z]", what)]
    sentences(app, "compare", "several runs")
    app.selectbox(key="compare_curve").set_value("validation_rmse").run()


def test_runs_of_one_problem_are_drawn_above_its_lowest_objective(store):
    base = Experiment(**SMALL)
    runs = [tasks.manager().start(dataclasses.replace(base, solver=name)).id for name in ("pcd", "pbcd")]
    app = page("compare", runs=",".join(runs))
    assert "the lowest objective known for this problem: one of these runs" in words(app)
    drawn = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert [drawn["layout"][axis]["title"]["text"] for axis in ("yaxis", "yaxis2")] == [
        "F − F*",
        "Certificate",
    ]


def test_runs_on_other_data_are_shown(store, sentences):
    experiments = [Experiment(**SMALL), Experiment(**SMALL, dataset="planted_features")]
    runs = [tasks.manager().start(experiment).id for experiment in experiments]
    sentences(page("compare", runs=",".join(runs)), "compare", "different data")


@pytest.mark.faultless
def test_runs_whose_data_are_gone_are_compared_all_the_same(store, sentences, monkeypatch):
    runs = [tasks.manager().start(Experiment(**SMALL, seed=seed)).id for seed in range(2)]
    gone = Mock(side_effect=ValueError("The folder is not there."))
    monkeypatch.setattr("fmviz.ui.compare.load_dataset", gone)
    sentences(page("compare", runs=",".join(runs)), "compare", "data that are gone")


def test_matrices_stand_beside_the_errors_and_what_is_not_reached_is_said(store):
    # ℓ₁ jumps over the ten to fifteen interactions that twelve accept.
    app = page("compare", dataset="monks1", target="12", fighters="l1,ti", seeds="1")
    finish(app, "compare_duel")
    (sent,) = matrices(app)
    assert [panel["title"] for panel in sent["panels"]][1:] == ["ℓ₁", "TI"]
    table = app.dataframe[-1].value
    assert list(table["interactions"].between(10, 15)) == [False, True]
    assert f"ℓ₁: no model with 10 to 15 pairs; closest: {table['instead'][0]}." in words(app)


def test_a_visit_opens_with_the_shipped_result_of_every_seed(store):
    app = page("compare")
    table = app.dataframe[-1].value
    assert sorted(set(table["seed"])) == [0, 1, 2]
    assert len(matrices(app)) == 3
    assert "seeds=3" in next(block.value for block in app.code if "at_equal_sparsity" in block.value)
    # Other data have none.
    choose(app, shared_dataset="monks1")
    assert not app.dataframe


def test_objectives_of_different_strengths_share_no_axis(store):
    runs = [tasks.manager().start(Experiment(**SMALL | {"lambda_sparse": s})).id for s in (0.3, 0.4)]
    curves = page("compare", runs=",".join(runs)).selectbox(key="compare_curve").options
    assert not [label for label in curves if "Objective" in label]
    runs[1] = tasks.manager().start(Experiment(**SMALL, seed=1)).id
    assert "Objective" in page("compare", runs=",".join(runs)).selectbox(key="compare_curve").options


def test_without_a_truth_supports_are_compared_with_the_best_one(store):
    app = page("compare", dataset="diabetes", target="10", fighters="l1,ti", seeds="2")
    finish(app, "compare_duel")
    table = app.dataframe[-1].value
    assert list(table["seed"]) == [0, 1, 0, 1]
    said = words(app)
    reference = table["label"][table["F1"].eq(1.0).groupby(table["label"]).transform("all")].iloc[0]
    other = ({"ℓ₁", "TI"} - {reference}).pop()
    times = (table["F1"][table["label"] == other] >= FOUND).sum()
    who = f"{other} recovers the pairs of {reference}" if times else f"none recovers the pairs of {reference}"
    assert f"With about 10 pairs, {who} (F1 ≥ 0.95)" in said


def test_the_number_follows_the_data_until_somebody_chooses_it(store):
    app = page("compare")
    assert app.session_state["fmviz:compare:target"] == 360
    choose(app, shared_dataset="monks1")
    assert app.session_state["fmviz:compare:target"] == 3
    # A link without a number has the same default as a visit.
    assert page("compare", dataset="monks1", fighters="ti").number_input(key="compare_target").value == 3


def test_models_of_any_data_under_one_strength(store):
    app = page("compare", dataset="monks1", view="strength", fighters="ti", trained="1")
    app.run()
    (sent,) = matrices(app)
    # The truth is beside them.
    assert [panel["title"] for panel in sent["panels"]][1:] == ["TI"]
    assert len(sent["panels"][1]["frames"]) == len(app.select_slider(key="compare_along").options) > 4
    app.segmented_control(key="compare_watch").set_value("epochs").run()
    (sent,) = matrices(app)
    assert sent["player"]
    assert sent["panels"][1]["frames"][0]["key"] == "Epoch 0"
    assert all("threshold of TI" in note for note in sent["panels"][1]["notes"])
