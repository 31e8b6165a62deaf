"""The curves of counts against λ."""

from __future__ import annotations

import numpy as np

from fmviz.figures.operators import Curve, counts_figure, describe

X = list(range(-7, 8))
CURVES = [
    Curve("ℓ₁", "#ae3518", np.arange(15)[::-1]),
    Curve("TI", "#748dff", np.full(15, 12)),
    Curve("TI, by rows", "#748dff", [14] * 14 + [3], reading=1),
]


def test_one_line_a_curve_over_the_exponents():
    figure = counts_figure(X, CURVES, what="used features", total=14, current=-2)
    assert [trace.name for trace in figure.data] == ["ℓ₁", "TI", "TI, by rows"]
    for trace, curve in zip(figure.data, CURVES, strict=True):
        assert list(trace.x) == X
        np.testing.assert_array_equal(trace.y, curve.counts)
        assert trace.line.color == curve.color
        assert [row[2] for row in trace.customdata] == [f"{c:,}" for c in curve.counts]
    assert len({trace.line.dash for trace in figure.data if trace.line.color == "#748dff"}) == 2
    assert len({trace.marker.symbol for trace in figure.data}) == 3


def test_the_present_strength_is_marked():
    figure = counts_figure(X, CURVES, what="used features", total=14, current=-2)
    marks = [shape for shape in figure.layout.shapes if shape.x0 == shape.x1 == -2]
    assert len(marks) == 1
    assert figure.layout.annotations[0].text == "λ = 2⁻²"
    without = counts_figure(X, CURVES, what="used features", total=14)
    assert len(without.layout.shapes) == 1  # the line of the total


def test_in_words():
    said = describe(X, CURVES, "used features", 14)
    assert said.startswith("Used features of 14 against λ from 2⁻⁷ to 2⁷: ℓ₁ from 14 to 0; ")
