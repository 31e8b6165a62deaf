"""What a data set is, and how one is registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from fmviz.engine.settings import ParamSpec, check_params

Task = Literal["regression", "binary"]


@dataclass(frozen=True)
class Scaling:
    """How a number was scaled: it is held as (value − mean)/scale.

    Attributes
    ----------
    mean, scale : float
        In the units that people tell it in.
    deviations : bool
        Whether they are the mean and the standard deviation of the data, and not merely round numbers.
    """

    mean: float = 0.0
    scale: float = 1.0
    deviations: bool = True

    def encode(self, value: float) -> float:
        """Return what is held of a value."""
        return (value - self.mean) / self.scale

    def decode(self, held: float) -> float:
        """Return the value of what is held."""
        return self.mean + self.scale * held


@dataclass(frozen=True, eq=False)
class Dataset:
    """A design matrix with its target and what is known about both.

    Attributes
    ----------
    name, title, description, source, licence : str
        How it is called, and where it comes from.
    task : {"regression", "binary"}
        What the target is.
    X : (N, d) float64 ndarray or CSR array
        The encoded features.
    y : (N,) float64 ndarray
        The target; -1 and +1 for a binary task.
    feature_names : tuple of str
        One name for every column of X.
    groups : tuple of str
        For every column of X the attribute that it encodes: one-hot levels of one attribute share it.
    target_name : str
        What y measures, in words.
    class_labels : tuple of two str, optional
        The words for -1 and +1.
    truth : (d, d) ndarray, optional
        The true interaction weights, symmetric with a zero diagonal, where they are known exactly.
    true_pairs : tuple of (int, int), optional
        The pairs i < j that truly interact, where only the structure is known.
    true_triples : tuple of (int, int, int), optional
        The triples i < j < l that truly interact, where they are known.
    scaling : tuple of Scaling or None, optional
        How every column of X was scaled; None for one that was not.
    target_scaling : Scaling, optional
        How y was scaled.
    """

    name: str
    title: str
    task: Task
    X: np.ndarray | sp.csr_array
    y: np.ndarray
    feature_names: tuple[str, ...]
    groups: tuple[str, ...]
    target_name: str = "y"
    class_labels: tuple[str, str] | None = None
    truth: np.ndarray | None = None
    true_pairs: tuple[tuple[int, int], ...] | None = None
    true_triples: tuple[tuple[int, int, int], ...] | None = None
    scaling: tuple[Scaling | None, ...] | None = None
    target_scaling: Scaling | None = None
    description: str = ""
    source: str = ""
    licence: str = ""

    def scaling_of(self, column: int) -> Scaling | None:
        """Return how a column of X was scaled, or None."""
        return None if self.scaling is None else self.scaling[column]


@dataclass(frozen=True)
class DatasetSpec:
    """A registered data set: what is told about it before it is loaded, and how to load it.

    Attributes
    ----------
    name, title, description, task, source, licence : str
        As in `Dataset`.
    load : callable
        ``load(**params) -> Dataset``.
    params : tuple of ParamSpec
        The keywords of `load`.
    unavailable : callable
        Returns None, or the sentence that says why the set cannot be loaded here and how to get it.
    suggested : mapping
        Settings under which a first training run says something (``rank``, ``lambda_w``, ...).
    """

    name: str
    title: str
    description: str
    task: Task
    load: Callable[..., Dataset]
    params: tuple[ParamSpec, ...] = ()
    source: str = ""
    licence: str = ""
    unavailable: Callable[[], str | None] = field(default=lambda: None)
    suggested: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **params: Any) -> Dataset:
        """Validate the parameters, check that the set is available, and load it."""
        reason = self.unavailable()
        if reason is not None:
            raise ValueError(reason)
        return self.load(**check_params(f"Data set {self.name!r}", self.params, params))

    def dataset(self, **held: Any) -> Dataset:
        """Return a `Dataset` with the words of this entry; `held` are its other attributes."""
        return Dataset(
            name=self.name,
            title=self.title,
            task=self.task,
            description=self.description,
            source=self.source,
            licence=self.licence,
            **held,
        )
