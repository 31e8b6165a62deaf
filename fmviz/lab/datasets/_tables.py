"""What the data set modules share: finding and reading a sample file, and encoding columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .base import Scaling

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_DATA = Path(__file__).resolve().parents[3] / "sample_data"
"""The folder of a source checkout that holds the CSV files. An installed wheel has none."""


def local_folder(name: str) -> Path:
    """Return the folder of that name in the one that the environment variable FMVIZ_DATA names."""
    return Path(os.environ.get("FMVIZ_DATA", "")) / name


def local_file(folder: str, name: str) -> Path | None:
    """Return a file of a local folder, as it is or compressed as xz or bz2, or None."""
    place = local_folder(folder)
    forms = (place / f"{name}{ending}" for ending in ("", ".xz", ".bz2"))
    return next((path for path in forms if path.is_file()), None)


def why_not_local(folder: str, names: Iterable[str], remedy: str) -> str | None:
    """Return None, or the sentence that says which local file is missing, with the remedy behind it."""
    if not os.environ.get("FMVIZ_DATA"):
        return f"The environment variable FMVIZ_DATA is not set. {remedy}"
    place = local_folder(folder)
    if not place.is_dir():
        return f"FMVIZ_DATA = {os.environ['FMVIZ_DATA']!r} holds no folder {folder}. {remedy}"
    missing = [name for name in names if local_file(folder, name) is None]
    if missing:
        return f"The folder {str(place)!r} lacks {' and '.join(missing)}. {remedy}"
    return None


class Block(NamedTuple):
    """Some encoded columns: their matrix, their names, and the attribute each of them encodes."""

    matrix: sp.csr_array
    names: tuple[str, ...]
    groups: tuple[str, ...]


def read_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read a CSV file and hold it to the columns that it must have.

    Parameters
    ----------
    path : Path
        The file.
    columns : sequence of str
        The names in its first line, in order.

    Returns
    -------
    pandas.DataFrame
        The rows.

    Raises
    ------
    ValueError
        If the columns are others.
    """
    import pandas as pd

    # "NA" may be the code of an airport or an airline: no word of these files means "missing".
    table = pd.read_csv(path, keep_default_na=False)
    if list(table.columns) != list(columns):
        raise ValueError(
            f"{path.name} has the columns {', '.join(map(str, table.columns))}, but must have "
            f"{', '.join(columns)}; rebuild it with sample_data/build.py."
        )
    return table


def one_hot(
    attribute: str, values: Iterable[Any], levels: Sequence[Any], labels: Sequence[str] = ()
) -> Block:
    """Encode one attribute by one column a level.

    Parameters
    ----------
    attribute : str
        Its name; the columns are called ``attribute=label``.
    values : iterable
        One level for every row.
    levels : sequence
        All levels, in the order of the columns.
    labels : sequence of str, optional
        The words for the levels, if they are not their own.

    Returns
    -------
    Block
        An (N, len(levels)) matrix with a single 1 in every row.

    Raises
    ------
    ValueError
        If a value is not among the levels.
    """
    position = {level: j for j, level in enumerate(levels)}
    values = list(values)
    unknown = [value for value in values if value not in position]
    if unknown:
        raise ValueError(
            f"{attribute} = {unknown[0]!r} is not one of its levels {', '.join(map(str, levels))}."
        )
    columns = np.array([position[value] for value in values], dtype=np.int32)
    rows = np.arange(len(columns) + 1, dtype=np.int32)
    matrix = sp.csr_array((np.ones(len(columns)), columns, rows), shape=(len(columns), len(levels)))
    names = tuple(f"{attribute}={label}" for label in (labels or levels))
    return Block(matrix, names, (attribute,) * len(levels))


def join(blocks: Sequence[Block]) -> Block:
    """Put blocks of columns side by side."""
    matrix = sp.csr_array(sp.hstack([block.matrix for block in blocks], format="csr", dtype=np.float64))
    matrix.sort_indices()
    return Block(
        matrix,
        tuple(name for block in blocks for name in block.names),
        tuple(group for block in blocks for group in block.groups),
    )


def standardise(X: np.ndarray) -> tuple[np.ndarray, tuple[Scaling, ...]]:
    """Return float64 columns with mean 0 and (population) standard deviation 1, and how they were scaled."""
    X = np.asarray(X, dtype=np.float64)
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    scaled = np.ascontiguousarray((X - mean) / deviation)
    return scaled, tuple(Scaling(float(m), float(s)) for m, s in zip(mean, deviation, strict=True))
