"""How large a table may be: on a server that many share, and on the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fmviz.engine.memory import in_words

__all__ = ["LOCAL", "MOST_LEVELS", "SMALLER", "UPLOADS", "Limits"]

MOST_LEVELS = 1_000
"""Words of one column that have a feature of their own; the rarer ones share one."""

SMALLER = "Take a sample of its rows, or compress it with gzip."
"""What can be done about a file that is too large."""


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
    otherwise : str
        What the sentences that refuse something end with.
    """

    file: float = math.inf
    unfolded: int = 10**12
    rows: float = math.inf
    columns: float = math.inf
    cells: float = math.inf
    features: float = math.inf
    otherwise: str = ""

    def __str__(self) -> str:
        """Return the limits in words."""
        return (
            f"At most {in_words(self.file)}, {self.rows:,} rows, {self.columns:,} columns, {self.cells:,} "
            f"cells and {self.features:,} features. The {MOST_LEVELS:,} most frequent words of a column have "
            "a feature each; the rarer ones share one."
        )

    def check(self, name: str, **sizes: float) -> None:
        """Raise ValueError, with a sentence that calls the data by a name, where something is too large.

        Parameters
        ----------
        name : str
            What sentences call the data.
        **found : float
            Sizes by their names in `_SENTENCES`.
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
    "unfolded": ("unfolded", "{name} unfolds to more than {most}. Take a sample of its rows."),
    "columns": (
        "columns",
        "{name} has {value} columns, more than {most}. Take fewer of them, or save it as libsvm.",
    ),
    "rows": ("rows", "{name} has more than {most} rows. Take a sample of them."),
    "cells": (
        "cells",
        "{name} has about {value} cells, more than {most}. Take a sample of its rows, or fewer columns.",
    ),
    "values": ("cells", "{name} has more than {most} values. Take a sample of its rows."),
    "index": (
        "features",
        "{name} has an index of {value}, more than {most} features. Number them anew without gaps.",
    ),
    "features": (
        "features",
        "{name} makes {value} features, more than {most}. Ignore columns of many words.",
    ),
    "entries": (
        "cells",
        "{name} makes {value} entries of X, more than {most}. Take a sample of the rows, or ignore columns.",
    ),
}

UPLOADS = Limits(
    file=100_000_000,
    unfolded=200_000_000,
    rows=1_000_000,
    columns=2_000,
    cells=20_000_000,
    features=200_000,
)
"""Of the page, which tells them before anything is read, and of the command line.

``maxUploadSize`` in .streamlit/config.toml agrees."""

# A wrong index of libsvm would make as many features, with a name each, until the memory is full.
LOCAL = Limits(features=10_000_000)
"""Of files that somebody fits with ``--no-limits`` on a computer of their own."""
