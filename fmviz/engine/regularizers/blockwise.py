"""One penalty for the columns of P in groups, each group with its own form of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .base import CoordinatePenalty, MatrixOperator, Regularizer, RowPenalty

Part = tuple[slice, Regularizer, dict[str, Any]]


def parts_of(regularizer: Regularizer, params: dict[str, Any]) -> tuple[Part, ...]:
    """Return the groups of columns with their penalties; all columns are one where there are none."""
    if isinstance(regularizer, Blockwise):
        return regularizer.parts
    return ((slice(None), regularizer, params),)


class Blockwise(Regularizer):
    """Ω(P) = Σ_b Ω_b(P[:, b]), as in [A] Eq. 42 and 49.

    Parameters
    ----------
    chosen : Regularizer
        What the user chose; it gives the name and the words.
    parts : sequence of (slice, Regularizer, dict)
        The columns of each group, their penalty and its parameters.
    """

    def __init__(self, chosen: Regularizer, parts: tuple[Part, ...]) -> None:
        self.parts = parts
        each = [part for _, part, _ in parts]
        # Read through Any: class attributes of all other regularizers, decided here by the parts.
        own: Any = self
        own.name, own.label, own.selects = chosen.name, chosen.label, chosen.selects
        own.formula, own.prox_formula, own.source = chosen.formula, chosen.prox_formula, chosen.source
        own.params, own.row_wise = chosen.params, chosen.row_wise
        own.convex = all(part.convex for part in each)
        own.exact_prox = all(part.exact_prox for part in each)
        own.separable = all(part.separable for part in each) and len({part.quad for part in each}) == 1
        own.quad = each[0].quad if own.separable else 0.0
        own.why_no_operator = next((part.why_no_operator for part in each if part.why_no_operator), "")
        # The reason of the group that lacks the view; where all have it, none is asked for.
        own.why_no_coordinate = next(
            (p.why_no_coordinate for _, p, a in parts if p.coordinate(**a) is None), ""
        )
        own.why_no_row = next((p.why_no_row for _, p, a in parts if p.row(**a) is None), "")

    def _each(
        self, call: Callable[[Regularizer, slice, dict[str, Any]], np.ndarray], axis: int = 1
    ) -> np.ndarray:
        return np.concatenate([call(part, columns, params) for columns, part, params in self.parts], axis)

    def coordinate(self, **params: Any) -> CoordinatePenalty | None:
        """Return the view of the first group, None where some group has none; solvers ask the groups."""
        views = [part.coordinate(**own) for _, part, own in self.parts]
        return None if None in views else views[0]

    def row(self, **params: Any) -> RowPenalty | None:
        """Return the view of the first group, None where some group has none; solvers ask the groups."""
        views = [part.row(**own) for _, part, own in self.parts]
        return None if None in views else views[0]

    def value(self, P: np.ndarray, **params: Any) -> float:
        """Return the sum over the groups."""
        return sum(part.value(P[:, columns], **own) for columns, part, own in self.parts)

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None, **params: Any) -> np.ndarray:
        """Apply the operator of every group to its columns."""
        return self._each(
            lambda part, b, own: part.prox(np.ascontiguousarray(P[:, b]), strength, algorithm, **own)
        )

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float, **params: Any) -> np.ndarray:
        """See `Regularizer.residual`, group by group."""
        return self._each(lambda part, b, own: part.residual(G[:, b], Q[:, b], strength, **own))

    def subgradient(self, P: np.ndarray, **params: Any) -> np.ndarray:
        """See `Regularizer.subgradient`, group by group."""
        return self._each(lambda part, b, own: part.subgradient(P[:, b], **own))

    def thresholds(self, P: np.ndarray, **params: Any) -> np.ndarray:
        """Return the weight of |p_js|, or of the norm of every group in row j, shape (d, groups)."""
        return self._each(lambda part, b, own: part.thresholds(P[:, b], **own))

    def operator(self, **params: Any) -> MatrixOperator | None:
        """Return that of the groups where it is one and the same for every entry by itself, else None."""
        found = [part.operator(**own) for _, part, own in self.parts]
        alike = all(o is not None and o == found[0] and o.lazy in ("decay", "entries") for o in found)
        return found[0] if alike else None
