"""The squared loss."""

from __future__ import annotations

from dataclasses import dataclass

from .._jit import jitable
from .base import Loss
from .scalar import residual_loss


@jitable
def value(r, unused, theta):
    return 0.5 * r * r


@jitable
def derivative(r, unused, theta):
    return r


@jitable
def second(r, unused, theta):
    return 1.0


@jitable
def conjugate(a, y, theta):
    return a * (0.5 * a + y)


@dataclass(frozen=True)
class Squared(Loss):
    """ℓ(f, y) = ½(f − y)²."""

    name = "squared"
    label = "Squared error"
    formula = r"\tfrac12 (f-y)^2"
    task = "regression"
    scalar = residual_loss("squared", value, derivative, second, is_residual=True)
    jitable_conjugate = staticmethod(conjugate)

    lipschitz = 1.0
