"""Penalty on groups of columns of P, with a separate form for each group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .base import EntryView, MatrixView, Penalty, RowView
from .operators.lazy import ENTRIES

Part = tuple[slice, Penalty]


def parts_of(penalty: Penalty) -> tuple[Part, ...]:
    """Return the groups of columns with their penalties; without groups, all columns form one."""
    return penalty.parts if isinstance(penalty, Blockwise) else ((slice(None), penalty),)


@dataclass(frozen=True, eq=False)
class Blockwise(Penalty):
    """Ω(P) = Σ_b Ω_b(P[:, b]), as in [A] Eq. 42 and 49.

    Parameters
    ----------
    origin : Penalty
        The penalty chosen by the user; the source of name, parameters and texts.
    parts : tuple of (slice, Penalty)
        The columns of each group and their penalty.
    """

    origin: Penalty
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        """Copy the attributes of the chosen penalty, or combine the attributes of all parts."""
        each = [part for _, part in self.parts]
        words = ("name", "label", "selects", "formula", "prox_formula", "source", "params", "row_wise")
        for attribute, value in (
            *((word, getattr(self.origin, word)) for word in words),
            ("exact_prox", all(part.exact_prox for part in each)),
            ("why_no_operator", next((part.why_no_operator for part in each if part.why_no_operator), "")),
            # The reason given by the group without the view.
            ("why_no_entry", next((part.why_no_entry for part in each if part.entry is None), "")),
            ("why_no_row", next((part.why_no_row for part in each if part.row is None), "")),
        ):
            object.__setattr__(self, attribute, value)

    @property
    def chosen(self) -> Penalty:
        return self.origin

    @property
    def settings(self) -> dict[str, object]:
        """The parameters of the chosen penalty."""
        return self.origin.settings

    @property
    def convex(self) -> bool:
        return all(part.convex for _, part in self.parts)

    @property
    def smooth(self) -> bool:
        return all(part.smooth for _, part in self.parts)

    @property
    def separable(self) -> bool:
        each = [part for _, part in self.parts]
        return all(part.separable for part in each) and len({part.quad for part in each}) == 1

    def _each(self, call: Callable[[Penalty, slice], np.ndarray]) -> np.ndarray:
        return np.concatenate([call(part, columns) for columns, part in self.parts], axis=1)

    @property
    def entry(self) -> EntryView | None:
        """The view of the first group, None if any group has none; solvers use the view of each group."""
        views = [part.entry for _, part in self.parts]
        return None if None in views else views[0]

    @property
    def row(self) -> RowView | None:
        """The view of the first group, None if any group has none; solvers use the view of each group."""
        views = [part.row for _, part in self.parts]
        return None if None in views else views[0]

    @property
    def matrix(self) -> MatrixView | None:
        """The common operator of all groups if it acts on single entries, else None."""
        views = [part.matrix for _, part in self.parts]
        alike = all(v is not None and v == views[0] and v.lazy is ENTRIES for v in views)
        return views[0] if alike else None

    def value(self, P: np.ndarray) -> float:
        """Return the sum over the groups."""
        return sum(part.value(P[:, columns]) for columns, part in self.parts)

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Apply the operator of every group to its columns."""
        return self._each(lambda part, b: part.prox(np.ascontiguousarray(P[:, b]), strength, algorithm))

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return the residual, group by group."""
        return self._each(lambda part, b: part.residual(G[:, b], Q[:, b], strength))

    def subgradient(self, P: np.ndarray) -> np.ndarray:
        """Return a subgradient, group by group."""
        return self._each(lambda part, b: part.subgradient(P[:, b]))

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return the weight of |p_js|, or of the norm of every group in row j, shape (d, groups)."""
        return self._each(lambda part, b: part.thresholds(P[:, b]))
