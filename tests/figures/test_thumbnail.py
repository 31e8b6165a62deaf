"""Thumbnails of Plotly figures as SVG."""

from __future__ import annotations

import re

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tools import thumbnail


def test_the_first_panel_is_drawn_within_its_frame():
    figure = make_subplots(1, 2)
    line = {"color": "#112233"}
    figure.add_scatter(x=[1, 10, 100], y=[0, -5, 5], mode="lines", line=line, row=1, col=1)
    figure.add_scatter(x=[1, 2], y=[0, 1], mode="lines", line={"color": "#445566"}, row=1, col=2)
    figure.update_xaxes(type="log", row=1, col=1)
    figure.update_traces(name="TI & more")
    figure.update_layout(yaxis_title="F1", xaxis_title="rows")
    drawn = thumbnail.thumbnail(figure)
    assert all(f">{words}</text>" in drawn for words in ("F1", "rows", "– TI &amp; more"))
    assert "#445566" not in drawn
    width, height = thumbnail.THUMBNAIL
    (path,) = re.findall(r'd="M([^"]*)" fill="none" stroke="#112233"', drawn)
    points = [tuple(map(float, point.split())) for point in path.split("L")]
    xs, ys = zip(*points, strict=True)
    assert xs[1] - xs[0] == xs[2] - xs[1], "decades are equally wide"
    assert ys[1] > ys[0] > ys[2], "upwards is less in an SVG"
    assert all(0 < x < width and 0 < y < height for x, y in points)


def test_words_boxes_and_gaps():
    figure = go.Figure()
    figure.add_box(x=["a", "a", "a", "b"], y=[1.0, 2.0, 3.0, 9.0], marker={"color": "#112233"})
    figure.add_scatter(x=[3.0], y=["c"], mode="markers", marker={"color": "#445566"}, xaxis="x2")
    assert thumbnail.thumbnail(figure).count("<rect") == 2
    cells = go.Figure()
    cells.add_scatter(x=[3.0, None, 4.0], y=["c", "d", "d"], mode="markers", marker={"color": "#445566"})
    # A point for each, and the glyph before the name.
    assert thumbnail.thumbnail(cells).count("●") == 3
    assert "●" not in thumbnail.thumbnail(go.Figure())
