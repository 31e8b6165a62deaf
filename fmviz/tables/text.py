"""Find the table in delimited text: its delimiter, names, units and sums, with cells as they were written."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from fmviz.tables.cells import decimal_signs, is_written_number
from fmviz.tables.limits import Limits
from fmviz.tables.source import DELIMITERS, Reading, Source, named

__all__ = ["read_text"]

_SNIFFED_LINES = 200
_SNIFFED_CHARACTERS = 1_000_000
# Blanks are no candidate: they occur within fields. Of commas and bars the one with more fields.
_SNIFFED = ("\t", ";", ",", "|")
# Rows at the end that begin so are no observations.
_SUM = re.compile(r"(grand |sub)?-?(total|sum|summe|gesamt|average|mean|mittelwert|count)s?\b.*", re.I)
_UNIT = re.compile(r"(?!(NA|NaN|nan|None|null|NULL)$)[A-Za-zµΩ°%‰/·²³^$€£]{1,12}")
_NUMERIC = 0.9
_NO_VALUES = "{name} is empty. Upload a table whose first line names its columns."


def read_text(text: str, asked: Reading, name: str, notes: list[str], within: Limits) -> Source:
    """Parse delimited text into a table of words; cells of no characters and "?" are missing.

    Lines of comments and titles above the names of the columns, a line of units below them, and sums at the
    end are left out, with a note.

    Parameters
    ----------
    text : str
        The decoded text.
    asked : Reading
        The options; those that are "auto" are detected.
    name : str
        The name of the file in messages.
    notes : list of str
        A sentence for every correction is appended.
    within : Limits
        The limits.

    Raises
    ------
    ValueError
        If the text is empty, is not a table, has one column, or is too large.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    words = {sign: word for word, sign in DELIMITERS.items()}
    if (marker := re.match(r'\n*"?sep=(.)"?\n', text)) is not None:  # Written by Excel.
        text = text[marker.end() :]
        if marker[1] in words and asked.delimiter == "auto":
            asked = replace(asked, delimiter=words[marker[1]])
    if asked.skip:
        text = "\n".join(text.split("\n")[asked.skip :])
    text = re.sub(r"\A(?:[ \t]*\n)+", "", text)
    if not text.strip():
        raise ValueError(_NO_VALUES.format(name=name))
    delimiter = _delimiter(text) if asked.delimiter == "auto" else DELIMITERS[asked.delimiter]
    if delimiter == " ":
        text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    if asked.cells == "text":
        text = _without_comments(text, delimiter, notes)
    rows, ends = _records(text, delimiter, name)
    width = Counter(len(row) for row in rows[:_SNIFFED_LINES]).most_common(1)[0][0]
    first = _first(rows, width, notes) if asked.cells == "text" and not asked.skip else 0
    header = asked.header == "yes" or (asked.header == "auto" and _has_header(rows[first:], notes))
    begin = first + header
    fields = rows[first] if header else [f"column {place}" for place in range(1, len(rows[first]) + 1)]
    columns = named([field.strip() for field in fields], notes)
    if len(columns) < 2:
        raise ValueError(
            f"{name} has one column, {columns[0]!r}; a target and at least one feature are needed, divided "
            "by commas, semicolons, tabs or bars."
        )
    units = {}
    if header and asked.cells == "text" and _is_units(rows[begin:]):
        units = {
            column: unit.strip(" []()") for column, unit in zip(columns, rows[begin], strict=False) if unit
        }
        notes.append(
            f"The line of units below the names was left out: {', '.join(filter(None, rows[begin]))}."
        )
        begin += 1
    body = "\n".join(text.split("\n")[ends[begin - 1] if begin else 0 :])
    n = body.count("\n")
    within.check(name, columns=len(columns), rows=n, cells=n * len(columns))
    skipped = 0
    if asked.lines == "fitting":
        body, skipped = _fitting(body, delimiter, len(columns))
    # pandas would use the first of too many fields as row names.
    elif begin < len(rows) and len(rows[begin]) > len(columns):
        raise ValueError(_unnamed(name))
    decimal = asked.decimal if asked.decimal != "auto" else _decimal(rows[begin:], delimiter)
    table = _parsed(body, delimiter, decimal, asked.cells, len(columns), name)
    within.check(name, rows=len(table), cells=table.size)
    table.columns = pd.Index(columns)
    if asked.cells == "text":
        table = _without_sums(table, notes)
    if skipped:
        notes.append(f"{skipped:,} lines have too many fields and were left out.")
    reading = replace(asked, delimiter=words[delimiter], header="yes" if header else "no", decimal=decimal)
    return Source(reading, table, notes=tuple(notes), units=units)


