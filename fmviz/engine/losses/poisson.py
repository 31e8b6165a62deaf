"""The Poisson deviance, for counts."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, inf, log

import numpy as np

from .._exponential import exp_ratio
from .._jit import jitable
from ..settings import SMALL
from .base import Loss
from .scalar import ScalarLoss


@jitable
def exponential(f):
    below, above = exp_ratio(f)
    return above / below


@jitable
def value(f, y, theta):
    # Close to the minimum, the terms of the formula would cancel. Beyond the clip of the exponential, the
    # linear term alone would decrease.
    u = min(f, 708.0) - log(max(y, SMALL))
    return y * (expm1(u) - u) if u < 30.0 else exponential(f) - y * (1.0 + u)


@jitable
def derivative(f, y, theta):
    return exponential(f) - y


@jitable
def second(f, y, theta):
    return exponential(f)


@jitable
def conjugate(a, y, theta):
    b = a + y
    return b * log(max(b, SMALL)) - b - y * log(max(y, SMALL)) + y if b >= 0.0 else inf


@dataclass(frozen=True)
class Poisson(Loss):
    """ℓ(f, y) = e^f − yf + y log y − y, y ≥ 0: half the Poisson deviance of the mean e^f.

    Its minimum over f is 0. Up to terms without f, it is the negative log-likelihood of counts y with mean
    e^f. Its curvature e^f is unbounded, but e^f stops growing at f = 708 to prevent overflow.
    """

    name = "poisson"
    label = "Poisson deviance"
    formula = r"e^f-yf+y\log y-y"
    task = "regression"
    scalar = ScalarLoss("poisson", value, derivative, second)
    jitable_conjugate = staticmethod(conjugate)
    needs = "counts, or other numbers of at least 0"
    log_link = True

    def why_not_target(self, y: np.ndarray) -> str | None:
        if (least := y.min(initial=0.0)) >= 0.0:
            return None
        return (
            f"y contains {least:g}, but loss {self.name!r} needs {self.needs}; leave y unscaled, or choose "
            "the loss 'squared' or 'huber'."
        )
