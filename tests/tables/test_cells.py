"""Numbers, words and dates as people write them."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from small_tables import dense

from fmviz import TableEncoder
from fmviz.tables.cells import (
    Notation,
    cleaned,
    date_format,
    date_parts,
    dates_of,
    decimal_signs,
    in_one_case,
    levels_of,
    notation_of,
    numbers_of,
)


def notation(*words: str, usual: str = "point"):
    """Return the notation of words that come four times each, or None."""
    return notation_of(pd.Series(words * 4), usual)


def parsed(*words: str, usual: str = "point") -> list[float]:
    return numbers_of(pd.Series(words), notation(*words, usual=usual)).tolist()


# ----------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("words", "decimal", "numbers"),
    [
        (["1,234", "12", "-1,234,567.5"], "point", [1234, 12, -1234567.5]),
        (["1.234,5", "0,5", "7"], "comma", [1234.5, 0.5, 7]),
        (["1 234", "1'000", "1e3"], "point", [1234, 1000, 1000]),
        (["1,23", "x", "1e400", "inf", ""], "point", [np.nan] * 5),
        (["62,74,817", "63.13-"], "point", [6274817, -63.13]),
        (["0x10", "1_000", "٣", "--1"], "point", [np.nan, np.nan, np.nan, np.nan]),
    ],
)
def test_numbers_are_read_as_people_write_them(words, decimal, numbers):
    read = numbers_of(pd.Series(words), Notation(decimal))
    if "٣" in words:  # Whatever pandas makes of other digits is a number or none.
        read[2] = np.nan
    assert np.array_equal(read, numbers, equal_nan=True)


@pytest.mark.parametrize(
    ("words", "numbers", "unit"),
    [
        (("$1,244.76", "$12", "-$3.50"), [1244.76, 12, -3.5], "$"),
        (("1.244,76 €", "12 €", "3,5 €"), [1244.76, 12, 3.5], "€"),
        (("USD 5", "USD 1,000"), [5, 1000], "USD"),
        (("12.5%", "7 %", "-1%"), [12.5, 7, -1], "%"),
        (("36 months", "1 month", " 60 months"), [36, 1, 60], "months"),
        (("10+ years", "< 1 year", "2 years"), [10, 0.5, 2], "years"),
        (("19M", "300k", "1.5B"), [19e6, 300e3, 1.5e9], ""),
        (("(1,200)", "300", "(4.5)"), [-1200, 300, -4.5], ""),
        (("−0.13", "0.64", "-1"), [-0.13, 0.64, -1], ""),
        (("1 234,5", "12,25", "7"), [1234.5, 12.25, 7], ""),
        (("1’234’567.5", "12"), [1234567.5, 12], ""),
        (("1\u00a0234\u202f567", "12.0"), [1234567, 12], ""),
        (("5.1 kg", "12 kg"), [5.1, 12], "kg"),
        (("21 °C", "-3.5 °C"), [21, -3.5], "°C"),
        (("1e-5", "2.5E+3", ".5"), [1e-5, 2500, 0.5], ""),
    ],
)
def test_units_signs_and_multiples_are_read(words, numbers, unit):
    np.testing.assert_allclose(parsed(*words), numbers)
    assert notation(*words).unit == unit


@pytest.mark.parametrize(
    "words",
    [
        ("5 kg", "3 lb", "2 kg"),
        ("00501", "02139", "90210"),
        ("K1A0B", "00501", "10115"),
        ("red", "green", "7"),
        ("1-2", "3-4", "5+"),
        ("192.168.0.1", "10.0.0.1"),
        ("(5", "6)"),
    ],
)
def test_codes_words_and_mixed_units_are_no_numbers(words):
    assert notation(*words) is None


def test_a_stand_in_that_repeats_is_a_missing_value():
    words = pd.Series(["Varies with device", "19M", "3.5M", "Varies with device", "200k"] * 6)
    read = notation_of(words)
    assert read.missing == "Varies with device"
    assert read.sentence("19M") == (
        "Read as numbers with K, M and B for thousands, millions and billions ('19M'). "
        "'Varies with device' is a missing value."
    )
    numbers = numbers_of(words, read)
    assert np.isnan(numbers).sum() == 12
    assert numbers[1] == 19e6


def test_a_stray_word_among_many_numbers_is_missing_and_two_kinds_of_them_are_words():
    numbers = [str(number) for number in range(100)]
    words = pd.Series([*numbers, "broken", "n/k"])
    read = notation_of(words)
    assert read.missing == ""
    assert np.isnan(numbers_of(words, read)).sum() == 2
    assert notation_of(pd.Series([*numbers[:20], "broken", "n/k", "lost"])) is None


@pytest.mark.parametrize(
    ("words", "signs"),
    [
        (["20,6", "1,5"], {"comma"}),
        (["0,465"], {"comma"}),
        (["20.65", "1.5"], {"point"}),
        (["1,037", "2,000"], set()),
        (["1.037"], set()),
        (["1,234.5"], {"point"}),
        (["1.234,5"], {"comma"}),
        (["1,234,567"], {"point"}),
        (["1.234.567"], {"comma"}),
        (["12", "red"], set()),
        (["1,5", "1.5"], {"comma", "point"}),
    ],
)
def test_decimal_signs_are_proven_by_cells(words, signs):
    assert decimal_signs(words) == signs


def test_what_no_cell_proves_is_asked():
    for usual, value in (("point", 1037), ("comma", 1.037)):
        read = notation("1,037", "2,500", "800", usual=usual)
        assert parsed("1,037", "2,500", "800", usual=usual)[0] == value
        if usual == "point":
            assert read.question("rides") == (
                "Column 'rides' contains '1,037', read with a decimal point: 1037.",
                "decimal=comma",
            )
    assert notation("1.037", "2.500", usual="comma").question("x")[1] == "decimal=point"
    for clear in (("1,037.5", "2,500"), ("$1,037", "$2,500"), ("1037", "2500")):
        assert not notation(*clear).ambiguous
    # Thousands beside 538: certain of money, a question otherwise.
    money = notation("4.949 €", "538 €")
    assert (money.decimal, money.ambiguous) == ("comma", "")
    # Either sign could divide thousands.
    assert notation("4.949 €", "4,949 €").decimal == "point"
    assert notation("4.949", "538").ambiguous == "4.949"
    assert notation("3", "1½", "2") is None


# ------------------------------------------------------------------------------------------------- words


def test_blanks_at_the_ends_of_words_go_and_capitals_are_one_word():
    words = cleaned(pd.Series([" Yes", "Yes ", "a  b", "  ", None]))
    assert words.tolist()[:3] == ["Yes", "Yes", "a b"]
    assert words.isna().tolist() == [False] * 3 + [True] * 2
    assert in_one_case(["yes", "Yes", "Yes", "YES", "No"]) == {"yes": "Yes", "YES": "Yes"}
    # Genotypes and a gene of two species.
    assert in_one_case(["AA", "Aa", "aa", "PAX6", "Pax6"] * 9) == {}
    # Two vowels, and a word misspelt once.
    assert in_one_case(["hId", "hid"] * 9 + ["hYd"] * 10 + ["hyd"]) == {"hyd": "hYd"}


def test_levels_are_sorted_by_size_or_by_letters():
    assert levels_of(pd.Series([100, 20, 20, 3])) == ["3", "20", "100"]
    assert levels_of(pd.Series(["100", "20", "3"])) == ["3", "20", "100"]
    assert levels_of(pd.Series(["b", "100", "a"])) == ["100", "a", "b"]


# ------------------------------------------------------------------------------------------------- dates

# How a moment is written, and down to what the form says it.
FORMS = {
    "%Y-%m-%d": "day",
    "%Y/%m/%d": "day",
    "%Y-%m": "month",
    "%Y-%m-%dT%H:%M:%S": "second",
    "%Y-%m-%dT%H:%M:%SZ": "second",
    "%Y-%m-%dT%H:%M:%S+05:00": "second",
    "%Y-%m-%dT%H:%M:%S-0330": "second",
    "%Y-%m-%d %H:%M:%S.%f": "second",
    "%Y-%m-%dT%H:%M:%S.%fZ": "second",
    "%d-%m-%Y": "day",
    "%d/%m/%y": "day",
    "%d.%m.%y": "day",
    "%d.%m.%Y": "day",
    "%m/%d/%Y %I:%M %p": "minute",
    "%m/%d/%Y": "day",
    "%d/%m/%Y %H:%M:%S": "second",
    "%m/%d/%Y %H:%M:%S": "second",
    "%B %d, %Y": "day",
    "%d-%b-%y": "day",
    "%b-%y": "month",
    "%a, %d %b %Y %H:%M:%S +0000": "second",
    "%Y%m%d": "day",
    "%Y/%m/%d %I:%M:%S %p GMT+1": "second",
    "%d %B %Y": "day",
    "%d %b %Y %H:%M": "minute",
}
MOMENTS = [
    datetime(2019, 1, 3, 0, 30, 7) + timedelta(days=11 * i, hours=5 * i, minutes=17 * i) for i in range(90)
]
START = datetime(2000, 1, 1)


def known(moment: datetime, precision: str) -> datetime:
    """Return what a form of this precision says of a moment."""
    least = {
        "month": {"day": 1, "hour": 0, "minute": 0, "second": 0},
        "day": {"hour": 0, "minute": 0, "second": 0},
    }
    return moment.replace(**least.get(precision, {"second": 0} if precision == "minute" else {}))


@pytest.mark.parametrize(("form", "precision"), FORMS.items(), ids=lambda word: word.replace("/", "|"))
def test_all_forms_of_dates_are_read_and_encoded(form, precision):
    expected = pd.Series([known(moment, precision) for moment in MOMENTS])
    written = pd.Series([moment.strftime(form) for moment in MOMENTS], name="when")
    read = date_format(written)
    assert not read.ambiguous
    assert (dates_of(written, read.form) == expected).all()
    assert read.zones == form.endswith(("+05:00", "-0330", "+0000", "GMT+1"))
    table = pd.DataFrame({"when": written, "a": np.arange(90) % 7})
    encoder = TableEncoder(numbers="line", scaling="none", distinct=False).fit(table)
    assert encoder.columns_[0].part_of == "when"
    X = pd.DataFrame(dense(encoder.transform(table)), columns=encoder.get_feature_names_out())
    np.testing.assert_array_equal(X["when.year"], expected.dt.year)
    np.testing.assert_allclose(X["when.trend"], (expected - START) / timedelta(days=1))
    for number, month in enumerate(expected.dt.strftime("%m-%b")):
        assert X[f"when.month={month}"][number] == 1.0
    for number, day in enumerate(expected):
        assert X[f"when.weekday={day.isoweekday()}-{day:%a}"][number] == 1.0
    assert ("when.hour" in X) == (precision in ("minute", "second"))
    if "when.hour" in X:
        np.testing.assert_array_equal(X["when.hour"], expected.dt.hour)
    # Rows of the next file alone may be ambiguous, or of another offset.
    np.testing.assert_array_equal(dense(encoder.transform(table[7:8])), X[7:8])


@pytest.mark.parametrize("form", ["%H:%M", "%H:%M:%S", "%I:%M %p"])
def test_a_time_of_the_day_is_its_hour(form):
    written = pd.Series([moment.strftime(form) for moment in MOMENTS], name="when")
    encoder = TableEncoder(numbers="line", scaling="none").fit(written.to_frame())
    assert encoder.get_feature_names_out().tolist() == ["when.hour"]
    hours = [moment.hour + moment.minute / 60 + moment.second / 3600 * ("S" in form) for moment in MOMENTS]
    np.testing.assert_allclose(encoder.transform(written.to_frame())[:, 0], hours)


def test_day_or_month_is_told_by_the_cells_or_asked():
    both = pd.Series(["02/07/2020", "05/02/2020", "12/08/2020"])
    read = date_format(both)
    assert read.ambiguous
    assert read.question("when") == (
        "Column 'when' is read with the month first; neither day nor month is above 12.",
        "dates=day",
    )
    for order, month in (("day", 7), ("month", 2)):
        read = date_format(both, order)
        assert read.question("when") == ("", "")
        assert dates_of(both, read.form)[0].month == month
    # Rising dates say it, and a single day above 12 proves it.
    assert date_format(pd.Series(["01/02/2020", "05/02/2020", "03/03/2020"])).form == "%d/%m/%Y"
    assert not date_format(pd.Series([*both, "13/07/2020"])).ambiguous
    assert not date_format(pd.Series(["02.07.2020", "05.02.2020"])).ambiguous


def test_times_are_those_of_the_clock_as_written_in_files_and_frames():
    words = pd.Series(["2024-01-01T00:30:00-05:00", "2024-07-01T23:30:00-04:00"], name="t")
    read = date_format(words)
    assert read.sentence("t") == "Times of column 't' are local times as written, without their offset."
    frames = pd.to_datetime(words, utc=True).dt.tz_convert("America/New_York")
    assert date_parts(words, read.form)["t.hour"].tolist() == [0, 23]
    assert date_parts(frames, "datetime")["t.hour"].tolist() == [0, 23]
    # A model of a frame, and a file with the same column.
    assert date_parts(words, "datetime")["t.hour"].tolist() == [0, 23]


@pytest.mark.parametrize(
    "words", [["x", "y"], ["1.5", "2.5"], ["20201301", "20200305"], ["1999", "2020"], ["Mar", "Apr"], [None]]
)
def test_other_words_are_no_dates(words):
    assert date_format(pd.Series(words, dtype=object)) is None


def test_dates_of_two_digits_have_been_or_come_soon_and_iso_is_always_read():
    assert dates_of(pd.Series(["05-Mar-41", "05-Mar-20"]), "%d-%b-%y").dt.year.tolist() == [1941, 2020]
    other = dates_of(pd.Series(["12/15/2023", "2023-12-15", "15/12/2023"]), "%m/%d/%Y")
    assert other.dt.month.tolist()[:2] == [12, 12]
    assert other.isna().tolist() == [False, False, True]
