"""Parse cells as people write them: numbers with units, words in any case, dates and times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import product

import numpy as np
import pandas as pd

from fmviz.engine.errors import LARGEST

__all__ = [
    "NOTHING",
    "STRAY",
    "DateFormat",
    "Notation",
    "cleaned",
    "date_format",
    "date_parts",
    "decimal_signs",
    "in_one_case",
    "is_number",
    "is_written_number",
    "levels_of",
    "notation_of",
    "numbers_of",
    "quoted",
    "typed_words",
    "words_of",
]

STRAY = 0.05
"""The largest share of other words in a column of numbers or dates."""

NOTHING = ("NaN", "nan", "-nan", "-NaN", "#N/A", "#NA", "<NA>", "NULL", "null", "#N/A N/A")
"""Words that are missing values in every column."""

_SAMPLE = 500

# ------------------------------------------------------------------------------------------------- words


def is_number(values: pd.Series) -> bool:
    """Return whether a column is numeric and not boolean."""
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def words_of(values: pd.Series) -> np.ndarray:
    """Return values as strings, None where one is missing; integers without a decimal point."""
    codes, different = pd.factorize(values)
    words = [f"{v:.15g}" if isinstance(v, float) else str(v) for v in different]
    return np.array([*words, None], dtype=object)[codes]


def typed_words(values: pd.Series) -> pd.Series:
    """Return values as strings, but finite numbers as they are, so that levels sort numerically."""
    if is_number(values):
        return values.where(np.isfinite(values.to_numpy(dtype=np.float64, na_value=np.nan)))
    return pd.Series(words_of(values), index=values.index, name=values.name, dtype=object)


def levels_of(values: pd.Series, *, by_number: bool = False) -> list[str]:
    """Return the unique values as strings, numbers by size, words by letters.

    With `by_number` words that are all numbers are sorted by size, too.
    """
    different = pd.Series(values.unique())
    if is_number(different):
        return list(dict.fromkeys(words_of(different.sort_values())))
    words = sorted(set(words_of(different)))
    numbers = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce")
    if by_number and len(words) and numbers.notna().all():
        return [words[place] for place in np.lexsort((words, numbers))]
    return words


def cleaned(values: pd.Series) -> pd.Series:
    """Return words without blanks at their ends, and with single blanks inside; other values unchanged."""
    if is_number(values) or not (
        pd.api.types.is_string_dtype(values) or pd.api.types.is_object_dtype(values)
    ):
        return values
    codes, different = pd.factorize(values)
    clean = [" ".join(word.split()) if isinstance(word, str) else word for word in different]
    words = np.array([*(word if word != "" else None for word in clean), None], dtype=object)
    return pd.Series(words[codes], index=values.index, name=values.name, dtype=object)


def in_one_case(words: Collection[str]) -> dict[str, str]:
    """Map words that differ from a more frequent one in their capitals alone to that one."""
    counts = Counter(words)
    best: dict[str, str] = {}
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        best.setdefault(word.casefold(), word)
    return {word: best[word.casefold()] for word in counts if best[word.casefold()] != word}


def quoted(words: Collection[str], most: int = 4) -> str:
    """Return the first few words as a list in a sentence."""
    shown = ", ".join(map(str, list(words)[:most]))
    return shown + (", …" if len(words) > most else "")


# ----------------------------------------------------------------------------------------------- numbers

_GROUP = "[ \u00a0\u202f'’]"
_SIGNS = str.maketrans({"−": "-", "–": "-", "\u00a0": " ", "\u202f": " "})
_CURRENCY = (
    r"(?:US|AU|CA|NZ|HK|R)?\$|[€£¥₹₽₩₺₴฿]|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|Rs)\.?"
)
_MULTIPLES = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "mn": 1e6, "bn": 1e9, "Mio": 1e6, "Mrd": 1e9}


def _pattern(decimal: str) -> re.Pattern[str]:
    point, divider = (",", r"\.") if decimal == "comma" else (r"\.", ",")
    digits = rf"\d{{1,3}}(?:{divider}\d{{3}})+(?!\d)|\d{{1,3}}(?:{_GROUP}\d{{3}})+(?!\d)|\d+"
    return re.compile(
        rf"(?P<open>\()? *(?P<bound>[<>]=?|[≤≥~≈])? *(?P<sign>[-+])? *"
        rf"(?:(?P<before>{_CURRENCY}) *(?P<second>[-+])?)? *(?P<digits>(?:{digits})(?:{point}\d*)?|{point}\d+)(?P<power>[eE][-+]?\d{{1,4}})?"
        rf"(?P<multiple>(?:[kKMB]|mn|bn| ?Mio| ?Mrd)\.?(?![^\W\d_]))?(?P<more>\+)?"
        rf" *(?P<after>%|‰|°[CF]?|{_CURRENCY}|[^\W\d_][^\d(){{}}<>=,;|]{{0,15}})?(?P<close> *\))?"
    )


_PATTERNS = {decimal: _pattern(decimal) for decimal in ("point", "comma")}


@dataclass(frozen=True)
class Notation:
    """How the cells of a column write numbers.

    Attributes
    ----------
    decimal : {"point", "comma"}
        The decimal sign; the other one divides thousands, as do blanks and apostrophes.
    unit : str
        What stands before or after the numbers, such as "$", "%" or "months".
    missing : str
        A word that stands for a missing value; empty if there is none.
    habits : tuple of str
        Other conventions in use: "parentheses", "multiples", "plus", "bound".
    ambiguous : str
        A cell that the other decimal sign would read as another number; empty if there is none.
    strict : bool
        Whether only digits, signs and thousands make a number, as at commit 2c2cf81.
    """

    decimal: str = "point"
    unit: str = ""
    missing: str = ""
    habits: tuple[str, ...] = ()
    ambiguous: str = ""
    strict: bool = False

    def sentence(self, example: str) -> str:
        """Return how the numbers are read, with a cell of them, where that is worth saying; else ""."""
        said = [f"in {self.unit}"] if self.unit else []
        said += ["with a decimal comma"] if self.decimal == "comma" else []
        said += [_HABITS[habit] for habit in self.habits]
        words = f"Read as numbers {', '.join(said)} ({example!r})." if said else ""
        return f"{words} {self.missing!r} is a missing value.".strip() if self.missing else words

    def question(self, name: str) -> str:
        """Return which decimal sign was taken, if the other one is possible; else ""."""
        if not self.ambiguous:
            return ""
        return f"Column {name!r} holds {self.ambiguous!r}, which is read with a decimal {self.decimal}."

    @property
    def option(self) -> str:
        """The option that reads it in the other way."""
        return f"decimal={'comma' if self.decimal == 'point' else 'point'}"


_HABITS = {
    "parentheses": "with parentheses for minus",
    "multiples": "with K, M and B for thousands, millions and billions",
    "plus": "without a trailing +",
    "bound": "with < 1 as half of 1",
}


def _number(word: str, decimal: str) -> tuple[float, str, tuple[str, ...]] | None:
    """Return the number that a cell writes, its unit, and the conventions in use; None if there is none."""
    match = _PATTERNS[decimal].fullmatch(word.translate(_SIGNS).strip())
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    digits = re.sub(r"[ '’.]" if decimal == "comma" else r"[ '’,]", "", match["digits"]).replace(",", ".")
    value = float(digits + (match["power"] or ""))
    habits = []
    if match["open"]:
        value = -value
        habits.append("parentheses")
    if match["sign"] == "-" or match["second"] == "-":
        value = -value
    if match["multiple"]:
        value *= _MULTIPLES[match["multiple"].strip(" .")]
        habits.append("multiples")
    if match["more"]:
        habits.append("plus")
    if match["bound"]:
        value *= 0.5 if match["bound"][0] in "<≤" else 1.0
        habits.append("bound")
    after = (match["after"] or "").strip().rstrip(".")
    return value, match["before"] or after, tuple(habits)


def is_written_number(word: str) -> bool:
    """Return whether a cell writes a number, with a decimal point or a decimal comma."""
    return any(_number(word, decimal) is not None for decimal in _PATTERNS)


def _singular(unit: str) -> str:
    return unit.casefold().removesuffix("s")


def numbers_of(values: pd.Series, notation: Notation | str = "point") -> np.ndarray:
    """Return values as float64; NaN where one is missing, not a number, infinite or beyond `LARGEST`."""
    if isinstance(notation, str):
        notation = Notation(notation)
    if is_number(values) or pd.api.types.is_bool_dtype(values):
        numbers = values.astype("float64").to_numpy(na_value=np.nan).copy()
    elif pd.api.types.is_datetime64_any_dtype(values):
        return np.full(len(values), np.nan)
    else:
        codes, different = pd.factorize(values)
        numbers = np.append(_parsed([str(word) for word in different], notation), np.nan)[codes]
    numbers[np.abs(numbers) > LARGEST] = np.nan
    return numbers


def _parsed(words: Sequence[str], notation: Notation) -> np.ndarray:
    """Parse unique words."""
    numbers = np.full(len(words), np.nan)
    if notation.decimal == "point":
        numbers = pd.to_numeric(pd.Series(words, dtype="str"), errors="coerce").to_numpy(
            np.float64, copy=True
        )
    for place in np.flatnonzero(np.isnan(numbers)).tolist():
        number = _number(words[place], notation.decimal)
        if number is None or (notation.strict and number[2]):
            continue
        if _singular(number[1]) in ("", _singular(notation.unit)):
            numbers[place] = number[0]
    return numbers


_DECIMAL = {
    sign: re.compile(
        rf"[^\d]*(?:\d+{point}(?:\d{{1,2}}|\d{{4,}})|0{point}\d+|\d{{1,3}}(?:{other}\d{{3}})+{point}\d+"
        rf"|\d{{1,3}}(?:{other}\d{{3}}){{2,}})(?![\d.,])[^\d.,]*"
    )
    for sign, point, other in (("comma", ",", r"\."), ("point", r"\.", ","))
}
"""What proves a decimal sign: too few or too many digits for thousands, or the other one as their divider."""
_EITHER = re.compile(r"[^\d.,]*[1-9]\d{0,2}[.,]\d{3}[^\d.,]*")


def _some(words: Sequence[str]) -> list[str]:
    places: set[int] = {round(place) for place in np.linspace(0, len(words) - 1, _SAMPLE).tolist()}
    return [words[int(place)] for place in sorted(places)]


def decimal_signs(words: Sequence[str]) -> set[str]:
    """Return the decimal signs that words prove: "20,6" and "0,465" a comma, "1,037" neither."""
    sample = _some(words) if words else []
    return {sign for sign, proof in _DECIMAL.items() if any(proof.fullmatch(word) for word in sample)}


def notation_of(values: pd.Series, usual: str = "point") -> tuple[Notation, pd.Series] | None:
    """Return how the words of a column write numbers, None if they write none.

    Parameters
    ----------
    values : Series
        Words; `cleaned`, without missing values.
    usual : {"point", "comma"}
        The decimal sign where the cells of the column prove none.

    Returns
    -------
    tuple of Notation and Series, or None
        With it, which of the values are stray words that count as missing.
    """
    counts = values.value_counts()
    words = [str(word) for word in counts.index]
    proofs = decimal_signs(words)
    decimal = next(iter(proofs)) if len(proofs) == 1 else usual
    sample = _some(words)
    if sum(_number(word, decimal) is not None for word in sample) < 0.5 * len(sample) - 1:
        return None
    read = {word: number for word in words if (number := _number(word, decimal)) is not None}
    units = Counter(number[1] for number in read.values() if number[1])
    # Codes, such as 00501 and 00501x, are no numbers.
    coded = any(re.match(r"[^\d+-]*0\d+(?![\d.,])", word) for word in read)
    if not read or coded or len({_singular(unit) for unit in units}) > 1:
        return None
    stray = counts[[word for word in words if word not in read]]
    missing = ""
    # One word again and again is a stand-in.
    if len(stray) and 1 < stray.iloc[0] <= 0.5 * len(values) and len(read) > 2:
        missing, stray = str(stray.index[0]), stray.iloc[1:]
    if stray.sum() > STRAY * len(values):
        return None
    habits = {habit for number in read.values() for habit in number[2]}
    unit = max(units, key=len) if units else ""
    either = ""
    # Nobody writes money with three decimals, and "1.037" is one point only where commas are usual.
    if not proofs and not re.fullmatch(_CURRENCY, unit):
        sign = "," if decimal == "point" else "."
        either = next((word for word in read if sign in word and _EITHER.fullmatch(word)), "")
    shown = tuple(habit for habit in _HABITS if habit in habits)
    return Notation(decimal, unit, missing, shown, either), values.isin(stray.index)


# ------------------------------------------------------------------------------------------------- dates

_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y-%m", "%Y/%m"),
    *(form.replace("-", sign) for sign in ".-/" for form in ("%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y")),
    *("%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%d. %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
    *("%a, %d %b %Y", "%a %d %b %Y", "%A, %B %d, %Y", "%b-%y", "%b-%Y", "%b %Y", "%B %Y"),
)
_CLOCK = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
_FORMS = (*(date + time for date, time in product(_DATES, _TIMES)), *_CLOCK)
_COMPACT = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
_ZONE = re.compile(
    r"(?<=\d)(?P<half> ?[AaPp]\.?[Mm]\.?)? *(?:Z|UTC|GMT|[A-Z]{3,4})?(?: ?[-+]\d{1,2}(?::?\d{2})?)?$"
)


@dataclass(frozen=True)
class DateFormat:
    """How the cells of a column write dates or times.

    Attributes
    ----------
    form : str
        A format of `strptime`; "datetime" for a column of dates; "ISO" for dates of ISO 8601 of any length;
        of 2c2cf81 also "ISO8601", in UTC.
    ambiguous : bool
        Whether all cells are dates in the other order of day and month, too.
    zones : bool
        Whether offsets from UTC were left out: dates are in the time of the clock that was written down.
    trend : bool
        Whether the days since a fixed date are a part.
    """

    form: str
    ambiguous: bool = False
    zones: bool = False
    trend: bool = True

    def sentence(self, name: str) -> str:
        """Return how times of a column were read, where that is worth saying; else ""."""
        if not self.zones:
            return ""
        return f"Times of column {name!r} are those of the clock as written, without their offset."

    def question(self, name: str) -> str:
        """Return which order of day and month a column was read in, if both are possible; else ""."""
        if not self.ambiguous:
            return ""
        order = "day" if self.form.startswith("%d") else "month"
        return f"Column {name!r} is read with the {order} first; no number in it is above 12."

    @property
    def option(self) -> str:
        """The option that reads it in the other order."""
        return f"dates={'month' if self.form.startswith('%d') else 'day'}"


def _clock(word: str) -> str:
    """Return a date without its offset from UTC, and with a blank before the time."""
    word = (
        " ".join(word.replace("T", " ", 1).split())
        if re.match(r"\d{4}-\d\d-\d\dT", word)
        else " ".join(word.split())
    )
    if ":" in word:
        word = _ZONE.sub(lambda match: (match["half"] or "").upper().replace(".", ""), word)
    return re.sub(r"(?<=\d)([AP]M)$", r" \1", word)


def date_format(values: pd.Series, order: str = "auto") -> DateFormat | None:
    """Return how a column writes dates, None if it holds none.

    Parameters
    ----------
    values : Series
        The column.
    order : {"auto", "day", "month"}
        What comes first where both are numbers of two digits.
    """
    if pd.api.types.is_datetime64_any_dtype(values):
        return DateFormat("datetime")
    if is_number(values) or pd.api.types.is_bool_dtype(values):
        return None
    words = [str(value) for value in values.dropna().unique()]
    if words and all(map(_COMPACT.fullmatch, words)):
        return DateFormat("%Y%m%d")
    sample = _some(words) if words else []
    # Trying all formats on thousands of columns of words takes long.
    if sum(re.search(r"\d[-/.: ,]|\d.*[A-Za-z]{3}|[A-Za-z]{3}.*\d", word) is not None for word in sample) <= (
        1 - STRAY
    ) * len(sample):
        return None
    clock = [_clock(word) for word in sample]
    able = [form for form in _FORMS if _fits(clock, form)]
    shares = {form: _share([_clock(word) for word in words], form) for form in able}
    best = max(shares.values(), default=0.0)
    if best < 1 and _share([_clock(word) for word in words], "ISO8601") > max(best, 1 - STRAY):
        return DateFormat("ISO", zones=_have_zones(sample))
    if best <= 1 - STRAY:
        return None
    # A single day above 12 proves the order of day and month.
    able = [form for form in able if shares[form] == best]
    both = {form[1]: form for form in able if re.match(r"%[dm][-/.]%[dm]", form)}
    zones = _have_zones(sample)
    if len(both) < 2:
        return DateFormat(able[0], zones=zones)
    dotted = "." in able[0]
    chosen = {"day": "d", "month": "m"}.get(order, "d" if dotted else _in_sequence(words, both))
    return DateFormat(both[chosen], not dotted and order == "auto", zones)


def _have_zones(words: Sequence[str]) -> bool:
    """Return whether some times have an offset."""
    return any(
        ":" in word and _clock(word) != " ".join(word.split()) and re.search(r"[-+]\d\d:?\d\d$|GMT[-+]", word)
        for word in words
    )


def _fits(words: Sequence[str], form: str) -> bool:
    """Return whether most of a few words are dates of a format."""
    able = 0
    few = words[:: max(1, len(words) // 10)]
    for word in few:
        with suppress(ValueError):
            datetime.strptime(word, form)
            able += 1
    return 2 * able > len(few)


def _share(words: Sequence[str], form: str) -> float:
    dates = pd.to_datetime(pd.Series(words, dtype="str"), format=form, errors="coerce")
    return float(dates.notna().mean())


def _in_sequence(words: Sequence[str], forms: dict[str, str]) -> str:
    """Return the order in which dates ascend from row to row, else that of months first."""
    rising = {
        key: pd.to_datetime(
            pd.Series(words, dtype="str"), format=form, errors="coerce"
        ).is_monotonic_increasing
        for key, form in forms.items()
    }
    return "d" if rising["d"] and not rising["m"] else "m"


def dates_of(values: pd.Series, form: str) -> pd.Series:
    """Parse dates as the clock shows them, of the format of a `DateFormat`; NaT where one does not parse.

    "ISO8601" and the formats of commit 2c2cf81 without a clock are in UTC.
    """
    if pd.api.types.is_datetime64_any_dtype(values):
        return values.dt.tz_localize(None) if values.dt.tz is not None else values
    codes, different = pd.factorize(values)
    if form == "datetime":
        read = date_format(values)
        form = "ISO8601" if read is None else read.form
    words = pd.Series([*map(str if form == "ISO8601" else _clock, map(str, different)), None], dtype="str")
    dates = pd.to_datetime(words, format="ISO8601" if form == "ISO" else form, errors="coerce", utc=True)
    dates = dates.dt.tz_localize(None)
    return pd.Series(dates.to_numpy()[codes], index=values.index, name=values.name)


def date_parts(values: pd.Series, form: str) -> dict[str, pd.Series]:
    """Return the parts of dates as columns ``<name>.year``, month, weekday, hour and trend, in days.

    Of a time of the day the hour alone, with its fraction.
    """
    dates, name = dates_of(values, form), str(values.name)
    hour = dates.dt.hour.astype("float64")
    if form in _CLOCK:
        return {f"{name}.hour": hour + dates.dt.minute / 60 + dates.dt.second / 3600}
    weekdays = (dates.dt.day_of_week + 1).map("{:.0f}-".format, na_action="ignore").astype("str")
    return {
        f"{name}.year": dates.dt.year.astype("float64"),
        # Numbered, since levels are sorted alphabetically.
        f"{name}.month": dates.dt.strftime("%m-") + dates.dt.month_name().str[:3],
        f"{name}.weekday": weekdays + dates.dt.day_name().str[:3],
        f"{name}.hour": hour,
        f"{name}.trend": (dates - pd.Timestamp("2000-01-01")) / pd.Timedelta(days=1),
    }
