"""Three exact algorithms for the proximal operator of λ‖·‖₁² on vectors ([A] Eq. 30, Theorem 7).

The solution is q_j = sign(p_j)·max(|p_j| − τ, 0) with τ = 2λ‖q‖₁. For every set G of entries,
Σ_G |p|/(1/(2λ) + |G|) is at most τ, with equality for the set of live entries. The algorithms differ in how
they find this set, and compute q from it in the same way.

With the deficits δ_j = max|p| − |p_j| and v = max q, q_j equals both |p_j| − τ and v − δ_j. The first is
accurate for small entries, the second if q is small compared to the entry. The largest entry therefore never
vanishes, even for large λ, and 2λ‖q‖₁ = τ holds to relative precision. For the same reason, sets are defined
by deficits.
"""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np

from ..._jit import cached_factory, jitable
from ...errors import one_of

# Each function sets its own floating-point flags, since a calling kernel may allow more. Inlined because on
# short vectors calls would dominate.
exact = jitable(fastmath=False)

LONG = 64
"""The vector length from which passes over the entries use SIMD instructions."""
VERY_LONG = 2048
FEWEST_LANES = 64
MOST_LANES = 16_384


@exact
def threshold_of(total, count, strength):
    """Return 2λΣ/(1 + 2λn) without overflow for large λ."""
    if strength <= 1.0:
        return 2.0 * strength * total / (1.0 + 2.0 * strength * count)
    return total / (0.5 / strength + count)


@exact
def live_in_order(q, largest, top):
    """Return number, sum of sizes, sum and maximum of deficits of the entries with a deficit below `top`."""
    count = 0
    total = 0.0
    deficits = 0.0
    furthest = 0.0
    for i in range(q.size):
        x = abs(q[i])
        deficit = largest - x
        # A product instead of a hard-to-predict branch.
        lives = 1.0 if deficit < top else 0.0
        count += 1 if deficit < top else 0
        total += lives * x
        deficits += lives * deficit
        furthest = lives * deficit if lives * deficit > furthest else furthest
    return count, total, deficits, furthest


@jitable(fastmath={"reassoc", "contract"})
def live_in_any_order(q, largest, top):
    """Return the result of `live_in_order` up to rounding, much faster on long vectors."""
    count = 0
    total = 0.0
    deficits = 0.0
    for i in range(q.size):
        x = abs(q[i])
        deficit = largest - x
        # Conditional sums are not vectorized; products are.
        lives = 1.0 if deficit < top else 0.0
        count += 1 if deficit < top else 0
        total += lives * x
        deficits += lives * deficit
    return count, total, deficits


@exact
def settle(q, largest, top, count, strength):
    """Return v, τ and the number of live entries, starting from any v and a guess of the number (−1: none).

    This is Newton's method on a convex, piecewise linear function of v: after the first step v decreases, and
    each step reduces slope times value to at most a quarter.
    """
    # Without overflow for large λ.
    own = 1.0 if strength <= 1.0 else 0.5 / strength
    each = 2.0 * strength if strength <= 1.0 else 1.0
    tau = 0.0
    furthest = np.inf
    first = True
    settled = False
    while not settled:
        before = top
        guess = count
        if q.size < LONG:
            count, total, deficits, furthest = live_in_order(q, largest, before)
        else:
            count, total, deficits = live_in_any_order(q, largest, before)
        inverse = 1.0 / (own + each * count)
        tau = each * total * inverse
        top = (own * largest + each * deficits) * inverse
        # No entry is dropped except by rounding.
        settled = count == guess or (furthest < top and top <= before) or (top >= before and not first)
        first = False
    return top, tau, count


@exact
def find_by_sort(q, largest, strength, work):
    """Algorithm 2: sort, then take the largest θ with |p_(θ)| ≥ 2λS_θ. O(d log d)."""
    for i in range(q.size):
        work[i] = abs(q[i])
    work.sort()
    total = 0.0
    j = 0
    last = work.size - 1
    while j <= last and work[last - j] >= threshold_of(total + work[last - j], j + 1, strength):
        total += work[last - j]
        j += 1
    threshold = threshold_of(total, j, strength)
    return settle(q, largest, largest * (1.0 + 1e-12) - threshold, -1, strength)


@exact
def find_by_pivot(q, largest, strength, work):
    """Algorithm 3: partition around random pivots, keep the part with the threshold. Expected O(d)."""
    for i in range(q.size):
        work[i] = abs(q[i])
    low = 0
    high = work.size
    total = 0.0
    count = 0
    # Park and Miller's generator suffices for pivots and is deterministic.
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
        # The largest entry is live at any strength, regardless of rounding.
        is_largest = count == 0 and greater == low
        if is_largest or pivot >= threshold_of(total + part, count + less - low, strength):
            total += part
            count += less - low
            low = less
        else:
            high = greater
    threshold = threshold_of(total, count, strength)
    return settle(q, largest, largest * (1.0 + 1e-12) - threshold, -1, strength)


