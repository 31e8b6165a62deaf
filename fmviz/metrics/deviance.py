"""The mean Poisson deviance, and the share of deviance explained."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmviz.engine.losses import Loss, Poisson

from .base import Metric, Predictions


def mean_poisson_deviance(y: Any, predicted: Any) -> float:
    """Return the mean Poisson deviance, twice the loss "poisson", over all rows and targets.

    Parameters
    ----------
    y, predicted : (N,) or (N, m) array_like
        The targets, at least 0, and the predicted means, above 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from fmviz.metrics import mean_poisson_deviance
    >>> round(mean_poisson_deviance([0, 1, 3], [1.0, 1.0, 2.0]), 4)
    0.8109
    """
    return _deviance(Poisson(), np.asarray(y), np.log(np.asarray(predicted, dtype=np.float64)))


def explained_deviance(y: Any, predicted: Any) -> float:
    """Return D² = 1 − D/D₀, with the mean Poisson deviances D of the predictions and D₀ of the mean of y.

    Parameters
    ----------
    y, predicted : (N,) array_like
        As for `mean_poisson_deviance`.

    Returns
    -------
    float
        At most 1; NaN for a constant y.

    Examples
    --------
    >>> from fmviz.metrics import explained_deviance
    >>> round(explained_deviance([0, 1, 3], [0.5, 1.0, 2.5]), 4)
    0.7082
    """
    return _explained(Poisson(), np.asarray(y), np.log(np.asarray(predicted, dtype=np.float64)))


def _deviance(loss: Loss, y: np.ndarray, f: np.ndarray) -> float:
    return 2.0 * float(loss.value(np.ravel(f), np.ravel(y).astype(np.float64)).mean())


def _explained(loss: Loss, y: np.ndarray, f: np.ndarray) -> float:
    columns = y.reshape(len(y), -1)
    constant = np.broadcast_to([loss.score(mean) for mean in columns.mean(axis=0)], columns.shape)
    least = _deviance(loss, columns, constant)
    return 1.0 - _deviance(loss, y, f) / least if least > 0.0 else float("nan")


def _measured(known: Predictions, function: Any) -> float | None:
    """Return a function of loss, target and scores for a loss with a log link, otherwise None."""
    loss = known.loss
    return function(loss, known.target.values, known.f) if loss is not None and loss.log_link else None


D2 = Metric(
    "d2",
    "D²",
    lambda known: _measured(known, _explained),
    ("real",),
    better="larger",
    axis="linear",
    limits=(None, 1.0),
    help="the share of deviance explained, 1 minus the deviance divided by that of the mean target",
    log_link=True,
)
DEVIANCE = Metric(
    "deviance",
    "Deviance",
    lambda known: _measured(known, _deviance),
    ("real",),
    help="the mean deviance of the target from its predicted mean, twice the loss",
    log_link=True,
)
