"""Stochastic steps that visit only the features of the sample, for penalties with a known shrinkage.

A step multiplies every entry by `keep` and shrinks it by `cut`. While the loss does not touch an entry, its
size is a(κ − T) with constant κ: with a = Π keep and T = Σ cut/a over the steps so far, for
keep·a(κ − T) − cut = a'(κ − T') with a' = keep·a and T' = T + cut/a'. Once T has reached κ the entry stays 0.
With cut = 0 this is the lazy update of [A] Eq. 112–113. For ℓ₂,₁ the same holds of the norms of rows.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from ..._jit import cached_factory
from ...design import Storage
from ...losses import ScalarLoss
from ...penalties.operators.thresholds import norm, soft
from .sample import (
    BEYOND,
    descend,
    pair_term,
    rescale,
)
from .sample_gradient import Terms

# Scales below this are multiplied in before they underflow.
SMALL = 1e-100


@cached_factory(exact=True)
def lazy_entries(storage: Storage, loss: ScalarLoss, terms: Terms):
    """Return the kernel of one epoch for ℓ₁ and ℓ₂: O(nnz(x)·k) a step, times what `terms` cost.

    It takes X by rows, y and the sample weights c; the sample `order`; the six arrays of `Steps`; P, shape
    (d, k), and w, both updated in place; the bias and the loss's parameter; `period`, the number of
    steps after which T is reset, at O(dk), before a long sum loses precision; and the `columns` of `terms`.
    It returns the bias and whether all stayed finite.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative
    make_work, term_of, descend_along = terms.work, terms.term, terms.descend

    def epoch(
        data, indices, indptr, y, c, order, keep_p, step_p, cut, keep_w, step_w, step_b, P, w, bias, theta,
        longest, period, columns_of_p,
    ):  # fmt: skip
        d, rank = P.shape
        R = np.empty((longest, rank))
        work = make_work(longest, rank, columns_of_p)
        js = np.empty(longest, np.int64)
        xs = np.empty(longest)
        # P holds signed keys: sign(p)·κ.
        a = 1.0
        T = 0.0
        aw = 1.0
        age = 0
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
                    R[i, s] = a * soft(P[j, s], T)
            f += term_of(R, xs, count, work, columns_of_p)
            g = c[n] * derivative(f, y[n], theta)
            moved = descend_along(R, xs, count, work, columns_of_p, keep_p[t], step_p[t] * g)
            size = abs(f) + abs(g) + moved
            if not size < BEYOND:
                return bias, False
            bias -= step_b[t] * g
            aw *= keep_w[t]
            if abs(aw) < SMALL:
                aw = rescale(w, aw)
            for i in range(count):
                w[js[i]] -= step_w[t] * g * xs[i] / aw
            a *= keep_p[t]
            age += 1
            if abs(a) < SMALL or age >= period:
                for j in range(d):
                    for s in range(rank):
                        P[j, s] = a * soft(P[j, s], T)
                a = 1.0
                T = 0.0
                age = 0
            for i in range(count):
                j = js[i]
                for s in range(rank):
                    key = R[i, s] / a
                    P[j, s] = key + T if key > 0.0 else (key - T if key < 0.0 else 0.0)
            T += cut[t] / a
        for j in range(d):
            for s in range(rank):
                # Adding 0 turns −0 into 0.
                P[j, s] = a * soft(P[j, s], T) + 0.0
        rescale(w, aw)
        return bias, True

    return epoch


@cached_factory(exact=True)
def lazy_rows(storage: Storage, loss: ScalarLoss):
    """Return the kernel of one epoch for ℓ₂,₁: O(nnz(x)·k) a step. Arguments as for `lazy_entries`.

    A row is stored as of its last update, with its norm ν of that time: it is now P_j·a(κ_j − T)/ν_j.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative

    def epoch(
        data, indices, indptr, y, c, order, keep_p, step_p, cut, keep_w, step_w, step_b, P, w, bias, theta,
        longest, period,
    ):  # fmt: skip
        d, rank = P.shape
        R = np.empty((longest, rank))
        A = np.empty(rank)
        js = np.empty(longest, np.int64)
        xs = np.empty(longest)
        nu = np.empty(d)
        for j in range(d):
            nu[j] = norm(P[j])
        kappa = nu.copy()
        a = 1.0
        T = 0.0
        aw = 1.0
        age = 0
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
                scale = a * (kappa[j] - T) / nu[j] if kappa[j] > T else 0.0
                for s in range(rank):
                    R[i, s] = scale * P[j, s]
            f += pair_term(R, xs, count, A)
            g = c[n] * derivative(f, y[n], theta)
            size = abs(f) + abs(g) + descend(R, xs, count, A, keep_p[t], step_p[t] * g)
            if not size < BEYOND:
                return bias, False
            bias -= step_b[t] * g
            aw *= keep_w[t]
            if abs(aw) < SMALL:
                aw = rescale(w, aw)
            for i in range(count):
                w[js[i]] -= step_w[t] * g * xs[i] / aw
            a *= keep_p[t]
            age += 1
            if a < SMALL or age >= period:
                for j in range(d):
                    kappa[j] = a * max(kappa[j] - T, 0.0)
                a = 1.0
                T = 0.0
                age = 0
            for i in range(count):
                j = js[i]
                total = 0.0
                for s in range(rank):
                    P[j, s] = R[i, s]
                    total += R[i, s] * R[i, s]
                nu[j] = sqrt(total)
                kappa[j] = nu[j] / a + T if total > 0.0 else 0.0
            T += cut[t] / a
        for j in range(d):
            scale = a * (kappa[j] - T) / nu[j] if kappa[j] > T else 0.0
            for s in range(rank):
                P[j, s] = P[j, s] * scale + 0.0
        rescale(w, aw)
        return bias, True

    return epoch
