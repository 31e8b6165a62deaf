"""The Huber loss."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from .._jit import jitable
from ..settings import setting
from .base import Loss
from .scalar import residual_loss


@jitable
def value(r, unused, theta):
    size = abs(r)
    return 0.5 * size * size if size <= theta[0] else theta[0] * (size - 0.5 * theta[0])


@jitable
def derivative(r, unused, theta):
    return min(max(r, -theta[0]), theta[0])


@jitable
def second(r, unused, theta):
    return 1.0 if abs(r) <= theta[0] else 0.0


@jitable
def conjugate(a, y, theta):
    return a * (0.5 * a + y) if abs(a) <= theta[0] else inf


@dataclass(frozen=True)
class Huber(Loss):
    """ℓ(f, y) = ½r² up to |r| = |f − y| = δ, and δ(|r| − δ/2) beyond."""

    delta: float = setting(
        1.0, low=1e-6, high=1e6, log=True, symbol=r"\delta", help="Residuals beyond δ have a linear loss."
    )

    name = "huber"
    label = "Huber"
    formula = r"\tfrac12 r^2 \text{ if } r=|f-y|\le\delta,\ \delta(r-\tfrac{\delta}{2}) \text{ else}"
    task = "regression"
    scalar = residual_loss("huber", value, derivative, second)
    jitable_conjugate = staticmethod(conjugate)

    lipschitz = 1.0
