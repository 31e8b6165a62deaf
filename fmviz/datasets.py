"""Data sets for factorization machines: load by name, or generate with planted interactions.

Examples
--------
>>> from fmviz.datasets import load
>>> monks = load("monks1")
>>> monks.X.shape, monks.task
((432, 17), 'binary')
"""

from __future__ import annotations

from fmviz.lab.catalog import load
from fmviz.lab.datasets import DATASETS, Dataset, make_sparse_interactions


def list_datasets(*, available_only: bool = False) -> list[str]:
    """Return the names of the data sets for `load`.

    Parameters
    ----------
    available_only : bool
        Whether to omit data sets that cannot be loaded because a file is missing.

    Returns
    -------
    list of str
        The names, in the order of the registry.

    Examples
    --------
    >>> from fmviz.datasets import list_datasets
    >>> list_datasets()
    ['planted_interactions', ...]
    """
    return [name for name, spec in DATASETS.items() if not available_only or spec.unavailable() is None]


__all__ = ["Dataset", "list_datasets", "load", "make_sparse_interactions"]
