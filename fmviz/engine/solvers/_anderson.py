"""Anderson extrapolation of a run of sweeps (Bertrand and Massias 2021, Algorithm 1)."""

from __future__ import annotations

import numpy as np

from ..memory import aligned_copy
from ..settings import ParamSpec
from .kernels.extrapolation import combine, note

ANDERSON = ParamSpec(
    "anderson",
    "int",
    0,
    low=0,
    high=50,
    help="After so many sweeps that leave the zeros alone: try the affine combination of their iterates "
    "whose steps nearly cancel, and take it where it lowers the objective. 0: the paper's sweeps.",
)


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
    """

    memory = ("_iterates", "_count")

    def __init__(self, depth: int, places: np.ndarray, linear: int, sizes: np.ndarray) -> None:
        self._iterates = aligned_copy(np.zeros((depth + 1, places.size + linear + 1)))
        self._count = 0
        self._places, self._sizes = places, sizes

    @property
    def full(self) -> bool:
        """Whether there are as many iterates as are combined."""
        return self._count >= len(self._iterates)

    @property
    def room(self) -> int:
        """For how many more iterates there is room; where they were not combined they make room."""
        return len(self._iterates) - (0 if self.full else self._count)

    def note(self, outcomes: np.ndarray, w: np.ndarray, bias: float, live: np.ndarray) -> None:
        """Note the iterates of sweeps that end in the rows of `outcomes`, P as it is kept, and leave w alone.

        `live` says which entries of P were not 0 in the last one, and is kept up to date: where one became 0
        or left it, the iterates so far are forgotten.
        """
        self._count = note(self._iterates, self._count, outcomes, self._places, w, bias, live)

    def point(self) -> np.ndarray | None:
        """Return the combination, and forget the iterates; None where nothing moved or not all is finite."""
        self._count = 0
        found = np.empty(self._iterates.shape[1])
        return found if combine(self._iterates, self._sizes, self._places.size, found) else None
