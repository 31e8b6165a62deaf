"""Kernel of stochastic steps that visit only the features of the sample; see `penalties.operators.lazy`."""

from __future__ import annotations

import numpy as np

from ..._jit import cached_factory, jitable
from ...design import Storage, line
from ...losses import ScalarLoss
from ...penalties.operators.lazy import SMALL, Lazy
from .sample_gradient import BEYOND, Terms


@jitable
def rescale(w, factor):
    """Multiply w in place and return the remaining scale, 1."""
    for j in range(w.size):
        w[j] *= factor
    return 1.0


@cached_factory(exact=True)
def lazy_steps(storage: Storage, loss: ScalarLoss, terms: Terms, lazy: Lazy):
    """Return the kernel of an epoch: O(nnz(x)·k) per step, times the cost of `terms` and `lazy`.

    Its arguments are X by rows, y and the sample weights c; the sample `order`; the six arrays of `Steps`; P,
    shape (d, k), and w, both updated in place; the bias and the parameter of the loss; `period`, the number
    of steps after which T is reset, at O(dk), before a long sum loses precision; the `columns` of `terms`;
    and `grow`, a factor per step, see `Lazy`. It returns the bias and whether all values are finite.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative
    make_work, term_of, descend_along = terms.work, terms.term, terms.descend
    begin, present, step = lazy.begin, lazy.present, lazy.step

    def epoch(
        data, indices, indptr, y, c, order, keep_p, step_p, cut, keep_w, step_w, step_b, P, w, bias, theta,
        longest, period, columns_of_p, grow,
    ):  # fmt: skip
        R = np.empty((longest, P.shape[1]))
        work = make_work(longest, P.shape[1], columns_of_p)
        js = np.empty(longest, np.int64)
        xs = np.empty(longest)
        scales, heaps, norms = begin(P, longest)
        aw = 1.0
        for t in range(order.size):
            n = order[t]
            values, columns, count = line(data, indices, indptr, n)
            f = bias
            for i in range(count):
                js[i] = row(columns, i)
                xs[i] = value(values, i)
                f += aw * w[js[i]] * xs[i]
                present(P, scales, norms, js[i], R, i)
            f += term_of(R, xs, count, work, columns_of_p)
            g = c[n] * derivative(f, y[n], theta)
            moved = descend_along(R, xs, count, work, columns_of_p, keep_p[t], step_p[t] * g)
            if not abs(f) + abs(g) + moved < BEYOND:
                return bias, False
            bias -= step_b[t] * g
            aw *= keep_w[t]
            if abs(aw) < SMALL:
                aw = rescale(w, aw)
            for i in range(count):
                w[js[i]] -= step_w[t] * g * xs[i] / aw
            step(P, scales, heaps, norms, R, js, count, keep_p[t], cut[t], grow[t], period)
        for j in range(P.shape[0]):
            present(P, scales, norms, j, P, j)
            for s in range(P.shape[1]):
                # −0 becomes 0.
                P[j, s] += 0.0
        rescale(w, aw)
        return bias, True

    return epoch
