"""Sweeps over the rows of P for models whose columns are kernels of higher degree, or of all subsets.

As `_multilinear`, for [A] Algorithm 6: f is linear in a whole row of P, with a slope D_s for every column,
so the step is that of `pbcd.row_sweep`.
"""

from __future__ import annotations

import numpy as np

from .._jit import cached_factory, jitable
from ..design import Storage
from ..losses import ScalarLoss
from ..penalties import RowView
from ._multilinear import others
from ._pairs import BEYOND, NOISE


@cached_factory()
def anova_tables(storage: Storage):
    """Return the kernel that writes A^0 … A^{m−1} of every row and column to tables, shape (N, m, k)."""
    entry, value = storage.row, storage.value

    def fill(data, indices, indptr, P, tables):
        degree, k = tables.shape[1], tables.shape[2]
        tables[:] = 0.0
        tables[:, 0] = 1.0
        for n in range(tables.shape[0]):
            row = data[indptr[n] : indptr[n + 1]]
            features = indices[indptr[n] : indptr[n + 1]]
            for i in range(indptr[n + 1] - indptr[n]):
                j = entry(features, i)
                x = value(row, i)
                for t in range(degree - 1, 0, -1):
                    for s in range(k):
                        tables[n, t, s] += x * P[j, s] * tables[n, t - 1, s]

    return fill


@cached_factory()
def subsets_tables(storage: Storage):
    """Return the kernel that writes the products of non-zero factors and the counts of zero ones, (N, k)."""
    entry, value = storage.row, storage.value

    def fill(data, indices, indptr, P, product, zeros):
        product[:] = 1.0
        zeros[:] = 0
        for n in range(product.shape[0]):
            row = data[indptr[n] : indptr[n + 1]]
            features = indices[indptr[n] : indptr[n + 1]]
            for i in range(indptr[n + 1] - indptr[n]):
                j = entry(features, i)
                for s in range(P.shape[1]):
                    factor = 1.0 + value(row, i) * P[j, s]
                    if factor == 0.0:
                        zeros[n, s] += 1
                    else:
                        product[n, s] *= factor

    return fill


@jitable
def row_step(P, j, g, h, lam_p, lam, shrink, cache, step):
    """Write the new row j into `step`, given the mean gradient g and the Lipschitz constant h."""
    whole = h + 2.0 * lam_p
    if whole > 0.0:
        for s in range(g.size):
            step[s] = (h * P[j, s] - g[s]) / whole
        shrink(step, lam / whole, j, P, cache)
    else:
        for s in range(g.size):
            step[s] = P[j, s]
        shrink(step, BEYOND if lam > 0.0 else 0.0, j, P, cache)


@cached_factory()
def anova_row_sweep(storage: Storage, loss: ScalarLoss, penalty: RowView, weight, degree: int):
    """Return the kernel of one sweep over the rows of a block of degree m.

    P has shape (d, k), `coefficients` (k,), `tables` (N, m, k) as by `anova_tables` and kept in step. The
    degree is a constant of the compiled code.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative
    begin, shrink, update = penalty.begin, penalty.shrink, penalty.update

    def sweep(
        data,
        indices,
        indptr,
        y,
        weights,
        f,
        P,
        coefficients,
        tables,
        moments,
        cache,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
    ):
        d, k = P.shape
        n_samples = y.size
        g = np.empty(k)
        slope = np.empty(k)
        step = np.empty(k)
        change = 0.0
        largest = 0.0
        for n in range(n_samples):
            for s in range(k):
                largest = max(largest, abs(tables[n, degree - 1, s]))
        begin(P, cache)
        for j in range(d):
            if live_only and not P[j].any():
                continue
            column = data[indptr[j] : indptr[j + 1]]
            rows = indices[indptr[j] : indptr[j + 1]]
            count = indptr[j + 1] - indptr[j]
            g[:] = 0.0
            h = 0.0
            for i in range(count):
                n = row(rows, i)
                x = value(column, i)
                slope[:] = x
                for t in range(1, degree):
                    for s in range(k):
                        slope[s] = x * (tables[n, t, s] - P[j, s] * slope[s])
                c = weight(weights, n)
                outer = c * derivative(f[n], y[n], theta)
                square = 0.0
                for s in range(k):
                    df = coefficients[s] * slope[s]
                    g[s] += outer * df
                    square += df * df
                h += c * square
            if h <= NOISE * largest * largest * moments[j]:
                g[:] = 0.0
                h = 0.0
            for s in range(k):
                g[s] /= n_samples
            row_step(P, j, g, h * mu / n_samples, lam_p, lam, shrink, cache, step)
            update(cache, j, P, step)
            moved = 0.0
            for s in range(k):
                step[s] -= P[j, s]
                moved = max(moved, abs(step[s]))
            if moved > 0.0:
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    slope[:] = x
                    for t in range(1, degree):
                        for s in range(k):
                            old = slope[s]
                            slope[s] = x * (tables[n, t, s] - P[j, s] * old)
                            tables[n, t, s] += step[s] * old
                    rise = 0.0
                    for s in range(k):
                        rise += coefficients[s] * step[s] * slope[s]
                    f[n] += rise
                for s in range(k):
                    P[j, s] += step[s]
                change = max(change, moved)
        return change

    return sweep


@cached_factory()
def subsets_row_sweep(storage: Storage, loss: ScalarLoss, penalty: RowView, weight):
    """Return the kernel of one sweep over the rows of the all-subsets model; see `subsets_sweep`."""
    row, value, derivative = storage.row, storage.value, loss.derivative
    begin, shrink, update = penalty.begin, penalty.shrink, penalty.update

    def sweep(
        data,
        indices,
        indptr,
        y,
        weights,
        f,
        P,
        coefficients,
        product,
        zeros,
        cache,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
    ):
        d, k = P.shape
        n_samples = y.size
        g = np.empty(k)
        step = np.empty(k)
        change = 0.0
        begin(P, cache)
        for j in range(d):
            if live_only and not P[j].any():
                continue
            column = data[indptr[j] : indptr[j + 1]]
            rows = indices[indptr[j] : indptr[j + 1]]
            count = indptr[j + 1] - indptr[j]
            g[:] = 0.0
            h = 0.0
            for i in range(count):
                n = row(rows, i)
                x = value(column, i)
                c = weight(weights, n)
                outer = c * derivative(f[n], y[n], theta)
                square = 0.0
                for s in range(k):
                    df = coefficients[s] * x * others(product[n, s], zeros[n, s], 1.0 + x * P[j, s])
                    g[s] += outer * df
                    square += df * df
                h += c * square
            for s in range(k):
                g[s] /= n_samples
            row_step(P, j, g, h * mu / n_samples, lam_p, lam, shrink, cache, step)
            update(cache, j, P, step)
            moved = 0.0
            for s in range(k):
                moved = max(moved, abs(step[s] - P[j, s]))
            if moved > 0.0:
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    rise = 0.0
                    for s in range(k):
                        old = 1.0 + x * P[j, s]
                        new = 1.0 + x * step[s]
                        rest = others(product[n, s], zeros[n, s], old)
                        rise += coefficients[s] * (step[s] - P[j, s]) * x * rest
                        if old == 0.0:
                            zeros[n, s] -= 1
                        else:
                            product[n, s] /= old
                        if new == 0.0:
                            zeros[n, s] += 1
                        else:
                            product[n, s] *= new
                    f[n] += rise
                for s in range(k):
                    P[j, s] = step[s]
                change = max(change, moved)
        return change

    return sweep
