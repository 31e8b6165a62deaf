"""Weighted squares that majorize losses with kinks, for iterative reweighting."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from ..errors import WhyNot
from .base import Loss


@dataclass(frozen=True)
class Majoriser:
    r"""Loss ℓ = min{u, cap} of an excess u(f, y) ≥ 0 for which ½u² is smooth.

    ℓ is a concave function of u², and so is its smoothed form with h_δ(u) = u²/2δ + δ/2 up to u = δ and u
    beyond,

        ℓ_δ = min{h_δ(u), cap},  ℓ ≤ ℓ_δ ≤ ℓ + δ/2.

    Its tangent in u² at u₀ is a majorizer: e·u² + const with e = 1/(2 max{u₀, δ}) for 0 ≤ u₀ ≤ cap, and
    e = 0 beyond. Any step that decreases Σ e_n u_n² therefore decreases Σ ℓ_δ by at least as much.

    If u is 0 on an interval, this tangent is as steep as at a kink there, and steps are short. In this case,
    h_δ(u) = ½Σ_k h_{δ/2}(|f − k|) + a linear term, over the kinks k of u, each shifted by δ/2 to u = δ/2;
    the tangents in |f − k|² become flatter with the distance from k (`squares`).

    Attributes
    ----------
    half_square : Loss
        The loss ½u².
    cap : float
        The maximum loss of a row.
    """

    half_square: Loss
    cap: float = inf

    def excess(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return u for arrays of shape (N,)."""
        return np.sqrt(2.0 * self.half_square.value(f, y))

    def weights(self, f: np.ndarray, y: np.ndarray, delta: float) -> np.ndarray:
        """Return 2e, the weight of ½u² in the tangent at f; 0 for rows beyond the cap."""
        u = self.excess(f, y)
        return np.where(u <= self.cap, 1.0 / np.maximum(u, min(delta, self.cap)), 0.0)

    def squares(self, f: np.ndarray, y: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray]:
        """Return c and t of the majorizer ½c(f − t)² + const that touches ℓ_δ at f; c = 0 beyond the cap."""
        bend, half = self.weights(f, y, delta), self.half_square
        slope, delta = bend * half.derivative(f, y), min(delta, self.cap)
        if distances := getattr(half, "distances", None):
            bend = sum(0.5 / np.maximum(d, 0.5 * delta) for d in distances(f, y, delta)) * (bend > 0.0)
        return bend, f - np.divide(slope, bend, out=np.zeros_like(f), where=bend > 0.0)

    def value(self, f: np.ndarray, y: np.ndarray, delta: float) -> np.ndarray:
        """Return ℓ_δ for arrays of shape (N,)."""
        u, delta = self.excess(f, y), min(delta, self.cap)
        return np.minimum(np.where(u <= delta, 0.5 * (u * u / delta + delta), u), self.cap)


@dataclass(frozen=True)
class Smoothed(Loss):
    """Smoothed loss ℓ_δ of a loss with kinks, for certificates and for checks of monotone descent.

    Attributes
    ----------
    loss : Loss
        A loss ℓ with a majorizer.
    delta : float
        δ > 0, in the unit of the target.
    """

    loss: Any = None
    delta: float = 1.0

    name = "smoothed"
    formula = r"\ell_\delta(f, y)"

    @property
    def label(self) -> str:  # type: ignore[override]
        """As for the underlying loss."""
        return f"smoothed {self.loss.label.lower()}"

    @property
    def task(self) -> str:  # type: ignore[override]
        """As for the underlying loss."""
        return self.loss.task

    def mu(self) -> None:
        """Return None: the bound 1/δ is too large to be useful, and beyond a cap there is none."""

    def value(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.loss.majoriser.value(f, y, self.delta)

    def derivative(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the derivative of the tangent at f."""
        majoriser = self.loss.majoriser
        return majoriser.weights(f, y, self.delta) * majoriser.half_square.derivative(f, y)

    def second(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return 1, a mere scale."""
        return np.ones_like(f)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray | None:
        conjugate = self.loss.conjugate(a, y)
        return None if conjugate is None else conjugate + 0.5 * self.delta * (a * a - 1.0)

    def why_no_gap(self) -> WhyNot | None:
        return self.loss.why_no_gap()


def typical_size(y: np.ndarray) -> float:
    """Return the unit of δ: the median of |y − median|, or a similar non-zero measure."""
    apart = np.abs(y - np.median(y))
    return float(np.median(apart)) or float(apart.mean()) or 1.0


def smooth_part(loss: Loss) -> Loss:
    """Return ½u² for a loss with kinks, or the loss itself if it is smooth."""
    return loss if loss.majoriser is None else loss.majoriser.half_square
