"""What an uploaded file may hold; the page tells it before anything is read."""

from __future__ import annotations

from fmviz.engine.memory import in_words

MOST_BYTES = 100_000_000
"""Of the file as it is sent; ``maxUploadSize`` in .streamlit/config.toml says the same in MB."""

MOST_UNFOLDED = 200_000_000
"""Bytes of a compressed file, unfolded."""

MOST_ROWS = 1_000_000
MOST_COLUMNS = 2_000

MOST_CELLS = 20_000_000
"""Rows × columns of the table, and non-zeros of X."""

MOST_LEVELS = 1_000
"""Words of one column that have a feature of their own; the rarer ones share one."""

MOST_FEATURES = 200_000
"""Columns of X."""

LONGEST_NAME = 100
"""Characters of a column's name that are kept."""


def sentence() -> str:
    """Return the limits in words."""
    return (
        f"At most {in_words(MOST_BYTES)}, {MOST_ROWS:,} rows, {MOST_COLUMNS:,} columns, {MOST_CELLS:,} cells "
        f"and {MOST_FEATURES:,} features; {MOST_LEVELS:,} words of a column have a feature of their own."
    )


def check_table(rows: int, columns: int, name: str) -> None:
    """Raise ValueError, with a sentence, where a table is too large."""
    if columns > MOST_COLUMNS:
        raise ValueError(
            f"{name} has {columns:,} columns, more than {MOST_COLUMNS:,}. Take fewer of them, or save it as "
            "libsvm."
        )
    if rows > MOST_ROWS:
        raise ValueError(f"{name} has more than {MOST_ROWS:,} rows. Take a sample of them.")
    if rows * columns > MOST_CELLS:
        raise ValueError(
            f"{name} has about {rows * columns:,} cells, more than {MOST_CELLS:,}. Take a sample of its "
            "rows, or fewer columns."
        )
