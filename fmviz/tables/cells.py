"""Parse cells in common notations: numbers with units, words in any case, dates, and several values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.errors import LARGEST
from fmviz.tables.limits import MOST_LEVELS

STRAY = 0.05
"""The maximum share of other words in a column of numbers or dates."""

NOTHING = ("NaN", "nan", "-nan", "-NaN", "#N/A", "#NA", "<NA>", "NULL", "null", "#N/A N/A")
"""Words that are missing values in every column."""
PERHAPS = ("None", "NA", "N/A", "n/a", "none", "na")
"""Missing values in numeric columns; words in columns of words if they repeat."""

_ERROR = re.compile(
    r"#[¡¿]?[^\W\d_][^\W_]*(/\w+)?[!?]|#(N/\w+|NV|NA|DIV/0|GETTING_DATA)|#{3,}|Err:\d{3}|Error!", re.I
)


def is_error(word: Any) -> bool:
    """Return whether a cell is an error of a spreadsheet in any language, such as #REF! or #¿NOMBRE?."""
    return isinstance(word, str) and word[:1] in "#Ee" and bool(_ERROR.fullmatch(word))


# ------------------------------------------------------------------------------------------------- words


def is_number(values: pd.Series) -> bool:
    """Return whether a column is numeric and not boolean."""
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def words_of(values: pd.Series) -> np.ndarray:
    """Return values as strings, None if missing; integers without a decimal point."""
    return _each(values, lambda value: f"{value:.15g}" if isinstance(value, float) else str(value))


def _each(values: pd.Series, function: Callable[[Any], Any]) -> np.ndarray:
    """Apply a function to every value; None if missing."""
    codes, different = pd.factorize(values)
    return np.array([*map(function, different), None], dtype=object)[codes]


def levels_of(values: pd.Series) -> list[str]:
    """Return the unique values as strings, sorted numerically if all are numbers, else alphabetically."""
    words = sorted(set(words_of(values)))
    numbers = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce")
    return [words[place] for place in np.lexsort((words, numbers))] if numbers.notna().all() else words


def cleaned(values: pd.Series) -> pd.Series:
    """Strip words and collapse inner whitespace; other values are unchanged."""
    if not (pd.api.types.is_string_dtype(values) or pd.api.types.is_object_dtype(values)):
        return values
    words = _each(values, lambda word: (" ".join(word.split()) or None) if isinstance(word, str) else word)
    return pd.Series(words, index=values.index, name=values.name, dtype=object)


def without(values: pd.Series, words: Sequence[str]) -> pd.Series:
    """Return values, missing where they are among some words, or numbers written so."""
    numbers = pd.to_numeric(pd.Series(words, dtype="str"), errors="coerce").dropna()
    return values.mask(values.isin([*words, *numbers])) if len(words) else values


def in_one_case(words: Collection[str]) -> dict[str, str]:
    """Map words to the most frequent spelling that differs only in case.

    Frequent spellings that can be codes, such as hid and hId, Aa and aa, or Pax6 and PAX6, are different
    words.
    """
    counts = Counter(words)
    # The last one, the most frequent, remains.
    best = {word.casefold(): word for word in sorted(counts, key=lambda w: (-counts[w], w), reverse=True)}
    pairs = {word: best[word.casefold()] for word in counts if best[word.casefold()] != word}
    return {
        word: usual
        for word, usual in pairs.items()
        if (_one_case(word) and _one_case(usual)) or counts[word] <= _TYPOS * counts[usual]
    }


def _one_case(word: str) -> bool:
    """Return whether a word of letters is entirely in capitals, or has them at most at the beginning."""
    usual = word in (word.lower(), word.upper(), word.capitalize(), word.title())
    letters = len(word) > 2 and not any(map(str.isdecimal, word))
    return usual and (letters or _SHORT_WORDS.fullmatch(word.casefold()) is not None)


def some(words: Sequence[str], most: int = 500) -> list[str]:
    """Return a limited number of evenly spaced words."""
    return [words[place] for place in np.linspace(0, len(words) - 1, min(len(words), most)).astype(int)]


def shortened(words: str, most: int) -> str:
    """Return words truncated to a maximum number of characters."""
    return words if len(words) <= most else words[: most - 1] + "…"


