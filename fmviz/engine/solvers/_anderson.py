"""Anderson extrapolation of a run of sweeps (Bertrand and Massias 2021, Algorithm 1)."""

from __future__ import annotations

from math import inf, isfinite

import numpy as np

from .._jit import named
from ..memory import aligned_copy
from ..settings import ParamSpec

# Keeps the small linear system regular where steps are nearly parallel, as they are when it pays.
_RIDGE = 1e-12


@named()
def note(iterates, count, outcomes, places, w, bias, live):
    """Append iterates to the `count` before them, if they have the same zeros; return their number.

    An iterate is a row of `outcomes`, P as its solver keeps it, of which the entries at `places` are taken,
    then w and the bias. `live` says which entries of P were not 0 in the last one, and is kept up to date:
    where one became 0 or non-zero, or the buffer is full, the earlier iterates are dropped.
    """
    for P in outcomes:
        if not 0 <= count < iterates.shape[0]:
            count = 0
        for i in range(P.size):
            now = P[i] != 0.0
            if live[i] != now:
                live[i] = now
                count = 0
        iterate = iterates[count]
        for i in range(places.size):
            iterate[i] = P[places[i]]
        for j in range(w.size):
            iterate[places.size + j] = w[j]
        iterate[places.size + w.size] = bias
        count += 1
    return count


ANDERSON = ParamSpec(
    "anderson",
    "int",
    0,
    low=0,
    high=50,
    help="After this many sweeps that change no zeros, try the affine combination of their iterates "
    "whose steps nearly cancel, and accept it where it lowers the objective. 0: the paper's sweeps.",
)


class Extrapolation:
    """The last iterates of a fixed-point method, and their extrapolation.

    Near its limit θ* a sweep is nearly an affine map, so that the combination Σ c_i θ_i, Σ c_i = 1, with the
    smallest Σ c_i (θ_i − θ_{i−1}) is nearer to θ* than any iterate.

    Parameters
    ----------
    depth : int
        The number of steps that are combined.
    places : ndarray of int
        The place of each entry of P, row by row, in the solver's layout.
    linear : int
        The number of linear weights.
    sizes : ndarray
        Scales of steps, to make them unit-free: a factor for each entry of P, for w and for the bias; steps
        of P, and of w with the bias, are then relative to their norms. Empty to measure them as they are.
    """

    memory = ("_iterates", "_count")

    def __init__(self, depth: int, places: np.ndarray, linear: int, sizes: np.ndarray) -> None:
        self._iterates = aligned_copy(np.zeros((depth + 1, places.size + linear + 1)))
        self._count = 0
        self._places, self._sizes = places, sizes

    @property
    def full(self) -> bool:
        """Whether there are enough iterates to combine."""
        return self._count >= len(self._iterates)

    @property
    def room(self) -> int:
        """The number of iterates that can be added; a full buffer is cleared first."""
        return len(self._iterates) - (0 if self.full else self._count)

    def note(self, outcomes: np.ndarray, w: np.ndarray, bias: float, live: np.ndarray) -> None:
        """Append iterates after sweeps, with P in the rows of `outcomes` and a common w and bias.

        `live` says which entries of P were not 0 in the last one, and is kept up to date: where one became 0
        or non-zero, the earlier iterates are dropped.
        """
        self._count = note(self._iterates, self._count, outcomes, self._places, w, bias, live)

    @np.errstate(over="ignore", invalid="ignore")
    def point(self) -> np.ndarray | None:
        """Return the combination and clear the iterates; None where nothing moved or not all is finite."""
        self._count = 0
        last, steps, first = self._iterates[-1], np.diff(self._iterates, axis=0), self._places.size
        scaled = steps
        if self._sizes.size:
            scales = self._sizes.copy()
            for part in (slice(first), slice(first, None)):
                scales[part] /= np.linalg.norm(scales[part] * last[part]) or 1.0
            scaled = steps * scales
        gram = scaled @ scaled.T
        largest = gram.max()
        if not 0.0 < largest < inf:
            return None
        ridge = _RIDGE * np.eye(len(gram))
        shares = np.linalg.solve(gram / largest + ridge, np.ones(len(gram))).cumsum()
        if not (isfinite(shares[-1]) and shares[-1] != 0.0):
            return None
        # Relative to the last iterate, so that equal entries stay exactly equal.
        point = last.copy()
        for share, step in zip(shares[:-1] / shares[-1], steps[1:], strict=True):
            point -= share * step
        return point
