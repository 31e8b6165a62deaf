"""Columns that become several: dates and times, two numbers in a cell, or several answers in a cell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fmviz.tables.cells import NOTHING, STRAY, cleaned, date_parts, in_one_case, is_error
from fmviz.tables.limits import MOST_LEVELS

_NUMBER = r"[-+]?(?:\d+(?:[.,]\d+)?|[.,]\d+)"
_PAIR = re.compile(
    rf"[(\[]?[$€£]?(?P<first>{_NUMBER})(?: ?(?P<unit>[^\W\d_]{{1,4}})\.?)??"
    rf"(?P<sign> (?=[-+]\d)| ?(?:[^\w\s.+]|[xX]) ?| [^\W\d_]{{2,4}} | )[$€£]?"
    rf"(?P<second>{_NUMBER})(?: ?(?P<after>[^\W\d_][^\W\d_²³/.]*|[%\"″]))?[)\]]?"
)
_RANGE = ("-", "–", "—", "…", "to", "bis", "à", "a", "til")
_SEPARATORS = (";", "|", ",", "/", "+", "&")
_REPEATED = 0.9
_WITHIN = " []'\""


def sign_of_pairs(words: Collection[str]) -> str:
    """Return the sign between two numbers that most of some unique words have in common, or ""."""
    read = [match for word in words if (match := _PAIR.fullmatch(word))]
    forms = {(match["sign"].strip().lower() or " ", match["unit"], match["after"]) for match in read}
    # A single other word, such as "unknown", may stand for missing values.
    few = len(words) - len(read) <= max(1, STRAY * len(words))
    coded = any(re.match(r"0\d", match[half]) for match in read for half in ("first", "second"))
    return min(forms)[0] if few and len(forms) == 1 and len(read) > 1 and not coded else ""


def are_ranges(words: Collection[str]) -> bool:
    """Return whether all pairs of numbers rise and have the sign of a range between them."""
    pairs = pd.DataFrame(_pair(word) for word in words).dropna()
    return sign_of_pairs(words) in _RANGE and bool((pairs[0] < pairs[1]).all())


def _pair(word: Any) -> tuple[float, float]:
    match = _PAIR.fullmatch(str(word))
    halves = (match["first"], match["second"]) if match else ("nan", "nan")
    return float(halves[0].replace(",", ".")), float(halves[1].replace(",", "."))


def _answers(value: Any, separator: str) -> list[str]:
    """Return the answers in a cell; none in a missing one."""
    parts = [] if pd.isna(value) else str(value).split(separator or None)
    return [answer for part in parts if (answer := part.strip(_WITHIN))]


def answers_in(values: pd.Series) -> tuple[str, list[str]]:
    """Return the separator of several answers a cell, and the answers by frequency; or "" and []."""
    counts = values.value_counts()
    for separator in _SEPARATORS:
        # The answers of every different cell, the number of cells of each, and the number of its rows.
        each = {word: _answers(word, separator) for word in map(str, counts.index)}
        cells = Counter(answer.casefold() for answers in each.values() for answer in set(answers))
        rows = Counter(answer for word, n in counts.items() for answer in each[str(word)] * n)
        repeated = sum(n for answer, n in rows.items() if cells[answer.casefold()] > 1)
        several = sum(len(answers) > 1 for answers in each.values())
        if several > 1 and len(cells) < len(each) and repeated >= _REPEATED * rows.total():
            merged = in_one_case(rows)
            return separator, [answer for answer, n in rows.most_common() if n > 1 and answer not in merged]
    return "", []


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
    name = str(values.name)
    if form not in ("pair", "answers"):
        return date_parts(values, form)
    values = cleaned(values)
    if form == "pair":
        pairs = np.array([_pair(value) for value in values]).reshape(-1, 2)
        return {f"{name}.{half + 1}": pd.Series(pairs[:, half], values.index) for half in (0, 1)}
    values = values.mask(values.isin(NOTHING) | values.map(is_error))
    separator, usual = answers_in(values.dropna()) if not answers else ("", [])
    if answers:
        separator = min(_SEPARATORS, key=lambda sign: unknown_answers(values, answers, sign).total())
    chosen = [{answer.casefold() for answer in _answers(value, separator)} for value in values]
    return {
        f"{name}.{answer}": pd.Series(
            np.where([answer.casefold() in own for own in chosen], "yes", "no"), values.index, dtype=object
        )
        for answer in answers or usual[:MOST_LEVELS]
    }


def unknown_answers(values: pd.Series, answers: Sequence[str], separator: str) -> Counter[str]:
    """Return the answers of a column that are not among given ones, with their counts."""
    known = {answer.casefold() for answer in answers}
    each = (answer for value in values for answer in _answers(value, separator))
    return Counter(answer for answer in each if answer.casefold() not in known)
