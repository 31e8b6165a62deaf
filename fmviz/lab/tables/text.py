"""Parse delimited text into a table, with delimiter, header and decimal sign detected."""

from __future__ import annotations

import csv
import io
import re
import warnings
from dataclasses import replace
from typing import Any

import pandas as pd

from fmviz.lab.tables.limits import Limits
from fmviz.lab.tables.source import DELIMITERS, Reading, Source, named

__all__ = ["read_text"]

_SAMPLE = 65_536
_SNIFFED_LINES = 20
_SNIFFED_CHARACTERS = 1_000_000
# Blanks are no candidate: they occur within fields.
_SNIFFED = ("\t", ";", ",", "|")
# Besides the missing values of pandas: common in data sets of machine learning.
_MISSING = ["?"]


def read_text(text: str, asked: Reading, name: str, notes: list[str], within: Limits) -> Source:
    """Parse delimited text; empty cells, "?" and the missing values of pandas are missing.

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
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    words = {sign: word for word, sign in DELIMITERS.items()}
    lines = text.lstrip("\ufeff\n")
    if (marker := re.match(r'"?sep=(.)"?\n', lines)) is not None:  # Written by Excel.
        text = lines[marker.end() :]
        if marker[1] in words and asked.delimiter == "auto":
            asked = replace(asked, delimiter=words[marker[1]])
    if asked.skip:
        text = "\n".join(text.split("\n")[asked.skip :])
    text = re.sub(r"\A(?:[ \t]*\n)+", "", text)
    if not text.strip():
        raise ValueError(f"{name} is empty. Upload a table whose first line names its columns.")
    delimiter = _delimiter(text) if asked.delimiter == "auto" else DELIMITERS[asked.delimiter]
    header = asked.header == "yes" or (asked.header == "auto" and _has_header(text, delimiter))
    decimal = asked.decimal if asked.decimal != "auto" else _decimal(text, delimiter)
    first = text.lstrip("\n").split("\n", 1)[0]
    n, m = text.count("\n") - 1, first.count(delimiter) + 1
    within.check(name, columns=m, rows=n, cells=n * m)
    if delimiter == " ":
        text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    fields, widest = _heading(text, delimiter, header, name)
    columns = named(fields, notes)
    if len(columns) < 2:
        raise ValueError(
            f"{name} has one column, {columns[0]!r}; a target and at least one feature are needed, divided "
            "by commas, semicolons, tabs or bars."
        )
    skipped = 0
    if asked.lines == "fitting":
        text, skipped = _fitting(text, delimiter, len(columns))
    # pandas would use the first of too many fields as row names.
    elif widest > len(columns):
        raise ValueError(_unnamed(name))
    options: dict[str, Any] = {
        "sep": delimiter,
        "decimal": {"point": ".", "comma": ","}[decimal],
        "na_values": _MISSING,
        "header": 0 if header else None,
        "index_col": False,
        "low_memory": False,
    }
    try:
        with warnings.catch_warnings():
            # pandas truncates rows with too many fields.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(io.StringIO(text), **options)
    except pd.errors.ParserWarning:
        raise ValueError(_unnamed(name)) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} cannot be read as a table: {_reason(error)}") from None
    if not len(table):
        raise ValueError(f"{name} has no rows below the names of its columns.")
    within.check(name, rows=len(table), cells=table.size)
    table.columns = pd.Index(columns)
    if skipped:
        notes.append(f"{skipped:,} lines have too many fields and were left out.")
    if not header and asked.header == "auto":
        notes.append("The first line holds numbers, so it was taken for a row; the columns are numbered.")
    reading = replace(asked, delimiter=words[delimiter], header="yes" if header else "no", decimal=decimal)
    return Source(reading, table, notes=tuple(notes))


def _delimiter(text: str) -> str:
    """Return the delimiter that splits the first lines into the largest constant number of fields."""
    # Only the beginning of a long text.
    begin = text[:_SNIFFED_CHARACTERS]
    lines = [line for line in begin.splitlines() if line.strip()][:_SNIFFED_LINES]

    def fields(delimiter: str) -> int:
        try:
            counts = {len(row) for row in csv.reader(lines, delimiter=delimiter) if row}
        except csv.Error:
            return 0
        return counts.pop() if len(counts) == 1 else 0

    best = max(_SNIFFED, key=fields)
    return best if fields(best) > 1 else max(_SNIFFED, key=lines[0].count)


def _decimal(text: str, delimiter: str) -> str:
    """Return "comma" if the delimiter is a semicolon, unless numbers have points and none has a comma."""
    if delimiter != ";":
        return "point"
    cut = text if len(text) <= _SAMPLE else text[:_SAMPLE].rpartition(";")[0]
    fields = [field.strip().strip('"') for field in re.split(r"[;\n]", cut)]
    if any(re.fullmatch(r"[-+]?[\d.]*,\d+([eE][-+]?\d+)?", field) for field in fields):
        return "comma"
    # A point before three digits may separate thousands.
    pointed = [field for field in fields if re.fullmatch(r"[-+]?\d*\.\d+([eE][-+]?\d+)?", field)]
    return "point" if any(not re.fullmatch(r"[-+]?\d{1,3}\.\d{3}", field) for field in pointed) else "comma"


def _has_header(text: str, delimiter: str) -> bool:
    """Return whether the first line has a field that is not a number."""
    begin = text[:_SAMPLE].strip().split("\n", 1)[0]
    try:
        fields = next(csv.reader(io.StringIO(begin), delimiter=delimiter), [])
    except csv.Error:
        return True
    number = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")
    values = [field for field in fields if field.strip()]
    return not values or not all(number.fullmatch(field) for field in values)


def _heading(text: str, delimiter: str, header: bool, name: str) -> tuple[list[str], int]:
    """Return the names of the columns and the number of fields of the first row."""
    records = (row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(row))
    try:
        first = next(records)
        widest = len(next(records, ())) if header else len(first)
    except csv.Error as error:
        raise ValueError(f"{name} cannot be read as a table: {_reason(error)}") from None
    except StopIteration:
        raise ValueError(f"{name} holds nothing but delimiters; give a table with values.") from None
    if header:
        return [field.strip() for field in first], widest
    return [f"column {place}" for place in range(1, len(first) + 1)], widest


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
