"""From a table to X and y: an immutable description of the encoding, fitted and applied."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.engine.errors import one_of
from fmviz.lab.datasets import Dataset
from fmviz.lab.datasets._tables import join
from fmviz.lab.datasets.base import Scaling, Task
from fmviz.lab.tables.column_encoders import (
    MISSING,
    SCALINGS,
    Missing,
    NumberColumn,
    ScalingKind,
    WordColumn,
    blocks,
    is_number,
    learn_number,
    learn_words,
    levels_of,
    moments,
    some,
    words_of,
)
from fmviz.lab.tables.files import checked_names

__all__ = [
    "MISSING",
    "MOST_LEVELS",
    "SCALINGS",
    "TASKS",
    "Encoded",
    "NumberColumn",
    "TableEncoding",
    "Target",
    "WordColumn",
    "is_sparse",
]

TASKS = ("auto", "regression", "binary")
MOST_LEVELS = 1_000
# Where more of X than this is zero it is kept sparse.
_SPARSE_SHARE = 0.7


def is_sparse(entries: int, rows: int, features: int) -> bool:
    """Return whether features with so many non-zeros are kept sparse."""
    return entries <= (1 - _SPARSE_SHARE) * rows * features


@dataclass(frozen=True)
class Target:
    """What is predicted.

    Attributes
    ----------
    name : str
        The column.
    task : {"regression", "binary"}
        A number, encoded as (value − mean)/scale, or two classes, encoded as -1 and +1.
    mean, scale : float
        Of a number.
    labels : tuple of str
        The words for -1 and +1; empty for a number.
    """

    name: str
    task: Task
    mean: float = 0.0
    scale: float = 1.0
    labels: tuple[str, ...] = ()

    @classmethod
    def learn(
        cls, values: pd.Series, task: str = "auto", rows: np.ndarray | None = None, positive: str = ""
    ) -> Target:
        """Learn a target; mean and scale from `rows` alone, where they are given.

        With "auto" two different values are classes, and more of them numbers. Of two classes `positive`
        is +1; without it the later one.

        Raises
        ------
        ValueError
            If all values are the same or missing, or do not suit the task.
        """
        name = str(values.name)
        one_of("task", task, TASKS)
        known = values.dropna()
        numeric = is_number(known)
        words = levels_of(known)
        if len(words) < 2:
            always = f"is always {words[0]!r}" if words else "has no values"
            raise ValueError(f"The target {name!r} {always}; there is nothing to predict. Choose another.")
        if task == "auto":
            task = "binary" if len(words) == 2 else "regression"
            if task == "regression" and not numeric:
                raise ValueError(
                    f"The target {name!r} has {len(words):,} different words ({some(words)}); a number or "
                    "two classes can be predicted. Keep the rows of two, or choose another target."
                )
        if task == "binary":
            if len(words) != 2:
                raise ValueError(
                    f"The target {name!r} has {len(words):,} different values ({some(words)}), and a binary "
                    "task wants two. Choose regression, or keep the rows of two."
                )
            if positive:
                words.sort(key=one_of("positive", positive, words).__eq__)
            return cls(name, "binary", labels=tuple(words))
        if not numeric:
            raise ValueError(
                f"The target {name!r} holds words ({some(words)}), and regression wants numbers. Choose the "
                "binary task, or another target."
            )
        learned = (values if rows is None else values.iloc[rows]).dropna().to_numpy(dtype=np.float64)
        if not np.isfinite(learned).all():
            raise ValueError(f"The target {name!r} holds an infinite value; take its row out.")
        mean, scale = moments(learned)
        if scale == 0:
            raise ValueError(f"The target {name!r} is the same in all training rows; add rows.")
        return cls(name, "regression", mean, scale)

    def encode(self, values: pd.Series) -> np.ndarray:
        """Return y, float64 of the length of `values`; NaN where one is missing, or of neither class."""
        if self.task == "regression":
            return (pd.to_numeric(values).to_numpy(dtype=np.float64) - self.mean) / self.scale
        negative, positive = self.labels
        words = words_of(values)
        y = np.full(len(values), np.nan)
        y[words == negative], y[words == positive] = -1.0, 1.0
        return y


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoded table.

    Attributes
    ----------
    X : (N, d) float64 ndarray or CSR array
        The features of the rows that were kept; sparse where most of it is zero.
    y : (N,) float64 ndarray or None
        Their target; None where the table has no such column.
    rows : (N,) int ndarray
        Which rows of the table they are.
    dropped : int
        How many rows were left out since something was missing.
    """

    X: np.ndarray | sp.csr_array
    y: np.ndarray | None
    rows: np.ndarray
    dropped: int


