"""The elastic net: a mixture of the ℓ1 norm and the squared Frobenius norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..settings import setting
from ._coupled import entries_penalty, entry_penalty
from .base import EntryView, MatrixView, Penalty, RowView
from .operators.lazy import ENTRIES
from .operators.matrix import soften


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """Ω(P) = ρ‖P‖₁ + (1 − ρ)‖P‖²_F."""

    rho: float = setting(
        0.5, low=0.0, high=1.0, symbol=r"\rho", help="The weight of ‖P‖₁; ‖P‖²_F has the weight 1 − ρ."
    )

    name = "elastic_net"
    label = "Elastic net"
    formula = r"\rho\|P\|_1 + (1-\rho)\|P\|_F^2"
    prox_formula = (
        r"q_{js} = \dfrac{\operatorname{sign}(p_{js})\,\max(|p_{js}|-\lambda\rho,\,0)}{1+2\lambda(1-\rho)}"
    )
    selects = "entries of P that are large in absolute terms, and shrinks the selected ones"
    source = "Zou and Hastie 2005, the naive elastic net, on the entries of P"

    @property
    def smooth(self) -> bool:
        """Whether ρ = 0, that is, without ‖P‖₁."""
        return self.rho == 0.0

    @property
    def in_weights(self) -> Literal["trace"] | None:
        return "trace" if self.smooth else None

    def value(self, P: np.ndarray) -> float:
        """Return ρ·Σ|p_js| + (1 − ρ)·Σ p_js²."""
        return float(self.rho * np.abs(P).sum() + self.quad * np.square(P).sum())

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Shrink every entry by strength·ρ, then by the factor 1/(1 + 2·strength·(1 − ρ))."""
        shrunk = np.sign(P) * np.maximum(np.abs(P) - strength * self.rho, 0.0)
        # Adding 0 turns −0 into 0.
        return shrunk / (1.0 + 2.0 * strength * self.quad) + 0.0

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return ρ for every entry."""
        return np.full_like(P, self.rho)

    @property
    def entry(self) -> EntryView:
        return entry_penalty(quad=1.0 - self.rho, fixed=self.rho)

    @property
    def row(self) -> RowView:
        return entries_penalty(quad=1.0 - self.rho, fixed=self.rho)

    @property
    def matrix(self) -> MatrixView:
        """The kernel of ℓ1 with the weight ρ."""
        return MatrixView("l1", soften, quad=self.quad, weight=self.rho, lazy=ENTRIES)
