"""The strongest interactions of a fit, with how often both features occur together in the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.engine.interactions.of_order import pairs_of
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.lab.datasets import Dataset

__all__ = ["mean_squares", "named_pairs", "pair_table", "rows_with_both"]

# Entries of the columns that are looked at together.
_BLOCK = 4_000_000
# Whoever looks at one pair looks at others.
_by_columns: WeakKeyDictionary[Dataset, Any] = WeakKeyDictionary()


def rows_with_both(dataset: Dataset, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return in how many rows of the data both features of each pair are non-zero."""
    counts = np.empty(i.size, dtype=int)
    for part, one, two in _columns(dataset, i, j):
        if sp.issparse(one):
            counts[part] = np.asarray((one != 0).multiply(two != 0).sum(axis=0)).ravel()
        else:
            counts[part] = np.count_nonzero((one != 0) & (two != 0), axis=0)
    return counts


def mean_squares(dataset: Dataset, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return the mean of (x_i x_j)² over the rows of the data for each pair."""
    means = np.empty(i.size)
    for part, one, two in _columns(dataset, i, j):
        if sp.issparse(one):
            means[part] = np.asarray(one.multiply(two).power(2).mean(axis=0)).ravel()
        else:
            means[part] = np.square(one * two).mean(axis=0)
    return means


def _columns(dataset: Dataset, i: np.ndarray, j: np.ndarray) -> Iterator[tuple[slice, Any, Any]]:
    X: Any = dataset.X
    if sp.issparse(X):
        if dataset not in _by_columns:
            _by_columns[dataset] = sp.csc_array(X)
        X = _by_columns[dataset]
    step = max(1, _BLOCK // max(1, X.shape[0]))
    for begin in range(0, i.size, step):
        part = slice(begin, begin + step)
        yield part, X[:, i[part]], X[:, j[part]]


def named_pairs(i: np.ndarray, j: np.ndarray, weight: np.ndarray, dataset: Dataset) -> pd.DataFrame:
    """Return pairs with the names of their features; columns as in `pair_table`."""
    names = np.asarray(dataset.feature_names, dtype=object)
    return pd.DataFrame(
        {
            "feature_i": names[i],
            "feature_j": names[j],
            "weight": weight,
            "rows_with_both": rows_with_both(dataset, i, j),
        }
    )


def pair_table(model: Model, parameters: Parameters, dataset: Dataset, top: int) -> pd.DataFrame:
    """Return the pairs of the largest weights.

    Parameters
    ----------
    model : Model
        With its own parameters.
    parameters : Parameters
        What was fitted.
    dataset : Dataset
        Names the features.
    top : int
        At most so many pairs.

    Returns
    -------
    DataFrame
        Columns ``feature_i``, ``feature_j``, ``weight`` and ``rows_with_both``, sorted by falling |weight|;
        used pairs alone. Of several outputs each has so many, one after the other, and the column ``output``
        comes first.

    Raises
    ------
    ValueError
        If the model has no pairs.
    """
    parts = []
    for c in range(model.n_outputs_of(parameters)):
        found = pairs_of(*model.of_output(parameters, c)).ranked(top)
        parts.append(named_pairs(found.i, found.j, found.weight, dataset))
        if dataset.outputs:
            parts[-1].insert(0, "output", dataset.outputs[c])
    return pd.concat(parts, ignore_index=True)
