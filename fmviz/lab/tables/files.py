"""Reads CSV, TSV and libsvm files, with a sentence for each way to fail."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

__all__ = ["is_libsvm", "read_bytes", "read_libsvm", "read_text", "read_text_table"]

DELIMITERS = ("\t", ";", ",", "|")

_SNIFFED_LINES = 20
_SNIFFED_CHARACTERS = 1_000_000
_LIBSVM_LINE = re.compile(r"[-+.,\w]+(\s+qid:\d+)?(\s+\d+:[-+.\w]+)+\s*(#.*)?")
# Besides what pandas takes for missing; data sets of machine learning often write so.
_MISSING = ("?",)


def read_bytes(path: str | Path) -> bytes:
    """Return the contents of a file; raises ValueError with a sentence where it cannot be read."""
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error.strerror}.") from None


def is_libsvm(data: bytes) -> bool:
    """Tell by the first line that holds something whether this is a libsvm file rather than a table."""
    lines = data[:65_536].decode("utf-8", errors="replace").splitlines()
    first = next((line.strip() for line in lines if line.strip() and not line.startswith("#")), "")
    return _LIBSVM_LINE.fullmatch(first) is not None


def read_text_table(data: bytes, name: str = "The file") -> pd.DataFrame:
    """Read a CSV or TSV file in UTF-8 whose first line names the columns; else as `read_text`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{name} is not text in UTF-8; save it as CSV in UTF-8.") from None
    return read_text(text, name)


def read_text(
    text: str,
    name: str = "The file",
    *,
    delimiter: str = "",
    header: bool = True,
    decimal: str = "",
    loose: bool = False,
    rename: Callable[[list[str]], list[str]] | None = None,
    most_rows: int | None = None,
) -> pd.DataFrame:
    """Read the text of a table.

    Parameters
    ----------
    text : str
        Empty cells, "?" and the words that pandas takes for it are missing values.
    name : str
        What sentences call it.
    delimiter : str
        One character, blanks in any number for " ". Without it the one of `DELIMITERS` that divides the first
        lines into the same number of fields.
    header : bool
        Whether the first line names the columns; else they are called "column 1" and so on.
    decimal : str
        "." or ",". Without it numbers may have a decimal comma where semicolons divide.
    loose : bool
        Whether lines with too many fields are left out; else they are an error.
    rename : callable, optional
        Returns names for the columns, given those of the file; without it each must have one of its own.
    most_rows : int, optional
        No more rows are read.

    Returns
    -------
    DataFrame
        Columns of numbers, or of words; ``attrs["skipped"]`` is the number of lines that were left out.

    Raises
    ------
    ValueError
        If it is empty or no table, has one column, or a column without a name or with that of another.
    """
    if not text.strip():
        raise ValueError(f"{name} is empty; give a table whose first line names its columns.")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    delimiter = delimiter or sniffed(text)
    if delimiter == " ":
        text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    columns, widest = _heading(text, delimiter, header, name)
    if rename is not None:
        columns = rename(columns)
    checked_names(columns, name)
    skipped = 0
    if loose:
        text, skipped = _fitting(text, delimiter, len(columns))
    # pandas would take what is too much for the names of the rows.
    elif widest > len(columns):
        raise ValueError(
            f"The rows of {name} have more fields than its first line names; name every column there."
        )
    options: dict[str, Any] = {
        "sep": delimiter,
        "na_values": list(_MISSING),
        "header": 0 if header else None,
        "index_col": False,
        "low_memory": False,
        "nrows": most_rows,
    }
    try:
        table = pd.read_csv(io.StringIO(text), decimal=decimal or ".", **options)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} cannot be read as a table: {_reason(error)}") from None
    if not len(table):
        raise ValueError(f"{name} has no rows below the names of its columns.")
    table.columns = pd.Index(columns)
    table.attrs["skipped"] = skipped
    return _decimal_commas(table) if delimiter == ";" and not decimal else table


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
    """Return the lines that have no more fields than there are columns, and how many others there are."""
    sink, skipped = io.StringIO(), 0
    writer = csv.writer(sink, delimiter=delimiter, lineterminator="\n")
    try:
        for row in csv.reader(io.StringIO(text), delimiter=delimiter):
            if len(row) <= n_columns:
                writer.writerow(row)
            else:
                skipped += 1
    except csv.Error:
        skipped += 1  # A quotation mark that is never closed takes the rest with it.
    return sink.getvalue(), skipped


def _reason(error: Exception) -> str:
    """Return what a parser says, and what to do about it."""
    said = " ".join(str(error).removeprefix("Error tokenizing data. C error: ").split()).rstrip(".")
    if "inside string" in said or "field limit" in said:
        return f"{said}. A quotation mark is opened and never closed; close it, or take it out."
    return f"{said}."


def sniffed(text: str) -> str:
    """Return the delimiter that divides the first lines into the same number of fields, the most of all."""
    # Of a long text the beginning; what is cut off with it counts for nothing.
    begin = text[:_SNIFFED_CHARACTERS]
    lines = [line for line in begin.splitlines() if line.strip()][:_SNIFFED_LINES]

    def fields(delimiter: str) -> int:
        try:
            counts = {len(row) for row in csv.reader(lines, delimiter=delimiter) if row}
        except csv.Error:
            return 0
        return counts.pop() if len(counts) == 1 else 0

    best = max(DELIMITERS, key=fields)
    if fields(best) > 1:
        return best
    return max(DELIMITERS, key=lambda delimiter: lines[0].count(delimiter))


def checked_names(columns: list[str], name: str = "The table") -> None:
    """Raise ValueError with a sentence unless there are two columns or more, each with a name of its own."""
    if len(columns) < 2:
        raise ValueError(
            f"{name} has one column, {columns[0]!r}; a target and at least one feature are needed, divided "
            "by commas, semicolons, tabs or bars."
        )
    counts = Counter(columns)
    for place, column in enumerate(columns, 1):
        if not column:
            raise ValueError(f"Column {place} of {name} has no name; write one into the first line.")
        if counts[column] > 1:
            raise ValueError(f"{name} has several columns called {column!r}; give each a name of its own.")


def _decimal_commas(table: pd.DataFrame) -> pd.DataFrame:
    for column in table:
        values = table[column].dropna()
        if pd.api.types.is_numeric_dtype(values) or not len(values):
            continue
        if values.astype(str).str.fullmatch(r"[-+]?\d*,?\d+(?:[eE][-+]?\d+)?").all():
            words = table[column].astype(str).where(table[column].notna())
            table[column] = pd.to_numeric(words.str.replace(",", "."))
    return table


def read_libsvm(data: bytes, name: str = "The file") -> tuple[sp.csr_array, np.ndarray]:
    """Read a libsvm file: return X, shape (N, d), and the target, shape (N,); raises ValueError."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(data))
    except (ValueError, OverflowError, MemoryError) as error:
        raise ValueError(f"{name} cannot be read as libsvm: {error}.") from None
    if not X.shape[0] or not X.shape[1]:
        raise ValueError(f"{name} has no rows or no features.")
    X = sp.csr_array(X, dtype=np.float64)
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        raise ValueError(f"{name} holds a value that is not finite; take it out.")
    return X, y
