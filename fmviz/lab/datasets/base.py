"""Dataclasses of a data set, of its scaling and of its registry entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from fmviz.engine.memory import array_bytes
from fmviz.engine.settings import SMALL, ParamSpec, check_params
from fmviz.engine.target import Target
from fmviz.tables.scaling import Scaling

from .drawn import contaminated, contamination_params

if TYPE_CHECKING:
    from fmviz.engine.losses import Loss
    from fmviz.tables.columns import FeatureColumn
    from fmviz.tables.encoded import Encoded
    from fmviz.tables.target import Task

_UNIT = re.compile(r"[(\[]\s*([^()\[\],;]{1,12}?)\s*(?:[,;][^()\[\]]*)?[)\]]$")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A design matrix with its target and metadata.

    Attributes
    ----------
    name, title, description, source, licence : str
        Name and origin.
    task : {"regression", "binary", "class", "ordinal", "several"}
        The type of the target, see `Task`.
    X : (N, d) float64 ndarray or CSR array
        The encoded features.
    y : (N,) or (N, m) float64 ndarray
        The target: -1 and +1 for two classes and for m labels, 0 to C − 1 for C classes, else one or m
        numbers a row.
    feature_names : tuple of str
        One name for every column of X.
    groups : tuple of str
        The attribute that every column of X encodes; one-hot levels of an attribute share it.
    target_name : str
        The name of the target.
    class_labels : tuple of str, optional
        The labels of -1 and +1, of the classes, or of several outputs.
    truth : (d, d) or (m, d, d) ndarray, optional
        The true interaction weights of the output or of each output, symmetric with a zero diagonal.
    true_pairs : tuple of (int, int), optional
        The pairs i < j that truly interact, if only the structure is known.
    true_triples : tuple of (int, int, int), optional
        The triples i < j < l that truly interact.
    scaling : tuple of Scaling or None, optional
        The scaling of every column of X; None for an unscaled one.
    target_scaling : Scaling or tuple of Scaling, optional
        The scaling of y, or of each of its columns.
    targets : tuple of str
        The names of m numerical targets; empty for one.
    true_y : ndarray, optional
        The target before contamination; None if it is not contaminated.
    columns : tuple of FeatureColumn
        The encoded columns of the table, in its order; empty if X does not encode a table.
    group : str
        The name of the groups that splits do not divide, such as dates; empty if rows are split individually.
    row_groups : (N,) int ndarray or None
        The group of every row.
    every : callable or None
        Returns the data set with all bases of numbers side by side; None if the bases are set.
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
    columns: tuple[FeatureColumn, ...] = ()
    group: str = ""
    row_groups: np.ndarray | None = None
    every: Callable[[], Dataset] | None = None

    @classmethod
    def of_table(cls, encoded: Encoded, name: str, title: str) -> Dataset:
        """Return the data set of an encoded file; raises ValueError if it has no target."""
        target, encoder = encoded.target, encoded.encoder
        if encoded.y is None:
            raise ValueError(f"The table lacks the column {target.name!r}, its target.")
        numbered = tuple(str(j) for j in range(1, encoded.X.shape[1] + 1))
        columns = () if encoder is None else encoder.columns_
        return cls(
            name=name,
            title=title,
            task=target.task,
            X=encoded.X,
            y=encoded.y,
            feature_names=tuple(feature for column in columns for feature in column.feature_names)
            or numbered,
            groups=numbered if encoder is None else encoder.groups_,
            target_name=target.name,
            class_labels=target.class_labels,
            targets=target.outputs if target.task == "regression" else (),
            scaling=tuple(scaling for column in columns for scaling in column.scalings) or None,
            target_scaling=target.scaling,
            columns=columns,
            group=encoded.group,
            row_groups=encoded.row_groups,
        )

    @cached_property
    def bases(self) -> dict[str, np.ndarray]:
        """The mask of the features of every name of bases, if all bases of numbers stand side by side."""
        from fmviz.tables.curves import features_of_bases

        return features_of_bases(self.columns)

    @cached_property
    def n_bytes(self) -> int:
        """The size of its arrays."""
        return array_bytes(self.X, self.y, self.true_y, self.truth, self.row_groups)

    @property
    def wrong(self) -> np.ndarray | None:
        """The mask of contaminated rows, shape (N,), or None."""
        if self.true_y is None:
            return None
        wrong = self.y != self.true_y
        return wrong if wrong.ndim == 1 else wrong.any(axis=1)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs of a model; empty for a single output."""
        labels = self.class_labels or ()
        if self.task == "ordinal":
            return tuple(f"≤ {label}" for label in labels[:-1])
        return labels if self.task in ("class", "several") else self.targets

    @property
    def levels(self) -> np.ndarray:
        """The numerical levels of the classes, shape (C,): their labels if all are numbers, else 1 to C."""
        labels = self.class_labels or ()
        try:
            return np.array([float(label) for label in labels])
        except ValueError:
            return np.arange(1.0, len(labels) + 1.0)

    def target_of(self, y: np.ndarray) -> Any:
        """Return target values of some rows in the form that problems take."""
        if self.task in ("class", "ordinal", "several"):
            return Target(y, self.task, np.array(self.class_labels))
        return Target(y, "real", np.array(self.targets)) if y.ndim == 2 else y

    @property
    def contrast(self) -> str:
        """The classes compared by an area under the ROC curve, in parentheses; empty for numbers."""
        labels = self.class_labels or ()
        if self.outputs and labels:
            noun = {"ordinal": "steps", "several": "labels"}.get(self.task, "classes")
            return f" (mean of {len(self.outputs):,} {noun})"
        if not labels:
            return ""
        negative, positive = labels
        return f" ({positive} against {'all others' if negative == f'not {positive}' else negative})"

    @property
    def target_unit(self) -> str:
        """The unit in parentheses at the end of the target's name, else that name."""
        unit = _UNIT.search(self.target_name)
        return self.target_name if unit is None else unit[1]

    @property
    def unit(self) -> tuple[float, str]:
        """The factor that converts errors to the unit of the target, and that unit; or 1 and ""."""
        scaling = self.target_scaling
        if not isinstance(scaling, Scaling) or (scaling.scale == 1.0 and not scaling.logarithm):
            return 1.0, ""
        return scaling.scale, f"log {self.target_unit}" if scaling.logarithm else self.target_unit

    def for_loss(self, loss: Loss) -> Dataset:
        """Return the data with a target in its original unit if the loss has a log link, or else unchanged.

        Rounding errors of the inverse scaling are rounded off: counts stay whole numbers.
        """
        scaling = self.target_scaling
        if not loss.log_link or scaling is None:
            return self
        each = scaling if isinstance(scaling, tuple) else (scaling,)

        def unscaled(y: np.ndarray) -> np.ndarray:
            columns = zip(each, y.reshape(len(y), -1).T, strict=True)
            values = np.column_stack([own.decode(column) for own, column in columns]).reshape(y.shape)
            return np.round(values, 9 - int(np.log10(max(np.abs(values).max(initial=0.0), SMALL))))

        true_y = None if self.true_y is None else unscaled(self.true_y)
        return replace(self, y=unscaled(self.y), true_y=true_y, target_scaling=None)

    def of_output(self, c: int) -> Dataset:
        """Return the data set of one output: a class against the rest, or a number.

        A data set with a single output is returned unchanged.
        """
        if not self.outputs:
            return self
        name, scaling = self.outputs[c], self.target_scaling
        task: Task = "regression" if self.task == "regression" else "binary"
        return replace(
            self,
            task=task,
            y=self.target_of(self.y).outputs[c].values,
            true_y=None if self.true_y is None else self.target_of(self.true_y).outputs[c].values,
            class_labels=None if task == "regression" else (f"not {name}", name),
            target_name=name if self.task == "regression" else self.target_name,
            targets=(),
            every=None if self.every is None else partial(_of_output, self.every, c),
            truth=self.truth[c] if self.truth is not None and self.truth.ndim == 3 else self.truth,
            target_scaling=scaling[c] if isinstance(scaling, tuple) else scaling,
        )


