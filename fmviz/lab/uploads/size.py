"""Compute the size of an encoded upload, and estimate the cost of training on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.tables.encoded import Encoded

__all__ = ["Part", "Size"]

_FLOAT, _INDEX = 8, 4
# Seconds per entry of X, column of P and epoch: a measured upper estimate.
_SECONDS = 3e-9


@dataclass(frozen=True)
class Part:
    """The features of one column, and their non-zero entries."""

    name: str
    kind: str
    features: int
    entries: int


@dataclass(frozen=True)
class Size:
    """The size of an encoded file.

    Attributes
    ----------
    rows, dropped : int
        The number of complete rows, and of rows dropped for a missing value.
    parts : tuple of Part
        The columns; a single part for libsvm.
    task : str
        See `fmviz.lab.datasets.base.Task`.
    labels : tuple of str
        The labels of -1 and +1, or of the classes; the names of several columns.
    counts : tuple of int
        The number of rows of each class, or of each of several labels.
    sparse : bool
        Whether X is sparse.
    notes : tuple of str
        A sentence for every column without features.
    """

    rows: int
    dropped: int
    parts: tuple[Part, ...]
    task: str
    labels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    sparse: bool = True
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, encoded: Encoded) -> Size:
        """Measure encoded data; raises ValueError if a class has no complete row."""
        assert encoded.y is not None
        target, encoder, y = encoded.target, encoded.encoder, encoded.y
        values = [-1, 1] if target.task == "binary" else range(len(target.labels))
        counts = tuple(int((y == value).sum()) for value in values) if target.labels else ()
        if target.task == "several":
            counts = tuple(int(count) for count in (y > 0).sum(axis=0))
            if not 0 < min(counts) <= max(counts) < len(y):
                raise ValueError(
                    "Of the rows without a missing value all are alike in one of the labels. Impute what is "
                    "missing, or ignore columns."
                )
        if target.labels and 0 in counts:
            raise ValueError(
                f"Of the rows without a missing value none is {target.labels[counts.index(0)]!r}. Impute "
                "what is missing, or ignore columns."
            )
        X: Any = encoded.X
        sparse = sp.issparse(X)
        entries = np.bincount(X.indices, minlength=X.shape[1]) if sparse else (X != 0).sum(axis=0)
        parts: tuple[Part, ...] = (Part("all features", "number", entries.size, int(entries.sum())),)
        if encoder is not None:
            widths = [len(column.feature_names) for column in encoder.columns_]
            stored = np.add.reduceat(entries, np.cumsum([0, *widths[:-1]]))
            kinds = {"number": "number", "word": "words", "text": "words of texts"}
            parts = tuple(
                Part(column.name, kinds[column.kind], width, int(count))
                for column, width, count in zip(encoder.columns_, widths, stored, strict=True)
            )
        notes = target.sentences + (() if encoder is None else encoder.sentences_)
        labels = target.labels or target.outputs
        return cls(len(y), encoded.dropped, parts, target.task, labels, counts, bool(sparse), notes)

    @property
    def features(self) -> int:
        """d, the columns of X."""
        return sum(part.features for part in self.parts)

    @property
    def entries(self) -> int:
        """The non-zeros of X."""
        return sum(part.entries for part in self.parts)

    @property
    def bytes_of_X(self) -> int:
        """The memory of X, stored by rows and by columns as during training."""
        pointers = (self.rows + self.features + 2) * _FLOAT
        if self.sparse:
            return 2 * self.entries * (_FLOAT + _INDEX) + pointers
        return 2 * self.rows * self.features * _FLOAT + pointers

    def bytes_of_P(self, rank: int) -> int:
        """Return the memory of P."""
        return self.features * rank * _FLOAT

    def seconds(self, rank: int, epochs: int) -> float:
        """Return an upper estimate of the time of so many epochs, of a machine for each output."""
        machines = max(1, len(self.labels)) if self.task != "binary" else 1
        return _SECONDS * self.entries * rank * epochs * machines
