"""Reading tables of one's own: CSV, TSV and libsvm files, with a sentence for each way to fail."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

__all__ = ["is_libsvm", "read_bytes", "read_libsvm", "read_text_table"]

DELIMITERS = ("\t", ";", ",", "|")

_SNIFFED_LINES = 20
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
    """Read a CSV or TSV file whose first line names the columns.

    Parameters
    ----------
    data : bytes
        UTF-8 text. The delimiter, of `DELIMITERS`, is the one that divides the first lines into the same
        number of fields. Empty cells, "?" and the words that pandas takes for it are missing values. Where
        semicolons divide, numbers may have a decimal comma.
    name : str
        What sentences call it.

    Returns
    -------
    DataFrame
        Columns of numbers, or of words.

    Raises
    ------
    ValueError
        If it is empty or no text, has one column, or a column without a name or with that of another.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{name} is not text in UTF-8; save it as CSV in UTF-8.") from None
    if not text.strip():
        raise ValueError(f"{name} is empty; give a table whose first line names its columns.")
    delimiter = sniffed(text)
    records = (row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(row))
    columns = [field.strip() for field in next(records)]
    checked_names(columns, name)
    # pandas would take what is too much for the names of the rows.
    if len(next(records, ())) > len(columns):
        raise ValueError(
            f"The rows of {name} have more fields than its first line names; name every column there."
        )
    try:
        table = pd.read_csv(io.StringIO(text), sep=delimiter, na_values=list(_MISSING))
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as a table: {' '.join(str(error).split())}.") from None
    if not len(table):
        raise ValueError(f"{name} has no rows below the names of its columns.")
    table.columns = pd.Index(columns)
    return _decimal_commas(table) if delimiter == ";" else table


def sniffed(text: str) -> str:
    """Return the delimiter that divides the first lines into the same number of fields, the most of all."""
    lines = [line for line in text.splitlines() if line.strip()][:_SNIFFED_LINES]

    def fields(delimiter: str) -> int:
        counts = {len(row) for row in csv.reader(lines, delimiter=delimiter) if row}
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
    for place, column in enumerate(columns, 1):
        if not column:
            raise ValueError(f"Column {place} of {name} has no name; write one into the first line.")
        if columns.count(column) > 1:
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
