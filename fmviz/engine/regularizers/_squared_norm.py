"""The proximal operator of λ‖·‖₁² on vectors ([A] Eq. 30, Theorem 7), three exact ways.

The answer is q_j = sign(p_j)·max(|p_j| − τ, 0) with τ = 2λ‖q‖₁. For every set G of entries
Σ_G |p|/(1/(2λ) + |G|) is at most τ, with equality for the set of live entries: the ways differ in how they
find that set, and share how q is computed from it.
"""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np

from .._jit import cached_factory, jitable
from ..errors import one_of


@jitable
def threshold_of(total, count, strength):
    """Return 2λΣ/(1 + 2λn) without overflow for large λ."""
    if strength <= 1.0:
        return 2.0 * strength * total / (1.0 + 2.0 * strength * count)
    return total / (0.5 / strength + count)


@jitable
def find_by_sort(size, strength, work):
    """Algorithm 2: sort, then take the largest θ with |p_(θ)| ≥ 2λS_θ. O(d log d)."""
    work[:] = size
    work.sort()
    total = 0.0
    threshold = 0.0
    j = 0
    searching = True
    while searching and j < work.size:
        largest = work[work.size - 1 - j]
        candidate = threshold_of(total + largest, j + 1, strength)
        if largest >= candidate:
            total += largest
            threshold = candidate
            j += 1
        else:
            searching = False
    return threshold


@jitable
def find_by_pivot(size, strength, work):
    """Algorithm 3: partition around random pivots, keep the half with the threshold. Expected O(d)."""
    work[:] = size
    low = 0
    high = work.size
    total = 0.0
    count = 0
    # Park and Miller's generator: pivots need no better one, and equal input gives equal output.
    state = 20_210
    while low < high:
        state = state * 48_271 % 2_147_483_647
        pivot = work[low + state % (high - low)]
        # Three parts: greater than, equal to, and less than the pivot.
        greater = low
        less = high
        i = low
        part = 0.0
        while i < less:
            x = work[i]
            if x > pivot:
                part += x
                work[i] = work[greater]
                work[greater] = x
                greater += 1
                i += 1
            elif x < pivot:
                less -= 1
                work[i] = work[less]
                work[less] = x
            else:
                part += x
                i += 1
        # The largest entry lives at any strength, whatever rounding says.
        largest = count == 0 and greater == low
        if largest or pivot >= threshold_of(total + part, count + less - low, strength):
            total += part
            count += less - low
            low = less
        else:
            high = greater
    return threshold_of(total, count, strength)


@jitable
def find_by_filter(size, strength, work):
    """Scan once with a growing lower bound on the threshold, then shrink the candidates. Ours.

    Any set of entries bounds the threshold from below, so whatever lies under the bound is out for good.
    A candidate that alone gives a better bound than the whole set starts a new set, and the old one is
    looked at again at the end, when the bound is near its final value (after Condat 2016's projection
    onto the simplex).
    """
    d = size.size
    candidates = 0
    aside = d
    total = 0.0
    bound = 0.0
    for i in range(d):
        x = size[i]
        if x > bound:
            together = threshold_of(total + x, candidates + 1, strength)
            alone = threshold_of(x, 1, strength)
            if alone > together:
                # The old set moves to the far end of the work space, which has room: an entry is in
                # one place only.
                while candidates > 0:
                    candidates -= 1
                    aside -= 1
                    work[aside] = work[candidates]
                total = 0.0
                together = alone
            work[candidates] = x
            candidates += 1
            total += x
            bound = together
    for i in range(aside, d):
        x = work[i]
        if x > bound:
            work[candidates] = x
            candidates += 1
            total += x
            bound = threshold_of(total, candidates, strength)
    before = -1
    while before != candidates:
        before = candidates
        kept = 0
        remaining = 0.0
        for i in range(before):
            x = work[i]
            if x > bound:
                work[kept] = x
                kept += 1
                remaining += x
        # By rounding the bound may reach the largest entry; it is the threshold then.
        if kept > 0:
            candidates = kept
            total = remaining
            bound = threshold_of(total, candidates, strength)
    return bound