@exact
def settle_heads(q, largest, top, strength, work):
    """Return v and the number of live entries for the column maxima of q reshaped to a matrix."""
    lanes = FEWEST_LANES
    while lanes < MOST_LANES and lanes * 32 <= q.size:
        lanes *= 2
    rows = q.size // lanes
    heads = work[:lanes]
    heads[:] = 0.0
    # Provably non-negative indices allow vectorization.
    table = q[: rows * lanes].reshape((rows, lanes))
    for r in range(rows):
        for j in range(lanes):
            x = abs(table[r, j])
            heads[j] = x if x > heads[j] else heads[j]
    tail = q[rows * lanes :]
    for j in range(tail.size):
        heads[j] = max(heads[j], abs(tail[j]))
    top, _, count = settle(heads, largest, top, -1, strength)
    return top, count


@exact
def find_by_filter(q, largest, strength, work):
    """Settle the largest entries first (our algorithm).

    Any set of entries bounds τ from below. If few entries are live, the heads, a sixteenth of a long vector,
    include most of them; if many are, Newton's method needs few steps from any start.
    """
    # The bound from the largest entry.
    top = largest / (1.0 + 2.0 * strength)
    count = -1
    if q.size >= VERY_LONG:
        top, count = settle_heads(q, largest, top, strength, work)
        top *= 1.0 + 1e-12
    return settle(q, largest, top, count, strength)


@exact
def shrink(q, largest, top, tau):
    """Shrink q, whose largest entry has size `largest`, given v and τ."""
    for i in range(q.size):
        x = abs(q[i])
        size = x - tau if x < top else top - (largest - x)
        q[i] = 0.0 if size <= 0.0 else (size if q[i] > 0.0 else -size)


@exact
def copy_short(p, q):
    """Copy p to q, and return its largest size."""
    largest = 0.0
    for i in range(p.size):
        x = p[i]
        q[i] = x
        largest = abs(x) if abs(x) > largest else largest
    return largest


@exact
def copy_long(p, q):
    """Copy p to q, and return the bits of its largest absolute value; NaN is larger than infinity."""
    # Integer maxima are vectorized; float maxima are not, since NaN is unordered.
    bits = p.view(np.int64)
    largest = np.int64(0)
    for i in range(p.size):
        largest = max(largest, bits[i] & 0x7FFF_FFFF_FFFF_FFFF)
        q[i] = p[i]
    return largest


@exact
def prox_vector(find, p, strength, work, out):
    """Write argmin_q ½‖q − p‖² + strength·‖q‖₁² into out, which may be p. NaN and infinity propagate.

    `work` has the length of p.
    """
    if p.size < LONG:
        largest = copy_short(p, out)
    else:
        largest = np.int64(copy_long(p, out)).view(np.float64)
    if strength > 0.0 and 0.0 < largest < np.inf:
        # Far from 1, scale by a power of two, which is exact and prevents overflow and underflow.
        exponent = 0
        if not 1e-120 < largest < 1e120 or strength > 1e150:
            exponent = frexp(largest)[1]
        if exponent != 0:
            for i in range(out.size):
                out[i] = ldexp(out[i], -exponent)
            largest = ldexp(largest, -exponent)
        top, tau, _ = find(out, largest, strength, work)
        shrink(out, largest, top, tau)
        if exponent != 0:
            for i in range(out.size):
                out[i] = ldexp(out[i], exponent)


@exact
def prox_by_filter(p, strength, work, out):
    """Apply the operator by our algorithm; parameters as for `prox_vector`."""
    prox_vector(find_by_filter, p, strength, work, out)


@exact
def prox_by_sort(p, strength, work, out):
    """Apply the operator by Algorithm 2."""
    prox_vector(find_by_sort, p, strength, work, out)


@exact
def prox_by_pivot(p, strength, work, out):
    """Apply the operator by Algorithm 3."""
    prox_vector(find_by_pivot, p, strength, work, out)


ALGORITHMS = {"filter": prox_by_filter, "sort": prox_by_sort, "random": prox_by_pivot}
"""The algorithms by name: ours, Algorithm 2 and Algorithm 3."""


@cached_factory(exact=True)
def prox_each_row(algorithm):
    """Return the kernel ``(M, strength, out)`` that applies the operator to every row of M, shape (m, d)."""

    def prox_rows(M, strength, out):
        work = np.empty(M.shape[1])
        for i in range(M.shape[0]):
            algorithm(M[i], strength, work, out[i])

    return prox_rows


def prox_squared_l1(M: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
    """Apply prox of strength·‖·‖₁² to every row of M.

    Parameters
    ----------
    M : (m, d) ndarray
        The vectors.
    strength : float
        λ ≥ 0, multiplied by the step size if there is one.
    algorithm : {"filter", "sort", "random"}, optional
        Ours (the default), Algorithm 2 or Algorithm 3 of atarashi2021.

    Returns
    -------
    (m, d) ndarray
    """
    M = np.ascontiguousarray(M)
    out = np.empty_like(M)
    chosen = ALGORITHMS[one_of("algorithm", algorithm or "filter", ALGORITHMS)]
    prox_each_row(chosen)(M, float(strength), out)
    return out
