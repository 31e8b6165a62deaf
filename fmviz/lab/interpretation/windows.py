"""Windows of W: all of it as tiles, parts of it as finer tiles, and finally its entries."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fmviz.engine.interactions.pairs import PairWeights, nothing, tile_edges
from fmviz.lab.background.thinned import N_TILES

__all__ = ["EXACT", "Sight", "Window", "format_windows", "look", "parse_windows", "tile_labels"]

EXACT = 384
"""Up to so many features along each side the entries themselves are shown."""
_LEAST = 48


@dataclass(frozen=True)
class Window:
    """Some rows and columns of W.

    Attributes
    ----------
    top, bottom, left, right : int
        The features of its rows and of its columns, half-open, from 0.
    """

    top: int
    bottom: int
    left: int
    right: int

    @classmethod
    def whole(cls, n: int) -> Window:
        """Return the window of all features."""
        return cls(0, n, 0, n)

    @property
    def exact(self) -> bool:
        """Whether the entries are shown, and not tiles of them."""
        return max(self.bottom - self.top, self.right - self.left) <= EXACT

    @property
    def label(self) -> str:
        """The ranges in words, features counted from 1."""
        return f"{self.top + 1:,}–{self.bottom:,} × {self.left + 1:,}–{self.right:,}"

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first feature of every tile along each axis, and the end of the last."""
        most = EXACT if self.exact else N_TILES
        return (
            self.top + tile_edges(self.bottom - self.top, most),
            self.left + tile_edges(self.right - self.left, most),
        )

    def zoom(self, top: int, bottom: int, left: int, right: int, n: int) -> Window:
        """Return the window of some of the tiles, half-open ranges, of n features in all.

        Where it would be very small it is widened; a window that is itself that small has none within.
        """
        if max(self.bottom - self.top, self.right - self.left) <= _LEAST:
            return self
        rows, cols = self.edges()
        spans = (int(rows[top]), int(rows[bottom])), (int(cols[left]), int(cols[right]))
        (a, b), (c, d) = (_widened(*span, n) for span in spans)
        return Window(a, b, c, d)


def _widened(begin: int, end: int, n: int) -> tuple[int, int]:
    lacking = max(0, min(_LEAST, n) - (end - begin))
    begin = max(0, min(begin - lacking // 2, n - (end - begin) - lacking))
    return begin, min(n, max(end, begin + min(_LEAST, n)))


def parse_windows(text: str, n: int) -> list[Window]:
    """Read windows, each within the one before, as `format_windows` writes them.

    Raises
    ------
    ValueError
        If the text is none, or a window is not one of n features.
    """
    found = []
    for part in filter(None, text.split("_")):
        try:
            window = Window(*(int(number) for number in part.split("-")))
        except (TypeError, ValueError):
            raise ValueError(
                f"window = {part!r} is no part of the matrix; write it as 0-100-200-300: rows, then columns."
            ) from None
        sides = ((window.top, window.bottom), (window.left, window.right))
        if not all(0 <= a < b <= n for a, b in sides):
            raise ValueError(f"window = {part!r} is not within the {n:,} features of this matrix.")
        found.append(window)
    return found


def format_windows(windows: Sequence[Window]) -> str:
    """Return windows as a link holds them."""
    return "_".join(f"{w.top}-{w.bottom}-{w.left}-{w.right}" for w in windows)


@dataclass(frozen=True, eq=False)
class Sight:
    """What a window shows.

    Attributes
    ----------
    window : Window
        Which.
    values : (t, u) float64 ndarray
        Entries or tiles; 0 if and only if no pair is used there.
    none : (t, u) bool ndarray
        Entries that are no pair: of a feature with itself.
    """

    window: Window
    values: np.ndarray
    none: np.ndarray

    def labels(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return what every row and every column stands for."""
        rows, cols = self.window.edges()
        return _labels(rows, names), _labels(cols, names)


def _labels(edges: np.ndarray, names: Sequence[str]) -> list[str]:
    return [
        _short(names[a])
        if b - a == 1
        else f"features {a + 1:,}–{b:,}: {_short(names[a])} … {_short(names[b - 1])}"
        for a, b in itertools.pairwise(edges)
    ]


def _short(name: str, most: int = 40) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def tile_labels(n_features: int, n_tiles: int = N_TILES) -> list[str]:
    """Return "features 1–20" and so on for the tiles of all features, counted from 1."""
    edges = tile_edges(n_features, n_tiles)
    return [
        f"feature {a + 1:,}" if b - a == 1 else f"features {a + 1:,}–{b:,}"
        for a, b in itertools.pairwise(edges)
    ]


def look(pairs: PairWeights, window: Window, between: Callable[[], None] = nothing) -> Sight:
    """Return what a window of W shows, by the entries or by max-pooling; see `PairWeights.tiles`."""
    rows, cols = window.edges()
    values = pairs.tiles(rows, cols, between)
    none = np.zeros(values.shape, dtype=bool)
    if window.exact:
        none = rows[:-1, None] == cols[:-1]
    return Sight(window, values, none)
