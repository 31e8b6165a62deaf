"""The registry of data sets, each declared in a TOML file that names its reader or generator."""

from __future__ import annotations

import tomllib
from functools import partial
from importlib.resources import files
from typing import Any

from fmviz.engine.settings import ParamSpec
from fmviz.tables.scaling import Scaling

from . import drawn, readers
from .base import Dataset, DatasetSpec
from .drawn import make_sparse_interactions

_READERS = {
    reader.__name__: reader
    for reader in (
        readers.scikit_learn,
        readers.libsvm,
        readers.arff,
        readers.measurements,
        readers.flights,
        readers.table,
        readers.movielens,
        drawn.sparse_interactions,
        drawn.planted_triples,
        drawn.planted_subsets,
        drawn.planted_classes,
        drawn.monks1,
        drawn.balance_scale,
    )
}
_PART = ParamSpec(
    "part",
    "choice",
    "train",
    choices=readers.PARTS,
    help="The training rows, the test rows, or the two in order.",
)
_WORDS = ("name", "title", "task", "description", "source", "licence")


def declared(name: str) -> DatasetSpec:
    """Return the data set declared by ``<name>.toml``.

    The file has the descriptive fields of `DatasetSpec`, the ``reader`` and its ``[options]``, and

    - ``[dataset]``: fields of `Dataset` that the reader does not return;
    - ``[files]``: fields of `readers.Files`, if it is read from files; ``parts = true`` if there is a
      training file and a test file;
    - ``[[params]]``: further parameters of the reader;
    - ``[suggested]``, ``[suited.<model>]``: as in `DatasetSpec`, over common defaults.
    """
    text = files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    given = {"name": name, **_tuples(tomllib.loads(text))}
    words: dict[str, Any] = {word: given[word] for word in _WORDS}
    params = tuple(ParamSpec(**fields) for fields in given.get("params", ()))
    source = given.get("files", {})
    if source.pop("parts", False):
        params = (_PART, *params)
    local = readers.Files(**source)
    read: Any = partial(_READERS[given["reader"]], *([local] if source else []), **given.get("options", {}))

    def load(**chosen: Any) -> Dataset:
        return Dataset(**{**read(**chosen), **given["dataset"], **words})

    return DatasetSpec(
        **words,
        load=load,
        own_params=params,
        unavailable=local.why_not,
        suggested={
            "regularizer": "ti",
            "solver": "auto",
            "loss": "squared" if given["task"] == "regression" else "logistic",
            "fit_linear": True,
            "fit_intercept": True,
            **given["suggested"],
        },
        suited=given.get("suited", {}),
    )


def _tuples(value: Any) -> Any:
    """Return a TOML value with tuples for lists."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


_NAMES = (
    "planted_interactions",
    "planted_features",
    "planted_triples",
    "planted_subsets",
    "planted_classes",
    "synthetic",
    "monks1",
    "balance_scale",
    "flights",
    "bike",
    "diabetes",
    "breast_cancer",
    "iris",
    "wine",
    "digits",
    # Read from the folder of the variable FMVIZ_DATA.
    "abalone",
    "movielens_100k",
    "a9a",
    "rcv1",
    "flight_delay",
    "vowel",
    "segment",
    "satimage",
    "letter",
)
DATASETS: dict[str, DatasetSpec] = {name: declared(name) for name in _NAMES}

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetSpec",
    "Scaling",
    "make_sparse_interactions",
]
