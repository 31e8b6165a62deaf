"""What the row sweeps of PBCD rest on: memory in whole lines, sums over a column, and which zeros stay."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from .._jit import jitable
from .pcd import ROOM

# Room for the rounding errors of a sum whose parts may cancel, relative to these.
_CANCELLING = 1.0 + 1e-13
# Numbers in a cache line.
_LINE = 8


def in_lines(M: np.ndarray) -> np.ndarray:
    """Return a copy of M, shape (n, k), whose rows start cache lines and end in zeros up to whole ones.

    Loops over a row so touch no line of its neighbours and need no remainder, and the zeros stay 0.
    """
    n, k = M.shape
    wide = -(-k // _LINE) * _LINE
    memory = np.zeros(n * wide + _LINE)
    skip = -memory.ctypes.data % (8 * _LINE) // 8
    lines = memory[skip : skip + n * wide].reshape(n, wide)
    lines[:, :k] = M
    return lines


@jitable
def raise_to_largest(largest, A, tops):
    """Raise largest[0] to the largest |A|, by way of `tops`, one for each column of A."""
    tops[:] = 0.0
    for n in range(A.shape[0]):
        a = A[n]
        for s in range(tops.size):
            tops[s] = max(tops[s], abs(a[s]))
    for s in range(tops.size):
        largest[0] = max(largest[0], tops[s])


@jitable
def accumulate(A, at, x, first, second, p, g, h):
    """Add Σ first·df to g and Σ second·df² to h, entry by entry of df = a − x·p, over the rows `at` of A.

    Four rows are taken together: g and h are then read and written a quarter as often.
    """
    count, rank = at.size, p.size
    fours = count // 4
    for block in range(fours):
        i = 4 * block
        a0, a1, a2, a3 = A[at[i]], A[at[i + 1]], A[at[i + 2]], A[at[i + 3]]
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        u0, u1, u2, u3 = first[i], first[i + 1], first[i + 2], first[i + 3]
        v0, v1, v2, v3 = second[i], second[i + 1], second[i + 2], second[i + 3]
        for s in range(rank):
            d0 = a0[s] - x0 * p[s]
            d1 = a1[s] - x1 * p[s]
            d2 = a2[s] - x2 * p[s]
            d3 = a3[s] - x3 * p[s]
            g[s] += (u0 * d0 + u1 * d1) + (u2 * d2 + u3 * d3)
            h[s] += (v0 * d0 * d0 + v1 * d1 * d1) + (v2 * d2 * d2 + v3 * d3 * d3)
    for i in range(4 * fours, count):
        a0 = A[at[i]]
        for s in range(rank):
            d0 = a0[s] - x[i] * p[s]
            g[s] += first[i] * d0
            h[s] += second[i] * d0 * d0


class RowScreen(NamedTuple):
    """What lets a sweep pass over a row that is 0 and provably stays 0.

    The slope at p_j = 0 is x_jᵀV/N, where row n of V is v_n = c_n ℓ'(f_n) · a_n. So it moves by at most
    ‖x_j‖/N times the length of the path of V, in the Frobenius norm, since it was last computed; and while
    its norm is below the threshold nothing else matters.

    Attributes
    ----------
    norms : (d,) ndarray
        ‖x_j‖.
    sizes : (d,) ndarray
        ‖x_jᵀV‖/N when last computed; infinite where the row was not 0 then.
    marks : (d,) ndarray
        `path` at that time.
    path : (1,) ndarray
        The length of the path of V so far.
    squares : (N,) ndarray
        ‖a_n‖².
    slopes : (N,) ndarray
        c_n ℓ'(f_n).
    """

    norms: np.ndarray
    sizes: np.ndarray
    marks: np.ndarray
    path: np.ndarray
    squares: np.ndarray
    slopes: np.ndarray


@jitable
def stays(screen, j, n_samples, threshold):
    """Return whether row j, which is 0, stays 0."""
    path = screen.path[0] - screen.marks[j]
    return ROOM * (screen.sizes[j] + path * screen.norms[j] / n_samples) < threshold


@jitable
def note(screen, j, size):
    """Note that ‖x_jᵀV‖/N is `size` now."""
    screen.sizes[j] = size
    screen.marks[j] = screen.path[0]


@jitable
def follow(screen, at, x, inner, now, square):
    """Note that the rows `at` of A have moved by x·step and their slopes to `now`.

    `inner` holds the ⟨a_n, step⟩ before that, `square` is ‖step‖².
    """
    moved = 0.0
    for i in range(at.size):
        n = at[i]
        turned = now[i] - screen.slopes[n]
        along = x[i] * inner[i]
        far = x[i] * x[i] * square
        parts = turned * turned * screen.squares[n] + now[i] * now[i] * far
        moved += _CANCELLING * parts + 2.0 * turned * now[i] * along
        screen.squares[n] += 2.0 * along + far
        screen.slopes[n] = now[i]
    screen.path[0] += sqrt(max(moved, 0.0))
