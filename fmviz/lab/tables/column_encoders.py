"""Encoders of single columns: fitted on training values, applied to others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.lab.datasets._tables import Block
from fmviz.lab.datasets.base import Scaling

__all__ = [
    "MISSING",
    "SCALINGS",
    "Missing",
    "NumberColumn",
    "ScalingKind",
    "WordColumn",
    "blocks",
    "is_number",
    "learn_number",
    "learn_words",
    "levels_of",
    "moments",
    "some",
    "words_of",
]

Missing = Literal["drop", "impute", "mark"]
MISSING: tuple[Missing, ...] = ("drop", "impute", "mark")
"""A row with a missing value is left out; or the value counts as the mean, or as none of the levels; or that,
and a feature of 0 and 1 says where it is missing."""

ScalingKind = Literal["standard", "range", "none"]
SCALINGS: tuple[ScalingKind, ...] = ("standard", "range", "none")
"""Numbers get mean 0 and deviation 1, or lie between 0 and 1, or stay as they are."""

OTHER = "(other)"
_MISSING = "(missing)"
_LONGEST = 100


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, encoded as (value − center)/scale.

    Attributes
    ----------
    name : str
        The column.
    center, scale : float
        Mean and deviation, or what else the scaling takes.
    missing : {"drop", "impute", "mark"}
        See `MISSING`.
    fill : float
        What a missing value counts as, encoded.
    deviations : bool
        Whether center and scale are the mean and the standard deviation.
    """

    name: str
    center: float
    scale: float
    missing: Missing = "drop"
    fill: float = 0.0
    deviations: bool = True

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name for every feature."""
        return (self.name, *_mark(self))

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """How every feature was scaled; None for one of zeros and ones, or as it was."""
        own = Scaling(self.center, self.scale, self.deviations)
        return (None if (self.center, self.scale) == (0.0, 1.0) else own, *(None for _ in _mark(self)))


@dataclass(frozen=True)
class WordColumn:
    """A column of words, encoded by one column of zeros and ones for each of its levels.

    Attributes
    ----------
    name : str
        The column.
    levels : tuple of str
        The words that have a feature. Of a column of yes and no it is one.
    missing : {"drop", "impute", "mark"}
        See `MISSING`.
    rest : str
        The name of a further level that all other words share, or empty: then they are none of the levels.
    """

    name: str
    levels: tuple[str, ...]
    missing: Missing = "drop"
    rest: str = ""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name for every feature."""
        levels = (*self.levels, self.rest) if self.rest else self.levels
        return (*(f"{self.name}={_short(level)}" for level in levels), *_mark(self))

    @property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """How every feature was scaled: not at all."""
        return (None,) * len(self.feature_names)


def _mark(column: NumberColumn | WordColumn) -> tuple[str, ...]:
    return (f"{column.name}={_MISSING}",) if column.missing == "mark" else ()


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"


def learn_number(
    values: pd.Series, missing: Missing = "drop", scaling: ScalingKind = "standard"
) -> NumberColumn | None:
    """Learn the encoding of numbers; None where they are constant, ValueError where one is infinite."""
    name = str(values.name)
    numbers = values.dropna().to_numpy(dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"Column {name!r} holds an infinite value; take it out, or leave the cell empty.")
    mean, deviation = moments(numbers)
    if deviation == 0:
        return None
    marked = _as_it_is(values, missing)
    if scaling == "standard":
        return NumberColumn(name, mean, deviation, marked)
    low, high = (float(numbers.min()), float(numbers.max())) if scaling == "range" else (0.0, 1.0)
    return NumberColumn(name, low, high - low, marked, (mean - low) / (high - low), False)


def learn_words(
    values: pd.Series,
    missing: Missing = "drop",
    *,
    most_levels: int,
    rare: int = 1,
    merge: bool = False,
    single: bool = False,
) -> WordColumn | None:
    """Learn the levels of words; None where there is nothing to tell apart.

    Parameters
    ----------
    values : Series
        The words, missing ones too.
    missing : {"drop", "impute", "mark"}
        See `MISSING`.
    most_levels : int
        So many words may have a feature of their own.
    rare : int
        Words of fewer rows than this share a level.
    merge : bool
        Whether beyond `most_levels` the rarer words share a level; else they are an error.
    single : bool
        Whether two words get one feature, for the one that says yes.

    Raises
    ------
    ValueError
        If there are too many words.
    """
    name, known = str(values.name), values.dropna()
    marked = _as_it_is(values, missing)
    levels = levels_of(known)
    if single and len(levels) == 2:
        return WordColumn(name, (yes_of(levels),), marked)
    rest = ""
    if rare > 1 or (merge and len(levels) > most_levels):
        counts = pd.Series(words_of(known)).value_counts()
        # Of equally frequent words those that come first by letters, whatever the order of the rows.
        ranked = sorted(levels, key=lambda level: -counts[level])
        kept = {level for level in ranked[:most_levels] if counts[level] >= rare}
        # A level that stands for one word alone would only hide its name.
        if len(levels) - len(kept) > 1:
            levels, rest = [level for level in levels if level in kept], OTHER
    if len(levels) > most_levels:
        odd = known[pd.to_numeric(known, errors="coerce").isna()]
        hint = ""
        if not is_number(known) and 0 < len(odd) < 0.5 * len(known):
            hint = f" Most of them are numbers, but {str(odd.iloc[0])!r} is not: leave such cells empty."
        raise ValueError(
            f"Column {name!r} has {len(levels):,} different words, more than {most_levels:,}; ignore it, or "
            f"raise the limit.{hint}"
        )
    if len(levels) + bool(rest) + (marked == "mark") < 2:
        return None
    return WordColumn(name, tuple(levels), marked, rest)


