"""Features and target of a file: what they are made of, and what was left out or is new in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.tables.cells import quoted
from fmviz.tables.encoder import TableEncoder
from fmviz.tables.kinds import Column
from fmviz.tables.recipe import LIBSVM_TARGET, Recipe, learned
from fmviz.tables.source import Source
from fmviz.tables.target import Target

__all__ = ["Encoded", "applied", "encode"]


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoded table, or the contents of a libsvm file.

    Attributes
    ----------
    X : (N, d) float64 ndarray or CSR array
        The features of the rows without missing values; sparse where most entries are zero.
    y : (N,) or (N, m) float64 ndarray, or None
        Their target; None if the table has no target column.
    rows : (N,) int ndarray
        The indices of these rows in the table.
    dropped : int
        The number of rows dropped for a missing value.
    target : Target
        The encoding of y.
    encoder : TableEncoder or None
        The encoding of the features; None for libsvm.
    missing : mapping of str to int
        By column, the number of rows dropped because its value is missing.
    unseen : mapping of str to mapping of str to int
        By column, the words that the encoder does not know, with their counts.
    """

    X: np.ndarray | sp.csr_array
    y: np.ndarray | None
    rows: np.ndarray
    dropped: int
    target: Target
    encoder: TableEncoder | None = None
    missing: Mapping[str, int] = field(default_factory=dict)
    unseen: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def notes(self) -> list[str]:
        """Return sentences on dropped rows and on unseen words."""
        if self.encoder is None:
            return []
        columns = {column.name: column for column in self.encoder.columns_}
        notes = []
        if self.dropped:
            counts = [f"{name} in {count:,}" for name, count in self.missing.items()]
            notes.append(f"Rows left out since a value is missing: {self.dropped:,} ({quoted(counts)}).")
        for name, words in self.unseen.items():
            if name == self.target.name:
                notes += self.target.new_classes(words)
                continue
            other_label = getattr(columns.get(name), "other_label", "")
            n = sum(words.values())
            rows = "row" if n == 1 else "rows"
            notes.append(
                f"Column {name!r} has words that are new to the model ({quoted(words)}) in {n:,} "
                f"{rows}; they count as {other_label or 'none of its levels'}."
            )
        return notes


def encode(
    source: Source, recipe: Recipe, rows: np.ndarray | None = None, columns: Iterable[Column] | None = None
) -> Encoded:
    """Learn how a file becomes features and target, and encode it; parameters and errors as of `learned`."""
    return applied(source, *learned(source, recipe, rows, columns))


def applied(source: Source, target: Target, encoder: TableEncoder | None) -> Encoded:
    """Encode a file by what was learned; raises ValueError where a column is missing or unsuitable."""
    if encoder is None:
        assert source.X is not None
        numbers = target.encode(pd.DataFrame({LIBSVM_TARGET: source.y}))
        return Encoded(source.X, numbers, np.arange(len(numbers)), 0, target)
    assert source.table is not None
    table = source.table
    read = encoder.read(table)
    lost: dict[str, np.ndarray] = {
        column.name: read[column.name].isna().to_numpy()
        for column in encoder.columns_
        if column.missing == "drop"
    }
    y = target.encode(table) if all(name in table for name in target.names) else None
    if y is not None:
        lost[target.name] = np.isnan(y.reshape(len(y), -1)).any(axis=1)
    kept = ~np.logical_or.reduce([np.zeros(len(table), dtype=bool), *lost.values()])
    rows = np.flatnonzero(kept)
    if not rows.size:
        raise ValueError("No row is left without a missing value; impute them, or ignore columns.")
    read = {name: values.iloc[rows] for name, values in read.items()}
    unseen = encoder.unseen(read)
    if unknown := target.unknown(table):
        unseen[target.name] = unknown
    return Encoded(
        encoder.encoded(read),
        None if y is None else y[rows],
        rows,
        len(table) - rows.size,
        target,
        encoder,
        {name: int(absent.sum()) for name, absent in lost.items() if absent.any()},
        unseen,
    )
