"""What a result was made from: a hash of the data, and the versions of the programs."""

from __future__ import annotations

import hashlib
import platform
from functools import cache

import numpy as np
import scipy.sparse as sp

from fmviz.lab.datasets import Dataset

__all__ = ["data_hash", "versions"]


def data_hash(dataset: Dataset) -> str:
    """Return a hash of the encoded features and the target, 16 hexadecimal digits.

    Data sets with equal entries have equal hashes, dense or sparse, whatever their names.
    """
    digest = hashlib.blake2b(digest_size=8)
    X = sp.csr_array(dataset.X, dtype=np.float64)
    X.sum_duplicates()
    X.eliminate_zeros()
    digest.update(repr(X.shape).encode())
    for array, kind in (
        (X.indptr, np.int64),
        (X.indices, np.int64),
        (X.data, np.float64),
        (dataset.y, np.float64),
    ):
        digest.update(np.asarray(array, dtype=np.dtype(kind).newbyteorder("<")).tobytes())
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Return the versions of fmviz, Python and the libraries that decide on the numbers, and the platform."""
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
