"""The absolute and ε-insensitive losses."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from .._jit import jitable
from ..settings import LARGE, setting
from .base import Loss
from .half_squares import SquaredExcess
from .majoriser import Majoriser
from .scalar import residual_loss
from .squared import Squared


@jitable
def value(r, unused, theta):
    return max(abs(r) - theta[0], 0.0)


@jitable
def derivative(r, unused, theta):
    return 1.0 if r > theta[0] else -1.0 if r < -theta[0] else 0.0


@jitable
def second(r, unused, theta):
    return 0.0


@jitable
def conjugate(a, y, theta):
    return a * y + theta[0] * abs(a) if abs(a) <= 1.0 else inf


@dataclass(frozen=True)
class Absolute(Loss):
    """ℓ(f, y) = |f − y|: least absolute deviations."""

    name = "absolute"
    label = "Absolute error"
    formula = r"|f-y|"
    task = "regression"
    scalar = residual_loss("absolute", value, derivative, second)
    jitable_conjugate = staticmethod(conjugate)
    smooth = False
    # ε = 0.
    theta = (0.0,)
    majoriser = Majoriser(Squared())


@dataclass(frozen=True)
class Insensitive(Loss):
    """ℓ(f, y) = max{|f − y| − ε, 0}: residuals up to ε have no loss."""

    epsilon: float = setting(
        0.1, low=0.0, high=LARGE, symbol=r"\epsilon", help="Residuals up to ε have no loss."
    )

    name = "epsilon_insensitive"
    label = "Epsilon-insensitive"
    formula = r"\max\{|f-y|-\epsilon, 0\}"
    task = "regression"
    scalar = residual_loss("insensitive", value, derivative, second)
    jitable_conjugate = staticmethod(conjugate)
    smooth = False

    @property
    def majoriser(self) -> Majoriser:
        return Majoriser(SquaredExcess(self.epsilon))
