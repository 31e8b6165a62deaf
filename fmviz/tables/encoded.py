"""Encoded features and target of a file, with notes on dropped rows and unseen values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fmviz.tables.cells import quoted
from fmviz.tables.encoder import TableEncoder
from fmviz.tables.kinds import Column
from fmviz.tables.recipe import Recipe, learned, row_groups
from fmviz.tables.source import Source
from fmviz.tables.target import TargetEncoding


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoded table, or the contents of a libsvm file.

    Attributes
    ----------
    X : (N, d) float64 ndarray or CSR array
        The features of the rows without missing values; sparse if most entries are zero.
    y : (N,) or (N, m) float64 ndarray, or None
        Their target; None if the table has no target column.
    rows : (N,) int ndarray
        The indices of these rows in the table.
    dropped : int
        The number of rows dropped for a missing value.
    target : TargetEncoding
        The encoding of y.
    encoder : TableEncoder or None
        The encoding of the features; None for libsvm.
    notes : tuple of str
        Sentences on dropped rows, imputed values and unseen words.
    group : str
        The column whose values stay together in splits; empty without one.
    row_groups : (N,) int ndarray or None
        The group of every row, by that column.
    """

    X: np.ndarray | sp.csr_array
    y: np.ndarray | None
    rows: np.ndarray
    dropped: int
    target: TargetEncoding
    encoder: TableEncoder | None = None
    notes: tuple[str, ...] = ()
    group: str = ""
    row_groups: np.ndarray | None = None


def encode(
    source: Source, recipe: Recipe, rows: np.ndarray | None = None, columns: Iterable[Column] | None = None
) -> Encoded:
    """Fit the encoding of a file and apply it; parameters and errors as in `learned`."""
    groups = row_groups(source, recipe)
    encoded = applied(source, *learned(source, recipe, rows, columns))
    if groups is None:
        return encoded
    notes = (*encoded.notes, recipe.group_note(groups))
    return replace(encoded, notes=notes, group=recipe.group, row_groups=groups[encoded.rows])


def applied(
    source: Source, target: TargetEncoding, encoder: TableEncoder | None, *, batch: bool = False
) -> Encoded:
    """Apply a fitted encoding to a file; raises ValueError if a column is missing or unsuitable.

    All rows of a `batch` of a file may have missing values, and its unseen values have no notes.
    """
    if encoder is None:
        assert source.X is not None
        return Encoded(source.X, target.encode(source.columns), np.arange(len(source)), 0, target)
    table, notes = source.columns, list[str]()
    read = encoder.read(table, source.reading, notes)
    lost = {
        column.name: read[column.name].isna().to_numpy()
        for column in encoder.columns_
        if column.missing == "drop"
    }
    y = target.encode(table) if all(name in table for name in target.names) else None
    if y is not None:
        lost[target.name] = np.isnan(y.reshape(len(y), -1)).any(axis=1)
    rows = np.flatnonzero(~np.logical_or.reduce([np.zeros(len(table), dtype=bool), *lost.values()]))
    if not (rows.size or batch):
        raise ValueError("Every row has a missing value; impute missing values, or ignore columns.")
    if dropped := len(table) - rows.size:
        counts = [f"{name} in {absent.sum():,}" for name, absent in lost.items() if absent.any()]
        notes.append(f"Rows dropped because of missing values: {dropped:,} ({quoted(counts)}).")
    read = {name: values.iloc[rows] for name, values in read.items()}
    notes += [] if batch else [*encoder.notes(read), *target.unknown(table)]
    X = encoder.encoded(read)
    return Encoded(X, None if y is None else y[rows], rows, dropped, target, encoder, tuple(notes))
