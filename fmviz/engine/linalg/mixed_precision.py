"""Products in double precision with a dense matrix that is stored in single precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# Rows and columns that are widened at a time: few enough entries to stay in a cache.
_SIDE = 256


class Widened:
    """X with every entry raised to a power, never as a whole in double precision.

    Parameters
    ----------
    columns : (d, N) float32 ndarray
        Xᵀ.
    exponent : int
        The power, from 1.
    """

    def __init__(self, columns: np.ndarray, exponent: int = 1) -> None:
        self._columns, self._exponent = columns, exponent

    @property
    def T(self) -> Widened:
        """The transpose."""
        return Widened(self._columns.T, self._exponent)

    def __matmul__(self, right: np.ndarray) -> np.ndarray:
        n_inner, n_rows = self._columns.shape
        out = np.zeros((n_rows, *right.shape[1:]))
        for rows in _ranges(n_rows):
            for inner in _ranges(n_inner):
                wide = self._columns[inner, rows].astype(np.float64)
                raised = wide
                for _ in range(self._exponent - 1):
                    raised = raised * wide
                out[rows] += raised.T @ right[inner]
        return out


def _ranges(count: int) -> Iterator[slice]:
    for begin in range(0, count, _SIDE):
        yield slice(begin, begin + _SIDE)
