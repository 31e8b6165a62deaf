"""Infer the type of every column: number, category, yes or no, date, text, or ignored."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fmviz.lab.tables.limits import MOST_LEVELS
from fmviz.lab.tables.values import STRAY, date_format, dates_of, is_number, numbers_of, words_of

__all__ = ["KINDS", "Column", "described", "likely_target"]

KINDS = ("number", "word", "yes_no", "date", "text", "ignored")
"""The ways to use a column."""

_SAMPLE = 500
_CLASSES = 50
_TEXT_WORDS = 3
_IDENTIFIER = re.compile(r"(^|[\W_])(id|uid|uuid|guid|key|index|nr|no|row|rownum|serial)$", re.I)
_CODE = re.compile(r"(^|[\W_])(id|code|zip|zip_?code|post_?code|postal_?code|plz)$|[a-z]I[dD]$")
_TARGET = re.compile(
    r"^(target|label|class|y|outcome|response|survived|churn|default|late|price|rating)$", re.I
)


@dataclass(frozen=True)
class Column:
    """The inferred type of a column, with a summary.

    Attributes
    ----------
    name : str
        Unique in the table.
    kind : str
        One of `KINDS`: the recommended use.
    plain_kind : str
        The same by earlier rules without texts and codes. Links hold only differences from it.
    missing : int
        The number of missing values, including infinite numbers and, among numbers, stray words.
    different : int
        The number of unique values.
    examples : str
        The first few values.
    note : str
        The reason why the column is ignored, or a warning; or empty.
    levels : tuple of str
        The most frequent values, to choose the positive class from.
    positive : bool
        Whether most values are numbers, with more than two unique ones, all positive.
    """

    name: str
    kind: str
    plain_kind: str
    missing: int
    different: int
    examples: str
    note: str = ""
    levels: tuple[str, ...] = ()
    positive: bool = False


def described(table: pd.DataFrame, decimal: str = "point") -> tuple[Column, ...]:
    """Infer the type of every column of a table."""
    return tuple(_described(table[name], decimal) for name in table)


def _described(values: pd.Series, decimal: str) -> Column:
    name, n = str(values.name), len(values)
    known = values.dropna()
    different = known.drop_duplicates()
    examples = [_shown(word) for word in words_of(different.head(4))]
    counts = known.value_counts().head(_CLASSES) if len(different) <= 4 * _CLASSES else None
    levels = () if counts is None else tuple(map(str, words_of(pd.Series(counts.index))))
    plain_kind, note, missing = _kind(known, different, decimal, bool(_IDENTIFIER.search(name)), n)
    kind, note = _refined(plain_kind, known, different, name) or (plain_kind, note)
    missing += n - len(known)
    positive = _positive(known, decimal, n)
    return Column(
        name, kind, plain_kind, missing, len(different), " · ".join(examples), note, levels, positive
    )


def _positive(known: pd.Series, decimal: str, n: int) -> bool:
    """Return whether most of n values are numbers, with more than two unique ones, all positive."""
    if not len(known) or np.isnan(numbers_of(_some(known), decimal)).mean() > 0.75:
        return False
    numbers = numbers_of(known, decimal)
    numbers = numbers[~np.isnan(numbers)]
    return numbers.size > 0.5 * n and bool(numbers.min() > 0.0) and np.unique(numbers).size > 2


def _some(values: pd.Series) -> pd.Series:
    """Return an evenly spaced sample of the values."""
    return values.iloc[np.unique(np.linspace(0, len(values) - 1, _SAMPLE).astype(int))]


def _refined(kind: str, known: pd.Series, different: pd.Series, name: str) -> tuple[str, str] | None:
    """Return the kind and a note for texts, codes and identifiers, which `_kind` does not recognize."""
    n, m = len(known), len(different)
    if kind == "number" and is_number(known) and _CODE.search(name) and (known % 1 == 0).all():
        if m == n >= 20:
            return "ignored", "It looks like an identifier: every row has a number of its own."
        if m <= n / 2:
            return "word", "Its whole numbers look like codes; as a category, each is a name."
    unlike = m > n / 2 or m > MOST_LEVELS
    if kind in ("word", "ignored") and unlike and n >= 20 and not is_number(known):
        sample = _some(known).astype(str)
        if sample.str.split().str.len().mean() >= _TEXT_WORDS:
            return "text", f"Texts; as such, each of their {MOST_LEVELS:,} most frequent words is a feature."
    return None


def _shown(word: str) -> str:
    word = " ".join(word.split())
    return word if len(word) <= 30 else word[:29] + "…"


def _kind(
    known: pd.Series, different: pd.Series, decimal: str, called_so: bool, n: int
) -> tuple[str, str, int]:
    """Return the kind of a column, a note, and the number of values that count as missing."""
    if not len(known):
        return "ignored", "It has no values.", 0
    if len(different) == 1:
        return "ignored", "It has the same value in all rows.", 0
    if pd.api.types.is_datetime64_any_dtype(known):
        return "date", "", 0
    if pd.api.types.is_bool_dtype(known):
        return "yes_no", "", 0
    each_its_own = n >= 20 and len(different) == len(known)
    if is_number(known):
        numbers = known.to_numpy(dtype=np.float64)
        infinite = int(np.isinf(numbers).sum())
        if infinite:
            return "number", f"{infinite:,} infinite values count as missing.", infinite
        if set(different.tolist()) == {0, 1}:
            return "yes_no", "", 0
        integral = bool((numbers == np.round(numbers)).all())
        counting = integral and bool((np.abs(np.diff(numbers)) == 1).all())
        if each_its_own and integral and (called_so or counting):
            return "ignored", "It looks like an identifier: every row has a number of its own.", 0
        return "number", "", 0
    if len(different) > 2:
        # A sample first: there may be a million texts.
        stray = None
        if np.isnan(numbers_of(_some(different), decimal)).mean() < 0.5:
            stray = known.isin(different[np.isnan(numbers_of(different, decimal))])
        if stray is not None and stray.mean() <= STRAY:
            note = ""
            if stray.any():
                note = (
                    f"{int(stray.sum()):,} cells such as {_shown(str(known[stray].iloc[0]))!r} are no "
                    "numbers and count as missing."
                )
            return "number", note, int(stray.sum())
        head = different.head(_SAMPLE)
        if (form := date_format(head)) and dates_of(head, form).notna().all():
            lost = int(dates_of(known, form).isna().sum())
            note = f"{lost:,} cells are no dates and count as missing." if lost else ""
            return "date", note, lost
        if each_its_own or (n >= 50 and len(different) > 0.9 * len(known)):
            return (
                "ignored",
                "It looks like an identifier or free text: nearly every row has words of its own.",
                0,
            )
    if len(different) == 2:
        return "yes_no", "", 0
    if len(different) > MOST_LEVELS:
        note = f"{len(different):,} different words; the {MOST_LEVELS:,} most frequent get a feature."
        return "word", note, 0
    return "word", "", 0


def likely_target(columns: Iterable[Column]) -> str:
    """Return the most likely target: a column named like one, else the last suitable one.

    A column of words is suitable if it is the last and has few unique values.
    """
    columns = list(columns)
    able = [column for column in columns if column.kind in ("number", "yes_no", "word")]
    named = [column.name for column in able if _TARGET.match(column.name)]
    if named:
        return named[-1]
    last = columns[-1] if columns else None
    if last is not None and last.kind == "word" and last.different <= _CLASSES:
        return last.name
    easy = [column.name for column in able if column.kind != "word"]
    return (easy or [column.name for column in able] or [""])[-1]
