"""Figures of learned interactions."""

from __future__ import annotations

from fmviz.figures.interactions import waterfall


def test_a_waterfall_has_every_term_once_and_ends_at_the_sum():
    labels, values = ["bias", "a × b", "a × b", "the other pairs (3)"], [150.0, 2.0, -1.0, 0.5]
    figure = waterfall(labels, values, 151.5, "prediction", "in units")
    (bars,) = figure.data
    assert len(set(bars.y)) == 5
    assert list(bars.x) == [*values, 151.5]
    assert list(bars.measure) == ["absolute", "relative", "relative", "relative", "total"]
    low, high = figure.layout.xaxis.range
    assert 149 < low < 150, "a large bias does not hide the terms"
    assert high > 152
    assert waterfall(["bias"], [0.0], 0.0, "prediction", "x").data[0].x[0] == 0.0
