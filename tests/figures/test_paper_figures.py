"""Figures of papers, by what is in them."""

from __future__ import annotations

import pytest

from fmviz.figures import papers
from fmviz.figures.palette import NEUTRAL, SIGNALS

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


def test_descent_has_a_line_for_every_run_and_a_name_for_every_method():
    figure = papers.draw("descent", {"trace": TRACE}, columns=2, log_y=True, **TITLES)
    assert len(figure.data) == 6
    assert [line.name for line in figure.data if line.showlegend] == ["one", "two"]
    assert len({line.line.color for line in figure.data}) == 2
    assert [a.text for a in figure.layout.annotations] == ["left", "right"]
    # A logarithmic axis has no 0.
    assert list(figure.data[0].x) == [0.5]
    assert figure.layout.xaxis2.type == figure.layout.yaxis.type == "log"
    epochs = papers.draw("descent", {"trace": TRACE}, x="epoch", **TITLES)
    assert list(epochs.data[0].x) == [0, 1]


def test_curves_are_means_with_bars_and_a_level():
    figure = papers.draw("curves", {"test": TEST}, **TITLES)
    lines = {line.name: line for line in figure.data}
    assert list(lines["one"].x) == [3, 6]
    assert list(lines["one"].y) == pytest.approx([0.55, 0.55])
    assert list(lines["one"].error_y.array) == pytest.approx([0.05, 0.05])
    assert list(lines["level"].x) == [3, 6]
    assert list(lines["level"].y) == [0.9, 0.9]
    assert lines["level"].line.color == NEUTRAL


def test_scores_far_below_zero_are_cut_off():
    rows = [*TEST, {"data": "x", "method": "one", "bases": 12, "seed": 0, "score": -40.0}]
    figure = papers.draw("curves", {"test": rows}, highest=True, **TITLES)
    assert list(figure.layout.yaxis.range) == pytest.approx([-0.05, 0.99])
    assert papers.draw("curves", {"test": rows}, **TITLES).layout.yaxis.range is None


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
    line, star, level = papers.draw("sparsity", tables, **TITLES).data
    assert list(line.x) == [400, 1]
    assert list(line.y) == pytest.approx([0.75, 0.55])
    assert [one[0] for one in line.customdata] == [400, 0]
    assert (list(star.x), star.marker.symbol) == ([1_000], "star")
    assert (level.name, list(level.y)) == ("FM", [0.8, 0.8])
    assert papers.draw("sparsity", {"grid": tables["grid"]}, **TITLES).layout.xaxis.type == "log"


@pytest.mark.parametrize("kind", papers.KINDS)
def test_nothing_yet_is_an_empty_figure(kind):
    assert len(papers.draw(kind, {}, **TITLES).data) == 0


def test_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="no figure 'pie'; there are descent, curves, sparsity"):
        papers.draw("pie", {})


def test_deviations_are_coloured():
    row = {"what": "x, n", "published": 10.0, "source": "Table 1"}
    rows = [
        {**row, "ours": 10.1, "deviation": 0.01, "within": True},
        {**row, "ours": 20.0, "deviation": 1.0, "within": False},
        {**row, "ours": None, "deviation": None, "within": None},
    ]
    table = papers.comparison(rows).data[0]
    assert list(table.cells.values[3]) == ["+1.0%", "+100.0%", "–"]
    assert list(table.cells.fill.color[3]) == [SIGNALS[True], SIGNALS[False], SIGNALS[None]]
    assert len(set(table.cells.fill.color[1])) == 1
