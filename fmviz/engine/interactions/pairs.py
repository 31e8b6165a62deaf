"""Pair weights of any model: read, rank, pool and count them block by block without forming W."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

# Rows of W that are processed together, and about how many entries.
_BLOCK = 512
_ENTRIES = 2_000_000

Places = np.ndarray | slice


def nothing() -> None:
    """Do nothing between two strips of W."""


def tile_edges(n_features: int, n_tiles: int) -> np.ndarray:
    """Return the first feature of every tile and `n_features` at the end, shape (n_tiles + 1,)."""
    n_tiles = max(1, min(n_tiles, n_features))
    return (np.arange(n_tiles + 1) * n_features) // n_tiles


@dataclass(frozen=True, eq=False)
class PairWeights:
    """A symmetric W that is 0 except in some rows and columns, without its diagonal.

    Attributes
    ----------
    rows : (m,) int ndarray
        The features with an entry, ascending. Methods count places among them.
    n_features : int
        The number d of all features.
    """

    rows: np.ndarray
    n_features: int

    def block(self, at: Places, to: Places) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights between two lists of places, and which of the pairs are used.

        A pair is used by the structure of the parameters, exactly, also where its weight cancels to 0; a
        feature is no pair with itself. Weights of pairs that are not used are 0.
        """
        weight, used = self._entries(at, to)
        every = np.arange(self.rows.size)
        used &= every[at][:, None] != every[to]
        return np.where(used, weight, 0.0), used

    def _entries(self, at: Places, to: Places) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def squares(self) -> np.ndarray | None:
        """Return the weight of x_j² for every row, shape (m,), or None where f has no squares."""
        return None

    def among(self, features: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the exact weights between two lists of features, and which pairs are used."""
        where = np.full(self.n_features, -1)
        where[self.rows] = np.arange(self.rows.size)
        rows, columns = where[features], where[others]
        weight = np.zeros((rows.size, columns.size))
        used = np.zeros(weight.shape, dtype=bool)
        at, to = np.flatnonzero(rows >= 0), np.flatnonzero(columns >= 0)
        if at.size and to.size:
            weight[np.ix_(at, to)], used[np.ix_(at, to)] = self.block(rows[at], columns[to])
        return weight, used

    def upper(
        self, between: Callable[[], None] = nothing
    ) -> Iterator[tuple[slice, slice, np.ndarray, np.ndarray]]:
        """Yield W above its diagonal in strips: places of rows and columns, weights, and which are used.

        `between` is called before each, and may raise to end it.
        """
        m = self.rows.size
        step = max(1, min(_BLOCK, _ENTRIES // max(1, m)))
        for begin in range(0, m, step):
            between()
            at, to = slice(begin, min(begin + step, m)), slice(begin, m)
            weight, used = self.block(at, to)
            # On and below the diagonal of the leading square.
            square = used[:, : weight.shape[0]]
            square[np.tril_indices(len(square))] = False
            yield at, to, weight, used

    def ranked(
        self,
        top: int | None = None,
        codes: np.ndarray | None = None,
        hits: Sequence[np.ndarray] = (),
        between: Callable[[], None] = nothing,
    ) -> Ranking:
        """Return the used pairs of largest |weight| that pass the filters.

        Parameters
        ----------
        top : int, optional
            At most so many; without it all.
        codes : (d,) int ndarray, optional
            The attribute of every feature; pairs within an attribute are excluded.
        hits : sequence of (d,) bool ndarray
            At least one feature of every pair must be in each of these.
        between : callable
            See `upper`.
        """
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        least, total, siblings = -1.0, 0, 0
        groups = None if codes is None else codes[self.rows]
        marks = [hit[self.rows] for hit in hits]
        for at, to, weight, used in self.upper(between):
            for mark in marks:
                used &= mark[at][:, None] | mark[to]
            if groups is not None:
                same = used & (groups[at][:, None] == groups[to])
                siblings += int(np.count_nonzero(same))
                used &= ~same
            total += int(np.count_nonzero(used))
            size = np.abs(weight)
            row, column = np.nonzero(used & (size >= least))
            size = size[row, column]
            if top is not None and size.size > top:
                kept = size >= np.partition(size, -top)[-top]
                row, column = row[kept], column[kept]
            i, j = self.rows[at][row], self.rows[to][column]
            parts.append((i, j, weight[row, column]))
            best = _largest(parts, top)
            parts = [best]
            if best[2].size == top and top:
                least = abs(float(best[2][-1]))
        i, j, weight = parts[0] if parts else (np.empty(0, int), np.empty(0, int), np.empty(0))
        return Ranking(i, j, weight, total, siblings)

    def pooled(self, n_tiles: int) -> np.ndarray:
        """Max-pool W into at most `n_tiles` tiles along an axis.

        Returns
        -------
        (t, t) float64 ndarray
            Per tile the weight of largest magnitude, with its sign. It is 0 if and only if no pair of the
            tile is used.
        """
        edges, m = tile_edges(self.n_features, n_tiles), self.rows.size
        high, low = np.zeros((edges.size - 1,) * 2), np.zeros((edges.size - 1,) * 2)
        if not m:
            return high
        tiles = np.searchsorted(edges, self.rows, side="right") - 1
        across, first = np.unique(tiles, return_index=True)
        step = max(1, min(_BLOCK, _ENTRIES // m))
        for begin in range(0, m, step):
            at = slice(begin, begin + step)
            weight, used = self.block(at, slice(0, m))
            weight = np.where(used, never_zero(weight), 0.0)
            down, start = np.unique(tiles[at], return_index=True)
            place = np.ix_(down, across)
            for pool, kept in ((np.maximum, high), (np.minimum, low)):
                part = pool.reduceat(pool.reduceat(weight, first, axis=1), start, axis=0)
                kept[place] = pool(kept[place], part)
        return np.where(-low > high, low, high)


@dataclass(frozen=True, eq=False)
class Ranking:
    """The strongest pairs.

    Attributes
    ----------
    i, j : int ndarrays
        The features of each pair, i < j; from the largest |weight| to the smallest, ties by (i, j).
    weight : float ndarray
        Their weights.
    total : int
        The number of used pairs that pass the filters.
    siblings : int
        The number of pairs excluded because both features are of one attribute.
    """

    i: np.ndarray
    j: np.ndarray
    weight: np.ndarray
    total: int
    siblings: int


@dataclass(frozen=True, eq=False)
class FactoredPairs(PairWeights):
    """W = L Rᵀ off the diagonal; a pair is used where L and R share a column that is non-zero in both rows.

    Attributes
    ----------
    rows, n_features
        See `PairWeights`.
    left, right : (m, q) ndarrays
        The rows of L and R; L Rᵀ is symmetric, and so is which pairs are used.
    repeats : bool
        Whether f has x_j², too, with half of the diagonal of L Rᵀ.
    """

    left: np.ndarray
    right: np.ndarray
    repeats: bool = False

    def _entries(self, at: Places, to: Places) -> tuple[np.ndarray, np.ndarray]:
        left, right = self.left[at], self.right[to]
        met = (left != 0).astype(np.float32) @ (right != 0).astype(np.float32).T > 0
        return left @ right.T, met

    def squares(self) -> np.ndarray | None:
        return 0.5 * (self.left * self.right).sum(axis=1) if self.repeats else None


@dataclass(frozen=True, eq=False)
class GivenPairs(PairWeights):
    """Pair weights given by a parameter W; a pair is used where its entry is not 0.

    Attributes
    ----------
    rows, n_features
        See `PairWeights`.
    W : (m, m) ndarray
        The weights of the pairs of rows.
    """

    W: np.ndarray

    @classmethod
    def of(cls, W: np.ndarray) -> GivenPairs:
        """Return the weights of a symmetric matrix, shape (d, d)."""
        rows = np.flatnonzero(W.any(axis=1))
        return cls(rows, W.shape[0], W[np.ix_(rows, rows)])

    def _entries(self, at: Places, to: Places) -> tuple[np.ndarray, np.ndarray]:
        weight = self.W[at][:, to]
        return weight, weight != 0


def never_zero(values: np.ndarray) -> np.ndarray:
    """Replace 0 by the least positive number, so that a cancelled or underflown interaction stays used."""
    return np.where(values == 0, np.nextafter(0.0, 1.0), values)


def _largest(
    parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], top: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    i, j, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((j, i, -np.abs(weight)))[:top]
    return i[order], j[order], weight[order]
