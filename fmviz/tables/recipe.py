"""The recipe of a file: how to read it, how to encode each column, and which column to predict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.checked import checked
from fmviz.engine.errors import one_of
from fmviz.tables.cells import quoted
from fmviz.tables.columns import MISSING, Missing, ScalingKind
from fmviz.tables.curves import prefers_logarithm
from fmviz.tables.encoder import TableEncoder
from fmviz.tables.kinds import KINDS, Column, described, likely_target
from fmviz.tables.limits import MOST_LEVELS
from fmviz.tables.source import LIBSVM_TARGET, Reading, Source
from fmviz.tables.target import TASKS, TargetEncoding
from fmviz.typography import counted


@dataclass(frozen=True)
class Choice:
    """How a column is used, one of `KINDS`, and how missing values are treated, one of `MISSING`."""

    name: str
    kind: str
    missing: Missing = "drop"

    def __post_init__(self) -> None:
        one_of("kind", self.kind, KINDS)
        one_of("missing", self.missing, MISSING)


@dataclass(frozen=True)
class Recipe:
    """Options of reading and encoding a file.

    Attributes
    ----------
    reading : Reading
        The options of reading.
    columns : tuple of Choice
        The columns in order; () for libsvm.
    target : str
        The column to predict.
    also : tuple of str
        Additional columns to predict.
    task : {"auto", "regression", "binary", "class", "ordinal"}
        See `fmviz.tables.target.TargetEncoding`.
    positive : str
        The class encoded as +1, all others as -1. If empty, the second of two classes, or multiclass.
    order : tuple of str
        Ordered classes, ascending; if empty, the order of a rating scale, numerical or alphabetical order.
    logarithm : bool or "auto"
        Whether to predict the logarithm of a positive number; "auto": if it is skewed, and validation
        prefers it.
    scaling, numbers, ends, most_levels : str, str, bool, int or None
        See `fmviz.tables.encoder.TableEncoder`.
    rare : int
        Words in fewer rows share a level.
    group : str
        The group column: rows with the same value stay on the same side of every split. Empty: none.
    distinct : bool
        Whether columns that say the same as another are left out, see `TableEncoder`, and equal rows stay on
        the same side of every split.
    """

    reading: Reading = field(default_factory=Reading)
    columns: tuple[Choice, ...] = ()
    target: str = ""
    task: str = "auto"
    positive: str = ""
    scaling: ScalingKind = "standard"
    rare: int = 1
    most_levels: int | None = None
    also: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    logarithm: bool | Literal["auto"] = False
    numbers: str = "auto"
    group: str = ""
    ends: bool = True
    distinct: bool = True

    def __post_init__(self) -> None:
        one_of("task", self.task, TASKS)
        self.encoder(()).check()

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as a dictionary for JSON."""
        settings = {
            **asdict(self),
            "reading": self.reading.to_dict(),
            "columns": [[choice.name, choice.kind, choice.missing] for choice in self.columns],
        }
        # Names of data sets are hashes of the recipe.
        return {name: value for name, value in settings.items() if _OPTIONAL.get(name, ...) != value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recipe:
        """Return the recipe from a dictionary of `to_dict`; raises ValueError if it is invalid."""
        try:
            columns = [Choice(*fields) for fields in data["columns"]]
            reading = Reading.from_dict(data["reading"])
            return checked(cls, {**_OPTIONAL, **data, "reading": reading, "columns": columns})
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"This is not a valid recipe of a data set ({error}).") from None

    @property
    def targets(self) -> tuple[str, ...]:
        """All columns to predict."""
        return (self.target, *(name for name in self.also if name != self.target))

    def grouped(self, group: str) -> Recipe:
        """Return the recipe with a group column, which is then no feature."""
        alone = (replace(choice, kind="ignored") for choice in self.columns if choice.name == group)
        return replace(self.corrected(alone), group=group)

    def group_note(self, groups: np.ndarray) -> str:
        """Return a sentence on the rows that stay together, given the group of every row."""
        if self.group:
            return f"Rows with the same {self.group} stay on the same side of every split."
        n = groups.size - len(np.unique(groups))
        rows = f"{counted(n, 'row')} {'equals' if n == 1 else 'equal'} another one"
        return f"{rows} in all columns; equal rows stay on the same side of every split."

    def corrected(self, choices: Iterable[Choice]) -> Recipe:
        """Return the recipe with changed choices for columns; unknown columns are ignored."""
        changed = {choice.name: choice for choice in choices}
        return replace(self, columns=tuple(changed.get(choice.name, choice) for choice in self.columns))

    def encoder(self, features: Container[str]) -> TableEncoder:
        """Return the unfitted encoder of some columns."""
        chosen = {choice.name: choice for choice in self.columns if choice.name in features}
        return TableEncoder(
            numbers=self.numbers,
            use={name: choice.kind for name, choice in chosen.items()},
            missing={name: choice.missing for name, choice in chosen.items()},
            scaling=self.scaling,
            ends=self.ends,
            distinct=self.distinct,
            rare=self.rare,
            most_levels=self.most_levels,
            decimal=self.reading.usual_decimal,
            dates=self.reading.dates,
            missing_words=self.reading.missing,
        )


# The logarithm of a target of smaller skewness is not tried.
_SKEWED = 1.0

# Equal rows are copies only if a column has more different values than this.
_FEWEST_VALUES = 100

_OPTIONAL = {
    **{"most_levels": MOST_LEVELS, "also": (), "order": (), "logarithm": False, "numbers": "line"},
    **{"group": "", "ends": False, "distinct": False},
}
"""Default values, which a recipe's dictionary omits."""


