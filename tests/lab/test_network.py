"""The layout of a network of pairs."""

from __future__ import annotations

import numpy as np

from fmviz.figures.interactions import layout


def test_a_network_is_the_same_every_time_and_keeps_components_apart():
    i, j = np.array([0, 0, 1, 10, 20]), np.array([1, 2, 2, 11, 21])
    weight = np.array([1.0, -2.0, 3.0, 0.5, 0.5])
    one, two = layout(i, j, weight), layout(i, j, weight)
    np.testing.assert_array_equal(one.position, two.position)
    assert one.nodes.tolist() == [0, 1, 2, 10, 11, 20, 21]
    assert one.degree.tolist() == [2, 2, 2, 1, 1, 1, 1]
    assert one.strength.tolist() == [3.0, 4.0, 5.0, 0.5, 0.5, 0.5, 0.5]
    apart = np.linalg.norm(one.position[:, None] - one.position, axis=2)
    assert apart[np.triu_indices(7, 1)].min() > 0.3
    triangle = apart[[0, 0, 1], [1, 2, 2]]
    np.testing.assert_allclose(triangle, triangle.mean(), rtol=1e-3)
    assert np.isfinite(one.position).all()
