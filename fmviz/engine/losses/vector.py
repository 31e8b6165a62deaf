"""Losses ℓ(f, y) of a vector of predictions, one for every output of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from ..target import Kind
from .base import Loss


class VectorLoss(Protocol):
    """What a model with several outputs needs of a loss.

    Attributes
    ----------
    name, label : str
        Identifier and words.
    kinds : tuple of str
        The kinds of `fmviz.engine.target.Target` that it takes.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    kinds: ClassVar[tuple[Kind, ...]]

    def value_and_gradient(self, F: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss of every row and its gradient in the predictions, for a block of rows.

        Parameters
        ----------
        F : (B, m) ndarray
            Predictions.
        Y : (B,) or (B, m) ndarray
            The target's values of these rows.

        Returns
        -------
        value : (B,) ndarray
        gradient : (B, m) ndarray
        """


@dataclass(frozen=True)
class Separate:
    """Σ_c ℓ(f_c, y_c): one and the same loss, added up over the outputs.

    With the squared loss that is for several real targets, with the logistic loss for several labels a row.

    Parameters
    ----------
    loss : Loss
        ℓ.
    """

    loss: Loss

    name: ClassVar[str] = "separate"
    label: ClassVar[str] = "Sum over outputs"
    kinds: ClassVar[tuple[Kind, ...]] = ("real", "binary", "several")

    def value_and_gradient(self, F: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `VectorLoss.value_and_gradient`."""
        f, y = F.ravel(), Y.reshape(F.shape).ravel()
        value = self.loss.value(f, y).reshape(F.shape).sum(axis=1)
        return value, self.loss.derivative(f, y).reshape(F.shape)
