"""Soft thresholding of numbers and norms."""

from __future__ import annotations

from math import sqrt

from ..._jit import jitable


@jitable
def soft(x, t):
    """Return the number nearest to 0 within t of x."""
    if x > t:
        return x - t
    if x < -t:
        return x + t
    return 0.0


@jitable
def entry_minimum(p, g, h, lam_p, t):
    """Return the q that minimizes g(q − p) + ½h(q − p)² + lam_p·q² + t|q|; p if all coefficients are 0."""
    bend = h + 2.0 * lam_p
    if bend > 0.0:
        return soft(h * p - g, t) / bend
    return 0.0 if t > 0.0 else p


@jitable
def norm(q):
    """Return the Euclidean norm of a vector."""
    total = 0.0
    for s in range(q.size):
        total += q[s] * q[s]
    return sqrt(total)


@jitable
def shrink_norm(u, strength):
    """Scale u to reduce its norm by `strength`, at most to 0."""
    length = norm(u)
    if length <= strength:
        u[:] = 0.0
    else:
        scale = 1.0 - strength / length
        for s in range(u.size):
            u[s] *= scale
