"""Curves of a Plotly figure as SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from fmviz.figures import sketch, training

NAME = "{http://www.w3.org/2000/svg}"


def figure(y, log: bool = False) -> go.Figure:
    history = pd.DataFrame({"epoch": np.arange(len(y)), "seconds": np.arange(len(y)) / 2, "objective": y})
    drawn = training.curves(history, training.objective("red"))
    drawn.update_yaxes(type="log" if log else "linear")
    return drawn


def curves(text: str) -> list[str]:
    return [p.get("d") for p in ET.fromstring(text).iter(f"{NAME}path") if p.get("fill") == "none"]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "y", [[3.0], [3.0, 2.0, 1.0], [2.0, 2.0], [1e-300, 1e300], [np.nan, 1.0, np.inf], [0.0, 0.0]]
)
def test_any_numbers_give_a_picture(y, log):
    text = sketch.svg(figure(np.array(y), log))
    (curve,) = curves(text)
    assert "nan" not in curve
    assert "inf" not in curve


def test_a_curve_goes_where_the_numbers_go():
    (curve,) = curves(sketch.svg(figure(np.array([3.0, 1.0]))))
    (x0, y0), (x1, y1) = (map(float, point.split()) for point in curve[1:].split("L"))
    assert x0 < x1
    assert y0 < y1  # downwards on the screen


def test_long_curves_are_thinned_and_panels_stacked():
    n = 2_000
    history = pd.DataFrame(
        {
            "epoch": np.arange(n),
            "seconds": np.arange(n),
            "used_interactions": n - np.arange(n),
            "used_features": 5,
        }
    )
    plots = training.uses(true_features=3, true_interactions={"used_interactions": 9})
    text = sketch.svg(training.curves(history, plots))
    drawn = curves(text)
    assert len(drawn) == 4
    assert max(curve.count("L") for curve in drawn) < 300
    assert {"interactions", "features", "in truth", "epoch"} <= set(ET.fromstring(text).itertext())


def test_a_vertical_axis_is_named_where_its_numbers_are():
    named = figure(np.array([3.0, 2.0, 1.0]))
    (bare,) = curves(sketch.svg(named.update_yaxes(title=None)))
    named.update_yaxes(title="RMSE, validation")
    text = sketch.svg(named)
    assert "RMSE, validation" in set(ET.fromstring(text).itertext())
    (curve,) = curves(text)
    assert float(curve[1:].split()[0]) > float(bare[1:].split()[0])  # room for the name


def test_the_first_panel_is_drawn_within_its_frame():
    figure = make_subplots(1, 2)
    line = {"color": "#112233"}
    figure.add_scatter(x=[1, 10, 100], y=[0, -5, 5], mode="lines", line=line, row=1, col=1)
    figure.add_scatter(x=[1, 2], y=[0, 1], mode="lines", line={"color": "#445566"}, row=1, col=2)
    figure.update_xaxes(type="log", row=1, col=1)
    drawn = sketch.thumbnail(figure)
    assert "#445566" not in drawn
    width, height = sketch.THUMBNAIL
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
    assert sketch.thumbnail(figure).count("<rect") == 2
    cells = go.Figure()
    cells.add_scatter(x=[3.0, None, 4.0], y=["c", "d", "d"], mode="markers", marker={"color": "#445566"})
    assert sketch.thumbnail(cells).count("<circle") == 2
    assert "circle" not in sketch.thumbnail(go.Figure())
