"""Anderson extrapolation of a sequence of sweeps (Bertrand and Massias 2021, Algorithm 1)."""

from __future__ import annotations

import numpy as np

from .._jit import named
from ..memory import aligned_copy
from ..settings import ParamSpec

# Regularizes the small linear system for nearly parallel steps, for which extrapolation pays.
_RIDGE = 1e-12


@named()
def note(iterates, count, outcomes, places, w, bias, live):
    """Append iterates to the preceding `count` ones if they have the same zeros; return their number.

    An iterate consists of the entries at `places` of a row of `outcomes`, P in the layout of its solver, then
    w and the bias. `live` marks the non-zero entries of P in the last iterate and is updated: if an entry
    becomes 0 or non-zero, or the buffer is full, the earlier iterates are dropped.
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


@named()
def combine(iterates, sizes, first, out):  # noqa: C901 (a compiled loop)
    """Write the affine combination of the iterates whose steps nearly cancel; return whether it exists.

    It does not exist if nothing changed, or not all is finite. Steps are scaled by `sizes`, and if there are
    any, the steps of the `first` numbers and of the others are relative to the norms of the last iterate.
    """
    depth, size = iterates.shape[0] - 1, iterates.shape[1]
    last = iterates[depth]
    weights = np.ones(size)
    if sizes.size:
        for begin, end in ((0, first), (first, size)):
            total = 0.0
            for i in range(begin, end):
                total += sizes[i] * sizes[i] * last[i] * last[i]
            share = 1.0 / total if total > 0.0 else 1.0
            for i in range(begin, end):
                weights[i] = sizes[i] * sizes[i] * share
    steps = np.empty((depth, size))
    for a in range(depth):
        for i in range(size):
            steps[a, i] = iterates[a + 1, i] - iterates[a, i]
    gram = np.empty((depth, depth))
    largest = 0.0
    for a in range(depth):
        for b in range(a + 1):
            step, other = steps[a], steps[b]
            total = 0.0
            for i in range(size):
                total += weights[i] * step[i] * other[i]
            if not np.isfinite(total):
                return False
            gram[a, b] = total
        largest = max(largest, gram[a, a])
    if not largest > 0.0:
        return False
    # Solved by L D Lᵀ factors, which overwrite the lower triangle.
    shares = np.ones(depth)
    for a in range(depth):
        for b in range(a + 1):
            total = gram[a, b] / largest
            if a == b:
                total += _RIDGE
            for c in range(b):
                total -= gram[a, c] * gram[b, c] * gram[c, c]
            gram[a, b] = total if a == b else total / gram[b, b]
        for b in range(a):
            shares[a] -= gram[a, b] * shares[b]
    sum_ = 0.0
    for a in range(depth - 1, -1, -1):
        shares[a] /= gram[a, a]
        for b in range(a + 1, depth):
            shares[a] -= gram[b, a] * shares[b]
        sum_ += shares[a]
    if not (np.isfinite(sum_) and sum_ != 0.0):
        return False
    # Relative to the last iterate, to keep equal entries exactly equal.
    for i in range(size):
        out[i] = last[i]
    before = 0.0
    for a in range(1, depth):
        before += shares[a - 1] / sum_
        for i in range(size):
            out[i] -= before * steps[a, i]
    return True


ANDERSON = ParamSpec(
    "anderson",
    "int",
    0,
    low=0,
    high=50,
    help="After this many sweeps without changed zeros, try the affine combination of their iterates whose "
    "steps nearly cancel, and accept it if it lowers the objective. 0: the paper's sweeps.",
)


class Extrapolation:
    """The last iterates of a fixed-point method, and their extrapolation.

    Near its limit θ*, a sweep is nearly an affine map, and the combination Σ c_i θ_i, Σ c_i = 1, with the
    smallest Σ c_i (θ_i − θ_{i−1}) is closer to θ* than any iterate.

    Parameters
    ----------
    depth : int
        The number of combined steps.
    places : ndarray of int
        The index of each entry of P, row by row, in the layout of the solver.
    linear : int
        The number of linear weights.
    sizes : ndarray
        Scales that make steps unit-free: a factor for each entry of P, of w and for the bias; steps of P, and
        of w with the bias, are then relative to their norms. Empty for unscaled steps.
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
        """The number of iterates that fit; a full buffer is cleared first."""
        return len(self._iterates) - (0 if self.full else self._count)

    def note(self, outcomes: np.ndarray, w: np.ndarray, bias: float, live: np.ndarray) -> None:
        """Append iterates after sweeps, with P in the rows of `outcomes` and a common w and bias.

        `live` marks the non-zero entries of P in the last iterate and is updated: if an entry becomes 0 or
        non-zero, the earlier iterates are dropped.
        """
        self._count = note(self._iterates, self._count, outcomes, self._places, w, bias, live)

    def point(self) -> np.ndarray | None:
        """Return the combination and clear the iterates; None if nothing changed or not all is finite."""
        self._count = 0
        combined = np.empty(self._iterates.shape[1])
        return combined if combine(self._iterates, self._sizes, self._places.size, combined) else None
