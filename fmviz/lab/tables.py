"""Tables of one's own as features and a target: a frozen description of the encoding, learned and applied."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.engine.errors import one_of
from fmviz.lab.datasets import Dataset
from fmviz.lab.datasets._tables import Block, join
from fmviz.lab.datasets.base import Scaling, Task
from fmviz.lab.table_files import checked_names

__all__ = [
    "MISSING",
    "MOST_LEVELS",
    "TASKS",
    "Encoded",
    "NumberColumn",
    "TableEncoding",
    "Target",
    "WordColumn",
]

Missing = Literal["drop", "impute"]
MISSING: tuple[Missing, ...] = ("drop", "impute")
TASKS = ("auto", "regression", "binary")
MOST_LEVELS = 1_000
# Where more of X than this is zero it is kept sparse.
_SPARSE_SHARE = 0.7


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, encoded as (value − mean)/scale."""

    name: str
    mean: float
    scale: float


@dataclass(frozen=True)
class WordColumn:
    """A column of words, encoded by one column of zeros and ones for each of its levels."""

    name: str
    levels: tuple[str, ...]


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
    def learn(cls, values: pd.Series, task: str = "auto", rows: np.ndarray | None = None) -> Target:
        """Learn a target; mean and scale from `rows` alone, where they are given.

        With "auto" two different values are classes, and more of them numbers.

        Raises
        ------
        ValueError
            If all values are the same or missing, or do not suit the task.
        """
        name = str(values.name)
        one_of("task", task, TASKS)
        known = values.dropna()
        numeric = _is_number(known)
        words = _levels(known)
        if len(words) < 2:
            always = f"is always {words[0]!r}" if words else "has no values"
            raise ValueError(f"The target {name!r} {always}; there is nothing to predict. Choose another.")
        if task == "auto":
            task = "binary" if len(words) == 2 else "regression"
            if task == "regression" and not numeric:
                raise ValueError(
                    f"The target {name!r} has {len(words):,} different words ({_some(words)}); a number or "
                    "two classes can be predicted. Keep the rows of two, or choose another target."
                )
        if task == "binary":
            if len(words) != 2:
                raise ValueError(
                    f"The target {name!r} has {len(words):,} different values ({_some(words)}), and a binary "
                    "task wants two. Choose regression, or keep the rows of two."
                )
            return cls(name, "binary", labels=tuple(words))
        if not numeric:
            raise ValueError(
                f"The target {name!r} holds words ({_some(words)}), and regression wants numbers. Choose the "
                "binary task, or another target."
            )
        learned = (values if rows is None else values.iloc[rows]).dropna().to_numpy(dtype=np.float64)
        if not np.isfinite(learned).all():
            raise ValueError(f"The target {name!r} holds an infinite value; take its row out.")
        mean, scale = _moments(learned)
        if scale == 0:
            raise ValueError(f"The target {name!r} is the same in all training rows; add rows.")
        return cls(name, "regression", mean, scale)

    def encode(self, values: pd.Series) -> np.ndarray:
        """Return y, float64 of the length of `values`; NaN where one is missing, or of neither class."""
        if self.task == "regression":
            return (pd.to_numeric(values).to_numpy(dtype=np.float64) - self.mean) / self.scale
        negative, positive = self.labels
        words = _words(values)
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
    missing : {"drop", "impute"}
        A row with a missing value is left out; or a missing number counts as the mean, and a missing word as
        none of the levels. A word that is no level, in new data, counts as none of them either way.
    notes : tuple of str
        A sentence for every column that was left out.
    """

    target: Target
    columns: tuple[NumberColumn | WordColumn, ...]
    missing: Missing = "drop"
    notes: tuple[str, ...] = ()

    @classmethod
    def learn(
        cls,
        table: pd.DataFrame,
        target: str,
        *,
        task: str = "auto",
        missing: str = "drop",
        words: Collection[str] = (),
        ignored: Collection[str] = (),
        most_levels: int = MOST_LEVELS,
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
        missing : {"drop", "impute"}
            What becomes of missing values.
        words : collection of str
            Columns of numbers that are names, such as postal codes: encoded by levels.
        ignored : collection of str
            Columns that are no features.
        most_levels : int
            A column with more different words is refused.
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
        one_of("missing", missing, MISSING)
        for what, given in (("target", [target]), ("words", words), ("ignored", ignored)):
            for name in given:
                if name not in names:
                    raise ValueError(f"{what} = {name!r} is no column; there are {_some(names, 12)}.")
        if target in ignored:
            raise ValueError(f"{target!r} cannot be both ignored and the target.")
        used = [name for name in names if name != target and name not in ignored]
        if not used:
            raise ValueError("All columns but the target are ignored; keep at least one.")
        learned = table if rows is None else table.iloc[rows]
        learned = learned[learned[target].notna()]
        empty = [name for name in used if learned[name].notna().sum() == 0]
        if missing == "drop":
            learned = learned.dropna(subset=[name for name in used if name not in empty])
        if len(learned) < 2:
            raise ValueError(
                "Fewer than two rows are left without a missing value; impute them, or ignore the columns "
                "that are often missing."
            )
        aim = Target.learn(table[target], task, rows)
        columns: list[NumberColumn | WordColumn] = []
        notes = [f"Column {name!r} is left out: it has no values." for name in empty]
        for name in used:
            if name in empty:
                continue
            found = _column(learned[name].dropna(), name in words, most_levels)
            if found is None:
                notes.append(f"Column {name!r} is left out: it has the same value in all rows.")
            else:
                columns.append(found)
        if not columns:
            raise ValueError(
                "No column is left that differs from row to row; there is nothing to learn from."
            )
        return cls(aim, tuple(columns), missing, tuple(notes))  # type: ignore[arg-type]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name for every column of X."""
        names: list[str] = []
        for column in self.columns:
            if isinstance(column, WordColumn):
                names += [f"{column.name}={level}" for level in column.levels]
            else:
                names.append(column.name)
        return tuple(names)

    def apply(self, table: pd.DataFrame) -> Encoded:
        """Encode a table that has the columns; raises ValueError with a sentence where one does not suit."""
        for column in self.columns:
            if column.name not in table.columns:
                raise ValueError(f"The table lacks the column {column.name!r}.")
            if isinstance(column, NumberColumn) and not _is_number(table[column.name].dropna()):
                word = next(v for v in table[column.name].dropna() if not isinstance(v, int | float))
                raise ValueError(f"Column {column.name!r} holds {word!r}, but was one of numbers.")
        kept = np.ones(len(table), dtype=bool)
        y = None
        if self.target.name in table.columns:
            y = self.target.encode(table[self.target.name])
            kept &= ~np.isnan(y)
        if self.missing == "drop":
            kept &= table[[column.name for column in self.columns]].notna().to_numpy().all(axis=1)
        rows = np.flatnonzero(kept)
        if not rows.size:
            raise ValueError("No row is left without a missing value; impute them, or ignore columns.")
        X = join([_block(column, table[column.name].iloc[rows]) for column in self.columns]).matrix
        if X.nnz > (1 - _SPARSE_SHARE) * X.shape[0] * X.shape[1]:
            X = X.toarray()
        return Encoded(X, None if y is None else y[rows], rows, int(len(table) - rows.size))

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
            groups=tuple(
                column.name
                for column in self.columns
                for _ in (column.levels if isinstance(column, WordColumn) else (column.name,))
            ),
            target_name=self.target.name,
            class_labels=(labels[0], labels[1]) if labels else None,
            scaling=tuple(
                scaling
                for column in self.columns
                for scaling in (
                    (None,) * len(column.levels)
                    if isinstance(column, WordColumn)
                    else (Scaling(column.mean, column.scale),)
                )
            ),
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
            WordColumn(one["name"], tuple(one["levels"])) if "levels" in one else NumberColumn(**one)
            for one in told["columns"]
        )
        aim = {**told["target"], "labels": tuple(told["target"]["labels"])}
        return cls(Target(**aim), columns, told["missing"], tuple(told["notes"]))


