"""The second-order factorization machine ([A] Eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..design import Design
from ..errors import WhyNot
from ..memory import aligned_empty
from ..parameters import Parameters
from .base import Model
from .columns import Anova
from .columns.base import once, twice
from .pairs import pair_slopes, pairs_of_rows


@dataclass(frozen=True)
class FactorizationMachine(Model):
    """f(x) = b + ⟨w, x⟩ + Σ_{i<j} ⟨p_i, p_j⟩ x_i x_j."""

    name = "fm"
    label = "Factorization machine, order 2"
    formula = r"f(x) = b + \langle w, x\rangle + \sum_{i<j}\langle p_i, p_j\rangle\,x_i x_j"
    kernels: ClassVar[Any] = (Anova(2),)
    plain = True
    no_threshold: ClassVar[WhyNot | None] = None

    def predict(self, design: Design, parameters: Parameters) -> np.ndarray:
        """Return f for every row of the design, shape (N,), by [A] Eq. 4."""
        live = parameters.P.any(axis=0)
        if not live.all():
            parameters = parameters.replace(P=parameters.P[:, live])
        return self.forward(design, parameters, keep=False)[0]

    def forward(
        self, design: Design, parameters: Parameters, keep: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return f for every row of the design, shape (N,), and XP, shape (N, k)."""
        P = parameters.P
        f = self.linear_part(design, parameters)
        if design.is_read_by_rows(P.shape[1]):
            pairs_of_rows(design.storage)(*design.rows, np.ascontiguousarray(P), f)
            if not keep:
                return f, None
            # In the layout of the kernels.
            A = aligned_empty((P.shape[1], f.size)).T
            for s, column in enumerate(P.T):
                A[:, s] = design.by_rows @ column
            return f, A
        A = design.dot(P)
        if P.shape[1]:
            f += 0.5 * np.square(A).sum(axis=1)
            f -= 0.5 * np.asarray(design.power(2) @ np.square(P).sum(axis=1))
        return f, A

    def gradient(
        self, design: Design, parameters: Parameters, slope: np.ndarray, sums: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the gradient; `sums` is XP."""
        P = parameters.P
        if design.is_read_by_rows(P.shape[1]):
            in_P = pair_slopes(design, P, slope, once)
            return in_P, design.transpose_dot(slope), float(slope.sum())
        A = design.dot(P) if sums is None else sums
        in_P = design.transpose_dot(slope[:, None] * A)
        in_P -= design.transpose_dot(slope, 2)[:, None] * P
        return in_P, design.transpose_dot(slope), float(slope.sum())

    def curvature(
        self, design: Design, parameters: Parameters, weight: np.ndarray, sums: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the curvature, with ∂f/∂p_js = x_j(⟨p_:,s, x⟩ − x_j p_js)."""
        P = parameters.P
        if design.is_read_by_rows(P.shape[1]):
            return pair_slopes(design, P, weight, twice)
        A = design.dot(P) if sums is None else sums
        square = design.transpose_dot(weight[:, None] * np.square(A), 2)
        total = square - 2.0 * design.transpose_dot(weight[:, None] * A, 3) * P
        total += design.transpose_dot(weight, 4)[:, None] * np.square(P)
        # The terms cancel if an entry is alone in its column: the remainder is rounding.
        total[total <= 1e-12 * square] = 0.0
        return total
