"""Exponential, logarithm and maximum without branches or calls, for vectorized loops.

Accurate to a few units in the last place, even if a kernel reorders its arithmetic.
"""

from __future__ import annotations

import numpy as np

from ._jit import jitable

# Adding 1.5·2⁵² to a small number rounds it to an integer, which is left in the low bits of the sum.
_ROUND = 1.5 * 2.0**52
_ROUND_BITS = int(np.float64(_ROUND).view(np.int64))
_LOG2_E = 1.4426950408889634
# ln 2 in two parts; the first ends in zero bits, which makes its multiples by exponents exact.
_LN2 = 0.6931471805598903
_LN2_REST = 5.497923018708371e-14
# Beyond this limit, the exponential leaves the range of normal numbers.
_LARGEST = 708.0


@jitable
def exp_ratio(z):
    """Return positive numbers (below, above), with below close to 2 and above / below = exp(z).

    z is clipped to [−708, 708]; NaN stays NaN. A caller that divides again needs only one division.
    """
    # NaN passes through both comparisons.
    z = -_LARGEST if z < -_LARGEST else z
    z = _LARGEST if z > _LARGEST else z
    power = np.float64(z * _LOG2_E + _ROUND).view(np.int64) - _ROUND_BITS
    n = np.float64(np.int32(power))
    r = z - n * _LN2
    # The low part of ln 2 as a factor; a second subtraction could be merged with the first.
    scale = np.int64((power + 1023) << 52).view(np.float64) * (1.0 - n * _LN2_REST)
    # exp(r) = (c + r)/(c − r) with c = r·coth(r/2), here its Taylor series; |r| ≤ ½ ln 2.
    t = r * r
    c = 1.0 / 23950080 - t * (691.0 / 653837184000)
    c = 1.0 / 15120 + t * (-1.0 / 604800 + t * c)
    c = 2.0 + t * (1.0 / 6 + t * (-1.0 / 360 + t * c))
    return c - r, scale * (c + r)


@jitable
def log1p_ratio(below, above):
    """Return log(1 + above / below) for 0 ≤ above ≤ below."""
    # log(1 + e) = 2·artanh(e/(2 + e)); for e ≥ √2 − 1, ln 2 + log((1 + e)/2), likewise.
    large = above > 0.41421356237309503 * below
    s = (above - below if large else above) / (above + (3.0 * below if large else 2.0 * below))
    w = s * s
    series = 1.0 / 15 + w * (1.0 / 17 + w * (1.0 / 19 + w * (1.0 / 21)))
    series = 1.0 / 9 + w * (1.0 / 11 + w * (1.0 / 13 + w * series))
    series = 1.0 + w * (1.0 / 3 + w * (1.0 / 5 + w * (1.0 / 7 + w * series)))
    return (0.6931471805599453 if large else 0.0) + 2.0 * s * series


@jitable
def size_bits(x):
    """Return the bits of |x| as integers, which have the same order as the numbers; NaN is the largest.

    Integer maxima are vectorized, maxima of numbers that may be NaN are not.
    """
    return np.float64(abs(x)).view(np.int64)


@jitable
def from_bits(bits):
    """Return the number with these bits."""
    return np.int64(bits).view(np.float64)
