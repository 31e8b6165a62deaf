"""How large the data set is that an upload becomes, and what training on it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.lab.tables.encoding import Encoded

__all__ = ["Part", "Size"]

_FLOAT, _INDEX = 8, 4
# Seconds for an entry of X and a column of P, an epoch; measured, and rather too long.
_SECONDS = 3e-9


@dataclass(frozen=True)
class Part:
    """What one column becomes: features, and entries that are not zero."""

    name: str
    kind: str
    features: int
    entries: int


@dataclass(frozen=True)
class Size:
    """What a recipe makes of a file.

    Attributes
    ----------
    rows, dropped : int
        Rows that are kept, and those left out since something is missing.
    parts : tuple of Part
        The columns; one for all of libsvm.
    task : str
        "regression" or "binary".
    labels : tuple of str
        The words for -1 and +1.
    positives : int
        Rows of +1.
    sparse : bool
        Whether the zeros of X take no memory.
    notes : tuple of str
        A sentence for every column that was left out.
    """

    rows: int
    dropped: int
    parts: tuple[Part, ...]
    task: str
    labels: tuple[str, ...] = ()
    positives: int = 0
    sparse: bool = True
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Encoded) -> Size:
        """Measure; raises ValueError where all rows that are kept are of one class."""
        assert found.y is not None
        target, encoding = found.target, found.encoding
        positives = int((found.y > 0).sum()) if target.task == "binary" else 0
        if target.task == "binary" and positives in (0, found.y.size):
            raise ValueError(
                "Of the rows without a missing value all are of one class. Impute what is missing, or ignore "
                "columns."
            )
        X: Any = found.X
        sparse = sp.issparse(X)
        entries = np.bincount(X.indices, minlength=X.shape[1]) if sparse else (X != 0).sum(axis=0)
        parts: tuple[Part, ...] = (Part("all features", "number", entries.size, int(entries.sum())),)
        if encoding is not None:
            widths = [len(column.feature_names) for column in encoding.columns]
            counts = np.add.reduceat(entries, np.cumsum([0, *widths[:-1]]))
            kinds = {"number": "number", "word": "words", "text": "words of texts"}
            parts = tuple(
                Part(column.name, kinds[column.kind], width, int(count))
                for column, width, count in zip(encoding.columns, widths, counts, strict=True)
            )
        notes = () if encoding is None else encoding.notes
        n = found.y.size
        return cls(n, found.dropped, parts, target.task, target.labels, positives, bool(sparse), notes)

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
        """What X takes by rows and by columns, as it does while a model is trained."""
        pointers = (self.rows + self.features + 2) * _FLOAT
        if self.sparse:
            return 2 * self.entries * (_FLOAT + _INDEX) + pointers
        return 2 * self.rows * self.features * _FLOAT + pointers

    def bytes_of_P(self, rank: int) -> int:
        """Return what P takes."""
        return self.features * rank * _FLOAT

    def seconds(self, rank: int, epochs: int) -> float:
        """About how long so many epochs take, rather too long."""
        return _SECONDS * self.entries * rank * epochs
