"""Sweeps over the entries of U¹, …, U^m for lifted models ([B] Algorithm 2, D.2 and D.3)."""

from __future__ import annotations

from .._jit import cached_factory
from ..design import Storage
from ..losses import ScalarLoss
from ..penalties import EntryView
from ..penalties._vectors import soft
from ._pairs import NOISE


@cached_factory()
def lifted_sweep(storage: Storage, loss: ScalarLoss, penalty: EntryView, weight, distinct: bool):
    """Return the kernel of one sweep over U¹, then U², and so on, each column by column.

    P = [U¹ … U^m]ᵀ has shape (m·rank, d) and A = (XP)ᵀ (m·rank, N), both kept in step; f and y as in
    `factor_sweep`. `xi` of shape (N,) is work space for ξ = Π_{t' ≠ t} ⟨u_s^{t'}, x⟩, which a step on
    u_s^t leaves alone: ∂f/∂u_js^t = ξ x_j, and with `distinct` (A², m = 2) ½(ξ x_j − v_js x_j²).
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
        A,
        xi,
        rank,
        moments,
        cache,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
    ):
        columns, d = P.shape
        n_samples = y.size
        change = 0.0
        for s in range(columns):
            xi[:] = 0.5 if distinct else 1.0
            for other in range(s % rank, columns, rank):
                if other != s:
                    for n in range(n_samples):
                        xi[n] *= A[other, n]
            largest = 0.0
            for n in range(n_samples):
                largest = max(largest, abs(xi[n]))
            partner = P[(s + rank) % columns]
            begin(P, s, cache)
            live = 0
            for j in range(d):
                p = P[s, j]
                if live_only and p == 0.0:
                    continue
                column = data[indptr[j] : indptr[j + 1]]
                rows = indices[indptr[j] : indptr[j + 1]]
                count = indptr[j + 1] - indptr[j]
                own = 0.5 * partner[j] if distinct else 0.0
                g = 0.0
                h = 0.0
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    slope = x * (xi[n] - own * x)
                    c = weight(weights, n)
                    g += c * derivative(f[n], y[n], theta) * slope
                    h += c * slope * slope
                if distinct and h <= NOISE * largest * largest * moments[j]:
                    g = 0.0
                    h = 0.0
                g /= n_samples
                h *= mu / n_samples
                t_j = lam * threshold(cache, j, p)
                whole = h + 2.0 * lam_p
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
                        f[n] += step * x * (xi[n] - own * x)
                        A[s, n] += step * x
                    P[s, j] = q
                    update(cache, j, p, q)
                    change = max(change, abs(step))
                if q != 0.0:
                    live += 1
            if live == 0:
                # Not what rounding has left of it, which other factors would answer to.
                A[s, :] = 0.0
        return change

    return sweep
