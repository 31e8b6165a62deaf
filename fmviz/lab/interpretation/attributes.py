"""Find the column of a table that a feature of X belongs to, and read and change its values in a row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.lab.datasets import Dataset
from fmviz.tables.columns import FeatureColumn, NumberColumn, TextColumn, WordColumn
from fmviz.tables.scaling import Scaling

Kind = Literal["levels", "flag", "number"]
NONE = -1
"""The place of no level: of a row in which all features of the attribute are 0."""


@dataclass(frozen=True)
class Attribute:
    """A column of a table, or a word of its texts, and its features.

    Attributes
    ----------
    column : FeatureColumn
        The column.
    columns : tuple of int
        Its features, as columns of X.
    can_lack : bool
        Whether some row has none of the levels.
    """

    column: FeatureColumn
    columns: tuple[int, ...]
    can_lack: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.column.name

    @property
    def kind(self) -> Kind:
        """Whether it is a number, one of several levels, or there or not."""
        if isinstance(self.column, NumberColumn):
            return "number"
        return "flag" if len(self.columns) == 1 else "levels"

    @property
    def words(self) -> tuple[str, ...]:
        """What each of its features stands for."""
        own = self.column.categories if isinstance(self.column, WordColumn) else self.column.labels
        return (*own, *["(missing)"] * (len(self.columns) - len(own)))

    @property
    def scaling(self) -> Scaling | None:
        """How a number was scaled."""
        return self.column.scalings[0]

    def value(self, x: np.ndarray) -> float:
        """Return its value in a row of X: the index of the level or `NONE`, or the number; NaN if missing."""
        own = x[list(self.columns)]
        if isinstance(self.column, NumberColumn):
            missing = self.column.missing == "mark" and own[-1] == 1.0
            return math.nan if missing else float(self.column.center + self.column.scale * own[0])
        (places,) = np.nonzero(own)
        if self.kind == "flag":
            return float(places.size)
        return float(places[0]) if places.size else float(NONE)

    def encode_into(self, x: np.ndarray, value: float) -> None:
        """Write a value, as `value` returns it, into a row of X; ValueError if it is invalid."""
        features = list(self.columns)
        low, high = {"number": (-math.inf, math.inf), "flag": (0, 1), "levels": (NONE, len(features) - 1)}[
            self.kind
        ]
        if not (np.isfinite(value) and low <= value <= high and (low == -math.inf or value == int(value))):
            allowed = "any finite number" if low == -math.inf else f"a whole number from {low} to {high}"
            raise ValueError(f"{self.name} has no value {value:g}; give {allowed}.")
        if self.kind == "number":
            x[features] = sp.hstack(self.column.features(pd.Series([value]))).toarray()[0]
        else:
            x[features] = value if self.kind == "flag" else np.arange(len(features)) == value

    def words_for(self, value: float) -> str:
        """Return a value in words."""
        if self.kind == "number":
            return "(missing)" if math.isnan(value) else f"{value:.6g}"
        if self.kind == "flag" and isinstance(self.column, TextColumn):
            return "yes" if value else "no"
        other = (getattr(self.column, "others", ()) or ("(none)",))[0]
        # A flag is 0 without its only level.
        place = int(value) - (self.kind == "flag")
        return self.words[place] if place != NONE else other

    def is_line(self, feature: int) -> bool:
        """Return whether a feature is the straight line of a number."""
        return self.kind == "number" and feature == self.columns[0]

    def condition(self, feature: int) -> str:
        """Return what is true of rows in which a feature, no straight line, is not zero."""
        place, column = self.columns.index(feature), self.column
        if place == len(column.labels):
            return f"{self.name} is missing"
        if isinstance(column, WordColumn):
            return f"{self.name} is {self.words[place]}"
        if isinstance(column, NumberColumn):
            words = [words for basis in column.curves for words in basis.labels("")][place - 1]
            if words.startswith("="):
                return f"{self.name} is between {' and '.join(words[1:].split('…'))}"
            return f"{self.name} is about {words[1:]}"
        return f"{self.name} is there"


@dataclass(frozen=True, eq=False)
class Attributes:
    """All attributes of a data set, in the order of their first features.

    Attributes
    ----------
    dataset : Dataset
        The data.
    """

    dataset: Dataset

    @cached_property
    def all(self) -> tuple[Attribute, ...]:
        """The attributes; words of texts, and features of one name that are not its levels, stand alone."""
        attributes: list[Attribute] = []
        places = iter(range(len(self.dataset.feature_names)))
        given = (
            (column, tuple(islice(places, len(column.feature_names)))) for column in self.dataset.columns
        )
        for column, features in given if self.dataset.columns else self._guessed():
            if isinstance(column, TextColumn):
                attributes += [Attribute(self._flag(j), (j,)) for j in features]
            else:
                lack = isinstance(column, WordColumn) and bool((self._sums(features) == 0).any())
                attributes.append(Attribute(column, features, lack))
        return tuple(attributes)

    def _guessed(self) -> Iterator[tuple[FeatureColumn, tuple[int, ...]]]:
        """Yield columns of data that were made from no table, by their names and entries."""
        names, binary = self.dataset.feature_names, _binary(self.dataset.X)
        members: dict[str, list[int]] = {}
        for j, group in enumerate(self.dataset.groups):
            members.setdefault(group, []).append(j)
        for group, features in members.items():
            if len(features) > 1 and binary[features].all() and self._sums(features).max(initial=0) <= 1:
                levels = tuple(names[j].removeprefix(f"{group}=") for j in features)
                yield WordColumn(name=group, levels=levels), tuple(features)
                continue
            for j in features:
                own = (self.dataset.scaling[j] if self.dataset.scaling else None) or Scaling(0.0, 1.0, False)
                number = NumberColumn(
                    name=names[j], center=own.mean, scale=own.scale, deviations=own.deviations
                )
                yield self._flag(j) if binary[j] else number, (j,)

    def _flag(self, feature: int) -> TextColumn:
        name = self.dataset.feature_names[feature]
        return TextColumn(name=name, words=(name,))

    def _sums(self, features: Sequence[int]) -> np.ndarray:
        return np.asarray(self.dataset.X[:, list(features)].sum(axis=1)).ravel()

    @property
    def columns(self) -> tuple[FeatureColumn, ...]:
        """The columns whose features X has side by side; empty where no column has several, or it has not."""
        single = len(self.all) == len(self.dataset.feature_names)
        if self.dataset.columns or single or (np.diff(self.of_column) < 0).any():
            return self.dataset.columns
        return tuple(attribute.column for attribute in self.all)

    @cached_property
    def of_column(self) -> np.ndarray:
        """The place in `all` of every feature."""
        places = np.empty(len(self.dataset.feature_names), dtype=int)
        for place, attribute in enumerate(self.all):
            places[list(attribute.columns)] = place
        return places

    def row(self, n: int) -> np.ndarray:
        """Return a row of X, dense, shape (d,); a copy."""
        X: Any = self.dataset.X
        return X[[n]].toarray()[0] if sp.issparse(X) else np.array(X[n], dtype=np.float64)


def _binary(X: Any) -> np.ndarray:
    """Return which columns contain only zeros and ones."""
    if not sp.issparse(X):
        return np.asarray(((X == 0) | (X == 1)).all(axis=0))
    matrix = sp.csr_array(X)
    binary = np.ones(X.shape[1], dtype=bool)
    binary[matrix.indices[(matrix.data != 1) & (matrix.data != 0)]] = False
    return binary