def columns_of(source: Source) -> tuple[Column, ...]:
    """Return descriptions of the columns of a file; for libsvm, only the target."""
    reading = source.reading
    return described(source.columns, reading.usual_decimal, reading.dates, reading.missing)


def first_recipe(source: Source, columns: Iterable[Column]) -> Recipe:
    """Return the default recipe of a file with these columns."""
    if source.table is None:
        return Recipe(source.reading, target=LIBSVM_TARGET)
    columns = tuple(columns)
    choices = tuple(
        Choice(column.name, column.kind, "mark" if column.missing else "impute") for column in columns
    )
    return Recipe(
        source.reading,
        choices,
        likely_target(columns),
        rare=1 if len(source.table) < 1_000 else 5,
        logarithm="auto",
    )


def _equal_rows(table: pd.DataFrame) -> np.ndarray | None:
    """Return a number for every row, the same for equal rows; None if no row is a copy.

    In tables of a few levels, equal rows are no copies.
    """
    codes = np.asarray(pd.util.hash_pandas_object(table, index=False).factorize()[0])
    copies = codes.max(initial=-1) < len(codes) - 1
    return codes if copies and any(table[name].nunique() > _FEWEST_VALUES for name in table) else None


def row_groups(source: Source, recipe: Recipe) -> np.ndarray | None:
    """Return the number of the group of every row of a file, shape (N,), or None if all rows are separate.

    Without a group column, equal rows are groups.

    Raises
    ------
    ValueError
        If the column is missing, a target, or the same in all rows.
    """
    if not recipe.group:
        return _equal_rows(source.table) if recipe.distinct and source.table is not None else None
    if recipe.group not in source.columns or recipe.group in recipe.targets:
        others = [name for name in source.columns if name not in recipe.targets]
        raise ValueError(
            f"The group {recipe.group!r} is not a column other than the target. Choose one of "
            f"{quoted(others, 20) or 'a table with more columns'}, or none."
        )
    codes = source.columns[recipe.group].factorize(use_na_sentinel=False)[0]
    if codes.max(initial=0) == 0:
        raise ValueError(
            f"All rows have the same {recipe.group}: none can be held out. Choose another group column or "
            "none."
        )
    return np.asarray(codes)


def learned(
    source: Source,
    recipe: Recipe,
    rows: np.ndarray | None = None,
    columns: Iterable[Column] | None = None,
    words: Mapping[str, Counter[Any]] | None = None,
) -> tuple[TargetEncoding, TableEncoder | None]:
    """Fit the encoding of a file's target and features; libsvm files need no encoder.

    Parameters
    ----------
    source : Source
        The file as read.
    recipe : Recipe
        The options.
    rows : int ndarray, optional
        The rows on whose target the curves of numbers are chosen; by default all.
    columns : iterable of Column, optional
        The descriptions of the columns, if already known.
    words : mapping, optional
        The counts of all words, if the file is a sample, see `fmviz.tables.batches.TableSample`.

    Raises
    ------
    ValueError
        If the recipe does not match the file.
    """
    if not recipe.target:
        raise ValueError(
            "There is no column to predict: none has repeated, differing values. Choose a target, or upload "
            "a table with one."
        )
    table = source.columns
    if unknown := [name for name in recipe.targets if name not in table]:
        raise ValueError(f"The target {unknown[0]!r} is not a column. Choose one of the columns.")
    described = {column.name: column for column in columns or columns_of(source)}
    alone: dict[str, Any] = {} if recipe.also else {"positive": recipe.positive, "order": recipe.order}
    target = TargetEncoding.of_table(
        table,
        recipe.targets,
        described,
        task=recipe.task,
        logarithm=recipe.logarithm is True,
        **alone,
    )
    if source.table is None:
        return target, None
    y = target.encode(table)
    taken = ~np.isnan(y.reshape(len(y), -1)).any(axis=1)
    features = table.drop(columns=list(recipe.targets))
    known = y[:, 0] if y.ndim == 2 else y
    # Class names, to prevent their interpretation as numbers.
    if target.task in ("binary", "class", "several"):
        known = known.astype(str).astype(object)
    if rows is not None:
        known = pd.Series(known).where(np.isin(np.arange(len(known)), rows)).to_numpy()
    others = [column for column in described.values() if column.name in features]
    groups = row_groups(source, recipe)
    groups = None if groups is None else groups[taken]
    number = recipe.logarithm == "auto" and target.task == "regression" and not target.parts
    if number and _logarithm_predicts(target, recipe, features[taken], others, known[taken], groups):
        target, encoder = learned(source, replace(recipe, logarithm=True), rows, described.values(), words)
        note = (
            f"The logarithm of {target.name!r} is fitted: in validation, it predicts {target.name!r} better."
        )
        return replace(target, notes=(*target.notes, note)), encoder
    return target, recipe.encoder(features).learn(features[taken], others, known[taken], groups, words)


def _logarithm_predicts(
    target: TargetEncoding,
    recipe: Recipe,
    features: pd.DataFrame,
    columns: Iterable[Column],
    y: np.ndarray,
    groups: np.ndarray | None,
) -> bool:
    """Return whether a target is positive and skewed, and lines predict it better by its logarithm."""
    y = target.decode(y)
    known = np.isfinite(y)
    if not known.any() or y[known].min() <= 0.0 or pd.Series(y[known]).skew() < _SKEWED:
        return False
    lines = replace(recipe, numbers="line").encoder(features).learn(features, columns)
    X = sp.csr_array(lines.transform(features))
    known &= np.isfinite(X.sum(axis=1))
    return prefers_logarithm(X[known], y[known], None if groups is None else groups[known])
