"""Exact PSGD for TI and Ω_TI at the cost of the sample's own features (future work (i) of [A]).

In one step, Eq. 30 shrinks all live entries of a column by the *same* amount τ = 2λΣ/(1 + 2λn), where n and Σ
are the number and the sum of the live entries (Theorem 7). So with a scale a and an offset T per column,
|p_j| = a(κ_j − T), and κ_j stays constant while the sample does not touch j: a step moves a (decay) and T
(τ = aδ), and needs n and S = Σ(κ − T), which follow from the touched entries alone, and from those that the
growing T sets to 0. A min-heap of the κ finds the latter; outdated heap entries stay in it
and are skipped (lazy deletion). Amortised O(nnz(x)·k·log d) a step, with the iterates of the operator on all
of P up to rounding.

Precision: a column is written out again (a = 1, T = 0) in time proportional to its heap when the heap is
full, when a leaves a safe range, when S has lost its leading digits, when T would dwarf the mean live entry,
and every `period` steps; such a step takes the operator of `squared_norm.prox_vector` on the live entries.
"""

from __future__ import annotations

import numpy as np

from ..._heap import heapify, pop, push
from ..._jit import cached_factory, jitable
from ...design import Storage
from ...losses import ScalarLoss
from ...penalties.operators.squared_norm import find_by_filter, prox_vector, threshold_of
from .lazy import SMALL
from .sample import (
    BEYOND,
    descend,
    pair_term,
    rescale,
)

# How many times the mean live entry the offset may reach: 12 of the 53 bits.
RATIO = 4096.0


@jitable
def write_out(keys, K, s, a, T, hk, hi, size, strength, grow, live, work):
    """Apply the operator to a column's live entries, write them out with a = 1 and T = 0, rebuild its heap.

    The heap has `size` entries; `keys`, `live` and `work` are scratch. Returns the number of live entries
    and their sum.
    """
    n = 0
    for h in range(size):
        j = hi[h]
        key = K[j, s]
        if key != 0.0 and abs(key) == hk[h]:
            keys[n] = a * (key - T) if key > 0.0 else a * (key + T)
            live[n] = j
            n += 1
            # A second entry of the heap for j is outdated from now on.
            K[j, s] = 0.0
    if n > 0:
        prox_vector(find_by_filter, keys[:n], strength, work[:n], keys[:n])
    kept = 0
    total = 0.0
    for i in range(n):
        key = keys[i] * grow
        if key != 0.0:
            K[live[i], s] = key
            hk[kept] = abs(key)
            hi[kept] = live[i]
            total += abs(key)
            kept += 1
    heapify(hk, hi, kept)
    return kept, total


