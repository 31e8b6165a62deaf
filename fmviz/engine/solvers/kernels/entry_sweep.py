"""Kernels of coordinate descent sweeps over the entries of P.

For dense X and second-order machines, `dense_entry_sweep` makes the same steps in either order, skips zero
entries that provably stay 0, and stores the derivatives of the loss.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..._exponential import from_bits, size_bits
from ..._jit import cached_factory, jitable
from ...design import DENSE, Storage, line
from ...losses import ScalarLoss
from ...models.columns import EntryColumnView
from ...penalties import EntryView
from .coefficients import NOISE
from .sweeps import end_sweep, searched_minimum

_MOST_STEPS = 500


@jitable
def power_value(square, degree):
    """Return ‖p‖^m, given ‖p‖²."""
    return max(square, 0.0) ** (0.5 * degree)


@jitable
def power_slopes(p, square, degree):
    """Return the first and second derivative of ‖p‖^m in an entry p, given ‖p‖² including it."""
    if square <= 0.0:
        # For degrees of 3 and above, both vanish there.
        return 0.0, 0.0
    inner = degree * square ** (0.5 * degree - 1.0)
    return inner * p, inner * (1.0 + (degree - 2) * p * p / square)


@jitable
def power_minimum(p, g, h, c, others, degree):
    """Return the q that minimizes g(q − p) + ½h(q − p)² + c(others + q²)^(m/2), `others` ≥ 0.

    Newton's method from the minimum without the penalty, which lies beyond the root: on that side the slope
    is convex, and the steps never cross the root.
    """
    if h <= 0.0:
        return 0.0 if c > 0.0 else p
    q = p - g / h
    done = 0
    moving = q != 0.0 and c > 0.0
    while moving and done < _MOST_STEPS:
        first, second = power_slopes(q, others + q * q, degree)
        step = (h * (q - p) + g + c * first) / (h + c * second)
        following = q - step
        # Beyond 0 by rounding.
        if following * q < 0.0:
            following = 0.0
        moving = abs(step) > 1e-15 * abs(q) and following != 0.0
        q = following
        done += 1
    return q


_MOST_TRIALS = 50
# The required decrease, as a fraction of the decrease predicted by the slope.
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
    search: bool = False,
):
    """Return the kernel of sweeps over the entries of some columns of P ([A] Alg. 1, 4; [B] Section 7).

    If K is linear in an entry, the step has a closed form: with the derivative g of the risk and its
    Lipschitz constant h, it is the minimum of g·q + ½h(q − p)² + lam_p·q² + lam·ω(q), computed by the view of
    the penalty. It decreases the objective in any order. If K is not linear, the objective along the entry
    need not be convex: the step is a Newton step for positive curvature, otherwise a Gauss–Newton step,
    halved until the decrease is a given fraction of that predicted by the slope (Armijo). With `search`, for
    a loss without a Lipschitz constant, h is that of `searched_minimum`. `lam_p` is the
    weight of ‖p_s‖ to the `power`; powers above 2 have no Ω. Columns are swept in sequence or, with
    `by_features`, interleaved at every feature, provided that the states of the columns are independent.

    The kernel takes the arguments of all `repeated` sweeps; X by columns, y and the sample weights c; f, the
    predictions shifted as in `working_loss`, shape (N,); P, shape (k, d), and the `coefficients` of its
    columns, shape (k,); the `state` of the view; `moments`, the Σ c x_j² of every column of X, which scales
    rounding errors of slopes; `caches` of the penalty, a row for each column of P or one for all; μ, the
    parameters of the loss, lam_p, shape (k,), including the quadratic part of the penalty, and lam. With
    `live_only`, zero entries are skipped. For a part of the features, `elsewhere` is the number of non-zero
    entries of the column in the other features, and `top` its `scale`, computed at the start of the column;
    for all of them, 0 and −1. It updates f, P and the state in place.
    """
    row, value = storage.row, storage.value
    loss_value, derivative, second = loss.value, loss.derivative, loss.second
    begin, minimum, update = penalty.begin, penalty.minimum, penalty.update
    open_column, column_of, absorb, scale_of = view.open, view.column, view.absorb, view.scale
    partner, close = view.partner, view.close
    cofactor: Any = view.cofactor
    advance: Any = view.advance
    degree, rebuilt, needs = view.degree, view.rebuilt, view.needs
    linear = degree == 1
    searched = searched_minimum(loss, weight, minimum)

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
        caches,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
        elsewhere,
        top,
    ):
        rank, d = P.shape
        n_samples = y.size
        moves = np.empty(0 if linear else n_samples)
        places = np.empty(n_samples if search else 0, dtype=np.int64)
        slopes = np.empty(places.size)
        step = 0.0
        done, largest_change, last_change = 0, 0.0, 0.0
        while done < most and (done == 0 or last_change > enough):
            change = 0.0
            live = np.zeros(rank, dtype=np.int64)
            squares = np.zeros(rank)
            scales = np.zeros(rank)
            # The columns of P interleaved at a feature.
            together = rank if by_features else 1
            for first in range(0, rank, together):
                last = first + together
                for s in range(first, last):
                    begin(P, s, caches[s % caches.shape[0]])
                    live[s] = elsewhere
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
                                column, rows, count = line(data, indices, indptr, j)
                                for i in range(count):
                                    absorb(kept, row(rows, i), value(column, i), p)
                    scales[s] = scale_of(s, state) if top < 0.0 else top
                # Hoisted out of the loops: taking a view of a column costs as much as a short column.
                if not by_features:
                    if needs > 0 and live[first] == 0:
                        continue
                    kept = column_of(P, first, state)
                    cache = caches[first % caches.shape[0]]
                for j in range(d):
                    column, rows, count = line(data, indices, indptr, j)
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
                                # The rounding error of a slope divided by the square of another is not a
                                # step.
                                if h <= NOISE * scales[s] * scales[s] * moments[j]:
                                    g = 0.0
                                    h = 0.0
                            g *= scale / n_samples
                            h *= scale * scale * mu / n_samples
                            if power > 2:
                                q = power_minimum(p, g, h, lam_p[s], max(squares[s] - p * p, 0.0), power)
                            elif search and h > 0.0:
                                for i in range(count):
                                    n = row(rows, i)
                                    x = value(column, i)
                                    places[i] = n
                                    slopes[i] = scale * x * cofactor(kept, n, x, p, own)
                                q = searched(
                                    cache,
                                    j,
                                    p,
                                    g,
                                    lam_p[s],
                                    lam,
                                    places[:count],
                                    slopes[:count],
                                    f,
                                    y,
                                    weights,
                                    theta,
                                )
                            else:
                                q = minimum(cache, j, p, g, h, lam_p[s], lam)
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
            last_change = end_sweep(outcomes, done, flat_P, change)
            largest_change = max(largest_change, last_change)
            done += 1
        return done, largest_change, last_change

    return sweeps


# A margin for rounding errors in the length of a path.
ROOM = 1.0 + 1e-9


def stores_slope(loss: ScalarLoss) -> bool:
    """Return whether derivatives are stored in a separate array; for residual losses f is the derivative."""
    return not loss.is_residual


class Screen(NamedTuple):
    """Bounds for skipping zero entries that provably stay 0.

    The slope at p_js = 0 is ⟨x_j, v⟩/N with v = c ℓ'(f) · a_s. It changes by at most ‖x_j‖/N times the length
    of the path of v since it was last computed, and while it is below the threshold, the entry stays 0. In
    sweeps by features, a step on another component changes v by at most ‖a_s‖_∞ ‖c Δℓ'(f)‖.

    Attributes
    ----------
    norms : (d,) ndarray
        ‖x_j‖.
    slopes : (k, d) ndarray
        |⟨x_j, v⟩|/N when last computed; infinite if the entry was then non-zero.
    marks : (k, d) ndarray
        `paths` of the component at that time.
    paths : (k,) ndarray
        An upper bound on the length of the path of v so far.
    ends : (k, N) ndarray
        v at the end of the component's last sweep.
    heaviest : float
        The largest c.
    """

    norms: np.ndarray
    slopes: np.ndarray
    marks: np.ndarray
    paths: np.ndarray
    ends: np.ndarray
    heaviest: float


@jitable
def multiply(A, which, u, products):
    """Write ⟨A[s], u⟩ to `products` for every s in `which`.

    Four are processed together, which quarters the reads of u.
    """
    fours = which.size // 4
    for block in range(fours):
        i = 4 * block
        a0, a1, a2, a3 = A[which[i]], A[which[i + 1]], A[which[i + 2]], A[which[i + 3]]
        g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
        for n in range(u.size):
            g0 += a0[n] * u[n]
            g1 += a1[n] * u[n]
            g2 += a2[n] * u[n]
            g3 += a3[n] * u[n]
        products[i], products[i + 1], products[i + 2], products[i + 3] = g0, g1, g2, g3
    for i in range(4 * fours, which.size):
        a0 = A[which[i]]
        g0 = 0.0
        for n in range(u.size):
            g0 += a0[n] * u[n]
        products[i] = g0


@cached_factory()
def dense_entry_sweep(loss: ScalarLoss, penalty: EntryView, weight, by_features: bool):
    """Return the kernel of sweeps over the entries of P, column by column or, `by_features`, row by row.

    Arguments are as for `entry_sweep`, with the state A = (XP)ᵀ, shape (k, N). `slope` is work space for
    ℓ'(f) of every row, shape (N,), updated with f, and empty if not stored (`stores_slope`); `largest`
    contains the largest |A| of every column so far, and `screen` the bounds for skipping zeros, see `Screen`.
    """
    value, derivative = DENSE.value, loss.derivative
    begin, threshold = penalty.begin, penalty.threshold
    minimum, update = penalty.minimum, penalty.update
    stored = stores_slope(loss)
    nudges = stored and loss.nudged is not None
    nudged: Any = loss.nudged or derivative
    reach = loss.nudge_reach

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
        slope,
        P,
        A,
        moments,
        largest,
        caches,
        screen,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
    ):
        rank, d = P.shape
        n_samples = y.size
        done, largest_change, last_change = 0, 0.0, 0.0
        while done < most and (done == 0 or last_change > enough):
            change = 0.0
            exists = np.empty(rank, dtype=np.bool_)
            tops = np.zeros(rank)
            which = np.empty(rank, dtype=np.int64)
            products = np.empty(rank)
            force = np.empty(n_samples if by_features else 0)
            # The columns of P interleaved at a feature.
            together = rank if by_features else 1
            for first in range(0, rank, together):
                last = first + together
                if stored:
                    for n in range(n_samples):
                        slope[n] = derivative(f[n], y[n], theta)
                for s in range(first, last):
                    begin(P, s, caches[s % caches.shape[0]])
                    live = 0
                    for j in range(d):
                        live += P[s, j] != 0.0
                    # Slopes are 0 while all other entries of the component are 0.
                    exists[s] = live > 0
                    if live == 0:
                        continue
                    a = A[s]
                    size = 0
                    for n in range(n_samples):
                        size = max(size, size_bits(a[n]))
                    tops[s] = from_bits(size)
                    largest[s] = max(largest[s], tops[s])
                    moved = 0.0
                    for n in range(n_samples):
                        v = weight(weights, n) * (slope[n] if stored else f[n]) * a[n] - screen.ends[s, n]
                        moved += v * v
                    screen.paths[s] += sqrt(moved)
                # Hoisted out of the loops: taking a view of a row costs as much as a short column.
                if not by_features:
                    a = A[first]
                    cache = caches[first % caches.shape[0]]
                for j in range(d):
                    column = data[indptr[j] : indptr[j + 1]]
                    if by_features and not live_only:
                        # Zeros without a valid bound are computed together.
                        unknown = 0
                        for s in range(first, last):
                            if exists[s] and P[s, j] == 0.0:
                                t = lam * threshold(caches[s % caches.shape[0]], j, 0.0)
                                path = screen.paths[s] - screen.marks[s, j]
                                if not screen.slopes[s, j] + ROOM * path * screen.norms[j] / n_samples < t:
                                    which[unknown] = s
                                    unknown += 1
                        if unknown > 1:
                            for n in range(n_samples):
                                force[n] = weight(weights, n) * (slope[n] if stored else f[n]) * column[n]
                            multiply(A, which[:unknown], force, products)
                            for i in range(unknown):
                                s = which[i]
                                screen.slopes[s, j] = abs(products[i]) / n_samples
                                screen.marks[s, j] = screen.paths[s]
                    for s in range(first, last):
                        if not exists[s]:
                            continue
                        if by_features:
                            a = A[s]
                            cache = caches[s % caches.shape[0]]
                        p = P[s, j]
                        if p == 0.0:
                            if live_only:
                                continue
                            t = lam * threshold(cache, j, 0.0)
                            path = screen.paths[s] - screen.marks[s, j]
                            if screen.slopes[s, j] + ROOM * path * screen.norms[j] / n_samples < t:
                                continue
                        g = 0.0
                        h = 0.0
                        size = 0
                        for n in range(n_samples):
                            x = value(column, n)
                            df = x * (a[n] - x * p)
                            c_df = weight(weights, n) * df
                            g += (slope[n] if stored else derivative(f[n], y[n], theta)) * c_df
                            h += c_df * df
                            if nudges:
                                size = max(size, size_bits(df))
                        g /= n_samples
                        screen.slopes[s, j] = abs(g) if p == 0.0 else inf
                        screen.marks[s, j] = screen.paths[s]
                        # The only live entry of a component has zero slope up to rounding errors; a rounding
                        # error divided by the square of another is not a step.
                        bend = h
                        if h <= NOISE * largest[s] * largest[s] * moments[j]:
                            g = 0.0
                            h = 0.0
                        h *= mu / n_samples
                        q = minimum(cache, j, p, g, h, lam_p, lam)
                        if q != p:
                            step = q - p
                            moved = 0.0
                            # Recomputing df is cheaper than storing and loading it.
                            if nudges and abs(step) * from_bits(size) <= reach:
                                for n in range(n_samples):
                                    x = value(column, n)
                                    was, now = a[n], a[n] + step * x
                                    ahead = step * x * (was - x * p)
                                    old = slope[n]
                                    new = nudged(old, ahead, y[n], theta)
                                    f[n] += ahead
                                    a[n] = now
                                    slope[n] = new
                                    v = weight(weights, n) * (new * now - old * was)
                                    moved += v * v
                            else:
                                for n in range(n_samples):
                                    x = value(column, n)
                                    was, now = a[n], a[n] + step * x
                                    old = f[n]
                                    new = old + step * x * (was - x * p)
                                    f[n] = new
                                    a[n] = now
                                    if stored:
                                        old = slope[n]
                                        new = derivative(new, y[n], theta)
                                        slope[n] = new
                                    v = weight(weights, n) * (new * now - old * was)
                                    moved += v * v
                            screen.paths[s] += sqrt(moved)
                            if by_features:
                                # |ℓ'(f)| has changed by at most μ|Δf|, and f by step·df.
                                turned = mu * abs(step) * sqrt(screen.heaviest * bend)
                                tops[s] += abs(step) * screen.norms[j]
                                for r in range(rank):
                                    if r != s:
                                        screen.paths[r] += turned * tops[r]
                            P[s, j] = q
                            update(cache, j, p, q)
                            change = max(change, abs(step))
                for s in range(first, last):
                    if exists[s]:
                        for n in range(n_samples):
                            screen.ends[s, n] = weight(weights, n) * (slope[n] if stored else f[n]) * A[s, n]
            last_change = end_sweep(outcomes, done, flat_P, change)
            largest_change = max(largest_change, last_change)
            done += 1
        return done, largest_change, last_change

    return sweeps