def _delimiter(text: str) -> str:
    """Return the delimiter that splits most of the first lines into the same number of fields."""
    # Only the beginning of a long text.
    begin = text[:_SNIFFED_CHARACTERS]
    lines = [line for line in begin.splitlines() if line.strip() and line[0] != "#"][:_SNIFFED_LINES]

    def fields(delimiter: str) -> tuple[int, int]:
        """Return in how many lines there is the most common number of fields, and that number."""
        try:
            counts = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if len(row) > 1)
        except csv.Error:
            return 0, 0
        number, n = max(counts.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
        return n, number

    for delimiter in "\t;":  # Between these, commas are parts of numbers.
        if lines and fields(delimiter)[0] == len(lines):
            return delimiter
    best = max(_SNIFFED, key=fields)
    return best if fields(best)[0] else max(_SNIFFED, key=lines[0].count) if lines else ","


def _without_comments(text: str, delimiter: str, notes: list[str]) -> str:
    """Return the text without lines of # at its begin; of several fields the last one names the columns."""
    lines = text.split("\n")
    n = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    if not n:
        return text
    last, below = lines[n - 1].lstrip("# "), lines[n]
    named_so = last.count(delimiter) == below.count(delimiter) > 0
    if n - named_so:
        notes.append(f"{_lines(n - named_so)} of comments at the begin {_were(n - named_so)} left out.")
    return "\n".join([*([last] if named_so else []), *lines[n:]])


def _lines(n: int) -> str:
    return "1 line" if n == 1 else f"{n:,} lines"


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _records(text: str, delimiter: str, name: str) -> tuple[list[list[str]], list[int]]:
    """Return the first rows with a value, and the number of lines up to the end of each."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    rows, ends = [], []
    try:
        for row in reader:
            if any(field.strip() for field in row):
                rows.append([field.strip() for field in row])
                ends.append(reader.line_num)
            if len(rows) > _SNIFFED_LINES:
                break
    except csv.Error as error:
        raise ValueError(f"{name} cannot be read as a table: {_reason(error)}") from None
    if not rows:
        raise ValueError(f"{name} holds nothing but delimiters; give a table with values.")
    return rows, ends


def _first(rows: Sequence[Sequence[str]], width: int, notes: list[str]) -> int:
    """Return the row that the table begins with, below a title of few fields."""
    # A title begins its line; names without the first, of numbered rows, do not.
    least = [max(2, 0.6 * width) if row[0] else width / 3 for row in rows]
    first = next((at for at, row in enumerate(rows) if sum(map(bool, row)) >= least[at]), 0)
    if first:
        title = next(field for row in rows for field in row if field)
        notes.append(f"{_lines(first)} above the table {_were(first)} left out ({title[:60]!r}).")
    return first


def _number_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return which columns hold numbers nearly everywhere."""
    columns = []
    for place in range(max(map(len, rows), default=0)):
        cells = [row[place] for row in rows if place < len(row) and row[place] not in ("", "?")]
        if cells and sum(map(is_written_number, cells)) >= _NUMERIC * len(cells):
            columns.append(place)
    return columns


def _has_header(rows: Sequence[Sequence[str]], notes: list[str]) -> bool:
    """Return whether the first row names columns: some word stands above numbers, or comes only there."""
    first, body = rows[0], rows[1:]
    cells = [field for field in first if field]
    if body and any(cells):
        numbers = [place for place in _number_columns(body) if place < len(first) and first[place]]
        if any(not is_written_number(first[place]) for place in numbers):
            return True
        words = [place for place in range(len(first)) if place not in numbers and first[place]]
        again = [first[place] in {row[place] for row in body if place < len(row)} for place in words]
        if not all(again) if not numbers else words and not any(again):
            return True
    elif not all(map(is_written_number, cells)):
        return True
    notes.append(
        "The first line holds values, so it was taken for a row, and the columns are numbered; "
        "`--read header=yes` takes it for their names."
    )
    return False


def _is_units(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row holds units: in brackets, or short words above columns of numbers alone."""
    if len(rows) < 3 or not any(rows[0]):
        return False
    if all(re.fullmatch(r"\[.*\]|\(.*\)", field) for field in rows[0] if field):
        return True
    numbers = _number_columns(rows[1:])
    return sum(map(bool, rows[0])) > 1 and all(
        not field or (place in numbers and _UNIT.fullmatch(field)) for place, field in enumerate(rows[0])
    )


def _decimal(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """Return the decimal sign that cells prove; else that of files with the delimiter."""
    proven: Counter[str] = Counter()
    for column in zip(*(row for row in rows if len(row) == len(rows[0])), strict=True) if rows else ():
        signs = decimal_signs(list(dict.fromkeys(column)))
        proven.update(signs if len(signs) == 1 else ())
    if proven["comma"] != proven["point"]:
        return "comma" if proven["comma"] > proven["point"] else "point"
    return "comma" if delimiter == ";" else "point"


def _parsed(text: str, delimiter: str, decimal: str, cells: str, width: int, name: str) -> pd.DataFrame:
    """Return the table below the names of the columns."""
    options: dict[str, Any] = {"sep": delimiter, "header": None, "names": range(width), "index_col": False}
    if cells == "text":
        options |= {
            "dtype": "str",
            "keep_default_na": False,
            "na_values": ["", "?"],
            "skipinitialspace": True,
        }
    else:
        options |= {"decimal": {"point": ".", "comma": ","}[decimal], "na_values": ["?"]}
    try:
        with warnings.catch_warnings():
            # pandas truncates rows with too many fields.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(io.StringIO(text), low_memory=False, **options)
    except pd.errors.ParserWarning:
        raise ValueError(_unnamed(name)) from None
    except pd.errors.EmptyDataError:
        raise ValueError(f"{name} has no rows below the names of its columns.") from None
    except (pd.errors.ParserError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} cannot be read as a table: {_reason(error)}") from None
    if not len(table):
        raise ValueError(f"{name} has no rows below the names of its columns.")
    return table


def _without_sums(table: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return the table without rows of sums or of a single remark at its end."""
    n = len(table)
    while n > 3:
        cells = [str(cell).strip() for cell in table.iloc[n - 1].dropna()]
        cells = [cell for cell in cells if cell]
        is_sum = (
            bool(cells) and _SUM.fullmatch(cells[0]) is not None and all(map(is_written_number, cells[1:]))
        )
        remark = len(cells) <= 1 and table.shape[1] > 2 and not all(map(is_written_number, cells))
        if not is_sum and not remark:
            break
        n -= 1
    if n < len(table):
        example = next((str(cell) for cell in table.iloc[n].dropna()), "")
        lost = len(table) - n
        notes.append(f"{_lines(lost)} at the end {_were(lost)} left out ({example[:60]!r} …).")
    return table.iloc[:n]


def _fitting(text: str, delimiter: str, n_columns: int) -> tuple[str, int]:
    """Return the lines with at most as many fields as columns, and the number of other lines."""
    sink, skipped = io.StringIO(), 0
    writer = csv.writer(sink, delimiter=delimiter, lineterminator="\n")
    try:
        for row in csv.reader(io.StringIO(text), delimiter=delimiter):
            if len(row) <= n_columns:
                writer.writerow(row)
            else:
                skipped += 1
    except csv.Error:
        skipped += 1  # An unclosed quotation mark swallows the following lines.
    return sink.getvalue(), skipped


def _unnamed(name: str) -> str:
    """Return the message for rows with more fields than the first line."""
    return f"The rows of {name} have more fields than its first line names; name every column there."


def _reason(error: Exception) -> str:
    """Return the message of a parser, with advice."""
    said = " ".join(str(error).removeprefix("Error tokenizing data. C error: ").split()).rstrip(".")
    if "inside string" in said or "field limit" in said:
        return f"{said}. A quotation mark is opened and never closed; close it, or take it out."
    return f"{said}."
