"""Uploaded files and their data sets on disk, under content hashes.

A folder next to the run store contains every file once, as ``file_<hash>``, and a JSON entry for every data
set, as ``own_<hash>.json``. Hashes make the names unguessable.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.checked import checked
from fmviz.engine.fit import never
from fmviz.engine.memory import array_bytes
from fmviz.lab.datasets import Dataset
from fmviz.lab.datasets.readers import SAMPLE_DATA
from fmviz.lab.files import data_folder
from fmviz.lab.quotas import WeighedCache
from fmviz.lab.untrusted import describe_confined, encode_confined
from fmviz.lab.uploads import is_upload
from fmviz.tables import limits
from fmviz.tables.curves import EVERY
from fmviz.tables.encoded import Encoded
from fmviz.tables.kinds import Column
from fmviz.tables.recipe import Recipe
from fmviz.tables.source import Reading, Source
from fmviz.tables.target import Task

VERSION = 1
# Files without a data set are removed after this time.
_IDLE_SECONDS = 7 * 86_400.0
_FILE = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, eq=False)
class Upload:
    """The entry of an uploaded data set.

    Attributes
    ----------
    name : str
        ``own_`` and a hash of file and recipe.
    title : str
        The title.
    file : str
        The hash of the file.
    recipe : Recipe
        The options of reading and encoding the file.
    task : str
        See `fmviz.tables.target.Task`.
    rows, features : int
        N and d.
    bytes : int
        The size of the file.
    suggested : mapping
        Settings for a first fit.
    created : float
        Seconds since the epoch.
    owner : str
        The user who may delete it; empty if any user may.
    suited : mapping of str to mapping
        Further settings by model: the strengths of a first fit.
    """

    name: str
    title: str
    file: str
    recipe: Recipe
    task: Task
    rows: int
    features: int
    bytes: int
    suggested: Mapping[str, Any]
    created: float
    owner: str = ""
    suited: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Profile:
    """A parsed file and its column types; for libsvm, the target."""

    source: Source
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Size:
    """The size of an encoded file.

    Attributes
    ----------
    rows, dropped : int
        The number of complete rows, and of rows dropped for a missing value.
    columns : DataFrame
        Encoding, features and non-zero entries by column; one row for libsvm.
    task : str
        See `fmviz.tables.target.Task`.
    labels : tuple of str
        The labels of -1 and +1, or of the classes; the names of several columns.
    counts : tuple of int
        The number of rows of each class, or of each of several labels.
    bytes_of_x : int
        The memory of X, stored by rows and by columns as during training.
    notes : tuple of str
        Sentences on inferred properties.
    """

    rows: int
    dropped: int
    columns: pd.DataFrame
    task: Task
    labels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    bytes_of_x: int = 0
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, encoded: Encoded) -> Size:
        """Measure encoded data; raises ValueError if a class has no complete row."""
        assert encoded.y is not None
        target, encoder, y = encoded.target, encoded.encoder, encoded.y
        labels = target.labels or target.outputs
        values = [-1, 1] if target.task == "binary" else range(len(target.labels))
        each = (y > 0).T if target.task == "several" else [y == value for value in values]
        counts = tuple(int(rows.sum()) for rows in each)
        if counts and not 0 < min(counts) <= max(counts) < len(y):
            alike = labels[[0 < count < len(y) for count in counts].index(False)]
            raise ValueError(
                f"All or none of the complete rows are {alike!r}. Impute missing values, or ignore columns."
            )
        X: Any = encoded.X
        entries = (X != 0).sum(axis=0)
        # Values of 8 bytes, indices of 4, and the offsets of rows and columns.
        memory = 2 * (12 * X.nnz if sp.issparse(X) else X.nbytes) + 8 * (sum(X.shape) + 2)
        features = [("all features", "number", entries.size)]
        if encoder is not None:
            kinds = {"number": "number", "word": "words", "text": "words of texts"}
            features = [(c.name, kinds[c.kind], len(c.feature_names)) for c in encoder.columns_]
        columns = pd.DataFrame(features, columns=["Column", "Encoded as", "Features"])
        columns["Non-zeros"] = np.add.reduceat(entries, np.cumsum([0, *columns["Features"][:-1]]))
        notes = target.sentences + (() if encoder is None else encoder.sentences_)
        # The last note of rows in groups.
        notes += encoded.notes[-1:] if encoded.row_groups is not None else ()
        return cls(len(y), encoded.dropped, columns, target.task, labels, counts, memory, notes)

    @property
    def features(self) -> int:
        """d, the columns of X."""
        return int(self.columns["Features"].sum())

    @property
    def outputs(self) -> int:
        """The number of machines: one for each of several outputs."""
        return len(self.labels) - (self.task == "ordinal") if self.labels and self.task != "binary" else 1


class Example(NamedTuple):
    """An example: file, name, target, numeric columns to treat as categories, and group column."""

    data: bytes
    name: str
    target: str
    words: tuple[str, ...] = ()
    group: str = ""


def example() -> Example:
    """Return the hourly bike sharing data."""
    return Example((SAMPLE_DATA / "bike.csv").read_bytes(), "bike.csv", "cnt", ("hr",), "dteday")


# -------------------------------------------------------------------------------------------------- files


def file_of(data: bytes) -> str:
    """Return the hash of a file; raises ValueError if it is too large."""
    limits.UPLOADS.check("The file", file=len(data))
    return hashlib.sha256(data).hexdigest()[:32]


def keep_file(data: bytes) -> str:
    """Store a file and return its hash; raises ValueError if it is too large or the disk is full."""
    name = file_of(data)
    path = _file(name)
    try:
        if path.exists():
            os.utime(path)
        else:
            _tidy()
            _write(path, data)
    except OSError as error:
        raise ValueError(
            f"The file cannot be saved in {path.parent} ({error.strerror}). Free disk space, or choose "
            "another folder with FMVIZ_STORE."
        ) from error
    return name


def size_of_file(file: str) -> int | None:
    """Return the size of a stored file, or None if no file has this hash."""
    try:
        return _file(file).stat().st_size
    except (OSError, ValueError):
        return None


def _file(file: str) -> Path:
    if not _FILE.fullmatch(file):
        raise ValueError(f"{file!r} is not the hash of a file.")
    return data_folder() / f"file_{file}"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Other threads may read at the same time.
    new = path.with_name(f"new_{secrets.token_hex(8)}")
    try:
        new.write_bytes(data)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


_profiles: WeighedCache[Profile] = WeighedCache(4, lambda profile: profile.source.n_bytes)
# A single entry, which the page measures, saves and trains on in turn.
_encoded: WeighedCache[Encoded] = WeighedCache(2, lambda encoded: array_bytes(encoded.X, encoded.y))
_sizes: WeighedCache[Size] = WeighedCache(64, lambda _: 0)


def profile(
    file: str, reading: Reading, should_stop: Callable[[], bool] = never, data: bytes | None = None
) -> Profile:
    """Read a file and infer its column types, cached; `data` are its bytes if it is not stored.

    Raises ValueError, or StoppedError if `should_stop` becomes true.
    """

    def read() -> Profile:
        try:
            content = _file(file).read_bytes() if data is None else data
        except OSError:
            raise ValueError(
                "The file of this data set is no longer on this computer. Upload it again."
            ) from None
        return Profile(*describe_confined(content, reading, should_stop))

    return _profiles.get((file, reading), read)


def encoded(file: str, recipe: Recipe, should_stop: Callable[[], bool] = never) -> Encoded:
    """Encode a stored file by a recipe, cached; raises as `profile`."""
    return _encoded.get(
        (file, recipe),
        lambda: encode_confined(profile(file, recipe.reading, should_stop).source, recipe, should_stop),
    )


def sized(file: str, recipe: Recipe, should_stop: Callable[[], bool] = never) -> Size:
    """Return the size of a stored file encoded by a recipe; raises as `profile`."""
    return _sizes.get((file, recipe), lambda: Size.of(encoded(file, recipe, should_stop)))


# --------------------------------------------------------------------------------------------------- sets


def title_of(text: str) -> str:
    """Return a file name as a title: one line without folders and without Markdown characters."""
    base = re.split(r"[\\/]", text)[-1]
    return " ".join(re.sub(r"[^\w\s.,;()+=@%&'’-]", " ", base).split()).strip("_-=+@ ")[:80] or "My data"


def name_of(file: str, recipe: Recipe) -> str:
    """Return the name of the data set of a file and a recipe."""
    text = json.dumps([VERSION, file, recipe.to_dict()], sort_keys=True)
    return f"own_{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def _entry(name: str) -> Path:
    if not is_upload(name):
        raise ValueError(f"{name!r} is not the name of an uploaded data set.")
    return data_folder() / f"{name}.json"


def save(upload: Upload) -> None:
    """Write the entry of a data set."""
    entry = {key: value for key, value in vars(upload).items() if key not in ("recipe", "name")}
    text = json.dumps({"version": VERSION, **entry, "recipe": upload.recipe.to_dict()}, ensure_ascii=False)
    _write(_entry(upload.name), text.encode())


def find(name: str) -> Upload | None:
    """Return the entry of a data set, or None if it is not stored here."""
    try:
        entry = dict(json.loads(_entry(name).read_bytes()))
        if entry.pop("version") != VERSION:
            return None
        upload = checked(Upload, {**entry, "name": name, "recipe": Recipe.from_dict(entry["recipe"])})
    except (OSError, LookupError, TypeError, ValueError):
        return None
    return upload if size_of_file(upload.file) is not None else None


def load(name: str) -> Dataset:
    """Load a data set by name; raises ValueError if it is not stored here."""
    if (upload := find(name)) is None:
        raise ValueError(why_not(name))

    def of(numbers: str = "") -> Dataset:
        return Dataset.of_table(in_bases(upload, numbers), name, upload.title)

    return replace(of(), every=partial(of, EVERY)) if upload.recipe.numbers in ("auto", "curve") else of()


def in_bases(upload: Upload, numbers: str = "") -> Encoded:
    """Encode the file of an upload, by default by its recipe, or with other bases of numbers."""
    return encoded(upload.file, replace(upload.recipe, numbers=numbers or upload.recipe.numbers))


def why_not(name: str) -> str | None:
    """Return the reason why a data set cannot be loaded, or None."""
    if find(name) is not None:
        return None
    return (
        f"The data set {name} is not on this computer. Upload its file on the page Your data, or open the "
        "link on the computer of the upload."
    )


def delete(name: str) -> bool:
    """Delete a data set, and its file if no other uses it; return whether it existed."""
    if (upload := find(name)) is None:
        return False
    _entry(name).unlink(missing_ok=True)
    others = [find(entry.stem) for entry in data_folder().glob("own_*.json")]
    if all(other is None or other.file != upload.file for other in others):
        _file(upload.file).unlink(missing_ok=True)
    return True


def _tidy() -> None:
    """Remove old files without a data set."""
    folder, since = data_folder(), time.time() - _IDLE_SECONDS
    uploads = [find(entry.stem) for entry in folder.glob("own_*.json")]
    needed = {upload.file for upload in uploads if upload is not None}
    for path in folder.glob("*_*"):
        file = path.name.partition("_")[2]
        if path.suffix != ".json" and file not in needed and path.stat().st_mtime < since:
            path.unlink(missing_ok=True)
