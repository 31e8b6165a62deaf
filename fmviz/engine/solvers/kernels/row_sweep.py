"""The kernel of block coordinate descent sweeps over the rows of P."""

from __future__ import annotations

import numpy as np

from ..._jit import cached_factory, jitable
from ...design import Storage, line
from ...losses import ScalarLoss
from ...models.columns import RowColumnsView
from ...penalties import RowView
from ...penalties.operators.thresholds import norm
from .coefficients import BEYOND, NOISE
from .sweeps import end_sweep

# The number of doubles in a cache line.
_LINE = 8


def in_lines(M: np.ndarray) -> np.ndarray:
    """Return a copy of M, shape (n, k), with rows aligned to cache lines and padded with zeros.

    Loops over a row then touch no cache line of its neighbours and need no remainder; the zeros stay 0.
    """
    n, k = M.shape
    wide = -(-k // _LINE) * _LINE
    memory = np.zeros(n * wide + _LINE)
    skip = -memory.ctypes.data % (8 * _LINE) // 8
    lines = memory[skip : skip + n * wide].reshape(n, wide)
    lines[:, :k] = M
    return lines


def row_minimum(penalty: RowView):
    """Return the function that writes the minimum along a row to `step`, a proximal gradient step."""
    shrink = penalty.shrink

    @jitable
    def minimum(step, own, g, bend, n_samples, lam_p, lam, j, P, cache):
        total = bend + 2.0 * lam_p
        if total > 0.0:
            for s in range(step.size):
                step[s] = (bend * own[s] - g[s] / n_samples) / total
            shrink(step, lam / total, j, P, cache)
        else:
            for s in range(step.size):
                step[s] = own[s]
            shrink(step, BEYOND if lam > 0.0 else 0.0, j, P, cache)

    return minimum


@cached_factory()
def row_sweep(
    storage: Storage,
    loss: ScalarLoss,
    penalty: RowView,
    weight,
    view: RowColumnsView,
    weighted: bool = False,
    search: bool = False,
):
    """Return the kernel of sweeps over the rows of a block of P ([A] Algorithm 6).

    f is linear in a row, and the risk is bounded by a parabola of curvature μ/N Σ_n c_n ‖∂f(x_n)/∂p_j‖²: the
    step is the minimum of this parabola plus the penalty. With `search`, the first trial uses the second
    derivative of the loss instead, and the step is multiplied by rho until the decrease of the objective is
    the fraction sigma of that predicted by the slope (Tseng and Yun 2009), at most `most_trials` times, after
    which the row is left unchanged.

    The kernel takes the arguments of all `repeated` sweeps; X by columns, y and the sample weights c; f, the
    predictions shifted as in `working_loss`, shape (N,); P, shape (d, k), by `in_lines`; the `coefficients`
    of its columns, shape (k,), 0 for padding, used if `weighted` and otherwise 1; the `state` of the view;
    `moments`, the Σ c x_j² of every column of X, which scales rounding errors of slopes; `places` and `work`,
    of shapes (longest column,) and (4, longest column); the cache of the penalty; μ, the parameters of the
    loss, lam_p including the quadratic part of the penalty, and lam. With `live_only`, zero rows are skipped.
    It updates f, P and the state in place.
    """
    row, value = storage.row, storage.value
    loss_value, derivative, second_of = loss.value, loss.derivative, loss.second
    begin, update, penalty_of, minimum = penalty.begin, penalty.update, penalty.penalty, row_minimum(penalty)
    scale_of, gather, rise_along, advance = view.scale, view.gather, view.rise, view.advance

    def sweeps(
        most,
        enough,
        flat_P,
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
        places,
        work,
        cache,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
        sigma,
        rho,
        most_trials,
    ):
        d, rank = P.shape
        n_samples = y.size
        g = np.empty(rank)
        h = np.empty(rank)
        step = np.empty(rank)
        scaled = np.empty(rank) if weighted else step
        trial = np.empty(rank)
        done, largest_change, last_change = 0, 0.0, 0.0
        while done < most and (done == 0 or last_change > enough):
            change = 0.0
            scale = scale_of(state, live_only)
            begin(P, cache)
            for j in range(d):
                own = P[j]
                if live_only and norm(own) == 0.0:
                    continue
                column, rows, count = line(data, indices, indptr, j)
                at, x, first, second = places[:count], work[0, :count], work[1, :count], work[2, :count]
                slope = work[3, :count]
                for i in range(count):
                    n = row(rows, i)
                    c = weight(weights, n)
                    at[i] = n
                    x[i] = value(column, i)
                    first[i] = c * derivative(f[n], y[n], theta) * x[i]
                    second[i] = c * (second_of(f[n], y[n], theta) if search else 1.0) * x[i] * x[i]
                g[:] = 0.0
                h[:] = 0.0
                gather(state, at, x, first, second, own, g, h)
                if weighted:
                    for s in range(rank):
                        g[s] *= coefficients[s]
                        h[s] *= coefficients[s] * coefficients[s]
                bend = 0.0
                noise = NOISE * scale * scale * moments[j]
                if search:
                    for s in range(rank):
                        bend = max(bend, h[s] / n_samples)
                    # Only tiny values can be rounding errors, or come from a flat loss; only then is the
                    # sum of squares needed to decide.
                    size = mu / n_samples * rank * scale * scale * moments[j]
                    if bend <= NOISE * size or bend + 2.0 * lam_p <= 1e-9 * size:
                        for i in range(count):
                            second[i] = weight(weights, at[i]) * x[i] * x[i]
                        trial[:] = 0.0
                        h[:] = 0.0
                        gather(state, at, x, first, second, own, trial, h)
                        trace = 0.0
                        for s in range(rank):
                            if weighted:
                                h[s] *= coefficients[s] * coefficients[s]
                            trace += h[s]
                        if trace <= noise:
                            g[:] = 0.0
                            bend = 0.0
                            trace = 0.0
                        trace *= mu / n_samples
                        # If the loss is flat, the Lipschitz bound replaces the second derivative.
                        if bend + 2.0 * lam_p <= 1e-12 * trace:
                            bend = trace
                else:
                    for s in range(rank):
                        bend += h[s]
                    if bend <= noise:
                        g[:] = 0.0
                        bend = 0.0
                    bend *= mu / n_samples
                minimum(step, own, g, bend, n_samples, lam_p, lam, j, P, cache)
                if search:
                    before = lam * penalty_of(own, j, P, cache)
                    predicted = lam * penalty_of(step, j, P, cache) - before
                else:
                    update(cache, j, P, step)
                moved = 0.0
                along = 0.0
                for s in range(rank):
                    p = own[s]
                    if not search:
                        own[s] = step[s]
                    step[s] -= p
                    if weighted:
                        scaled[s] = coefficients[s] * step[s]
                    along += p * scaled[s]
                    moved = max(moved, abs(step[s]))
                    if search:
                        predicted += (g[s] / n_samples + 2.0 * lam_p * p) * step[s]
                        before += lam_p * p * p
                if moved == 0.0:
                    continue
                if search:
                    for i in range(count):
                        slope[i] = x[i] * rise_along(state, at[i], x[i], own, scaled, along)
                    alpha = 1.0
                    tried = 0
                    accepted = False
                    while not accepted and tried < most_trials:
                        rise = -before
                        for s in range(rank):
                            trial[s] = own[s] + alpha * step[s]
                            rise += lam_p * trial[s] * trial[s]
                        rise += lam * penalty_of(trial, j, P, cache)
                        risk = 0.0
                        for i in range(count):
                            n = at[i]
                            risk += weight(weights, n) * (
                                loss_value(f[n] + alpha * slope[i], y[n], theta)
                                - loss_value(f[n], y[n], theta)
                            )
                        rise += risk / n_samples
                        accepted = rise <= sigma * alpha * predicted
                        if not accepted:
                            alpha *= rho
                            tried += 1
                    if accepted:
                        update(cache, j, P, trial)
                        for s in range(rank):
                            step[s] *= alpha
                            if weighted:
                                scaled[s] *= alpha
                        for i in range(count):
                            f[at[i]] += alpha * slope[i]
                            advance(state, at[i], x[i], own, step, scaled, alpha * along)
                        for s in range(rank):
                            own[s] = trial[s]
                        change = max(change, alpha * moved)
                else:
                    # The previous row.
                    for s in range(rank):
                        trial[s] = own[s] - step[s]
                    for i in range(count):
                        rise = advance(state, at[i], x[i], trial, step, scaled, along)
                        f[at[i]] += x[i] * rise
                    change = max(change, moved)
            last_change = end_sweep(outcomes, done, flat_P, change)
            largest_change = max(largest_change, last_change)
            done += 1
        return done, largest_change, last_change

    return sweeps
