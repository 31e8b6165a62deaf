"""Figures of unit balls, operators and thresholds."""

from __future__ import annotations

import numpy as np

from fmviz.figures import geometry as figures

LATTICE = np.array([-1.0, 0.0, 1.0])
WAYS = np.array([[[1.0, 1.0], [0.5, 0.5]], [[1.0, 0.2], [0.6, 0.0]], [[0.1, 0.2], [0.0, 0.0]]])
FLOW = {
    "levels": [
        np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]]),
        np.array([[2.0, 0.0], [0.0, 2.0]]),
    ],
    "flow": (WAYS, np.array([0, 2, 3])),
    "path": np.array([[1.5, 0.6], [1.0, 0.0]]),
    "points": (np.array([1.5, 0.6]), np.array([1.0, 0.0])),
    "color": "#748dff",
    "height": 300,
}


def test_the_plane_holds_ball_flow_point_and_a_grid_for_clicks():
    figure = figures.plane(**FLOW, axes=("p₁₁", "p₂₁"), lattice=LATTICE)
    by_name = {trace.name: trace for trace in figure.data}
    assert by_name["unit ball"].fill == "toself"
    assert by_name["level"].fill is None
    assert list(by_name["point"].x) == [1.5]
    assert list(by_name["prox"].y) == [0.0]
    clicks = figure.data[-1]
    assert (clicks.type, clicks.opacity, clicks.hoverinfo) == ("scattergl", 0, "none")
    assert {(x, y) for x, y in zip(clicks.x, clicks.y, strict=True)} == {
        (x, y) for x in LATTICE for y in LATTICE
    }
    assert figure.layout.xaxis.ticktext == ("−2", "−1", "0", "1", "<b>p₁₁</b>")
    assert figure.layout.yaxis.ticktext[-1] == "<b>p₂₁</b>"
    small = figures.plane(**FLOW, axes=("a", "b"))
    assert len(small.data) == len(figure.data) - 1
    assert not small.layout.xaxis.showticklabels


def test_exact_zeros_have_a_colour_and_a_sign_of_their_own():
    figure = figures.plane(**FLOW, axes=("a", "b"))
    ends = {trace.name: trace for trace in figure.data if trace.name.startswith("ends")}
    assert set(ends) == {"ends 0", "ends 2", "ends 3"}
    looks = {(trace.marker.color, trace.marker.symbol) for trace in ends.values()}
    assert len(looks) == 3
    assert list(ends["ends 2"].y) == [0.0]


def test_bars_of_a_column_add_up():
    before, after = np.array([1.6, -0.3]), np.array([1.0, 0.0])
    taken, remaining, tau, soft = figures.column_bars(before, after, 0.6, 0.2).data
    assert np.allclose(np.array(taken.y) + np.array(remaining.y), np.abs(before))
    assert list(remaining.text) == ["1", "0"]
    assert list(tau.y) == [0.6, 0.6]
    assert list(soft.y) == [0.2, 0.2]
    assert len(set(taken.marker.color)) == 2, "an entry that goes has a colour of its own"
