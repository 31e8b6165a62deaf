"""Attributes of a data set: the features of each table column, and their values in a row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, repeat
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.lab.datasets import Dataset
from fmviz.tables.columns import FeatureColumn, NumberColumn, TextColumn, WordColumn
from fmviz.tables.scaling import Scaling

Kind = Literal["levels", "flag", "number"]
NONE = -1
"""Index for no level: all features of the attribute are 0."""


@dataclass(frozen=True)
class Attribute:
    """A table column, or a word of a text column, and its features.

    Attributes
    ----------
    column : FeatureColumn
        The column.
    columns : tuple of int
        The columns of X with its features.
    can_lack : bool
        Whether some rows have no level.
    """

    column: FeatureColumn
    columns: tuple[int, ...]
    can_lack: bool = False

    @property
    def name(self) -> str:
        """The name of the attribute."""
        return self.column.name

    @property
    def kind(self) -> Kind:
        """The kind: a number, a level or a flag."""
        if isinstance(self.column, NumberColumn):
            return "number"
        return "flag" if len(self.columns) == 1 else "levels"

    @property
    def words(self) -> tuple[str, ...]:
        """Labels of its features."""
        own = self.column.categories if isinstance(self.column, WordColumn) else self.column.labels
        return (*own, *["(missing)"] * (len(self.columns) - len(own)))

    @property
    def scaling(self) -> Scaling | None:
        """The scaling of a number."""
        return self.column.scalings[0]

    def value(self, x: np.ndarray) -> float:
        """Return the value in a row of X: the index of the level or `NONE`, or the number; NaN if missing."""
        own = x[list(self.columns)]
        if isinstance(self.column, NumberColumn):
            missing = self.column.missing == "mark" and own[-1] == 1.0
            return math.nan if missing else float(self.column.center + self.column.scale * own[0])
        (places,) = np.nonzero(own)
        if self.kind == "flag":
            return float(places.size)
        return float(places[0]) if places.size else float(NONE)

    def encode_into(self, x: np.ndarray, value: float) -> None:
        """Write a value, in the form returned by `value`, into a row of X; ValueError if it is invalid."""
        features = list(self.columns)
        low, high = {"number": (-math.inf, math.inf), "flag": (0, 1), "levels": (NONE, len(features) - 1)}[
            self.kind
        ]
        if not (np.isfinite(value) and low <= value <= high and (low == -math.inf or value == int(value))):
            allowed = "any finite number" if low == -math.inf else f"an integer from {low} to {high}"
            raise ValueError(f"{self.name} has no value {value:g}; give {allowed}.")
        if self.kind == "number":
            x[features] = sp.hstack(self.column.features(pd.Series([value]))).toarray()[0]
        else:
            x[features] = value if self.kind == "flag" else np.arange(len(features)) == value

    def words_for(self, value: float) -> str:
        """Return a value as text."""
        if self.kind == "number":
            return "(missing)" if math.isnan(value) else f"{value:.6g}"
        if self.kind == "flag" and isinstance(self.column, TextColumn):
            return "yes" if value else "no"
        other = (getattr(self.column, "others", ()) or ("(none)",))[0]
        # A flag is 0 if its only level is absent.
        place = int(value) - (self.kind == "flag")
        return self.words[place] if place != NONE else other

    def is_line(self, feature: int) -> bool:
        """Return whether a feature is the linear term of a number."""
        return self.kind == "number" and feature == self.columns[0]

    def condition(self, feature: int) -> str:
        """Return the condition under which a feature other than a linear term is non-zero."""
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
        return f"{self.name} is present"


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
        """The attributes; words of texts, and features that are no levels of a column, are separate."""
        attributes: list[Attribute] = []
        places = iter(range(len(self.dataset.feature_names)))
        for column in self.dataset.columns or self._single():
            features = tuple(islice(places, len(column.feature_names)))
            if isinstance(column, TextColumn):
                attributes += [Attribute(flag(self.dataset.feature_names[j]), (j,)) for j in features]
            else:
                sums = np.asarray(self.dataset.X[:, list(features)].sum(axis=1))
                lack = isinstance(column, WordColumn) and bool((sums == 0).any())
                attributes.append(Attribute(column, features, lack))
        return tuple(attributes)

    def _single(self) -> Iterator[FeatureColumn]:
        """Yield a column for every feature of data without columns: a flag if it is 0 or 1, else a number."""
        scalings = self.dataset.scaling or repeat(None)
        for name, scaling, binary in zip(
            self.dataset.feature_names, scalings, _binary(self.dataset.X), strict=False
        ):
            own = scaling or Scaling()
            number = NumberColumn(name=name, center=own.mean, scale=own.scale, deviations=own.deviations)
            yield flag(name) if binary else number

    @cached_property
    def of_column(self) -> np.ndarray:
        """The index in `all` of every feature."""
        sizes = [len(attribute.columns) for attribute in self.all]
        return np.repeat(np.arange(len(sizes)), sizes)

    def row(self, n: int) -> np.ndarray:
        """Return a dense copy of a row of X, shape (d,)."""
        X: Any = self.dataset.X
        return X[[n]].toarray()[0] if sp.issparse(X) else np.array(X[n], dtype=np.float64)


def flag(name: str) -> TextColumn:
    """Return the column of a feature that is 0 or 1."""
    return TextColumn(name=name, words=(name,))


def _binary(X: Any) -> np.ndarray:
    """Return which columns contain only zeros and ones."""
    if not sp.issparse(X):
        return np.asarray(((X == 0) | (X == 1)).all(axis=0))
    matrix = sp.csr_array(X)
    binary = np.ones(X.shape[1], dtype=bool)
    binary[matrix.indices[(matrix.data != 1) & (matrix.data != 0)]] = False
    return binary
