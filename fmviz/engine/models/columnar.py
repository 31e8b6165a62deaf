"""Base class of models that are sums of kernels of the columns of P."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design import Design
from ..parameters import Parameters
from .base import Model

LONGER: Mapping[str, Any] = {"max_epochs": 2_000, "tol": 1e-3}
"""Settings for models that converge in many small steps."""


@dataclass(frozen=True)
class ColumnModel(Model):
    """f(x) = b + ⟨w, x⟩ + Σ_s c_s K_s(p_:,s, x), with one kernel K for every block of columns.

    The coefficients c are 1 unless a subclass overrides them.
    """

    columnar = True

    def orders_of_columns(self, rank: int) -> list[tuple[slice, int | None]]:
        return [(columns, kernel.degree) for columns, kernel in self.blocks(rank)]

    @property
    def least_features(self) -> int:
        """The highest order of the kernels of distinct features."""
        return max((kernel.degree or 1) if kernel.multilinear else 1 for kernel in self.kernels)

    def check_size(self, d: int, rank: int) -> None:
        """Check that memory and the number of features suffice."""
        order = self.least_features
        if order > d:
            word = "degree" if "degree" in self.settings else "order"
            way_out = f"Choose {word} = {d} or less." if d > 1 else "Add features."
            raise ValueError(
                f"{self.label} has interactions of {word} {order}, but the data have only {d} feature(s). "
                f"{way_out}"
            )
        super().check_size(d, rank)

    def predict(self, design: Design, parameters: Parameters) -> np.ndarray:
        """Return f for every row of the design, shape (N,)."""
        f = self.linear_part(design, parameters)
        for columns, kernel in self.parts(parameters.P.shape[1]):
            f += kernel.values(design, parameters.P[:, columns]) @ parameters.multipliers[columns]
        return f

    def gradient(
        self, design: Design, parameters: Parameters, slope: np.ndarray, sums: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        in_P = np.empty_like(parameters.P)
        for columns, kernel in self.parts(parameters.P.shape[1]):
            outer = slope[:, None] * parameters.multipliers[columns]
            in_P[:, columns] = kernel.gradient(design, parameters.P[:, columns], outer)
        return in_P, design.transpose_dot(slope), float(slope.sum())

    def curvature(
        self, design: Design, parameters: Parameters, weight: np.ndarray, sums: np.ndarray | None = None
    ) -> np.ndarray:
        total = np.empty_like(parameters.P)
        for columns, kernel in self.parts(parameters.P.shape[1]):
            outer = weight[:, None] * parameters.multipliers[columns] ** 2
            total[:, columns] = kernel.squares(design, parameters.P[:, columns], outer)
        return total
