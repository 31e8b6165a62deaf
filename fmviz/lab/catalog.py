"""Lookup and loading of data sets by name, both registered ones and uploads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fmviz.engine.errors import one_of
from fmviz.engine.settings import ParamSpec, check_params
from fmviz.lab.datasets import DATASETS, Dataset, DatasetSpec
from fmviz.lab.uploads import is_upload


@dataclass(frozen=True)
class DataChoice:
    """The name of a data set, with its non-default parameters."""

    name: str
    given: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, name: str | DataChoice, params: Mapping[str, Any] | None = None) -> DataChoice:
        """Return the choice of a data set with checked parameters; a `DataChoice` is returned unchanged."""
        if isinstance(name, DataChoice):
            return name
        specs = dataset_spec(name).params
        checked = check_params(f"Dataset {name!r}", specs, params or {})
        default = {spec.name: spec.default for spec in specs}
        return cls(name, tuple(sorted((k, v) for k, v in checked.items() if v != default[k])))

    def __str__(self) -> str:
        return self.name

    @property
    def spec(self) -> DatasetSpec:
        """The entry of the registry, or of the upload."""
        return dataset_spec(self.name)

    def load(self) -> Dataset:
        """Load the data set; if it is unavailable, the ValueError explains how to obtain it."""
        return self.spec(**dict(self.given))

    @property
    def params(self) -> tuple[ParamSpec, ...]:
        """The parameters of the data set."""
        return self.spec.params

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters and their values."""
        return {spec.name: spec.default for spec in self.params} | dict(self.given)


@dataclass(frozen=True)
class DatasetParam(ParamSpec):
    """A choice of a registered data set or an upload."""

    def check(self, value: Any) -> Any:
        """Validate the name of a data set."""
        return value if is_upload(value) else super().check(value)


def dataset_spec(name: str) -> DatasetSpec:
    """Return the registry entry of a data set.

    Parameters
    ----------
    name : str
        A key of `fmviz.lab.datasets.DATASETS`, or the name of an upload.

    Raises
    ------
    ValueError
        If the name is unknown. Missing uploads have an entry with the reason.
    """
    return _upload_spec(name) if is_upload(name) else DATASETS[one_of("The data set", name, DATASETS)]


def load(name: str, **params: Any) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    name : str
        A key of `fmviz.lab.datasets.DATASETS`, or the name of an upload.
    **params
        The parameters of the data set, as declared in ``dataset_spec(name).params``.

    Returns
    -------
    Dataset
        Features, target and metadata.

    Raises
    ------
    ValueError
        If the name or a parameter is unknown or invalid, or the data set is unavailable; the message then
        explains how to obtain it.

    Examples
    --------
    >>> from fmviz.datasets import load
    >>> monks = load("monks1")
    >>> monks.feature_names[:3]
    ('head_shape=round', 'head_shape=square', 'head_shape=octagon')
    """
    return DataChoice.of(name, params).load()


def _upload_spec(name: str) -> DatasetSpec:
    # Table readers are slow to import and rarely needed.
    from fmviz.lab.uploads import library

    missing = DatasetSpec(
        name=name,
        title="Uploaded data",
        description="",
        # The task of missing data is unknown; they are refused in any case.
        task="binary",
        load=partial(library.load, name),
        unavailable=partial(library.why_not, name),
    )
    if (upload := library.find(name)) is None:
        return missing
    return replace(
        missing,
        title=upload.title,
        description=f"{upload.rows:,} rows, {upload.features:,} features; stored only on this computer.",
        task=upload.task,
        suggested=dict(upload.suggested),
        suited=upload.suited,
    )
