"""Lazy steps for TI, CS, Ω_TI and Ω_CS at a cost per sample of its own features (future work (i) of [A]).

In one step, Eq. 30 shrinks all live entries of a column by the *same* amount τ = 2λΣ/(1 + 2λn), where n and Σ
are the number and the sum of the live entries (Theorem 7). Hence, with a scale a and an offset T per column,
|p_j| = a(κ_j − T), and κ_j is constant while samples do not contain j: a step changes a (decay) and T
(τ = aδ), and needs n and S = Σ(κ − T), which follow from the touched entries and from those that the growing
T sets to 0. A min-heap of the κ finds the latter; outdated heap entries remain and are skipped (lazy
deletion). The amortized cost is O(nnz(x)·k·log d) per step, and the iterates equal those of the operator on
all of P up to rounding.

Precision: a column is rewritten (a = 1, T = 0) in time proportional to its heap when the heap is full, when a
leaves a safe range, when S has lost its leading digits, when T would dwarf the mean live entry, and every
`period` steps; such a step applies the operator of `squared_norm.prox_vector` to the live entries.
"""

from __future__ import annotations

import numpy as np

from ..._heap import heapify, pop, push
from ..._jit import jitable
from .lazy import SMALL, Lazy, of_norms
from .squared_norm import prox_by_filter, threshold_of
from .thresholds import soft

# The maximum ratio of the offset to the mean live entry: 12 of the 53 bits.
RATIO = 4096.0


@jitable
def write_out(K, s, a, T, hk, hi, size, strength, grow, keys, live, work):
    """Apply the operator to a column's live entries, rewrite them with a = 1 and T = 0, and rebuild its heap.

    The heap has `size` entries; `keys`, `live` and `work` are scratch space. Returns the number of live
    entries and their sum.
    """
    n = 0
    for h in range(size):
        j = hi[h]
        key = K[j, s]
        if key != 0.0 and abs(key) == hk[h]:
            keys[n] = a * (key - T) if key > 0.0 else a * (key + T)
            live[n] = j
            n += 1
            # A second heap entry for j is outdated from now on.
            K[j, s] = 0.0
    if n > 0:
        prox_by_filter(keys[:n], strength, work[:n], keys[:n])
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


@jitable
def begin_columns(K, longest):
    """Return the state of columns stored as keys sign(p)·κ, 0 if dead.

    For every column, `scales` has a, T, the sum S of live entries, and the largest S since it was last exact;
    `heaps` has the numbers of live entries, of steps since then and of heap entries, the heap, and work
    space.
    """
    d, rank = K.shape
    capacity = 2 * d + longest + 64
    scales = np.zeros((4, rank))
    scales[0] = 1.0
    counts = np.zeros((3, rank), np.int64)
    hk = np.empty((rank, capacity))
    hi = np.empty((rank, capacity), np.int32)
    for j in range(d):
        for s in range(rank):
            size = abs(K[j, s])
            if size > 0.0:
                hk[s, counts[2, s]] = size
                hi[s, counts[2, s]] = j
                counts[2, s] += 1
                scales[2, s] += size
    counts[0], scales[3] = counts[2], scales[2]
    for s in range(rank):
        heapify(hk[s], hi[s], counts[2, s])
    return scales, (counts, hk, hi, np.empty(d), np.empty(d, np.int32), np.empty(d)), ()


@jitable
def present_columns(K, scales, norms, j, R, i):
    for s in range(R.shape[1]):
        R[i, s] = scales[0, s] * soft(K[j, s], scales[1, s])


@jitable
def step_columns(K, scales, heaps, norms, R, js, count, keep, cut, grow, period):
    for s in range(R.shape[1]):
        heap = heaps[1][s]
        items = heaps[2][s]
        m, age, heap_size = heaps[0][0, s], heaps[0][1, s] + 1, heaps[0][2, s]
        scale, offset, total, top = scales[0, s] * keep, scales[1, s], scales[2, s], scales[3, s]
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
        top = max(top, total)
        afresh = (
            heap_size + R.shape[0] > heap.size
            or scale < SMALL
            or scale > 1.0 / SMALL
            or total * RATIO < top
            or age >= period
        )
        delta = 0.0
        after = 0.0
        if not afresh:
            # Any set of entries bounds the offset from below: entries below the bound are dead, and
            # without them the bound is higher.
            delta = threshold_of(total, m, cut)
            while m > 1 and heap_size > 0 and heap[0] - offset <= delta:
                key = heap[0]
                j = items[0]
                heap_size = pop(heap, items, heap_size)
                if abs(K[j, s]) == key:
                    K[j, s] = 0.0
                    m -= 1
                    total -= key - offset
                    delta = threshold_of(total, m, cut)
            after = total - m * delta
            afresh = m * (offset + delta) > RATIO * after
        if afresh:
            m, after = write_out(
                K, s, scale, offset, heap, items, heap_size, cut, grow, heaps[3], heaps[4], heaps[5]
            )
            heap_size = m
            scale = 1.0
            offset = 0.0
            delta = 0.0
            top = after
            age = 0
        else:
            scale *= grow
        scales[0, s], scales[1, s], scales[2, s], scales[3, s] = scale, offset + delta, after, top
        heaps[0][0, s], heaps[0][1, s], heaps[0][2, s] = m, age, heap_size


COUPLED_ENTRIES = Lazy("coupled_entries", begin_columns, present_columns, step_columns)
"""Lazy storage for entries of a column that shrink equally, under cut·‖·‖₁² on every column, times grow.

Ω_TI of strength λ < 1 is cut = λ/(2(1 − λ)), grow = 1/(1 − λ).
"""
COUPLED_ROWS = of_norms("coupled_rows", COUPLED_ENTRIES)
"""The same for row norms, as with CS and Ω_CS."""
