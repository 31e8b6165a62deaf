"""Find the table in delimited text: delimiter, column names, units and totals, with cells as text."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, zip_longest

import pandas as pd

from fmviz.tables.cells import decimal_signs, is_written_number
from fmviz.tables.limits import Limits
from fmviz.tables.source import DELIMITERS, Reading, Source, named
from fmviz.typography import counted

_SNIFFED_LINES = 200
_SNIFFED_CHARACTERS = 1_000_000
# Blanks are not candidates: they occur within fields. Between commas and bars, the one with more fields wins.
_SNIFFED = ("\t", ";", ",", "|")
# Rows at the end that begin like this are not observations.
_SUM = re.compile(r"(grand |sub)?-?(total|sum|summe|gesamt|average|mean|mittelwert|count)s?\b.*", re.I)
_UNIT = re.compile(r"(?!(NA|NaN|nan|None|null|NULL)$)[A-Za-zµΩ°%‰/·²³^$€£]{1,12}")
_NUMERIC = 0.9
_UNNAMED = "The rows of {name} have more fields than its header; add a name for every column."


def read_text(text: str, asked: Reading, name: str, notes: list[str], within: Limits) -> Source:
    """Parse delimited text into a table of words; empty cells and "?" are missing.

    Comments and titles above the header, a line of units below it, and totals at the end are dropped, with a
    note.

    Parameters
    ----------
    text : str
        The decoded text.
    asked : Reading
        The options; "auto" means detected.
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
    # Excel writes its delimiter into a separate first line, and there may be blank lines above the table.
    text = re.sub(r'\A\n*"?sep=."?\n', "", text).split("\n", asked.skip)[-1]
    text = re.sub(r"\A(?:[ \t]*\n)+", "", text)
    if not text.strip():
        raise ValueError(f"{name} is empty. Upload a table whose first line names its columns.")
    delimiter = _delimiter(text) if asked.delimiter == "auto" else DELIMITERS[asked.delimiter]
    if delimiter == " ":
        text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    text = _without_comments(text, delimiter, notes)
    rows, ends = _records(text, delimiter, name)
    width = Counter(len(row) for row in rows[:_SNIFFED_LINES]).most_common(1)[0][0]
    first = 0 if asked.skip else _first(rows, width, notes)
    header = asked.header == "yes" or (asked.header == "auto" and _has_header(rows[first:], notes))
    begin = first + header
    if header and begin < len(rows) and delimiter == " " and len(rows[begin]) == len(rows[first]) + 1:
        rows[first].insert(0, "row")
    fields = rows[first] if header else [f"column {place}" for place in range(1, len(rows[first]) + 1)]
    columns = named(fields, notes)
    if len(columns) < 2:
        raise ValueError(
            f"{name} has one column, {columns[0]!r}; a target and at least one feature are needed, "
            "separated by commas, semicolons, tabs or bars."
        )
    if header and _is_units(rows[begin:]):
        units = ", ".join(filter(None, rows[begin]))
        notes.append(f"The line of units below the header was dropped: {units}.")
        begin += 1
    body = "\n".join(text.split("\n")[ends[begin - 1] if begin else 0 :])
    n = body.count("\n")
    within.check(name, columns=len(columns), rows=n, cells=n * len(columns))
    if asked.lines == "fitting":
        body = _fitting(body, delimiter, len(columns), notes)
    decimal = asked.decimal if asked.decimal != "auto" else _decimal(rows[begin:], delimiter)
    table = _parsed(body, delimiter, len(columns), name).set_axis(columns, axis=1)
    if header and (again := table.eq(columns).all(axis=1)).any():
        lines, were = counted(int(again.sum()), "line"), "was" if again.sum() == 1 else "were"
        notes.append(f"{lines} that repeated the header {were} dropped.")
        table = table[~again].reset_index(drop=True)
    table = _without_sums(table, notes)
    sign = next(word for word, sign in DELIMITERS.items() if sign == delimiter)
    reading = replace(asked, delimiter=sign, header="yes" if header else "no", decimal=decimal)
    return Source(reading, table, notes=tuple(notes))


