"""Losses of a single prediction as jitable functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._jit import cached_factory, jitable

Scalar = Callable[[float, float, tuple[float, ...]], float]
"""A jitable function of a prediction f, a target y and theta, the parameters of the loss."""


@dataclass(frozen=True)
class ScalarLoss:
    """The jitable functions of a loss ℓ(f, y); a single compiled kernel serves all parameter values.

    Attributes
    ----------
    name : str
        Names the compiled kernel.
    value, derivative : callable
        Functions of (f, y, theta): ℓ and its derivative in f.
    second : callable
        The (generalized) second derivative in f.
    of_residual : ScalarLoss, optional
        The same loss as a function of (f − y, unused, theta), if it exists: kernels that store residuals then
        need not read y.
    is_residual : bool
        Whether the derivative is its first argument.
    nudged : callable, optional
        ``nudged(slope, step, y, theta)``: the derivative at f + step computed from the one at f, exact up to
        rounding if |step| ≤ `nudge_reach`, and much cheaper than recomputing it.
    """

    name: str
    value: Scalar
    derivative: Scalar
    second: Scalar
    of_residual: ScalarLoss | None = None
    is_residual: bool = False
    nudged: Callable[..., float] | None = None
    nudge_reach: float = 0.0


def residual_loss(
    name: str,
    value: Callable[..., float],
    derivative: Callable[..., float],
    second: Callable[..., float],
    is_residual: bool = False,
) -> ScalarLoss:
    """Return a loss of the residual f − y, given jitable functions of (residual, unused, theta)."""

    @jitable
    def full_value(f, y, theta):
        return value(f - y, y, theta)

    @jitable
    def full_derivative(f, y, theta):
        return derivative(f - y, y, theta)

    @jitable
    def full_second(f, y, theta):
        return second(f - y, y, theta)

    of_residual = ScalarLoss(f"{name}_of_residual", value, derivative, second, is_residual=is_residual)
    return ScalarLoss(name, full_value, full_derivative, full_second, of_residual=of_residual)


@cached_factory(exact=True)
def _evaluate(scalar):
    def evaluate(f, y, theta, out):
        for n in range(f.size):
            out[n] = scalar(f[n], y[n], theta)

    return evaluate


def evaluate(scalar: Scalar, f: np.ndarray, y: np.ndarray, theta: tuple[float, ...]) -> np.ndarray:
    """Apply a jitable function of (f, y, theta) to arrays f and y of shape (N,)."""
    out = np.empty(f.size)
    kernel: Any = _evaluate(scalar)
    kernel(f, y, theta, out)
    return out
