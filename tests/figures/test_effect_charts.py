"""Figures of main effects, of pairs of columns and of one prediction."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fmviz.figures import effects
from fmviz.figures.interactions import waterfall

CURVE = pd.DataFrame(
    {
        "value": [1.0, 2.0, 4.0],
        "effect": [-1.0, 0.0, 2.0],
        "lower": [-2.0, -1.0, 1.0],
        "upper": [0.0, 1.0, 3.0],
    }
).assign(rows=5)


def test_a_number_has_a_curve_in_a_band_and_words_have_bars():
    figure = effects.main_effect(CURVE, None, "age", "euros")
    assert [trace.y[0] for trace in figure.data] == [-2.0, 0.0, -1.0]
    assert figure.layout.yaxis.title.text == "euros"
    single = CURVE.assign(lower=CURVE["effect"], upper=CURVE["effect"])
    assert len(effects.main_effect(single, None, "age", "euros").data) == 1
    (bars,) = effects.main_effect(CURVE, ["a", "b", "c"], "town", "euros").data
    assert list(bars.y) == [-1.0, 0.0, 2.0]
    assert list(bars.error_y.array) == [1.0, 1.0, 1.0]


def test_a_surface_has_cells_as_wide_as_its_ranges():
    ends = np.array([[0.0, 1.0], [2.0, 2.0], [4.0, 9.0]])
    z = np.array([[1.0, np.nan, -2.0], [0.0, 1.0, 1.0]])
    figure = effects.surface(
        z, np.ones((2, 3), int), (["a", "b"], ["low", "mid", "high"]), (None, ends), ("w", "x"), "y"
    )
    (heat,) = figure.data
    assert list(heat.x) == [0.0, 1.5, 3.0, 9.0]
    assert (heat.zmin, heat.zmax) == (-2.0, 2.0)
    np.testing.assert_array_equal(heat.z, z)


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
