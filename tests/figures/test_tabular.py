from __future__ import annotations

import io

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from fmviz.figures import tabular
from fmviz.figures.interactions import waterfall
from fmviz.figures.tabular import defused, literal, spoken


def test_curves_become_a_row_a_point():
    figure = go.Figure(
        [
            go.Scatter(name="TI", x=[0, 1, 2], y=[3.0, 0.1, np.nan], text=["a", "b", "c"]),
            go.Scatter(name="CS", x=[0, 1], y=[5.0, 4.0], error_y={"array": [0.5, 0.25]}),
        ]
    )
    table = tabular.table(figure)
    assert list(table) == ["trace", "x", "y", "text", "error_y"]
    assert table["trace"].tolist() == ["TI", "TI", "TI", "CS", "CS"]
    assert table["y"].tolist()[:2] == [3.0, 0.1]
    assert np.isnan(table["y"][2])
    assert table["error_y"].tolist()[3:] == [0.5, 0.25]
    assert pd.read_csv(io.StringIO(tabular.csv(figure)))["y"].tolist()[:2] == [3.0, 0.1]


def test_what_only_catches_the_pointer_and_what_is_hidden_is_left_out():
    figure = go.Figure(
        [
            go.Scatter(x=[1], y=[1], opacity=0),
            go.Scatter(x=[2], y=[2], visible=False),
            go.Scatter(x=[3], y=[3], visible="legendonly", name="kept"),
        ]
    )
    assert tabular.table(figure)["trace"].tolist() == ["kept"]
    assert tabular.csv(go.Figure()) == "trace\n"


def test_a_heatmap_is_a_row_a_cell():
    figure = go.Figure(go.Heatmap(z=[[1, 0], [0, 2], [3, 4]], x=["a", "b"], y=[10, 20, 30]))
    table = tabular.table(figure)
    assert table[["x", "y", "z"]].values.tolist() == [
        ["a", 10, 1],
        ["b", 10, 0],
        ["a", 20, 0],
        ["b", 20, 2],
        ["a", 30, 3],
        ["b", 30, 4],
    ]
    bare = tabular.table(go.Figure(go.Heatmap(z=np.eye(2))))
    assert bare[["x", "y"]].values.tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]


HOSTILE = "<b>=1+1</b> & <a href='javascript:alert(1)'>x</a>"


def test_plotly_finds_no_tags():
    assert "<" not in literal(HOSTILE)
    assert spoken(literal(HOSTILE)) == HOSTILE
    assert spoken(3) == 3
    (trace,) = waterfall(["bias", HOSTILE], [1.0, 2.0], 3.0, "sum", "y").data
    assert all("<" not in text for text in (*trace.y, *trace.hovertext))


def test_files_hold_the_words_themselves_but_no_formulas():
    figure = go.Figure(go.Bar(x=[literal("a<b"), literal("=cmd"), "-2"], y=[1.5, -2.0, 3.0]))
    assert tabular.csv(figure).splitlines()[1:] == ["bar,a<b,1.5", "bar,'=cmd,-2.0", "bar,-2,3.0"]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2+3|cmd", "'-2+3|cmd"),
        ("+x", "'+x"),
        ("\t=1", "'\t=1"),
        ("-2.5", "-2.5"),
        ("+1e-3", "+1e-3"),
        ("town=Ulm", "town=Ulm"),
        (-2.5, -2.5),
    ],
)
def test_cells_that_a_spreadsheet_would_execute(cell, shown):
    assert defused(cell) == shown
