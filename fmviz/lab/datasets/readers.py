"""Readers of data sets: LIBSVM, ARFF, CSV, MovieLens, and scikit-learn's tables.

A reader takes the files of a data set, the options in its declaration and its parameters, and returns fields
of `Dataset`.
"""

from __future__ import annotations

import bz2
import csv
import lzma
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
import scipy.sparse as sp

from fmviz.tables.scaling import Scaling

from .base import Dataset

if TYPE_CHECKING:
    import pandas as pd

    from fmviz.tables.columns import FeatureColumn

Fields = dict[str, Any]
"""Fields of `Dataset` by name."""

PARTS = ("train", "test", "both")
_PACKAGE = Path(__file__).resolve().parents[2]
_APP = _PACKAGE / "app"
SAMPLE_DATA = (_APP if _APP.is_dir() else _PACKAGE.parent) / "sample_data"
"""The folder of CSV files, in the installed package or in a source checkout."""


@dataclass(frozen=True)
class Files:
    """The files of a data set, plain or compressed, in a folder of the user.

    Attributes
    ----------
    names : tuple of str
        File names; for two parts, the training file and the test file.
    remedy : str
        Instructions to obtain the files, at the end of every message.
    folder : str
        Folder within FMVIZ_DATA; empty for files in ``sample_data`` or in FMVIZ_DATA itself.
    """

    names: tuple[str, ...] = ()
    remedy: str = ""
    folder: str = ""

    def find(self, name: str) -> Path | None:
        """Return the path of a file, or None if it is missing."""
        root = os.environ.get("FMVIZ_DATA")
        places = [*([] if self.folder else [SAMPLE_DATA]), *([Path(root, self.folder)] if root else [])]
        paths = (place / f"{name}{ending}" for place in places for ending in ("", ".xz", ".bz2"))
        return next((path for path in paths if path.is_file()), None)

    def why_not(self) -> str | None:
        """Return the missing files with instructions to obtain them, or None."""
        if not (missing := [name for name in self.names if self.find(name) is None]):
            return None
        if not self.folder:
            return self.remedy
        root, reason = os.environ.get("FMVIZ_DATA"), "The environment variable FMVIZ_DATA is not set"
        if root:
            there, place = Path(root, self.folder).is_dir(), str(Path(root, self.folder))
            lacks = f"The folder {place!r} lacks {' and '.join(missing)}"
            reason = lacks if there else f"FMVIZ_DATA = {root!r} has no folder {self.folder}"
        return f"{reason}. {self.remedy}"

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """Yield the path of a file, and raise its read errors as ValueError with the remedy."""
        if (path := self.find(name)) is None:
            raise ValueError(self.why_not())
        try:
            yield path
        # Errors of pandas are ValueErrors.
        except (KeyError, ValueError, OSError, EOFError, lzma.LZMAError) as error:
            raise ValueError(f"{path.name} cannot be read: {error}. {self.remedy}") from error

    def of(self, part: str) -> tuple[str, ...]:
        """Return the names of the files of one of `PARTS`."""
        return self.names if part == "both" else (self.names[PARTS.index(part)],)


def _opened(path: Path) -> BinaryIO:
    opener: Any = {".xz": lzma.open, ".bz2": bz2.open}.get(path.suffix, open)
    return opener(path, "rb")


# -------------------------------------------------------------------------------------------------- encoding


class Block(NamedTuple):
    """Encoded columns: matrix, names of features, and the attribute of each; the columns of a table."""

    matrix: sp.csr_array
    names: tuple[str, ...]
    groups: tuple[str, ...]
    columns: tuple[FeatureColumn, ...]


