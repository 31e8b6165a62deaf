"""Columns and pairs of columns beyond chance: residuals summed over the cells of one or two columns.

If the columns act alone, their residuals in a cell of two columns have mean 0, and random signs do not change
the distribution of their sums, whatever the variance of each row. A pair is named if its sums, without those
of its rows and columns, exceed 99 % of the largest of all pairs under random signs. Its cells are then
subtracted, and the next pair is looked for: a pair that only repeats a stronger one is not named. Single
columns are named alike, by the residuals of the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp

SIGNS = 200
"""The number of random sets of signs."""
LEVEL = 0.99
# For columns and for pairs: the maximum number of named ones, of random signs after the first of them, and
# the smallest part of what all named ones explain.
_MOST_NAMED, _LATER_SIGNS, _LEAST_SHARE = (60, 12), (50, SIGNS), (0.0, 0.02)
# After the first, only those with the largest scores are candidates.
_CANDIDATES = 40
# Rows and signs that limit the time.
_MOST_ROWS = 10_000
_MOST_VISITS = 4e9
# Added to the rows of a cell: means of few rows are shrunk.
_PRIOR_ROWS = 2.0
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Beyond:
    """A column or a pair of columns beyond chance.

    Attributes
    ----------
    columns : tuple of int
        The columns.
    score : float
        The deviations by which its sums exceed their mean under random signs.
    share : float
        The part of the variance of the residuals that its cells explain, beyond stronger ones.
    """

    columns: tuple[int, ...]
    score: float
    share: float


def beyond_chance(
    codes: Mapping[int, np.ndarray],
    residuals: np.ndarray,
    row_groups: np.ndarray | None = None,
    seed: int = 0,
    size: int = 2,
) -> tuple[float, tuple[Beyond, ...]]:
    """Return the chance line of scores, and the columns or pairs beyond it, by descending share.

    Parameters
    ----------
    codes : mapping of int to (N,) int ndarray
        For each column, the level or the range of numbers of every row.
    residuals : (N,) ndarray
        The residuals of a model of the columns alone, or of the mean.
    row_groups : (N,) int ndarray, optional
        The group of every row; rows of a group have the same sign.
    seed : int
        The seed of the signs.
    size : {1, 2}
        Whether columns or pairs of columns are tested.
    """
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(residuals.size)[:_MOST_ROWS])
    r = residuals[rows] - residuals[rows].mean()
    total = float(np.square(r).sum())
    groups = np.arange(rows.size) if row_groups is None else row_groups[rows]
    every = (_Cells.of(each, [codes[column][rows] for column in each]) for each in combinations(codes, size))
    sets = [cells for cells in every if cells is not None]
    line = np.inf
    if not sets or not total:
        return line, ()
    number = int(np.clip(_MOST_VISITS / (rows.size * len(sets)), 20, SIGNS))
    named: list[Beyond] = []
    while sets and len(named) < _MOST_NAMED[size - 1]:
        signs = rng.choice([-1.0, 1.0], (groups.max() + 1, number))[groups]
        each = np.column_stack([r, r[:, None] * signs])
        each -= each.mean(axis=0)
        sums = np.array([cells.sums(each) for cells in sets])
        mean, deviation = sums[:, 1:].mean(axis=1), sums[:, 1:].std(axis=1)
        scores = (sums - mean[:, None]) / np.maximum(deviation, _ROUNDING * total)[:, None]
        if not named:
            line = float(np.quantile(scores[:, 1:].max(axis=0), LEVEL))
            number = min(number, _LATER_SIGNS[size - 1])
        best = int(scores[:, 0].argmax())
        if scores[best, 0] <= line:
            break
        before = float(np.square(r).sum())
        r = r - sets[best].means(r)
        r -= r.mean()
        share = (before - float(np.square(r).sum())) / total
        named.append(Beyond(sets[best].columns, float(scores[best, 0]), share))
        sets = [sets[i] for i in np.argsort(-scores[:, 0], kind="stable")[:_CANDIDATES] if i != best]
    least = _LEAST_SHARE[size - 1] * sum(each.share for each in named)
    return line, tuple(sorted((each for each in named if each.share >= least), key=lambda each: -each.share))


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of one or two columns.

    `members` has the cell of every row, (C, N); `rows` their numbers of rows; `alone` an orthonormal basis of
    what the rows and columns of the cells, or a constant, can be by themselves.
    """

    columns: tuple[int, ...]
    members: sp.csr_array
    rows: np.ndarray
    alone: np.ndarray

    @classmethod
    def of(cls, columns: tuple[int, ...], codes: Sequence[np.ndarray]) -> _Cells | None:
        """Return the cells, or None if the basis explains all sums over cells."""
        widths = [code.max() + 1 for code in codes]
        joint = np.ravel_multi_index(codes, widths)
        cells, place, rows = np.unique(joint, return_inverse=True, return_counts=True)
        levels = zip(widths, np.unravel_index(cells, widths), strict=True)
        parts = (
            [np.eye(width)[level] for width, level in levels]
            if len(codes) > 1
            else np.ones((1, cells.size, 1))
        )
        basis, sizes, _ = np.linalg.svd(np.hstack([*parts]) * np.sqrt(rows)[:, None], full_matrices=False)
        alone = basis[:, sizes > _ROUNDING * sizes[0]]
        if alone.shape[1] == cells.size:
            return None
        members = sp.csr_array((np.ones(place.size), (place, np.arange(place.size))))
        return cls(columns, members, rows.astype(float), alone)

    def sums(self, residuals: np.ndarray) -> np.ndarray:
        """Return Σ_cells S²/n for every column of residuals, without what rows or columns explain alone."""
        sums = (self.members @ residuals) / np.sqrt(self.rows)[:, None]
        return np.square(sums - self.alone @ (self.alone.T @ sums)).sum(axis=0)

    def means(self, residuals: np.ndarray) -> np.ndarray:
        """Return the mean of the cell of every row, shrunk if the cell has few rows."""
        return self.members.T @ ((self.members @ residuals) / (self.rows + _PRIOR_ROWS))
