"""Metrics of fits: recovery of interactions, prediction errors and ranking.

Support and estimation error are taken over the strict upper triangle ([A] 8.2.1).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from fmviz.engine.counting import used_mask
from fmviz.engine.parameters import Parameters

__all__ = [
    "estimation_error",
    "interaction_weights",
    "ndcg",
    "rmse",
    "support_f1",
    "support_recovered",
    "used_pairs",
]


def interaction_weights(parameters: Any) -> np.ndarray:
    """Return the learned weight of every pair, shape (d, d), symmetric with a zero diagonal.

    Parameters
    ----------
    parameters : fmviz.engine.snapshot.Parameters or (d, k) array_like
        The parameters of any model of pairs, or the factors P of a factorization machine.

    Returns
    -------
    (d, d) ndarray
        PPᵀ of a factorization machine, P diag(λ) Pᵀ where the columns have coefficients, W of a quadratic
        regression; off the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from fmviz.metrics import interaction_weights
    >>> P = np.array([[1.0, 0.0], [1.0, 0.5], [0.0, 2.0]])
    >>> interaction_weights(P).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    if isinstance(parameters, Parameters) and parameters.W is not None:
        weights = parameters.W.copy()
    else:
        P = _factors(parameters)
        weights = (P * _coefficients(parameters)) @ P.T
    np.fill_diagonal(weights, 0.0)
    return weights


def used_pairs(parameters: Any) -> np.ndarray:
    """Return the (d, d) boolean matrix of used pairs, exactly and by structure, with a False diagonal.

    Parameters
    ----------
    parameters : fmviz.engine.snapshot.Parameters or (d, k) array_like
        As for `interaction_weights`.

    Returns
    -------
    (d, d) bool ndarray
        True where rows of P share a column in which both are non-zero, or where W is not 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fmviz.metrics import used_pairs
    >>> P = np.array([[1.0, 0.0], [1.0, 0.5], [0.0, 2.0]])
    >>> used_pairs(P).astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """
    if isinstance(parameters, Parameters) and parameters.W is not None:
        used = parameters.W != 0
        np.fill_diagonal(used, False)
        return used
    return used_mask(_factors(parameters) * (_coefficients(parameters) != 0))


def _factors(parameters: Any) -> np.ndarray:
    P = parameters.P if isinstance(parameters, Parameters) else parameters
    return np.asarray(P, dtype=np.float64)


def _coefficients(parameters: Any) -> Any:
    return parameters.multipliers if isinstance(parameters, Parameters) else 1.0


def _truth(W: Any, P: Any) -> np.ndarray:
    truth = np.asarray(W, dtype=np.float64)
    if truth.ndim != 2 or truth.shape[0] != truth.shape[1]:
        raise ValueError(f"W has shape {truth.shape}; give the square matrix of true interaction weights.")
    direct = isinstance(P, Parameters) and P.W is not None
    learned = np.asarray(P.W) if direct else _factors(P)
    if learned.ndim != 2 or learned.shape[0] != truth.shape[0]:
        raise ValueError(
            f"{'The learned W' if direct else 'P'} has shape {learned.shape}; with this W it must have "
            f"{truth.shape[0]} rows."
        )
    return truth


def estimation_error(W: Any, P: Any) -> float:
    """Return ‖W − PPᵀ‖ / ‖W‖, both norms over the strict upper triangle only; PPᵀ is what was learned.

    Parameters
    ----------
    W : (d, d) array_like
        The true interaction weights.
    P : (d, k) array_like or fmviz.engine.snapshot.Parameters
        The learned factors, or the parameters of any model of pairs.

    Returns
    -------
    float
        0 is best; P = 0 gives 1. Infinite where W has no interaction but P has.

    Examples
    --------
    >>> import numpy as np
    >>> from fmviz.metrics import estimation_error
    >>> P = np.array([[1.0, 0.0], [1.0, 0.5], [0.0, 2.0]])
    >>> W = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> estimation_error(W, P)
    1.0
    """
    truth = _truth(W, P)
    upper = _upper(truth.shape[0])
    true = truth[upper]
    difference = float(np.linalg.norm(true - interaction_weights(P)[upper]))
    scale = float(np.linalg.norm(true))
    if scale == 0.0:
        return 0.0 if difference == 0.0 else float("inf")
    return difference / scale


