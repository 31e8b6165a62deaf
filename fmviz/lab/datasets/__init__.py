"""The data sets, by name. A new one is a module with a `DatasetSpec`, and one line in `DATASETS`."""

from __future__ import annotations

from typing import Any

from fmviz.engine.errors import one_of

from . import (
    abalone,
    balance,
    clinical,
    flight_delay,
    flights,
    libsvm,
    monks,
    movielens,
    subsets,
    synthetic,
    triples,
)
from .base import Dataset, DatasetSpec
from .own import DatasetParam, Registry, is_own

DATASETS: dict[str, DatasetSpec] = Registry()
DATASETS |= {
    "planted_interactions": synthetic.SPECS["planted_interactions"],
    "planted_features": synthetic.SPECS["planted_features"],
    "planted_triples": triples.SPEC,
    "planted_subsets": subsets.SPEC,
    "synthetic": synthetic.SPECS["synthetic"],
    "monks1": monks.SPEC,
    "balance_scale": balance.SPEC,
    "flights": flights.SPEC,
    "diabetes": clinical.DIABETES,
    "breast_cancer": clinical.BREAST_CANCER,
    "abalone": abalone.SPEC,
    "movielens_100k": movielens.SPEC,
    "a9a": libsvm.A9A,
    "rcv1": libsvm.RCV1,
    "flight_delay": flight_delay.SPEC,
}


def load(name: str, **params: Any) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    name : str
        A key of `DATASETS`, or the name of a data set of one's own.
    **params
        What the set lets be chosen, as declared in ``DATASETS[name].params``.

    Returns
    -------
    Dataset
        Features, target and what is known about both.

    Raises
    ------
    ValueError
        If the name or a parameter is not known or not allowed, or if the set cannot be had here; the message
        says how to get it.

    Examples
    --------
    >>> from fmviz.datasets import load
    >>> monks = load("monks1")
    >>> monks.feature_names[:3]
    ('head_shape=round', 'head_shape=square', 'head_shape=octagon')
    """
    return DATASETS[name if is_own(name) else one_of("The data set", name, DATASETS)](**params)


__all__ = ["DATASETS", "Dataset", "DatasetParam", "DatasetSpec", "is_own", "load"]