def _delimiter(text: str) -> str:
    """Return the delimiter that splits most of the first lines into the same number of fields."""
    # Only the beginning of a long text is used.
    begin = text[:_SNIFFED_CHARACTERS].splitlines()
    lines = [line for line in begin if line.strip() and line[0] != "#"][:_SNIFFED_LINES]
    # The number of lines with the most common number of fields, and that number.
    fields = {}
    for sign in _SNIFFED:
        counts = Counter(len(row) for row in _rows(lines, sign) if len(row) > 1)
        fields[sign] = max(((n, number) for number, n in counts.items()), default=(0, 0))
    # With tabs or semicolons as delimiters, commas are parts of numbers.
    sure = [sign for sign in "\t;" if lines and fields[sign][0] == len(lines)]
    best = (sure or [max(_SNIFFED, key=lambda sign: fields[sign])])[0]
    if not sure and _divided_by_blanks(lines):
        return " "
    return best if fields[best][0] else max(_SNIFFED, key=lines[0].count) if lines else ","


def _divided_by_blanks(lines: Sequence[str]) -> bool:
    """Return whether blanks divide all lines into as many fields, other delimiters being parts of numbers."""
    rows = list(_rows((" ".join(line.split()) for line in lines), " "))
    # R writes the names of rows without a name above them.
    alike = {len(row) for row in rows[1:]} in ({len(rows[0])}, {len(rows[0]) + 1}) if len(rows) > 1 else False
    cells = [cell for row in rows for cell in row if any(sign in cell for sign in _SNIFFED)]
    return alike and len(rows[1]) > 1 and all(map(is_written_number, cells))


