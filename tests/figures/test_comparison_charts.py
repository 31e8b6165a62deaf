from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fmviz.figures import comparison as figures
from fmviz.figures import strength_path
from fmviz.figures.palette import regularizer_color
from fmviz.metrics import COLUMNS, OBJECTIVE
from fmviz.stage.pictures import chart_of_figure


def history(scale):
    epochs = np.arange(5)
    return pd.DataFrame({"epoch": epochs, "seconds": 0.1 * epochs, "objective": scale / (1.0 + epochs)})


def test_runs_are_laid_over_each_other_and_keep_their_colours():
    names = [f"run {i}" for i in range(10)]
    histories = [(name, "ti", history(i + 1.0)) for i, name in enumerate(names)]
    histories[1] = ("run 1", "ti", pd.DataFrame({"epoch": [0], "seconds": [0.0]}))
    figure = figures.overlay(histories, OBJECTIVE)
    assert [trace.name for trace in figure.data] == [n for n in names if n != "run 1"]
    assert figure.data[1].line.dash == "dot"
    assert {trace.line.color for trace in figure.data} == {regularizer_color("ti")}


@pytest.mark.parametrize(
    ("metric", "most"),
    [("validation_auc", 1.0), ("train_accuracy", 1.0), ("support_f1", 1.0), ("train_rmse", None)],
)
def test_axes_are_within_what_a_metric_can_be(metric, most):
    rows = {"epoch": [0, 1], "seconds": [0.0, 1.0], metric: [1.0, 1.0], "lambda_sparse": [0.1, 1.0]}
    table = pd.DataFrame({**rows, "regularizer": "ti", "label": "TI", "method": "TI"})
    column = COLUMNS[metric]
    drawn = [
        figures.overlay([("a", "ti", table)], column),
        strength_path.path(table.assign(used_interactions=[3, 4]), column),
    ]
    for figure in drawn:
        axis = figure.layout.yaxis
        assert (axis.type, axis.minallowed, axis.maxallowed) == ("linear", 0.0, most)
    if most is not None:
        assert chart_of_figure("", drawn[0])["rows"][0]["top"] == most


def test_errors_as_fitted_and_refitted():
    table = pd.DataFrame(
        {"regularizer": ["ti", "ti", "l1"], "label": ["TI", "TI", "ℓ₁"], "value": [3.0, 4.0, 5.0]}
    )
    table = table.assign(
        refitted=[1.0, 2.0, 5.0], interactions=[360, 361, 1_000], nearest=[False, False, True]
    ).assign(λ=[0.1, 0.2, 3.0], strongest=[0.5, 0.2, np.nan])
    lines, fitted, refitted, spans, *others = figures.equal_sparsity(table, COLUMNS["train_rmse"], 200).data
    ends = np.reshape(spans.x, (-1, 3))[:, :2]
    assert ends.tolist() == [[0.1, 0.5], [0.2, 0.2]]
    assert list(spans.marker.size) == [9, 0, 0] * 2, "the chosen λ is a dot"
    assert (list(fitted.x), list(refitted.x)) == ([3.0, 4.0], [1.0, 2.0])
    assert list(fitted.y) == list(refitted.y) == list(lines.y)[::3], "every seed has a line of its own"
    assert [others[1].marker.symbol, others[2].marker.symbol] == [("x-open",), ("x",)]


def test_seeds_of_one_method_have_one_colour_and_one_entry():
    history = pd.DataFrame({"epoch": [0, 1], "objective": [2.0, 1.0]})
    figure = figures.overlay([("a", "ti", history), ("a", "ti", history), ("b", "cs", history)], OBJECTIVE)
    assert [trace.showlegend for trace in figure.data] == [True, False, True]
    assert figure.data[0].line.color == figure.data[1].line.color != figure.data[2].line.color
