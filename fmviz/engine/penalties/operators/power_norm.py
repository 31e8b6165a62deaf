"""The proximal operator of λ‖·‖₁^m on vectors, for any order m ≥ 2 ([A] Theorem 10).

The answer is q_j = sign(p_j)·max(|p_j| − τ, 0) with τ = mλS^(m−1) and S = ‖q‖₁. For every set G of entries
with total A the root S of S + mλ|G|S^(m−1) = A gives a τ that is at most the right one, if G contains the
live entries: so dropping what lies under τ, again and again, ends at the live set.
"""

from __future__ import annotations

from math import exp, frexp, ldexp, log, log1p, sqrt

import numpy as np

from ..._jit import jitable, named

LOG_2 = log(2.0)


@jitable
def mass_of(total, count, log_strength, degree):
    """Return the S ≥ 0 with S + m·λ·count·S^(m−1) = total ([A] Eq. 47), to relative precision.

    The strength comes as ln λ, since λ·S^(m−2) is within the range of doubles where λ itself need not be.
    For m = 2 and 3 the root is closed. For others Newton's method in ln S beats the formulae for m = 4 and 5
    in accuracy: the equation is increasing and convex there with slopes in [1, m − 1], and from the start
    that makes each of the two terms at most the total, it falls monotonically to the root.
    """
    log_weight = log_strength + log(float(degree) * count)
    log_total = log(total)
    # ln of the second term over the first, were S the total.
    log_ratio = log_weight + (degree - 2) * log_total
    if degree == 2 and log_ratio < 700.0:
        return total / (1.0 + exp(log_ratio))
    if degree == 3 and log_ratio < 700.0:
        return 2.0 * total / (1.0 + sqrt(1.0 + 4.0 * exp(log_ratio)))
    # S = total·e^u, so that u does not lose its digits to the size of the total.
    u = min(0.0, -log_ratio / (degree - 1))
    step = 1.0
    trials = 0
    while abs(step) > 1e-15 * max(1.0, abs(u)) and trials < 60:
        second = log_ratio + (degree - 1) * u
        larger = max(u, second)
        gap = log1p(exp(min(u, second) - larger))
        # The share of the second term in the sum is the weight of its slope.
        share = exp(second - larger - gap)
        step = (larger + gap) / (1.0 + (degree - 2) * share)
        u -= step
        trials += 1
    return total * exp(u)


@jitable
def prox_power_vector(p, strength, degree, work, out):
    """Write argmin_q ½‖q − p‖² + strength·‖q‖₁^degree into out.

    With v = max q and the deficits δ_j = max|p| − |p_j|, q_j is both |p_j| − τ and v − δ_j, where
    v = (S + Σδ)/n over the n live entries. The first is accurate where the entry is small, the second where
    q is small against the entry: so the largest entry never vanishes, however large λ.
    """
    largest = 0.0
    for i in range(p.size):
        largest = max(largest, abs(p[i]))
    if strength == 0.0 or largest == 0.0:
        # Not out[:] = p: numba would spend two seconds on compiling the words of a shape error.
        for i in range(p.size):
            out[i] = p[i]
    else:
        # Scaled by a power of two, which is exact, no sum overflows or is lost.
        exponent = frexp(largest)[1]
        peak = ldexp(largest, -exponent)
        log_strength = log(strength) + (degree - 2) * exponent * LOG_2
        count = p.size
        for i in range(count):
            work[i] = peak - ldexp(abs(p[i]), -exponent)
        top = np.inf
        settled = False
        while not settled:
            before = count
            count = 0
            deficit = 0.0
            for i in range(before):
                if work[i] < top:
                    work[count] = work[i]
                    deficit += work[i]
                    count += 1
            # The first pass, with no top to compare with, drops nothing.
            settled = count == before and top < np.inf
            mass = mass_of(count * peak - deficit, count, log_strength, degree)
            top = (mass + deficit) / count
        threshold = peak - top
        for i in range(p.size):
            size = ldexp(abs(p[i]), -exponent)
            q = size - threshold if size < top else top - (peak - size)
            q = ldexp(q, exponent)
            out[i] = 0.0 if q <= 0.0 else (q if p[i] > 0.0 else -q)


@named(exact=True)
def prox_power_rows(M, strength, degree, out):
    """Apply the operator to every row of M, shape (m, d)."""
    work = np.empty(M.shape[1])
    for i in range(M.shape[0]):
        prox_power_vector(M[i], strength, degree, work, out[i])


def prox_power_l1(M: np.ndarray, strength: float, degree: int) -> np.ndarray:
    """Apply prox of strength·‖·‖₁^degree to every row of M.

    Parameters
    ----------
    M : (m, d) ndarray
        The vectors.
    strength : float
        λ ≥ 0, with any step size already multiplied in.
    degree : int
        m ≥ 2.

    Returns
    -------
    (m, d) ndarray
    """
    M = np.ascontiguousarray(M)
    out = np.empty_like(M)
    prox_power_rows(M, float(strength), int(degree), out)
    return out


def power_slope(mass: np.ndarray, strength: float, degree: int) -> np.ndarray:
    """Return strength·m·S^(m−1), the slope of strength·S^m, also where S^(m−1) itself overflows."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.exp(np.log(strength * degree) + (degree - 1) * np.log(mass)))
