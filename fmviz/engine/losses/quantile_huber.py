"""The quantile Huber loss: a smoothed pinball loss."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from .._jit import jitable
from ..settings import setting
from .base import Loss
from .scalar import residual_loss


@jitable
def share(r, tau):
    """Return the weight of a residual: 1 − τ if the prediction is too high, τ if it is too low."""
    return 1.0 - tau if r > 0.0 else tau


@jitable
def value(r, unused, theta):
    tau, delta = theta
    size = abs(r)
    huber = 0.5 * size * size / delta if size <= delta else size - 0.5 * delta
    return share(r, tau) * huber


@jitable
def derivative(r, unused, theta):
    tau, delta = theta
    return share(r, tau) * min(max(r / delta, -1.0), 1.0)


@jitable
def second(r, unused, theta):
    tau, delta = theta
    return share(r, tau) / delta if abs(r) <= delta else 0.0


@jitable
def conjugate(a, y, theta):
    tau, delta = theta
    if a < -tau or a > 1.0 - tau:
        return inf
    return a * (0.5 * a * delta / share(a, tau) + y)


@dataclass(frozen=True)
class QuantileHuber(Loss):
    """ℓ(f, y) = |τ − 1{f > y}|·H_δ(f − y)/δ with Huber's H_δ(r) = ½r² up to |r| = δ, δ(|r| − δ/2) beyond.

    Its minimizer tends to the τ-quantile of y as δ decreases: the loss is τ per unit if the prediction is too
    low, and 1 − τ per unit if it is too high, reduced by at most δ/2 units.
    """

    tau: float = setting(
        0.5, low=0.01, high=0.99, symbol=r"\tau", help="The predicted quantile of the target."
    )
    delta: float = setting(
        0.1, low=1e-6, high=1e6, log=True, symbol=r"\delta", help="Residuals beyond δ have a linear loss."
    )

    name = "quantile_huber"
    label = "Quantile Huber"
    formula = (
        r"w\,\tfrac{r^2}{2\delta} \text{ if } |r|\le\delta,\ w\,(|r|-\tfrac{\delta}{2}) \text{ else},"
        r"\quad r=f-y,\ w=\begin{cases}1-\tau&r>0\\\tau&r\le0\end{cases}"
    )
    task = "regression"
    scalar = residual_loss("quantile_huber", value, derivative, second)
    jitable_conjugate = staticmethod(conjugate)

    def mu(self) -> float:
        """Return max(τ, 1 − τ)/δ."""
        return max(self.tau, 1.0 - self.tau) / self.delta
