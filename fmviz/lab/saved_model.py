"""Save a fitted model with the encoding of its table, load it, and predict."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.special import ndtr

from fmviz.engine.design import Design
from fmviz.engine.losses import get_loss, loss_of_outputs
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.sampling.posterior import Posterior
from fmviz.lab.files import read_input
from fmviz.lab.store.packing import UNREADABLE, parameters_of
from fmviz.tables.encoded import applied
from fmviz.tables.encoder import TableEncoder
from fmviz.tables.source import Reading, Source
from fmviz.tables.target import Target

_SAMPLED = ("P", "w", "intercept")


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A fitted model with the encoding of its data.

    Attributes
    ----------
    parameters : Parameters
        The fitted parameters.
    model : str
        A name of `fmviz.engine.models.MODELS`.
    model_params : mapping
        The model's own parameters.
    target : Target
        The encoding of the target.
    feature_names : tuple of str
        The names of the features.
    encoder : TableEncoder or None
        The encoder of a table; None if the features were given as numbers.
    averaged : Posterior or None
        Posterior samples that predict instead of `parameters`, if they predict better.
    base : {"auto", "0", "1"}
        The index of the first feature of a libsvm file.
    loss : str
        A name of `fmviz.engine.losses.LOSSES`; empty for posterior samples.

    Examples
    --------
    ``SavedModel.load("late/model.npz")`` reads what ``fmviz fit --output late`` wrote. From Python:

    >>> import pandas as pd
    >>> from fmviz import Experiment
    >>> from fmviz.lab.runner import prepare
    >>> from fmviz.lab.datasets import Dataset
    >>> from fmviz.tables.encoded import encode
    >>> from fmviz.tables.recipe import Choice, Recipe
    >>> from fmviz.tables.source import Source
    >>> table = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "price": [20.0, 40.0, 60.0, 80.0]})
    >>> recipe = Recipe(columns=(Choice("size", "number"),), target="price", numbers="line")
    >>> own = encode(Source(recipe.reading, table), recipe)
    >>> experiment = Experiment(rank=1, regularizer="l2", lambda_sparse=0.0, lambda_w=0.0)
    >>> end = prepare(Dataset.of_table(own, "houses", "Houses"), experiment, own.rows).end()
    >>> model = SavedModel(end.parameters, "fm", own.target, ("size",), own.encoder)
    >>> model.predict(pd.DataFrame({"size": [5.0]})).round(3)
    array([100.])
    """

    parameters: Parameters
    model: str
    target: Target
    feature_names: tuple[str, ...]
    encoder: TableEncoder | None = None
    model_params: Mapping[str, Any] = field(default_factory=dict)
    loss: str = ""
    averaged: Posterior | None = None
    base: str = "auto"

    def save(self, path: str | Path | IO[bytes]) -> None:
        """Write an NPZ file with the parameters, and everything else as JSON in ``about``."""
        about = {
            "model": self.model,
            "model_params": dict(self.model_params),
            "loss": self.loss,
            "target": self.target.to_dict(),
            "feature_names": list(self.feature_names),
            "encoding": None if self.encoder is None else self.encoder.to_dict(),
            "base": self.base,
        }
        arrays = dict(self.parameters)
        if self.averaged is not None:
            about["averaged"] = {"binary": self.averaged.binary}
            arrays |= {
                f"samples_{name}": getattr(self.averaged, name).astype(np.float32) for name in _SAMPLED
            }
        np.savez_compressed(path, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> SavedModel:
        """Read a file by `save`; raises ValueError on anything else."""
        data = read_input(path)
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                samples = [name for name in archive.files if name.startswith("samples_")]
                kept = {name.removeprefix("samples_"): archive[name] for name in samples}
                arrays = {name: archive[name] for name in archive.files if name not in ("about", *samples)}
                about = json.loads(str(archive["about"]))
            encoding = about["encoding"]
            decimal = "point" if encoding is None else encoding.get("decimal", "point")
            return cls(
                parameters_of(arrays),
                about["model"],
                Target.from_dict(about["target"], decimal),
                tuple(about["feature_names"]),
                None if encoding is None else TableEncoder.from_dict(encoding),
                about["model_params"],
                about["loss"],
                Posterior(**kept, **about["averaged"]) if "averaged" in about else None,
                about.get("base", "auto"),
            )
        except UNREADABLE as error:
            # Without the message of NumPy, which advises to unpickle the file.
            raise ValueError(
                f"{str(path)!r} is no model that this `fmviz fit` has written, or is damaged. Give "
                "the folder of its --output, or the model.npz in that."
            ) from error

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
        decoded = self.target.decode(scores)
        if self.target.task != "regression":
            missing = np.isnan(scores)
            decoded[missing if decoded.shape == scores.shape else missing.any(axis=1)] = None
        return decoded

    def probability(self, scores: np.ndarray) -> np.ndarray | None:
        """Return the probabilities of +1 under the loss, in the shape of the scores, or None."""
        if self.averaged is not None:
            return np.asarray(ndtr(scores)) if self.averaged.binary else None
        if not self.loss:
            return None
        loss = get_loss(self.loss)
        together = get_model(self.model, self.model_params).multi_output
        return (loss_of_outputs(loss, self.target.engine) if together else loss).probability(scores)

    def _scored(self, X: Any) -> np.ndarray:
        if self.averaged is not None:
            return self.averaged.scores(X)
        return get_model(self.model, self.model_params).scores(Design(X), self.parameters)

    def scores(self, data: Any) -> tuple[np.ndarray, list[str]]:
        """Return scores, shape (N,) or (N, m), NaN in rows with a missing value, and notes on the rows.

        The score of a regression is the encoded target. Of two classes the sign decides, and under the
        logistic loss 1/(1 + exp(−score)) is the probability of the second; more classes have a score each.
        """
        if self.encoder is None:
            return self._scored(data), []
        table = data.drop(columns=[*self.target.names], errors="ignore")
        encoded = applied(Source(Reading(), table), self.target, self.encoder)
        scores = self._scored(encoded.X)
        all_scores = np.full((len(data), *scores.shape[1:]), np.nan)
        all_scores[encoded.rows] = scores
        return all_scores, list(encoded.notes)