def quoted(words: Collection[str], most: int = 4) -> str:
    """Return the first few words as a list in a sentence."""
    return ", ".join(map(str, list(words)[:most])) + (", …" if len(words) > most else "")


# ----------------------------------------------------------------------------------------------- numbers

# Words that are too short to tell from codes.
_SHORT_WORDS = re.compile(r"[fjmntwxy]|da|ja|na|ne|no|ok|on|s[ií]")
# Another spelling of at most this share of the rows of a word is a mistake.
_TYPOS = 0.1
_GROUP = r"[\s'’]"
_SIGNS = str.maketrans({"−": "-", "–": "-"})
_CURRENCY = (
    r"(?:US|AU|CA|NZ|HK|R)?\$|[€£¥₹₽₩₺₴฿]|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|Rs)\.?"
)
_MONTHS = "Jan|Feb|Mar|Mär|Apr|May|Mai|Jun|Jul|Aug|Sep|Oct|Okt|Nov|Dec|Dez"
_MULTIPLES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "mn": 1e6, "bn": 1e9, "Mio": 1e6, "Mrd": 1e9}


def _pattern(decimal: str, multiples: str) -> re.Pattern[str]:
    point, divider = (",", r"\.") if decimal == "comma" else (r"\.", ",")
    # Indian grouping: 62,74,817.
    grouped = rf"\d{{1,3}}(?:{divider}\d{{2,3}})*{divider}\d{{3}}(?!\d)"
    digits = rf"{grouped}|(?P<blanks>\d{{1,3}}(?:{_GROUP}\d{{3}})+)(?!\d)|\d+"
    return re.compile(
        rf"(?P<parentheses>\()? *(?P<bound>[<>]=?|[≤≥~≈])? *(?P<sign>[-+])? *"
        rf"(?:(?P<before>{_CURRENCY}) *(?P<second>[-+])?)? *"
        rf"(?P<digits>(?:{digits})(?:{point}\d*)?|{point}\d+)"
        rf"(?P<power>[eE][-+]?\d{{1,4}})?"
        rf"(?P<multiples>(?:{multiples})\.?(?![^\W\d_]))?(?P<plus>\+)?(?P<back>-)?"
        rf" *(?P<after>%|‰|°[CF]?|{_CURRENCY}"
        rf"|(?![⁰¹²³⁴-⁹¼½¾⅐-⅞]|(?:{_MONTHS})\b)"
        r"[^\W\d_][^\d(){}<>=,;|*†‡§¶#^\[\]⁰¹⁴-⁹]{0,15})?"
        r"(?P<mark> *(?:[*†‡§¶#^⁰¹²³⁴-⁹]+|\[\w{1,3}\]|\([a-z*]\)))?(?P<close> *\))?"
    )


_PATTERNS = {
    (decimal, letters): _pattern(decimal, f"{letters}mn|bn| ?Mio| ?Mrd")
    for decimal, letters in product(("point", "comma"), ("", "[kKMB]|"))
}
# A number with a letter of its own, such as 5B or 19M, which may be a class or a multiple.
_LETTERED = re.compile(r".*\d[A-Zabcefijknopqruvwxyz]")
_MOST_CODES = 12


def is_long(word: str) -> bool:
    """Return whether a whole number beyond 2⁵³ loses digits as a floating-point number."""
    digits = word.lstrip("+-0")
    return digits.isdecimal() and len(digits.rstrip("0")) > 15 and int(digits) > 2**53


@dataclass(frozen=True)
class Notation:
    """Number format of a column.

    Attributes
    ----------
    decimal : {"point", "comma"}
        The decimal sign; the other one separates thousands, as do blanks and apostrophes.
    unit : str
        A prefix or suffix of the numbers, such as "$", "%" or "months".
    missing : str
        A word that stands for a missing value; empty if there is none.
    habits : str
        Other conventions, the keys of `_HABITS`, separated by blanks.
    ambiguous : str
        A cell that is a different number with the other decimal sign; empty if there is none.
    """

    decimal: str = "point"
    unit: str = ""
    missing: str = ""
    habits: str = ""
    ambiguous: str = ""

    def sentence(self, example: str) -> str:
        """Return a sentence on the number format with an example cell, or "" if it is ordinary."""
        said = [f"in {self.unit}"] if self.unit else []
        said += ["with a decimal comma"] if self.decimal == "comma" else []
        said += [_HABITS[habit] for habit in self.habits.split()]
        words = f"Read as numbers {', '.join(said)} ({example!r})." if said else ""
        return f"{words} {self.missing!r} is a missing value.".strip() if self.missing else words

    def question(self, name: str) -> tuple[str, str]:
        """Return the assumed decimal sign, and the reading option for the other one."""
        value = _parsed([self.ambiguous], self)[0]
        question = (
            f"Column {name!r} contains {self.ambiguous!r}, read with a decimal {self.decimal}: {value:.15g}."
        )
        return question, f"decimal={'comma' if self.decimal == 'point' else 'point'}"


