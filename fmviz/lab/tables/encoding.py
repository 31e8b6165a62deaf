"""Learn how a table is encoded as X and y, apply the encoding, and convert it to JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn import config_context
from sklearn.pipeline import Pipeline

from fmviz.lab.datasets import Dataset
from fmviz.lab.tables.columns import (
    EncodedColumn,
    NumberColumn,
    TextColumn,
    WordColumn,
    frame,
    learn_column,
    transformer,
)
from fmviz.lab.tables.recipe import LIBSVM_TARGET, Recipe
from fmviz.lab.tables.source import Source
from fmviz.lab.tables.target import Target
from fmviz.lab.tables.values import date_format, date_parts, numbers_of, some, typed_words, words_of

__all__ = ["Encoded", "TableEncoding", "encode"]

# X is sparse if more than this share of it is zero.
_SPARSE_SHARE = 0.7


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoded table, or the contents of a libsvm file.

    Attributes
    ----------
    X : (N, d) float64 ndarray or CSR array
        The features of the rows without missing values; sparse where most entries are zero.
    y : (N,) or (N, m) float64 ndarray, or None
        Their target; None if the table has no target column.
    rows : (N,) int ndarray
        The indices of these rows in the table.
    dropped : int
        The number of rows dropped for a missing value.
    target : Target
        The encoding of y.
    encoding : TableEncoding or None
        The encoding of the features; None for libsvm.
    missing : mapping of str to int
        By column, the number of rows dropped because its value is missing.
    unseen : mapping of str to mapping of str to int
        By column, the words that the encoding does not know, with their counts.
    """

    X: np.ndarray | sp.csr_array
    y: np.ndarray | None
    rows: np.ndarray
    dropped: int
    target: Target
    encoding: TableEncoding | None = None
    missing: Mapping[str, int] = field(default_factory=dict)
    unseen: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def notes(self) -> list[str]:
        """Return sentences on dropped rows and on unseen words."""
        if self.encoding is None:
            return []
        columns = {column.name: column for column in self.encoding.columns}
        notes = []
        if self.dropped:
            counts = [f"{name} in {count:,}" for name, count in self.missing.items()]
            notes.append(f"Rows left out since a value is missing: {self.dropped:,} ({some(counts)}).")
        for name, words in self.unseen.items():
            other_label = getattr(columns[name], "other_label", "")
            n = sum(words.values())
            notes.append(
                f"Column {name!r} has words that are new to the model ({some(words)}) in {n:,} "
                f"{'row' if n == 1 else 'rows'}; they count as {other_label or 'none of its levels'}."
            )
        return notes

    def dataset(self, name: str, title: str) -> Dataset:
        """Return the encoded features and target as a data set."""
        if self.y is None:
            raise ValueError(f"The table lacks the column {self.target.name!r}, its target.")
        names = tuple(str(j) for j in range(1, self.X.shape[1] + 1))
        columns = () if self.encoding is None else self.encoding.columns
        return Dataset(
            name=name,
            title=title,
            task=self.target.task,
            X=self.X,
            y=self.y,
            feature_names=tuple(name for column in columns for name in column.feature_names) or names,
            groups=tuple(column.name for column in columns for _ in column.feature_names) or names,
            target_name=self.target.name,
            class_labels=self.target.class_labels,
            targets=self.target.outputs if self.target.task == "regression" else (),
            scaling=tuple(scaling for column in columns for scaling in column.scalings) or None,
            target_scaling=None if self.encoding is None else self.target.scaling,
        )


def encode(source: Source, recipe: Recipe, rows: np.ndarray | None = None) -> Encoded:
    """Encode a file as features and target.

    Parameters
    ----------
    source : Source
        The file as read.
    recipe : Recipe
        The options.
    rows : int ndarray, optional
        The rows that means, deviations and levels are learned from; by default all complete rows, so that
        runs with different splits have the same features.

    Raises
    ------
    ValueError
        If the recipe does not suit the file.
    """
    if source.table is not None:
        return TableEncoding.learn(source.table, recipe, rows).apply(source.table)
    assert source.X is not None
    values = pd.Series(source.y, name=LIBSVM_TARGET)
    target = Target.learn(
        values, recipe.task, recipe.positive, rows=rows, order=recipe.order, logarithm=recipe.logarithm
    )
    return Encoded(source.X, target.encode(values), np.arange(len(values)), 0, target)


