"""Losses ℓ(f, y) of a prediction f and a target y ([B] Table 1).

Each is three jitable functions of (f, y, theta), where theta is the loss's own parameter (unused by most):
its value, its derivative in f, and its second derivative in f (a generalised one where there is none).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, log, log1p
from typing import Literal

import numpy as np

from ._exponential import exp_ratio, log1p_ratio
from ._jit import cached_factory, jitable
from .errors import one_of
from .params import ParamSpec

Scalar = Callable[[float, float, float], float]


@dataclass(frozen=True)
class Loss:
    """A convex, μ-smooth loss.

    Attributes
    ----------
    name, label, formula : str
        Identifier, words, and LaTeX.
    task : {"regression", "binary"}
        A binary loss wants y in {-1, +1}.
    mu : float
        The Lipschitz constant of the derivative.
    value, derivative, second : callable
        Jitable functions of (f, y, theta).
    param : ParamSpec, optional
        What theta is.
    of_residual : Loss, optional
        The same loss as a function of (f − y, unused, theta), where there is one: kernels that hold
        residuals need not read y.
    conjugate : callable, optional
        The convex conjugate ℓ*(a, y) = sup_f a·f − ℓ(f, y) as a jitable function of (a, y, theta), infinite
        outside its domain: what a duality gap needs.
    nudged : callable, optional
        ``nudged(slope, step, y, theta)``, the derivative at f + step from the one at f, exact but for
        rounding while |step| ≤ `nudge_reach`: where that is much cheaper than computing it anew.
    """

    name: str
    label: str
    formula: str
    task: Literal["regression", "binary"]
    mu: float
    value: Scalar
    derivative: Scalar
    second: Scalar
    param: ParamSpec | None = None
    of_residual: Loss | None = None
    conjugate: Scalar | None = None
    nudged: Callable[[float, float, float, float], float] | None = None
    nudge_reach: float = 0.0


@jitable
def squared_value(f, y, theta):
    return 0.5 * (f - y) * (f - y)


@jitable
def squared_derivative(f, y, theta):
    return f - y


@jitable
def squared_second(f, y, theta):
    return 1.0


@jitable
def squared_conjugate(a, y, theta):
    return a * (0.5 * a + y)


@jitable
def squared_of_residual(r, unused, theta):
    return 0.5 * r * r


@jitable
def same_residual(r, unused, theta):
    return r


@jitable
def logistic_value(f, y, theta):
    z = f * y
    # Never exponentiate a positive number: the value is right at any margin.
    return log1p_ratio(*exp_ratio(-abs(z))) + max(-z, 0.0)


@jitable
def logistic_derivative(f, y, theta):
    below, above = exp_ratio(f * y)
    return -y * (below / (below + above))


@jitable
def logistic_nudged(slope, step, y, theta):
    # exp(r) = (c + r)/(c − r) as in `exp_ratio`, put into σ(z + r) = σ(z)/(σ(z) + σ(−z)·exp(−r)).
    r = y * step
    t = step * step
    c = 2.0 + t * (1.0 / 6 + t * (-1.0 / 360 + t * (1.0 / 15120)))
    return slope * (c - r) / (c + r + 2.0 * step * slope)


@jitable
def logistic_second(f, y, theta):
    below, above = exp_ratio(-abs(f * y))
    small = above / (below + above)
    return small * (1.0 - small)


@jitable
def logistic_conjugate(a, y, theta):
    u = -a * y
    if u < 0.0 or u > 1.0:
        return inf
    return (u * log(u) if u > 0.0 else 0.0) + ((1.0 - u) * log1p(-u) if u < 1.0 else 0.0)


@jitable
def squared_hinge_value(f, y, theta):
    slack = max(1.0 - f * y, 0.0)
    return slack * slack


@jitable
def squared_hinge_derivative(f, y, theta):
    return -2.0 * y * max(1.0 - f * y, 0.0)


@jitable
def squared_hinge_second(f, y, theta):
    return 2.0 if f * y < 1.0 else 0.0


@jitable
def squared_hinge_conjugate(a, y, theta):
    u = -a * y
    return u * (0.25 * u - 1.0) if u >= 0.0 else inf


@jitable
def huber_value(f, y, theta):
    r = abs(f - y)
    return 0.5 * r * r if r <= theta else theta * (r - 0.5 * theta)


@jitable
def huber_derivative(f, y, theta):
    return min(max(f - y, -theta), theta)


@jitable
def huber_second(f, y, theta):
    return 1.0 if abs(f - y) <= theta else 0.0


@jitable
def huber_conjugate(a, y, theta):
    return a * (0.5 * a + y) if abs(a) <= theta else inf


@jitable
def huber_of_residual(r, unused, theta):
    size = abs(r)
    return 0.5 * size * size if size <= theta else theta * (size - 0.5 * theta)


@jitable
def clipped_residual(r, unused, theta):
    return min(max(r, -theta), theta)


@jitable
def residual_within(r, unused, theta):
    return 1.0 if abs(r) <= theta else 0.0


SQUARED = Loss(
    "squared",
    "Squared error",
    r"\tfrac12 (f-y)^2",
    "regression",
    1.0,
    squared_value,
    squared_derivative,
    squared_second,
)
SQUARED = replace(
    SQUARED,
    conjugate=squared_conjugate,
    of_residual=replace(
        SQUARED, name="squared_of_residual", value=squared_of_residual, derivative=same_residual
    ),
)
LOGISTIC = Loss(
    "logistic",
    "Logistic",
    r"\log(1+e^{-yf})",
    "binary",
    0.25,
    logistic_value,
    logistic_derivative,
    logistic_second,
    conjugate=logistic_conjugate,
    nudged=logistic_nudged,
    nudge_reach=1.0 / 16,
)
SQUARED_HINGE = Loss(
    "squared_hinge",
    "Squared hinge",
    r"\max(1-yf, 0)^2",
    "binary",
    2.0,
    squared_hinge_value,
    squared_hinge_derivative,
    squared_hinge_second,
    conjugate=squared_hinge_conjugate,
)
HUBER = Loss(
    "huber",
    "Huber",
    r"\tfrac12 r^2 \text{ if } r=|f-y|\le\delta,\ \delta(r-\tfrac{\delta}{2}) \text{ else}",
    "regression",
    1.0,
    huber_value,
    huber_derivative,
    huber_second,
    ParamSpec(
        "delta",
        "float",
        1.0,
        low=1e-6,
        high=1e6,
        log=True,
        symbol=r"\delta",
        help="Residuals beyond δ count linearly.",
    ),
)

HUBER = replace(
    HUBER,
    conjugate=huber_conjugate,
    of_residual=replace(
        HUBER,
        name="huber_of_residual",
        value=huber_of_residual,
        derivative=clipped_residual,
        second=residual_within,
    ),
)

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (SQUARED, LOGISTIC, SQUARED_HINGE, HUBER)}


def get_loss(name: str) -> Loss:
    """Return the loss called `name`, or raise ValueError with the allowed names."""
    return LOSSES[one_of("loss", name, LOSSES)]


@cached_factory(exact=True)
def _evaluate(scalar):
    def evaluate(f, y, theta, out):
        for n in range(f.size):
            out[n] = scalar(f[n], y[n], theta)

    return evaluate


def evaluate(scalar: Scalar, f: np.ndarray, y: np.ndarray, theta: float) -> np.ndarray:
    """Apply a loss's value, derivative or second derivative to arrays f and y of shape (N,)."""
    out = np.empty(f.size)
    _evaluate(scalar)(f, y, float(theta), out)
    return out
