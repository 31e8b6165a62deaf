"""Columns that say the same, rows that are equal, and columns that alone tell the target."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import scipy.sparse as sp

# Columns are equal, and tell the target, from this share of explained variance, or of explained classes.
_EQUAL = 0.99
_MOST_ROWS = 5_000
# Levels, and ranges of numbers, that are compared; each needs some rows.
_MOST_CODES, _ROWS_PER_CODE = 100, 10
_RANGES = 50
# Equal rows are copies only if a column has more different values than this.
_FEWEST_VALUES = 100


def repeated(read: Mapping[str, pd.Series]) -> dict[str, str]:
    """Return the columns that say the same as an earlier one, each with that column.

    Numbers say the same if one explains 99 % of the variance of the other, by value or by rank; words, and
    few numbers, if each value belongs to exactly one of the other.
    """
    sample = {name: values.iloc[:: max(1, len(values) // _MOST_ROWS)] for name, values in read.items()}
    numbers = pd.DataFrame({name: own for name, own in sample.items() if own.dtype.kind == "f"})
    equal = pd.DataFrame(False, numbers.columns, numbers.columns)
    for own in (numbers, numbers.rank()):
        with np.errstate(invalid="ignore", divide="ignore"):
            equal |= np.square(np.corrcoef(own.fillna(own.mean()), rowvar=False)) > _EQUAL
    pairs: dict[str, str] = {}
    # Numbered by first appearance, columns that are one-to-one have the same codes.
    firsts: dict[bytes, str] = {}
    for name, values in sample.items():
        codes = values.factorize()[0]
        few = 0 < codes.max(initial=0) < min(_MOST_CODES, codes.size // _ROWS_PER_CODE)
        first = firsts.setdefault(codes.tobytes(), name) if few else name
        if first == name and name in equal:
            alike = [
                other
                for other in equal.columns[equal[name]]
                if other not in pairs and (sample[other].isna() != values.isna()).mean() <= 1.0 - _EQUAL
            ]
            first = alike[0]
        if first != name:
            pairs[name] = first
    return pairs


def telling(read: Mapping[str, pd.Series], y: np.ndarray) -> list[str]:
    """Return the columns that alone tell the target y, numbers or classes with missing values."""
    known = np.flatnonzero(pd.notna(y))[:_MOST_ROWS]
    y = y[known]
    numbers = np.issubdtype(y.dtype, np.number)
    target = y if numbers else pd.factorize(y)[0]
    if len(np.unique(target)) < 2:
        return []
    return [name for name, values in read.items() if _share(values.iloc[known], target, numbers) > _EQUAL]


def equal_rows(table: pd.DataFrame) -> np.ndarray | None:
    """Return a number for every row, the same for equal rows; None if no row is a copy.

    In tables of a few levels, equal rows are no copies.
    """
    codes = pd.util.hash_pandas_object(table, index=False).factorize()[0]
    if (
        codes.max(initial=-1) == len(codes) - 1
        or max(map(pd.Series.nunique, map(table.get, table))) <= _FEWEST_VALUES
    ):
        return None
    return np.asarray(codes)


def _share(values: pd.Series, y: np.ndarray, numbers: bool) -> float:
    """Return the share of the variance of y that a column explains, or of the rows of minor classes."""
    codes = values.factorize()[0]
    if values.dtype.kind == "f":
        if numbers and values.notna().all() and values.nunique() > 1:
            ranks = np.corrcoef(values.rank(), pd.Series(y).rank())[0, 1]
            if max(np.corrcoef(values, y)[0, 1] ** 2, ranks**2) > _EQUAL:
                return 1.0
        if codes.max() >= _RANGES:
            ranks = values.rank(method="min", pct=True).fillna(-1.0)
            codes = np.floor(_RANGES * ranks.to_numpy()).astype(int)
    if codes.max() >= max(1, codes.size // _ROWS_PER_CODE):
        return 0.0
    codes -= codes.min()
    if numbers:
        means = np.bincount(codes, y) / np.maximum(np.bincount(codes), 1)
        return float(1.0 - np.square(y - means[codes]).sum() / np.square(y - y.mean()).sum())
    most, right = (
        np.bincount(y).max(),
        sp.coo_array((np.ones(y.size), (codes, y))).toarray().max(axis=1).sum(),
    )
    return float((right - most) / (y.size - most))