def one_hot(
    attribute: str, values: Iterable[Any], levels: Sequence[Any] = (), labels: Sequence[str] = ()
) -> Block:
    """One-hot encode an attribute, with a column ``attribute=label`` for each level."""
    import pandas as pd

    from fmviz.tables.columns import WordColumn

    values = list(values)
    levels = levels or sorted(set(values))
    words = dict(zip(levels, map(str, labels or levels), strict=True))
    column = WordColumn(name=attribute, levels=tuple(words.values()))
    (matrix,) = column.blocks(pd.Series([words[value] for value in values]))
    return Block(matrix, column.labels, (attribute,) * len(levels), (column,))


def _side_by_side(blocks: Sequence[Block]) -> Fields:
    matrix = sp.csr_array(sp.hstack([block.matrix for block in blocks], format="csr", dtype=np.float64))
    matrix.sort_indices()
    return {
        "X": matrix,
        "feature_names": tuple(name for block in blocks for name in block.names),
        "groups": tuple(group for block in blocks for group in block.groups),
        "columns": tuple(column for block in blocks for column in block.columns),
    }


def _numbers(X: np.ndarray, names: Sequence[str], scaling: Sequence[Scaling] | None = None) -> Fields:
    """Scale numbers, by default to mean 0 and (population) standard deviation 1."""
    if scaling is None:
        X = np.asarray(X, dtype=np.float64)
        statistics = zip(X.mean(axis=0), X.std(axis=0), strict=True)
        scaling = [Scaling(float(mean), float(deviation)) for mean, deviation in statistics]
    middle, scale = (np.array([getattr(item, name) for item in scaling]) for name in ("mean", "scale"))
    return {
        "X": np.ascontiguousarray((X - middle) / scale),
        "feature_names": tuple(names),
        "groups": tuple(names),
        "scaling": tuple(scaling),
    }


