from __future__ import annotations

import numpy as np
import pandas as pd

from fmviz.figures import comparison as figures


def history(scale):
    epochs = np.arange(5)
    return pd.DataFrame({"epoch": epochs, "seconds": 0.1 * epochs, "objective": scale / (1.0 + epochs)})


def test_runs_are_laid_over_each_other_and_keep_their_colours():
    names = [f"run {i}" for i in range(10)]
    histories = [(name, history(i + 1.0)) for i, name in enumerate(names)]
    histories[1] = ("run 1", pd.DataFrame({"epoch": [0], "seconds": [0.0]}))
    figure = figures.overlay(histories, "objective", "Objective")
    assert [trace.name for trace in figure.data] == [n for n in names if n != "run 1"]
    assert figure.data[1].line.color == figures.run_style(2)[0]
    assert len({figures.run_style(i) for i in range(32)}) == 32
    assert figure.layout.xaxis.title.text == "epoch"


def test_the_front_is_filled():
    nan = float("nan")
    figure = figures.trade_off("abc", [10, 20, nan], [1.0, 0.5, 0.1], [True, False, False], "RMSE")
    line, first, second = figure.data
    assert list(line.x) == [10.0]
    assert first.marker.symbol == "circle"
    assert second.marker.symbol == "circle-open"
    assert figure.layout.xaxis.type == "linear"
    assert figures.trade_off("ab", [10, 1000], [1, 2], [True, True], "").layout.xaxis.type == "log"
    assert figures.trade_off("ab", [0, 1000], [1, 2], [True, True], "").layout.xaxis.type == "linear"


def test_parallel_axes_take_numbers_and_words():
    table = pd.DataFrame({"penalty": ["TI", "CS"], "λ": [0.001, 1.0], "RMSE": [1.0, 2.0]})
    (lines,) = figures.parallel(table, "RMSE").data
    penalty, strength, rmse = lines.dimensions
    assert list(penalty.ticktext) == ["CS", "TI"]
    assert list(penalty["values"]) == [1, 0]
    assert list(strength["values"]) == [-3.0, 0.0]
    assert list(rmse["values"]) == [1.0, 2.0]


def test_bars():
    (bars,) = figures.shares([5, 2]).data
    assert list(bars.y) == [5, 2]
    assert list(bars.x) == ["1 of 2", "2 of 2"]
    table = pd.DataFrame({"regularizer": ["ti", "l1"], "label": ["TI", "ℓ₁"], "value": [0.25, 0.5]})
    table = table.assign(interactions=[360, 1_000], nearest=[False, True])
    (bars,) = figures.equal_sparsity(table, "value", "RMSE").data
    assert list(bars.y) == [0.25, 0.5]
    assert list(bars.marker.pattern.shape) == ["", "/"]


def test_seeds_of_one_method_have_one_colour_and_one_entry():
    history = pd.DataFrame({"epoch": [0, 1], "objective": [2.0, 1.0]})
    figure = figures.overlay([("ti", history), ("ti", history), ("cs", history)], "objective", "Objective")
    assert [trace.showlegend for trace in figure.data] == [True, False, True]
    assert figure.data[0].line.color == figure.data[1].line.color != figure.data[2].line.color


def test_parallel_axes_write_large_numbers_out():
    (lines,) = figures.parallel(pd.DataFrame({"rank": [4, 100], "RMSE": [1.0, 2.0]}), "RMSE").data
    assert lines.dimensions[0]["ticktext"] == ("4", "8.9", "20", "45", "100")


def test_lines_of_parallel_axes_are_seen_on_light_and_dark_pages():
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    (lines,) = figures.parallel(pd.DataFrame({"rank": [4, 100], "RMSE": [1.0, 2.0]}), "RMSE").data
    for _, colour in lines.line.colorscale:
        assert light("#ffffff") / light(colour) >= 3
        assert light(colour) / light("#0e1117") >= 3
