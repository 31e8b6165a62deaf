"""Figures of λ-paths and of the search for a number of interactions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fmviz.figures import pairs
from fmviz.figures import strength_path as figures
from fmviz.figures.palette import regularizer_color
from fmviz.metrics import OBJECTIVE, RMSE, USED_INTERACTIONS
from fmviz.stage.pictures import chart_of_figure

NAN = float("nan")
TABLE = pd.DataFrame(
    {
        "regularizer": ["l1"] * 3 + ["ti"] * 3,
        "label": ["ℓ₁"] * 3 + ["TI"] * 3,
        "lambda_sparse": [0.01, 0.1, 1.0] * 2,
        "used_interactions": [4950, 300, 0, 900, 360, 10],
        "objective": [1.0, 2.0, 3.0, 1.5, 2.5, 3.5],
        "rmse": [NAN, 2.0, 9.0, 1.0, 0.5, 4.0],
    }
)


def test_a_line_for_every_regularizer_with_what_a_click_needs():
    figure = figures.path(TABLE, USED_INTERACTIONS)
    first, second = figure.data
    assert (first.name, second.name) == ("ℓ₁", "TI")
    assert first.line.color == regularizer_color("l1")
    assert list(first.y) == [4950, 300, 0]
    assert [point[:2] for point in second.customdata] == [["ti", 0.01], ["ti", 0.1], ["ti", 1.0]]
    assert figure.layout.xaxis.type == "log"


def test_zero_has_a_place_on_a_logarithmic_axis_of_counts():
    against = figures.path(TABLE, RMSE, x="used_interactions")
    assert list(against.data[0].x) == [300, 0.5]
    assert against.layout.xaxis.title.text == "used interactions"


def test_few_interactions_need_no_logarithm():
    figure = figures.path(TABLE.assign(used_interactions=[6, 3, 0, 6, 5, 1]), RMSE, x="used_interactions")
    assert list(figure.data[0].x) == [3, 0]
    assert figure.layout.xaxis.type != "log"


def test_what_is_missing_is_left_out_and_the_chosen_fit_is_ringed():
    figure = figures.path(TABLE, RMSE, chosen=("ti", 0.1))
    assert list(figure.data[0].x) == [0.1, 1.0]
    ring = figure.data[-1]
    assert (ring.name, list(ring.x), list(ring.y)) == ("chosen", [0.1], [0.5])
    assert len(figures.path(TABLE, RMSE, chosen=("l1", 0.01)).data) == 2, "no value, no ring"


def test_the_range_of_a_logarithmic_axis_is_kept_in_a_saved_page():
    figure = figures.path(TABLE.iloc[:1], OBJECTIVE).update_xaxes(range=[-3.2, 3.2])
    chart = chart_of_figure("", figure)
    low, high = chart["ends"]
    assert low < 0.001 < 1000 < high
    (series,) = chart["rows"][0]["series"]
    assert (len(series["x"]), chart["xlog"], chart["x"]) == (1, True, "λ")


def test_true_pairs_are_in_colour_and_the_strongest_have_labels():
    W, truth = np.triu(np.arange(64.0).reshape(8, 8), 1), np.zeros((8, 8))
    truth[[0, 6], [1, 7]] = 1.0
    figure = pairs.weights([0.1, 1.0], [W, 0.5 * W], [*"abcdefgh"], "red", truth=truth, mark=0.1)
    others, true, *labelled = figure.data
    assert (others.name, true.name, true.line.color) == ("other pairs", "true pairs", "red")
    assert (len(others.x), set(true.text)) == (3 * 22, {"a × b"})
    assert [trace.name for trace in labelled] == ["g × h", "f × h", "f × g", "e × h", "e × g"]
    assert [trace.line.color == "red" for trace in labelled] == [True, *[False] * 4]
    assert [note.text for note in figure.layout.annotations] == [trace.name for trace in labelled]
    assert list(labelled[0].y) == [55.0, 27.5]


def test_frequencies_are_a_symmetric_matrix_and_a_strip_over_strengths():
    places = pd.MultiIndex.from_tuples([(0, 1), (1, 2)])
    table = pd.DataFrame([[0.5, 0.2], [1.0, 0.9]], places, [0.1, 1.0])
    (heat,) = pairs.frequency_matrix(table[0.1], ["a", "b", "c"]).data
    assert np.array_equal(heat.z, [[NAN, 0.5, 0], [0.5, NAN, 1], [0, 1, NAN]], equal_nan=True)
    strip = pairs.frequency_strip(table, ["a", "b", "c"], truth=np.eye(3)[[1, 0, 2]], mark=0.1)
    assert list(strip.layout.yaxis.ticktext) == ["b × c", "<b>a × b</b>"]
    assert (strip.data[0].z.tolist(), list(strip.data[0].x)) == ([[1.0, 0.9], [0.5, 0.2]], [-1.0, 0.0])