def _rows(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the rows of some lines up to the first error, such as an open quotation mark."""
    with suppress(csv.Error):
        yield from csv.reader(lines, delimiter=delimiter)


def _without_comments(text: str, delimiter: str, notes: list[str]) -> str:
    """Drop comment lines (#) at the beginning; the last one is the header if it has several fields."""
    lines = text.split("\n")
    n = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    last = lines[n - 1].lstrip("# ") if n else ""
    named_so = last.count(delimiter) == lines[n].count(delimiter) > 0
    if n - named_so > 0:
        notes.append(f"{_lines(n - named_so, 'of comments at the beginning')}.")
    return "\n".join([*([last] if named_so else []), *lines[n:]])


def _lines(n: int, where: str) -> str:
    """Return the beginning of a sentence on dropped lines."""
    return f"{counted(n, 'line')} {where} {'was' if n == 1 else 'were'} dropped"


def _records(text: str, delimiter: str, name: str) -> tuple[list[list[str]], list[int]]:
    """Return the first non-empty rows, and the line number at the end of each."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    filled = (([cell.strip() for cell in row], reader.line_num) for row in reader if any(map(str.strip, row)))
    try:
        records = list(islice(filled, _SNIFFED_LINES + 1))
    except csv.Error as error:
        raise ValueError(f"{name} cannot be read as a table: {_reason(error)}") from None
    if not records:
        raise ValueError(f"{name} contains only delimiters; use a table with values.")
    return [row for row, _ in records], [end for _, end in records]


def _first(rows: Sequence[Sequence[str]], width: int, notes: list[str]) -> int:
    """Return the index of the first row of the table, below a title with few fields."""
    # A title fills the first field; a header of numbered rows leaves it empty.
    least = [max(2, 0.6 * width) if row[0] else width / 3 for row in rows]
    first = next((at for at, row in enumerate(rows) if sum(map(bool, row)) >= least[at]), 0)
    if first:
        title = next(field for row in rows for field in row if field)
        notes.append(f"{_lines(first, 'above the table')} ({title[:60]!r}).")
    return first


def _number_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns in which nearly all values are numbers."""
    columns = (
        [cell for cell in column if cell not in ("", "?")] for column in zip_longest(*rows, fillvalue="")
    )
    return [
        place
        for place, cells in enumerate(columns)
        if cells and sum(map(is_written_number, cells)) >= _NUMERIC * len(cells)
    ]


def _has_header(rows: Sequence[Sequence[str]], notes: list[str]) -> bool:
    """Return whether the first row is a header: a word stands above numbers, or occurs only there."""
    first, body = rows[0], rows[1:]
    numbers = [place for place in _number_columns(body) if place < len(first) and first[place]]
    words = [
        place
        for place, field in enumerate(first)
        if field and place not in numbers and (body or not is_written_number(field))
    ]
    fresh = [first[place] not in {row[place] for row in body if place < len(row)} for place in words]
    named = all(fresh) and bool(fresh) if numbers else any(fresh)
    is_row = not named and all(is_written_number(first[place]) for place in numbers)
    notes += [
        "The first line has values and was read as a row, and the columns are numbered; `--read header=yes` "
        "reads it as column names."
    ] * is_row
    return not is_row


def _is_units(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has units: in brackets, or short words above columns of numbers."""
    if len(rows) < 3 or not any(rows[0]):
        return False
    if all(re.fullmatch(r"\[.*\]|\(.*\)", field) for field in rows[0] if field):
        return True
    numbers = _number_columns(rows[1:])
    return sum(map(bool, rows[0])) > 1 and all(
        not field or (place in numbers and _UNIT.fullmatch(field)) for place, field in enumerate(rows[0])
    )


def _decimal(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """Return the decimal sign proved by cells, or the usual one for the delimiter."""
    proven = [decimal_signs(list(dict.fromkeys(column))) for column in zip_longest(*rows, fillvalue="")]
    commas, points = proven.count({"comma"}), proven.count({"point"})
    if commas == points:
        return "comma" if delimiter == ";" else "point"
    return "comma" if commas > points else "point"


def _parsed(text: str, delimiter: str, width: int, name: str) -> pd.DataFrame:
    """Return the table below the header."""
    if not text.strip():
        raise ValueError(f"{name} has no rows below its header.")
    try:
        with warnings.catch_warnings():
            # pandas truncates rows with too many fields.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                io.StringIO(text),
                sep=delimiter,
                header=None,
                names=range(width),
                index_col=False,
                dtype="str",
                keep_default_na=False,
                na_values=["", "?"],
                skipinitialspace=True,
                low_memory=False,
            )
    except pd.errors.ParserWarning:
        raise ValueError(_UNNAMED.format(name=name)) from None
    except (pd.errors.ParserError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} cannot be read as a table: {_reason(error)}") from None


def _without_sums(table: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return the table without totals or remarks at its end."""
    n = len(table)
    while n > 3 and _is_sum(table.iloc[n - 1].dropna().astype(str).str.strip().tolist(), table.shape[1]):
        n -= 1
    if n < len(table):
        example = next((str(cell) for cell in table.iloc[n].dropna()), "")
        notes.append(f"{_lines(len(table) - n, 'at the end')} ({example[:60]!r} …).")
    return table.iloc[:n]


def _is_sum(cells: list[str], width: int) -> bool:
    """Return whether the cells of a row are totals or a remark."""
    cells = [cell for cell in cells if cell]
    numbers = list(map(is_written_number, cells))
    is_remark = len(cells) <= 1 and width > 2 and not all(numbers)
    return is_remark or (bool(cells and _SUM.fullmatch(cells[0])) and all(numbers[1:]))


def _fitting(text: str, delimiter: str, n_columns: int, notes: list[str]) -> str:
    """Return the lines with at most as many fields as columns."""
    sink, rows = io.StringIO(), list(_rows(io.StringIO(text), delimiter))
    fitting = [row for row in rows if len(row) <= n_columns]
    csv.writer(sink, delimiter=delimiter, lineterminator="\n").writerows(fitting)
    if skipped := len(rows) - len(fitting):
        notes.append(f"{skipped:,} lines have too many fields and were dropped.")
    return sink.getvalue()


def _reason(error: Exception) -> str:
    """Return the message of a parser, with advice."""
    said = " ".join(str(error).removeprefix("Error tokenizing data. C error: ").split()).rstrip(".")
    if "inside string" in said or "field limit" in said:
        return f"{said}. A quotation mark is never closed; close it, or remove it."
    return f"{said}."