@cached_factory(exact=True)
def coupled_entries(storage: Storage, loss: ScalarLoss):
    """Return the kernel of one epoch for TI and Ω_TI.

    Arguments as for `_lazy.lazy_entries`, and ``grow``, one factor a step: the operator is that of
    cut·‖·‖₁² on every column, times grow. Ω_TI of strength λ < 1 is cut = λ/(2(1 − λ)), grow = 1/(1 − λ).
    """
    row, value, derivative = storage.row, storage.value, loss.derivative

    def epoch(
        data, indices, indptr, y, c, order, keep_p, step_p, cut, keep_w, step_w, step_b, P, w, bias, theta,
        longest, period, grow,
    ):  # fmt: skip
        d, rank = P.shape
        R = np.empty((longest, rank))
        A = np.empty(rank)
        js = np.empty(longest, np.int64)
        xs = np.empty(longest)
        aw = 1.0
        # The keys sign(p)·κ, 0 where dead, with a scale, an offset, the count, the sum and the largest sum
        # since it was last exact, the steps since then, and a heap for every column.
        K = P
        a = np.ones(rank)
        T = np.zeros(rank)
        alive = np.zeros(rank, np.int64)
        S = np.zeros(rank)
        top = np.zeros(rank)
        age = np.zeros(rank, np.int64)
        capacity = 2 * d + longest + 64
        hk = np.empty((rank, capacity))
        hi = np.empty((rank, capacity), np.int32)
        filled = np.zeros(rank, np.int64)
        keys = np.empty(d)
        live = np.empty(d, np.int32)
        work = np.empty(d)
        for j in range(d):
            for s in range(rank):
                size = abs(K[j, s])
                if size > 0.0:
                    hk[s, filled[s]] = size
                    hi[s, filled[s]] = j
                    filled[s] += 1
                    S[s] += size
        for s in range(rank):
            alive[s] = filled[s]
            top[s] = S[s]
            heapify(hk[s], hi[s], filled[s])
        for t in range(order.size):
            n = order[t]
            values = data[indptr[n] : indptr[n + 1]]
            columns = indices[indptr[n] : indptr[n + 1]]
            count = indptr[n + 1] - indptr[n]
            f = bias
            for i in range(count):
                js[i] = row(columns, i)
                j = js[i]
                xs[i] = value(values, i)
                f += aw * w[j] * xs[i]
                for s in range(rank):
                    key = K[j, s]
                    R[i, s] = 0.0 if key == 0.0 else a[s] * (key - T[s] if key > 0.0 else key + T[s])
            f += pair_term(R, xs, count, A)
            g = c[n] * derivative(f, y[n], theta)
            size = abs(f) + abs(g) + descend(R, xs, count, A, keep_p[t], step_p[t] * g)
            if not size < BEYOND:
                return bias, False
            bias -= step_b[t] * g
            aw *= keep_w[t]
            if aw < SMALL:
                aw = rescale(w, aw)
            for i in range(count):
                w[js[i]] -= step_w[t] * g * xs[i] / aw
            strength = cut[t]
            for s in range(rank):
                heap = hk[s]
                items = hi[s]
                heap_size = filled[s]
                scale = a[s] * keep_p[t]
                offset = T[s]
                m = alive[s]
                total = S[s]
                for i in range(count):
                    j = js[i]
                    old = K[j, s]
                    if old != 0.0:
                        total -= abs(old) - offset
                        m -= 1
                    u = R[i, s] / scale
                    key = abs(u) + offset
                    if key > offset:
                        total += key - offset
                        m += 1
                        if key != abs(old):
                            heap_size = push(heap, items, heap_size, key, j)
                        K[j, s] = key if u > 0.0 else -key
                    else:
                        K[j, s] = 0.0
                if m == 0:
                    total = 0.0
                top[s] = max(top[s], total)
                age[s] += 1
                afresh = (
                    heap_size + longest > capacity
                    or scale < SMALL
                    or scale > 1.0 / SMALL
                    or total * RATIO < top[s]
                    or age[s] >= period
                )
                delta = 0.0
                after = 0.0
                if not afresh:
                    # Any set of entries bounds the offset from below: entries below the bound are dead, and
                    # without them the bound is higher.
                    delta = threshold_of(total, m, strength)
                    while m > 1 and heap_size > 0 and heap[0] - offset <= delta:
                        key = heap[0]
                        j = items[0]
                        heap_size = pop(heap, items, heap_size)
                        if abs(K[j, s]) == key:
                            K[j, s] = 0.0
                            m -= 1
                            total -= key - offset
                            delta = threshold_of(total, m, strength)
                    after = total - m * delta
                    afresh = m * (offset + delta) > RATIO * after
                if afresh:
                    m, after = write_out(
                        keys, K, s, scale, offset, heap, items, heap_size, strength, grow[t], live, work
                    )
                    heap_size = m
                    scale = 1.0
                    offset = 0.0
                    delta = 0.0
                    top[s] = after
                    age[s] = 0
                else:
                    scale *= grow[t]
                a[s] = scale
                T[s] = offset + delta
                S[s] = after
                alive[s] = m
                filled[s] = heap_size
        for j in range(d):
            for s in range(rank):
                key = K[j, s]
                P[j, s] = 0.0 if key == 0.0 else a[s] * (key - T[s] if key > 0.0 else key + T[s])
        rescale(w, aw)
        return bias, True

    return epoch
