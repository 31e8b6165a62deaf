"""Sweeps over the entries of P for models whose columns are kernels of higher degree, or of all subsets.

Both are linear in every entry, f(x) = const + p_js·c_s·D with D free of p_js, so the step is the closed one
of `factor_sweep`; they differ in how D is read off the state that is kept of each sample, and how the
state follows a step.
"""

from __future__ import annotations

from .._jit import cached_factory, jitable
from ..design import Storage
from ..losses import ScalarLoss
from ..penalties import EntryView
from ..penalties._vectors import soft
from ._pairs import NOISE
from ._power import power_minimum


@cached_factory()
def anova_sweep(storage: Storage, loss: ScalarLoss, penalty: EntryView, weight, degree: int, power: int = 2):
    """Return the kernel of one sweep for columns of degree m ([B] Section 7, for any m).

    P has shape (k, d), `coefficients` and `lam_p` (k,), f and y as in `factor_sweep`. `table` of shape
    (m + 1, N) is work space: the A^0 … A^m of the column in hand, kept in step, from which D = ∂A^m/∂p_j
    follows by D_1 = x_j, D_t = x_j(A^{t−1} − p_j D_{t−1}). It is built anew for every column, so errors do
    not pile up. The degree is a constant of the compiled code, so that the recursion unrolls. `lam_p` is what
    ‖p_s‖ to the `power` is multiplied by; a power beyond 2 comes without Ω.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative
    begin, threshold, update = penalty.begin, penalty.threshold, penalty.update

    def sweep(
        data,
        indices,
        indptr,
        y,
        weights,
        f,
        P,
        coefficients,
        table,
        moments,
        cache,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
    ):
        rank, d = P.shape
        n_samples = y.size
        change = 0.0
        for s in range(rank):
            scale = coefficients[s]
            table[0] = 1.0
            table[1:] = 0.0
            live = 0
            largest = 0.0
            size = 0.0
            for j in range(d):
                p = P[s, j]
                size += p * p
                if p != 0.0:
                    live += 1
                    column = data[indptr[j] : indptr[j + 1]]
                    rows = indices[indptr[j] : indptr[j + 1]]
                    for i in range(indptr[j + 1] - indptr[j]):
                        n = row(rows, i)
                        z = value(column, i) * p
                        for t in range(degree, 0, -1):
                            table[t, n] += z * table[t - 1, n]
            for n in range(n_samples):
                largest = max(largest, abs(table[degree - 1, n]))
            begin(P, s, cache)
            for j in range(d):
                p = P[s, j]
                if live_only and p == 0.0:
                    continue
                column = data[indptr[j] : indptr[j + 1]]
                rows = indices[indptr[j] : indptr[j + 1]]
                count = indptr[j + 1] - indptr[j]
                g = 0.0
                h = 0.0
                # A subset of m features with j needs m − 1 others.
                if live - (p != 0.0) >= degree - 1:
                    for i in range(count):
                        n = row(rows, i)
                        x = value(column, i)
                        slope = x
                        for t in range(1, degree):
                            slope = x * (table[t, n] - p * slope)
                        c = weight(weights, n)
                        g += c * derivative(f[n], y[n], theta) * slope
                        h += c * slope * slope
                    if h <= NOISE * largest * largest * moments[j]:
                        g = 0.0
                        h = 0.0
                g *= scale / n_samples
                h *= scale * scale * mu / n_samples
                t_j = lam * threshold(cache, j, p)
                whole = h + 2.0 * lam_p[s]
                q = p
                if power > 2:
                    q = power_minimum(p, g, h, lam_p[s], max(size - p * p, 0.0), power)
                elif whole > 0.0:
                    q = soft(h * p - g, t_j) / whole
                elif t_j > 0.0:
                    q = 0.0
                if q != p:
                    step = q - p
                    size += q * q - p * p
                    for i in range(count):
                        n = row(rows, i)
                        x = value(column, i)
                        slope = x
                        for t in range(1, degree):
                            following = x * (table[t, n] - p * slope)
                            table[t, n] += step * slope
                            slope = following
                        f[n] += step * scale * slope
                    live += int(q != 0.0) - int(p != 0.0)
                    P[s, j] = q
                    update(cache, j, p, q)
                    change = max(change, abs(step))
        return change

    return sweep


@jitable
def others(product, zeros, factor):
    """Return the product of all factors but this one, given that of the non-zero ones."""
    if factor == 0.0:
        return product if zeros == 1 else 0.0
    return product / factor if zeros == 0 else 0.0


@cached_factory()
def subsets_sweep(storage: Storage, loss: ScalarLoss, penalty: EntryView, weight):
    """Return the kernel of one sweep for the all-subsets model ([A] Section 6.2).

    As `anova_sweep`, with two numbers for a sample as its state: the product of the factors 1 + p_j x_j that
    are not 0, and how many are. So D = x_j·Π of the others needs no division by 0, and a factor that has
    been 0 can come back.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative
    begin, threshold, update = penalty.begin, penalty.threshold, penalty.update

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
        rank, d = P.shape
        n_samples = y.size
        change = 0.0
        for s in range(rank):
            scale = coefficients[s]
            product[:] = 1.0
            zeros[:] = 0
            for j in range(d):
                p = P[s, j]
                if p != 0.0:
                    column = data[indptr[j] : indptr[j + 1]]
                    rows = indices[indptr[j] : indptr[j + 1]]
                    for i in range(indptr[j + 1] - indptr[j]):
                        n = row(rows, i)
                        factor = 1.0 + value(column, i) * p
                        if factor == 0.0:
                            zeros[n] += 1
                        else:
                            product[n] *= factor
            begin(P, s, cache)
            for j in range(d):
                p = P[s, j]
                if live_only and p == 0.0:
                    continue
                column = data[indptr[j] : indptr[j + 1]]
                rows = indices[indptr[j] : indptr[j + 1]]
                count = indptr[j + 1] - indptr[j]
                g = 0.0
                h = 0.0
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    slope = x * others(product[n], zeros[n], 1.0 + x * p)
                    c = weight(weights, n)
                    g += c * derivative(f[n], y[n], theta) * slope
                    h += c * slope * slope
                g *= scale / n_samples
                h *= scale * scale * mu / n_samples
                t_j = lam * threshold(cache, j, p)
                whole = h + 2.0 * lam_p[s]
                q = p
                if whole > 0.0:
                    q = soft(h * p - g, t_j) / whole
                elif t_j > 0.0:
                    q = 0.0
                if q != p:
                    step = q - p
                    for i in range(count):
                        n = row(rows, i)
                        x = value(column, i)
                        old = 1.0 + x * p
                        new = 1.0 + x * q
                        f[n] += step * scale * x * others(product[n], zeros[n], old)
                        if old == 0.0:
                            zeros[n] -= 1
                        else:
                            product[n] /= old
                        if new == 0.0:
                            zeros[n] += 1
                        else:
                            product[n] *= new
                    P[s, j] = q
                    update(cache, j, p, q)
                    change = max(change, abs(step))
        return change

    return sweep
