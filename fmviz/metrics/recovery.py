"""Metrics for the recovery of true interactions.

Support and estimation error are computed over the strict upper triangle ([A] 8.2.1).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from fmviz.engine.counting import used_mask
from fmviz.engine.parameters import Parameters

from .base import Metric


def interaction_weights(parameters: Any) -> np.ndarray:
    """Return the learned pair weights, shape (d, d), symmetric with a zero diagonal.

    Parameters
    ----------
    parameters : fmviz.engine.snapshot.Parameters or (d, k) array_like
        The parameters of any second-order model, or the factors P of a factorization machine.

    Returns
    -------
    (d, d) ndarray
        PPᵀ of a factorization machine, P diag(λ) Pᵀ with coefficients, or W of a quadratic regression,
        without the diagonal.

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
    """Return the (d, d) boolean matrix of structurally non-zero pairs, with a False diagonal.

    Parameters
    ----------
    parameters : fmviz.engine.snapshot.Parameters or (d, k) array_like
        As for `interaction_weights`.

    Returns
    -------
    (d, d) bool ndarray
        True if rows of P share a column in which both are non-zero, or if the entry of W is not 0.

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
    return np.asarray(parameters.P if isinstance(parameters, Parameters) else parameters, dtype=np.float64)


def _coefficients(parameters: Any) -> Any:
    return parameters.multipliers if isinstance(parameters, Parameters) else 1.0


def _truth(W: Any, P: Any) -> np.ndarray:
    truth = np.asarray(W, dtype=np.float64)
    if truth.ndim != 2 or truth.shape[0] != truth.shape[1]:
        raise ValueError(f"W has shape {truth.shape}; pass the square matrix of true interaction weights.")
    direct = isinstance(P, Parameters) and P.W is not None
    learned = np.asarray(P.W) if direct else _factors(P)
    if learned.ndim != 2 or learned.shape[0] != truth.shape[0]:
        raise ValueError(
            f"{'The learned W' if direct else 'P'} has shape {learned.shape}; with this W it must have "
            f"{truth.shape[0]} rows."
        )
    return truth


def estimation_error(W: Any, P: Any) -> float:
    """Return ‖W − PPᵀ‖ / ‖W‖, the relative error of the learned PPᵀ over the strict upper triangle.

    Parameters
    ----------
    W : (d, d) array_like
        The true interaction weights.
    P : (d, k) array_like or fmviz.engine.snapshot.Parameters
        The learned factors, or the parameters of any second-order model.

    Returns
    -------
    float
        0 is best; P = 0 gives 1. Infinite if P has interactions but W has none.

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


def support_f1(W: Any, P: Any) -> float:
    """Return the F1 score of the used pairs of P as a prediction of the non-zero pairs of W.

    A pair is used if its two rows of P share a column in which both are non-zero, without a tolerance; in a
    quadratic regression, if its learned weight is not 0.

    Parameters
    ----------
    W : (d, d) array_like
        The true interaction weights.
    P : (d, k) array_like or fmviz.engine.snapshot.Parameters
        The learned factors, or the parameters of any second-order model.

    Returns
    -------
    float
        From 0 to 1; 1 if both are empty.

    Examples
    --------
    >>> import numpy as np
    >>> from fmviz.metrics import support_f1
    >>> P = np.array([[1.0, 0.0], [1.0, 0.5], [0.0, 2.0]])
    >>> W = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> round(support_f1(W, P), 3)
    0.667
    """
    truth = _truth(W, P)
    upper = _upper(truth.shape[0])
    true, used = truth[upper] != 0, used_pairs(P)[upper]
    size = int(true.sum()) + int(used.sum())
    return 2 * int((true & used).sum()) / size if size else 1.0


def support_recovered(W: Any, P: Any) -> bool:
    """Return whether P uses exactly the pairs that are non-zero in W; its mean over runs is the PSSR.

    Parameters
    ----------
    W : (d, d) array_like
        The true interaction weights.
    P : (d, k) array_like or fmviz.engine.snapshot.Parameters
        The learned factors, or the parameters of any second-order model.

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
    return support_f1(W, P) == 1.0


SUPPORT_F1 = Metric(
    "support_f1",
    "Support F1",
    support_f1,
    ("support",),
    better="larger",
    axis="linear",
    limits=(0.0, 1.0),
    help="the F1 score of the used pairs as a prediction of the true ones",
)
ESTIMATION_ERROR = Metric(
    "estimation_error",
    "Estimation error",
    estimation_error,
    ("weights",),
    help="the distance of the learned pair weights from the true ones, relative to these",
)
