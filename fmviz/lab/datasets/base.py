"""Dataclasses of a data set, of its scaling and of its registry entry."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.engine.memory import array_bytes
from fmviz.engine.settings import ParamSpec, check_params
from fmviz.engine.target import Target
from fmviz.lab.contamination import Task, contaminated, contamination_params

__all__ = ["Dataset", "DatasetSpec", "Scaling", "Task"]


@dataclass(frozen=True)
class Scaling:
    """How a number was scaled: it, or its logarithm, is held as (value − mean)/scale.

    Attributes
    ----------
    mean, scale : float
        In the units that people tell it in.
    deviations : bool
        Whether they are the mean and the standard deviation of the data, and not merely round numbers.
    logarithm : bool
        Whether mean and scale are those of the natural logarithm.
    """

    mean: float = 0.0
    scale: float = 1.0
    deviations: bool = True
    logarithm: bool = False

    def encode(self, value: float) -> float:
        """Return what is held of a value."""
        return ((math.log(value) if self.logarithm else value) - self.mean) / self.scale

    def decode(self, scaled: float) -> float:
        """Return the value of what is held."""
        added = self.added(scaled)
        # What overflows is told as infinite.
        return float(np.exp(np.float64(added))) if self.logarithm else added

    def added(self, scaled: float) -> float:
        """Return that of which the terms of a prediction are parts: the value, or its logarithm."""
        return self.mean + self.scale * scaled


@dataclass(frozen=True, eq=False)
class Dataset:
    """A design matrix with its target and what is known about both.

    Attributes
    ----------
    name, title, description, source, licence : str
        How it is called, and where it comes from.
    task : {"regression", "binary", "class", "ordinal", "several"}
        What the target is, see `Task`.
    X : (N, d) float64 ndarray or CSR array
        The encoded features.
    y : (N,) or (N, m) float64 ndarray
        The target: -1 and +1 for two classes and for m labels, 0 to C − 1 for C classes, and else one number
        a row or m of them.
    feature_names : tuple of str
        One name for every column of X.
    groups : tuple of str
        For every column of X the attribute that it encodes: one-hot levels of one attribute share it.
    target_name : str
        What y measures, in words.
    class_labels : tuple of str, optional
        The words for -1 and +1, for the classes by their number, or for the labels.
    truth : (d, d) or (m, d, d) ndarray, optional
        The true interaction weights, of one output or of each, symmetric with a zero diagonal, where they are
        known exactly.
    true_pairs : tuple of (int, int), optional
        The pairs i < j that truly interact, where only the structure is known.
    true_triples : tuple of (int, int, int), optional
        The triples i < j < l that truly interact, where they are known.
    scaling : tuple of Scaling or None, optional
        How every column of X was scaled; None for one that was not.
    target_scaling : Scaling or tuple of Scaling, optional
        How y was scaled, or each of its columns.
    targets : tuple of str
        What each of m numbers measures; empty for one.
    true_y : ndarray, optional
        The target before some rows were made wrong on purpose, in the shape of y; None where none were.
    """

    name: str
    title: str
    task: Task
    X: np.ndarray | sp.csr_array
    y: np.ndarray
    feature_names: tuple[str, ...]
    groups: tuple[str, ...]
    target_name: str = "y"
    class_labels: tuple[str, ...] | None = None
    truth: np.ndarray | None = None
    true_pairs: tuple[tuple[int, int], ...] | None = None
    true_triples: tuple[tuple[int, int, int], ...] | None = None
    scaling: tuple[Scaling | None, ...] | None = None
    target_scaling: Scaling | tuple[Scaling, ...] | None = None
    description: str = ""
    source: str = ""
    licence: str = ""
    targets: tuple[str, ...] = ()
    true_y: np.ndarray | None = None

    @cached_property
    def n_bytes(self) -> int:
        """How much memory its arrays take."""
        return array_bytes(self.X, self.y, self.true_y, self.truth)

    @property
    def wrong(self) -> np.ndarray | None:
        """Which rows are wrong on purpose, bool of shape (N,); None where none were made so."""
        if self.true_y is None:
            return None
        wrong = self.y != self.true_y
        return wrong if wrong.ndim == 1 else wrong.any(axis=1)

    def scaling_of(self, column: int) -> Scaling | None:
        """Return how a column of X was scaled, or None."""
        return None if self.scaling is None else self.scaling[column]

    @property
    def outputs(self) -> tuple[str, ...]:
        """What the outputs of a model of these data are called; empty where there is one, without a name."""
        labels = self.class_labels or ()
        if self.task == "ordinal":
            return tuple(f"≤ {label}" for label in labels[:-1])
        return labels if self.task in ("class", "several") else self.targets

    @property
    def levels(self) -> np.ndarray:
        """The classes as numbers, shape (C,): their labels where all are numbers, else 1 to C."""
        labels = self.class_labels or ()
        try:
            return np.array([float(label) for label in labels])
        except ValueError:
            return np.arange(1.0, len(labels) + 1.0)

    def target_of(self, y: np.ndarray) -> Any:
        """Return the target of some rows, given their values, as problems take it."""
        if self.task in ("class", "ordinal", "several"):
            return Target(y, self.task, np.array(self.class_labels))
        return Target(y, "real", np.array(self.targets)) if y.ndim == 2 else y

    @property
    def unit(self) -> tuple[float, str]:
        """What brings an error into the target's own unit, and that unit; or 1 and nothing."""
        scaling = self.target_scaling
        if not isinstance(scaling, Scaling) or (scaling.scale == 1.0 and not scaling.logarithm):
            return 1.0, ""
        return scaling.scale, f"log {self.target_name}" if scaling.logarithm else self.target_name

    def of_output(self, c: int) -> Dataset:
        """Return the data set with one of its outputs as its target: a class against the rest, a number.

        One that has a single output is returned as it is.
        """
        if not self.outputs:
            return self
        name, scaling = self.outputs[c], self.target_scaling
        task: Task = "regression" if self.task == "regression" else "binary"
        return replace(
            self,
            task=task,
            y=self.target_of(self.y).outputs()[c].values,
            true_y=None if self.true_y is None else self.target_of(self.true_y).outputs()[c].values,
            class_labels=None if task == "regression" else (f"not {name}", name),
            target_name=name if self.task == "regression" else self.target_name,
            targets=(),
            truth=self.truth[c] if self.truth is not None and self.truth.ndim == 3 else self.truth,
            target_scaling=scaling[c] if isinstance(scaling, tuple) else scaling,
        )

    def of_contrast(self, c: int, other: int) -> Dataset:
        """Return the data set whose target says whether a row is of one class, in contrast to another one."""
        data = self.of_output(c)
        names = self.outputs
        truth = None
        if self.truth is not None and self.truth.ndim == 3:
            truth = self.truth[c] - self.truth[other]
        return replace(data, class_labels=(names[other], f"{names[c]} against {names[other]}"), truth=truth)


