"""The sweep of coordinate descent over the entries of P."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import cached_factory
from ...design import Storage
from ...losses import ScalarLoss
from ...models.columns import EntryColumnView
from ...penalties import EntryView
from ...penalties.operators.thresholds import soft
from .power import power_minimum, power_slopes, power_value
from .repeated import end_sweep
from .rounding import NOISE

_MOST_TRIALS = 50
# The fall that is asked for, as a share of what the slope promises.
_ARMIJO = 1e-4


@cached_factory()
def entry_sweep(
    storage: Storage,
    loss: ScalarLoss,
    penalty: EntryView,
    weight,
    view: EntryColumnView,
    power: int = 2,
    by_features: bool = False,
):
    """Return the kernel of sweeps over the entries of some columns of P ([A] Alg. 1, 4; [B] Section 7).

    Where K is linear in an entry the step is closed: with g the derivative of the risk and h its Lipschitz
    constant, it is the minimum of g·q + ½h(q − p)² + lam_p·q² + lam·t·|q|. It lowers the objective in any
    order. Where it is not, the objective along the entry need not be convex: the step is Newton's where the
    curvature is positive, else that of Gauss and Newton, and is halved until the objective falls by a share
    of what the slope promises (Armijo). `lam_p` is what ‖p_s‖ to the `power` is multiplied by; a power beyond
    2 comes without Ω. Columns are swept one after the other or, `by_features`, take turns at every feature,
    which a view must allow (`independent`).

    The kernel takes what all `repeated` sweeps take; X by columns, y and the sample weights c; f, the
    predictions shifted as by `working_loss`, shape (N,); P, shape (k, d), and the `coefficients` of its
    columns, shape (k,); the view's `state`; `moments`, the Σ c x_j² of every column of X, which tells a slope
    from a rounding error; `caches` of the penalty, a row for each column of P or one for all; μ, the loss's
    parameters, lam_p, shape (k,), with the penalty's own quadratic part, and lam. With `live_only` the
    entries that are 0 are passed over. It changes f, P and the state in place.
    """
    row, value = storage.row, storage.value
    loss_value, derivative, second = loss.value, loss.derivative, loss.second
    begin, threshold, update = penalty.begin, penalty.threshold, penalty.update
    open_column, column_of, absorb, scale_of = view.open, view.column, view.absorb, view.scale
    partner, close = view.partner, view.close
    cofactor: Any = view.cofactor
    advance: Any = view.advance
    degree, rebuilt, needs = view.degree, view.rebuilt, view.needs
    linear = degree == 1

    def sweeps(
        most,
        enough,
        whole_P,
        outcomes,
        data,
        indices,
        indptr,
        y,
        weights,
        f,
        P,
        coefficients,
        state,
        moments,
        caches,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
    ):
        rank, d = P.shape
        n_samples = y.size
        moves = np.empty(0 if linear else n_samples)
        step = 0.0
        made, largest_change, last_change = 0, 0.0, 0.0
        while made < most and (made == 0 or last_change > enough):
            change = 0.0
            live = np.zeros(rank, dtype=np.int64)
            squares = np.zeros(rank)
            scales = np.zeros(rank)
            # The columns of P that take turns at a feature.
            together = rank if by_features else 1
            for first in range(0, rank, together):
                last = first + together
                for s in range(first, last):
                    begin(P, s, caches[s % caches.shape[0]])
                    for j in range(d):
                        live[s] += P[s, j] != 0.0
                    if power > 2:
                        size = 0.0
                        for j in range(d):
                            size += P[s, j] * P[s, j]
                        squares[s] = size
                    if needs > 0 and live[s] == 0:
                        continue
                    open_column(P, s, state)
                    if rebuilt:
                        kept = column_of(P, s, state)
                        for j in range(d):
                            p = P[s, j]
                            if p != 0.0:
                                column = data[indptr[j] : indptr[j + 1]]
                                rows = indices[indptr[j] : indptr[j + 1]]
                                for i in range(indptr[j + 1] - indptr[j]):
                                    absorb(kept, row(rows, i), value(column, i), p)
                    scales[s] = scale_of(s, state)
                # Taken out of the loops: to take a column costs as much as a short one.
                if not by_features:
                    if needs > 0 and live[first] == 0:
                        continue
                    kept = column_of(P, first, state)
                    cache = caches[first % caches.shape[0]]
                for j in range(d):
                    column = data[indptr[j] : indptr[j + 1]]
                    rows = indices[indptr[j] : indptr[j + 1]]
                    count = indptr[j + 1] - indptr[j]
                    for s in range(first, last):
                        p = P[s, j]
                        if live_only and p == 0.0:
                            continue
                        if by_features:
                            if needs > 0 and live[s] == 0:
                                continue
                            kept = column_of(P, s, state)
                            cache = caches[s % caches.shape[0]]
                        own = partner(kept, j)
                        scale = coefficients[s]
                        g = 0.0
                        h = 0.0
                        q = p
                        if linear:
                            if live[s] - (p != 0.0) >= needs:
                                for i in range(count):
                                    n = row(rows, i)
                                    x = value(column, i)
                                    df = x * cofactor(kept, n, x, p, own)
                                    c_df = weight(weights, n) * df
                                    g += derivative(f[n], y[n], theta) * c_df
                                    h += c_df * df
                                # What rounding has left of a slope, over the square of as little, is no step.
                                if h <= NOISE * scales[s] * scales[s] * moments[j]:
                                    g = 0.0
                                    h = 0.0
                            g *= scale / n_samples
                            h *= scale * scale * mu / n_samples
                            t = lam * threshold(cache, j, p)
                            whole = h + 2.0 * lam_p[s]
                            if power > 2:
                                q = power_minimum(p, g, h, lam_p[s], max(squares[s] - p * p, 0.0), power)
                            elif whole > 0.0:
                                q = soft(h * p - g, t) / whole
                            elif t > 0.0:
                                q = 0.0
                        else:
                            gauss = 0.0
                            for i in range(count):
                                n = row(rows, i)
                                x = value(column, i)
                                c = weight(weights, n)
                                less = kept[n] ** (degree - 2)
                                along = scale * degree * less * kept[n] * x
                                outer = c * derivative(f[n], y[n], theta)
                                g += outer * along
                                gauss += c * along * along
                                h += c * second(f[n], y[n], theta) * along * along
                                h += outer * scale * degree * (degree - 1) * less * x * x
                            first_of, second_of = 2.0 * p, 2.0
                            if power > 2:
                                first_of, second_of = power_slopes(p, squares[s], power)
                            g = g / n_samples + lam_p[s] * first_of
                            gauss = gauss * mu / n_samples + lam_p[s] * second_of
                            h = h / n_samples + lam_p[s] * second_of
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
                                        moved = kept[n] + step * value(column, i)
                                        moves[i] = scale * (moved**degree - kept[n] ** degree)
                                        rise += weight(weights, n) * (
                                            loss_value(f[n] + moves[i], y[n], theta)
                                            - loss_value(f[n], y[n], theta)
                                        )
                                    longer = step * (2.0 * p + step)
                                    if power > 2:
                                        longer = power_value(squares[s] + longer, power) - power_value(
                                            squares[s], power
                                        )
                                    rise = rise / n_samples + lam_p[s] * longer
                                    accepted = rise <= _ARMIJO * g * step
                                    if not accepted:
                                        step *= 0.5
                                        tried += 1
                                if accepted:
                                    q = p + step
                        if q != p:
                            for i in range(count):
                                n = row(rows, i)
                                if linear:
                                    f[n] += scale * advance(kept, n, value(column, i), p, q, own)
                                else:
                                    f[n] += moves[i]
                                    absorb(kept, n, value(column, i), step)
                            live[s] += int(q != 0.0) - int(p != 0.0)
                            if power > 2:
                                squares[s] += q * q - p * p if linear else step * (2.0 * p + step)
                            P[s, j] = q
                            update(cache, j, p, q)
                            change = max(change, abs(q - p))
                for s in range(first, last):
                    close(s, state, live[s])
            last_change = end_sweep(outcomes, made, whole_P, change)
            largest_change = max(largest_change, last_change)
            made += 1
        return made, largest_change, last_change

    return sweeps
