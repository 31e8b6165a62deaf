"""Figures of learned interactions: network and waterfall."""

from __future__ import annotations

import numpy as np

from fmviz.figures.interactions import NEGATIVE, POSITIVE, layout, network, waterfall


def test_edges_have_the_colour_of_their_sign_and_nodes_their_place():
    position = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    edges, weight = np.array([[0, 1], [1, 2]]), np.array([2.0, -0.1])
    figure = network(
        ["a", "b", "c"], position, np.array([2.0, 2.1, 0.1]), np.ones(3, int), edges, weight, [1]
    )
    *lines, nodes = figure.data
    assert {line.line.color: line.line.width for line in lines} == {POSITIVE: 5.5, NEGATIVE: 1.2}
    assert list(nodes.customdata) == [0, 1, 2]
    assert nodes.marker.color[1] == POSITIVE
    assert nodes.marker.size[1] > nodes.marker.size[2]


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


def test_a_network_is_the_same_every_time_and_keeps_components_apart():
    i, j = np.array([0, 0, 1, 10, 20]), np.array([1, 2, 2, 11, 21])
    weight = np.array([1.0, -2.0, 3.0, 0.5, 0.5])
    first, two = layout(i, j, weight), layout(i, j, weight)
    np.testing.assert_array_equal(first.position, two.position)
    assert first.nodes.tolist() == [0, 1, 2, 10, 11, 20, 21]
    assert first.degree.tolist() == [2, 2, 2, 1, 1, 1, 1]
    assert first.strength.tolist() == [3.0, 4.0, 5.0, 0.5, 0.5, 0.5, 0.5]
    apart = np.linalg.norm(first.position[:, None] - first.position, axis=2)
    assert apart[np.triu_indices(7, 1)].min() > 0.3
    triangle = apart[[0, 0, 1], [1, 2, 2]]
    np.testing.assert_allclose(triangle, triangle.mean(), rtol=1e-3)
    assert np.isfinite(first.position).all()
