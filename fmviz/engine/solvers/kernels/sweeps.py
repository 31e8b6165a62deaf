"""Common parts of all kernels of sweeps: sample weights, and the end of a sweep.

Several sweeps per call reduce waiting for the interpreter lock. Each kernel has the loop in its own source,
since a sweep called from a loop would be compiled twice. Its first arguments are the maximum number of
sweeps, `most`; `enough`, the relative change of P at which they end; P in the layout of the solver, flat; and
`outcomes`, whose row s receives P after sweep s, without rows if not needed. It returns the number of sweeps,
and the largest and the last change relative to the largest entry of P.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._exponential import from_bits, size_bits
from ..._jit import jitable
from ...losses import ScalarLoss


@jitable
def end_sweep(outcomes, sweep, P, moved):
    """Write P to row `sweep` of the outcomes, if it exists; return the relative change.

    `P` is flat, and the largest change of an entry in the sweep is `moved`.
    """
    if sweep < outcomes.shape[0]:
        for i in range(P.size):
            outcomes[sweep, i] = P[i]
    if not np.isfinite(moved):
        return np.inf
    bits = 0
    for i in range(P.size):
        bits = max(bits, size_bits(P[i]))
    return moved / max(from_bits(bits), moved) if moved > 0.0 else 0.0


# The first curvature of a search exceeds the second derivative by this factor, so short steps pass at once;
# later ones increase at most by the factor `_STEEPER`, and at most this number is tried.
_ROOM, _STEEPER, _MOST_CURVATURES = 1.25, 4.0, 50
# The first curvature, relative to that of the squared loss, is at least this number.
_FLAT = 1e-12


@functools.cache
def searched_minimum(loss: ScalarLoss, weight: Any, minimum: Callable[..., float]) -> Callable[..., float]:
    """Return the minimum along an entry for a loss whose derivative has no Lipschitz constant.

    ``(cache, j, p, g, lam_p, lam, rows, slopes, f, y, weights, theta)`` returns a `minimum` of an `EntryView`
    with a curvature h large enough for the step taken. f is linear in the entry, with `slopes` in its `rows`;
    g is the slope of the risk. With s the change of a prediction by the step, the risk exceeds its tangent by
    1/N Σ c s² ∫₀¹ (1 − t) ℓ''(f + ts) dt, at most ½s²·(2ℓ''(f) + ℓ''(f + s))/3 in a row, since ℓ'' is convex
    (`Loss`). If h is at least this curvature, the objective decreases. Unlike differences of losses, the
    bound does not cancel for short steps.
    """
    second = loss.second

    @jitable
    def searched(cache, j, p, g, lam_p, lam, rows, slopes, f, y, weights, theta):
        q, h = p, 0.0
        tried = 0
        accepted = False
        while not accepted and tried < _MOST_CURVATURES:
            needed, size = 0.0, 0.0
            for i in range(rows.size):
                n = rows[i]
                square = weight(weights, n) * slopes[i] * slopes[i]
                ahead = second(f[n] + slopes[i] * (q - p), y[n], theta)
                needed += square * (2.0 * second(f[n], y[n], theta) + ahead)
                size += square
            needed /= 3.0 * f.size
            accepted = tried > 0 and needed <= h
            if not accepted:
                most = _STEEPER * h if tried > 0 else _ROOM * needed
                h = max(min(_ROOM * needed, most), _FLAT * size / f.size)
                q = minimum(cache, j, p, g, h, lam_p, lam)
                tried += 1
        return q if accepted else p

    return searched


@jitable
def unit_weight(weights, n):
    return 1.0


@jitable
def sample_weight(weights, n):
    return weights[n]