@dataclass(frozen=True)
class DatasetSpec:
    """A registered data set: what is told about it before it is loaded, and how to load it.

    Attributes
    ----------
    name, title, description, task, source, licence : str
        As in `Dataset`.
    load : callable
        ``load(**params) -> Dataset``.
    own_params : tuple of ParamSpec
        The keywords of `load`.
    unavailable : callable
        Returns None, or the sentence that says why the set cannot be loaded here and how to get it.
    suggested : mapping
        Settings under which a first training run says something (``rank``, ``lambda_w``, ...).
    suited : mapping of str to mapping
        The same for other models than a factorization machine, by their names; over what suits these anyway.
    """

    name: str
    title: str
    description: str
    task: Task
    load: Callable[..., Dataset]
    own_params: tuple[ParamSpec, ...] = ()
    source: str = ""
    licence: str = ""
    unavailable: Callable[[], str | None] = field(default=lambda: None)
    suggested: Mapping[str, Any] = field(default_factory=dict)
    suited: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def params(self) -> tuple[ParamSpec, ...]:
        """What can be set: the keywords of `load`, and how many rows are made wrong on purpose."""
        return (*self.own_params, *contamination_params(self.task))

    def __call__(self, **params: Any) -> Dataset:
        """Validate the parameters, check that the set is available, and load it."""
        reason = self.unavailable()
        if reason is not None:
            raise ValueError(reason)
        given = check_params(f"Data set {self.name!r}", self.params, params)
        errors = {spec.name: given.pop(spec.name) for spec in contamination_params(self.task)}
        dataset = self.load(**given)
        y = contaminated(dataset.y, dataset.task, **errors)
        return dataset if y is dataset.y else replace(dataset, y=y, true_y=dataset.y)
