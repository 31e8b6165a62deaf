"""Check X and y as scikit-learn does, and what it takes on trust."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import column_or_1d, validate_data

from fmviz.engine.design import check_format


def checked_data(estimator: Any, X: Any, *y: Any, **checks: Any) -> Any:
    """Return X, or X and y, as arrays of finite numbers, or y of labels.

    Raises
    ------
    ValueError
        If the data are not allowed, with the reason.
    """
    check_format(X)
    for values in y:
        _check_present(values)
    return validate_data(estimator, X, *y, **{"accept_sparse": ("csc", "csr"), "dtype": np.float64, **checks})


def _check_present(y: Any) -> None:
    """Raise ValueError where a target is None, which scikit-learn takes for a label or turns into NaN."""
    if y is None or sp.issparse(y) or isinstance(y, str):
        return
    values = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
    if values.dtype != object:
        return
    missing = next((n for n, value in enumerate(values.ravel().tolist()) if value is None), None)
    if missing is not None:
        row = missing * len(values) // values.size
        raise ValueError(
            f"y is None in row {row} (counted from 0), and every row needs a target. Leave out the rows "
            "without one."
        )


def one_column(y: Any) -> np.ndarray:
    """Return a checked target without a second axis of length 1, about which scikit-learn warns."""
    dense = np.asarray(y.toarray() if sp.issparse(y) else y)
    return column_or_1d(dense, warn=True) if dense.ndim == 2 and dense.shape[1] == 1 else dense
