"""The design matrix in the canonical forms read by kernels.

Kernels access X by columns or rows through a triple ``(data, indices, indptr)`` and two small functions,
`row` and `value`, which the storage supplies at compile time. Dense, sparse and binary designs thus share
every kernel without a branch in the inner loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from ._jit import jitable
from .errors import LARGEST, one_of, whole_number
from .memory import aligned_copy, array_bytes

# The numbers of rows and columns widened at a time, few enough to stay in a cache.
_SIDE = 256


class Widened:
    """X with every entry raised to a power, widened to double precision block by block.

    Parameters
    ----------
    columns : (d, N) float32 ndarray
        Xᵀ.
    exponent : int
        The power, at least 1.
    """

    def __init__(self, columns: np.ndarray, exponent: int = 1) -> None:
        self._columns, self._exponent = columns, exponent

    @property
    def T(self) -> Widened:
        """The transpose."""
        return Widened(self._columns.T, self._exponent)

    def __matmul__(self, right: np.ndarray) -> np.ndarray:
        n_inner, n_rows = self._columns.shape
        out = np.zeros((n_rows, *right.shape[1:]))
        for rows in _ranges(n_rows):
            for inner in _ranges(n_inner):
                wide = self._columns[inner, rows].astype(np.float64)
                out[rows] += reduce(np.multiply, [wide] * self._exponent).T @ right[inner]
        return out


def _ranges(count: int) -> Iterator[slice]:
    for begin in range(0, count, _SIDE):
        yield slice(begin, begin + _SIDE)


_SMALL = 1e-30


@jitable
def dense_row(rows, i):
    return i


@jitable
def sparse_row(rows, i):
    return rows[i]


@jitable
def stored_value(column, i):
    # Kernels compute in double precision, regardless of the storage of X.
    return np.float64(column[i])


@jitable
def unit_value(column, i):
    return 1.0


@jitable
def line(data, indices, indptr, j):
    """Return the values and the indices of column (or row) j of `Compressed` arrays, and their number."""
    begin, end = indptr[j], indptr[j + 1]
    return data[begin:end], indices[begin:end], end - begin


@dataclass(frozen=True)
class Storage:
    """Access to entry i of a column, given its slices of `indices` and `data`."""

    name: str
    row: Callable[[Any, int], int]
    value: Callable[[Any, int], float]

    def __reduce__(self) -> Any:
        # The same object in all processes, since storages are compared by identity.
        return _storage_named, (self.name,)


def _storage_named(name: str) -> Storage:
    return STORAGES[name]


DENSE = Storage("dense", dense_row, stored_value)
SPARSE = Storage("sparse", sparse_row, stored_value)
BINARY = Storage("binary", sparse_row, unit_value)

STORAGES: dict[str, Storage] = {s.name: s for s in (DENSE, SPARSE, BINARY)}
DTYPES = ("float64", "float32")
# Some solvers have special kernels for binary designs whose rows are pairs of ones.
PAIRS = "pairs"
LAYOUTS = (*STORAGES, PAIRS)


class Compressed(NamedTuple):
    """X by columns or rows: entries ``indptr[j]`` to ``indptr[j + 1]`` belong to column (or row) j.

    `indices` is empty for a dense design and `data` for a binary one. By rows, `row` of a storage returns the
    column of entry i, since it reads `indices`.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class Partners(NamedTuple):
    """The feature pairs of an X in which each row is a pair of ones.

    Attributes
    ----------
    other : (2N,) unsigned ndarray
        The other feature of the row of every entry, in the order of `Design.columns`.
    first, second : (N,) unsigned ndarrays
        The features of every row, the smaller index first.
    """

    other: np.ndarray
    first: np.ndarray
    second: np.ndarray


# The maximum mean number of entries per row for which a sparse X is multiplied by one column at a time: all
# results together exceed X, while a single one stays in the caches.
_THIN = 4
# The number of entries from which a sparse X is multiplied by rows, and the number of columns at a time;
# gathered values then stay in the caches.
_MANY, _WIDTH = 1_000_000, 8
# The size beyond which products with a sparse X are not stored if rows can be processed one by one.
_MOST_NUMBERS = 1_000_000
# The maximum number of entries, 8 MB, of cached powers of X, which every gradient needs.
_KEPT_POWERS = 1_000_000
# The minimum number of rows of a block, and the maximum number of blocks. The number is a power of two: 2, 4,
# 8 or 16 threads then get equal shares.
_BLOCK_ROWS, _MOST_BLOCKS = 10_000, 16


