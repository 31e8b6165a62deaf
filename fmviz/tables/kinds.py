"""Infer what every column of a table holds: numbers, words, yes or no, dates, texts, or nothing of use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from fmviz.tables.cells import (
    NOTHING,
    DateFormat,
    Notation,
    cleaned,
    date_format,
    dates_of,
    in_one_case,
    is_number,
    notation_of,
    numbers_of,
    quoted,
    words_of,
)
from fmviz.tables.limits import MOST_LEVELS
from fmviz.tables.target import ascending

__all__ = ["KINDS", "Column", "described", "known_values", "likely_target"]

KINDS = ("number", "word", "yes_no", "date", "text", "ignored")
"""The ways to use a column."""

_SAMPLE = 500
_CLASSES = 50
_FEW = 10
_TEXT_WORDS = 3
_IDENTIFIER = re.compile(r"(^|[\W_])(id|uid|uuid|guid|key|index|nr|no|row|rownum|serial)$", re.I)
_CODE = re.compile(r"(^|[\W_])(id|code|zip|zip_?code|post_?code|postal_?code|plz)$|[a-z]I[dD]$")
_TIME = re.compile(r"year|month|week|day|date|time|hour|age", re.I)
_TARGET = re.compile(
    r"^(target|label|class|y|outcome|response|survived|churn|default|late|price|rating)$", re.I
)
_PERHAPS = ("None", "NA", "N/A", "n/a", "none", "na")
"""Missing values in columns of numbers, words where they repeat in columns of words."""
_OWN = "It looks like an identifier: every row has a {} of its own."


@dataclass(frozen=True)
class Column:
    """What a column holds, with a summary.

    Attributes
    ----------
    name : str
        Unique in the table.
    kind : str
        One of `KINDS`: the recommended use.
    missing : int
        The number of missing values, including infinite numbers and, among numbers, stray words.
    different : int
        The number of unique values.
    examples : str
        The first few values.
    note : str
        How it was read, or the reason why it is ignored; or empty.
    question : str
        What could be read in another way; or empty.
    option : str
        The option that does: of reading, as "dates=day", or "words".
    levels : tuple of str
        The most frequent values, to choose the positive class from; a scale in its order.
    positive : bool
        Whether most values are numbers, with more than two unique ones, all positive.
    notation : Notation
        How it writes numbers.
    dates : DateFormat or None
        How it writes dates.
    merged : mapping of str to str
        Spellings of words that are another one but for capitals.
    clean : bool
        Whether blanks around words do not count, and words such as "NaN" are missing values.
    """

    name: str
    kind: str
    missing: int
    different: int
    examples: str
    note: str = ""
    question: str = ""
    option: str = ""
    levels: tuple[str, ...] = ()
    positive: bool = False
    notation: Notation = field(default_factory=Notation)
    dates: DateFormat | None = None
    merged: Mapping[str, str] = field(default_factory=dict)
    clean: bool = True

    @property
    def asked(self) -> str:
        """The question, with the option of the command line that decides otherwise."""
        if not self.question:
            return ""
        if self.option == "words":
            return f"{self.question} `--words {self.name}` reads each as a word."
        return f"{self.question} `--read {self.option}` reads it in the other way."

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Column:
        """Return the column of a dictionary by `dataclasses.asdict`, in which tuples may be lists."""
        notation = {**data["notation"], "habits": tuple(data["notation"]["habits"])}
        dates = None if data["dates"] is None else DateFormat(**data["dates"])
        about = {"levels": tuple(data["levels"]), "notation": Notation(**notation), "dates": dates}
        return cls(**{**data, **about})


def described(
    table: pd.DataFrame, decimal: str = "point", dates: str = "auto", missing: str = ""
) -> tuple[Column, ...]:
    """Infer what the columns of a table hold.

    Parameters
    ----------
    table : DataFrame
        Of typed values, or of words as a file writes them.
    decimal : {"point", "comma"}
        The decimal sign of columns whose cells prove none.
    dates : {"auto", "day", "month"}
        What comes first in dates of two-digit days and months.
    missing : str
        Words that stand for missing values, separated by commas.
    """
    absent = tuple(word.strip() for word in missing.split(",") if word.strip())
    return tuple(_described(table[name], decimal, dates, absent) for name in table)


def known_values(values: pd.Series, absent: tuple[str, ...] = ()) -> pd.Series:
    """Return a column without the blanks at the ends of its words, missing values taken out."""
    values = cleaned(values)
    if not is_number(values) and not pd.api.types.is_datetime64_any_dtype(values):
        values = values[~values.isin((*NOTHING, *absent))]
    return values.dropna()


def _described(values: pd.Series, decimal: str, dates: str, absent: tuple[str, ...]) -> Column:
    name, n = str(values.name), len(values)
    known = known_values(values, absent)
    column = _kind(known, name, decimal, dates)
    different = known.drop_duplicates()
    counts = known.value_counts().head(_CLASSES) if len(different) <= 4 * _CLASSES else None
    levels = () if counts is None else tuple(map(str, words_of(pd.Series(counts.index))))
    levels = tuple(dict.fromkeys(column.merged.get(level, level) for level in levels))
    examples = " · ".join(_shown(word) for word in words_of(different.head(4)))
    return replace(
        column,
        missing=column.missing + n - len(known),
        different=len(different) - len(column.merged),
        examples=examples,
        levels=ascending(levels) or levels,
        positive=_positive(known, column.notation, n),
    )


def _positive(known: pd.Series, notation: Notation, n: int) -> bool:
    """Return whether most of n values are numbers, with more than two unique ones, all positive."""
    if not len(known) or np.isnan(numbers_of(_some(known), notation)).mean() > 0.75:
        return False
    numbers = numbers_of(known, notation)
    numbers = numbers[~np.isnan(numbers)]
    return numbers.size > 0.5 * n and bool(numbers.min() > 0.0) and np.unique(numbers).size > 2


def _some(values: pd.Series) -> pd.Series:
    """Return an evenly spaced sample of the values."""
    return values.iloc[np.unique(np.linspace(0, len(values) - 1, _SAMPLE).astype(int))]


def _shown(word: str) -> str:
    word = " ".join(word.split())
    return word if len(word) <= 30 else word[:29] + "…"


def _kind(known: pd.Series, name: str, decimal: str, dates: str) -> Column:
    """Return a column with its kind, and how it is read."""
    different = known.drop_duplicates()

    def column(kind: str, note: str = "", **about: Any) -> Column:
        return Column(
            **{
                "name": name,
                "kind": kind,
                "missing": 0,
                "different": 0,
                "examples": "",
                "note": note,
                **about,
            }
        )

    if not len(known):
        return column("ignored", "It has no values.")
    if len(different) == 1:
        return column("ignored", "It has the same value in all rows.")
    if pd.api.types.is_datetime64_any_dtype(known):
        return column("date", dates=DateFormat("datetime"))
    if pd.api.types.is_bool_dtype(known):
        return column("yes_no")
    if is_number(known):
        return _of_numbers(column, known.to_numpy(dtype=np.float64), name, Notation(decimal))
    if (form := date_format(known, dates)) is not None:
        parsed = dates_of(known, form.form)
        lost = int(parsed.isna().sum())
        note = f"{lost:,} cells are no dates and count as missing." if lost else ""
        return column(
            "date", note, missing=lost, dates=form, question=form.question(name), option=form.option
        )
    likely = known[~known.isin(_PERHAPS)]
    if len(likely) > 0.5 * len(known) and (read := notation_of(likely, decimal)) is not None:
        notation, _ = read
        if len(different) > 2 or notation.unit or likely.nunique() > 2 or set(different) <= {"0", "1"}:
            numbers = numbers_of(likely, notation)
            notes = [
                notation.sentence(
                    next(word for word, number in zip(likely, numbers, strict=True) if number == number)
                )
            ]
            stray = likely[np.isnan(numbers) & (likely != notation.missing)]
            if len(stray):
                word = _shown(str(stray.iloc[0]))
                notes.append(f"{len(stray):,} cells such as {word!r} are no numbers and count as missing.")
            lost = int(np.isnan(numbers).sum()) + len(known) - len(likely)
            return _of_numbers(
                column, numbers[~np.isnan(numbers)], name, notation, " ".join(filter(None, notes)), lost
            )
    return _of_words(column, known, different)


def _of_numbers(
    column: Callable[..., Column],
    numbers: np.ndarray,
    name: str,
    notation: Notation,
    note: str = "",
    lost: int = 0,
) -> Column:
    """Return a column of numbers, or of codes or numbers of the rows."""
    about: dict[str, Any] = {"notation": notation, "missing": lost}
    infinite = int(np.isinf(numbers).sum())
    if infinite:
        note = f"{infinite:,} infinite values count as missing. {note}".strip()
        about["missing"] = lost + infinite
        numbers = numbers[np.isfinite(numbers)]
    n, different = numbers.size, np.unique(numbers)
    if different.size < 2:
        return column("ignored", "It has the same value in all rows.", **about)
    if set(different.tolist()) == {0.0, 1.0}:
        return column("yes_no", note, **about)
    integral = bool((numbers == np.round(numbers)).all())
    own = n >= 20 and different.size == n and integral
    # Some rows of a numbered table have most of its numbers.
    counting = own and np.ptp(numbers) < 2 * n and not _TIME.search(name)
    if own and (counting or _IDENTIFIER.search(name) or _CODE.search(name)):
        return column("ignored", _OWN.format("number"), **about)
    if integral and not notation.unit:
        if _CODE.search(name) and different.size <= n / 2:
            note = f"Its whole numbers look like codes; as a category, each is a name. {note}".strip()
            return column("word", note, **about)
        if 2 < different.size <= _FEW and different.size <= n / 5:
            about["question"] = f"Column {name!r} has {different.size} whole numbers only."
            about["option"] = "words"
    if notation.ambiguous:
        about |= {"question": notation.question(name), "option": notation.option}
    return column("number", note, **about)


def _of_words(column: Callable[..., Column], known: pd.Series, different: pd.Series) -> Column:
    """Return a column of words, of yes and no, or of texts; or one of identifiers."""
    n, m = len(known), len(different)
    words = [str(word) for word in known]
    if (m > n / 2 or m > MOST_LEVELS) and n >= 20:
        if _some(known).astype(str).str.split().str.len().mean() >= _TEXT_WORDS:
            return column(
                "text", f"Texts; as such, each of their {MOST_LEVELS:,} most frequent words is a feature."
            )
        if m == n or (n >= 50 and m > 0.9 * n):
            return column("ignored", _OWN.format("word"))
    merged = in_one_case(words)
    m -= len(merged)
    notes = []
    if merged:
        pairs = [f"{word!r} as {level!r}" for word, level in merged.items()]
        notes.append(f"Words that differ in capitals alone are the same: {quoted(pairs)}.")
    if said := [word for word in _PERHAPS if word in set(words)]:
        notes.append(
            f"{quoted([repr(word) for word in said])} is a word here; `--read missing={said[0]}` reads it as missing."
        )
    note = " ".join(notes)
    return column("yes_no" if m == 2 else "word", note, merged=merged)


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
