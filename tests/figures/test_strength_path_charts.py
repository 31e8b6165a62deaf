"""Figures of λ-paths and of the search for a number of interactions."""

from __future__ import annotations

import pandas as pd

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
    figure = figures.path(TABLE, RMSE, chosen=("ti", 0.1), ends=(0.01, 1.0))
    assert list(figure.data[0].x) == [0.1, 1.0]
    ring = figure.data[-1]
    assert (ring.name, list(ring.x), list(ring.y)) == ("chosen", [0.1], [0.5])
    low, high = figure.layout.xaxis.range
    assert low < -2 < 0 < high
    assert len(figures.path(TABLE, RMSE, chosen=("l1", 0.01)).data) == 2, "no value, no ring"


def test_a_growing_path_is_drawn_over_its_whole_range():
    chart = chart_of_figure("", figures.path(TABLE.iloc[:1], OBJECTIVE, ends=(0.001, 1000.0)))
    low, high = chart["ends"]
    assert low < 0.001 < 1000 < high
    (series,) = chart["rows"][0]["series"]
    assert (len(series["x"]), chart["xlog"], chart["x"]) == (1, True, "λ")
