"""How large a table may be: on a server that many share, and on the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fmviz.engine.memory import in_words

__all__ = ["LOCAL", "MOST_LEVELS", "UPLOADS", "Limits"]

MOST_LEVELS = 1_000
"""Words of one column that have a feature of their own; the rarer ones share one."""


@dataclass(frozen=True)
class Limits:
    """What is refused.

    Attributes
    ----------
    file : float
        Bytes of a file as it is sent.
    unfolded : int
        Bytes of a compressed file, unfolded.
    rows, columns : float
        Of the table.
    cells : float
        Rows × columns of the table, and non-zeros of X.
    features : float
        Columns of X.
    """

    file: float = math.inf
    unfolded: int = 10**12
    rows: float = math.inf
    columns: float = math.inf
    cells: float = math.inf
    features: float = math.inf

    def __str__(self) -> str:
        """Return the limits in words."""
        return (
            f"At most {in_words(self.file)}, {self.rows:,} rows, {self.columns:,} columns, {self.cells:,} "
            f"cells and {self.features:,} features; {MOST_LEVELS:,} words of a column have a feature of "
            "their own."
        )

    def check_file(self, size: int, name: str) -> None:
        """Raise ValueError, with a sentence, where a file is too large."""
        if size > self.file:
            raise ValueError(
                f"{name} has {in_words(size)}, more than {in_words(self.file)}. Take a sample of its rows, "
                "or compress it with gzip."
            )

    def check_unfolded(self, size: float, name: str) -> None:
        """Raise ValueError where the contents of a compressed file are too large."""
        if size > self.unfolded:
            raise ValueError(
                f"{name} unfolds to more than {in_words(self.unfolded)}. Take a sample of its rows."
            )

    def check_table(self, rows: int, columns: int, name: str) -> None:
        """Raise ValueError where a table is too large."""
        if columns > self.columns:
            raise ValueError(
                f"{name} has {columns:,} columns, more than {self.columns:,}. Take fewer of them, or save it "
                "as libsvm."
            )
        if rows > self.rows:
            raise ValueError(f"{name} has more than {self.rows:,} rows. Take a sample of them.")
        if rows * columns > self.cells:
            raise ValueError(
                f"{name} has about {rows * columns:,} cells, more than {self.cells:,}. Take a sample of its "
                "rows, or fewer columns."
            )

    def check_libsvm(self, values: int, index: int, name: str) -> None:
        """Raise ValueError where a libsvm file has too many values, or an index too far."""
        if values > self.cells:
            raise ValueError(f"{name} has more than {self.cells:,} values. Take a sample of its rows.")
        if index > self.features:
            raise ValueError(
                f"{name} has an index of {index:,}, more than {self.features:,} features. Number them anew "
                "without gaps."
            )

    def check_features(self, features: int, entries: int) -> None:
        """Raise ValueError where an encoding makes too much of a table."""
        if features > self.features:
            raise ValueError(
                f"This makes {features:,} features, more than {self.features:,}. Ignore columns of many "
                "words."
            )
        if entries > self.cells:
            raise ValueError(
                f"This makes {entries:,} entries of X, more than {self.cells:,}. Take a sample of the rows, "
                "or ignore columns."
            )


UPLOADS = Limits(
    file=100_000_000,
    unfolded=200_000_000,
    rows=1_000_000,
    columns=2_000,
    cells=20_000_000,
    features=200_000,
)
"""Of the page; it tells them before anything is read. ``maxUploadSize`` in .streamlit/config.toml agrees."""

# A wrong index of libsvm would make as many features, with a name each, until the memory is full.
LOCAL = Limits(features=10_000_000)
"""Of files that somebody fits on a computer of their own."""
