"""The trace norm of pair weights W, which takes the place of ‖P‖²_F in models of W."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg.spectral import (
    TRACE_NORM,
    spectral_prox,
    spectral_value,
)
from .base import Penalty


@dataclass(frozen=True)
class TraceNorm(Penalty):
    """‖W‖_tr = Σ|eigenvalues| of a symmetric W, shape (d, d): of PPᵀ it is ‖P‖²_F."""

    name = "trace"
    label = "trace norm"
    formula = r"\|W\|_{\mathrm{tr}}"
    prox_formula = r"\text{eigenvalues } \mu \mapsto \operatorname{sign}(\mu)\max(|\mu|-\lambda, 0)"
    selects = "eigenvalues: a W of low rank"
    source = "atarashi2021, Eq. 58"
    separable = False
    spectral = TRACE_NORM

    def value(self, P: np.ndarray) -> float:
        """Return the sum of the |eigenvalues|."""
        return spectral_value(TRACE_NORM, P)

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Move the eigenvalues towards 0 by `strength`."""
        return spectral_prox(TRACE_NORM, P, strength)