_HABITS = {
    "parentheses": "with parentheses for minus",
    "multiples": "with K, M and B for thousands, millions and billions",
    "blanks": "with blanks or apostrophes between thousands",
    "plus": "without a trailing +",
    "bound": "with half of the number after <",
    "beyond": "without > or ~ before them",
    "mark": "without marks such as * behind them",
    # Conventions that are no groups of `_pattern`:
    "duration": "from durations",
    "minutes": "with minutes and seconds around a single colon",
}


def _number(word: str, decimal: str, letters: str = "[kKMB]|") -> tuple[float, str, Collection[str]] | None:
    """Return the number in a cell, its unit, and its conventions; None if it is not a number.

    With empty `letters`, K, M and B are units instead of multiples.
    """
    match = _PATTERNS[decimal, letters].fullmatch(" ".join(word.translate(_SIGNS).split()))
    if match is None or bool(match["parentheses"]) != bool(match["close"]):
        return _duration(word) if re.search(r"\d\D+\d", word) else None
    digits = re.sub(r"[\s'’.]" if decimal == "comma" else r"[\s'’,]", "", match["digits"]).replace(",", ".")
    multiple = _MULTIPLES[(match["multiples"] or "").strip(" .")]
    half = 0.5 if (match["bound"] or ">")[0] in "<≤" else 1.0
    beyond = {"bound": "beyond"} if half == 1.0 else {}
    minus = bool(match["parentheses"]) != ("-" in (match["sign"], match["second"], match["back"]))
    value = float(digits + (match["power"] or "")) * multiple * half
    unit = match["before"] or (match["after"] or "").strip().rstrip(".")
    habits = _HABITS.keys() & {beyond.get(group, group) for group, part in match.groupdict().items() if part}
    return None if is_long(digits) else (-value if minus else value, unit, habits)


def is_written_number(word: str) -> bool:
    """Return whether a cell is a number, with a decimal point or a decimal comma."""
    return any(_number(word, decimal) is not None for decimal in ("point", "comma"))


def _singular(unit: str) -> str:
    return unit.casefold().removesuffix("s")


def numbers_of(values: pd.Series, notation: Notation) -> np.ndarray:
    """Return values as float64; NaN if missing, not a number, infinite or beyond `LARGEST`."""
    if is_number(values) or pd.api.types.is_bool_dtype(values):
        numbers = values.astype("float64").to_numpy(na_value=np.nan).copy()
    else:
        codes, different = pd.factorize(values)
        numbers = np.append(_parsed([str(word) for word in different], notation), np.nan)[codes]
    numbers[np.abs(numbers) > LARGEST] = np.nan
    return numbers


def _parsed(words: Sequence[str], notation: Notation) -> np.ndarray:
    """Parse unique words."""
    plain = pd.Series(
        ["" if notation.decimal == "comma" or (len(word) > 15 and is_long(word)) else word for word in words],
        dtype="str",
    )
    numbers = pd.to_numeric(plain, errors="coerce").to_numpy(np.float64, copy=True)
    for place in np.flatnonzero(np.isnan(numbers)).tolist():
        read = _number(words[place], notation.decimal, "[kKMB]|" if "multiples" in notation.habits else "")
        value, unit, _ = _duration(words[place], notation.habits) or read or (np.nan, "", ())
        if _singular(unit) in ("", _singular(notation.unit)):
            numbers[place] = value
    return numbers


