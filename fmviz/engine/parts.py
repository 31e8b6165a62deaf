"""X in parts: blocks of rows on a disk, or with the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from .design import DENSE, SPARSE, Design, RowBlock
from .memory import aligned_copy
from .threads import IN_TURN, Threads


class Part(Design):
    """A block of rows that is read whenever it is used.

    Attributes
    ----------
    source : callable or delayed
        See `Parts`.
    """

    def __init__(self, source: Any, parts: Parts, n: int) -> None:
        self.source = source
        self.dtype, self.storage, self._n_all = parts.dtype, parts.storage, parts.n_samples
        self.shape = self.n_samples, self.n_features = n, parts.n_features

    def __getstate__(self) -> dict[str, Any]:
        # Workers get the rows separately.
        return {**vars(self), "source": None}

    @property
    def row_blocks(self) -> tuple[Design, ...]:
        return (self,)

    def loaded(self, rows: Any = None) -> Design:
        X = _read(self.source if rows is None else rows)
        if self.storage is DENSE:
            X = aligned_copy(np.asarray(X).T, self.dtype).T
        else:
            X = sp.csr_array(X, dtype=self.dtype, copy=True)
            X.sum_duplicates()
            X.eliminate_zeros()
        return RowBlock(X, self.storage, self.dtype, self._n_all)


class Parts(Design):
    """X in parts that need not fit into memory together, for solvers that only need sums over rows.

    Parameters
    ----------
    sources : sequence
        For every part, in order, a function without arguments that returns some rows of X, as an array or a
        sparse matrix; it is called whenever they are needed, several times per epoch. For a mapper to a
        cluster, delayed objects of Dask.
    dtype : {"float64", "float32"}
        See `Design`.
    mapper : Threads, optional
        The mapper for problems with this X; see `fmviz.engine.problem.Problem`.

    Raises
    ------
    ValueError
        If the parts have different columns, or one is not a table of finite numbers.

    Examples
    --------
    >>> import fmviz, numpy as np
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> fmviz.Parts([lambda: X[:4], lambda: X[4:]]).shape
    (6, 2)
    """

    in_memory: ClassVar[bool] = False

    def __init__(self, sources: Sequence[Any], dtype: str = "float64", mapper: Threads | None = None) -> None:
        self.dtype, self.mapper, self._sources = dtype, mapper, tuple(sources)
        each = [*(mapper or IN_TURN)(partial(_summary, dtype), self._sources)]
        widths = sorted({part["counts"].size for part in each})
        if len(widths) != 1:
            raise ValueError(
                f"X has {len(each)} parts with {widths} columns. Give at least one part, and the same "
                "columns in all parts."
            )
        sizes = [part["n"] for part in each]
        self._edges = np.cumsum([0, *sizes])
        self.shape = self.n_samples, self.n_features = sum(sizes), widths[0]
        self.counts, self.squares = (sum(part[name] for part in each) for name in ("counts", "squares"))
        self.largest, self.nnz = np.max([part["largest"] for part in each], axis=0), int(self.counts.sum())
        kinds = {part["storage"] for part in each}
        self.storage = kinds.pop() if len(kinds) == 1 else SPARSE

    @cached_property
    def row_blocks(self) -> tuple[Design, ...]:
        sizes = np.diff(self._edges).tolist()
        return tuple(Part(source, self, n) for source, n in zip(self._sources, sizes, strict=True))

    def collected(self, blocks: slice = slice(None)) -> Any:
        each = [*(self.mapper or IN_TURN)(_matrix, self.row_blocks[blocks])]
        return np.vstack(each) if self.storage is DENSE else sp.csr_array(sp.vstack(each))

    def of_rows(self, rows: np.ndarray) -> Self:
        """Return the design of some rows in order, given by indices or a mask."""
        chosen = np.zeros(self.n_samples, dtype=bool)
        chosen[rows] = True
        each = [chosen[begin:end] for begin, end in pairwise(self._edges)]
        return self.transformed([partial(_taken, mask) if mask.any() else None for mask in each])

    def transformed(self, functions: Iterable[Callable[[Any], Any] | None]) -> Self:
        """Return the design with a function applied to the rows of each part, without parts of None."""
        then, each = (self.mapper or IN_TURN).then, zip(functions, self._sources, strict=False)
        sources = [then(function, source) for function, source in each if function is not None]
        return type(self)(sources, self.dtype, self.mapper)


def _read(source: Any) -> Any:
    return source() if callable(source) else source


def _matrix(part: Design) -> Any:
    return part.loaded().matrix


def _taken(chosen: np.ndarray, X: Any) -> Any:
    return (sp.csr_array(X) if sp.issparse(X) else np.asarray(X))[chosen]


def _summary(dtype: str, source: Any) -> dict[str, Any]:
    """Check a part, and return what `Parts` knows of it."""
    part = Design(_read(source), dtype)
    known = {name: getattr(part, name) for name in ("counts", "squares", "largest", "storage")}
    return {"n": part.n_samples, **known}
