"""The provenance of a result: a hash of the data, and the versions of the software."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from fmviz.lab.datasets import Dataset

_hashes: WeakKeyDictionary[Dataset, str] = WeakKeyDictionary()


def data_hash(dataset: Dataset) -> str:
    """Return a hash of the encoded features and the target, 16 hexadecimal digits.

    Data sets with equal entries have equal hashes, dense or sparse, regardless of names. Cached, since a
    sweep needs it for every cell.
    """
    if dataset not in _hashes:
        _hashes[dataset] = array_hash(dataset.X, dataset.y)
    return _hashes[dataset]


def array_hash(X: Any, y: np.ndarray) -> str:
    """Return `data_hash` of features, shape (N, d), dense or sparse, and a target, shape (N,)."""
    digest = hashlib.blake2b(digest_size=8)
    # A copy, modified in place.
    X = sp.csr_array(X, dtype=np.float64, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    digest.update(repr(X.shape).encode())
    for array, kind in (
        (X.indptr, np.int64),
        (X.indices, np.int64),
        (X.data, np.float64),
        (y, np.float64),
    ):
        digest.update(np.asarray(array, dtype=np.dtype(kind).newbyteorder("<")).tobytes())
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Return the versions of fmviz, Python and the numerical libraries, and the platform."""
    import numba
    import scipy

    import fmviz

    return {
        "fmviz": fmviz.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
    }
