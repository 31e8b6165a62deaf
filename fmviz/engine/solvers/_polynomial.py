"""Sweeps over the entries of P for columns that are homogeneous polynomials, Σ_s c_s ⟨p_s, x⟩^m."""

from __future__ import annotations

from .._jit import cached_factory
from ..design import Storage
from ..losses import ScalarLoss
from ._power import power_slopes, power_value

_MOST_TRIALS = 50


@cached_factory()
def polynomial_sweep(storage: Storage, loss: ScalarLoss, weight, degree: int, power: int = 2):
    """Return the kernel of one sweep over all entries of P, column by column.

    Along one entry the objective is a polynomial of degree 2m where the loss is squared, and need not be
    convex: the step is Newton's where the curvature is positive, else that of Gauss and Newton, and is
    halved until the objective falls by a share of what the slope promises (Armijo). P has shape (k, d),
    A = (XP)ᵀ (k, N), `coefficients` and `lam_p` (k,); `trial` is work space of shape (N,). `lam_p` is what
    ‖p_s‖ to the `power` is multiplied by.
    """
    row, value = storage.row, storage.value
    loss_value, derivative, curve = loss.value, loss.derivative, loss.second

    def sweep(data, indices, indptr, y, weights, f, P, A, coefficients, trial, mu, theta, lam_p, live_only):
        rank, d = P.shape
        n_samples = y.size
        change = 0.0
        for s in range(rank):
            scale = coefficients[s]
            a = A[s]
            size = 0.0
            for j in range(d):
                size += P[s, j] * P[s, j]
            for j in range(d):
                p = P[s, j]
                if live_only and p == 0.0:
                    continue
                column = data[indptr[j] : indptr[j + 1]]
                rows = indices[indptr[j] : indptr[j + 1]]
                count = indptr[j + 1] - indptr[j]
                g = 0.0
                h = 0.0
                gauss = 0.0
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    c = weight(weights, n)
                    less = a[n] ** (degree - 2)
                    along = scale * degree * less * a[n] * x
                    slope = c * derivative(f[n], y[n], theta)
                    g += slope * along
                    gauss += c * along * along
                    h += c * curve(f[n], y[n], theta) * along * along
                    h += slope * scale * degree * (degree - 1) * less * x * x
                first, second = 2.0 * p, 2.0
                if power > 2:
                    first, second = power_slopes(p, size, power)
                g = g / n_samples + lam_p[s] * first
                gauss = gauss * mu / n_samples + lam_p[s] * second
                h = h / n_samples + lam_p[s] * second
                if h < 1e-3 * gauss:
                    h = gauss
                if g != 0.0 and h > 0.0:
                    step = -g / h
                    tried = 0
                    accepted = False
                    while not accepted and tried < _MOST_TRIALS:
                        rise = 0.0
                        for i in range(count):
                            n = row(rows, i)
                            x = value(column, i)
                            trial[i] = scale * ((a[n] + step * x) ** degree - a[n] ** degree)
                            rise += weight(weights, n) * (
                                loss_value(f[n] + trial[i], y[n], theta) - loss_value(f[n], y[n], theta)
                            )
                        longer = step * (2.0 * p + step)
                        if power > 2:
                            longer = power_value(size + longer, power) - power_value(size, power)
                        rise = rise / n_samples + lam_p[s] * longer
                        accepted = rise <= 1e-4 * g * step
                        if not accepted:
                            step *= 0.5
                            tried += 1
                    if accepted:
                        for i in range(count):
                            n = row(rows, i)
                            f[n] += trial[i]
                            a[n] += step * value(column, i)
                        P[s, j] = p + step
                        size += step * (2.0 * p + step)
                        change = max(change, abs(step))
        return change

    return sweep
