"""Synthetic errors in targets: gross errors, flipped labels and swaps, to evaluate outlier detection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fmviz.engine.settings import ParamSpec

if TYPE_CHECKING:
    from fmviz.tables.target import Task

_GROSS = ParamSpec(
    "gross",
    "float",
    0.0,
    0.0,
    0.5,
    help="Share of rows with targets shifted by ±3 to 8 standard deviations. Validation rows keep their "
    "true targets.",
)
_FLIPPED = ParamSpec(
    "flipped",
    "float",
    0.0,
    0.0,
    0.5,
    help="Share of rows with a changed class. Validation rows keep their true classes.",
)
_SWAPPED = ParamSpec(
    "swapped",
    "float",
    0.0,
    0.0,
    0.5,
    help="Share of rows with permuted targets. Validation rows keep their true targets.",
)
_SEED = ParamSpec("errors_seed", "int", 0, 0, 999_999, help="Seed of the choice of corrupted rows.")
CONTAMINATION = tuple(spec.name for spec in (_GROSS, _FLIPPED, _SWAPPED, _SEED))
"""The names of these settings for all tasks."""
# The range of gross errors, in standard deviations of y.
_SIZES = (3.0, 8.0)


def contamination_params(task: Task) -> tuple[ParamSpec, ...]:
    """Return the contamination parameters for a task."""
    return (_GROSS if task == "regression" else _FLIPPED, _SWAPPED, _SEED)


def contaminated(
    y: np.ndarray,
    task: Task,
    gross: float = 0.0,
    flipped: float = 0.0,
    swapped: float = 0.0,
    errors_seed: int = 0,
) -> np.ndarray:
    """Return a contaminated copy of a target, or y itself if all shares are 0.

    Parameters
    ----------
    y : (N,) or (N, m) ndarray
        The target, encoded as in `fmviz.lab.datasets.Dataset`.
    task : str
        The task.
    gross : float
        Share of rows shifted by 3 to 8 standard deviations, up or down at random.
    flipped : float
        Share of rows with a changed class; with several labels, one random label is flipped.
    swapped : float
        Share of further rows with cyclically permuted targets.
    errors_seed : int
        The seed. Rows of a smaller share are a subset of those of a larger share.

    Raises
    ------
    ValueError
        If the shares sum to more than 1.
    """
    first = gross if task == "regression" else flipped
    if first == swapped == 0.0:
        return y
    if first + swapped > 1.0:
        raise ValueError("The shares of corrupted rows must sum to at most 1.")
    rng, n = np.random.default_rng([errors_seed, 7]), len(y)
    moved, exchanged = rng.permutation(n), rng.permutation(n)
    moved = moved[: round(first * n)]
    exchanged = exchanged[~np.isin(exchanged, moved)][: round(swapped * n)]
    changed = y.copy()
    changed[exchanged] = y[np.roll(exchanged, 1)]
    drawn = rng.random((n, 2))[moved]
    if task == "regression":
        low, high = _SIZES
        size = (low + (high - low) * drawn[:, 0]) * np.where(drawn[:, 1] < 0.5, -1.0, 1.0)
        changed[moved] += np.multiply.outer(size, y.std(axis=0))
    elif task == "binary":
        changed[moved] *= -1.0
    elif task == "several":
        changed[moved, (drawn[:, 0] * y.shape[1]).astype(int)] *= -1.0
    else:
        n_classes = int(y.max()) + 1
        changed[moved] = (y[moved] + 1.0 + np.floor(drawn[:, 0] * (n_classes - 1))) % n_classes
    return changed