@dataclass(frozen=True)
class TableEncoding:
    """The encoding of a table as features and target, see `learn`; convertible to and from JSON.

    Attributes
    ----------
    target : Target
        The encoding of the target.
    columns : tuple of NumberColumn, WordColumn and TextColumn
        The encoded columns in the order of the table; a date contributes its parts.
    notes : tuple of str
        A sentence for every column without features.
    decimal : {"point", "comma"}
        The decimal sign of numbers that are stored as text.
    dates : mapping of str to str
        The formats of date columns, see `fmviz.lab.tables.values.date_format`.
    """

    target: Target
    columns: tuple[EncodedColumn, ...]
    notes: tuple[str, ...] = ()
    decimal: str = "point"
    dates: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def learn(cls, table: pd.DataFrame, recipe: Recipe, rows: np.ndarray | None = None) -> TableEncoding:
        """Learn the encoding of a table; parameters and errors as of `encode`."""
        if not recipe.target:
            raise ValueError(
                "There is no column to predict: none has values that repeat and differ. Choose a target, or "
                "upload a table with one."
            )
        for name in recipe.targets:
            if name not in table:
                raise ValueError(f"The target {name!r} is no column. Choose one of the columns.")
        chosen = [
            choice
            for choice in recipe.columns
            if choice.kind != "ignored" and choice.name not in recipe.targets and choice.name in table
        ]
        decimal = recipe.reading.decimal
        dates = {choice.name: date_format(table[choice.name]) for choice in chosen if choice.kind == "date"}
        kinds, rules, typed = {}, {}, {}
        for choice in chosen:
            parts = _typed(table[choice.name], choice.kind, decimal, dates.get(choice.name, ""))
            if choice.kind == "date":
                parts = {name: part for name, part in parts.items() if part[part.notna()].nunique() > 1}
                if not parts:
                    raise ValueError(
                        f"Column {choice.name!r} holds no dates that differ. Use it as words, or ignore it."
                    )
            for name, part in parts.items():
                if name in typed:
                    raise ValueError(f"Two columns become {name!r}. Ignore one of them.")
                dated = "number" if part.dtype == np.float64 else "word"
                kinds[name] = dated if choice.kind == "date" else choice.kind
                typed[name], rules[name] = part, choice.missing
        if not typed:
            raise ValueError("No column is left to predict from. Use at least one besides the target.")
        if recipe.also:
            target = Target.of_table(table, recipe.targets, recipe.task, decimal, rows, recipe.logarithm)
        else:
            values = table[recipe.target]
            target = Target.learn(
                values, recipe.task, recipe.positive, decimal, rows, recipe.order, recipe.logarithm
            )
        taken = _known(target.encode(table, decimal))
        if rows is not None:
            taken &= np.isin(np.arange(len(table)), rows)
        learned = pd.DataFrame(typed)[taken]
        empty = [name for name in typed if not learned[name].notna().any()]
        needed = [name for name in typed if name not in empty and rules[name] == "drop"]
        learned = learned.dropna(subset=needed)
        if len(learned) < 2:
            raise ValueError(
                "Fewer than two rows are left without a missing value; impute them, or ignore the columns "
                "that are often missing."
            )
        notes = [f"Column {name!r} is left out: it has no values." for name in empty]
        columns = []
        for name in (name for name in typed if name not in empty):
            column = learn_column(
                learned[name],
                kinds[name],
                rules[name],
                scaling=recipe.scaling,
                rare=recipe.rare,
                most_levels=recipe.most_levels,
            )
            if column is not None:
                columns.append(column)
                continue
            why = "it has the same value in all rows"
            if (different := learned[name].nunique()) > 1:
                why = f"none of its {different:,} words has {recipe.rare:,} rows"
            if kinds[name] == "text":
                why = "its texts have no words in common"
            notes.append(f"Column {name!r} is left out: {why}.")
        if not columns:
            raise ValueError(
                f"No column is left that differs from row to row; there is nothing to learn from. {notes[-1]}"
            )
        return cls(target, tuple(columns), tuple(notes), decimal, dates)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name for every column of X."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @cached_property
    def _transformer(self) -> Pipeline:
        return transformer(self.columns)

    def apply(self, table: pd.DataFrame) -> Encoded:
        """Encode a table with the same columns; raises ValueError where a column is missing or unsuitable."""
        typed = self._typed(table)
        missing = {
            column.name: typed[column.name].isna() for column in self.columns if column.missing == "drop"
        }
        y = None
        if all(name in table for name in self.target.names):
            y = self.target.encode(table, self.decimal)
            missing[self.target.name] = ~_known(y)
        kept = np.ones(len(table), dtype=bool)
        for lost in missing.values():
            kept &= ~np.asarray(lost)
        rows = np.flatnonzero(kept)
        if not rows.size:
            raise ValueError("No row is left without a missing value; impute them, or ignore columns.")
        if rows.size < len(table):
            typed = {name: values.iloc[rows] for name, values in typed.items()}
        # Independently of the program's own setting: pandas output cannot be sparse.
        with config_context(transform_output="default"):
            X: sp.csr_array = self._transformer.transform(frame(self.columns, typed))
        n, d = X.shape
        unseen = {
            column.name: dict(_unseen(column, typed[column.name]))
            for column in self.columns
            if column.kind == "word"
        }
        return Encoded(
            X if X.nnz <= (1 - _SPARSE_SHARE) * n * d else X.toarray(),
            None if y is None else y[rows],
            rows,
            len(table) - n,
            self.target,
            self,
            {name: int(lost.sum()) for name, lost in missing.items() if lost.any()},
            {name: words for name, words in unseen.items() if words},
        )

    def _typed(self, table: pd.DataFrame) -> dict[str, pd.Series]:
        """Return the columns as numbers, words and texts, by their names."""
        typed: dict[str, pd.Series] = {}
        for name, form in self.dates.items():
            typed |= _typed(_column(table, name), "date", self.decimal, form)
        for column in self.columns:
            if column.name not in typed:
                values = _column(table, column.name)
                typed |= _typed(values, column.kind, self.decimal, "")
                if column.kind == "number" and values.notna().any() and typed[column.name].isna().all():
                    word = str(values.dropna().iloc[0])
                    raise ValueError(f"Column {column.name!r} holds {word!r}, but was one of numbers.")
        return typed

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as a dictionary for JSON."""
        data = asdict(self)
        for values in data["columns"]:
            if "other_label" in values:
                values["rest"] = values.pop("other_label")  # Its name in saved models.
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableEncoding:
        """Return the encoding of a dictionary by `to_dict`."""
        kinds = {"levels": WordColumn, "words": TextColumn, "center": NumberColumn}
        columns = []
        for values in data["columns"]:
            fields = {
                name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
            }
            if "rest" in fields:
                fields["other_label"] = fields.pop("rest")
            columns.append(next(kind for key, kind in kinds.items() if key in values)(**fields))
        notes = tuple(data["notes"])
        target = Target.from_dict(data["target"])
        return cls(**{**data, "target": target, "columns": tuple(columns), "notes": notes})


def _known(y: np.ndarray) -> np.ndarray:
    """Return which rows have no missing value in a target."""
    missing = np.isnan(y)
    return ~(missing if y.ndim == 1 else missing.any(axis=1))


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    if name not in table:
        raise ValueError(f"The table lacks the column {name!r}.")
    return table[name]


def _typed(values: pd.Series, kind: str, decimal: str, form: str) -> dict[str, pd.Series]:
    """Return a column as numbers, words or texts; a date as its parts, none where it is no date."""
    if kind == "date":
        return date_parts(values, form) if form else {}
    if kind == "number":
        values = pd.Series(numbers_of(values, decimal), index=values.index, name=values.name)
    elif kind == "text":
        values = pd.Series(words_of(values), index=values.index, name=values.name, dtype=object)
    else:
        values = typed_words(values)
    return {str(values.name): values}


def _unseen(column: EncodedColumn, values: pd.Series) -> Iterable[tuple[str, int]]:
    """Return the words that the encoding of a column does not know, with their counts."""
    assert isinstance(column, WordColumn)
    known = {*column.levels, *column.others, None}
    return ((word, count) for word, count in Counter(words_of(values)).items() if word not in known)
