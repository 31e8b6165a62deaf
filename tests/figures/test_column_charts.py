from __future__ import annotations

import numpy as np

from fmviz.figures.training import _NEGATIVE, _POSITIVE, signed_bars, sorted_by_size


def test_bars_keep_signs_and_mark_exact_zeros():
    values = sorted_by_size(np.array([0.5, 0.0, -2.0, 1e-12]))
    assert values.tolist() == [-2.0, 0.5, 1e-12, 0.0]
    bars, zeros = signed_bars(values, x="column", y="weight").data
    np.testing.assert_array_equal(bars.y, values)
    assert list(bars.marker.color) == [_NEGATIVE, _POSITIVE, _POSITIVE, _POSITIVE]
    assert list(zeros.x) == [4]
    assert len(signed_bars(values[:3], x="", y="").data) == 1
