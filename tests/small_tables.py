"""Small tables, and how tests of tables learn and encode them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.tables.encoded import Encoded, encode
from fmviz.tables.files import read
from fmviz.tables.recipe import Choice, Recipe, columns_of, first_recipe
from fmviz.tables.source import Reading, Source


def frame(n: int = 40, seed: int = 0) -> pd.DataFrame:
    """Return numbers, words, codes and a target y."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "town": rng.choice(["Bonn", "Kiel", "Ulm"], n),
            "code": rng.choice([10, 20, 100], n),
            "y": rng.normal(size=n),
        }
    )


def source_of(table: pd.DataFrame) -> Source:
    """Return a typed table as a file."""
    return Source(Reading(decimal="point"), table)


def learn(table, target="y", kinds=(), missing=None, **changes) -> Encoded:
    """Encode a table as it is first taken, with other kinds for some columns, and other settings."""
    first = first_recipe(source_of(table), columns_of(source_of(table)))
    chosen = first.corrected(
        Choice(choice.name, dict(kinds).get(choice.name, choice.kind), missing or choice.missing)
        for choice in first.columns
    )
    settings = {"numbers": "line", "rare": 1, **changes}
    return encode(source_of(table), replace(chosen, target=target, **settings))


def decided(data: bytes, **changes) -> tuple[Source, Recipe]:
    """Read a file, and return it with its first recipe, in which numbers are straight lines."""
    source = read(data)
    return source, replace(first_recipe(source, columns_of(source)), **{"numbers": "line", **changes})


def csv_bytes(table: pd.DataFrame, **options) -> bytes:
    """Return a table as a file."""
    return table.to_csv(index=False, **options).encode()


def dense(X) -> np.ndarray:
    """Return X, or that of encoded data, as an array."""
    X = getattr(X, "X", X)
    return X.toarray() if sp.issparse(X) else X
