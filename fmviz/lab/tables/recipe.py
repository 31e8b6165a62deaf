"""What is decided about a file: how it is read, what each column is used for, and what is predicted."""

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
"""A row with a missing value is left out; or the value counts as the mean, or as none of the levels; or that,
and a feature of 0 and 1 says where it is missing."""

ScalingKind = Literal["standard", "range", "none"]
SCALINGS: tuple[ScalingKind, ...] = ("standard", "range", "none")
"""Numbers get mean 0 and deviation 1, or lie between 0 and 1, or stay as they are."""


@dataclass(frozen=True)
class Choice:
    """What a column is used for, one of `KINDS`, and what becomes of missing values, one of `MISSING`."""

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
    also : tuple of str
        Further columns to predict with it.
    task : {"auto", "regression", "binary", "class", "ordinal"}
        See `fmviz.lab.tables.target.Target`.
    positive : str
        The class that is +1; all others are -1. Empty: the later of two, or every class for itself.
    order : tuple of str
        Ordered classes, ascending; by size or by letters where empty.
    logarithm : bool
        Whether a positive number to predict counts by its logarithm.
    scaling : {"standard", "range", "none"}
        Of numbers among the features.
    rare : int
        Words of fewer rows than this share a level.
    most_levels : int
        Beyond so many words of a column the rarer ones share a level.
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
        """Return the recipe as JSON takes it."""
        settings = {
            **asdict(self),
            "columns": [[choice.name, choice.kind, choice.missing] for choice in self.columns],
        }
        # The hash of this text names a data set, so that what came later is told only where it matters.
        later = {"most_levels": MOST_LEVELS, "also": (), "order": (), "logarithm": False}
        return {name: value for name, value in settings.items() if name not in later or value != later[name]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recipe:
        """Read what `to_dict` wrote; raises ValueError on anything else."""
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
        """Return the recipe with other choices for columns; those that it does not have are passed over."""
        changed = {choice.name: choice for choice in choices}
        return replace(self, columns=tuple(changed.get(choice.name, choice) for choice in self.columns))


def first_recipe(source: Source, columns: Iterable[Column], *, plain: bool = False) -> Recipe:
    """Return what is decided about a file as long as nobody says otherwise.

    With `plain` columns are used as by the rules that knew neither texts nor codes, see `Column.plain_kind`.
    """
    if source.table is None:
        return Recipe(source.reading, target=LIBSVM_TARGET)
    columns = tuple(columns)
    choices = tuple(
        Choice(column.name, column.plain_kind if plain else column.kind, "mark" if column.missing else "drop")
        for column in columns
    )
    rare = 1 if len(source.table) < 1_000 else 5
    return Recipe(source.reading, choices, likely_target(columns), rare=rare)
