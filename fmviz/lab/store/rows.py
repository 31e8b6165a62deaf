"""Encoded rows of a file that is larger than memory: a folder of batches, read by blocks of rows."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.engine.memory import in_words
from fmviz.lab.files import data_folder
from fmviz.lab.quotas import disk_limit
from fmviz.tables.batches import TableFile, TableSample
from fmviz.tables.encoded import Encoded, applied
from fmviz.tables.encoder import TableEncoder
from fmviz.tables.source import Source
from fmviz.tables.target import TargetEncoding
from fmviz.typography import duration

# A file gets its name when it is complete.
_BATCHES = "[0-9]*.npz"
# The number of rows of a part, about.
_PART_ROWS = 500_000
# The time of both passes, as a multiple of that of the first.
_PASSES = 3.5


@dataclass(frozen=True, eq=False)
class StoredRows:
    """The encoded rows of a file.

    Attributes
    ----------
    folder : Path
        Their folder. Names of batches are the numbers of rows read and stored up to their ends.
    target, encoder : TargetEncoding, TableEncoder
        The encoding.
    """

    folder: Path
    target: TargetEncoding
    encoder: TableEncoder

    @property
    def batches(self) -> list[Path]:
        """The files of the batches, in order."""
        return sorted(self.folder.glob(_BATCHES))

    @property
    def sources(self) -> list[Callable[[], sp.csr_array]]:
        """Functions that return X, part by part; see `fmviz.engine.parts.Parts`."""
        batches = self.batches
        count = min(len(batches), 1 + int(batches[-1].stem.split("_")[1]) // _PART_ROWS)
        ends = [len(batches) * part // count for part in range(count + 1)]
        return [partial(_read, batches[begin:end], self._has_values) for begin, end in pairwise(ends)]

    @property
    def y(self) -> np.ndarray:
        """The target of all rows, shape (N,) or (N, m)."""
        return np.concatenate([np.load(path)["y"] for path in self.batches])

    def delete(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @cached_property
    def _has_values(self) -> np.ndarray:
        """The mask of the features of numbers; those of words and of missing values are indicators."""
        return np.concatenate(
            [
                np.arange(len(column.feature_names)) < (column.kind == "number") * len(column.labels)
                for column in self.encoder.columns_
            ]
        )

    def _arrays(self, encoded: Encoded) -> dict[str, Any]:
        """Return the contents of the file of encoded rows."""
        X = sp.csr_array(encoded.X)
        return {
            "indices": X.indices.astype(np.int32),
            "indptr": X.indptr.astype(np.int32),
            "values": X.data[self._has_values[X.indices]],
            "y": encoded.y,
        }


def _read(paths: list[Path], has_values: np.ndarray) -> sp.csr_array:
    """Return X of some batches. Pages of mapped files would count as memory of the process."""
    parts = []
    for path in paths:
        with np.load(path) as file:
            indices, indptr, values = (file[name] for name in ("indices", "indptr", "values"))
        data = np.ones(indices.size)
        data[has_values[indices]] = values
        parts.append(sp.csr_array((data, indices, indptr), shape=(indptr.size - 1, has_values.size)))
    return sp.csr_array(sp.vstack(parts))


def folder_of(file: TableFile, asked: Mapping[str, Any]) -> Path:
    """Return the folder of the encoded rows of a file, next to the run store.

    Parameters
    ----------
    file : TableFile
        The file.
    asked : mapping
        All options on which the encoding depends, as values for JSON.
    """
    version = str(file.path.resolve()), file.path.stat().st_size, file.path.stat().st_mtime_ns
    key = json.dumps([*version, file.reading.to_dict(), dict(asked)])
    return data_folder() / f"rows_{sha256(key.encode()).hexdigest()[:16]}"


def cost(file: TableFile) -> str:
    """Return a sentence on what `stored_rows` will take, from the time of the first batch."""
    sample, begin = TableSample(), time.monotonic()
    sample.add(next(file.batches()))
    seconds = _PASSES * (time.monotonic() - begin) * file.n_rows / sample.n_rows
    return (
        f"{file.path.name} has {file.n_rows:,} rows, which are read in two passes, in {duration(seconds)}, "
        f"and need about {in_words(file.n_rows * (12 + 12 * len(file.names)))} on disk."
    )


def stored_rows(
    file: TableFile, folder: Path, learn: Callable[[TableSample], tuple[TargetEncoding, TableEncoder | None]]
) -> Generator[str, None, StoredRows]:
    """Encode the rows of a file into a folder; yield its progress as sentences, and return the rows.

    If it was interrupted, even by the end of the process, it continues behind the last batch in the folder.

    Parameters
    ----------
    file : TableFile
        The file.
    folder : Path
        See `folder_of`.
    learn : callable
        Returns the encoding, given a sample of the rows; see `fmviz.tables.recipe.learned`.

    Raises
    ------
    ValueError
        If the file cannot be read or encoded, or needs too much disk space.
    """
    encoding = folder / "encoding.json"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not encoding.is_file():
            new = folder / f"new_{os.getpid()}"
            new.write_text(json.dumps((yield from _learned(file, folder, learn))), encoding="utf-8")
            new.replace(encoding)
        target, encoder = json.loads(encoding.read_bytes())
        rows = StoredRows(folder, TargetEncoding.from_dict(target), TableEncoder.from_dict(encoder))
        yield from _encoded(file, rows)
        return rows
    except OSError as error:
        raise ValueError(
            f"The encoded rows cannot be stored in {folder} ({error.strerror}). Free disk space, or choose "
            "another folder with FMVIZ_STORE."
        ) from None


def _learned(
    file: TableFile, folder: Path, learn: Callable[[TableSample], tuple[TargetEncoding, TableEncoder | None]]
) -> Generator[str, None, list[dict[str, Any]]]:
    """Learn the encoding, and check the limit of the disk."""
    sample, begin = TableSample(), time.monotonic()
    for table in file.batches():
        sample.add(table)
        yield _progress("Learning", file, sample.n_rows, sample.n_rows, begin)
    target, encoder = learn(sample)
    assert encoder is not None, "tables have an encoding"
    encoded = applied(Source(file.reading, sample.table), target, encoder)
    arrays = StoredRows(folder, target, encoder)._arrays(encoded)
    n_bytes = sum(array.nbytes for array in arrays.values()) * sample.n_rows / len(sample.table)
    if n_bytes > (most := disk_limit(folder)):
        raise ValueError(
            f"The encoded rows of {file.path.name} need about {in_words(n_bytes)} on disk, more than "
            f"{in_words(most)}, which is FMVIZ_DISK or half of the free space. Raise FMVIZ_DISK, choose "
            "another disk with FMVIZ_STORE, ignore columns, or take a sample of the rows."
        )
    return [target.to_dict(), encoder.to_dict()]


def _encoded(file: TableFile, rows: StoredRows) -> Generator[str, None, None]:
    """Write the batches that are not yet in the folder."""
    new = rows.folder / f"new_{os.getpid()}.npz"
    names = ["0_0", *(path.stem for path in sorted(rows.folder.glob(_BATCHES)))]
    (read, n), begin = map(int, names[-1].split("_")), time.monotonic()
    first = read
    used = {*(own.origin for own in rows.encoder.columns_), *rows.encoder.dates_, *rows.target.names}
    for table in file.batches([name for name in file.names if name in used], read):
        encoded = applied(Source(file.reading, table), rows.target, rows.encoder, batch=True)
        read, n = read + len(table), n + len(encoded.rows)
        np.savez(new, **rows._arrays(encoded))
        new.replace(rows.folder / f"{read:015}_{n:015}.npz")
        yield _progress("Encoding", file, read, read - first, begin)


def _progress(what: str, file: TableFile, done: int, n: int, begin: float) -> str:
    """Return a sentence on rows that are done, with the rate of those of this process and the time left."""
    rate = n / max(time.monotonic() - begin, 1e-3)
    remaining = duration(max(0, file.n_rows - done) / rate)
    return f"{what} {file.path.name}: {done:,} of {file.n_rows:,} rows, {rate:,.0f} rows/s, {remaining} left"