def _of_output(every: Callable[[], Dataset], c: int) -> Dataset:
    return every().of_output(c)


@dataclass(frozen=True)
class DatasetSpec:
    """The registry entry of a data set: its metadata, and how to load it.

    Attributes
    ----------
    name, title, description, task, source, licence : str
        As in `Dataset`.
    load : callable
        ``load(**params) -> Dataset``.
    own_params : tuple of ParamSpec
        The keywords of `load`.
    unavailable : callable
        Returns the reason why the data set is unavailable, with instructions to obtain it, or None.
    suggested : mapping
        Settings for a first training run (``rank``, ``lambda_w``, ...).
    suited : mapping of str to mapping
        Further settings by model, which override the general settings of the model.
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

    @cached_property
    def params(self) -> tuple[ParamSpec, ...]:
        """All parameters: the keywords of `load`, and those of the contamination."""
        return (*self.own_params, *contamination_params(self.task))

    def __call__(self, **params: Any) -> Dataset:
        """Validate the parameters, check that the set is available, and load it."""
        if (reason := self.unavailable()) is not None:
            raise ValueError(reason)
        given = check_params(f"Data set {self.name!r}", self.params, params)
        errors = {spec.name: given.pop(spec.name) for spec in contamination_params(self.task)}
        dataset = self.load(**given)
        y = contaminated(dataset.y, dataset.task, **errors)
        return dataset if y is dataset.y else replace(dataset, y=y, true_y=dataset.y)
