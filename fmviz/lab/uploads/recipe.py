"""How a file becomes a data set: the choices made, the size that follows, and the data set itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np
import pandas as pd

from fmviz.engine.errors import one_of, whole_number
from fmviz.lab.datasets import Dataset
from fmviz.lab.tables.column_encoders import (
    MISSING,
    SCALINGS,
    Missing,
    NumberColumn,
    ScalingKind,
    is_number,
    levels_of,
    words_of,
)
from fmviz.lab.tables.encoding import (
    TASKS,
    TableEncoding,
    Target,
    is_sparse,
)
from fmviz.lab.uploads import limits
from fmviz.lab.uploads.column_types import (
    KINDS,
    Column,
    likely_target,
    numbers_of,
    parts_of,
)
from fmviz.lab.uploads.files import Reading, Source

__all__ = ["Choice", "Part", "Recipe", "Size", "build", "first_recipe", "measure"]

LIBSVM_TARGET = "target"
_FLOAT, _INDEX = 8, 4
# Seconds for an entry of X and a column of P, an epoch; measured, and rather too long.
_SECONDS = 3e-9


@dataclass(frozen=True)
class Choice:
    """What a column is used for, one of `KINDS` in `uploads.columns`, and what becomes of missing values."""

    name: str
    kind: str
    missing: Missing = "drop"

    def __post_init__(self) -> None:
        one_of("kind", self.kind, KINDS)
        one_of("missing", self.missing, MISSING)


@dataclass(frozen=True)
class Recipe:
    """What was decided about a file.

    Attributes
    ----------
    reading : Reading
        How it is read.
    columns : tuple of Choice
        The columns in their order; () for libsvm.
    target : str
        The column to predict.
    task : {"auto", "regression", "binary"}
        See `fmviz.lab.tables.encoding.Target`.
    positive : str
        The class that is +1; all others are -1. Empty: the later of two.
    scaling : {"standard", "range", "none"}
        Of numbers among the features.
    rare : int
        Words of fewer rows than this share a level.
    """

    reading: Reading = field(default_factory=Reading)
    columns: tuple[Choice, ...] = ()
    target: str = ""
    task: str = "auto"
    positive: str = ""
    scaling: ScalingKind = "standard"
    rare: int = 1

    def __post_init__(self) -> None:
        one_of("task", self.task, TASKS)
        one_of("scaling", self.scaling, SCALINGS)
        whole_number("rare", self.rare, 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON takes it."""
        told = asdict(self)
        return {**told, "columns": [[one.name, one.kind, one.missing] for one in self.columns]}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Recipe:
        """Read what `to_dict` wrote; raises ValueError on anything else."""
        try:
            reading = Reading(**told["reading"])
            columns = tuple(Choice(*one) for one in told["columns"])
            return cls(**{**told, "reading": reading, "columns": columns})
        except (KeyError, TypeError) as error:
            raise ValueError(f"This is no recipe for a data set ({error}).") from None


def first_recipe(source: Source, columns: Iterable[Column]) -> Recipe:
    """Return what is decided about a file as long as nobody says otherwise."""
    if source.table is None:
        return Recipe(source.reading, target=LIBSVM_TARGET)
    columns = tuple(columns)
    choices = tuple(Choice(one.name, one.kind, "mark" if one.missing else "drop") for one in columns)
    rare = 1 if len(source.table) < 1_000 else 5
    return Recipe(source.reading, choices, likely_target(columns), rare=rare)


# ---------------------------------------------------------------------------------------------- encoding


