"""Anderson extrapolation of a run of sweeps (Bertrand and Massias 2021, Algorithm 1)."""

from __future__ import annotations

import numpy as np

from ..settings import ParamSpec

ANDERSON = ParamSpec(
    "anderson",
    "int",
    0,
    low=0,
    high=50,
    help="After so many sweeps that leave the zeros alone: try the affine combination of their iterates "
    "whose steps nearly cancel, and take it where it lowers the objective. 0: the paper's sweeps.",
)

# Keeps the small linear system regular where steps are nearly parallel, as they are when it pays.
_RIDGE = 1e-12


class Extrapolation:
    """The last iterates of a fixed-point method, and the point that they seem to lead to.

    Near its limit θ* a sweep is nearly an affine map, so that the combination Σ c_i θ_i, Σ c_i = 1, with the
    smallest Σ c_i (θ_i − θ_{i−1}) is nearer to θ* than any iterate.

    Parameters
    ----------
    depth : int
        The number of steps that are combined.
    size : int
        The length of an iterate.
    """

    memory = ("_iterates", "_count")

    def __init__(self, depth: int, size: int) -> None:
        self._iterates = np.empty((depth + 1, size))
        self._count = 0

    def restart(self) -> None:
        """Forget all iterates."""
        self._count = 0

    def add(self, *parts: np.ndarray | float) -> bool:
        """Note an iterate, given in parts; return whether there are as many as are combined."""
        np.concatenate([np.ravel(part) for part in parts], out=self._iterates[self._count])
        self._count += 1
        return self._count == len(self._iterates)

    def point(self, scales: np.ndarray | float = 1.0) -> np.ndarray | None:
        """Return the combination, or None where nothing moved or not all is finite.

        Steps are measured times `scales`, which may take the units out of them.
        """
        steps = np.diff(self._iterates, axis=0) * scales
        gram = steps @ steps.T
        largest = gram.diagonal().max()
        if not (np.isfinite(largest) and largest > 0.0):
            return None
        gram /= largest
        gram[np.diag_indices_from(gram)] += _RIDGE
        weights = np.linalg.solve(gram, np.ones(len(gram)))
        # Seen from the last one, what is the same in all of them stays exactly.
        last = self._iterates[-1]
        return np.asarray(last + weights / weights.sum() @ (self._iterates[1:] - last))
