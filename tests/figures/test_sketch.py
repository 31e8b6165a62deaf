"""Curves of a Plotly figure as SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

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
