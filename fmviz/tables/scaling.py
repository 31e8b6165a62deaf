"""Standardize numbers and transform them back to their original unit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scaling:
    """The scaling of a number, or of its logarithm, to (value − mean)/scale.

    Attributes
    ----------
    mean, scale : float
        In the original unit.
    deviations : bool
        Whether they are the mean and the standard deviation of the data.
    logarithm : bool
        Whether the natural logarithm is scaled.
    """

    mean: float = 0.0
    scale: float = 1.0
    deviations: bool = True
    logarithm: bool = False

    def encode(self, value: float) -> float:
        """Return the scaled value."""
        return ((math.log(value) if self.logarithm else value) - self.mean) / self.scale

    def decode(self, scaled: Any) -> Any:
        """Return a value, or an array of them, in the original unit; infinity on overflow."""
        with np.errstate(over="ignore"):
            return np.exp(self.added(scaled)) if self.logarithm else self.added(scaled)

    def added(self, scaled: Any) -> Any:
        """Return the value, or an array of them, on the additive scale: the value or its logarithm."""
        return self.mean + self.scale * scaled
