"""Fits to tables: prepared like registered data sets, saved, and used to predict."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.design import Design
from fmviz.engine.losses import LOSSES
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, problem_of, split
from fmviz.lab.store.packing import pack_parameters, unpack_parameters
from fmviz.lab.tables.encoding import TableEncoding, Target
from fmviz.lab.tables.files import read_libsvm

__all__ = ["MOST_FEATURES", "OwnData", "SavedModel", "from_libsvm", "from_table", "prepare"]

MOST_FEATURES = 10_000_000
"""Of a libsvm file: a wrong index would make as many, with a name each, until the memory is full."""


@dataclass(frozen=True, eq=False)
class OwnData:
    """Data of one's own, encoded and split.

    Attributes
    ----------
    dataset : Dataset
        All rows that were kept; the target is encoded.
    target : Target
        What y means.
    encoding : TableEncoding or None
        What the features mean; None where the file held numbers for features already.
    train, held_out : int ndarrays
        The rows of `dataset` that train and that validate.
    dropped : int
        Rows that were left out since something was missing.
    """

    dataset: Dataset
    target: Target
    encoding: TableEncoding | None
    train: np.ndarray
    held_out: np.ndarray
    dropped: int = 0


def from_table(
    table: pd.DataFrame, target: str, name: str, *, validation: float = 0.0, seed: int = 0, **encoding: Any
) -> OwnData:
    """Encode and split a table.

    Parameters
    ----------
    table : DataFrame
        See `fmviz.lab.tables.files.read_text_table`.
    target : str
        The column to predict.
    name : str
        What the data are called.
    validation : float
        The share of rows that is kept out. Means, deviations and levels are learned on the others.
    seed : int
        Draws them, as for a registered data set.
    **encoding
        As for `TableEncoding.learn`.

    Raises
    ------
    ValueError
        As `TableEncoding.learn` does.
    """
    train, _ = split(len(table), validation, seed)
    learned = TableEncoding.learn(table, target, rows=train, **encoding)
    encoded = learned.apply(table)
    training = np.isin(encoded.rows, train)
    return OwnData(
        learned.dataset(encoded, name, name),
        learned.target,
        learned,
        np.flatnonzero(training),
        np.flatnonzero(~training),
        encoded.dropped,
    )


def from_libsvm(
    data: bytes, name: str, *, task: str = "auto", validation: float = 0.0, seed: int = 0
) -> OwnData:
    """Read and split a libsvm file, whose features are taken as they are; else as `from_table`."""
    X, y = read_libsvm(data, name)
    if X.shape[1] > MOST_FEATURES:
        raise ValueError(
            f"{name} has an index of {X.shape[1]:,}, more than {MOST_FEATURES:,} features. Number them anew "
            "without gaps."
        )
    train, held_out = split(y.size, validation, seed)
    values = pd.Series(y, name="target")
    target = Target.learn(values, task, train)
    names = tuple(str(j) for j in range(1, X.shape[1] + 1))
    dataset = Dataset(
        name=name,
        title=name,
        task=target.task,
        X=X,
        y=target.encode(values),
        feature_names=names,
        groups=names,
        target_name=target.name,
        class_labels=(target.labels[0], target.labels[1]) if target.labels else None,
    )
    return OwnData(dataset, target, None, train, held_out)


def prepare(own: OwnData, experiment: Experiment) -> Run:
    """Return the run that an experiment describes, on these data instead of its own.

    Raises
    ------
    ValueError
        If the loss does not suit the target, or the settings do not suit each other.
    """
    if LOSSES[experiment.loss].task == "binary" and own.target.task != "binary":
        raise ValueError(
            f"The {LOSSES[experiment.loss].label.lower()} loss wants two classes, but the target "
            f"{own.target.name!r} is a number. Choose the squared or the Huber loss."
        )
    X, y = own.dataset.X, own.dataset.y
    problem = problem_of(experiment, Design(X[own.train]), y[own.train])
    held_out = (Design(X[own.held_out]), y[own.held_out]) if own.held_out.size else None
    return Run(experiment, own.dataset, problem, held_out)


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A fitted model with all that predictions need.

    Attributes
    ----------
    parameters : Parameters
        What was fitted.
    model : str
        A name of `fmviz.engine.models.MODELS`.
    model_params : mapping
        The model's own parameters.
    target : Target
        What is predicted.
    feature_names : tuple of str
        The features.
    encoding : TableEncoding or None
        How a table becomes features; None where they were given as numbers.

    Examples
    --------
    ``SavedModel.load("late/model.npz")`` reads what ``fmviz fit --output late`` wrote. From Python:

    >>> table = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "price": [20.0, 40.0, 60.0, 80.0]})
    >>> own = from_table(table, "price", "houses")
    >>> end = prepare(own, Experiment(rank=1, regularizer="l2", lambda_sparse=0.0, lambda_w=0.0)).end()
    >>> model = SavedModel(end.parameters, "fm", own.target, own.dataset.feature_names, own.encoding)
    >>> model.predict(pd.DataFrame({"size": [5.0]})).round(3)
    array([100.])
    """

    parameters: Parameters
    model: str
    target: Target
    feature_names: tuple[str, ...]
    encoding: TableEncoding | None = None
    model_params: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: str | Path) -> None:
        """Write an NPZ file: the arrays of the parameters, and ``about``, the rest as JSON."""
        about = {
            "model": self.model,
            "model_params": dict(self.model_params),
            "target": asdict(self.target),
            "feature_names": list(self.feature_names),
            "encoding": None if self.encoding is None else self.encoding.to_dict(),
        }
        with np.load(io.BytesIO(pack_parameters(self.parameters)), allow_pickle=False) as archive:
            arrays = dict(archive)
        np.savez_compressed(path, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> SavedModel:
        """Read what `save` wrote; raises ValueError on anything else."""
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files if name != "about"}
                about = json.loads(str(archive["about"]))
            buffer = io.BytesIO()
            np.savez(buffer, allow_pickle=False, **arrays)
            encoding = about["encoding"]
            return cls(
                unpack_parameters(buffer.getvalue()),
                about["model"],
                Target(**{**about["target"], "labels": tuple(about["target"]["labels"])}),
                tuple(about["feature_names"]),
                None if encoding is None else TableEncoding.from_dict(encoding),
                about["model_params"],
            )
        except (KeyError, OSError, EOFError, TypeError, ValueError, zlib.error) as error:
            raise ValueError(f"{str(path)!r} is no model that `fmviz fit` has written ({error}).") from None

    def predict(self, data: Any) -> np.ndarray:
        """Return predictions in the target's own numbers or words.

        Parameters
        ----------
        data : DataFrame, or (N, d) array_like or sparse matrix
            A table like the one that was fitted to, or features where that had no encoding.

        Returns
        -------
        (N,) ndarray
            NaN, or None for words, in rows of a table that are left out for a missing value.
        """
        if self.encoding is None:
            return self._words(self._scores(data))
        encoded = self.encoding.apply(data.drop(columns=self.target.name, errors="ignore"))
        found = self._words(self._scores(encoded.X))
        all_rows = np.full(len(data), np.nan if found.dtype.kind == "f" else None, dtype=found.dtype)
        all_rows[encoded.rows] = found
        return all_rows

    def _scores(self, X: Any) -> np.ndarray:
        return get_model(self.model, self.model_params).predict(Design(X), self.parameters)

    def _words(self, f: np.ndarray) -> np.ndarray:
        if self.target.task == "regression":
            return self.target.mean + self.target.scale * f
        return np.array(self.target.labels, dtype=object)[(f > 0).astype(int)]
