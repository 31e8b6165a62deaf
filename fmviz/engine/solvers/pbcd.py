"""Proximal block coordinate descent over the rows of P ([A] Algorithm 6), with and without line search."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, ClassVar

import numpy as np

from .._jit import cached_factory
from ..design import Storage
from ..losses import Loss
from ..params import ParamSpec
from ..problem import Problem
from ..regularizers import RowPenalty
from ..regularizers.l21 import norm
from ..snapshot import Parameters
from ._anderson import ANDERSON
from ._rows import RowScreen, accumulate, follow, in_lines, note, raise_to_largest, stays
from ._sweeping import ACTIVE_SWEEPS, SweepingSolver
from .pcd import NOISE

# The strength of the row operator where the smooth part is flat: larger than any entry, yet 0 times it is 0.
_BEYOND = 1e300


@cached_factory()
def row_sweep(storage: Storage, loss: Loss, penalty: RowPenalty, weight):
    """Return the kernel of one sweep over the rows of P, with the step 1/(2·lam_p + μ/N Σ c‖∇f‖²).

    P has shape (d, k) and A = XP shape (N, k), both by `in_lines`. `places`, shape (longest column,), and
    `work`, shape (5, longest column), are work space. `moments` holds the Σ c x_j² of every column and
    `largest[0]` the largest |A| so far: together they tell a slope from a rounding error, as in
    `pcd.factor_sweep`. `screen` tells which zeros stay, see `RowScreen`. `lam_p` contains the penalty's own
    quadratic part. With `live_only` the rows that are 0 are passed over.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative
    begin, shrink, update, threshold = penalty.begin, penalty.shrink, penalty.update, penalty.threshold

    def sweep(
        data,
        indices,
        indptr,
        y,
        weights,
        f,
        P,
        A,
        moments,
        largest,
        places,
        work,
        cache,
        screen,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
    ):
        d, rank = P.shape
        n_samples = y.size
        g = np.empty(rank)
        h = np.empty(rank)
        step = np.empty(rank)
        change = 0.0
        if not live_only:
            raise_to_largest(largest, A, g)
        moved = 0.0
        for n in range(n_samples):
            now = weight(weights, n) * derivative(f[n], y[n], theta)
            moved += (now - screen.slopes[n]) ** 2 * screen.squares[n]
            screen.slopes[n] = now
        screen.path[0] += sqrt(max(moved, 0.0))
        begin(P, cache)
        for j in range(d):
            dead = norm(P[j]) == 0.0
            if dead and (live_only or stays(screen, j, n_samples, lam * threshold(j, P, cache))):
                continue
            column = data[indptr[j] : indptr[j + 1]]
            rows = indices[indptr[j] : indptr[j + 1]]
            count = indptr[j + 1] - indptr[j]
            at, x, first, second = places[:count], work[0, :count], work[1, :count], work[2, :count]
            inner, now = work[3, :count], work[4, :count]
            for i in range(count):
                n = row(rows, i)
                c = weight(weights, n)
                at[i] = n
                x[i] = value(column, i)
                first[i] = screen.slopes[n] * x[i]
                second[i] = c * x[i] * x[i]
            g[:] = 0.0
            h[:] = 0.0
            accumulate(A, at, x, first, second, P[j], g, h)
            note(screen, j, norm(g) / n_samples if dead else inf)
            bend = 0.0
            for s in range(rank):
                bend += h[s]
            if bend <= NOISE * largest[0] * largest[0] * moments[j]:
                g[:] = 0.0
                bend = 0.0
            bend *= mu / n_samples
            whole = bend + 2.0 * lam_p
            if whole > 0.0:
                for s in range(rank):
                    step[s] = (bend * P[j, s] - g[s] / n_samples) / whole
                shrink(step, lam / whole, j, P, cache)
            else:
                for s in range(rank):
                    step[s] = P[j, s]
                shrink(step, _BEYOND if lam > 0.0 else 0.0, j, P, cache)
            update(cache, j, P, step)
            moved = 0.0
            along = 0.0
            square = 0.0
            for s in range(rank):
                p = P[j, s]
                P[j, s] = step[s]
                step[s] -= p
                along += p * step[s]
                square += step[s] * step[s]
                moved = max(moved, abs(step[s]))
            if moved > 0.0:
                for i in range(count):
                    a = A[at[i]]
                    total = 0.0
                    for s in range(rank):
                        total += a[s] * step[s]
                        a[s] += x[i] * step[s]
                    inner[i] = total
                for i in range(count):
                    n = row(rows, i)
                    f[n] += x[i] * (inner[i] - x[i] * along)
                    now[i] = weight(weights, n) * derivative(f[n], y[n], theta)
                follow(screen, at, x, inner, now, square)
                change = max(change, moved)
        return change

    return sweep


