"""The mean absolute error."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Metric


def mean_absolute_error(y: Any, predicted: Any) -> float:
    """Return the mean absolute error, averaged over several targets.

    Parameters
    ----------
    y, predicted : (N,) or (N, m) array_like
        The targets and the predictions.

    Returns
    -------
    float

    Examples
    --------
    >>> from fmviz.metrics import mean_absolute_error
    >>> mean_absolute_error([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 6.0])
    0.5
    """
    return float(np.abs(np.asarray(predicted, dtype=np.float64) - np.asarray(y, dtype=np.float64)).mean())


MAE = Metric(
    "mae",
    "MAE",
    lambda known: known.numbers and mean_absolute_error(*known.numbers),
    ("real", "ordinal"),
    unit="target",
    help=r"the mean absolute error, $\frac1N\sum_n|f(x_n)-y_n|$",
)
