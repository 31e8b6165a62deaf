"""Anderson extrapolation of a run of sweeps (Bertrand and Massias 2021, Algorithm 1)."""

from __future__ import annotations

import numpy as np

from ..memory import aligned_copy
from ..settings import ParamSpec
from .kernels.extrapolation import Iterates, combine

ANDERSON = ParamSpec(
    "anderson",
    "int",
    0,
    low=0,
    high=50,
    help="After so many sweeps that leave the zeros alone: try the affine combination of their iterates "
    "whose steps nearly cancel, and take it where it lowers the objective. 0: the paper's sweeps.",
)

NO_ITERATES = Iterates(np.empty((0, 0)), np.empty(0, dtype=bool), np.empty(0, dtype=np.int64))
"""For sweeps after which nothing is noted."""


class Extrapolation:
    """The last iterates of a fixed-point method, and the point that they seem to lead to.

    Near its limit θ* a sweep is nearly an affine map, so that the combination Σ c_i θ_i, Σ c_i = 1, with the
    smallest Σ c_i (θ_i − θ_{i−1}) is nearer to θ* than any iterate.

    Parameters
    ----------
    depth : int
        The number of steps that are combined.
    places : ndarray of int
        Where each entry of P, row by row, is in what its solver keeps.
    linear : int
        The number of linear weights.
    sizes : ndarray
        What takes the units out of a step: a factor for each entry of P, for w and for the bias; steps of P,
        and of w with the bias, then count as shares of their norms. Empty to measure them as they are.

    Attributes
    ----------
    count : int
        How many iterates are noted.
    """

    memory = ("_iterates", "count")

    def __init__(self, depth: int, places: np.ndarray, linear: int, sizes: np.ndarray) -> None:
        self._iterates = aligned_copy(np.zeros((depth + 1, places.size + linear + 1)))
        self.count = 0
        self._places, self._sizes = places, sizes

    @property
    def full(self) -> bool:
        """Whether there are as many iterates as are combined."""
        return self.count == len(self._iterates)

    def iterates(self, live: np.ndarray) -> Iterates:
        """Return what kernels note iterates in; `live` says which entries of P, as it is kept, were not 0."""
        return Iterates(self._iterates, live.reshape(-1), self._places)

    def point(self) -> np.ndarray | None:
        """Return the combination, and forget the iterates; None where nothing moved or not all is finite."""
        self.count = 0
        found = np.empty(self._iterates.shape[1])
        return found if combine(self._iterates, self._sizes, self._places.size, found) else None
