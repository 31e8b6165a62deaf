"""Limits on the size of tables, on a shared server and on the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fmviz.engine.memory import in_words

MOST_LEVELS = 1_000
"""The default maximum number of words of a text."""

SMALLER = "Take a sample of its rows, or compress it with gzip."
"""Advice for files that are too large."""


@dataclass(frozen=True)
class Limits:
    """Upper limits on files and tables.

    Attributes
    ----------
    file : float
        Bytes of the uploaded file.
    unfolded : int
        Bytes of a compressed file after decompression.
    rows, columns : float
        Rows and columns of the table.
    cells : float
        Rows × columns of the table, and non-zeros of X.
    features : float
        Columns of X.
    otherwise : str
        The end of every error message.
    samples : bool
        Whether a table of too many rows is read by a random sample of them, rather than rejected.
    """

    file: float = math.inf
    unfolded: int = 10**12
    rows: float = math.inf
    columns: float = math.inf
    cells: float = math.inf
    features: float = math.inf
    otherwise: str = ""
    samples: bool = False

    def __str__(self) -> str:
        """Return the limits as a sentence."""
        return (
            f"At most {in_words(self.file)}, {self.rows:,} rows, {self.columns:,} columns, {self.cells:,} "
            f"cells and {self.features:,} features. Of a text, the {MOST_LEVELS:,} most frequent words are "
            "features. A table with more rows or cells is read by a random sample of its rows."
        )

    def drawn(self, n: int, cells: float, n_bytes: float = 0.0) -> np.ndarray | None:
        """Return the indices of the random sample of the rows of a table that fits; None if all rows do.

        Parameters
        ----------
        n : int
            The number of rows.
        cells, n_bytes : float
            The cells of all rows, and their bytes after decompression.
        """
        shares = self.rows / max(n, 1), self.cells / max(cells, 1), self.unfolded / max(n_bytes, 1)
        if not self.samples or min(shares) >= 1.0:
            return None
        chosen = np.random.default_rng(0).choice(n, max(1, int(n * min(shares))), replace=False)
        return np.asarray(np.sort(chosen))

    def check(self, name: str, **sizes: float) -> None:
        """Raise ValueError if a size exceeds its limit.

        Parameters
        ----------
        name : str
            The name of the data in the message.
        **sizes : float
            Sizes by the keys of `_SENTENCES`.
        """
        for what, value in sizes.items():
            limit, sentence = _SENTENCES[what]
            if value > (most := getattr(self, limit)):
                written = in_words if limit in ("file", "unfolded") else "{:,}".format
                refused = sentence.format(name=name, value=written(value), most=written(most))
                raise ValueError(refused + self.otherwise)


_SENTENCES = {
    "file": (
        "file",
        "{name} has {value}, more than {most}. " + SMALLER,
    ),
    "unfolded": ("unfolded", "{name} decompresses to more than {most}. Take a sample of its rows."),
    "columns": (
        "columns",
        "{name} has {value} columns, more than {most}. Select fewer, or save it as libsvm.",
    ),
    "rows": ("rows", "{name} has more than {most} rows. Take a sample of them."),
    "cells": (
        "cells",
        "{name} has about {value} cells, more than {most}. Take a sample of its rows, or fewer columns.",
    ),
    "values": ("cells", "{name} has more than {most} values. Take a sample of its rows."),
    "index": (
        "features",
        "{name} has an index of {value}, more than {most} features. Renumber them without gaps.",
    ),
    "features": (
        "features",
        "{name} has {value} features, more than {most}. Ignore columns with many words.",
    ),
    "entries": (
        "cells",
        "{name} has {value} entries of X, more than {most}. Take a sample of the rows, or ignore columns.",
    ),
}

UPLOADS = Limits(
    file=100_000_000,
    unfolded=200_000_000,
    rows=1_000_000,
    columns=2_000,
    cells=20_000_000,
    features=200_000,
    samples=True,
)
"""The limits of the page, where they are displayed.

Keep in agreement with ``maxUploadSize`` in .streamlit/config.toml."""

COMMAND = replace(UPLOADS, file=500_000_000, unfolded=500_000_000, otherwise=" Or use --no-limits.")
"""The limits of the command line."""

SAMPLE_CELLS = 10_000_000
"""The cells that `fmviz fit` draws from a larger table by default: a fit to more takes over two minutes."""

# A wrong index in a libsvm file could create enough features to exhaust the memory.
LOCAL = Limits(features=10_000_000)
"""The limits under ``--no-limits``."""
