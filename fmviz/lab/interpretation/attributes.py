"""Map the columns of X back to attributes, and read and change their values in a row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.lab.datasets import Dataset
from fmviz.tables.scaling import Scaling

__all__ = ["Attribute", "Attributes"]

Kind = Literal["levels", "flag", "number"]
NONE = -1
"""The place of no level: of a row in which all columns of the attribute are 0."""


@dataclass(frozen=True)
class Attribute:
    """An attribute of the original table, and its columns of X.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"levels", "flag", "number"}
        One of several columns is 1 and the others are 0; one column of zeros and ones; one of numbers.
    columns : tuple of int
        Its columns of X.
    words : tuple of str
        What each column stands for; of levels without the name of the attribute in front.
    scaling : Scaling or None
        How the number was scaled, where that is known.
    can_lack : bool
        Whether some row has none of the levels.
    """

    name: str
    kind: Kind
    columns: tuple[int, ...]
    words: tuple[str, ...]
    scaling: Scaling | None = None
    can_lack: bool = False

    @property
    def in_every_row(self) -> bool:
        """Whether every row has exactly one of its levels."""
        return self.kind == "levels" and not self.can_lack

    def value(self, x: np.ndarray) -> float:
        """Return its value in a row of X: the index of the level or `NONE`, or the unscaled number."""
        if self.kind == "levels":
            (places,) = np.nonzero(x[list(self.columns)])
            return float(places[0]) if places.size else float(NONE)
        return self.decoded(float(x[self.columns[0]]))

    def decoded(self, encoded: float) -> float:
        """Return a number of X in its original units."""
        return encoded if self.scaling is None else self.scaling.decode(encoded)

    def encode_into(self, x: np.ndarray, value: float) -> None:
        """Write a value, as `value` returns it, into a row of X; ValueError if it is invalid."""
        if not np.isfinite(value):
            raise ValueError(f"{self.name} = {value} is not a finite number; give one.")
        if self.kind == "number":
            x[self.columns[0]] = value if self.scaling is None else self.scaling.encode(value)
            return
        if self.kind == "flag":
            if value not in (0.0, 1.0):
                raise ValueError(f"{self.name} = {value:g} is neither 0 nor 1.")
            x[self.columns[0]] = value
            return
        place = int(value)
        if place != value or not NONE <= place < len(self.columns):
            raise ValueError(
                f"{self.name} has no level {value:g}; they are numbered 0 to {len(self.columns) - 1}."
            )
        x[list(self.columns)] = 0.0
        if place != NONE:
            x[self.columns[place]] = 1.0

    def words_for(self, value: float) -> str:
        """Return a value in words."""
        if self.kind == "levels":
            return self.words[int(value)] if value != NONE else "(none)"
        if self.kind == "flag":
            return "yes" if value else "no"
        return f"{value:.6g}"


@dataclass(frozen=True, eq=False)
class Attributes:
    """All attributes of a data set, in the order of their first columns.

    Attributes
    ----------
    dataset : Dataset
        The data.
    """

    dataset: Dataset

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The distinct names of `Dataset.groups`."""
        return tuple(dict.fromkeys(self.dataset.groups))

    @cached_property
    def codes(self) -> np.ndarray:
        """The place in `groups` of every column, shape (d,)."""
        return pd.Index(self.groups).get_indexer(pd.Index(self.dataset.groups))

    @property
    def grouped(self) -> bool:
        """Whether some attribute has several columns."""
        return len(self.groups) < self.codes.size

    @cached_property
    def members(self) -> tuple[np.ndarray, ...]:
        """The columns of each of `groups`."""
        order = np.argsort(self.codes, kind="stable")
        ends = np.cumsum(np.bincount(self.codes, minlength=len(self.groups)))[:-1]
        return tuple(np.split(order, ends))

    @cached_property
    def all(self) -> tuple[Attribute, ...]:
        """The attributes; columns of one name that are not its levels are attributes of their own."""
        X, names = self.dataset.X, self.dataset.feature_names
        binary = _binary(X).tolist()
        attributes: list[Attribute] = []
        for group, members in zip(self.groups, self.members, strict=True):
            columns = members.tolist()
            if len(columns) > 1 and all(binary[j] for j in columns):
                counts = np.asarray(X[:, members].sum(axis=1)).ravel()  # how many are 1 in every row
                if counts.max(initial=0) <= 1:
                    words = tuple(names[j].removeprefix(f"{group}=") for j in columns)
                    lack = bool(counts.min(initial=1) == 0)
                    attributes.append(Attribute(group, "levels", tuple(columns), words, can_lack=lack))
                    continue
            for j in columns:
                kind: Kind = "flag" if binary[j] else "number"
                attributes.append(Attribute(names[j], kind, (j,), (names[j],), self.dataset.scaling_of(j)))
        return tuple(attributes)

    @cached_property
    def of_column(self) -> np.ndarray:
        """The place in `all` of every column."""
        places = np.empty(self.codes.size, dtype=int)
        for place, attribute in enumerate(self.all):
            places[list(attribute.columns)] = place
        return places

    def positions(self, group: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the non-zero column of one of `groups` in every row, and its entry; else None.

        None also where rows have several such columns.
        """
        columns = self.members[group]
        X: Any = self.dataset.X[:, columns]
        X = X.toarray() if sp.issparse(X) and columns.size == 1 else X
        if columns.size == 1:
            return np.zeros(X.shape[0], dtype=int), np.asarray(X).ravel()
        coo = sp.coo_array(X)
        if coo.nnz and np.bincount(coo.coords[0]).max() > 1:
            return None
        place, value = np.zeros(X.shape[0], dtype=int), np.zeros(X.shape[0])
        place[coo.coords[0]], value[coo.coords[0]] = coo.coords[1], coo.data
        return place, value

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
