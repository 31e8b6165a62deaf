"""Convert the values of a column to words, numbers or dates, in the notations that people use."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from fmviz.engine.errors import LARGEST

__all__ = [
    "STRAY",
    "date_format",
    "date_parts",
    "dates_of",
    "is_number",
    "levels_of",
    "numbers_of",
    "some",
    "typed_words",
    "words_of",
]

STRAY = 0.05
"""The largest share of other words in a column of numbers or dates."""

_SAMPLE = 500
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


def levels_of(values: pd.Series) -> list[str]:
    """Return the unique values as strings, sorted numerically or alphabetically."""
    different = pd.Series(values.unique())
    if is_number(different):
        return list(dict.fromkeys(words_of(different.sort_values())))
    return sorted(set(words_of(different)))


def some(words: Collection[str], most: int = 4) -> str:
    """Return the first few words as a list in a sentence."""
    shown = ", ".join(map(str, list(words)[:most]))
    return shown + (", …" if len(words) > most else "")


# ----------------------------------------------------------------------------------------------- numbers


def numbers_of(values: pd.Series, decimal: str = "point") -> np.ndarray:
    """Return values as float64; NaN where one is missing, not a number, infinite or beyond `LARGEST`.

    Thousands may be separated by blanks, by apostrophes, and by the sign that is not the decimal sign.
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
        numbers[unread] = _divided(words.iloc[unread], decimal)
        numbers = np.append(numbers, np.nan)[codes]
    numbers[np.abs(numbers) > LARGEST] = np.nan
    return numbers


def _divided(words: pd.Series, decimal: str) -> np.ndarray:
    """Parse numbers with thousands separators; NaN for anything else."""
    point, divider = (",", "[.]") if decimal == "comma" else ("[.]", ",")
    divided = rf"[-+]?[0-9]{{1,3}}(?:(?:{divider}|[ \u00a0\u202f'’])[0-9]{{3}})+(?:{point}[0-9]*)?"
    plain = rf"[-+]?(?:[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]{{1,4}})?"
    fits = words.str.fullmatch(f"(?:{divided})|(?:{plain})").to_numpy(dtype=bool)
    bare = words[fits].str.replace(rf"{divider}|[ \u00a0\u202f'’]", "", regex=True)
    numbers = np.full(len(words), np.nan)
    numbers[fits] = pd.to_numeric(bare.str.replace(",", "."), errors="coerce").to_numpy(dtype=np.float64)
    return numbers


# ------------------------------------------------------------------------------------------------- dates


def date_format(values: pd.Series) -> str:
    """Return the format of dates, "datetime" if they are not text, "" if they are not dates."""
    if pd.api.types.is_datetime64_any_dtype(values):
        return "datetime"
    if is_number(values) or pd.api.types.is_bool_dtype(values):
        return ""
    sample = pd.Series([str(value) for value in values.dropna().unique()[:_SAMPLE]], dtype="str")
    # Trying all formats on thousands of columns of words takes long.
    dated = len(sample) > 0 and sample.str.contains("[0-9]").mean() > 1 - STRAY
    for form in _DATE_FORMATS if dated else ():
        if pd.to_datetime(sample, format=form, errors="coerce", utc=True).notna().mean() > 1 - STRAY:
            return form
    return ""


def dates_of(values: pd.Series, form: str) -> pd.Series:
    """Parse dates of a format by `date_format`, without time zone; NaT where one does not parse."""
    if pd.api.types.is_datetime64_any_dtype(values):
        return values.dt.tz_localize(None) if values.dt.tz is not None else values
    if form == "datetime":
        form = date_format(values) or "ISO8601"
    codes, different = pd.factorize(values)
    words = pd.Series([*map(str, different), None], dtype="str")
    dates = pd.to_datetime(words, format=form, errors="coerce", utc=True).dt.tz_localize(None)
    return pd.Series(dates.to_numpy()[codes], index=values.index, name=values.name)


def date_parts(values: pd.Series, form: str) -> dict[str, pd.Series]:
    """Return year, month, weekday and hour of dates as columns ``<name>.year`` and so on."""
    dates, name = dates_of(values, form), str(values.name)
    weekdays = (dates.dt.day_of_week + 1).map("{:.0f}-".format, na_action="ignore").astype("str")
    return {
        f"{name}.year": dates.dt.year.astype("float64"),
        # Numbered, since levels are sorted alphabetically.
        f"{name}.month": dates.dt.strftime("%m-") + dates.dt.month_name().str[:3],
        f"{name}.weekday": weekdays + dates.dt.day_name().str[:3],
        f"{name}.hour": dates.dt.hour.astype("float64"),
    }
