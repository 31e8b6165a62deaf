"""Find the pair of features whose product correlates most with the target, and bin the target by it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.lab.datasets import Dataset
from fmviz.tables.scaling import Scaling

_BINS = 6
# Limit on the number of products that are formed to find the strongest.
_MOST_PRODUCTS = 2e7
_MOST_FEATURES = 2_000


@dataclass(frozen=True, eq=False)
class TargetGrid:
    """The mean target by the values of two features.

    Attributes
    ----------
    pair : (int, int)
        The features of the rows and of the columns.
    rows, columns : tuple of str
        The values, or ranges of values.
    means : (r, c) float64 ndarray
        The mean target of the data in a cell, minus the mean of all; NaN where there are none.
    counts : (r, c) int ndarray
        How many there are.
    mean : float
        The mean of all.
    """

    pair: tuple[int, int]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    means: np.ndarray
    counts: np.ndarray
    mean: float


def strongest_product(dataset: Dataset) -> tuple[int, int] | None:
    """Return the features i < j with the largest ∣Σₙ xₙᵢ xₙⱼ (yₙ − ȳ)∣, both products and y centred.

    None where there are too many products to form, or fewer than two features.
    """
    X: Any = dataset.X
    y = np.asarray(dataset.y, dtype=float)
    n, d = X.shape
    if not 2 <= d <= _MOST_FEATURES or y.ndim != 1:
        return None
    per_row = X.nnz / max(n, 1) if sp.issparse(X) else d
    if n * per_row**2 > _MOST_PRODUCTS:
        return None
    slopes = X.T @ (sp.diags_array(y - y.mean()) @ X)
    slopes = np.triu(np.abs(slopes.toarray() if sp.issparse(slopes) else slopes), 1)
    i, j = np.unravel_index(int(np.argmax(slopes)), slopes.shape)
    return (int(i), int(j)) if slopes[i, j] > 0 else None


def target_grid(dataset: Dataset, i: int, j: int) -> TargetGrid:
    """Return the mean target by two features, whose values are binned if there are many.

    Means are in the target's own unit; of two classes the share of the second.
    """
    y = np.asarray(dataset.y, dtype=float)
    scaling = dataset.target_scaling if isinstance(dataset.target_scaling, Scaling) else Scaling()
    unit, shift = (0.5, 0.5) if dataset.task == "binary" else (scaling.scale, scaling.mean)
    (rows, at), (columns, to) = _ranges(dataset, i), _ranges(dataset, j)
    shape = (len(rows), len(columns))
    cells = np.ravel_multi_index((at, to), shape)
    counts, sums = (np.bincount(cells, w, shape[0] * shape[1]).reshape(shape) for w in (None, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(counts > 0, sums / counts - y.mean(), np.nan)
    return TargetGrid((i, j), rows, columns, means * unit, counts, float(y.mean() * unit + shift))


def _ranges(dataset: Dataset, column: int) -> tuple[tuple[str, ...], np.ndarray]:
    """Return labels for the bins of a feature's values, and the bin of every row."""
    values_of_column: Any = dataset.X[:, [column]]
    values = np.asarray(
        values_of_column.toarray() if sp.issparse(values_of_column) else values_of_column, dtype=float
    ).ravel()
    levels = np.unique(values)
    scaling = dataset.scaling_of(column)

    def words(value: float) -> str:
        return f"{value if scaling is None else scaling.decode(value):.3g}"

    if levels.size <= _BINS:
        return tuple(map(words, levels)), np.searchsorted(levels, values)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]))
    names = (
        f"up to {words(edges[0])}",
        *(f"{words(a)} to {words(b)}" for a, b in pairwise(edges)),
        f"above {words(edges[-1])}",
    )
    return names, np.searchsorted(edges, values, side="left")