def _as_it_is(values: pd.Series, missing: Missing) -> Missing:
    """Return the choice for missing values; a mark needs some to mark."""
    return missing if missing != "mark" or values.isna().any() else "impute"


_YES = ("yes", "true", "1", "y", "t", "on", "ja", "oui", "si", "sí", "positive", "present")


def yes_of(levels: Collection[str]) -> str:
    """Return the one of two words that says yes; else the later by letters."""
    return next((level for level in levels if level.strip().lower() in _YES), max(levels))


def blocks(columns: Sequence[NumberColumn | WordColumn], table: pd.DataFrame) -> list[Block]:
    """Return the features of the columns of a table, in blocks to be put side by side."""
    # To join thousands of blocks takes long, so neighbours among the numbers make one.
    found = []
    for plain, run in groupby(columns, lambda one: isinstance(one, NumberColumn) and one.missing != "mark"):
        group = list(run)
        if plain:
            names = tuple(one.name for one in group)
            values = [_numbers(one, table[one.name]) for one in group if isinstance(one, NumberColumn)]
            found.append(Block(sp.csr_array(np.column_stack(values)), names, names))
        else:
            found += [_block(one, table[one.name]) for one in group]
    return found


def _numbers(column: NumberColumn, values: pd.Series) -> np.ndarray:
    numbers = (values.to_numpy(dtype=np.float64) - column.center) / column.scale
    numbers[np.isnan(numbers)] = column.fill
    return numbers


def _block(column: NumberColumn | WordColumn, values: pd.Series) -> Block:
    """Return the features of one column."""
    names = column.feature_names
    if isinstance(column, NumberColumn):
        marked = np.column_stack([_numbers(column, values), values.isna().to_numpy()])
        return Block(sp.csr_array(marked), names, (column.name,) * len(names))
    places = {level: j for j, level in enumerate(column.levels)}
    codes, different = _factorized(values)
    rest = len(column.levels) if column.rest else -1
    mark = len(names) - 1 if column.missing == "mark" else -1
    at = np.array([*(places.get(word, rest) for word in different), mark], dtype=np.int64)[codes]
    (rows,) = np.nonzero(at >= 0)
    matrix = sp.csr_array((np.ones(rows.size), (rows, at[rows])), shape=(len(values), len(names)))
    return Block(matrix, names, (column.name,) * len(names))


def is_number(values: pd.Series) -> bool:
    """Return whether a column holds numbers, rather than words or truth values."""
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def _factorized(values: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return for every value the place of its word, -1 where it is missing, and the words."""
    codes, different = pd.factorize(values)
    return codes, [
        f"{v:.15g}" if isinstance(v, int | float) and not isinstance(v, bool) else str(v) for v in different
    ]


def words_of(values: pd.Series) -> np.ndarray:
    """Return values as words, None where one is missing; whole numbers without a point."""
    codes, words = _factorized(values)
    return np.array([*words, None], dtype=object)[codes]


def levels_of(values: pd.Series) -> list[str]:
    """Return the different words of values of which none is missing: numbers by size, words by letters."""
    different = pd.Series(values.unique())
    if is_number(different):
        return list(dict.fromkeys(words_of(different.sort_values())))
    return sorted(set(words_of(different)))


def moments(values: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation; exactly 0 for what is constant, which rounding would hide."""
    if not values.size or (values == values[0]).all():
        return float(values[0]) if values.size else 0.0, 0.0
    return float(values.mean()), float(values.std())


def some(words: Collection[str], most: int = 4) -> str:
    """Return the first few words, for a sentence."""
    shown = ", ".join(map(str, list(words)[:most]))
    return shown + (", …" if len(words) > most else "")
