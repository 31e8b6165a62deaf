"""Choose by validation how numbers enter a model: as straight lines, or with an additional basis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import ndtr

from fmviz.engine.design import Design
from fmviz.engine.sampling.gibbs import GibbsSampler
from fmviz.engine.sampling.posterior import Posterior
from fmviz.tables.columns import FeatureColumn, NumberColumn

BASES: dict[str, tuple[tuple[int, int], ...]] = {
    "line": (),
    "10 hats": ((1, 10),),
    "20 hats": ((1, 20),),
    "32 bins": ((0, 32),),
    "8 hats and 32 bins": ((1, 8), (0, 32)),
}
"""The bases tried, each with its degree and maximum number of functions."""
USUAL = "10 hats"
"""The bases of numbers if there is no target to validate on."""
EVERY = "every"
"""All of these bases side by side, for an average over machines that each use one of them."""
SIDE_BY_SIDE = ((1, 10), (1, 20), (1, 8), (0, 32))

_RANK, _BURN_IN, _DRAWS = 8, 30, 60
_FOLDS = 3
# Numbers are easier to interpret than their logarithms, which must reduce the squared error by this share.
_LOGARITHM_GAIN = 0.1
# More rows do not improve the choice, and take longer.
MOST_ROWS = 6_000
"""The rows on which bases are compared."""
_ONE_FOLD = 3_000


def features_of_bases(columns: Sequence[FeatureColumn]) -> dict[str, np.ndarray]:
    """Return the mask of the features of every name of bases, (d,); empty unless all stand side by side.

    Every mask contains the straight lines, and the features of words.
    """
    specs = {basis.spec for column in columns if isinstance(column, NumberColumn) for basis in column.curves}
    if specs != {*SIDE_BY_SIDE}:
        return {}
    return {name: np.concatenate([column.in_bases(own) for column in columns]) for name, own in BASES.items()}


def best_bases(
    encoded: Mapping[str, Callable[[np.ndarray], sp.csr_array]],
    y: np.ndarray,
    row_groups: np.ndarray | None = None,
    priors: Mapping[str, np.ndarray] | None = None,
) -> tuple[str, dict[str, float]]:
    """Return the bases whose Bayesian machine predicts best, and the losses of all.

    Straight lines are kept unless a basis is better by at least one standard error of the difference.

    Parameters
    ----------
    encoded : mapping of str to callable
        For each name of bases, a function of rows that returns X.
    y : (N,) ndarray
        Numbers, or class labels, of which the most frequent is separated from the others; rows with a missing
        value are ignored.
    row_groups : (N,) int ndarray, optional
        The group number of every row; rows of a group are fitted together, or held out together.

    priors : mapping of str to ndarray, optional
        For each name of bases, the number of the prior of every feature; by default they share one.

    Returns
    -------
    str, dict
        The chosen name, and by name the mean squared error divided by the variance of y, or the mean log
        loss.
    """
    order = np.random.default_rng(0).permutation(np.flatnonzero(pd.notna(y)))[:MOST_ROWS]
    y = y[order]
    numbers = np.issubdtype(y.dtype, np.number) and len(np.unique(y)) > 2
    if numbers:
        target = (y - y.mean()) / (y.std() or 1.0)
    else:
        labels, counts = np.unique(y.astype(str), return_counts=True)
        target = np.where(y.astype(str) == labels[counts.argmax()], 1.0, -1.0)
    folds, losses = _folds(order, row_groups), {}
    for name, rows_of in encoded.items():
        X = rows_of(order)
        prior = np.zeros(X.shape[1], dtype=int) if priors is None else priors[name]
        each = [
            _losses(X, target, prior, np.setdiff1d(np.arange(len(order)), fold), fold, not numbers)
            for fold in folds
        ]
        losses[name] = np.concatenate(each)
    best = min(losses, key=lambda name: losses[name].mean())
    if "line" in losses and best != "line":
        gain = losses["line"] - losses[best]
        if gain.mean() < gain.std() / np.sqrt(len(gain)):
            best = "line"
    return best, {name: float(loss.mean()) for name, loss in losses.items()}


def prefers_logarithm(X: sp.csr_array, y: np.ndarray, row_groups: np.ndarray | None = None) -> bool:
    """Return whether a machine of the logarithm of y predicts y better, by a standard error and a tenth."""
    order = np.random.default_rng(0).permutation(y.size)[:MOST_ROWS]
    rows, y = X[order], y[order]
    gains, losses, prior = [], [], np.zeros(X.shape[1], dtype=int)
    for fold in _folds(order, row_groups):
        inside = np.setdiff1d(np.arange(y.size), fold)
        errors = []
        for target, inverse in ((np.log(y), np.exp), (y, np.positive)):
            mean, scale = target[inside].mean(), target[inside].std() or 1.0
            f = _scores(rows, (target - mean) / scale, prior, inside, fold, binary=False)
            errors.append(np.square(y[fold] - inverse(mean + scale * f)))
        gains.append(errors[1] - errors[0])
        losses.append(errors[1].mean())
    gain = np.concatenate(gains)
    return bool(gain.mean() > max(gain.std() / np.sqrt(gain.size), _LOGARITHM_GAIN * np.mean(losses)))


def _folds(order: np.ndarray, row_groups: np.ndarray | None) -> list[np.ndarray]:
    """Return places in `order` that are held out together, a single fold of many rows."""
    parts = np.array_split(np.arange(len(order)), _FOLDS)
    if row_groups is not None and len(several := np.unique(row_groups[order])) > 1:
        number = np.searchsorted(several, row_groups[order])
        parts = [np.flatnonzero(number % _FOLDS == fold) for fold in range(min(_FOLDS, len(several)))]
    return parts if len(order) < _ONE_FOLD else parts[:1]


def _losses(
    X: sp.csr_array, y: np.ndarray, prior: np.ndarray, inside: np.ndarray, out: np.ndarray, binary: bool
) -> np.ndarray:
    """Return the losses of held-out rows under a Bayesian machine fitted to the others."""
    scores = _scores(X, y, prior, inside, out, binary)
    if binary:
        return -np.log(np.clip(ndtr(y[out] * scores), 1e-9, 1.0))
    return np.square(y[out] - scores)


def _scores(
    X: sp.csr_array, y: np.ndarray, prior: np.ndarray, inside: np.ndarray, out: np.ndarray, binary: bool
) -> np.ndarray:
    """Return the predictions for held-out rows of a Bayesian machine fitted to the others."""
    rng = np.random.default_rng(0)
    sampler = GibbsSampler(Design(X[inside]), y[inside], _RANK, binary, True, True, prior, rng)
    draws = list(islice(sampler.draws(), _BURN_IN + _DRAWS))[_BURN_IN:]
    return Posterior.of([draws], binary).scores(X[out])
