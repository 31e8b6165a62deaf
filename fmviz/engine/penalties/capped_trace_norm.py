"""The capped squared trace norm of pair weights: small eigenvalues are shrunk, large ones are free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg.spectral import SpectralView, capped_squares, spectral_prox, spectral_value
from ..settings import LARGE, SMALL, setting
from .base import Penalty


@dataclass(frozen=True)
class CappedTraceNorm(Penalty):
    """Σ_s min{λ_s², ε₃} over the eigenvalues of a symmetric W, shape (d, d) (robust_fm, Eq. 2).

    Over ε₃ it tends to the rank of W as ε₃ falls. Not convex.
    """

    cap: float = setting(
        1.0,
        low=SMALL,
        high=LARGE,
        log=True,
        symbol=r"\epsilon_3",
        help="Squared eigenvalues beyond ε₃ are free.",
    )

    name = "capped_trace"
    label = "capped squared trace norm"
    formula = r"\sum_s \min\{\lambda_s^2, \epsilon_3\}"
    prox_formula = (
        r"\text{eigenvalues } \mu \mapsto \frac{\mu}{1+2\lambda} \text{ if } "
        r"\mu^2 \le (1+2\lambda)\epsilon_3,\ \mu \text{ else}"
    )
    selects = "eigenvalues: those that are free are the rank of W"
    source = "robust_fm, Eq. 2"
    separable = False
    convex = False

    def value(self, P: np.ndarray) -> float:
        """Return Σ min{λ_s², ε₃}."""
        return spectral_value(self.spectral, P)

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Divide the eigenvalues by 1 + 2·strength, or leave those that this would cost more."""
        return spectral_prox(self.spectral, P, strength)

    @property
    def spectral(self) -> SpectralView:
        """See `Penalty.spectral`."""
        return capped_squares(self.cap)