_DURATION = re.compile(
    r"(?P<minus>-)?(?:(?P<d>\d+) ?(?:days?|d|tage?n?|t|jours?|j|d[ií]as?|giorn[io]|dage?n?)\b\.?,? ?"
    r"(?P<ahead>\+)?)?"
    r"(?:(?P<h>\d+)(?::(?=\d\d)"
    r"| ?(?:hours?|hrs?|h|stunden?|stdn?|st|heures?|horas?|or[ea]|uur)(?![^\W\d_])\.?,? ?))?"
    r"(?:(?P<m>\d+)(?::(?=\d\d)| ?(?:minut\w*|mins?|m)(?![^\W\d_])\.?,? ?|$))?"
    r"(?:(?P<s>\d+(?:[.,]\d+)?) ?(?:sec\w*|sek\w*|seg\w*|s)?\.?)?",
    re.IGNORECASE,
)


def _duration(word: str, habits: str = "duration") -> tuple[float, str, Collection[str]] | None:
    """Return a duration like `_number`, None if it is none or the habits of a column exclude them."""
    match = _DURATION.fullmatch(" ".join(word.translate(_SIGNS).split()))
    if match is None or "duration" not in habits or not re.search(r"\d ?[^\W\d_]|\d:", word):
        return None
    d, h, m, s = (float((part or "0").replace(",", ".")) for part in match.group("d", "h", "m", "s"))
    # 59:17 beside 1:05:30, and 59:17.5.
    short = word.count(":") == 1 and not d and ("minutes" in habits or not match["m"])
    h, m, s = (0.0, h, m + s) if short else (h, m, s)
    # "-1 days +22:00:00", as pandas writes it, is two hours less than nothing.
    hours = 24 * d + (h + m / 60 + s / 3600) * (-1.0 if match["ahead"] else 1.0)
    return -hours if match["minus"] else hours, "hours", ("duration",)


_DECIMAL = {
    sign: re.compile(
        rf"[^\d]*(?:\d+{point}(?:\d{{1,2}}|\d{{4,}})|0{point}\d+|\d{{1,3}}(?:{other}\d{{3}})+{point}\d+"
        rf"|\d{{1,3}}(?:{other}\d{{3}}){{2,}})(?![\d.,])[^\d.,]*"
    )
    for sign, point, other in (("comma", ",", r"\."), ("point", r"\.", ","))
}
"""Evidence for a decimal sign: too few or too many digits for thousands, or the other sign as separator."""
_EITHER = re.compile(r"[^\d.,]*[1-9]\d{0,2}[.,]\d{3}[^\d.,]*")


def decimal_signs(words: Sequence[str]) -> set[str]:
    """Return the decimal signs proved by words: "20,6" and "0,465" prove a comma, "1,037" neither."""
    sample = [re.sub(rf"(?<=\d){_GROUP}(?=\d{{3}})", "", word) for word in some(words)]
    return {sign for sign, proof in _DECIMAL.items() if any(proof.fullmatch(word) for word in sample)}


def notation_of(values: pd.Series, usual: str = "point") -> Notation | None:
    """Return the number format of the words of a column, None if they are not numbers.

    Parameters
    ----------
    values : Series
        Words; `cleaned`, without missing values.
    usual : {"point", "comma"}
        The decimal sign if the cells of the column prove none.
    """
    counts = values.value_counts().rename(str)
    words = counts.index.tolist()
    proofs = decimal_signs(words)
    # Without a sign, there is none to state.
    unsigned = not any("," in word or "." in word for word in words)
    decimal = next(iter(proofs)) if len(proofs) == 1 else "point" if unsigned else usual
    # Plain numbers need no pattern, which is slow.
    plain = pd.to_numeric(pd.Series(words if decimal == "point" else [], dtype="str"), errors="coerce")
    plain = {word: (value, "", ()) for word, value in zip(words, plain, strict=False) if np.isfinite(value)}
    sample = some(words)
    if sum(word in plain or _number(word, decimal) is not None for word in sample) < 0.5 * len(sample) - 1:
        return None
    letters = "[kKMB]|" if _has_multiples(words) else ""
    read = {word: own for word in words if (own := plain.get(word) or _number(word, decimal, letters))}
    habits = {habit for *_, own in read.values() for habit in own}
    if "duration" in habits:
        read = {word: span for word in words if (span := _duration(word))}
        # Beside 1:05:30, 59:17 has minutes and seconds.
        habits |= {"minutes"} if {1, 2} <= {word.count(":") for word in read} else set()
    units = list(dict.fromkeys(unit for _, unit, _ in read.values() if unit))
    if (
        not read
        or any(len(word) > 15 and is_long(word) for word in words)
        or are_codes(read)
        or len(set(map(_singular, units))) > 1
    ):
        return None
    stray = counts.drop(list(read))
    # A single repeated word stands for missing values.
    again = len(stray) and 1 < stray.iloc[0] <= 0.5 * len(values) and len(read) > 2
    missing = stray.index[0] if again else ""
    if stray.drop(missing, errors="ignore").sum() > STRAY * len(values):
        return None
    unit = max(units, key=len, default="")
    own, sign = (".", ",") if decimal == "point" else (",", ".")
    if not proofs and re.fullmatch(_CURRENCY, unit):
        if any(own in word for word in read) and not any(sign in word for word in read):
            # Money never has three decimals.
            return notation_of(values, "comma" if decimal == "point" else "point")
        sign = ""
    # Beside 538, the thousands of 4.789 have no zeros in common with decimals.
    signs = {*sign, own} if any(map(str.isdecimal, read)) else {*sign}
    unsure = (word for word in read if not proofs and signs.intersection(word) and _EITHER.fullmatch(word))
    either = next(unsure, "")
    return Notation(decimal, unit, missing, " ".join(filter(habits.__contains__, _HABITS)), either)


