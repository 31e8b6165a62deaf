"""Data sets of classes in LIBSVM text: a training file and a test file in a folder of the user."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fmviz.engine.settings import ParamSpec

from ._tables import local_file, why_not_local

PARTS = ("train", "test", "both")
PART = ParamSpec(
    "part", "choice", "train", choices=PARTS, help="The training rows, the test rows, or the two in order."
)


def _opened(path: Path) -> lzma.LZMAFile | str:
    # scikit-learn opens bz2 by itself, xz not.
    return lzma.open(path) if path.suffix == ".xz" else str(path)


def read_libsvm(
    path: Path, n_features: int, remedy: str, n_classes: int = 2
) -> tuple[sp.csr_array, np.ndarray]:
    """Read one file of ``label index:value ...`` with indices from 1, plain or compressed.

    Parameters
    ----------
    path : Path
        The file.
    n_features : int
        d, the number of columns.
    remedy : str
        What to do if the file is no good; ends the message.
    n_classes : int
        C: labels are -1 and +1 for two classes, else 1 to C.

    Returns
    -------
    X : (N, d) csr_array
        The features, without stored zeros.
    y : (N,) ndarray
        The labels.

    Raises
    ------
    ValueError
        If the file is something else.
    """
    from sklearn.datasets import load_svmlight_file

    source = _opened(path)
    try:
        X, y = load_svmlight_file(source, n_features=n_features, zero_based=False)
    except (ValueError, OSError, EOFError, lzma.LZMAError) as error:
        raise ValueError(f"{path.name} cannot be read as LIBSVM text: {error}. {remedy}") from error
    finally:
        if not isinstance(source, str):
            source.close()
    labels = {-1.0, 1.0} if n_classes == 2 else {float(c) for c in range(1, n_classes + 1)}
    if not y.size or not set(np.unique(y)) <= labels:
        told = "-1 and +1" if n_classes == 2 else f"1 to {n_classes}"
        raise ValueError(f"{path.name} must hold rows with the labels {told} alone. {remedy}")
    rows = sp.csr_array(X)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows, y


def in_parts(
    folder: str, files: Sequence[str], n_features: int, remedy: str, n_classes: int = 2
) -> tuple[Callable[[], str | None], Callable[[str], tuple[sp.csr_array, np.ndarray]]]:
    """Return what says whether the files are there, and what reads one of `PARTS`."""

    def unavailable() -> str | None:
        return why_not_local(folder, files, remedy)

    def read(part: str) -> tuple[sp.csr_array, np.ndarray]:
        wanted = files if part == "both" else [files[PARTS.index(part)]]
        found = []
        for name in wanted:
            path = local_file(folder, name)
            if path is None:
                raise ValueError(unavailable())
            found.append(read_libsvm(path, n_features, remedy, n_classes))
        if len(found) == 1:
            return found[0]
        X = sp.csr_array(sp.vstack([X for X, _ in found], format="csr"))
        return X, np.concatenate([y for _, y in found])

    return unavailable, read
