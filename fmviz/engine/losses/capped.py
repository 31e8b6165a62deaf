"""Capped losses: rows beyond the cap have a constant loss and no influence on the fit."""

from __future__ import annotations

from dataclasses import dataclass

from .._jit import jitable
from ..settings import LARGE, SMALL, setting
from .absolute import second
from .base import Loss
from .half_squares import SquaredExcess, SquaredSlack
from .majoriser import Majoriser
from .scalar import ScalarLoss, residual_loss

_CAP = "The maximum loss of a row: rows beyond it have no influence."


@jitable
def value(r, unused, theta):
    return min(max(abs(r) - theta[0], 0.0), theta[1])


@jitable
def derivative(r, unused, theta):
    u = abs(r) - theta[0]
    if u <= 0.0 or u > theta[1]:
        return 0.0
    return 1.0 if r > 0.0 else -1.0


@dataclass(frozen=True)
class CappedInsensitive(Loss):
    """ℓ(f, y) = min{max{|f − y| − ε₁, 0}, ε₂}: the capped ε-insensitive loss (robust_fm, Eq. 1).

    Not convex. Rows with |f − y| > ε₁ + ε₂ have no influence: changing their targets has no effect.
    """

    epsilon: float = setting(
        0.1, low=0.0, high=LARGE, symbol=r"\epsilon_1", help="Residuals up to ε₁ have no loss."
    )
    cap: float = setting(1.0, low=SMALL, high=LARGE, log=True, symbol=r"\epsilon_2", help=_CAP)

    name = "capped"
    label = "Capped epsilon-insensitive"
    formula = r"\min\{\max\{|f-y|-\epsilon_1, 0\},\epsilon_2\}"
    task = "regression"
    scalar = residual_loss("capped", value, derivative, second)
    convex = False
    smooth = False

    @property
    def majoriser(self) -> Majoriser:
        return Majoriser(SquaredExcess(self.epsilon), self.cap)


@jitable
def hinge_value(f, y, theta):
    return min(max(1.0 - theta[0] - f * y, 0.0), theta[1])


@jitable
def hinge_derivative(f, y, theta):
    u = 1.0 - theta[0] - f * y
    return -y if 0.0 < u <= theta[1] else 0.0


@dataclass(frozen=True)
class CappedHinge(Loss):
    """ℓ(f, y) = min{max{1 − ε₁ − yf, 0}, ε₂}, y = ±1: the capped hinge loss, or ramp loss.

    The analogue of the capped ε-insensitive loss for margins: rows with yf ≥ 1 − ε₁ have no loss, and rows
    with yf < 1 − ε₁ − ε₂, far on the wrong side, have no influence. Not convex.
    """

    epsilon: float = setting(
        0.0, low=0.0, high=1.0, symbol=r"\epsilon_1", help="Margins of at least 1 − ε₁ have no loss."
    )
    cap: float = setting(2.0, low=SMALL, high=LARGE, log=True, symbol=r"\epsilon_2", help=_CAP)

    name = "capped_hinge"
    label = "Capped hinge"
    formula = r"\min\{\max\{1-\epsilon_1-yf, 0\},\epsilon_2\}"
    task = "binary"
    scalar = ScalarLoss("capped_hinge", hinge_value, hinge_derivative, second)
    convex = False
    smooth = False

    @property
    def majoriser(self) -> Majoriser:
        return Majoriser(SquaredSlack(1.0 - self.epsilon), self.cap)
