"""Choose curves of numbers by validation, and find columns that repeat others or alone tell the target."""

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
_MOST_FEATURES = 20_000
# Columns are equal, and tell the target, from this share of explained variance, or of explained classes.
_EQUAL = 0.99
_MOST_COMPARED = 5_000
# Levels, and ranges of numbers, that are compared; each needs some rows.
_MOST_CODES, _ROWS_PER_CODE = 100, 10
_RANGES = 50
# A number with more values, such as an hour, is not another spelling of a word.
_MOST_FEW = 24


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
        losses[name] = np.concatenate([_losses(X, target, prior, *fold, not numbers) for fold in folds])
    best = min(losses, key=lambda name: losses[name].mean())
    gain = losses.get("line", losses[best]) - losses[best]
    if gain.mean() < gain.std() / np.sqrt(len(gain)):
        best = "line"
    return best, {name: float(loss.mean()) for name, loss in losses.items()}


def prefers_logarithm(X: sp.csr_array, y: np.ndarray, row_groups: np.ndarray | None = None) -> bool:
    """Return whether a machine of the logarithm of y predicts y better, by a standard error and a tenth."""
    order = np.random.default_rng(0).permutation(y.size)[:MOST_ROWS]
    rows, y, prior = X[order], y[order], np.zeros(X.shape[1], dtype=int)
    logarithms, numbers = list[np.ndarray](), list[np.ndarray]()
    for inside, out in _folds(order, row_groups):
        for errors, target, inverse in ((logarithms, np.log(y), np.exp), (numbers, y, np.positive)):
            mean, scale = target[inside].mean(), target[inside].std() or 1.0
            f = _scores(rows, (target - mean) / scale, prior, inside, out, binary=False)
            errors.append(np.square(y[out] - inverse(mean + scale * f)))
    gain = np.concatenate(numbers) - np.concatenate(logarithms)
    least = _LOGARITHM_GAIN * np.mean([errors.mean() for errors in numbers])
    return bool(gain.mean() > max(gain.std() / np.sqrt(gain.size), least))


def _folds(order: np.ndarray, row_groups: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return folds of places in `order`, those of training and those held out; a single fold of many rows."""
    places = np.arange(len(order))
    parts = np.array_split(places, _FOLDS)
    if row_groups is not None and len(several := np.unique(row_groups[order])) > 1:
        number = np.searchsorted(several, row_groups[order])
        parts = [np.flatnonzero(number % _FOLDS == fold) for fold in range(min(_FOLDS, len(several)))]
    return [(np.setdiff1d(places, out), out) for out in parts[: 1 if len(order) >= _ONE_FOLD else _FOLDS]]


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
    # Levels without rows change no prediction, but take memory.
    filled = np.unique(X.indices) if X.shape[1] > _MOST_FEATURES else slice(None)
    X, prior = X[:, filled], prior[filled]
    rng = np.random.default_rng(0)
    sampler = GibbsSampler(Design(X[inside]), y[inside], _RANK, binary, True, True, prior, rng)
    draws = list(islice(sampler.draws(), _BURN_IN + _DRAWS))[_BURN_IN:]
    return Posterior.of([draws], binary).scores(X[out])


# ---------------------------------------------------------------------------------- repeated columns


def repeated(read: Mapping[str, pd.Series]) -> dict[str, str]:
    """Return the columns that say the same as an earlier one, each with that column.

    Numbers say the same if one explains 99 % of the variance of the other, by value or by rank; words, and
    words and few numbers, if each value belongs to exactly one of the other.
    """
    sample = {name: values.iloc[:: max(1, len(values) // _MOST_COMPARED)] for name, values in read.items()}
    numbers = pd.DataFrame({name: own for name, own in sample.items() if own.dtype.kind == "f"})
    equal = pd.DataFrame(False, numbers.columns, numbers.columns)
    for own in (numbers, numbers.rank()):
        with np.errstate(invalid="ignore", divide="ignore"):
            equal |= np.square(np.corrcoef(own.fillna(own.mean()), rowvar=False)) > _EQUAL
    pairs: dict[str, str] = {}
    # Numbered by first appearance, columns that are one-to-one have the same codes.
    firsts: dict[bytes, str] = {}
    for name, values in sample.items():
        codes = values.factorize()[0]
        most = _MOST_FEW if name in equal else _MOST_CODES
        few = 0 < codes.max(initial=0) < min(most, codes.size // _ROWS_PER_CODE)
        first = firsts.setdefault(codes.tobytes(), name) if few else name
        if name in equal and (first == name or first in equal):
            alike = [
                other
                for other in equal.columns[equal[name]]
                if other not in pairs and (sample[other].isna() != values.isna()).mean() <= 1.0 - _EQUAL
            ]
            first = alike[0]
        if first != name:
            pairs[name] = first
    return pairs


def telling(read: Mapping[str, pd.Series], y: np.ndarray) -> list[str]:
    """Return the columns that alone tell the target y, numbers or classes with missing values."""
    known = np.flatnonzero(pd.notna(y))[:_MOST_COMPARED]
    y = y[known]
    numbers = np.issubdtype(y.dtype, np.number)
    target = y if numbers else pd.factorize(y)[0]
    if len(np.unique(target)) < 2:
        return []
    return [name for name, values in read.items() if _share(values.iloc[known], target, numbers) > _EQUAL]


def _share(values: pd.Series, y: np.ndarray, numbers: bool) -> float:
    """Return the share of the variance of y that a column explains, or of the rows of minor classes."""
    codes = values.factorize()[0]
    if values.dtype.kind == "f":
        if numbers and values.notna().all() and values.nunique() > 1:
            ranks = np.corrcoef(values.rank(), pd.Series(y).rank())[0, 1]
            if max(np.corrcoef(values, y)[0, 1] ** 2, ranks**2) > _EQUAL:
                return 1.0
        if codes.max() >= _RANGES:
            ranks = values.rank(method="min", pct=True).fillna(-1.0)
            codes = np.floor(_RANGES * ranks.to_numpy()).astype(int)
    if codes.max() >= max(1, codes.size // _ROWS_PER_CODE):
        return 0.0
    codes -= codes.min()
    if numbers:
        means = np.bincount(codes, y) / np.maximum(np.bincount(codes), 1)
        return float(1.0 - np.square(y - means[codes]).sum() / np.square(y - y.mean()).sum())
    most = np.bincount(y).max()
    right = sp.coo_array((np.ones(y.size), (codes, y))).toarray().max(axis=1).sum()
    return float((right - most) / (y.size - most))
