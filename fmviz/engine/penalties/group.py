"""The group lasso: whole groups of features, such as the columns of a table, in or out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import whole_number
from ..settings import setting
from .base import MatrixView, Penalty, unit_rows
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
        nested = [isinstance(group, tuple) for group in self.groups]
        if any(nested):
            if not all(nested):
                raise ValueError(
                    "groups mixes groups with lists of features; give the group of every feature, or one "
                    "list of features per group."
                )
            members = [whole_number("A feature in groups", j, 0) for group in self.groups for j in group]
            if len(set(members)) < len(members):
                twice = max(members, key=members.count)
                raise ValueError(f"groups lists feature {twice} twice; a feature is in one group at most.")

    @cached_property
    def _listed(self) -> np.ndarray:
        """The groups of the first features, as numbers 0, 1, …."""
        if not self.groups or not isinstance(self.groups[0], tuple):
            return _numbered(self.groups)
        names: list[Hashable] = [(j,) for j in range(1 + max(max(g, default=-1) for g in self.groups))]
        for number, group in enumerate(self.groups):
            for j in group:
                names[j] = number
        return _numbered(names)

    def _numbers(self, d: int) -> np.ndarray:
        """Return the groups of d features, as numbers 0, 1, …."""
        if (n := self._listed.size) > d:
            raise ValueError(f"groups of the group lasso lists {n:,} features, but X has {d:,}.")
        alone = np.arange(d - n) + self._listed.max(initial=-1) + 1
        return np.concatenate([self._listed, alone])

    def for_features(self, groups: Sequence[Hashable]) -> Group:
        """Return the group lasso of these groups, or itself if its groups were chosen or all are single."""
        d = len(groups)
        if not self.groups:
            return self if len(set(groups)) == d else replace(self, groups=tuple(groups))
        self._numbers(d)
        if not isinstance(self.groups[0], tuple) and len(self.groups) < d:
            raise ValueError(
                f"groups of the group lasso has {len(self.groups):,} items, but X has {d:,} features; give "
                "one group per feature, or lists of features."
            )
        return self

    def of_features(self, features: np.ndarray) -> Group:
        d = max(self._listed.size, int(features.max(initial=-1)) + 1)
        return replace(self, groups=tuple(self._numbers(d)[features]))

    def _blocks(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the number of the group of every row, and of all groups √|g|, norms, and P over the norms.

        Norms are first scaled by powers of two, which prevents overflow and underflow.
        """
        numbers = self._numbers(len(P))
        rows, unit = unit_rows(P)
        sizes = rows[:, 0]
        largest = np.zeros(numbers.max(initial=-1) + 1)
        np.maximum.at(largest, numbers, sizes)
        exponent = np.frexp(largest)[1]
        scaled = np.ldexp(sizes, -exponent[numbers])
        norms = np.sqrt(np.bincount(numbers, np.square(scaled), largest.size))
        share = np.divide(scaled, norms[numbers], out=np.zeros_like(scaled), where=scaled > 0.0)
        weights = np.sqrt(np.bincount(numbers))
        return numbers, weights, np.ldexp(norms, exponent), share[:, None] * unit

    def value(self, P: np.ndarray) -> float:
        """Return the sum of the weighted norms of the groups."""
        _, weights, norms, _ = self._blocks(P)
        return float(weights @ norms)

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Shrink the norm of every group by `strength`·√|g|."""
        numbers, weights, norms, _ = self._blocks(P)
        new = np.maximum(norms - strength * weights, 0.0)
        factors = np.divide(new, norms, out=np.zeros_like(norms), where=norms > 0.0)
        return factors[numbers, None] * P

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its projection onto strength·∂Ω(Q), a ball for a group that is 0."""
        numbers, _, norms, _ = self._blocks(Q)
        live = norms[numbers, None] > 0.0
        return np.where(live, G - strength * self.subgradient(Q), self.prox(G, strength))

    def subgradient(self, P: np.ndarray) -> np.ndarray:
        numbers, weights, _, unit = self._blocks(P)
        return weights[numbers, None] * unit

    @property
    def matrix(self) -> MatrixView:
        """The operator, with the groups as its parameters."""
        numbers = self._listed
        return MatrixView(self.name, shrink_groups, theta=(numbers, np.sqrt(np.bincount(numbers))))


def _numbered(groups: Sequence[Hashable]) -> np.ndarray:
    """Return the numbers 0, 1, … of groups, in the order of their first features."""
    order = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    return np.array([order[group] for group in groups], dtype=np.int64)
