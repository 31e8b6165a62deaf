"""Metrics of predictions: errors, accuracy, probabilities, deviance and rankings."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmviz.engine.losses import Loss

from .base import Metric, Predictions

CLASSES = ("binary", "class", "ordinal", "several")


def rmse(y: Any, predicted: Any) -> float:
    """Return the root mean squared error, averaged over several targets.

    Parameters
    ----------
    y, predicted : (N,) or (N, m) array_like
        The targets and the predictions.

    Returns
    -------
    float

    Examples
    --------
    >>> from fmviz.metrics import rmse
    >>> rmse([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 6.0])
    1.0
    >>> rmse([[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [1.0, 2.0]])
    1.5
    """
    error = np.square(np.asarray(predicted, dtype=np.float64) - np.asarray(y, dtype=np.float64))
    return float(np.sqrt(error.mean(axis=0)).mean())


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


def ndcg(y: Any, predicted: Any, at: int, groups: Any = None) -> float:
    """Return the normalized discounted cumulative gain at rank `at`, with the gain 2^y − 1.

    This is DCG/IDCG with DCG = Σ_{r ≤ at} (2^{y_r} − 1)/log2(r + 1) over the rows in descending order of
    the predictions, and IDCG the same in descending order of y. Ties are averaged over all orders.

    Parameters
    ----------
    y : (N,) array_like
        Relevances of at least 0, such as ratings.
    predicted : (N,) array_like
        The scores that rank the rows.
    at : int
        The rank cutoff: 1 for nDCG@1.
    groups : (N,) array_like, optional
        Rows are ranked within their group, such as the rows of a user, and the result is the mean over all
        groups with a row with y > 0; by default, all rows form one group.

    Returns
    -------
    float
        From 0 to 1; NaN if no y is positive.

    Examples
    --------
    >>> from fmviz.metrics import ndcg
    >>> round(ndcg([3, 1, 2], [0.9, 0.8, 0.1], at=1), 3)
    1.0
    >>> round(ndcg([3, 1, 2], [0.1, 0.8, 0.9], at=1), 3)
    0.429
    """
    gain = np.exp2(np.asarray(y, dtype=np.float64)) - 1.0
    scores = np.asarray(predicted, dtype=np.float64)
    if (gain < 0.0).any():
        raise ValueError("y contains a negative number; relevances must be at least 0.")
    group = np.zeros(gain.size, dtype=int) if groups is None else np.unique(groups, return_inverse=True)[1]
    best = _discounted(gain, gain, group, at)
    achieved = _discounted(gain, scores, group, at)
    ranked = best > 0.0
    return float(np.mean(achieved[ranked] / best[ranked])) if ranked.any() else float("nan")


def _discounted(gain: np.ndarray, scores: np.ndarray, group: np.ndarray, at: int) -> np.ndarray:
    """Return the discounted gain of the top rows of every group, ranked by score."""
    order = np.lexsort((-scores, group))
    gain, scores, group = gain[order], scores[order], group[order]
    first = np.r_[True, group[1:] != group[:-1]]
    place = np.arange(gain.size) - np.flatnonzero(first)[np.cumsum(first) - 1]
    # The mean over all orders of tied rows.
    alike = np.cumsum(first | np.r_[True, scores[1:] != scores[:-1]]) - 1
    shared = (np.bincount(alike, gain) / np.bincount(alike))[alike]
    return np.bincount(group, np.where(place < at, shared / np.log2(place + 2.0), 0.0))


def roc_auc(y: np.ndarray, f: np.ndarray) -> float:
    """Return the area under the ROC curve of scores f for labels y in {-1, +1}; NaN for a single class."""
    positive = y > 0
    n_positive = int(positive.sum())
    n_negative = y.size - n_positive
    if n_positive == 0 or n_negative == 0 or not np.isfinite(f).all():
        return float("nan")
    from scipy.stats import rankdata  # Slow to import.

    ranks = rankdata(f)[positive].sum()
    return float((ranks - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def auc_by_row(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return numbers of the rows, shape (N,), whose mean is `roc_auc`, and of whose spread is its error.

    They are the area plus what DeLong's variance is made of: of each row the share of the other class that
    it is on the right side of. NaN for a single class.
    """
    from scipy.stats import rankdata

    positive, shares = y > 0, np.full(y.size, np.nan)
    if positive.all() or not positive.any():
        return shares
    for own in (positive, ~positive):
        shares[own] = (rankdata(f)[own] - rankdata(f[own])) / (~own).sum()
    shares[~positive] = 1.0 - shares[~positive]
    area = shares[positive].mean()
    return area + (shares - area) * y.size / np.where(positive, positive.sum(), (~positive).sum())


def standard_error(values: np.ndarray, groups: np.ndarray | None = None) -> float:
    """Return the standard error of the mean of some values; those of one group depend on each other."""
    sums = values - values.mean()
    if groups is not None:
        sums = np.bincount(np.unique(groups, return_inverse=True)[1], sums)
    return float(np.sqrt(np.square(sums).sum()) / values.size)


def _auc(known: Predictions) -> float:
    scores = known.f.reshape(len(known.f), -1).T
    return float(np.mean([roc_auc(y.values, f) for y, f in zip(known.target.outputs, scores, strict=True)]))


def _accuracy(known: Predictions) -> float:
    y, kind = known.target.values, known.target.kind
    if kind in ("class", "ordinal"):
        return float(np.mean(known.target.chosen(known.f) == y))
    return float(np.mean((known.f >= 0.0 if kind == "binary" else known.f > 0.0) == (y > 0.0)))


def _log_loss(known: Predictions) -> float | None:
    if known.shares is None:
        return None
    y = known.target.values
    right = np.maximum(known.shares[np.arange(y.size), y.astype(int)], np.finfo(float).tiny)
    return float(-np.mean(np.log(right)))


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


RMSE = Metric(
    "rmse",
    "RMSE",
    lambda known: known.numbers and rmse(*known.numbers),
    ("real", "ordinal"),
    unit="target",
    help=r"$\sqrt{\frac1N\sum_n(f(x_n)-y_n)^2}$",
)
AUC = Metric(
    "auc",
    "AUC",
    _auc,
    CLASSES,
    better="larger",
    axis="linear",
    limits=(0.0, 1.0),
    help="the probability that a row of the positive class is ranked above one of the negative class",
)
ACCURACY = Metric(
    "accuracy",
    "Accuracy",
    _accuracy,
    CLASSES,
    better="larger",
    axis="linear",
    limits=(0.0, 1.0),
    help="the share of rows whose class is predicted correctly",
)
LOG_LOSS = Metric(
    "log_loss",
    "Log loss",
    _log_loss,
    ("class", "ordinal"),
    help="the mean negative log-probability of the true class",
)
MAE = Metric(
    "mae",
    "MAE",
    lambda known: known.numbers and mean_absolute_error(*known.numbers),
    ("real", "ordinal"),
    unit="target",
    help=r"the mean absolute error, $\frac1N\sum_n|f(x_n)-y_n|$",
)
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
LOSS = Metric(
    "loss",
    "Loss",
    lambda known: known.risk,
    ("real", *CLASSES),
    help="the mean loss of the predictions, without penalties",
    listed=False,
)
