"""Settings for a first fit: strengths that follow the scale of the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import split
from fmviz.lab.tables.fit import prepare

__all__ = ["SHARES", "first_settings", "largest_gain"]

# Larger data are judged by so many rows and features.
_ROWS = 10_000
_TRIED_ROWS = 20_000
_FEATURES = 1_000
# Trial fits to no more entries of X than this, for so many epochs, take a second or two.
_ENTRIES = 300_000
_EPOCHS = 60
_ENOUGH = 0.8
_LINEAR = 0.02
SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Of the strength beyond which no pair pays, those that are tried."""


def largest_gain(dataset: Dataset) -> float:
    """Return max over pairs i < j of |(1/N) Σ_n r_n x_ni x_nj|, r the residuals of a linear fit.

    It is the largest slope of the loss along the weight of a pair, where all of these are 0. A pair of TI
    pays 4λ + 2λ_p for each unit of its weight |p_i p_j| at least, since (|p_i| + |p_j|)² ≥ 4|p_i p_j|, so
    that beyond a quarter of this number no pair pays by itself.

    Of more than 10,000 rows or 1,000 features a part is taken: rows at even distances, and the features of
    largest sum of squares.
    """
    rows = np.unique(np.linspace(0, dataset.y.size - 1, _ROWS).astype(int))
    X = sp.csr_array(dataset.X[rows], dtype=np.float64)
    squares = np.asarray(X.multiply(X).sum(axis=0)).ravel()
    kept = np.sort(np.argsort(-squares, kind="stable")[:_FEATURES])
    X = sp.csr_array(X[:, kept])
    y = dataset.y[rows] / (2.0 if dataset.task == "binary" else 1.0)
    r = y - y.mean()
    w, *_ = lsqr(X, r, damp=1e-2 * np.sqrt(rows.size), iter_lim=50)
    r -= X @ w
    dense = X.nnz > 0.1 * X.shape[0] * X.shape[1]
    Z = X.toarray() if dense else X
    gain = Z.T @ (Z * r[:, None] if dense else sp.csr_array(X.multiply(r[:, None])))
    gain = np.abs(gain if dense else gain.toarray())
    groups = np.unique([dataset.groups[j] for j in kept], return_inverse=True)[1]
    gain[groups[:, None] == groups[None, :]] = 0.0
    return float(gain.max(initial=0.0)) / rows.size


def first_settings(dataset: Dataset) -> dict[str, Any]:
    """Return settings of an `fmviz.lab.experiment.Experiment` under which a first fit says something.

    The loss follows the task. λ is a share of the strength beyond which no pair pays by itself, a quarter of
    `largest_gain`: the largest of `SHARES` whose short trial fit lowers the loss on rows kept out by at least
    0.8 of what the best of them does. So it follows the scale of the data and of the target. λ_p is a
    quarter of λ.
    """
    largest = largest_gain(dataset) / 4.0
    settings: dict[str, Any] = {
        "rank": 10,
        "regularizer": "ti",
        "lambda_w": _rounded(_LINEAR * largest),
        "lambda_p": 0.0,
        "lambda_sparse": 0.0,
        "solver": "auto",
        "loss": "logistic" if dataset.task == "binary" else "squared",
        "fit_linear": True,
        "fit_intercept": True,
        "init_scale": 0.1,
        "max_epochs": 300,
        "tol": 1e-3,
        "validation": 0.25,
    }
    strengths = [_strengths(share * largest) for share in SHARES]
    trial = _trial(dataset)
    if trial is not None:
        # The first is so strong that no interaction is used.
        tried = [{**strengths[0], "lambda_sparse": _rounded(100.0 * largest)}, *strengths]
        (without, _), *found = [
            _end(trial, Experiment(**{**settings, **one, "max_epochs": _EPOCHS})) for one in tried
        ]
        gains = np.array([without - loss if used else np.nan for loss, used in found])
        if (gains > 0).any():
            return settings | strengths[int(np.argmax(gains >= _ENOUGH * np.nanmax(gains)))]
    return settings | strengths[len(strengths) // 2]


def _strengths(value: float) -> dict[str, float]:
    return {"lambda_p": _rounded(value / 4.0), "lambda_sparse": _rounded(value)}


def _trial(dataset: Dataset) -> Dataset | None:
    """Return some rows to try on; None where they are too few."""
    X: Any = dataset.X
    entries = X.nnz if sp.issparse(X) else X.size
    n = dataset.y.size
    most = int(min(n, _TRIED_ROWS, max(50, _ENTRIES * n / max(1, entries))))
    if most < 20:
        return None
    rows = np.sort(np.random.default_rng(0).permutation(n)[:most])
    return replace(dataset, X=X[rows], y=dataset.y[rows])


def _end(trial: Dataset, experiment: Experiment) -> tuple[float, int]:
    """Return the validation loss of a short fit, NaN where it failed, and its number of interactions."""
    end = prepare(trial, experiment, *split(trial.y.size, 0.25, 0)).end()
    loss = end.metrics["validation_loss"]
    return loss if np.isfinite(loss) else float("nan"), end.used_interactions


def _rounded(value: float) -> float:
    """Return a value to one digit, at least 1e-8."""
    return float(f"{min(max(value, 1e-8), 1e6):.0e}")
