"""The strongest pairs of a fit in words, with how many rows of the data have both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.engine.models import Model
from fmviz.engine.pairs import ranked_pairs, ranked_weights
from fmviz.engine.snapshot import Parameters
from fmviz.lab.datasets import Dataset
from fmviz.lab.runner import in_pairs

__all__ = ["pair_table", "rows_with_both"]

# Entries of the columns that are looked at together.
_BLOCK = 4_000_000


def rows_with_both(dataset: Dataset, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return in how many rows of the data both features of each pair are non-zero."""
    X: Any = sp.csc_array(dataset.X) if sp.issparse(dataset.X) else dataset.X
    counts = np.empty(i.size, dtype=int)
    step = max(1, _BLOCK // max(1, X.shape[0]))
    for begin in range(0, i.size, step):
        part = slice(begin, begin + step)
        one, two = X[:, i[part]], X[:, j[part]]
        if sp.issparse(one):
            counts[part] = np.asarray((one != 0).multiply(two != 0).sum(axis=0)).ravel()
        else:
            counts[part] = np.count_nonzero((one != 0) & (two != 0), axis=0)
    return counts


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
        used pairs alone.

    Raises
    ------
    ValueError
        If the model has no pairs.
    """
    pairs = in_pairs(model, parameters)
    if pairs is None:
        raise ValueError(f"The {model.label.lower()} has no weights of pairs that could be ranked.")
    if pairs.W is not None:
        i, j, weight = ranked_weights(pairs.W, top)
    else:
        i, j, weight = ranked_pairs(pairs.P, top, pairs.coefficients)
    names = np.asarray(dataset.feature_names, dtype=object)
    return pd.DataFrame(
        {
            "feature_i": names[i],
            "feature_j": names[j],
            "weight": weight,
            "rows_with_both": rows_with_both(dataset, i, j),
        }
    )