def _prepared(table: pd.DataFrame, recipe: Recipe) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a table of numbers and words, and the keywords of `TableEncoding.learn` that go with it."""
    names = [str(column) for column in table.columns]
    if not recipe.target:
        raise ValueError(
            "There is no column to predict: none has values that repeat and differ. Choose a target, or "
            "bring a table with one."
        )
    if recipe.target not in names:
        raise ValueError(f"The target {recipe.target!r} is no column. Choose one of the columns.")
    used: dict[str, pd.Series] = {}
    words: list[str] = []
    singles: list[str] = []
    rules: dict[str, Missing] = {}
    for choice in recipe.columns:
        if choice.kind == "ignored" or choice.name == recipe.target or choice.name not in names:
            continue
        values = table[choice.name]
        if choice.kind == "date":
            parts = parts_of(values)
            if not parts:
                raise ValueError(
                    f"Column {choice.name!r} holds no dates that differ. Use it as words, or ignore it."
                )
        elif choice.kind == "number":
            parts = {choice.name: _numbers(values, recipe)}
        else:
            parts = {choice.name: _words(values)}
            (singles if choice.kind == "yes_no" else words).append(choice.name)
        for name, part in parts.items():
            if name in used:
                raise ValueError(f"Two columns become {name!r}. Ignore one of them.")
            used[name], rules[name] = part, choice.missing
    if not used:
        raise ValueError("No column is left to predict from. Use at least one besides the target.")
    target, task, positive = _target(table[recipe.target], recipe)
    prepared = pd.concat([*used.values(), target], axis=1)
    told: dict[str, Any] = {
        "task": task,
        "positive": positive,
        "words": words,
        "singles": singles,
        "missing": rules,
        "scaling": recipe.scaling,
        "rare": recipe.rare,
        "merge": True,
        "most_levels": limits.MOST_LEVELS,
    }
    return prepared, told


def _numbers(values: pd.Series, recipe: Recipe) -> pd.Series:
    return pd.Series(numbers_of(values, recipe.reading.decimal), index=values.index, name=values.name)


def _words(values: pd.Series) -> pd.Series:
    """Return words; numbers stay numbers, so that their levels are in order."""
    if is_number(values):
        return values.where(np.isfinite(values.to_numpy(dtype=np.float64, na_value=np.nan)))
    return pd.Series(words_of(values), index=values.index, name=values.name, dtype=object)


def _target(values: pd.Series, recipe: Recipe) -> tuple[pd.Series, str, str]:
    """Return the target as numbers or two words, the task, and the word for +1."""
    name = str(values.name)
    words = _words(values)
    levels = levels_of(words.dropna())
    positive = recipe.positive if recipe.positive in levels else ""
    task = recipe.task
    if task == "auto" and len(levels) > 2:
        numbers = _numbers(values, recipe)
        mostly = numbers.notna().sum() >= 0.5 * values.notna().sum()
        task = "regression" if mostly and not positive else "binary"
    if task == "regression":
        numbers = _numbers(values, recipe)
        if not numbers.notna().any() and levels:
            raise ValueError(
                f"The target {name!r} holds words such as {levels[0]!r}, and regression wants numbers. "
                "Choose two classes, or another target."
            )
        return numbers, task, ""
    if len(levels) > 2:
        if not positive:
            raise ValueError(
                f"The target {name!r} has {len(levels):,} classes; choose the one to tell from all others, "
                "or another target."
            )
        told = pd.Series(words_of(words), index=values.index, name=name, dtype=object)
        words = told.where(told.isna() | (told == positive), f"not {positive}")
    return words, task, positive


def _encoding(source: Source, recipe: Recipe) -> tuple[TableEncoding, pd.DataFrame]:
    assert source.table is not None
    prepared, told = _prepared(source.table, recipe)
    encoding = TableEncoding.learn(prepared, recipe.target, **told)
    if len(encoding.feature_names) > limits.MOST_FEATURES:
        raise ValueError(
            f"This makes {len(encoding.feature_names):,} features, more than {limits.MOST_FEATURES:,}. "
            "Ignore columns of many words."
        )
    return encoding, prepared


def build(source: Source, recipe: Recipe, name: str, title: str) -> Dataset:
    """Return the data set that a recipe makes of a file.

    Levels, means and deviations are those of all rows that are kept, so that runs with different splits have
    the same features; the target enters none of them.

    Raises
    ------
    ValueError
        With a sentence, if the recipe does not suit the file.
    """
    if source.table is None:
        return _numbered(source, recipe, name, title)
    encoding, prepared = _encoding(source, recipe)
    return encoding.dataset(encoding.apply(prepared), name, title)


def _numbered(source: Source, recipe: Recipe, name: str, title: str) -> Dataset:
    """Return a libsvm file as a data set, its features as they are."""
    assert source.X is not None
    assert source.y is not None
    values = pd.Series(source.y, name=LIBSVM_TARGET)
    words, task, positive = _target(values, recipe)
    target = Target.learn(words, task, positive=positive)
    names = tuple(str(j) for j in range(1, source.X.shape[1] + 1))
    return Dataset(
        name=name,
        title=title,
        task=target.task,
        X=source.X,
        y=target.encode(words),
        feature_names=names,
        groups=names,
        target_name=target.name,
        class_labels=(target.labels[0], target.labels[1]) if target.labels else None,
    )


# -------------------------------------------------------------------------------------------------- size


@dataclass(frozen=True)
class Part:
    """What one column becomes: features, and entries that are not zero."""

    name: str
    kind: str
    features: int
    entries: int


@dataclass(frozen=True)
class Size:
    """What a recipe makes of a file, told before it is made.

    Attributes
    ----------
    rows, dropped : int
        Rows that are kept, and those left out since something is missing.
    parts : tuple of Part
        The columns; one for all of libsvm.
    task : str
        "regression" or "binary".
    labels : tuple of str
        The words for -1 and +1.
    positives : int
        Rows of +1.
    sparse : bool
        Whether the zeros of X take no memory.
    notes : tuple of str
        A sentence for every column that was left out.
    """

    rows: int
    dropped: int
    parts: tuple[Part, ...]
    task: str
    labels: tuple[str, ...] = ()
    positives: int = 0
    sparse: bool = True
    notes: tuple[str, ...] = ()

    @property
    def features(self) -> int:
        """d, the columns of X."""
        return sum(part.features for part in self.parts)

    @property
    def entries(self) -> int:
        """The non-zeros of X."""
        return sum(part.entries for part in self.parts)

    @property
    def bytes_of_X(self) -> int:
        """What X takes by rows and by columns, as it does while a model is trained."""
        pointers = (self.rows + self.features + 2) * _FLOAT
        if self.sparse:
            return 2 * self.entries * (_FLOAT + _INDEX) + pointers
        return 2 * self.rows * self.features * _FLOAT + pointers

    def bytes_of_P(self, rank: int) -> int:
        """Return what P takes."""
        return self.features * rank * _FLOAT

    def seconds(self, rank: int, epochs: int) -> float:
        """About how long so many epochs take, rather too long."""
        return _SECONDS * self.entries * rank * epochs


def measure(source: Source, recipe: Recipe) -> Size:
    """Return what `build` would make, without making it; raises ValueError as it does."""
    if source.table is None:
        dataset = _numbered(source, recipe, "", "")
        X = cast(Any, dataset.X)
        parts: tuple[Part, ...] = (Part("all features", "number", X.shape[1], int(X.nnz)),)
        return _size(dataset.y, dataset.y.size, parts, dataset.task, dataset.class_labels or (), ())
    encoding, prepared = _encoding(source, recipe)
    rows, y = encoding.kept(prepared)
    assert y is not None
    kept = prepared.iloc[rows]
    parts = tuple(
        Part(
            column.name,
            "number" if isinstance(column, NumberColumn) else "words",
            len(column.feature_names),
            _entries(column, kept[column.name]),
        )
        for column in encoding.columns
    )
    if sum(part.entries for part in parts) > limits.MOST_CELLS:
        raise ValueError(
            f"This makes {sum(part.entries for part in parts):,} entries of X, more than "
            f"{limits.MOST_CELLS:,}. Take a sample of the rows, or ignore columns."
        )
    return _size(y[rows], len(prepared), parts, encoding.target.task, encoding.target.labels, encoding.notes)


def _size(
    y: np.ndarray,
    n: int,
    parts: tuple[Part, ...],
    task: str,
    labels: tuple[str, ...],
    notes: tuple[str, ...],
) -> Size:
    positives = int((y > 0).sum()) if task == "binary" else 0
    if task == "binary" and positives in (0, y.size):
        raise ValueError(
            "Of the rows without a missing value all are of one class. Impute what is missing, or ignore "
            "columns."
        )
    features, entries = sum(part.features for part in parts), sum(part.entries for part in parts)
    sparse = is_sparse(entries, y.size, features)
    return Size(y.size, n - y.size, parts, task, labels, positives, sparse, notes)


def _entries(column: Any, values: pd.Series) -> int:
    """Return how many entries of a column's features are not zero."""
    missing = int(values.isna().sum())
    marks = missing if column.missing == "mark" else 0
    if isinstance(column, NumberColumn):
        filled = missing if column.fill else 0
        return int((values.dropna() != column.center).sum()) + filled + marks
    if column.rest:
        return len(values) - missing + marks
    return int(np.isin(words_of(values.dropna()).astype(str), column.levels).sum()) + marks