def _varying(X: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Drop constant columns."""
    varies = np.ptp(X, axis=0) > 0
    return X[:, varies], tuple(name for name, kept in zip(names, varies, strict=True) if kept)


# --------------------------------------------------------------------------------------------------- readers


def scikit_learn(
    *,
    table: str,
    features: Sequence[str] = (),
    full_scale: float | None = None,
    positive: int | None = None,
    varying: bool = False,
    **keywords: Any,
) -> Fields:
    """Load a table from scikit-learn.

    Parameters
    ----------
    table : str
        The name after ``load_``.
    features : sequence of str
        Names of the columns, by default those of scikit-learn.
    full_scale : float, optional
        The divisor of all numbers; by default they are standardised.
    positive : int, optional
        The class that is encoded as +1, the other one as -1.
    varying : bool
        Whether to drop constant columns.
    **keywords
        Arguments of the loader.
    """
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{table}")(**keywords)
    names = features or [str(name).replace("_", " ").removesuffix(" (cm)") for name in bunch.feature_names]
    X, names = _varying(bunch.data, names) if varying else (bunch.data, names)
    y = bunch.target if positive is None else np.where(bunch.target == positive, 1.0, -1.0)
    scaling = None if full_scale is None else (Scaling(0.0, full_scale, deviations=False),) * len(names)
    return {**_numbers(X, names, scaling), "y": np.ascontiguousarray(y, dtype=np.float64)}


def libsvm(
    files: Files,
    *,
    features: Sequence[str] = (),
    n_features: int = 0,
    n_classes: int = 2,
    dense: bool = False,
    part: str,
) -> Fields:
    """Read ``label index:value ...``, indices from 1; labels are -1 and +1 for two classes, else 1 to C."""
    from sklearn.datasets import load_svmlight_file

    names = tuple(features) or tuple(f"feature {j}" for j in range(1, n_features + 1))
    labels = {-1, 1} if n_classes == 2 else {*range(1, n_classes + 1)}
    matrices, targets = [], []
    for name in files.of(part):
        with files.reading(name) as path, _opened(path) as file:
            X, y = load_svmlight_file(file, n_features=len(names), zero_based=False)
            if not y.size or not set(np.unique(y)) <= labels:
                allowed = "-1 and +1" if n_classes == 2 else f"1 to {n_classes}"
                raise ValueError(f"its labels must be {allowed}")
        rows = sp.csr_array(X)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        matrices.append(rows)
        targets.append(y)
    joined = sp.csr_array(sp.vstack(matrices, format="csr"))
    return {
        "X": joined.toarray() if dense else joined,
        "y": np.concatenate(targets) - (n_classes > 2),
        "feature_names": names,
        "groups": names,
    }


def arff(files: Files, *, features: Sequence[str], classes: Sequence[str], part: str = "both") -> Fields:
    """Read rows that end in numbers and a class, and scale the numbers to [−1, 1].

    The first word of a row may be its part, ``Train`` or ``Test``.
    """
    d = len(features)
    with files.reading(files.names[0]) as path:
        with _opened(path) as file:
            lines = [line.strip() for line in file.read().decode().splitlines()]
        # Comments and the names of the columns come before the rows.
        start = [line.lower() for line in lines].index("@data") + 1
        rows = [line.split(",") for line in lines[start:] if line and line[0] != "%"]
        code = {label: float(c) for c, label in enumerate(classes)}
        y = np.array([code[row[-1].strip()] for row in rows])
        numbers = np.array([row[-1 - d : -1] for row in rows], dtype=np.float64).reshape(-1, d)
    # The pixel count in segment is constant.
    numbers, names = _varying(numbers, features)
    middle, half = 0.5 * (numbers.max(axis=0) + numbers.min(axis=0)), 0.5 * np.ptp(numbers, axis=0)
    scaling = [Scaling(float(m), float(h), deviations=False) for m, h in zip(middle, half, strict=True)]
    inside = [part == "both" or row[0] == part.capitalize() for row in rows]
    fields = _numbers(numbers, names, scaling)
    return {**fields, "X": fields["X"][inside], "y": y[inside], "class_labels": tuple(classes)}


def measurements(
    files: Files, *, features: Sequence[str], codes: Mapping[str, Mapping[str, float]]
) -> Fields:
    """Read a CSV file without a header, whose last column is the target, and standardise the others.

    `codes` maps the words of a column to numbers.
    """
    import pandas as pd

    with files.reading(files.names[0]) as path:
        table = pd.read_csv(path, header=None)
        if table.shape[1] != len(features) + 1:
            raise ValueError(f"it has {table.shape[1]} columns instead of {len(features) + 1}")
        for name, numbers in codes.items():
            column = features.index(name)
            table[column] = table[column].map(numbers)
        values = table.to_numpy(np.float64)
    return {**_numbers(values[:, :-1], features), "y": np.ascontiguousarray(values[:, -1])}


def table(files: Files, *, target: str, group: str, words: Sequence[str]) -> Fields:
    """Read a table by the rules of *Your data*, numbers as straight lines, some as words; rows in groups."""
    from fmviz.tables.encoded import encode
    from fmviz.tables.files import read
    from fmviz.tables.recipe import Choice, columns_of, first_recipe

    with files.reading(files.names[0]) as path:
        with _opened(path) as file:
            source = read(file.read())
        columns = columns_of(source)
        recipe = first_recipe(source, columns).corrected(Choice(name, "word") for name in words)
        encoded = encode(
            source, replace(recipe.grouped(group), target=target, numbers="line"), columns=columns
        )
        return vars(Dataset.of_table(encoded, "", ""))


def flights(  # noqa: PLR0913 (the fields of a data set's TOML file)
    files: Files,
    *,
    columns: Sequence[str],
    attributes: Sequence[Mapping[str, Any]],
    distance: str,
    target: str,
    target_values: tuple[Any, Any],
    miles: float | None = None,
    n_rows: Sequence[int] = (),
    days: Sequence[str] = (),
    date: str = "words",
    part: str = "both",
    seed: int = 0,
) -> Fields:
    """Read CSV files of flights: attributes one-hot, and the logarithm of the distance.

    Parameters
    ----------
    files : Files
        One file, or a training file and a test file with common features.
    columns : sequence of str
        The column names in the first line.
    attributes : sequence of mapping
        ``name`` and, unless it is a column, the ``column`` with a time HHMM, from which it takes the hour or
        the tens of minutes; a ``prefix`` of integers; the ``levels``, by default those in the data; their
        ``labels``, or a format for a ``label``.
    distance, target : str
        The columns of the distance and of the target.
    target_values : tuple
        The values of the target for -1 and for +1.
    miles : float, optional
        The distance with logarithm 0; by default the logarithm is standardised on the training rows.
    n_rows : sequence of int
        The number of rows to draw from each file; by default all.
    days : sequence of str
        The attributes that make up the date, which splits keep together.
    date : {"words", "numbers"}
        Whether these are one-hot, or numbers with mean 0 and deviation 1.
    part : str
        One of `PARTS`.
    seed : int
        The seed of the draw.
    """
    import pandas as pd

    from fmviz.tables.columns import NumberColumn

    rng = np.random.default_rng(seed)
    tables = []
    for i, name in enumerate(files.names):
        with files.reading(name) as path:
            # "NA" may be the code of an airport or an airline; these files have no missing values.
            table = pd.read_csv(path, keep_default_na=False)
            if list(table.columns) != list(columns):
                raise ValueError(
                    f"its columns are {', '.join(map(str, table.columns))} instead of {', '.join(columns)}"
                )
            negative, positive = target_values
            if not set(table[target]) <= {negative, positive}:
                raise ValueError(f"{target} has values other than {positive} and {negative}")
            table[distance] = table[distance].astype(np.int64)
            table = table.assign(
                **{attribute["name"]: _values(table, **attribute) for attribute in attributes}
            )
        tables.append(table.iloc[rng.permutation(len(table))[: n_rows[i]]] if n_rows else table)
    frame = pd.concat(tables, ignore_index=True)
    cut = len(tables[0])
    logarithm = np.log(frame[distance].to_numpy(np.float64) / (miles or 1.0))
    if miles is None:
        logarithm = (logarithm - logarithm[:cut].mean()) / (logarithm[:cut].std() or 1.0)
    numbers = days if date == "numbers" else ()
    dates = _numbers(frame[list(numbers)].to_numpy(np.float64), numbers)
    day_columns = tuple(
        NumberColumn(name=name, center=own.mean, scale=own.scale)
        for name, own in zip(numbers, dates["scaling"], strict=True)
    )
    fields = _side_by_side(
        [
            Block(sp.csr_array(dates["X"]), dates["feature_names"], dates["groups"], day_columns),
            *(_attribute(frame, **attribute) for attribute in attributes if attribute["name"] not in numbers),
            Block(
                sp.csr_array(logarithm[:, None]),
                ("log_distance",),
                (distance,),
                (NumberColumn(name="log_distance"),),
            ),
        ]
    )
    rows = {"train": slice(cut), "test": slice(cut, None), "both": slice(None)}[part]
    fields |= {"X": fields["X"][rows], "y": np.where(frame[target] == positive, 1.0, -1.0)[rows]}
    if numbers:
        fields["scaling"] = (*dates["scaling"], *[None] * (len(fields["groups"]) - len(numbers)))
    if days:
        fields |= {"group": "date", "row_groups": frame.groupby(list(days)).ngroup().to_numpy()[rows]}
    return fields


def _values(
    table: pd.DataFrame,
    *,
    name: str,
    column: str = "",
    prefix: str = "",
    levels: Sequence[Any] = (),
    **_: Any,
) -> pd.Series:
    """Return the values of an attribute of `flights`."""
    values = table[column or name]
    if prefix:
        values = values.astype(str).str.removeprefix(prefix).astype(np.int64)
    if column:
        values = values.astype(np.int64)
        values = values // 100 if name == "hour" else values % 100 // 10
    if levels and (unknown := set(values) - set(levels)):
        raise ValueError(f"{name} = {min(unknown)!r} is not one of its levels {', '.join(map(str, levels))}")
    return values


def _attribute(
    frame: pd.DataFrame,
    *,
    name: str,
    levels: Sequence[Any] = (),
    labels: Sequence[str] = (),
    label: str = "",
    **_: Any,
) -> Block:
    """Encode an attribute of `flights`."""
    levels = levels or sorted(set(frame[name]))
    return one_hot(name, frame[name], levels, labels or [format(level, label) for level in levels])


GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
    "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip


def movielens(files: Files, *, side_features: bool) -> Fields:
    """Read MovieLens 100K: one-hot users and films, optionally with their attributes."""
    from fmviz.tables.columns import TextColumn

    with files.reading("u.user") as path:
        users = _without_quotes(path, 5, "|")
        ages = users[1].to_numpy().astype(np.int64).tolist()
    with files.reading("u.item") as path:
        items = _without_quotes(path, 5 + len(GENRES), "|")
        # "01-Jan-1995", or nothing: a missing date is a category of its own.
        years = [int(date[-4:]) if date else None for date in items[2]]
        flags = items.iloc[:, 5:].to_numpy().astype(np.float64)
    with files.reading("u.data") as path:
        user, item, y = _without_quotes(path, 4, "\t")[[0, 1, 2]].to_numpy().astype(np.int64).T

    count = Counter(items[1])  # 18 titles occur twice
    titles = [title if count[title] == 1 else f"{title} #{i}" for i, title in enumerate(items[1], start=1)]
    # The columns of an attribute by user or film, and the user or film of every rating.
    blocks = [
        (user, _identity("user", [f"user {i}" for i in range(1, len(users) + 1)])),
        (item, _identity("item", titles)),
    ]
    if side_features:
        words = (("gender", users[2]), ("occupation", users[3]), ("zip", users[4].str[:1]))
        genres = tuple(f"genre={name}" for name in GENRES)
        flags_of_genres = tuple(TextColumn(name=name, words=(name,)) for name in genres)
        blocks += [
            (user, _decades(ages, "age")),
            *((user, one_hot(name, column)) for name, column in words),
            (item, _decades(years, "year")),
            # A film can have several genres: each flag is a separate attribute.
            (item, Block(sp.csr_array(flags), genres, genres, flags_of_genres)),
        ]
    rated = [block._replace(matrix=block.matrix[ids - 1]) for ids, block in blocks]
    return {**_side_by_side(rated), "y": y.astype(np.float64)}


def _without_quotes(path: Path, n_columns: int, separator: str) -> pd.DataFrame:
    import pandas as pd

    frame = pd.read_csv(
        path, sep=separator, header=None, dtype=str, encoding="latin-1", quoting=csv.QUOTE_NONE,
        keep_default_na=False,
    )  # fmt: skip
    if frame.shape[1] != n_columns:
        raise ValueError(f"it has {frame.shape[1]} columns; MovieLens 100K has {n_columns}")
    return frame


def _decades(numbers: Sequence[int | None], attribute: str) -> Block:
    """One-hot encode numbers rounded half up to tens, with a level for None."""
    rounded = [None if n is None else (n + 5) // 10 * 10 for n in numbers]
    levels = sorted(set(rounded), key=lambda n: math.inf if n is None else n)
    labels = ["unknown" if n is None else f"{n - 5}-{n + 4}" for n in levels]
    return one_hot(attribute, rounded, levels, labels)


def _identity(group: str, names: Sequence[str]) -> Block:
    from fmviz.tables.columns import WordColumn

    return Block(
        sp.eye_array(len(names), format="csr"),
        tuple(names),
        (group,) * len(names),
        (WordColumn(name=group, levels=tuple(names)),),
    )