def _column(values: pd.Series, as_words: bool, most_levels: int) -> NumberColumn | WordColumn | None:
    """Return the encoding of a column without missing values; None where it is constant."""
    name = str(values.name)
    if _is_number(values) and not as_words:
        numbers = values.to_numpy(dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError(
                f"Column {name!r} holds an infinite value; take it out, or leave the cell empty."
            )
        mean, scale = _moments(numbers)
        return NumberColumn(name, mean, scale) if scale else None
    levels = _levels(values)
    if len(levels) > most_levels:
        numbers_too = pd.to_numeric(values, errors="coerce")
        odd = values[numbers_too.isna()]
        hint = ""
        if not as_words and 0 < len(odd) < 0.5 * len(values):
            hint = f" Most of them are numbers, but {str(odd.iloc[0])!r} is not: leave such cells empty."
        raise ValueError(
            f"Column {name!r} has {len(levels):,} different words, more than {most_levels:,}; ignore it, or "
            f"raise the limit.{hint}"
        )
    return WordColumn(name, tuple(levels)) if len(levels) > 1 else None


def _block(column: NumberColumn | WordColumn, values: pd.Series) -> Block:
    """Return the features of one column; a missing value is 0 in all of them."""
    n = len(values)
    if isinstance(column, NumberColumn):
        numbers = np.nan_to_num((values.to_numpy(dtype=np.float64) - column.mean) / column.scale)
        return Block(sp.csr_array(numbers.reshape(-1, 1)), (column.name,), (column.name,))
    places = {level: j for j, level in enumerate(column.levels)}
    at = np.array([places.get(word, -1) for word in _words(values)], dtype=np.int64)
    (rows,) = np.nonzero(at >= 0)
    matrix = sp.csr_array((np.ones(rows.size), (rows, at[rows])), shape=(n, len(column.levels)))
    names = tuple(f"{column.name}={level}" for level in column.levels)
    return Block(matrix, names, (column.name,) * len(column.levels))


def _is_number(values: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def _words(values: pd.Series) -> np.ndarray:
    """Return values as words, None where one is missing; whole numbers without a point."""
    missing = values.isna().to_numpy()
    told = [f"{v:.15g}" if isinstance(v, int | float) and not isinstance(v, bool) else str(v) for v in values]
    words = np.array(told, dtype=object)
    words[missing] = None
    return words


def _levels(values: pd.Series) -> list[str]:
    """Return the different words of values of which none is missing: numbers by size, words by letters."""
    different = pd.Series(values.unique())
    if _is_number(different):
        different = different.sort_values()
        return list(dict.fromkeys(_words(different)))
    return sorted(set(_words(different)))


def _moments(values: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation; exactly 0 for what is constant, which rounding would hide."""
    if not values.size or (values == values[0]).all():
        return float(values[0]) if values.size else 0.0, 0.0
    return float(values.mean()), float(values.std())


def _some(words: Collection[str], most: int = 4) -> str:
    shown = ", ".join(map(str, list(words)[:most]))
    return shown + (", …" if len(words) > most else "")
