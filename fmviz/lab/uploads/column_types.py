"""What a column of a table holds: numbers, categories, yes or no, dates, or nothing to learn from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fmviz.lab.tables.column_encoders import is_number, words_of
from fmviz.lab.uploads import limits

__all__ = ["KINDS", "Column", "dates_of", "described", "likely_target", "numbers_of", "parts_of"]

KINDS = ("number", "word", "yes_no", "date", "ignored")
"""How a column can be used."""

# Up to this share of stray words a column is still one of numbers.
_STRAY = 0.05
_SAMPLE = 500
_CLASSES = 50
_DATE_FORMATS = (
    "ISO8601",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y",
    "%d/%m/%Y %H:%M",
    "%d-%b-%Y",
    "%d %b %Y",
    "%b %d, %Y",
)
_IDENTIFIER = re.compile(r"(^|[\W_])(id|uid|uuid|guid|key|index|nr|no|row|rownum|serial)$", re.I)
_TARGET = re.compile(
    r"^(target|label|class|y|outcome|response|survived|churn|default|late|price|rating)$", re.I
)
# Levels stand in the order of their letters.
_WEEKDAYS = ("1-Mon", "2-Tue", "3-Wed", "4-Thu", "5-Fri", "6-Sat", "7-Sun")
_MONTHS = (
    *("01-Jan", "02-Feb", "03-Mar", "04-Apr", "05-May", "06-Jun"),
    *("07-Jul", "08-Aug", "09-Sep", "10-Oct", "11-Nov", "12-Dec"),
)


@dataclass(frozen=True)
class Column:
    """A column as it was found.

    Attributes
    ----------
    name : str
        Unique in the table.
    kind : str
        One of `KINDS`: how it is best used.
    missing : int
        Rows without a value; infinite numbers and, among numbers, stray words count as such.
    different : int
        Different values.
    examples : str
        The first few.
    note : str
        Why it is left out, or what to look at; or empty.
    levels : tuple of str
        The most frequent values, for a choice of the class to predict.
    """

    name: str
    kind: str
    missing: int
    different: int
    examples: str
    note: str = ""
    levels: tuple[str, ...] = ()


def described(table: pd.DataFrame, decimal: str = "point") -> tuple[Column, ...]:
    """Return what each column of a table is."""
    return tuple(_described(table[name], decimal) for name in table)


def _described(values: pd.Series, decimal: str) -> Column:
    name, n = str(values.name), len(values)
    known = values.dropna()
    different = known.drop_duplicates()
    told = [_shown(word) for word in words_of(different.head(4))]
    counts = known.value_counts().head(_CLASSES) if len(different) <= 4 * _CLASSES else None
    levels = () if counts is None else tuple(map(str, words_of(pd.Series(counts.index))))
    kind, note, missing = _kind(known, different, decimal, bool(_IDENTIFIER.search(name)), n)
    missing += n - len(known)
    return Column(name, kind, missing, len(different), " · ".join(told), note, levels)


def _shown(word: str) -> str:
    word = " ".join(word.split())
    return word if len(word) <= 30 else word[:29] + "…"


def _kind(
    known: pd.Series, different: pd.Series, decimal: str, called_so: bool, n: int
) -> tuple[str, str, int]:
    """Return the kind of a column, a note, and how many of its values count as missing."""
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
        whole = bool((numbers == np.round(numbers)).all())
        counting = whole and bool((np.abs(np.diff(numbers)) == 1).all())
        if each_its_own and whole and (called_so or counting):
            return "ignored", "It looks like an identifier: every row has a number of its own.", 0
        return "number", "", 0
    if len(different) > 2:
        # A look at some of them spares the rest, which may be a million texts.
        some = different.iloc[np.unique(np.linspace(0, len(different) - 1, _SAMPLE).astype(int))]
        stray = None
        if np.isnan(numbers_of(some, decimal)).mean() < 0.5:
            stray = known.isin(different[np.isnan(numbers_of(different, decimal))])
        if stray is not None and stray.mean() <= _STRAY:
            note = ""
            if stray.any():
                note = (
                    f"{int(stray.sum()):,} cells such as {_shown(str(known[stray].iloc[0]))!r} are no "
                    "numbers and count as missing."
                )
            return "number", note, int(stray.sum())
        if (found := dates_of(different.head(_SAMPLE))) is not None and found.notna().all():
            unread = dates_of(known)
            lost = 0 if unread is None else int(unread.isna().sum())
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
    if len(different) > limits.MOST_LEVELS:
        note = f"{len(different):,} different words; the {limits.MOST_LEVELS:,} most frequent get a feature."
        return "word", note, 0
    return "word", "", 0


def likely_target(columns: Iterable[Column]) -> str:
    """Return the column that is most likely to be predicted: one called so, else the last that can be."""
    able = [column for column in columns if column.kind in ("number", "yes_no", "word")]
    named = [column.name for column in able if _TARGET.match(column.name)]
    if named:
        return named[-1]
    easy = [column.name for column in able if column.kind != "word"]
    return (easy or [column.name for column in able] or [""])[-1]


# --------------------------------------------------------------------------------------------- conversion


def numbers_of(values: pd.Series, decimal: str = "point") -> np.ndarray:
    """Return values as numbers, float64; NaN where one is missing, infinite or no number.

    With `decimal` "point" a comma, with "comma" a point divides thousands, if three digits follow it; so do
    blanks and apostrophes.
    """
    if is_number(values) or pd.api.types.is_bool_dtype(values):
        numbers = values.astype("float64").to_numpy(na_value=np.nan).copy()
    elif pd.api.types.is_datetime64_any_dtype(values):
        return np.full(len(values), np.nan)
    else:
        codes, different = pd.factorize(values)
        words = pd.Series([str(word).strip() for word in different], dtype="str")
        numbers = pd.to_numeric(words, errors="coerce").to_numpy(dtype=np.float64, copy=True)
        if decimal == "comma":
            numbers[words.str.contains(".", regex=False).to_numpy(dtype=bool)] = np.nan
        unread = np.flatnonzero(np.isnan(numbers))
        numbers[unread] = _written(words.iloc[unread], decimal)
        numbers = np.append(numbers, np.nan)[codes]
    numbers[np.isinf(numbers)] = np.nan
    return numbers


def _written(words: pd.Series, decimal: str) -> np.ndarray:
    """Return numbers with divided thousands; NaN for what is none."""
    point, divider = (",", "[.]") if decimal == "comma" else ("[.]", ",")
    divided = rf"[-+]?[0-9]{{1,3}}(?:(?:{divider}|[ \u00a0\u202f'’])[0-9]{{3}})+(?:{point}[0-9]*)?"
    plain = rf"[-+]?(?:[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]{{1,4}})?"
    fits = words.str.fullmatch(f"(?:{divided})|(?:{plain})").to_numpy(dtype=bool)
    bare = words[fits].str.replace(rf"{divider}|[ \u00a0\u202f'’]", "", regex=True)
    found = np.full(len(words), np.nan)
    found[fits] = pd.to_numeric(bare.str.replace(",", "."), errors="coerce").to_numpy(dtype=np.float64)
    return found


def dates_of(values: pd.Series) -> pd.Series | None:
    """Return values as times without a zone, NaT where one is none; None where they are no dates at all."""
    if pd.api.types.is_datetime64_any_dtype(values):
        return values.dt.tz_localize(None) if values.dt.tz is not None else values
    if is_number(values) or pd.api.types.is_bool_dtype(values):
        return None
    codes, different = pd.factorize(values)
    words = pd.Series([*map(str, different), None], dtype="str")
    sample = words.dropna().head(_SAMPLE)
    for form in _DATE_FORMATS:
        found = pd.to_datetime(sample, format=form, errors="coerce", utc=True)
        if len(sample) and found.notna().mean() > 1 - _STRAY:
            dates = pd.to_datetime(words, format=form, errors="coerce", utc=True).dt.tz_localize(None)
            return pd.Series(dates.to_numpy()[codes], index=values.index, name=values.name)
    return None


def parts_of(values: pd.Series) -> dict[str, pd.Series]:
    """Return the parts of dates that tell rows apart: year, month, weekday, hour; none of what is no date."""
    found = dates_of(values)
    if found is None:
        return {}
    name, there = str(values.name), found.notna()
    parts = {
        f"{name}.year": found.dt.year.astype("float64"),
        f"{name}.month": _of(found.dt.month - 1, _MONTHS),
        f"{name}.weekday": _of(found.dt.day_of_week, _WEEKDAYS),
        f"{name}.hour": found.dt.hour.astype("float64"),
    }
    return {key: part.rename(key) for key, part in parts.items() if part[there].nunique() > 1}


def _of(places: pd.Series, words: tuple[str, ...]) -> pd.Series:
    codes = places.fillna(-1).to_numpy(dtype=np.int64)
    return pd.Series(np.array([*words, None], dtype=object)[codes], index=places.index)