@jitable
def apply_threshold(p, size, largest, threshold, strength, work, out):
    """Write q, given a threshold that is right up to rounding.

    With v = max q and the deficits δ_j = max|p| − |p_j|, q_j is both |p_j| − τ and v − δ_j. The first is
    accurate where the entry is small, the second where q is small against the entry: so the largest entry
    never vanishes, however large λ, and 2λ‖q‖₁ = τ holds to relative precision. For the same reason the
    live set is settled by deficits: from a set that surely contains it, those with δ ≥ v are dropped
    until none is left to drop.
    """
    surely_dead = threshold - 1e-12 * largest
    count = 0
    for i in range(size.size):
        if size[i] > surely_dead:
            work[count] = size[i]
            count += 1
    top = np.inf
    tau = 0.0
    settled = False
    while not settled:
        before = count
        count = 0
        total = 0.0
        deficit = 0.0
        for i in range(before):
            x = work[i]
            if largest - x < top:
                work[count] = x
                count += 1
                total += x
                deficit += largest - x
        # The first pass, with no top to compare with, drops nothing.
        settled = count == before and top < np.inf
        tau = threshold_of(total, count, strength)
        if strength <= 1.0:
            top = (largest + 2.0 * strength * deficit) / (1.0 + 2.0 * strength * count)
        else:
            top = (largest * (0.5 / strength) + deficit) / (0.5 / strength + count)
    for i in range(size.size):
        q = size[i] - tau if size[i] < top else top - (largest - size[i])
        out[i] = 0.0 if q <= 0.0 else (q if p[i] > 0.0 else -q)


@jitable
def prox_vector(find, p, strength, size, work, out):
    """Write argmin_q ½‖q − p‖² + strength·‖q‖₁² into out."""
    largest = 0.0
    for i in range(p.size):
        largest = max(largest, abs(p[i]))
    if strength == 0.0 or largest == 0.0:
        out[:] = p
    else:
        # Far from 1, scale by a power of two: exact, and no sum overflows or is lost.
        exponent = frexp(largest)[1]
        if abs(exponent) < 400:
            exponent = 0
        # Near 1 there is nothing to scale, and a multiplication by 1 is not free.
        for i in range(p.size):
            size[i] = abs(p[i])
        if exponent != 0:
            for i in range(p.size):
                size[i] = ldexp(size[i], -exponent)
            largest = ldexp(largest, -exponent)
        threshold = find(size, strength, work)
        apply_threshold(p, size, largest, threshold, strength, work, out)
        if exponent != 0:
            for i in range(p.size):
                out[i] = ldexp(out[i], exponent)


FINDERS = {"filter": find_by_filter, "sort": find_by_sort, "random": find_by_pivot}
"""By name: ours, Algorithm 2 and Algorithm 3."""


@cached_factory(exact=True)
def prox_each_row(find):
    """Return the kernel ``(M, strength, out)`` that applies the operator to every row of M, shape (m, d)."""

    def prox_rows(M, strength, out):
        size = np.empty(M.shape[1])
        work = np.empty(M.shape[1])
        for i in range(M.shape[0]):
            prox_vector(find, M[i], strength, size, work, out[i])

    return prox_rows


def prox_squared_l1(M: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
    """Apply prox of strength·‖·‖₁² to every row of M.

    Parameters
    ----------
    M : (m, d) ndarray
        The vectors.
    strength : float
        λ ≥ 0, with any step size already multiplied in.
    algorithm : {"filter", "sort", "random"}, optional
        Ours (the default), Algorithm 2 or Algorithm 3 of atarashi2021.

    Returns
    -------
    (m, d) ndarray
    """
    M = np.ascontiguousarray(M)
    out = np.empty_like(M)
    prox_each_row(FINDERS[one_of("algorithm", algorithm or "filter", FINDERS)])(M, float(strength), out)
    return out
