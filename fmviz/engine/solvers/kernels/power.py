"""The penalty c‖p‖^m of a column, m > 2, along one of its entries."""

from __future__ import annotations

from ..._jit import jitable

_MOST_STEPS = 500


@jitable
def power_value(square, degree):
    """Return ‖p‖^m, given ‖p‖²."""
    return max(square, 0.0) ** (0.5 * degree)


@jitable
def power_slopes(p, square, degree):
    """Return the first and the second derivative of ‖p‖^m in an entry p, given ‖p‖² with it."""
    if square <= 0.0:
        # Of degree 3 and more both vanish there.
        return 0.0, 0.0
    inner = degree * square ** (0.5 * degree - 1.0)
    return inner * p, inner * (1.0 + (degree - 2) * p * p / square)


@jitable
def power_minimum(p, g, h, c, rest, degree):
    """Return the q that minimises g(q − p) + ½h(q − p)² + c(rest + q²)^(m/2), `rest` ≥ 0.

    Newton's method from the minimum without the penalty, which lies beyond: on that side the slope is convex,
    so the steps fall short of the root and never cross it.
    """
    if h <= 0.0:
        return 0.0 if c > 0.0 else p
    q = p - g / h
    done = 0
    moving = q != 0.0 and c > 0.0
    while moving and done < _MOST_STEPS:
        first, second = power_slopes(q, rest + q * q, degree)
        step = (h * (q - p) + g + c * first) / (h + c * second)
        following = q - step
        # Beyond 0 by rounding.
        if following * q < 0.0:
            following = 0.0
        moving = abs(step) > 1e-15 * abs(q) and following != 0.0
        q = following
        done += 1
    return q
