"""Pairs of columns beyond chance: residuals of the columns alone, summed over the cells of two columns.

If the columns act alone, the residuals in a cell of two columns have mean 0, and random signs do not change
the distribution of their sums, whatever the variance of each row. A pair is named if its sums, without those
of its rows and columns, exceed 99 % of the largest of all pairs under random signs. Its cells are then
subtracted, and the next pair is looked for: a pair that only repeats a stronger one is not named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp

SIGNS = 200
"""The number of random sets of signs."""
LEVEL = 0.99
_MOST_NAMED = 12
# After the first pair, only those with the largest scores are candidates.
_CANDIDATES = 40
# Rows and signs that limit the time.
_MOST_ROWS = 10_000
_MOST_VISITS = 4e9
# Added to the rows of a cell: means of few rows are shrunk.
_PRIOR_ROWS = 2.0
# A named pair explains at least this part of what all named pairs explain.
_LEAST_SHARE = 0.02
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Beyond:
    """A pair of columns beyond chance.

    Attributes
    ----------
    first, second : int
        The columns.
    score : float
        The deviations by which its sums exceed their mean under random signs.
    share : float
        The part of the variance of the residuals that its cells explain, beyond stronger pairs.
    """

    first: int
    second: int
    score: float
    share: float


def beyond_chance(
    codes: Mapping[int, np.ndarray],
    residuals: np.ndarray,
    row_groups: np.ndarray | None = None,
    seed: int = 0,
) -> tuple[Beyond, ...]:
    """Return the pairs of columns beyond chance, the one that explains most first.

    Parameters
    ----------
    codes : mapping of int to (N,) int ndarray
        For each column, the level or the range of numbers of every row.
    residuals : (N,) ndarray
        The residuals of a model of the columns alone.
    row_groups : (N,) int ndarray, optional
        The group of every row; rows of a group have the same sign.
    seed : int
        The seed of the signs.
    """
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(residuals.size)[:_MOST_ROWS])
    r = residuals[rows] - residuals[rows].mean()
    total = float(np.square(r).sum())
    groups = np.arange(rows.size) if row_groups is None else row_groups[rows]
    every = (_Cells.of(a, b, codes[a][rows], codes[b][rows]) for a, b in combinations(codes, 2))
    pairs = [pair for pair in every if pair is not None]
    if not pairs or not total:
        return ()
    number = int(np.clip(_MOST_VISITS / (rows.size * len(pairs)), 20, SIGNS))
    line = np.inf
    named: list[Beyond] = []
    while pairs and len(named) < _MOST_NAMED:
        signs = rng.choice([-1.0, 1.0], (groups.max() + 1, number))[groups]
        each = np.column_stack([r, r[:, None] * signs])
        each -= each.mean(axis=0)
        sums = np.array([pair.sums(each) for pair in pairs])
        mean, deviation = sums[:, 1:].mean(axis=1), sums[:, 1:].std(axis=1)
        scores = (sums - mean[:, None]) / np.maximum(deviation, _ROUNDING * total)[:, None]
        if not named:
            line = float(np.quantile(scores[:, 1:].max(axis=0), LEVEL))
        best = int(scores[:, 0].argmax())
        if scores[best, 0] <= line:
            break
        pair, before = pairs[best], float(np.square(r).sum())
        r = r - pair.means(r)
        r -= r.mean()
        share = (before - float(np.square(r).sum())) / total
        named.append(Beyond(pair.first, pair.second, float(scores[best, 0]), share))
        pairs = [pairs[i] for i in np.argsort(-scores[:, 0], kind="stable")[:_CANDIDATES] if i != best]
    least = _LEAST_SHARE * sum(pair.share for pair in named)
    return tuple(sorted((pair for pair in named if pair.share >= least), key=lambda pair: -pair.share))


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of two columns.

    `members` has the cell of every row, (C, N); `rows` their numbers of rows; `alone` an orthonormal basis of
    what the rows and columns of the cells can be by themselves.
    """

    first: int
    second: int
    members: sp.csr_array
    rows: np.ndarray
    alone: np.ndarray

    @classmethod
    def of(cls, first: int, second: int, a: np.ndarray, b: np.ndarray) -> _Cells | None:
        """Return the cells, or None if the columns alone explain all sums over cells."""
        width = b.max() + 1
        cells, place, rows = np.unique(a * width + b, return_inverse=True, return_counts=True)
        levels = np.zeros((cells.size, a.max() + 1 + width))
        levels[np.arange(cells.size), cells // width] = np.sqrt(rows)
        levels[np.arange(cells.size), a.max() + 1 + cells % width] = np.sqrt(rows)
        basis, sizes, _ = np.linalg.svd(levels, full_matrices=False)
        alone = basis[:, sizes > _ROUNDING * sizes[0]]
        if alone.shape[1] == cells.size:
            return None
        members = sp.csr_array((np.ones(place.size), (place, np.arange(place.size))))
        return cls(first, second, members, rows.astype(float), alone)

    def sums(self, residuals: np.ndarray) -> np.ndarray:
        """Return Σ_cells S²/n for every column of residuals, without what rows or columns explain alone."""
        sums = (self.members @ residuals) / np.sqrt(self.rows)[:, None]
        return np.square(sums - self.alone @ (self.alone.T @ sums)).sum(axis=0)

    def means(self, residuals: np.ndarray) -> np.ndarray:
        """Return the mean of the cell of every row, shrunk if the cell has few rows."""
        means = (self.members @ residuals) / (self.rows + _PRIOR_ROWS)
        return self.members.T @ means
