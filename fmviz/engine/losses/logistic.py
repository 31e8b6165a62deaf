"""The logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, log1p

import numpy as np

from .._exponential import exp_ratio, log1p_ratio
from .._jit import jitable
from .base import Loss
from .scalar import ScalarLoss


@jitable
def value(f, y, theta):
    z = f * y
    # Exponentiates no positive number; the value is accurate at any margin.
    return log1p_ratio(*exp_ratio(-abs(z))) + max(-z, 0.0)


@jitable
def derivative(f, y, theta):
    below, above = exp_ratio(f * y)
    return -y * (below / (below + above))


@jitable
def nudged(slope, step, y, theta):
    # exp(r) = (c + r)/(c − r) as in `exp_ratio`, substituted in σ(z + r) = σ(z)/(σ(z) + σ(−z)·exp(−r)).
    r = y * step
    t = step * step
    c = 2.0 + t * (1.0 / 6 + t * (-1.0 / 360 + t * (1.0 / 15120)))
    return slope * (c - r) / (c + r + 2.0 * step * slope)


@jitable
def second(f, y, theta):
    below, above = exp_ratio(-abs(f * y))
    small = above / (below + above)
    return small * (1.0 - small)


@jitable
def conjugate(a, y, theta):
    u = -a * y
    if u < 0.0 or u > 1.0:
        return inf
    return (u * log(u) if u > 0.0 else 0.0) + ((1.0 - u) * log1p(-u) if u < 1.0 else 0.0)


@dataclass(frozen=True)
class Logistic(Loss):
    """ℓ(f, y) = log(1 + e^(−yf)), y = ±1."""

    name = "logistic"
    label = "Logistic"
    formula = r"\log(1+e^{-yf})"
    task = "binary"
    scalar = ScalarLoss("logistic", value, derivative, second, nudged=nudged, nudge_reach=1.0 / 16)
    jitable_conjugate = staticmethod(conjugate)

    lipschitz = 0.25

    def probability(self, f: np.ndarray) -> np.ndarray:
        """Return 1/(1 + e^−f), without overflow."""
        e = np.exp(-np.abs(f))
        return np.asarray(np.where(f >= 0, 1.0, e) / (1.0 + e))
