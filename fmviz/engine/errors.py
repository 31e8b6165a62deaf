"""Exceptions and argument checks, with messages that state the value, the allowed values and a remedy."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

LARGEST = 1e150
"""The squares of larger numbers overflow, and with them means, scales and fits."""


class StoppedError(Exception):
    """Raised when a computation is stopped on request before it has a result."""


class CollapseWarning(UserWarning):
    """Warning that a fit of a model with interactions ended without any: P = 0.

    Examples
    --------
    >>> import warnings
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     machine = fmviz.FactorizationMachineRegressor(lambda_sparse=50.0, random_state=0).fit(X, y)
    >>> print(caught[0].category.__name__, machine.n_used_interactions_)
    CollapseWarning 0
    """


class WhyNot(str):
    """Explanation of an unsupported combination, with a machine-readable code.

    Attributes
    ----------
    code : str
        An identifier of the reason.
    """

    code: str

    def __new__(cls, code: str, sentence: str) -> Self:
        """Return the sentence with its code."""
        instance = super().__new__(cls, sentence)
        instance.code = code
        return instance

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (self.code, str(self))


def one_of(what: str, value: Any, allowed: Iterable[str]) -> str:
    """Return `value` if it is allowed, or raise ValueError with the closest allowed value."""
    names = list(allowed)
    if isinstance(value, str) and value in names:
        return value
    close = difflib.get_close_matches(str(value).lower(), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"{what} = {value!r} is not known; choose one of {', '.join(names)}.{hint}")


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    if low is not None:
        return f" of at least {low:g}"
    if high is not None:
        return f" of at most {high:g}"
    return ""


def finite_number(what: str, value: Any, low: float | None = None, high: float | None = None) -> float:
    """Return `value` as a finite float within [low, high], or raise ValueError."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not ok or not math.isfinite(value):
        raise ValueError(f"{what} = {value!r} must be a finite number{_range(low, high)}.")
    if (low is not None and value < low) or (high is not None and value > high):
        raise ValueError(f"{what} = {value!r} is out of range: use a number{_range(low, high)}.")
    return float(value)


def whole_number(what: str, value: Any, low: float | None = None, high: float | None = None) -> int:
    """Return `value` as an int within [low, high], or raise ValueError."""
    ok = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not ok or (low is not None and value < low) or (high is not None and value > high):
        raise ValueError(f"{what} = {value!r} must be a whole number{_range(low, high)}.")
    return int(value)


def finite_matrix(what: str, P: Any) -> np.ndarray:
    """Return P as a C-contiguous matrix of finite numbers, a vector as a column; `what` is its name."""
    if hasattr(P, "toarray"):
        P = P.toarray()
    if np.iscomplexobj(P):
        raise ValueError(f"{what} has complex numbers; use real ones.")
    try:
        array = np.asarray(P, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} contains a value that is not a number: {error}.") from None
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"{what} has shape {array.shape}; use a non-empty matrix (features × rank) or vector."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{what} contains NaN or infinity; replace those entries first.")
    return np.ascontiguousarray(array.reshape(array.shape[0], -1))
