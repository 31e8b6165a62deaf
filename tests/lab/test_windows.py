"""Windows of W from the whole down to entries: small messages, and a single pair visible on every level."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.interactions.pairs import FactoredPairs
from fmviz.lab.interpretation.network import network
from fmviz.lab.interpretation.windows import (
    EXACT,
    Window,
    format_windows,
    look,
    parse_windows,
)
from fmviz.ui.components.matrix_view import NOT_AN_INTERACTION
from fmviz.ui.interactions.matrix import _drawn, _panel


def planted(d: int, rows: np.ndarray, values: np.ndarray) -> FactoredPairs:
    order = np.argsort(rows)
    return FactoredPairs(rows[order], d, values[order], values[order])


@pytest.mark.parametrize("d", [2_703, 47_236])
@pytest.mark.parametrize("single", [(0.31, 0.77), (0.0, 0.9999), (0.5, 0.5001)])
def test_a_single_pair_is_seen_on_every_level(d, single):
    i, j = (int(part * d) for part in single)
    j += i == j
    # So small that a scale without a code for the least value would lose it beside a large one.
    pairs = planted(d, np.array([i, j]), np.array([[1e-9], [1e-9]]))
    window, levels = Window.whole(d), 0
    while True:
        sight = look(pairs, window)
        rows, cols = window.edges()
        at = np.searchsorted(rows, i, side="right") - 1, np.searchsorted(cols, j, side="right") - 1
        codes = np.asarray(_panel(sight, tuple(map(str, range(d))), None).frames[0].codes)
        assert codes[at] not in (0, NOT_AN_INTERACTION)
        # Where the window lies across the diagonal the pair is there twice.
        assert (codes[codes != NOT_AN_INTERACTION] != 0).sum() in (1, 2)
        levels += 1
        inner = window.zoom(at[0], at[0] + 1, at[1], at[1] + 1, d)
        if inner == window:
            break
        window = inner
    assert window.exact
    assert 2 <= levels <= 4
    assert sight.values[at] == pytest.approx(1e-18)


@pytest.mark.parametrize("d", [2_703, 47_236])
def test_messages_are_small_on_every_level(d):
    rng = np.random.default_rng(0)
    rows = rng.choice(d, min(d, 3_000), replace=False)
    pairs = planted(d, rows, rng.standard_normal((rows.size, 30)) * (rng.random((rows.size, 30)) < 0.3))
    names = tuple(f"a rather long name of an attribute = level {j}" for j in range(d))
    window = Window.whole(d)
    for _ in range(4):
        payload, box = _drawn(pairs, window, names, np.arange(d), None, lambda: None)
        assert len(payload) < 1_000_000
        window = window.zoom(box.top, box.bottom, box.left, box.right, d)
    assert window.exact
    # The largest that is ever sent.
    payload, _ = _drawn(pairs, Window(0, EXACT, 0, EXACT), names, np.arange(d), None, lambda: None)
    assert len(payload) < 1_000_000


def test_a_window_is_the_block_of_the_matrix():
    rng = np.random.default_rng(3)
    P = rng.standard_normal((900, 5)) * (rng.random((900, 5)) < 0.3)
    rows = np.flatnonzero(P.any(axis=1))
    pairs = planted(900, rows, P[rows])
    W = P @ P.T
    sight = look(pairs, Window(100, 300, 250, 600))
    assert sight.window.exact
    kept = ~sight.none
    np.testing.assert_allclose(sight.values[kept], W[100:300, 250:600][kept], atol=1e-12)
    np.testing.assert_array_equal(np.argwhere(sight.none)[:, 0] + 100, np.arange(250, 300))
    tiles = look(pairs, Window.whole(900)).values
    a, b = Window.whole(900).edges()
    np.fill_diagonal(W, 0.0)
    assert tiles[3, 7] == pytest.approx(max(W[a[3] : a[4], b[7] : b[8]].ravel(), key=abs))
    compact = pairs.compact()
    assert compact.n_features == rows.size
    np.testing.assert_array_equal(
        compact.among(np.arange(9), np.arange(9))[0], pairs.among(rows[:9], rows[:9])[0]
    )


def test_windows_travel_in_links():
    trail = [Window(0, 90, 5, 40), Window(10, 60, 5, 6)]
    assert parse_windows(format_windows(trail), 100) == trail
    assert parse_windows("", 100) == []
    for wrong in ("5-2-0-9", "0-101-0-5", "1-2-3", "a-b-c-d", "-1-5-0-4"):
        with pytest.raises(ValueError, match="window"):
            parse_windows(wrong, 100)
    assert Window(0, 40, 0, 40).zoom(3, 4, 3, 4, 100) == Window(0, 40, 0, 40), "nothing smaller within"
    assert Window(0, 300, 0, 300).zoom(299, 300, 0, 1, 300) == Window(252, 300, 0, 48)


def test_a_network_is_the_same_every_time_and_keeps_components_apart():
    i, j = np.array([0, 0, 1, 10, 20]), np.array([1, 2, 2, 11, 21])
    weight = np.array([1.0, -2.0, 3.0, 0.5, 0.5])
    one, two = network(i, j, weight), network(i, j, weight)
    np.testing.assert_array_equal(one.position, two.position)
    assert one.nodes.tolist() == [0, 1, 2, 10, 11, 20, 21]
    assert one.degree.tolist() == [2, 2, 2, 1, 1, 1, 1]
    assert one.strength.tolist() == [3.0, 4.0, 5.0, 0.5, 0.5, 0.5, 0.5]
    apart = np.linalg.norm(one.position[:, None] - one.position, axis=2)
    assert apart[np.triu_indices(7, 1)].min() > 0.3
    triangle = apart[[0, 0, 1], [1, 2, 2]]
    np.testing.assert_allclose(triangle, triangle.mean(), rtol=1e-3)
    assert np.isfinite(one.position).all()