@lru_cache(maxsize=2)
def _upper(d: int) -> np.ndarray:
    """Return the mask of the strict upper triangle, shape (d, d); cached, as runs use it in every epoch."""
    return np.triu(np.ones((d, d), dtype=bool), 1)


def support_counts(W: Any, P: Any) -> tuple[int, int, int]:
    """Count pairs that are true and used, used only, and true only; arguments as for `support_f1`."""
    truth = _truth(W, P)
    upper = _upper(truth.shape[0])
    true = truth[upper] != 0
    used = used_pairs(P)[upper]
    hit = int((true & used).sum())
    return hit, int(used.sum()) - hit, int(true.sum()) - hit


def f1(hit: int, wrong: int, missed: int) -> float:
    """Return the F1 score of true positives, false positives and false negatives."""
    return 1.0 if hit + wrong + missed == 0 else 2 * hit / (2 * hit + wrong + missed)


def support_f1(W: Any, P: Any) -> float:
    """Return the F1 score of the used pairs of P as a prediction of the non-zero pairs of W.

    A pair is used where its two rows of P share a column in which both are non-zero, whatever the size; in a
    quadratic regression where its learned weight is not 0.

    Parameters
    ----------
    W : (d, d) array_like
        The true interaction weights.
    P : (d, k) array_like or fmviz.engine.snapshot.Parameters
        The learned factors, or the parameters of any model of pairs.

    Returns
    -------
    float
        From 0 to 1; 1 also where both are empty.

    Examples
    --------
    >>> import numpy as np
    >>> from fmviz.metrics import support_f1
    >>> P = np.array([[1.0, 0.0], [1.0, 0.5], [0.0, 2.0]])
    >>> W = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> round(support_f1(W, P), 3)
    0.667
    """
    return f1(*support_counts(W, P))


def support_recovered(W: Any, P: Any) -> bool:
    """Return whether P uses exactly the pairs that are non-zero in W; its mean over runs is the PSSR.

    Parameters
    ----------
    W : (d, d) array_like
        The true interaction weights.
    P : (d, k) array_like or fmviz.engine.snapshot.Parameters
        The learned factors, or the parameters of any model of pairs.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> from fmviz.metrics import support_recovered
    >>> W = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> support_recovered(W, np.array([[2.0, 0.0], [0.5, 0.0], [0.0, 1.0]]))
    True
    """
    _, wrong, missed = support_counts(W, P)
    return wrong == 0 and missed == 0


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


def ndcg(y: Any, predicted: Any, at: int, groups: Any = None) -> float:
    """Return the normalized discounted cumulative gain of the first places, with the gain 2^y − 1.

    That is DCG/IDCG with DCG = Σ_{r ≤ at} (2^{y_r} − 1)/log2(r + 1) over the rows in descending order of
    the predictions, and IDCG the same in descending order of y. Rows with equal predictions share their
    places.

    Parameters
    ----------
    y : (N,) array_like
        Relevances of at least 0, such as ratings.
    predicted : (N,) array_like
        The scores that rank the rows.
    at : int
        The number of places that count: 1 for nDCG@1.
    groups : (N,) array_like, optional
        Rows are ranked within their group, such as those of a user, and the result is the mean over the
        groups that have a row with y > 0; by default all rows are one group.

    Returns
    -------
    float
        From 0 to 1; NaN where no y is positive.

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
        raise ValueError("y holds a negative number; a relevance is at least 0.")
    group = np.zeros(gain.size, dtype=int) if groups is None else np.unique(groups, return_inverse=True)[1]
    best = _discounted(gain, gain, group, at)
    achieved = _discounted(gain, scores, group, at)
    ranked = best > 0.0
    return float(np.mean(achieved[ranked] / best[ranked])) if ranked.any() else float("nan")


def _discounted(gain: np.ndarray, scores: np.ndarray, group: np.ndarray, at: int) -> np.ndarray:
    """Return the discounted gain of the first rows of every group by their scores."""
    order = np.lexsort((-scores, group))
    gain, scores, group = gain[order], scores[order], group[order]
    first = np.r_[True, group[1:] != group[:-1]]
    place = np.arange(gain.size) - np.flatnonzero(first)[np.cumsum(first) - 1]
    # The mean over all orders of rows with equal scores.
    alike = np.cumsum(first | np.r_[True, scores[1:] != scores[:-1]]) - 1
    shared = (np.bincount(alike, gain) / np.bincount(alike))[alike]
    return np.bincount(group, np.where(place < at, shared / np.log2(place + 2.0), 0.0))
