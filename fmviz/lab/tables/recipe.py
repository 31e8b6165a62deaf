"""Options for a file: how to read it, how to encode each column, and which column to predict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from fmviz.engine.errors import one_of, whole_number
from fmviz.lab.tables.column_types import KINDS, Column, likely_target
from fmviz.lab.tables.limits import MOST_LEVELS
from fmviz.lab.tables.source import Reading, Source
from fmviz.lab.tables.target import TASKS

__all__ = ["LIBSVM_TARGET", "MISSING", "SCALINGS", "Choice", "Missing", "Recipe", "first_recipe"]

LIBSVM_TARGET = "target"

Missing = Literal["drop", "impute", "mark"]
MISSING: tuple[Missing, ...] = ("drop", "impute", "mark")
"""Drop rows with a missing value; impute the mean, or no level; or impute, and add an indicator feature."""

ScalingKind = Literal["standard", "range", "none"]
SCALINGS: tuple[ScalingKind, ...] = ("standard", "range", "none")
"""Scale numbers to mean 0 and standard deviation 1, scale them to [0, 1], or leave them unscaled."""


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
        The columns in their order; () for libsvm.
    target : str
        The column to predict.
    also : tuple of str
        Further columns to predict with it.
    task : {"auto", "regression", "binary", "class", "ordinal"}
        See `fmviz.lab.tables.target.Target`.
    positive : str
        The class encoded as +1, all others as -1. Empty: the later of two classes, or multiclass.
    order : tuple of str
        Ordered classes, ascending; empty for the numerical or alphabetical order.
    logarithm : bool
        Whether to predict the logarithm of a positive number.
    scaling : {"standard", "range", "none"}
        The scaling of numerical features.
    rare : int
        Words with fewer rows share a level.
    most_levels : int
        The maximum number of levels of a column; rarer words share one.
    """

    reading: Reading = field(default_factory=Reading)
    columns: tuple[Choice, ...] = ()
    target: str = ""
    task: str = "auto"
    positive: str = ""
    scaling: ScalingKind = "standard"
    rare: int = 1
    most_levels: int = MOST_LEVELS
    also: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    logarithm: bool = False

    def __post_init__(self) -> None:
        one_of("task", self.task, TASKS)
        one_of("scaling", self.scaling, SCALINGS)
        whole_number("rare", self.rare, 1)
        whole_number("most_levels", self.most_levels, 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as a dictionary for JSON."""
        settings = {
            **asdict(self),
            "columns": [[choice.name, choice.kind, choice.missing] for choice in self.columns],
        }
        # The hash of this text names a data set: later fields are omitted where they have their default.
        later = {"most_levels": MOST_LEVELS, "also": (), "order": (), "logarithm": False}
        return {name: value for name, value in settings.items() if name not in later or value != later[name]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recipe:
        """Return the recipe of a dictionary by `to_dict`; raises ValueError on anything else."""
        try:
            reading = Reading(**data["reading"])
            columns = tuple(Choice(*fields) for fields in data["columns"])
            later = {name: tuple(data.get(name, ())) for name in ("also", "order")}
            return cls(**{**data, **later, "reading": reading, "columns": columns})
        except (KeyError, TypeError) as error:
            raise ValueError(f"This is no recipe for a data set ({error}).") from None

    @property
    def targets(self) -> tuple[str, ...]:
        """All columns to predict."""
        return (self.target, *(name for name in self.also if name != self.target))

    def corrected(self, choices: Iterable[Choice]) -> Recipe:
        """Return the recipe with other choices for its columns; unknown columns are ignored."""
        changed = {choice.name: choice for choice in choices}
        return replace(self, columns=tuple(changed.get(choice.name, choice) for choice in self.columns))


def first_recipe(source: Source, columns: Iterable[Column], *, plain: bool = False) -> Recipe:
    """Return the default recipe of a file; with `plain` columns are used by `Column.plain_kind`."""
    if source.table is None:
        return Recipe(source.reading, target=LIBSVM_TARGET)
    columns = tuple(columns)
    choices = tuple(
        Choice(column.name, column.plain_kind if plain else column.kind, "mark" if column.missing else "drop")
        for column in columns
    )
    rare = 1 if len(source.table) < 1_000 else 5
    return Recipe(source.reading, choices, likely_target(columns), rare=rare)