def _has_multiples(words: Collection[str]) -> bool:
    """Return whether K, M and B are multiples: with a currency, a decimal or two magnitudes, and no other."""
    such = [word for word in words if word[-1:].isalpha() and _LETTERED.fullmatch(word)]
    letters = {word[-1].replace("k", "K") for word in such}
    return letters <= {*"KMB"} and (len(letters) != 1 or any(re.search(f"[.,]|{_CURRENCY}", w) for w in such))


def are_codes(words: Collection[str]) -> bool:
    """Return whether words that could be numbers are codes, such as 00501, 5B, or 1E5 alone."""
    such = [w for w in words if w[-1:].isalpha() and _LETTERED.fullmatch(w) and not re.search("[.,]", w)]
    few = bool(such) and (len(such) < len(words) or len(words) <= _MOST_CODES)
    zeros = any(re.match(r"[^\d+-]*0\d+(?![\d.,:])", word) for word in words)
    return zeros or all(re.fullmatch(r"\d+[eE]\d+", w) for w in words) or (few and not _has_multiples(words))


# ------------------------------------------------------------------------------------------------- dates

_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%Y-%m", "%Y/%m"),
    *(form.replace("-", sign) for sign in ".-/" for form in ("%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y")),
    *("%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%d. %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
    *("%a, %d %b %Y", "%a %d %b %Y", "%A, %B %d, %Y", "%b-%y", "%b-%Y", "%b %Y", "%B %Y"),
)
_CLOCK = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
_FORMS = (*(date + time for date, time in product(_DATES, _TIMES)), *_CLOCK)
# Decimals of three, or of more than four, digits are no dates.
_DATED = re.compile(
    r"(?s)^(?![-+]?\d*[.,](\d{3}|\d{5,})$)"
    r".*?(\d[-/.: ,]|\d.*[A-Za-z]{3}|[A-Za-z]{3}.*\d|^(19|20)\d\d[01]\d[0-3]\d$)"
)
# With a single digit behind a colon, cells are two numbers; beyond 24 hours, durations.
_UNTIMELY = re.compile(r"\d+:\d|(2[4-9]|[3-9]\d|\d{3,}):\d\d.*")
_OFFSET = re.compile(r":.*([-+]\d\d:?\d\d$|GMT[-+])")
_ZONE = re.compile(
    r"(?<=\d)(?P<half> ?[AaPp]\.?[Mm]\.?)? *(?:Z|UTC|GMT|[A-Z]{3,4})?(?: ?[-+]\d{1,2}(?::?\d{2})?)?$"
)


@dataclass(frozen=True)
class DateFormat:
    """Date or time format of a column.

    Attributes
    ----------
    form : str
        A format of `strptime`; "datetime" for a column of dates; "ISO" for dates of ISO 8601 of any length;
        `UNIX` for seconds, or thousandths of them and less, since 1970.
    ambiguous : bool
        Whether all cells are also valid dates with day and month exchanged.
    zones : bool
        Whether offsets from UTC were dropped: dates are in local time as written.
    """

    form: str
    ambiguous: bool = False
    zones: bool = False

    def sentence(self, name: str) -> str:
        """Return a sentence on how times of a column were read, or "" if they were unambiguous."""
        return f"Times of column {name!r} are local times as written, without their offset." * self.zones

    def question(self, name: str) -> tuple[str, str]:
        """Return the assumed order of day and month, and the reading option for the other one.

        Empty if only one order is possible.
        """
        order, other = ("day", "month") if self.form.startswith("%d") else ("month", "day")
        question = f"Column {name!r} is read with the {order} first; neither day nor month is above 12."
        return (question, f"dates={other}") if self.ambiguous else ("", "")


