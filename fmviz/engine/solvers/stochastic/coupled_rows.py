"""Exact PSGD for CS and Ω_CS at the cost of the sample's own features (future work (i) of [A]).

The operator of CS is that of ‖·‖₁² on the row norms ([A] Theorem 8), so the norms share one scale a and one
offset T as the entries of a column do in `coupled_entries`: ‖p_j‖ = a(κ_j − T), where κ_j stays constant
while the sample does not touch row j, whose direction does not change either. Amortised
O(nnz(x)·(k + log d)) a step, with the iterates of the operator on all of P up to rounding.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from ..._heap import heapify, pop, push
from ..._jit import cached_factory, jitable
from ...design import Storage
from ...losses import ScalarLoss
from ...penalties.operators.squared_norm import find_by_filter, prox_vector, threshold_of
from ...penalties.operators.thresholds import norm
from .coupled_entries import RATIO
from .lazy import SMALL
from .sample import (
    BEYOND,
    descend,
    pair_term,
    rescale,
)


@jitable
def write_norms(keys, kappa, a, T, hk, hi, size, strength, grow, live, work):
    """Apply the operator to the live norms, write them out with a = 1 and T = 0, and rebuild the heap.

    The heap has `size` entries; `keys`, `live` and `work` are scratch. Returns the number of live rows and
    the sum of their norms.
    """
    n = 0
    for h in range(size):
        j = hi[h]
        if kappa[j] != 0.0 and kappa[j] == hk[h]:
            keys[n] = a * (kappa[j] - T)
            live[n] = j
            n += 1
            # A second entry of the heap for j is out of date from now on.
            kappa[j] = 0.0
    if n > 0:
        prox_vector(find_by_filter, keys[:n], strength, work[:n], keys[:n])
    kept = 0
    total = 0.0
    for i in range(n):
        key = keys[i] * grow
        if key != 0.0:
            kappa[live[i]] = key
            hk[kept] = key
            hi[kept] = live[i]
            total += key
            kept += 1
    heapify(hk, hi, kept)
    return kept, total


@cached_factory(exact=True)
def coupled_rows(storage: Storage, loss: ScalarLoss):
    """Return the kernel of one epoch for CS and Ω_CS; arguments as for `coupled_entries`.

    A row is kept as it was when last touched, with its norm ν of that moment: it is now P_j·a(κ_j − T)/ν_j.
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
        capacity = 2 * d + longest + 64
        heap = np.empty(capacity)
        items = np.empty(capacity, np.int32)
        keys = np.empty(d)
        live = np.empty(d, np.int32)
        work = np.empty(d)
        nu = np.empty(d)
        a = 1.0
        T = 0.0
        S = 0.0
        m = 0
        age = 0
        for j in range(d):
            nu[j] = norm(P[j])
            if nu[j] > 0.0:
                heap[m] = nu[j]
                items[m] = j
                m += 1
                S += nu[j]
        kappa = nu.copy()
        held = m
        top = S
        heapify(heap, items, held)
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
                scale = a * (kappa[j] - T) / nu[j] if kappa[j] != 0.0 else 0.0
                for s in range(rank):
                    R[i, s] = scale * P[j, s]
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
            a *= keep_p[t]
            for i in range(count):
                j = js[i]
                old = kappa[j]
                if old != 0.0:
                    S -= old - T
                    m -= 1
                total = 0.0
                for s in range(rank):
                    P[j, s] = R[i, s]
                    total += R[i, s] * R[i, s]
                nu[j] = sqrt(total)
                key = nu[j] / a + T
                if key > T:
                    S += key - T
                    m += 1
                    if key != old:
                        held = push(heap, items, held, key, j)
                    kappa[j] = key
                else:
                    kappa[j] = 0.0
            if m == 0:
                S = 0.0
            top = max(top, S)
            age += 1
            afresh = (
                held + longest > capacity or a < SMALL or a > 1.0 / SMALL or top > RATIO * S or age >= period
            )
            if not afresh:
                delta = threshold_of(S, m, cut[t])
                while m > 1 and held > 0 and heap[0] - T <= delta:
                    key = heap[0]
                    j = items[0]
                    held = pop(heap, items, held)
                    if kappa[j] == key:
                        kappa[j] = 0.0
                        m -= 1
                        S -= key - T
                        delta = threshold_of(S, m, cut[t])
                after = S - m * delta
                afresh = m * (T + delta) > RATIO * after
                if not afresh:
                    S = after
                    T += delta
                    a *= grow[t]
            if afresh:
                m, S = write_norms(keys, kappa, a, T, heap, items, held, cut[t], grow[t], live, work)
                held = m
                top = S
                age = 0
                a = 1.0
                T = 0.0
        for j in range(d):
            scale = a * (kappa[j] - T) / nu[j] if kappa[j] != 0.0 else 0.0
            for s in range(rank):
                P[j, s] = P[j, s] * scale + 0.0
        rescale(w, aw)
        return bias, True

    return epoch
