"""The sweep over the entries of P for dense X and machines of second order, in either order, with a screen.

It makes the steps of `entry_sweep`, passes over entries that are 0 and provably stay 0, and keeps the loss's
derivatives.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..._exponential import from_bits, size_bits
from ..._jit import cached_factory, jitable
from ...design import DENSE
from ...losses import ScalarLoss
from ...penalties import EntryView
from ...penalties.operators.thresholds import soft
from .repeated import end_sweep
from .rounding import NOISE

# For the rounding errors in the length of a path.
ROOM = 1.0 + 1e-9


def stores_slope(loss: ScalarLoss) -> bool:
    """Return whether the derivatives are kept in an array of their own; f is the derivative of a residual."""
    return not loss.is_residual


class Screen(NamedTuple):
    """What lets a sweep pass over an entry that is 0 and provably stays 0.

    The slope at p_js = 0 is ⟨x_j, v⟩/N with v = c ℓ'(f) · a_s. So it moves by at most ‖x_j‖/N times the
    length of the path of v since it was last computed, and while it is below the threshold nothing else
    matters. By features, a step on another component moves v by ‖a_s‖_∞ ‖c Δℓ'(f)‖ at most.

    Attributes
    ----------
    norms : (d,) ndarray
        ‖x_j‖.
    slopes : (k, d) ndarray
        |⟨x_j, v⟩|/N when last computed; infinite where the entry was not 0 then.
    marks : (k, d) ndarray
        `paths` of the component at that time.
    paths : (k,) ndarray
        The length of the path of v so far, or more.
    ends : (k, N) ndarray
        v at the end of the component's last sweep.
    heaviest : float
        The largest c.
    """

    norms: np.ndarray
    slopes: np.ndarray
    marks: np.ndarray
    paths: np.ndarray
    ends: np.ndarray
    heaviest: float


@jitable
def multiply(A, which, u, found):
    """Write ⟨A[s], u⟩ to `found` for every s in `which`.

    Four are taken together: u is then read a quarter as often.
    """
    fours = which.size // 4
    for block in range(fours):
        i = 4 * block
        a0, a1, a2, a3 = A[which[i]], A[which[i + 1]], A[which[i + 2]], A[which[i + 3]]
        g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
        for n in range(u.size):
            g0 += a0[n] * u[n]
            g1 += a1[n] * u[n]
            g2 += a2[n] * u[n]
            g3 += a3[n] * u[n]
        found[i], found[i + 1], found[i + 2], found[i + 3] = g0, g1, g2, g3
    for i in range(4 * fours, which.size):
        a0 = A[which[i]]
        g0 = 0.0
        for n in range(u.size):
            g0 += a0[n] * u[n]
        found[i] = g0


@cached_factory()
def dense_entry_sweep(loss: ScalarLoss, penalty: EntryView, weight, by_features: bool):
    """Return the kernel of sweeps over the entries of P, column by column or, `by_features`, row by row.

    Arguments as for `entry_sweep`, with A = (XP)ᵀ, shape (k, N), for the state. `slope` is work space for the
    ℓ'(f) of every row, shape (N,), kept up with f, and empty where it is not kept (`stores_slope`); `largest`
    holds the largest |A| of every column so far, and `screen` what tells which zeros stay, see `Screen`.
    """
    value, derivative = DENSE.value, loss.derivative
    begin, threshold, update = penalty.begin, penalty.threshold, penalty.update
    stored = stores_slope(loss)
    nudges = stored and loss.nudged is not None
    nudged: Any = loss.nudged or derivative
    reach = loss.nudge_reach

    def sweeps(
        most,
        enough,
        whole_P,
        outcomes,
        data,
        indices,
        indptr,
        y,
        weights,
        f,
        slope,
        P,
        A,
        moments,
        largest,
        caches,
        screen,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
    ):
        rank, d = P.shape
        n_samples = y.size
        made, largest_change, last_change = 0, 0.0, 0.0
        while made < most and (made == 0 or last_change > enough):
            change = 0.0
            exists = np.empty(rank, dtype=np.bool_)
            tops = np.zeros(rank)
            which = np.empty(rank, dtype=np.int64)
            found = np.empty(rank)
            force = np.empty(n_samples if by_features else 0)
            # The columns of P that take turns at a feature.
            together = rank if by_features else 1
            for first in range(0, rank, together):
                last = first + together
                if stored:
                    for n in range(n_samples):
                        slope[n] = derivative(f[n], y[n], theta)
                for s in range(first, last):
                    begin(P, s, caches[s % caches.shape[0]])
                    live = 0
                    for j in range(d):
                        live += P[s, j] != 0.0
                    # No entry has a slope while all others of its component are 0.
                    exists[s] = live > 0
                    if live == 0:
                        continue
                    a = A[s]
                    size = 0
                    for n in range(n_samples):
                        size = max(size, size_bits(a[n]))
                    tops[s] = from_bits(size)
                    largest[s] = max(largest[s], tops[s])
                    moved = 0.0
                    for n in range(n_samples):
                        v = weight(weights, n) * (slope[n] if stored else f[n]) * a[n] - screen.ends[s, n]
                        moved += v * v
                    screen.paths[s] += sqrt(moved)
                # Taken out of the loops: to take a row costs as much as a short column.
                if not by_features:
                    a = A[first]
                    cache = caches[first % caches.shape[0]]
                for j in range(d):
                    column = data[indptr[j] : indptr[j + 1]]
                    if by_features and not live_only:
                        # Zeros that the screen does not know are looked at together.
                        unknown = 0
                        for s in range(first, last):
                            if exists[s] and P[s, j] == 0.0:
                                t = lam * threshold(caches[s % caches.shape[0]], j, 0.0)
                                path = screen.paths[s] - screen.marks[s, j]
                                if not screen.slopes[s, j] + ROOM * path * screen.norms[j] / n_samples < t:
                                    which[unknown] = s
                                    unknown += 1
                        if unknown > 1:
                            for n in range(n_samples):
                                force[n] = weight(weights, n) * (slope[n] if stored else f[n]) * column[n]
                            multiply(A, which[:unknown], force, found)
                            for i in range(unknown):
                                s = which[i]
                                screen.slopes[s, j] = abs(found[i]) / n_samples
                                screen.marks[s, j] = screen.paths[s]
                    for s in range(first, last):
                        if not exists[s]:
                            continue
                        if by_features:
                            a = A[s]
                            cache = caches[s % caches.shape[0]]
                        p = P[s, j]
                        t = lam * threshold(cache, j, p)
                        if p == 0.0:
                            if live_only:
                                continue
                            path = screen.paths[s] - screen.marks[s, j]
                            if screen.slopes[s, j] + ROOM * path * screen.norms[j] / n_samples < t:
                                continue
                        g = 0.0
                        h = 0.0
                        size = 0
                        for n in range(n_samples):
                            x = value(column, n)
                            df = x * (a[n] - x * p)
                            c_df = weight(weights, n) * df
                            g += (slope[n] if stored else derivative(f[n], y[n], theta)) * c_df
                            h += c_df * df
                            if nudges:
                                size = max(size, size_bits(df))
                        g /= n_samples
                        screen.slopes[s, j] = abs(g) if p == 0.0 else inf
                        screen.marks[s, j] = screen.paths[s]
                        # The only live entry of a component has no slope, but for rounding errors; a step of
                        # one rounding error over the square of another must not be taken.
                        bend = h
                        if h <= NOISE * largest[s] * largest[s] * moments[j]:
                            g = 0.0
                            h = 0.0
                        h *= mu / n_samples
                        whole = h + 2.0 * lam_p
                        q = p
                        if whole > 0.0:
                            q = soft(h * p - g, t) / whole
                        elif t > 0.0:
                            q = 0.0
                        if q != p:
                            step = q - p
                            moved = 0.0
                            # Computing df again is cheaper than writing it down and reading it back.
                            if nudges and abs(step) * from_bits(size) <= reach:
                                for n in range(n_samples):
                                    x = value(column, n)
                                    was, now = a[n], a[n] + step * x
                                    ahead = step * x * (was - x * p)
                                    old = slope[n]
                                    new = nudged(old, ahead, y[n], theta)
                                    f[n] += ahead
                                    a[n] = now
                                    slope[n] = new
                                    v = weight(weights, n) * (new * now - old * was)
                                    moved += v * v
                            else:
                                for n in range(n_samples):
                                    x = value(column, n)
                                    was, now = a[n], a[n] + step * x
                                    old = f[n]
                                    new = old + step * x * (was - x * p)
                                    f[n] = new
                                    a[n] = now
                                    if stored:
                                        old = slope[n]
                                        new = derivative(new, y[n], theta)
                                        slope[n] = new
                                    v = weight(weights, n) * (new * now - old * was)
                                    moved += v * v
                            screen.paths[s] += sqrt(moved)
                            if by_features:
                                # |ℓ'(f)| has moved by μ|Δf| at most, and f by step·df.
                                turned = mu * abs(step) * sqrt(screen.heaviest * bend)
                                tops[s] += abs(step) * screen.norms[j]
                                for r in range(rank):
                                    if r != s:
                                        screen.paths[r] += turned * tops[r]
                            P[s, j] = q
                            update(cache, j, p, q)
                            change = max(change, abs(step))
                for s in range(first, last):
                    if exists[s]:
                        for n in range(n_samples):
                            screen.ends[s, n] = weight(weights, n) * (slope[n] if stored else f[n]) * A[s, n]
            last_change = end_sweep(outcomes, made, whole_P, change)
            largest_change = max(largest_change, last_change)
            made += 1
        return made, largest_change, last_change

    return sweeps
