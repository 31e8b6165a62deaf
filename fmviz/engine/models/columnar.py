"""Base class of models that are sums of kernels of the columns of P."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..counting import used_sets
from ..design import Design
from ..parameters import Parameters
from .base import Model
from .columns import ColumnKernel, ColumnViews

LONGER: Mapping[str, Any] = {"max_epochs": 2_000, "tol": 1e-3}
"""Settings for models that converge in many small steps."""


@dataclass(frozen=True)
class ColumnModel(Model):
    """f(x) = b + ⟨w, x⟩ + Σ_s c_s K_s(p_:,s, x), with one kernel K for every block of columns.

    The coefficients c are 1 unless a subclass overrides them.
    """

    columnar = True

    _kernels: ClassVar[Any] = ()

    def kernels(self) -> tuple[ColumnKernel, ...]:
        """Return the kernel of each block; every block has `rank` columns."""
        return self._kernels

    @property
    def multilinear(self) -> bool:
        return all(kernel.multilinear for kernel in self.kernels())

    def blocks(self, rank: int) -> list[tuple[slice, ColumnKernel]]:
        """Return the columns and the kernel of every block of P, from left to right."""
        return [(slice(b * rank, (b + 1) * rank), kernel) for b, kernel in enumerate(self.kernels())]

    def views(self, rank: int) -> tuple[ColumnViews, ...]:
        return tuple(
            ColumnViews(columns, kernel.entries, kernel.rows) for columns, kernel in self.blocks(rank)
        )

    def orders_of_columns(self, rank: int) -> list[tuple[slice, int | None]]:
        return [(columns, kernel.degree) for columns, kernel in self.blocks(rank)]

    @property
    def by_order(self) -> bool:
        return len(self.kernels()) > 1

    @property
    def order(self) -> int | None:
        degrees = [kernel.degree for kernel in self.kernels()]
        return None if None in degrees else max(degree for degree in degrees if degree is not None)

    @property
    def least_features(self) -> int:
        """The highest order of the kernels of distinct features."""
        return max((kernel.degree or 1) if kernel.multilinear else 1 for kernel in self.kernels())

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

    def shapes(self, d: int, rank: int) -> dict[str, tuple[int, ...]]:
        return {"P": (d, rank * len(self.kernels())), "w": (d,), "intercept": ()}

    def parts(self, n_columns: int) -> list[tuple[slice, ColumnKernel]]:
        """Return the `blocks` of a P with this number of columns."""
        return self.blocks(n_columns // len(self.kernels()))

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

    def used_features(self, parameters: Parameters) -> int:
        """Return the number of features in any used interaction: rows of P with a non-zero entry.

        Columns with coefficient 0 do not count.
        """
        return int(np.count_nonzero(_live(parameters).any(axis=1)))

    def used_interactions(self, parameters: Parameters) -> int:
        """Return the number of structurally non-zero subsets over all orders."""
        return sum(self.used_by_order(parameters).values())

    def used_by_order(self, parameters: Parameters) -> dict[int, int]:
        """Return the number of used subsets of every order; for all subsets, orders 2 and 3."""
        live = _live(parameters)
        return {
            order: used_sets(live[None, :, columns], order)
            for columns, kernel in self.parts(parameters.P.shape[1])
            for order in ((2, 3) if kernel.degree is None else (kernel.degree,))
        }


def _live(parameters: Parameters) -> np.ndarray:
    """Return P with zeros in the columns whose coefficient is 0."""
    if parameters.coefficients is None:
        return parameters.P
    return np.asarray(np.where(parameters.coefficients != 0, parameters.P, 0.0))
