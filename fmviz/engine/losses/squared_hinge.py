"""The squared hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from .._jit import jitable
from .base import Loss
from .scalar import ScalarLoss


@jitable
def value(f, y, theta):
    slack = max(1.0 - f * y, 0.0)
    return slack * slack


@jitable
def derivative(f, y, theta):
    return -2.0 * y * max(1.0 - f * y, 0.0)


@jitable
def second(f, y, theta):
    return 2.0 if f * y < 1.0 else 0.0


@jitable
def conjugate(a, y, theta):
    u = -a * y
    return u * (0.25 * u - 1.0) if u >= 0.0 else inf


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """ℓ(f, y) = max(1 − yf, 0)², y = ±1."""

    name = "squared_hinge"
    label = "Squared hinge"
    formula = r"\max(1-yf, 0)^2"
    task = "binary"
    scalar = ScalarLoss("squared_hinge", value, derivative, second)
    jitable_conjugate = staticmethod(conjugate)

    lipschitz = 2.0
