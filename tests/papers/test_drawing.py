"""Figures of papers and their thumbnails, by what is in them."""

from __future__ import annotations

import re

import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from fmviz.figures.palette import NEUTRAL, REGULARIZER_COLORS
from papers import drawing
from tools import thumbnail

TRACE = [
    {"panel": p, "method": m, "seed": s, "epoch": e, "seconds": 0.5 * e, "objective": 2.0 - e}
    for p in ("left", "right")
    for m in ("one", "two")
    for s in (0, 1)
    for e in (0, 1)
    if (p, m) != ("right", "two")
]
TEST = [
    {"data": "x", "method": m, "bases": k, "seed": s, "score": None if s == 2 else 0.5 + 0.1 * s}
    for m in ("one", "two")
    for k in (3, 6)
    for s in (0, 1, 2)
] + [{"data": "x", "method": "level", "bases": 0, "seed": 0, "score": 0.9}]
TITLES = {"x_title": "x", "y_title": "y"}
SCORES = {"table": "test", "panel": "data", "x": "bases", "y": "score", "ticks": "numbers", **TITLES}


def test_descent_has_a_line_for_every_run_and_a_name_for_every_method():
    figure = drawing.draw(kind="descent", tables={"trace": TRACE}, columns=2, **TITLES)
    assert len(figure.data) == 6
    assert [line.name for line in figure.data if line.showlegend] == ["one", "two"]
    assert len({line.line.color for line in figure.data}) == 2
    assert [a.text for a in figure.layout.annotations] == ["left", "right"]
    # A logarithmic axis has no 0.
    assert list(figure.data[0].x) == [0.5]
    assert figure.layout.xaxis2.type == figure.layout.yaxis.type == "log"


def test_scores_are_means_with_bars_and_a_level():
    lines = {line.name: line for line in drawing.draw(kind="lines", tables={"test": TEST}, **SCORES).data}
    assert list(lines["one"].x) == [3, 6]
    assert list(lines["one"].y) == pytest.approx([0.55, 0.55])
    assert list(lines["one"].error_y.array) == pytest.approx([0.05, 0.05])
    assert list(lines["level"].x) == [3, 6]
    assert list(lines["level"].y) == [0.9, 0.9]
    assert lines["level"].line.color == NEUTRAL


def test_scores_far_below_zero_are_cut_off():
    rows = [*TEST, {"data": "x", "method": "one", "bases": 12, "seed": 0, "score": -40.0}]
    figure = drawing.draw(kind="lines", tables={"test": rows}, highest=True, **SCORES)
    assert list(figure.layout.yaxis.range) == pytest.approx([-0.05, 0.99])
    assert drawing.draw(kind="lines", tables={"test": rows}, **SCORES).layout.yaxis.range is None


def test_scores_stand_over_the_interactions_that_they_take():
    cell = {"data": "x", "method": "TI"}
    tables = {
        "grid": [
            {**cell, "lambda_sparse": strength, "seed": seed, "used": used, "score": score + 0.1 * seed}
            for strength, used, score in ((1e-3, 0, 0.5), (1e-5, 400, 0.7))
            for seed in (0, 1)
        ],
        "table3a": [{**cell, "used": 1_000.0, "score": 0.9}, {**cell, "method": "L1", "score": None}],
        "table3b": [{**cell, "method": "FM", "used": 4_000.0, "score": 0.8}],
    }
    line, limited, level = drawing.draw(kind="sparsity", tables=tables, **TITLES).data
    assert list(line.x) == [400, 1]
    assert list(line.y) == pytest.approx([0.75, 0.55])
    assert [item[0] for item in line.customdata] == [400, 0]
    assert (list(limited.x), limited.marker.symbol) == ([1_000], line.marker.symbol)
    assert (level.name, list(level.y)) == ("FM", [0.8, 0.8])
    assert drawing.draw(kind="sparsity", tables={"grid": tables["grid"]}, **TITLES).layout.xaxis.type == "log"


@pytest.mark.parametrize("kind", drawing.KINDS)
def test_nothing_yet_is_an_empty_figure(kind):
    assert len(drawing.draw({}, kind=kind, **TITLES).data) == 0