UNIX = "since 1970"


def unix_times(values: pd.Series) -> pd.Series:
    """Return numbers as seconds since 1970, from seconds, milli-, micro- or nanoseconds of 1973 to 2103."""
    numbers = pd.to_numeric(values, errors="coerce").astype("float64")
    seconds = numbers / 1000.0 ** np.floor((np.log10(numbers.where(numbers >= 1e8)) - 8) / 3)
    return seconds.where(seconds < 4.2e9)


# The number of years from now up to which two-digit years are in the future.
_SOON = 10
_ISO = re.compile(r"\d{4}-\d\d-\d\d")


def _clock(word: str) -> str:
    """Return a date without its offset from UTC, with a blank before the time."""
    word = " ".join(re.sub(r"^(\d{4}-\d\d-\d\d)T", r"\1 ", word.strip()).split())
    if ":" in word:
        word = _ZONE.sub(lambda match: (match["half"] or "").upper().replace(".", ""), word)
    return re.sub(r"(?<=\d)([AP]M)$", r" \1", word)


def _parsed_dates(words: Sequence[str | None], form: str) -> pd.Series:
    """Parse words as dates without a time zone; NaT if a word is not a date."""
    form = "ISO8601" if form == "ISO" else form
    dates = pd.to_datetime(pd.Series(words, dtype="str"), format=form, errors="coerce", utc=True)
    return dates.dt.tz_localize(None)


