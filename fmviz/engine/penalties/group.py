"""The group lasso: whole groups of features, such as the columns of a table, in or out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import whole_number
from ..settings import setting
from .base import MatrixView, Penalty, unit_rows
from .l21 import L21
from .operators.matrix import shrink_groups


@dataclass(frozen=True)
class Group(Penalty):
    """Ω(P) = Σ_g √|g| ‖P_g‖_F, where P_g are the rows of P of the features in group g.

    Parameters
    ----------
    groups : tuple
        The group of every feature, a number or a name; or tuples of the indices of the features in a group.
        Other features are groups by themselves. Empty: the columns of a table, or single features.
    """

    groups: tuple[Any, ...] = setting(
        (), symbol="g", help="Groups of features. Empty: the columns of a table, or single features."
    )

    name = "group"
    label = "Group lasso"
    formula = r"\sum_{g} \sqrt{|g|}\,\|P_g\|_F"
    prox_formula = r"Q_g = \max\!\Big(1-\dfrac{\lambda\sqrt{|g|}}{\|P_g\|_F},\,0\Big)\,P_g"
    selects = "groups of features, such as the columns of a table: blocks of rows of P with a large norm"
    stands_for = "the sum of the Euclidean norms of its blocks of rows, one for every column of a table"
    mechanism = (
        "The group lasso removes all rows of a group from P. A column of a table, with all its levels or "
        "bins, takes part in interactions or is dropped."
    )
    source = "Yuan and Lin 2006, on blocks of rows of P"
    row_wise = True
    why_no_entry = (
        "PCD updates one entry of P at a time, but the group lasso sets all entries of a group to 0 "
        "together. Use APGD, nmAPGD or PGD, which update all of P."
    )
    why_no_row = (
        "PBCD updates one row of P at a time, but the group lasso sets all rows of a group to 0 together, "
        "and not one by one. Use APGD, nmAPGD or PGD, which update all of P."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _numbers(self.groups)

    def for_features(self, groups: Sequence[Hashable]) -> Group:
        """Return the group lasso of these groups, or of those that were chosen, one for each feature."""
        if self.groups:
            numbers = _numbers(self.groups, len(groups))
            return replace(self, groups=tuple(numbers)) if isinstance(self.groups[0], tuple) else self
        return self if len(set(groups)) == len(groups) else replace(self, groups=tuple(groups))

    def of_features(self, features: np.ndarray) -> Group:
        """Return the group lasso of some features; those without a group are groups by themselves."""
        old = self.groups
        return replace(
            self, groups=tuple(old[j] if j < len(old) else f"feature {j}" for j in features if old)
        )

    def _blocks(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the number of the group of every row; √|g| and the norm of every group; and P over norms."""
        numbers = _numbers(self.groups, len(P))
        rows, unit = unit_rows(P)
        weights = np.sqrt(np.bincount(numbers))
        norms = np.zeros_like(weights)
        np.hypot.at(norms, numbers, rows[:, 0])
        share = np.divide(rows, norms[numbers, None], out=np.zeros_like(rows), where=rows > 0.0)
        return numbers, weights, norms, share * unit

    def value(self, P: np.ndarray) -> float:
        """Return the sum of the weighted norms of the groups."""
        _, weights, norms, _ = self._blocks(P)
        return float(weights @ norms)

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Shrink the norm of every group by `strength`·√|g|."""
        numbers, weights, norms, _ = self._blocks(P)
        new = np.maximum(norms - strength * weights, 0.0)
        return np.divide(new, norms, out=np.zeros_like(norms), where=norms > 0.0)[numbers, None] * P

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its projection onto strength·∂Ω(Q), a ball for a group that is 0."""
        numbers, _, norms, _ = self._blocks(Q)
        return np.where(
            norms[numbers, None] > 0.0, G - strength * self.subgradient(Q), self.prox(G, strength)
        )

    def subgradient(self, P: np.ndarray) -> np.ndarray:
        numbers, weights, _, unit = self._blocks(P)
        return weights[numbers, None] * unit

    @property
    def matrix(self) -> MatrixView | None:
        """The operator, with the groups as its parameters."""
        if not self.groups:
            return L21.matrix
        numbers = _numbers(self.groups)
        return MatrixView(self.name, shrink_groups, theta=(numbers, np.sqrt(np.bincount(numbers))))


@lru_cache(16)
def _numbers(groups: tuple[Any, ...], d: int | None = None) -> np.ndarray:
    """Return the groups of d features as numbers 0, 1, …; without d, of features with a group each.

    Raises
    ------
    ValueError
        If they are not the groups of d features.
    """
    each: Sequence[Hashable] = groups or range(d or 0)
    size = len(each)
    if any(isinstance(group, tuple) for group in groups):
        if not all(isinstance(group, tuple) for group in groups):
            raise ValueError(
                "groups mixes groups with lists of features; give the group of every feature, or one list of "
                "features per group."
            )
        counts = Counter(whole_number("A feature in groups", j, 0) for group in groups for j in group)
        if twice := [j for j, count in counts.items() if count > 1]:
            raise ValueError(f"groups lists feature {twice[0]} twice; a feature is in one group at most.")
        place = {j: number for number, group in enumerate(groups) for j in group}
        size = max(d or 0, max(place, default=-1) + 1)
        each = [place.get(j, (j,)) for j in range(d or 0)]
    if d is not None and size != d:
        raise ValueError(
            f"groups of the group lasso are those of {size:,} features, but there are {d:,}; give one group "
            "per feature, or lists of features."
        )
    order = {group: number for number, group in enumerate(dict.fromkeys(each))}
    return np.array([order[group] for group in each], dtype=np.int64)
