"""Saved models: a fit with the encoding of its table, for prediction."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from scipy.special import ndtr

from fmviz.checked import checked
from fmviz.engine.arrays import UNREADABLE, Arrays
from fmviz.engine.design import Design
from fmviz.engine.losses import Loss, get_loss, loss_of_outputs
from fmviz.engine.models import Model, get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.sampling.posterior import Posterior
from fmviz.lab.files import read_input
from fmviz.lab.store.packing import parameters_of
from fmviz.tables.encoded import applied
from fmviz.tables.encoder import TableEncoder
from fmviz.tables.source import Reading, Source
from fmviz.tables.target import TargetEncoding

_SAMPLED, _SAMPLES = ("P", "w", "intercept"), "samples_"


@dataclass(frozen=True)
class _Averaged:
    binary: bool


@dataclass(frozen=True)
class _About:
    """The JSON description of the arrays in a file."""

    model: str
    model_params: dict[str, Any]
    loss: str
    target: dict[str, Any]
    feature_names: tuple[str, ...]
    encoding: dict[str, Any] | None = None
    averaged: _Averaged | None = None
    base: Literal["auto", "0", "1"] = "auto"
    group: str = ""
    loss_params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A fitted model with the encoding of its data.

    Attributes
    ----------
    parameters : Parameters
        The fitted parameters.
    model : Model
        The model.
    target : TargetEncoding
        The encoding of the target.
    feature_names : tuple of str
        The names of the features.
    encoder : TableEncoder or None
        The encoder of a table; None if the features were given as numbers.
    averaged : Posterior or None
        Posterior samples used for prediction instead of `parameters`, if they predict better.
    base : {"auto", "0", "1"}
        The index of the first feature of a libsvm file.
    loss : Loss or None
        The loss; None if it is unknown.
    group : str
        The group column of splits of the training data; empty without one.

    Examples
    --------
    ``SavedModel.load("rides/model.npz")`` reads the output of ``fmviz fit --output rides``. From Python:

    >>> import pandas as pd
    >>> from fmviz import Experiment
    >>> from fmviz.lab.runner import prepare
    >>> from fmviz.lab.datasets import Dataset
    >>> from fmviz.tables.encoded import encode
    >>> from fmviz.tables.recipe import Choice, Recipe
    >>> from fmviz.tables.source import Source
    >>> table = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "price": [20.0, 40.0, 60.0, 80.0]})
    >>> recipe = Recipe(columns=(Choice("size", "number"),), target="price", numbers="line", ends=False)
    >>> own = encode(Source(recipe.reading, table), recipe)
    >>> experiment = Experiment(rank=1, regularizer="l2", lambda_sparse=0.0, lambda_w=0.0)
    >>> end = prepare(Dataset.of_table(own, "houses", "Houses"), experiment, own.rows).end()
    >>> model = SavedModel(end.parameters, experiment.model, own.target, ("size",), own.encoder)
    >>> model.predict(pd.DataFrame({"size": [5.0]})).round(3)
    array([100.])
    """

    parameters: Parameters
    model: Model
    target: TargetEncoding
    feature_names: tuple[str, ...]
    encoder: TableEncoder | None = None
    loss: Loss | None = None
    averaged: Posterior | None = None
    base: str = "auto"
    group: str = ""

    def save(self, path: str | Path | IO[bytes]) -> None:
        """Write an NPZ file with the parameters, and all other fields as JSON in ``about``."""
        about = {
            "model": self.model.name,
            "model_params": self.model.settings,
            "loss": "" if self.loss is None else self.loss.name,
            "loss_params": {} if self.loss is None else self.loss.settings,
            "target": self.target.to_dict(),
            "feature_names": list(self.feature_names),
            "encoding": None if self.encoder is None else self.encoder.to_dict(),
            "base": self.base,
            "group": self.group,
        }
        arrays = dict(self.parameters)
        if self.averaged is not None:
            about["averaged"] = {"binary": self.averaged.binary}
            arrays |= {
                f"{_SAMPLES}{name}": getattr(self.averaged, name).astype(np.float32) for name in _SAMPLED
            }
        np.savez_compressed(path, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> SavedModel:
        """Read a file by `save`; raises ValueError on anything else."""
        data = read_input(path)
        try:
            arrays = Arrays(data)
            about = checked(_About, json.loads(str(arrays["about"])))
            model = get_model(about.model, about.model_params)
            read = cls(
                _read_parameters(arrays, about, model),
                model,
                TargetEncoding.from_dict(about.target),
                about.feature_names,
                None if about.encoding is None else TableEncoder.from_dict(about.encoding),
                get_loss(about.loss, about.loss_params) if about.loss else None,
                _read_samples(arrays, about),
                about.base,
                about.group,
            )
            read._check()
        except UNREADABLE as error:
            missing = "it lacks " if isinstance(error, KeyError) else ""
            raise ValueError(
                f"{str(path)!r} is not a model file of this version of `fmviz fit`, or is damaged: "
                f"{missing}{error}. Give the folder of its --output, or the model.npz in it, or fit the "
                "model again."
            ) from error
        return read

    def _check(self) -> None:
        """Raise ValueError if model, features, target and samples are inconsistent."""
        n_outputs, names = self.target.engine.n_outputs, self.feature_names
        if (m := self.model.n_outputs_of(self.parameters)) != n_outputs:
            raise ValueError(f"it has {m:,} outputs, and the target {self.target.name!r} {n_outputs:,}")
        if self.encoder is not None and self.encoder.get_feature_names_out().tolist() != list(names):
            raise ValueError("the features of its columns are not those of the model")
        if self.encoder is not None and any(
            part.reader is None for part in self.target.parts or (self.target,)
        ):
            raise ValueError("target.reader is missing")

    def predict(self, data: Any) -> np.ndarray:
        """Predict numbers or labels.

        Parameters
        ----------
        data : DataFrame, or (N, d) array_like or sparse matrix
            A table with the columns of the training data, or features if there is no encoding.

        Returns
        -------
        (N,) or (N, m) ndarray
            NaN, or None among labels, in rows with a missing value.
        """
        return self.decoded(self.scores(data)[0])

    def decoded(self, scores: np.ndarray) -> np.ndarray:
        """Decode `scores` to numbers or labels; NaN becomes NaN or None."""
        criterion = self.criterion
        decoded = self.target.decode(scores if criterion is None else criterion.mean(scores))
        if self.target.task != "regression":
            missing = np.isnan(scores)
            decoded[missing if decoded.shape == scores.shape else missing.any(axis=1)] = None
        return decoded

    def probability(self, scores: np.ndarray) -> np.ndarray | None:
        """Return the probabilities of +1 under the loss, in the shape of the scores, or None."""
        if self.averaged is not None:
            return np.asarray(ndtr(scores)) if self.averaged.binary else None
        return None if self.criterion is None else self.criterion.probability(scores)

    @property
    def criterion(self) -> Loss | None:
        """The loss of the scores, for all outputs of a joint fit; None for posterior samples."""
        if self.loss is None or self.averaged is not None:
            return None
        return loss_of_outputs(self.loss, self.target.engine) if self.model.multi_output else self.loss

    def _scored(self, X: Any) -> np.ndarray:
        if self.averaged is not None:
            return self.averaged.scores(X)
        return self.model.scores(Design(X), self.parameters)

    def scores(self, data: Any, reading: Reading | None = None) -> tuple[np.ndarray, list[str]]:
        """Return scores, shape (N,) or (N, m), NaN in rows with a missing value, and notes on the rows.

        The options of reading apply to the cells of a table, such as words for missing values. The score of a
        regression is the encoded target, or the logarithm of its mean. For two classes the
        sign of the score is the class, and under the logistic loss 1/(1 + exp(−score)) is the probability of
        the second. More classes have one score each.
        """
        if self.encoder is None:
            return self._scored(data), []
        table = data.drop(columns=[*self.target.names], errors="ignore")
        encoded = applied(Source(reading or Reading(), table), self.target, self.encoder)
        scores = self._scored(encoded.X)
        all_scores = np.full((len(data), *scores.shape[1:]), np.nan)
        all_scores[encoded.rows] = scores
        return all_scores, list(encoded.notes)


def _read_parameters(arrays: Arrays, about: _About, model: Model) -> Parameters:
    """Return the parameters of a file; ValueError unless they fit its model and are finite."""
    shapes = {
        name: shape
        for name, shape in arrays.shapes.items()
        if name != "about" and not name.startswith(_SAMPLES)
    }
    model.check_shapes(shapes, d=len(about.feature_names))
    parameters = parameters_of({name: arrays[name] for name in shapes})
    if not parameters.finite():
        raise ValueError("its parameters are not finite")
    return parameters


def _read_samples(arrays: Arrays, about: _About) -> Posterior | None:
    """Return the samples of a file, if any; ValueError if they are inconsistent."""
    if about.averaged is None and f"{_SAMPLES}P" not in arrays.shapes:
        return None
    P, w, intercept = (arrays.shapes[f"{_SAMPLES}{name}"] for name in _SAMPLED)
    d = len(about.feature_names)
    if len(P) not in (3, 4) or P[-2] != d or w != P[:-1] or intercept != P[:-2]:
        raise ValueError(f"its samples have the shapes {P}, {w} and {intercept}, for {d:,} features")
    samples = {name: arrays[f"{_SAMPLES}{name}"] for name in _SAMPLED}
    if not all(np.isfinite(values).all() for values in samples.values()):
        raise ValueError("its samples are not finite")
    if about.averaged is None or any(values.dtype.kind != "f" for values in samples.values()):
        raise ValueError("its samples have no description, or are not floating-point numbers")
    return Posterior(**samples, binary=about.averaged.binary)
