"""Half squared excesses: smooth losses minimized by reweighting, not offered to users."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from .._jit import jitable
from ..settings import LARGE, setting
from .base import Loss
from .scalar import ScalarLoss, residual_loss


@jitable
def beyond(r, epsilon):
    """Return r moved towards 0 by ε, 0 inside the tube |r| ≤ ε."""
    return r - min(max(r, -epsilon), epsilon)


@jitable
def excess_value(r, unused, theta):
    u = beyond(r, theta[0])
    return 0.5 * u * u


@jitable
def excess_derivative(r, unused, theta):
    return beyond(r, theta[0])


@jitable
def excess_second(r, unused, theta):
    return 1.0 if abs(r) > theta[0] else 0.0


@jitable
def excess_conjugate(a, y, theta):
    return a * (0.5 * a + y) + theta[0] * abs(a)


@dataclass(frozen=True)
class SquaredExcess(Loss):
    """ℓ(f, y) = ½ max{|f − y| − ε, 0}²."""

    epsilon: float = setting(0.0, low=0.0, high=LARGE)

    name = "squared_excess"
    label = "Squared excess"
    formula = r"\tfrac12\max\{|f-y|-\epsilon, 0\}^2"
    task = "regression"
    scalar = residual_loss("squared_excess", excess_value, excess_derivative, excess_second)
    jitable_conjugate = staticmethod(excess_conjugate)

    lipschitz = 1.0

    def distances(self, f: np.ndarray, y: np.ndarray, delta: float) -> tuple[np.ndarray, ...]:
        """Return the distances of f from the points where the excess is δ/2."""
        r, k = np.abs(f - y), self.epsilon + 0.5 * delta
        return np.abs(r - k), r + k


@jitable
def slack_value(f, y, theta):
    u = max(theta[0] - f * y, 0.0)
    return 0.5 * u * u


@jitable
def slack_derivative(f, y, theta):
    return -y * max(theta[0] - f * y, 0.0)


@jitable
def slack_second(f, y, theta):
    return 1.0 if f * y < theta[0] else 0.0


@jitable
def slack_conjugate(a, y, theta):
    u = -a * y
    return u * (0.5 * u - theta[0]) if u >= 0.0 else inf


@dataclass(frozen=True)
class SquaredSlack(Loss):
    """ℓ(f, y) = ½ max{m − yf, 0}², y = ±1, with the margin m."""

    margin: float = setting(1.0, low=0.0, high=LARGE)

    name = "squared_slack"
    label = "Squared slack"
    formula = r"\tfrac12\max\{m-yf, 0\}^2"
    task = "binary"
    scalar = ScalarLoss("squared_slack", slack_value, slack_derivative, slack_second)
    jitable_conjugate = staticmethod(slack_conjugate)

    lipschitz = 1.0

    def distances(self, f: np.ndarray, y: np.ndarray, delta: float) -> tuple[np.ndarray, ...]:
        """Return the distance of yf from the point where the slack is δ/2."""
        return (np.abs(self.margin - 0.5 * delta - f * y),)
