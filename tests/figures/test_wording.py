"""Words of other people in charts and in files."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

from fmviz.figures import tabular
from fmviz.figures.interactions import waterfall
from fmviz.figures.tabular import defused, literal, spoken

HOSTILE = "<b>=1+1</b> & <a href='javascript:alert(1)'>x</a>"


def test_plotly_finds_no_tags():
    assert "<" not in literal(HOSTILE)
    assert spoken(literal(HOSTILE)) == HOSTILE
    assert spoken(3) == 3
    figure = waterfall(["bias", HOSTILE], [1.0, 2.0], 3.0, "sum", "y")
    (trace,) = figure.data
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