@dataclass(frozen=True)
class TableEncoding:
    """How the columns of a table become features; made by `learn`, frozen, to and from a dict.

    Attributes
    ----------
    target : Target
        What is predicted.
    columns : tuple of NumberColumn and WordColumn
        What is encoded, in the order of the table.
    notes : tuple of str
        A sentence for every column that was left out.
    """

    target: Target
    columns: tuple[NumberColumn | WordColumn, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def learn(
        cls,
        table: pd.DataFrame,
        target: str,
        *,
        task: str = "auto",
        missing: str | Mapping[str, Missing] = "drop",
        words: Collection[str] = (),
        singles: Collection[str] = (),
        ignored: Collection[str] = (),
        scaling: ScalingKind = "standard",
        most_levels: int = MOST_LEVELS,
        rare: int = 1,
        merge: bool = False,
        positive: str = "",
        rows: np.ndarray | None = None,
    ) -> TableEncoding:
        """Learn the encoding of a table.

        Parameters
        ----------
        table : DataFrame
            One row an example.
        target : str
            The column to predict.
        task : {"auto", "regression", "binary"}
            See `Target.learn`.
        missing : {"drop", "impute", "mark"}, or mapping of str to these
            What becomes of missing values, in all columns or in each.
        words : collection of str
            Columns of numbers that are names, such as postal codes: encoded by levels.
        singles : collection of str
            Columns of two words, encoded by one feature.
        ignored : collection of str
            Columns that are no features.
        scaling : {"standard", "range", "none"}
            Of the numbers among the features, see `fmviz.lab.tables.column_encoders.SCALINGS`.
        most_levels : int
            A column with more different words is refused.
        rare : int
            Words of fewer rows than this share a level.
        merge : bool
            Whether beyond `most_levels` the rarer words share a level instead.
        positive : str
            The class that is +1, see `Target.learn`.
        rows : int ndarray, optional
            The rows whose means, deviations and words are learned; without it all.

        Raises
        ------
        ValueError
            If a name is unknown, empty or there twice, nothing is left to learn from, or a column cannot be
            encoded; with a sentence.
        """
        names = [str(column) for column in table.columns]
        checked_names(names)
        rules = dict.fromkeys(names, missing) if isinstance(missing, str) else dict(missing)
        for found in rules.values():
            one_of("missing", found, MISSING)
        one_of("scaling", scaling, SCALINGS)
        for what, given in (
            *(("target", [target]), ("words", words)),
            *(("singles", singles), ("ignored", ignored), ("missing", rules)),
        ):
            for name in given:
                if name not in names:
                    raise ValueError(f"{what} = {name!r} is no column; there are {some(names, 12)}.")
        if target in ignored:
            raise ValueError(f"{target!r} cannot be both ignored and the target.")
        used = [name for name in names if name != target and name not in ignored]
        if not used:
            raise ValueError("All columns but the target are ignored; keep at least one.")
        learned = table if rows is None else table.iloc[rows]
        learned = learned[learned[target].notna()]
        empty = [name for name in used if learned[name].notna().sum() == 0]
        learned = learned.dropna(
            subset=[name for name in used if name not in empty and rules.get(name, "drop") == "drop"]
        )
        if len(learned) < 2:
            raise ValueError(
                "Fewer than two rows are left without a missing value; impute them, or ignore the columns "
                "that are often missing."
            )
        aim = Target.learn(table[target], task, rows, positive)
        columns: list[NumberColumn | WordColumn] = []
        notes = [f"Column {name!r} is left out: it has no values." for name in empty]
        for name in used:
            if name in empty:
                continue
            rule: Any = rules.get(name, "drop")
            values = learned[name]
            column: NumberColumn | WordColumn | None
            if is_number(values.dropna()) and name not in words and name not in singles:
                column = learn_number(values, rule, scaling)
            else:
                column = learn_words(
                    values,
                    rule,
                    most_levels=most_levels,
                    rare=rare,
                    merge=merge,
                    single=name in singles,
                )
            if column is None:
                why = "it has the same value in all rows"
                if values.nunique() > 1:
                    why = f"none of its {values.nunique():,} words has {rare:,} rows"
                notes.append(f"Column {name!r} is left out: {why}.")
            else:
                columns.append(column)
        if not columns:
            raise ValueError(
                f"No column is left that differs from row to row; there is nothing to learn from. {notes[-1]}"
            )
        return cls(aim, tuple(columns), tuple(notes))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name for every column of X."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def apply(self, table: pd.DataFrame) -> Encoded:
        """Encode a table that has the columns; raises ValueError with a sentence where one does not suit."""
        for column in self.columns:
            if column.name not in table.columns:
                raise ValueError(f"The table lacks the column {column.name!r}.")
            if isinstance(column, NumberColumn) and not is_number(table[column.name].dropna()):
                word = next(v for v in table[column.name].dropna() if not isinstance(v, int | float))
                raise ValueError(f"Column {column.name!r} holds {word!r}, but was one of numbers.")
        rows, y = self.kept(table)
        kept = table if rows.size == len(table) else table.iloc[rows]
        X = join(blocks(self.columns, kept)).matrix
        if not is_sparse(X.nnz, *X.shape):
            X = X.toarray()
        return Encoded(X, None if y is None else y[rows], rows, int(len(table) - rows.size))

    def kept(self, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray | None]:
        """Return which rows of a table are encoded, and y of all rows, or None without a target."""
        kept = np.ones(len(table), dtype=bool)
        y = None
        if self.target.name in table.columns:
            y = self.target.encode(table[self.target.name])
            kept &= ~np.isnan(y)
        needed = [column.name for column in self.columns if column.missing == "drop"]
        kept &= table[needed].notna().to_numpy().all(axis=1)
        rows = np.flatnonzero(kept)
        if not rows.size:
            raise ValueError("No row is left without a missing value; impute them, or ignore columns.")
        return rows, y

    def dataset(self, encoded: Encoded, name: str, title: str) -> Dataset:
        """Return an encoded table as a data set; its y is encoded, too."""
        if encoded.y is None:
            raise ValueError(f"The table lacks the column {self.target.name!r}, its target.")
        labels = self.target.labels
        return Dataset(
            name=name,
            title=title,
            task=self.target.task,
            X=encoded.X,
            y=encoded.y,
            feature_names=self.feature_names,
            groups=tuple(column.name for column in self.columns for _ in column.feature_names),
            target_name=self.target.name,
            class_labels=(labels[0], labels[1]) if labels else None,
            scaling=tuple(scaling for column in self.columns for scaling in column.scalings),
            target_scaling=Scaling(self.target.mean, self.target.scale)
            if self.target.task == "regression"
            else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as JSON takes it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> TableEncoding:
        """Read what `to_dict` wrote."""
        columns = tuple(
            WordColumn(**{**one, "levels": tuple(one["levels"])}) if "levels" in one else NumberColumn(**one)
            for one in told["columns"]
        )
        aim = {**told["target"], "labels": tuple(told["target"]["labels"])}
        return cls(Target(**aim), columns, tuple(told["notes"]))