def test_lines_have_a_panel_each_and_share_the_legend():
    rows = [
        {"panel": p, "method": m, "d": d, "t": d + gap}
        for p in ("left", "right")
        for m, gaps in (("one", (-0.5, 0.5)), ("two", (0.0,)))
        for gap in gaps
        for d in (8, 2, 4)
    ]
    figure = drawing.draw(
        kind="lines", tables={"times": rows}, table="times", x="d", y="t", log=True, **TITLES
    )
    assert [line.name for line in figure.data if line.showlegend] == ["one", "two"]
    assert [list(line.x) for line in figure.data] == [[2, 4, 8]] * 4
    assert list(figure.data[0].error_y.array) == [0.5] * 3
    assert list(figure.data[0].y) == list(figure.data[1].y) == [2, 4, 8]
    assert figure.data[1].error_y.array is None
    assert figure.layout.xaxis2.type == figure.layout.yaxis2.type == "log"
    assert list(figure.layout.xaxis.tickvals) == [2, 8]


def test_operators_have_counts_above_pictures():
    counts = [
        {"method": m, "seed": s, "log2_lambda": e, "interactions": 9 - e + s, "features": 4}
        for m in ("L1", "TI by rows")
        for s in (0, 1, 2)
        for e in (0, 1)
    ]
    pictures = [{"method": "L1", "log2_lambda": 1, "first": first, "shares": [0.5, 0.0]} for first in (0, 5)]
    figure = drawing.draw(kind="operators", tables={"counts": counts, "W": pictures}, **TITLES)
    curves = [item for item in figure.data if item.type == "scatter"]
    assert [list(line.y) for line in curves] == [[10, 9], [10, 9], [4, 4], [4, 4]]
    assert list(curves[0].error_y.array) == list(curves[0].error_y.arrayminus) == [1, 1]
    assert curves[1].line.dash == "dash"
    assert [line.line.color for line in curves] == [REGULARIZER_COLORS[n] for n in ("l1", "ti")] * 2
    (picture,) = [item for item in figure.data if item.type == "heatmap"]
    assert [list(row) for row in picture.z] == [[0.5, 0.0]] * 2
    assert figure.layout.yaxis3.autorange == "reversed"
    # Without pictures there are the curves alone.
    assert len(drawing.draw(kind="operators", tables={"counts": counts}, **TITLES).data) == 4


def test_no_two_methods_have_one_colour():
    for methods in (
        ("TI", "CS", "L1", "L21", "Ω*-nmAPGD", "Ω*-SubGD", "SLQR"),
        ("PCD", "PBCD", "APGD", "nmAPGD", "PSGD", "MB-PSGD", "Katyusha", "MB-Katyusha"),
    ):
        times = [{"panel": "p", "method": method, "x": x, "y": x} for method in methods for x in (1, 2)]
        figure = drawing.draw(kind="lines", tables={"lines": times}, log="p", ticks="numbers", **TITLES)
        colors = {line.name: line.line.color for line in figure.data}
        assert len(set(colors.values())) == len(methods)
        for name in ("TI", "CS", "L1", "L21"):
            assert colors.get(name, REGULARIZER_COLORS[name.lower()]) == REGULARIZER_COLORS[name.lower()]
        assert list(figure.layout.xaxis.ticktext) == ["1", "2"]
        assert figure.layout.yaxis.type == "log", "a word in its title"


def test_boxes_are_of_methods_and_stages():
    rows = [
        {"panel": p, "method": m, "stage": s, "y": 0.5}
        for p in "ab"
        for m in ("x", "y")
        for s in ("early", "late")
    ]
    figure = drawing.draw(kind="boxes", tables={"ratios": rows}, **TITLES)
    assert [(box.name, list(box.x), box.showlegend) for box in figure.data[:3]] == [
        ("early", ["x", "y"], True),
        ("late", ["x", "y"], True),
        ("early", ["x", "y"], False),
    ]
    assert figure.layout.boxmode == "group"


def test_cells_are_means_beside_what_is_printed():
    cells = [
        {"data": "x", "method": "one", "accuracy": 90.0, "std": 1.5, "printed": 88.0},
        {"data": "x", "method": "two", "accuracy": 80.0, "std": None, "printed": None},
    ]
    figure = drawing.draw(kind="cells", tables={"cells": cells}, **TITLES)
    mean, printed = figure.data
    assert (list(mean.x), list(mean.error_x.array)) == ([90.0, 80.0], [3.0, 0.0])
    assert (list(printed.x), list(printed.y)) == ([88.0], ["one"])
    assert list(figure.layout.yaxis.categoryarray) == ["two", "one"]


# ------------------------------------------------------------------------------------------------- thumbnails


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
