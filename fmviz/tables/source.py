"""Options of reading a file, and the file as read."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.checked import checked
from fmviz.engine.errors import one_of
from fmviz.engine.memory import array_bytes
from fmviz.tables.cells import shortened
from fmviz.typography import counted

LIBSVM_TARGET = "target"
"""The name of the target of a libsvm file."""
# Longer column names are truncated.
_LONGEST_NAME = 100

ENCODINGS = (
    *("utf-8", "utf-16", "cp1252", "cp1250", "cp1251", "koi8_r", "mac_roman"),
    *("shift_jis", "gb18030", "big5", "euc_kr"),
)
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "blanks": " "}
CHOICES: dict[str, tuple[str, ...]] = {
    "kind": ("auto", "table", "libsvm", "parquet"),
    "encoding": ("auto", *ENCODINGS),
    "delimiter": ("auto", *DELIMITERS),
    "header": ("auto", "yes", "no"),
    "decimal": ("auto", "point", "comma"),
    "lines": ("all", "fitting"),
    "dates": ("auto", "day", "month"),
    "base": ("auto", "0", "1"),
}
"""The allowed values of the categorical fields of `Reading`."""


@dataclass(frozen=True)
class Reading:
    """Options of reading a file.

    Attributes
    ----------
    kind : str
        The format: delimited text, libsvm or Parquet.
    encoding, delimiter, header, decimal : str
        Text encoding, delimiter, presence of a header, and the decimal sign of columns that prove none.
    lines : str
        "all", or "fitting" to skip lines with too many fields.
    dates : str
        The first of day and month in dates such as 05/03/2020: "day" or "month".
    base : str
        The index of the first feature of a libsvm file.
    skip : int
        The number of lines to skip before the table.
    missing : str
        Words that stand for missing values, separated by commas.
    """

    kind: str = "auto"
    encoding: str = "auto"
    delimiter: str = "auto"
    header: str = "auto"
    decimal: str = "auto"
    lines: str = "all"
    skip: int = 0
    dates: str = "auto"
    base: str = "auto"
    missing: str = ""

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            one_of(name, getattr(self, name), choices)

    @property
    def usual_decimal(self) -> str:
        """The decimal sign of columns that prove none."""
        return "comma" if self.decimal == "comma" else "point"

    def to_dict(self) -> dict[str, Any]:
        """Return the options for JSON; optional ones only if they differ from the default."""
        return {name: value for name, value in asdict(self).items() if _OPTIONAL.get(name) != value} | _CELLS

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reading:
        """Return the options from a dictionary of `to_dict`; raises ValueError if it is invalid."""
        return checked(cls, {name: value for name, value in dict(data).items() if _CELLS.get(name) != value})


# Names of data sets are hashes of the options.
_OPTIONAL = {"dates": "auto", "base": "auto", "missing": ""}
_CELLS = {"cells": "text"}


@dataclass(frozen=True, eq=False)
class Source:
    """A file as read.

    Attributes
    ----------
    reading : Reading
        The options used, with "auto" resolved if possible.
    table : DataFrame or None
        The table, with unique column names; None for libsvm.
    X, y : (N, d) CSR array and (N,) ndarray, or None
        The contents of a libsvm file.
    notes : tuple of str
        Sentences on dropped and corrected parts.
    """

    reading: Reading
    table: pd.DataFrame | None = None
    X: sp.csr_array | None = None
    y: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> pd.DataFrame:
        """The table; for libsvm, only the target."""
        return pd.DataFrame({LIBSVM_TARGET: self.y}) if self.table is None else self.table

    @cached_property
    def n_bytes(self) -> int:
        """The size in memory."""
        return int(self.columns.memory_usage(deep=True).sum()) + array_bytes(self.X, self.y)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.columns)


def named(columns: list[str], notes: list[str]) -> list[str]:
    """Return unique column names, and append a note for every kind of change."""
    names: dict[str, None] = {}
    taken = set(columns)
    numbers: defaultdict[str, Iterator[int]] = defaultdict(partial(itertools.count, 2))
    changed: defaultdict[str, list[str]] = defaultdict(list)
    for place, column in enumerate(columns, 1):
        full = " ".join(column.split())
        name = shortened(full, _LONGEST_NAME) or f"column {place}"
        changes = {
            "no name": not full,
            f"a name of more than {_LONGEST_NAME} characters, which was cut": len(full) > _LONGEST_NAME,
            "the name of another": name in names,
        }
        if name in names:
            # There may be half a million columns with the same name; they are numbered.
            numbered = (f"{name} ({number})" for number in numbers[name])
            name = next(other for other in numbered if other not in names and other not in taken)
        names[name] = None
        changed[next((change for change, applies in changes.items() if applies), "")].append(name)
    changed.pop("", None)
    notes += [
        f"{counted(len(those), 'column')} had {change}: see “{those[0]}”."
        for change, those in changed.items()
    ]
    return list(names)


def frame_of(arrow: Any) -> pd.DataFrame:
    """Return the columns of single values of an Arrow table."""
    import pyarrow as pa

    table = pa.table(arrow)
    plain = {n: column for n, each in enumerate(table.columns) if (column := _plain(each)) is not None}
    frame = pa.table(list(plain.values()), list(map(str, plain))).to_pandas(deduplicate_objects=False)
    return frame.set_axis([table.schema.names[n] for n in plain], axis=1)


def _plain(column: Any) -> Any:
    """Return an Arrow column as numbers, booleans, times, durations or strings; else None."""
    import pyarrow as pa

    of, kind = pa.types, column.type
    # Times of frames have a zone, too, and are read as those of its clocks.
    moment, clock = pa.timestamp("us", getattr(kind, "tz", None)), pa.time32("s")
    if of.is_dictionary(kind):
        return column if kind.ordered else _plain(column.cast(kind.value_type))
    plain = (of.is_boolean, of.is_integer, of.is_floating, of.is_string, of.is_large_string)
    forms = (
        *((of.is_decimal, pa.float64()), (of.is_float16, pa.float64()), (of.is_string_view, pa.string())),
        *((of.is_timestamp, moment), (of.is_date, moment)),
        *((of.is_time, clock), (of.is_duration, kind)),
        *((is_plain, kind) for is_plain in plain),
    )
    form = next((form for is_kind, form in forms if is_kind(kind)), None)
    return None if form is None else column if form == kind else column.cast(form, safe=False)
