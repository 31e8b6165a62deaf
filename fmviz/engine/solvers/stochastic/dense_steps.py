"""Kernel of stochastic steps that apply the proximal operator to all of P, at O(dk) per step."""

from __future__ import annotations

import numpy as np

from ..._jit import cached_factory, jitable
from ...design import Storage, line
from ...losses import ScalarLoss
from ...penalties import MatrixView
from .sample_gradient import BEYOND


@jitable
def score(M, w, bias, js, xs, count, A):
    """Return f of one sample ([A] Eq. 4), for M = Pᵀ, and write A_s = Σ_i x_i p_is."""
    f = bias
    for i in range(count):
        f += w[js[i]] * xs[i]
    for s in range(A.size):
        total = 0.0
        squares = 0.0
        for i in range(count):
            term = xs[i] * M[s, js[i]]
            total += term
            squares += term * term
        A[s] = total
        f += 0.5 * (total * total - squares)
    return f


@jitable
def add_gradient(G, M, js, xs, count, A, slope):
    """Add slope·∇f to G, shape (k, d), and return the sum of sizes added."""
    size = 0.0
    for s in range(A.size):
        for i in range(count):
            step = slope * xs[i] * (A[s] - xs[i] * M[s, js[i]])
            G[s, js[i]] += step
            size += abs(step)
    return size


@cached_factory(exact=True)
def dense_steps(storage: Storage, loss: ScalarLoss, operator: MatrixView):
    """Return the kernel of an epoch of (mini-batch) PSGD with the operator on all of P at every step.

    ``order`` lists the samples in consecutive batches of ``batch``, the last one shorter. A step uses the
    mean gradient of its batch. M is Pᵀ, shape (k, d), updated in place like w; the arrays of `Steps` have one
    entry per batch; ``own`` are the parameters of the operator. Returns the bias and whether all values are
    finite.
    """
    row, value, derivative, shrink = storage.row, storage.value, loss.derivative, operator.shrink

    def epoch(
        data, indices, indptr, y, c, order, batch, keep_p, step_p, cut, keep_w, step_w, step_b, M, w, bias,
        theta, longest, own,
    ):  # fmt: skip
        rank, d = M.shape
        G = np.zeros((rank, d))
        gw = np.zeros(d)
        A = np.empty(rank)
        js = np.empty(longest, np.int64)
        xs = np.empty(longest)
        work = np.empty((3, max(d, rank)))
        for t in range(keep_p.size):
            begin = t * batch
            end = min(begin + batch, order.size)
            gb = 0.0
            size = 0.0
            for m in range(begin, end):
                n = order[m]
                values, columns, count = line(data, indices, indptr, n)
                for i in range(count):
                    js[i] = row(columns, i)
                    xs[i] = value(values, i)
                f = score(M, w, bias, js, xs, count, A)
                g = c[n] * derivative(f, y[n], theta) / (end - begin)
                size += abs(f) + abs(g) + add_gradient(G, M, js, xs, count, A, g)
                gb += g
                for i in range(count):
                    gw[js[i]] += g * xs[i]
            if not size * max(step_p[t], 1.0) < BEYOND:
                return bias, False
            bias -= step_b[t] * gb
            for j in range(d):
                w[j] = keep_w[t] * w[j] - step_w[t] * gw[j]
                gw[j] = 0.0
            for s in range(rank):
                for j in range(d):
                    M[s, j] = keep_p[t] * M[s, j] - step_p[t] * G[s, j]
                    G[s, j] = 0.0
            shrink(M, cut[t], own, work)
        return bias, True

    return epoch
