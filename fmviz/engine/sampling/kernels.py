"""Draws of parameters from their conditional distributions: coordinate descent's steps, plus noise."""

from __future__ import annotations

import numpy as np

from .._jit import cached_factory
from ..design import Storage


@cached_factory()
def linear_draws(storage: Storage):
    """Return the kernel that draws w, entry by entry.

    ``(data, indices, indptr, e, w, moments, precision, groups, centers, spreads, noise)`` replaces w_j by a
    draw from its conditional distribution and updates e = f − y in place. The prior of w_j is normal with the
    mean and the precision of its group, `centers` and `spreads`, shape (G,); the errors have the precision
    `precision`; `moments` has Σ_n x_nj², and `noise` standard normal numbers, shape (d,).
    """
    row, value = storage.row, storage.value

    def draw(data, indices, indptr, e, w, moments, precision, groups, centers, spreads, noise):
        for j in range(w.size):
            g = groups[j]
            column = data[indptr[j] : indptr[j + 1]]
            rows = indices[indptr[j] : indptr[j + 1]]
            count = indptr[j + 1] - indptr[j]
            total = 0.0
            for i in range(count):
                total += value(column, i) * e[row(rows, i)]
            whole = precision * moments[j] + spreads[g]
            mean = (precision * (moments[j] * w[j] - total) + spreads[g] * centers[g]) / whole
            new = mean + noise[j] / np.sqrt(whole)
            step = new - w[j]
            for i in range(count):
                e[row(rows, i)] += step * value(column, i)
            w[j] = new

    return draw


@cached_factory()
def factor_draws(storage: Storage):
    """Return the kernel that draws P, column by column and entry by entry.

    ``(data, indices, indptr, e, P, sums, precision, groups, centers, spreads, noise)`` replaces the entries
    of P, shape (k, d), by draws from their conditional distributions and updates e = f − y and `sums`, XP as
    (k, N), in place. `centers` and `spreads` have shape (k, G), `noise` shape (k, d); else as `linear_draws`.
    """
    row, value = storage.row, storage.value

    def draw(data, indices, indptr, e, P, sums, precision, groups, centers, spreads, noise):
        k, d = P.shape
        for s in range(k):
            own = sums[s]
            for j in range(d):
                column = data[indptr[j] : indptr[j + 1]]
                rows = indices[indptr[j] : indptr[j + 1]]
                count = indptr[j + 1] - indptr[j]
                old = P[s, j]
                total = 0.0
                moment = 0.0
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    h = x * (own[n] - x * old)
                    total += h * e[n]
                    moment += h * h
                g = groups[j]
                whole = precision * moment + spreads[s, g]
                mean = (precision * (moment * old - total) + spreads[s, g] * centers[s, g]) / whole
                new = mean + noise[s, j] / np.sqrt(whole)
                step = new - old
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    e[n] += step * x * (own[n] - x * old)
                    own[n] += step * x
                P[s, j] = new

    return draw
