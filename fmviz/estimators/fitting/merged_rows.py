"""Rows that are the same, as one row of their weights together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.engine.target import Target


def merged_rows(X: Any, target: Target, sample_weight: Any) -> tuple[Any, Target, np.ndarray]:
    """Return every row of X and y once, in an order of its own, with the sum of its weights.

    Where a fit does not end at its minimum, but at a tolerance, rounding decides between ends that are alike.
    A row of weight 2 and two rows then lead to different ones, unless they are the same data.

    Parameters
    ----------
    X : (N, d) ndarray or sparse matrix
        The features, checked.
    target : Target
        Of N rows.
    sample_weight : (N,) array_like or None
        Weights, which are not checked: what a problem refuses is returned as it is.
    """
    n = X.shape[0]
    weights = np.ones(n) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
    allowed = weights.shape == (n,) and len(target.values) == n and (weights >= 0.0).all() and weights.any()
    if not allowed:
        return X, target, weights
    if sp.issparse(X):
        rows = sp.csr_array(X)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        parts = [
            rows.indices[start:end].tobytes() + rows.data[start:end].tobytes()
            for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        ]
    else:
        parts = [row.tobytes() for row in np.ascontiguousarray(X) + 0.0]
    places: dict[bytes, int] = {}
    totals: dict[bytes, float] = {}
    values = np.ascontiguousarray(target.values) + 0.0
    for place in np.flatnonzero(weights).tolist():
        key = values[place].tobytes() + parts[place]
        places.setdefault(key, place)
        totals[key] = totals.get(key, 0.0) + float(weights[place])
    order = sorted(places)
    first = [places[key] for key in order]
    return X[first], replace(target, values=target.values[first]), np.array([totals[key] for key in order])
