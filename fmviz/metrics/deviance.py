"""The mean deviance of losses with a log link, and the share of deviance explained."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmviz.engine.losses import Loss

from .base import Metric, Predictions


def _deviance(loss: Loss, y: np.ndarray, f: np.ndarray) -> float:
    return 2.0 * float(loss.value(f.ravel(), y.ravel()).mean())


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