def date_format(values: pd.Series, order: str = "auto") -> DateFormat | None:
    """Return the date format of a column, None if it has no dates.

    Parameters
    ----------
    values : Series
        The column.
    order : {"auto", "day", "month"}
        The first of day and month if both are two-digit numbers.
    """
    if pd.api.types.is_datetime64_any_dtype(values):
        return DateFormat("datetime")
    if unix_times(values).notna().mean() > 1 - STRAY:
        return DateFormat(UNIX)
    words = [] if is_number(values) else [str(value) for value in values.dropna().unique()]
    sample = some(words)
    # Trying all formats on thousands of text columns is slow.
    dated = sum(map(bool, map(_DATED.search, sample))) > (1 - STRAY) * len(sample)
    if not dated or any(map(_UNTIMELY.fullmatch, words)):
        return None
    few = list(map(_clock, words[:: max(1, len(words) // 10)]))
    likely = [form for form in _FORMS if 2 * sum(_is_date(word, form) for word in few) > len(few)]
    if not likely and _parsed_dates(few, "ISO").isna().all():
        return None
    clock = list(map(_clock, words))
    shares = {form: _parsed_dates(clock, form).notna().mean() for form in (*likely, "ISO")}
    best = max(shares.values())
    if best <= 1 - STRAY:
        return None
    # A single day above 12 proves the order of day and month.
    able = [form for form, share in shares.items() if share == best]
    both = {form[1]: form for form in able if re.match(r"%[dm][-/.]%[dm]", form)}
    zones = any(_clock(word) != word and _OFFSET.search(word) is not None for word in sample)
    if len(both) < 2:
        return DateFormat(able[0], zones=zones)
    dotted = "." in able[0]
    rising = [key for key, form in both.items() if _parsed_dates(clock, form).is_monotonic_increasing]
    chosen = ("d" if dotted or rising == ["d"] else "m") if order == "auto" else order[0]
    return DateFormat(both[chosen], not dotted and order == "auto", zones)


def _is_date(word: str, form: str) -> bool:
    with suppress(ValueError):
        return bool(datetime.strptime(word, form))
    return False


def dates_of(values: pd.Series, form: str) -> pd.Series:
    """Parse dates in the format of a `DateFormat`, as local times; NaT if parsing fails."""
    if pd.api.types.is_datetime64_any_dtype(values):
        return values.dt.tz_localize(None)
    if form == "datetime":
        form = getattr(date_format(values), "form", "ISO")
    if form == UNIX:
        return pd.to_datetime(unix_times(values), unit="s")
    codes, different = pd.factorize(values)
    words = [*map(_clock, map(str, different)), None]
    dates = _parsed_dates(words, form)
    if "%y" in form:
        # Two-digit years are in the past or the near future.
        late = dates > pd.Timestamp.now() + pd.DateOffset(years=_SOON)
        dates = dates.where(~late, dates - pd.DateOffset(years=100))
    # ISO dates are never ambiguous.
    lost = [
        word if pd.isna(date) and _ISO.match(word or "") else None
        for word, date in zip(words, dates, strict=True)
    ]
    dates = dates.fillna(_parsed_dates(lost, "ISO"))
    return pd.Series(dates.to_numpy()[codes], values.index, name=values.name)


def date_parts(values: pd.Series, form: str) -> dict[str, pd.Series]:
    """Return the parts of dates as columns ``<name>.year``, month, weekday, hour and trend, in days.

    A time of day has only the hour, with its fraction.
    """
    dates, name = dates_of(values, form), str(values.name)
    hour = dates.dt.hour.astype("float64")
    if form in _CLOCK:
        return {f"{name}.hour": hour + dates.dt.minute / 60 + dates.dt.second / 3600}
    return {
        f"{name}.year": dates.dt.year.astype("float64"),
        # Numbered, since levels are sorted alphabetically.
        f"{name}.month": dates.dt.strftime("%m-") + dates.dt.month_name().str[:3],
        f"{name}.weekday": dates.dt.strftime("%u-") + dates.dt.day_name().str[:3],
        f"{name}.hour": hour,
        f"{name}.trend": (dates - pd.Timestamp("2000-01-01")) / pd.Timedelta(days=1),
    }


# ---------------------------------------------------------------------------------------- several values

_PART = r"[-+]?(?:\d+(?:[.,]\d+)?|[.,]\d+)"
_PAIR = re.compile(
    rf"^[(\[]?[$€£]?(?P<first>{_PART})(?: ?(?P<unit>[^\W\d_]{{1,4}})\.?)??"
    rf"(?P<sign> (?=[-+]\d)| ?(?:[^\w\s.+]|[_xX]) ?| [^\W\d_]{{2,4}} | )[$€£]?"
    rf"(?P<second>{_PART})(?: ?(?P<after>[^\W\d_][^\W\d_²³/.]*|[%\"″€$£]))?[)\]]?$"
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
        dated = separator == "/" and all(answer[:1].isdecimal() for answer in cells)
        if several > 1 and len(cells) < len(each) and repeated > 0.9 * rows.total() and not dated:
            merged = in_one_case(rows)
            return separator, [answer for answer, n in rows.most_common() if n > 1 and answer not in merged]
    return "", []


_SEPARATOR = re.compile(r" *[;|,/] *")
_WITHIN = re.compile(r"[\[\]'\"]")


def _joined(words: pd.Series) -> pd.Series:
    """Return cells with each of their answers between semicolons, which replace other separators."""
    return ";" + words.str.replace(_SEPARATOR, ";", regex=True).str.replace(_WITHIN, "", regex=True) + ";"


def unknown_answers(values: pd.Series, answers: Sequence[str]) -> Counter[str]:
    """Return what the cells of a column contain beside some answers, with the numbers of rows."""
    known = "|".join(re.escape(_SEPARATOR.sub(";", answer)) for answer in answers)
    others = _joined(cleaned(values).dropna().astype("str")).str.replace(
        f"(?i);({known})(?=;)", "", regex=True
    )
    return Counter(others.str.strip(";").loc[lambda cells: cells != ""])


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
        halves = words.str.extract(_PAIR)[["first", "second"]].replace(",", ".", regex=True)
        return {f"{name}.{n}": halves[half].astype("float64") for n, half in enumerate(halves, 1)}
    cells = _joined(words)
    known = answers or answers_in(cleaned(values).dropna())[1][:MOST_LEVELS]
    parts = {each: _SEPARATOR.sub(";", each) for each in known}
    return {
        f"{name}.{each}": cells.str.contains(f";{part};", case=False, regex=False)
        .map({True: "yes"})
        .fillna("no")
        for each, part in parts.items()
    }
