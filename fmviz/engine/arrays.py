"""Arrays of an NPZ archive, with headers checked before reading."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Mapping
from math import inf, prod
from typing import IO
from zipfile import BadZipFile, ZipFile

import numpy as np

from .memory import available_bytes, in_words

UNREADABLE = (
    *(BadZipFile, zlib.error, OSError, EOFError, RuntimeError, NotImplementedError),
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
)
"""Exceptions raised when reading broken, encrypted or forged archives."""
_KINDS = "biufU"
_LONGEST_HEADER = 10_000


class Arrays(Mapping[str, np.ndarray]):
    """Numeric and text arrays by name, read on access.

    Parameters
    ----------
    data : bytes
        The archive.
    most : float
        The maximum total number of bytes; never more than half of the free memory.

    Attributes
    ----------
    shapes : dict of str to tuple of int
        The shape of every array, from the headers.

    Raises
    ------
    ValueError
        If an array has an unsupported type or is incomplete, or if all arrays together are too large. Data
        that are not an archive, or a damaged one, raise one of `UNREADABLE`.
    """

    def __init__(self, data: bytes, most: float = inf) -> None:
        self._archive = ZipFile(io.BytesIO(data))
        self.shapes: dict[str, tuple[int, ...]] = {}
        n_bytes = 0
        for entry in self._archive.infolist():
            name = entry.filename.removesuffix(".npy")
            with self._archive.open(entry) as member:
                self.shapes[name], dtype = _header(member)
            if dtype.kind not in _KINDS:
                raise ValueError(f"array {name!r} is of type {dtype}, neither numbers nor text")
            size = prod(self.shapes[name]) * dtype.itemsize
            if size > entry.file_size:
                raise ValueError(f"array {name!r} is incomplete")
            n_bytes += size
        if n_bytes > (most := min(most, available_bytes() / 2)):
            raise ValueError(f"its arrays take {in_words(n_bytes)}, but only {in_words(most)} are allowed")

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.shapes:
            raise KeyError(name)
        with self._archive.open(f"{name}.npy") as member:
            return np.lib.format.read_array(member, allow_pickle=False, max_header_size=_LONGEST_HEADER)

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Read the shape and the type of an array."""
    version = np.lib.format.read_magic(member)
    read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}[version[0]]
    shape, _, dtype = read(member, max_header_size=_LONGEST_HEADER)
    return shape, dtype