class Design:
    """Validated (N, d) design matrix in canonical form.

    Parameters
    ----------
    X : array_like or sparse matrix of shape (N, d)
        Finite numbers. Sparse input of any format is converted to CSC with sorted, unique indices and no
        stored zeros; if all stored values are 1, no values are kept. The input is never modified.
    dtype : {"float64", "float32"}
        The precision in which X is rounded and stored. "float32" halves the memory. Everything else is
        computed in double precision: all results, including certificates, refer to the rounded X.

    Attributes
    ----------
    shape : (int, int)
        The numbers N of rows, `n_samples`, and d of columns, `n_features`.
    in_memory : bool
        Whether X can be read by columns; otherwise only the rows of its `row_blocks` once they are `loaded`.

    Raises
    ------
    ValueError
        If X is not a non-empty two-dimensional table of finite numbers, or has a number too large for
        `dtype`.
    """

    in_memory: ClassVar[bool] = True

    def __init__(self, X: Any, dtype: str = "float64") -> None:
        self.dtype = one_of("dtype", dtype, DTYPES)
        self._powers: dict[int, Any] = {}
        if sp.issparse(X):
            self._from_sparse(X)
        else:
            self._from_dense(X)
        # X by columns and, from the first use, by rows; shared with blocks of rows.
        self._forms = {"columns": self.matrix}
        self._take_shape()

    def _take_shape(self) -> None:
        self.shape: tuple[int, int] = self.matrix.shape
        self.n_samples, self.n_features = self.shape

    def _from_sparse(self, X: Any) -> None:
        check_format(X)
        matrix = sp.csc_array(X, copy=True)
        if matrix.dtype.kind not in "fiub":
            raise ValueError(f"X has values of type {matrix.dtype}; use real numbers.")
        matrix = matrix.astype(np.float64)
        matrix.sum_duplicates()
        if matrix.indices.dtype == np.int64 and max(matrix.nnz, *matrix.shape) < 2**31:
            # Half the memory; the index type of the input may not have been a choice.
            narrow = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
            matrix = sp.csc_array((matrix.data, *narrow), shape=matrix.shape)
        _check_shape(matrix.shape)
        _check_finite(matrix.data)
        if self.dtype != "float64":
            with np.errstate(over="ignore"):
                matrix = matrix.astype(self.dtype)
            _check_fits(matrix.data)
        matrix.eliminate_zeros()
        matrix.sort_indices()
        # Unsigned: a kernel need not check for negative indices.
        index = np.uint32 if matrix.shape[0] < 2**32 else np.uint64
        self.storage = BINARY if matrix.nnz and (matrix.data == 1.0).all() else SPARSE
        self.columns = Compressed(
            np.empty(0) if self.storage is BINARY else matrix.data,
            _unsigned(matrix.indices, index),
            matrix.indptr.astype(np.int64),
        )
        self.matrix: Any = matrix
        self.nnz = int(matrix.nnz)

    def _from_dense(self, X: Any) -> None:
        try:
            array = np.asarray(X)
            if array.dtype.kind not in "fiubc":
                array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X contains a value that is not a number ({error}); encode text as numbers first."
            ) from None
        if array.dtype.kind == "c":
            raise ValueError("X has complex numbers; use real ones.")
        _check_shape(array.shape)
        with np.errstate(over="ignore"):
            columns = aligned_copy(array.T, self.dtype)
        if self.dtype != "float64" and np.isfinite(array).all():
            _check_fits(columns)
        _check_finite(columns)
        n_features, n_samples = columns.shape
        self.storage = DENSE
        self.columns = Compressed(
            columns.reshape(-1),
            np.empty(0, dtype=np.uint32),
            np.arange(n_features + 1, dtype=np.int64) * n_samples,
        )
        self.matrix = columns.T
        self.nnz = int(columns.size)

    @property
    def n_bytes(self) -> int:
        """The memory of all forms of X created so far."""
        return array_bytes(*vars(self).values())

    @cached_property
    def largest(self) -> np.ndarray:
        """The largest |x_nj| of every column, shape (d,)."""
        largest = abs(self.matrix).max(axis=0)
        return (largest.toarray() if sp.issparse(largest) else largest).ravel().astype(np.float64)

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of non-zero entries of every column, shape (d,)."""
        return np.asarray((self.matrix != 0).sum(axis=0)).ravel()

    @cached_property
    def squares(self) -> np.ndarray:
        """The sum of the squares of every column, shape (d,)."""
        return self.transpose_dot(np.ones(self.n_samples), 2)

    def loaded(self) -> Design:
        """Return the rows in memory: this design, unless it is read whenever it is used."""
        return self

    def collected(self, blocks: slice = slice(None)) -> Any:
        """Return X, or some of its blocks of rows, in memory."""
        return self.matrix

    def of_rows(self, rows: np.ndarray) -> Design:
        """Return the design of some rows, given by index."""
        return Design(self.take(rows), self.dtype)

    def take(self, rows: np.ndarray) -> Any:
        """Return some rows, given by index, as an array or a sparse array."""
        return self.matrix[rows]

    def dense(self, features: Any = slice(None)) -> np.ndarray:
        """Return X, or some of its columns, as an array in double precision, for models that form it."""
        part = self.matrix[:, features]
        return (
            part.toarray().astype(np.float64, copy=False)
            if sp.issparse(part)
            else np.asarray(part, np.float64)
        )

    def check_size(self) -> None:
        """Raise ValueError if squares and products of columns would overflow or underflow."""
        largest = float(self.largest.max())
        if largest and not _SMALL <= largest <= 1.0 / _SMALL:
            raise ValueError(
                f"The largest absolute value of X is {largest:.3g}, but fits support {_SMALL:g} to "
                f"{1.0 / _SMALL:g}; scale the columns first, for example with scikit-learn's StandardScaler."
            )

    @cached_property
    def longest_column(self) -> int:
        """The largest number of stored entries in a column."""
        return int(np.diff(self.columns.indptr).max())

    @property
    def row_blocks(self) -> tuple[Design, ...]:
        """The blocks of rows over which sums are computed: they depend on X only, not on threads."""
        return (self,) if self.n_samples < 2 * _BLOCK_ROWS else self._row_blocks

    @cached_property
    def _row_blocks(self) -> tuple[Design, ...]:
        n = self.n_samples
        # Sums have the size of the parameters: a block has as many entries as there are features.
        most = min(n // _BLOCK_ROWS, max(1, self.nnz // self.n_features))
        count = min(_MOST_BLOCKS, 1 << most.bit_length() - 1)
        edges = [n * b // count for b in range(count + 1)]
        X = self.matrix if self.storage is DENSE else self.by_rows
        blocks = (
            RowBlock(_rows(X, *ends), self.storage, self.dtype, n, partial(self._by_rows_of, *ends))
            for ends in pairwise(edges)
        )
        return tuple(blocks)

    def _by_rows_of(self, begin: int, end: int) -> Any:
        return _rows(self.by_rows, begin, end)

    @property
    def by_rows(self) -> Any:
        """X as an array with contiguous rows, or as a CSR array with sorted indices; made on first use."""
        if (matrix := self._forms.get("rows")) is None:
            columns = self._forms["columns"]
            if self.storage is DENSE:
                matrix = np.ascontiguousarray(columns)
            else:
                matrix = columns.tocsr()
                matrix.sort_indices()
                if self.storage is BINARY:
                    # All are 1.
                    matrix.data = columns.data
            self._forms["rows"] = matrix
        return matrix

    @cached_property
    def rows(self) -> Compressed:
        """X by rows, for stochastic solvers, created on first use."""
        (n_samples, n_features), matrix = self.shape, self.by_rows
        if self.storage is DENSE:
            return Compressed(
                matrix.reshape(-1),
                np.empty(0, dtype=np.uint32),
                np.arange(n_samples + 1, dtype=np.int64) * n_features,
            )
        return Compressed(
            np.empty(0) if self.storage is BINARY else matrix.data,
            _unsigned(matrix.indices, np.uint32 if n_features < 2**32 else np.uint64),
            matrix.indptr.astype(np.int64),
        )

    @cached_property
    def fields(self) -> list[int]:
        """The first columns of the fields of a sparse X, and d.

        A field is a range of columns of which every row has at most one, such as the levels of a category.
        """
        X, preceding = self.by_rows, np.full(self.n_features, -1)
        inner = np.ones(self.nnz + 1, dtype=bool)
        inner[X.indptr] = False
        # The column before, in the same row.
        at = np.flatnonzero(inner[:-1])
        np.maximum.at(preceding, X.indices[at], X.indices[at - 1])
        begins = [0]
        for j, column in enumerate(preceding.tolist()):
            if column >= begins[-1]:
                begins.append(j)
        return [*begins, self.n_features]

    @cached_property
    def longest_row(self) -> int:
        """The largest number of stored entries in a row."""
        return int(np.diff(self.rows.indptr).max())

    @cached_property
    def partners(self) -> Partners | None:
        """The feature pairs if each row is a pair of ones, as in matrix factorization, else None."""
        if self.storage is not BINARY or self.nnz != 2 * self.n_samples:
            return None
        if (np.bincount(self.columns.indices, minlength=self.n_samples) != 2).any():
            return None
        first, second = self.rows.indices[::2].copy(), self.rows.indices[1::2].copy()
        column = np.repeat(np.arange(self.n_features, dtype=first.dtype), np.diff(self.columns.indptr))
        return Partners((first + second)[self.columns.indices] - column, first, second)

    def part(self, rows: np.ndarray, features: np.ndarray) -> Design:
        """Return some rows and columns, given by index, with the storage of the whole and no other pairs."""
        part = Design(self.take(rows)[:, features], self.dtype)
        part.storage = self.storage
        if self.storage is not DENSE:
            part.columns = part.columns._replace(
                data=np.empty(0) if self.storage is BINARY else part.matrix.data
            )
        if self.partners is None:
            part.partners = None
        return part

    @property
    def layout(self) -> str:
        """A name from `LAYOUTS`, which determines the kernels of a solver."""
        return self.storage.name if self.partners is None else PAIRS

    def power(self, exponent: int) -> Any:
        """Return X with every entry raised to `exponent`, a positive integer, for use in products."""
        if self.storage is BINARY:
            return self.matrix
        if self._widens:
            return Widened(self.matrix.T, exponent)
        if (cached := self._powers.get(exponent)) is not None:
            return cached
        matrix = self.matrix
        values = matrix.data.astype(np.float64, copy=False) if self.storage is SPARSE else matrix
        # Multiplication is much faster than exponentiation.
        raised = reduce(np.multiply, [values] * exponent)
        if self.storage is SPARSE:
            raised = type(matrix)((raised, matrix.indices, matrix.indptr), shape=matrix.shape)
        if self.nnz <= _KEPT_POWERS:
            self._powers[exponent] = raised
        return raised

    @property
    def _widens(self) -> bool:
        return self.storage is DENSE and self.dtype != "float64"

    @property
    def _factor(self) -> Any:
        # SciPy widens sparse values itself; NumPy would widen all of a dense X for every product.
        return Widened(self.matrix.T) if self._widens else self.matrix

    def dot(self, right: np.ndarray) -> np.ndarray:
        """Return X @ right."""
        if self._is_blocked(right):
            return _in_blocks(self.by_rows, right)
        return self._product(self._factor, right)

    def transpose_dot(self, right: np.ndarray, exponent: int = 1) -> np.ndarray:
        """Return Xᵀ @ right, optionally with every entry of X raised to a power."""
        if self._is_blocked(right) and (exponent == 1 or self.storage is BINARY):
            return _in_blocks(self.by_rows.T, right)
        return self._product((self._factor if exponent == 1 else self.power(exponent)).T, right)

    def _is_blocked(self, right: np.ndarray) -> bool:
        return self.nnz >= _MANY and right.ndim == 2 and self.storage is not DENSE

    def is_read_by_rows(self, width: int) -> bool:
        """Return whether X is sparse and its product with this many columns is large."""
        return self.storage is not DENSE and self.n_samples * width > _MOST_NUMBERS

    def _product(self, factor: Any, right: np.ndarray) -> np.ndarray:
        if right.ndim == 1 or self.storage is DENSE or self.nnz > _THIN * self.n_samples:
            return np.asarray(factor @ right)
        product = np.empty((right.shape[1], factor.shape[0]))
        for s, column in enumerate(right.T):
            product[s] = factor @ column
        return product.T


def _rows(X: Any, begin: int, end: int) -> Any:
    """Return rows of an array or a CSR array as views."""
    if not sp.issparse(X):
        return X[begin:end]
    indptr = X.indptr[begin : end + 1]
    entries = slice(indptr[0], indptr[-1])
    part = X.data[entries], X.indices[entries], indptr - indptr[0]
    return type(X)(part, shape=(end - begin, X.shape[1]))


class RowBlock(Design):
    """Some of N rows, as an array or a CSR array, for products and kernels by rows: it has no `columns`.

    `by_rows` returns them as an array with contiguous rows if they are a view of a larger one.
    """

    def __init__(
        self, X: Any, storage: Storage, dtype: str, n_all: int, by_rows: Callable[[], Any] | None = None
    ) -> None:
        self.dtype, self.storage, self.matrix, self._n_all = dtype, storage, X, n_all
        self._powers, self._forms = {}, {"columns" if storage is DENSE else "rows": X}
        self._contiguous = by_rows
        self._take_shape()
        self.nnz = int(X.size)

    @property
    def row_blocks(self) -> tuple[Design, ...]:
        return (self,)

    @property
    def by_rows(self) -> Any:
        return super().by_rows if self._contiguous is None else self._contiguous()

    def power(self, exponent: int) -> Any:
        if self.storage is DENSE and self.nnz > _KEPT_POWERS:
            # In tiles: writing and reading raised rows would take longer than computing them.
            return Widened(self.matrix.T, exponent)
        return super().power(exponent)

    def is_read_by_rows(self, width: int) -> bool:
        # The same kernels as for all rows.
        return self.storage is not DENSE and self._n_all * width > _MOST_NUMBERS


def _unsigned(indices: np.ndarray, dtype: Any) -> np.ndarray:
    """Return non-negative indices as unsigned numbers, in the same memory if the width is equal."""
    same = indices.dtype.itemsize == np.dtype(dtype).itemsize
    return indices.view(dtype) if same else indices.astype(dtype)


def _in_blocks(factor: Any, right: np.ndarray) -> np.ndarray:
    """Return factor @ right, computed in blocks of columns."""
    product = np.empty((factor.shape[0], right.shape[1]))
    for begin in range(0, right.shape[1], _WIDTH):
        product[:, begin : begin + _WIDTH] = factor @ right[:, begin : begin + _WIDTH]
    return product


def augmented(X: Any, n: int = 1) -> Any:
    """Append n constant dummy features of 1 to X, for inhomogeneous models.

    One turns H^m into the polynomial of all degrees up to m, and m − 1 turn A^m into the sum of A^1 to A^m
    (blondel2016, Section 8).

    Parameters
    ----------
    X : (N, d) array_like or sparse matrix
        The features; not modified.
    n : int
        The number of dummy features; 0 returns X itself.

    Returns
    -------
    (N, d + n) ndarray or, for sparse X, CSC array

    Examples
    --------
    >>> import fmviz
    >>> fmviz.augmented([[5.0, 7.0], [6.0, 8.0]]).tolist()
    [[5.0, 7.0, 1.0], [6.0, 8.0, 1.0]]
    """
    if whole_number("n", n, 0) == 0:
        return X
    if sp.issparse(X):
        return sp.hstack([sp.csc_array(X), np.ones((X.shape[0], n))], format="csc")
    table = np.asarray(X)
    return np.hstack([table, np.ones((table.shape[0], n), dtype=table.dtype)])


def check_format(X: Any) -> None:
    """Raise ValueError if indices of a sparse matrix are out of bounds, which kernels do not check."""
    if not sp.issparse(X):
        return
    try:
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
        elif X.format == "coo":
            for indices, size in zip(X.coords, X.shape, strict=True):
                if indices.size and not 0 <= indices.min() <= indices.max() < size:
                    raise ValueError("an index is outside the shape")
        elif X.format == "lil":
            _check_lists(X)
    except ValueError as error:
        raise ValueError(
            f"X is a broken sparse matrix ({error}). Rebuild it from rows, columns and values, for "
            "example with scipy.sparse.coo_array."
        ) from None


def _check_lists(X: Any) -> None:
    for n, (indices, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(indices) != len(values):
            raise ValueError(f"row {n} has {len(indices)} indices and {len(values)} values")
        if indices and not 0 <= min(indices) <= max(indices) < X.shape[1]:
            raise ValueError(f"an index of row {n} is outside the shape")


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"X has {len(shape)} dimension(s); expected a 2D table of samples by features. "
            "Reshape your data: X.reshape(-1, 1) makes one feature, X.reshape(1, -1) one sample."
        )
    for size, noun in zip(shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise ValueError(f"X has 0 {noun}(s) (shape={shape}) while a minimum of 1 is required.")


def _check_fits(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise ValueError(
            f"X contains values above the maximum of dtype='float32', {np.finfo(np.float32).max:.2g}; "
            "scale X, or use 'float64'."
        )


def _check_finite(values: np.ndarray) -> None:
    bad = values.size - int(np.count_nonzero(np.isfinite(values)))
    if bad:
        kinds = "NaN" if np.isnan(values).any() else "infinity"
        raise ValueError(
            f"X contains {kinds} ({bad} value(s) that are not finite); drop or fill those entries first."
        )
    if values.size and (largest := max(-float(values.min()), float(values.max()))) > LARGEST:
        raise ValueError(
            f"X has a value of size {largest:g}, whose square overflows; scale its columns first, for "
            "example with scikit-learn's StandardScaler."
        )
