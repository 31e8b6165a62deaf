"""Support recovery and estimation error on the strict upper triangle ([A] 8.2.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmviz.engine.counting import used_mask

__all__ = ["estimation_error", "support_f1", "support_recovered"]


def _pair(W: Any, P: Any) -> tuple[np.ndarray, np.ndarray]:
    truth, factors = np.asarray(W, dtype=np.float64), np.asarray(P, dtype=np.float64)
    if truth.ndim != 2 or truth.shape[0] != truth.shape[1]:
        raise ValueError(f"W has shape {truth.shape}; give the square matrix of true interaction weights.")
    if factors.ndim != 2 or factors.shape[0] != truth.shape[0]:
        raise ValueError(f"P has shape {factors.shape}; with this W it must have {truth.shape[0]} rows.")
    return truth, factors


def estimation_error(W: Any, P: Any) -> float:
    """Return ‖W − PPᵀ‖ / ‖W‖, both norms over the strict upper triangle only.

    Parameters
    ----------
    W : (d, d) array_like
        The true interaction weights.
    P : (d, k) array_like
        The learned factors.

    Returns
    -------
    float
        0 is best; P = 0 gives 1. Infinite where W has no interaction but P has.
    """
    truth, factors = _pair(W, P)
    upper = np.triu_indices(truth.shape[0], 1)
    true = truth[upper]
    difference = float(np.linalg.norm(true - (factors @ factors.T)[upper]))
    scale = float(np.linalg.norm(true))
    if scale == 0.0:
        return 0.0 if difference == 0.0 else float("inf")
    return difference / scale


def _support_counts(W: Any, P: Any) -> tuple[int, int, int]:
    truth, factors = _pair(W, P)
    upper = np.triu_indices(truth.shape[0], 1)
    true = truth[upper] != 0
    used = used_mask(factors)[upper]
    return int((true & used).sum()), int((~true & used).sum()), int((true & ~used).sum())


def support_f1(W: Any, P: Any) -> float:
    """Return the F1 score of the used pairs of P as a prediction of the non-zero pairs of W.

    A pair is used where its two rows of P share a column in which both are non-zero, whatever the size.

    Parameters
    ----------
    W : (d, d) array_like
        The true interaction weights.
    P : (d, k) array_like
        The learned factors.

    Returns
    -------
    float
        From 0 to 1; 1 also where both are empty.
    """
    hit, wrong, missed = _support_counts(W, P)
    return 1.0 if hit + wrong + missed == 0 else 2 * hit / (2 * hit + wrong + missed)


def support_recovered(W: Any, P: Any) -> bool:
    """Return whether P uses exactly the pairs that are non-zero in W; its mean is the PSSR."""
    _, wrong, missed = _support_counts(W, P)
    return wrong == 0 and missed == 0
