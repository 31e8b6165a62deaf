"""Columns that become several: dates and times, two numbers in a cell, or several answers in a cell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

import pandas as pd

from fmviz.tables.cells import STRAY, cleaned, date_parts, in_one_case
from fmviz.tables.limits import MOST_LEVELS

_NUMBER = r"[-+]?(?:\d+(?:[.,]\d+)?|[.,]\d+)"
_PAIR = re.compile(
    rf"^[(\[]?[$€£]?(?P<first>{_NUMBER})(?: ?(?P<unit>[^\W\d_]{{1,4}})\.?)??"
    rf"(?P<sign> (?=[-+]\d)| ?(?:[^\w\s.+]|[_xX]) ?| [^\W\d_]{{2,4}} | )[$€£]?"
    rf"(?P<second>{_NUMBER})(?: ?(?P<after>[^\W\d_][^\W\d_²³/.]*|[%\"″€$£]))?[)\]]?$"
)
_MOST_CELLS = 5_000
_RANGE = ("-", "–", "—", "…", "to", "bis", "à", "a")


def sign_of_pairs(words: Collection[str]) -> str:
    """Return the sign between two numbers that most of some unique words have in common, or ""."""
    read = [match for word in words if (match := _PAIR.fullmatch(word))]
    forms = {(match["sign"].strip().lower() or " ", match["unit"], match["after"]) for match in read}
    # Two other words, such as "unknown", may stand for missing values. Codes begin with zeros.
    few = len(words) - len(read) <= max(2, STRAY * len(words)) and len(read) > 2
    codes = any(re.match(r"0\d", half) for match in read for half in match.group("first", "second"))
    return min(forms)[0] if few and len(forms) == 1 and not codes else ""


def are_ranges(words: Collection[str]) -> bool:
    """Return whether all pairs of numbers rise and have the sign of a range between them."""
    low, high = parts_of(pd.Series(list(words), name=""), "pair").values()
    return sign_of_pairs(words) in _RANGE and bool((low < high)[low.notna()].all())


def answers_in(values: pd.Series) -> tuple[str, list[str]]:
    """Return the separator of several answers a cell, and the answers by frequency; or "" and []."""
    counts = values.value_counts().head(_MOST_CELLS).rename(str)
    for separator in ";|,/":
        # The answers of every different cell, the number of its cells, and the number of its rows.
        each = [_WITHIN.sub("", word).split(separator) for word in counts.index]
        each = [[answer for part in parts if (answer := part.strip())] for parts in each]
        cells = Counter(answer.casefold() for answers in each for answer in set(answers))
        rows = Counter(answer for answers, n in zip(each, counts, strict=True) for answer in answers * n)
        repeated = sum(n for answer, n in rows.items() if cells[answer.casefold()] > 1)
        several = sum(len(answers) > 1 for answers in each)
        if several > 1 and len(cells) < len(each) and repeated > 0.9 * rows.total():
            merged = in_one_case(rows)
            return separator, [answer for answer, n in rows.most_common() if n > 1 and answer not in merged]
    return "", []


_SEPARATOR = re.compile(r" *[;|,/] *")
_WITHIN = re.compile(r"[\[\]'\"]")


def parts_of(values: pd.Series, form: str, answers: Sequence[str] = ()) -> dict[str, pd.Series]:
    """Return the columns that a column becomes, by name: the parts of a date, numbers, or answers.

    Parameters
    ----------
    values : Series
        The column.
    form : str
        "pair", "answers", or the format of a date.
    answers : sequence of str
        The answers known to a model; by default, the repeated ones in the column.
    """
    if form not in ("pair", "answers"):
        return date_parts(values, form)
    name, words = str(values.name), cleaned(values).astype("str")
    if form == "pair":
        halves = words.str.extract(_PAIR)[["first", "second"]]
        numbers = (halves[half].str.replace(",", ".").astype("float64") for half in halves)
        return {f"{name}.{place}": half for place, half in enumerate(numbers, 1)}
    # Separators may be others than in training.
    cells = ";" + words.str.replace(_SEPARATOR, ";", regex=True).str.replace(_WITHIN, "", regex=True) + ";"
    known = answers or answers_in(cleaned(values).dropna())[1][:MOST_LEVELS]
    parts = {each: _SEPARATOR.sub(";", each) for each in known}
    return {
        f"{name}.{each}": cells.str.contains(f";{part};", case=False, regex=False)
        .map({True: "yes"})
        .fillna("no")
        for each, part in parts.items()
    }