@cached_factory()
def row_sweep_line_search(storage: Storage, loss: Loss, penalty: RowPenalty, weight):
    """Return the kernel of one sweep with the line search of Tseng and Yun (2009).

    As `row_sweep`, with the constants sigma and rho, and at most `most` halvings; where none of them
    suffices the row stays.
    """
    row, value = storage.row, storage.value
    loss_value, derivative, bending = loss.value, loss.derivative, loss.second
    begin, shrink, update, penalty_of = penalty.begin, penalty.shrink, penalty.update, penalty.penalty
    threshold = penalty.threshold

    def sweep(
        data,
        indices,
        indptr,
        y,
        weights,
        f,
        P,
        A,
        moments,
        largest,
        places,
        work,
        cache,
        screen,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
        sigma,
        rho,
        most,
    ):
        d, rank = P.shape
        n_samples = y.size
        g = np.empty(rank)
        h = np.empty(rank)
        step = np.empty(rank)
        trial = np.empty(rank)
        change = 0.0
        if not live_only:
            raise_to_largest(largest, A, g)
        moved = 0.0
        for n in range(n_samples):
            now = weight(weights, n) * derivative(f[n], y[n], theta)
            moved += (now - screen.slopes[n]) ** 2 * screen.squares[n]
            screen.slopes[n] = now
        screen.path[0] += sqrt(max(moved, 0.0))
        begin(P, cache)
        for j in range(d):
            dead = norm(P[j]) == 0.0
            if dead and (live_only or stays(screen, j, n_samples, lam * threshold(j, P, cache))):
                continue
            column = data[indptr[j] : indptr[j + 1]]
            rows = indices[indptr[j] : indptr[j + 1]]
            count = indptr[j + 1] - indptr[j]
            at, x, first, second = places[:count], work[0, :count], work[1, :count], work[2, :count]
            inner, now = work[3, :count], work[4, :count]
            for i in range(count):
                n = row(rows, i)
                c = weight(weights, n)
                at[i] = n
                x[i] = value(column, i)
                first[i] = screen.slopes[n] * x[i]
                second[i] = c * bending(f[n], y[n], theta) * x[i] * x[i]
            g[:] = 0.0
            h[:] = 0.0
            accumulate(A, at, x, first, second, P[j], g, h)
            note(screen, j, norm(g) / n_samples if dead else inf)
            bent = 0.0
            for s in range(rank):
                g[s] /= n_samples
                bent = max(bent, h[s] / n_samples)
            # Only next to nothing can be a rounding error, or a loss that is flat here: then the sum of
            # squares tells, and it need not be computed elsewhere.
            size = mu / n_samples * rank * largest[0] * largest[0] * moments[j]
            if bent <= NOISE * size or bent + 2.0 * lam_p <= 1e-9 * size:
                for i in range(count):
                    second[i] = weight(weights, row(rows, i)) * x[i] * x[i]
                trial[:] = 0.0
                h[:] = 0.0
                accumulate(A, at, x, first, second, P[j], trial, h)
                trace = 0.0
                for s in range(rank):
                    trace += h[s]
                if trace <= NOISE * largest[0] * largest[0] * moments[j]:
                    g[:] = 0.0
                    bent = 0.0
                    trace = 0.0
                trace *= mu / n_samples
                # Where the loss is flat the second derivative says nothing; its Lipschitz constant does.
                if bent + 2.0 * lam_p <= 1e-12 * trace:
                    bent = trace
            whole = bent + 2.0 * lam_p
            if whole > 0.0:
                for s in range(rank):
                    step[s] = (bent * P[j, s] - g[s]) / whole
                shrink(step, lam / whole, j, P, cache)
            else:
                for s in range(rank):
                    step[s] = P[j, s]
                shrink(step, _BEYOND if lam > 0.0 else 0.0, j, P, cache)
            along = 0.0
            square = 0.0
            predicted = lam * (penalty_of(step, j, P, cache) - penalty_of(P[j], j, P, cache))
            before = lam * penalty_of(P[j], j, P, cache)
            moved = 0.0
            for s in range(rank):
                step[s] -= P[j, s]
                predicted += (g[s] + 2.0 * lam_p * P[j, s]) * step[s]
                along += P[j, s] * step[s]
                square += step[s] * step[s]
                before += lam_p * P[j, s] * P[j, s]
                moved = max(moved, abs(step[s]))
            if moved > 0.0:
                for i in range(count):
                    a = A[at[i]]
                    total = 0.0
                    for s in range(rank):
                        total += a[s] * step[s]
                    inner[i] = total
                alpha = 1.0
                tried = 0
                accepted = False
                while not accepted and tried < most:
                    rise = -before
                    for s in range(rank):
                        trial[s] = P[j, s] + alpha * step[s]
                        rise += lam_p * trial[s] * trial[s]
                    rise += lam * penalty_of(trial, j, P, cache)
                    risk = 0.0
                    for i in range(count):
                        n = row(rows, i)
                        risk += weight(weights, n) * (
                            loss_value(f[n] + alpha * x[i] * (inner[i] - x[i] * along), y[n], theta)
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
                        P[j, s] = trial[s]
                    for i in range(count):
                        a = A[at[i]]
                        for s in range(rank):
                            a[s] += alpha * x[i] * step[s]
                    for i in range(count):
                        n = row(rows, i)
                        f[n] += alpha * x[i] * (inner[i] - x[i] * along)
                        now[i] = weight(weights, n) * derivative(f[n], y[n], theta)
                        inner[i] *= alpha
                    follow(screen, at, x, inner, now, alpha * alpha * square)
                    change = max(change, alpha * moved)
        return change

    return sweep


class PBCD(SweepingSolver):
    """Take a proximal step on one row of P at a time."""

    name: ClassVar[str] = "pbcd"
    label: ClassVar[str] = "PBCD"
    source: ClassVar[str] = "atarashi2021, Algorithm 6"
    about: ClassVar[str] = (
        "Proximal block coordinate descent: each row of P in turn takes a proximal step, whose size is "
        "known to be safe. The objective never rises. Rows that provably stay 0 are passed over."
    )

    params: ClassVar[tuple[ParamSpec, ...]] = (ACTIVE_SWEEPS, ANDERSON)

    def __init__(self, problem: Problem, **params: Any) -> None:
        penalty = problem.regularizer.row(**problem.regularizer_params)
        super().__init__(problem, penalty, **params)
        design = problem.design
        wide = in_lines(np.empty((1, problem.rank))).shape[1]
        self._cache = np.zeros(max(1, self._penalty.cache_size(design.n_features, wide)))
        self._norms = np.sqrt(design.power(2).T @ np.ones(design.n_samples))
        self._places = np.empty(design.longest_column, dtype=design.columns.indices.dtype)
        self._work = in_lines(np.empty((5, design.longest_column)))

    @classmethod
    def why_not(
        cls, model: Any, regularizer: Any, loss: Any, regularizer_params: dict[str, Any]
    ) -> str | None:
        """See `Solver.why_not`."""
        if regularizer.row(**regularizer_params) is None:
            return regularizer.why_no_row or (
                f"{regularizer.label} by rows squares the norm of the very row that a step moves, so the "
                "row step does not split into entries. Use PCD."
            )
        return None

    def _lay(self, P: np.ndarray) -> np.ndarray:
        return in_lines(P)

    def _n_largest(self) -> int:
        return 1

    def _hold(self, f: np.ndarray, A: np.ndarray) -> None:
        super()._hold(f, A)
        design = self.problem.design
        self._screen = RowScreen(
            self._norms,
            np.full(design.n_features, np.inf),
            np.zeros(design.n_features),
            np.zeros(1),
            np.einsum("ns,ns->n", A, A),
            np.zeros(design.n_samples),
        )

    def parameters(self) -> Parameters:
        """See `Solver.parameters`."""
        return Parameters(self._P[:, : self.problem.rank].copy(), self._w.copy(), self._bias)

    def _kernel(self) -> Any:
        return row_sweep(self.problem.design.storage, self._loss, self._penalty, self._weight)

    def _further(self) -> tuple[float, ...]:
        """Return what the kernel takes besides."""
        return ()

    def _sweep_factors(self) -> float:
        problem = self.problem
        return self._compiled(
            *problem.design.columns,
            problem.y,
            problem.weights,
            self._f,
            self._P,
            self._A,
            self._moments,
            self._largest,
            self._places,
            self._work,
            self._cache,
            self._screen,
            problem.loss.mu,
            problem.loss_param,
            self._lambda_p,
            problem.lambda_sparse,
            self._live_only,
            *self._further(),
        )


class PBCDLineSearch(PBCD):
    """PBCD that tries a longer step and backtracks."""

    name: ClassVar[str] = "pbcd_ls"
    label: ClassVar[str] = "PBCD, line search"
    source: ClassVar[str] = "atarashi2021, Algorithm 6; Tseng and Yun (2009)"
    about: ClassVar[str] = (
        "PBCD whose first try is a longer step from the second derivative, shortened until the objective "
        "falls enough."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ACTIVE_SWEEPS,
        ANDERSON,
        ParamSpec("sigma", "float", 0.01, 1e-6, 0.99, symbol=r"\sigma", help="Share of the predicted fall."),
        ParamSpec("rho", "float", 0.5, 0.05, 0.95, symbol=r"\rho", help="Factor of each shortening."),
    )
    most_trials = 40

    def _kernel(self) -> Any:
        return row_sweep_line_search(self.problem.design.storage, self._loss, self._penalty, self._weight)

    def _further(self) -> tuple[float, ...]:
        return self.settings["sigma"], self.settings["rho"], self.most_trials
