"""TI, the triangular-inequality regularizer: squared ℓ1 norms of the columns of P."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import WhyNot
from ..settings import setting
from ._coupled import entries_penalty, entry_penalty, entry_penalty_in_row
from .base import EntryView, MatrixView, Penalty, RowView
from .operators.coupled import COUPLED_ENTRIES
from .operators.matrix import shrink_squared_columns, shrink_squared_rows
from .operators.squared_norm import ALGORITHMS, prox_squared_l1
from .powers import PowerTI


@dataclass(frozen=True)
class TI(Penalty):
    """Ω(P) = Σ_s (Σ_j |p_js|)², or with axis="rows" Σ_j (Σ_s |p_js|)²."""

    axis: str = setting(
        "columns",
        choices=("columns", "rows"),
        help="Whether to square the norms of the columns (the definition, Eq. 30) or of the rows.",
    )

    name = "ti"
    label = "TI"
    formula = r"\|P^\top\|_{1,2}^2 = \sum_{s} \|p_{:,s}\|_1^2"
    prox_formula = (
        r"q_{js} = \operatorname{sign}(p_{js})\,\max(|p_{js}|-2\lambda S_{\theta,s},\,0)"
        r",\quad S_{\theta,s} = \|q_{:,s}\|_1"
    )
    selects = "interactions: in each column, entries that are large relative to the others"
    stands_for = "for *triangular inequality*: the sum of the squared ℓ₁ norms of its columns"
    mechanism = (
        "The threshold of TI for an entry grows with the other entries of its column: large entries of one "
        "group suppress small ones of the others, until each column belongs to a single group."
    )
    parts_pairs = True
    source = "atarashi2021, Eq. 20 and 30, Theorem 7"
    algorithms = tuple(ALGORITHMS)
    power = 2
    beyond_pairs = "omega_ti"

    def of_order(self, order: int | None) -> Penalty | WhyNot:
        """Return the power of order m ([A] Eq. 45)."""
        if order is None:
            return WhyNot(
                "open_problem",
                "TI for all subsets would be the sum of ‖p‖₁^m over all m, whose operator is an open "
                "problem (atarashi2021, Section 6.2). Choose Ω_TI, linear in every entry of P, or ℓ₁.",
            )
        return self if order == 2 else PowerTI(order, self.axis)

    def words(self) -> tuple[str, str, str]:
        if self.axis == "rows":
            return (
                r"\|P\|_{1,2}^2 = \sum_{j} \|p_j\|_1^2",
                r"q_{js} = \operatorname{sign}(p_{js})\,\max(|p_{js}|-2\lambda S_{\theta,j},\,0)"
                r",\quad S_{\theta,j} = \|q_j\|_1",
                "interactions only weakly: in each row, entries that are large relative to the others",
            )
        return self.formula, self.prox_formula, self.selects

    def value(self, P: np.ndarray) -> float:
        """Return the sum of squared ℓ1 norms along `axis`."""
        return float(np.square(np.abs(P).sum(axis=self.axis_of_sums)).sum())

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Apply [A] Eq. 30 to every column, or to every row."""
        if self.axis == "rows":
            return prox_squared_l1(P, strength, algorithm)
        return np.ascontiguousarray(prox_squared_l1(P.T, strength, algorithm).T)

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return 2·(‖p‖₁ − |p_js|), the norm taken along `axis`."""
        return 2.0 * sum_of_others(np.abs(P), self.axis_of_sums)

    @property
    def in_weights(self) -> Literal["entries", "trace"]:
        return "trace" if self.axis == "rows" else "entries"

    @property
    def entry(self) -> EntryView:
        if self.axis == "rows":
            return entry_penalty_in_row(quad=1.0, coupled=2.0)
        return entry_penalty(quad=1.0, coupled=2.0)

    @property
    def row(self) -> RowView | None:
        """The view for axis="columns"; with axis="rows", a row has no separable step."""
        return None if self.axis == "rows" else entries_penalty(quad=1.0, coupled=2.0)

    @property
    def matrix(self) -> MatrixView:
        """The operator; with axis="rows", rows shrink by different amounts, without a common offset."""
        if self.axis == "rows":
            return MatrixView("ti_rows", shrink_squared_rows)
        return MatrixView(self.name, shrink_squared_columns, lazy=COUPLED_ENTRIES)


def sum_of_others(size: np.ndarray, axis: int) -> np.ndarray:
    """Return the sum of all other entries along `axis` for every entry, without subtraction."""
    along = np.moveaxis(size, axis, 0)
    total, after = np.zeros_like(along), np.zeros_like(along)
    np.cumsum(along[:-1], axis=0, out=total[1:])
    np.cumsum(along[:0:-1], axis=0, out=after[-2::-1])
    total += after
    return np.moveaxis(total, 0, axis)
