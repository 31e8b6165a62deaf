"""Proximal block coordinate descent over the rows of P ([A] Algorithm 6), with and without line search."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._jit import cached_factory
from ..design import Storage
from ..losses import Loss
from ..params import ParamSpec
from ..problem import Problem
from ..regularizers import RowPenalty
from ._sweeping import SweepingSolver
from .pcd import NOISE

# The strength of the row operator where the smooth part is flat: larger than any entry, yet 0 times it is 0.
FLAT_STRENGTH = 1e300


@cached_factory()
def row_sweep(storage: Storage, loss: Loss, penalty: RowPenalty, weight):
    """Return the kernel of one sweep over all rows of P, with the step 1/(2·lam_p + μ/N Σ c‖∇f‖²).

    P has shape (d, k) and A = XP shape (N, k). `moments` holds the Σ c x_j² of every column and
    `largest[0]` the largest |A| so far: together they tell a slope from a rounding error, as in
    `pcd.factor_sweep`. `lam_p` contains the penalty's own quadratic part.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative
    begin, shrink, update = penalty.begin, penalty.shrink, penalty.update

    def sweep(data, indices, indptr, y, weights, f, P, A, moments, largest, cache, mu, theta, lam_p, lam):
        d, rank = P.shape
        n_samples = y.size
        g = np.empty(rank)
        step = np.empty(rank)
        change = 0.0
        for n in range(n_samples):
            for s in range(rank):
                largest[0] = max(largest[0], abs(A[n, s]))
        begin(P, cache)
        for j in range(d):
            column = data[indptr[j] : indptr[j + 1]]
            rows = indices[indptr[j] : indptr[j + 1]]
            count = indptr[j + 1] - indptr[j]
            g[:] = 0.0
            h = 0.0
            for i in range(count):
                n = row(rows, i)
                x = value(column, i)
                c = weight(weights, n)
                slope = c * derivative(f[n], y[n], theta) * x
                square = 0.0
                for s in range(rank):
                    df = A[n, s] - x * P[j, s]
                    g[s] += slope * df
                    square += df * df
                h += c * x * x * square
            if h <= NOISE * largest[0] * largest[0] * moments[j]:
                g[:] = 0.0
                h = 0.0
            h *= mu / n_samples
            whole = h + 2.0 * lam_p
            if whole > 0.0:
                for s in range(rank):
                    step[s] = (h * P[j, s] - g[s] / n_samples) / whole
                shrink(step, lam / whole, j, P, cache)
            else:
                for s in range(rank):
                    step[s] = P[j, s]
                shrink(step, FLAT_STRENGTH if lam > 0.0 else 0.0, j, P, cache)
            update(cache, j, P, step)
            moved = 0.0
            along = 0.0
            for s in range(rank):
                p = P[j, s]
                P[j, s] = step[s]
                step[s] -= p
                along += p * step[s]
                moved = max(moved, abs(step[s]))
            if moved > 0.0:
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    inner = 0.0
                    for s in range(rank):
                        inner += A[n, s] * step[s]
                        A[n, s] += x * step[s]
                    f[n] += x * (inner - x * along)
                change = max(change, moved)
        return change

    return sweep


@cached_factory()
def row_sweep_line_search(storage: Storage, loss: Loss, penalty: RowPenalty, weight):
    """Return the kernel of one sweep with the line search of Tseng and Yun (2009).

    As `row_sweep`, with `slope` of shape (longest column,) as work space, the constants sigma and rho, and
    at most `most` halvings; where none of them suffices the row stays.
    """
    row, value = storage.row, storage.value
    loss_value, derivative, second = loss.value, loss.derivative, loss.second
    begin, shrink, update, penalty_of = penalty.begin, penalty.shrink, penalty.update, penalty.penalty

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
        slope,
        cache,
        mu,
        theta,
        lam_p,
        lam,
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
        for n in range(n_samples):
            for s in range(rank):
                largest[0] = max(largest[0], abs(A[n, s]))
        begin(P, cache)
        for j in range(d):
            column = data[indptr[j] : indptr[j + 1]]
            rows = indices[indptr[j] : indptr[j + 1]]
            count = indptr[j + 1] - indptr[j]
            g[:] = 0.0
            h[:] = 0.0
            trace = 0.0
            for i in range(count):
                n = row(rows, i)
                x = value(column, i)
                c = weight(weights, n)
                first = c * derivative(f[n], y[n], theta) * x
                bend = c * second(f[n], y[n], theta) * x * x
                square = 0.0
                for s in range(rank):
                    df = A[n, s] - x * P[j, s]
                    g[s] += first * df
                    h[s] += bend * df * df
                    square += df * df
                trace += c * x * x * square
            if trace <= NOISE * largest[0] * largest[0] * moments[j]:
                g[:] = 0.0
                h[:] = 0.0
                trace = 0.0
            bent = 0.0
            for s in range(rank):
                g[s] /= n_samples
                bent = max(bent, h[s] / n_samples)
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
                shrink(step, FLAT_STRENGTH if lam > 0.0 else 0.0, j, P, cache)
            along = 0.0
            predicted = lam * (penalty_of(step, j, P, cache) - penalty_of(P[j], j, P, cache))
            before = lam * penalty_of(P[j], j, P, cache)
            moved = 0.0
            for s in range(rank):
                step[s] -= P[j, s]
                predicted += (g[s] + 2.0 * lam_p * P[j, s]) * step[s]
                along += P[j, s] * step[s]
                before += lam_p * P[j, s] * P[j, s]
                moved = max(moved, abs(step[s]))
            if moved > 0.0:
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    inner = 0.0
                    for s in range(rank):
                        inner += A[n, s] * step[s]
                    slope[i] = x * (inner - x * along)
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
                            loss_value(f[n] + alpha * slope[i], y[n], theta) - loss_value(f[n], y[n], theta)
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
                        n = row(rows, i)
                        x = alpha * value(column, i)
                        f[n] += alpha * slope[i]
                        for s in range(rank):
                            A[n, s] += x * step[s]
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
        "known to be safe. The objective never rises."
    )

    def __init__(self, problem: Problem, **params: Any) -> None:
        penalty = problem.regularizer.row(**problem.regularizer_params)
        super().__init__(problem, penalty, **params)

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
        return np.array(P, order="C")

    def _n_largest(self) -> int:
        return 1

    def _kernel(self) -> Any:
        return row_sweep(self.problem.design.storage, self._loss, self._penalty, self._weight)


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
        ParamSpec("sigma", "float", 0.01, 1e-6, 0.99, symbol=r"\sigma", help="Share of the predicted fall."),
        ParamSpec("rho", "float", 0.5, 0.05, 0.95, symbol=r"\rho", help="Factor of each shortening."),
    )
    most_trials = 40

    def _sweep_factors(self) -> float:
        problem = self.problem
        sweep = row_sweep_line_search(problem.design.storage, self._loss, self._penalty, self._weight)
        return sweep(
            *problem.design.columns,
            problem.y,
            problem.weights,
            self._f,
            self._P,
            self._A,
            self._moments,
            self._largest,
            np.empty(max(1, problem.design.longest_column)),
            self._cache,
            problem.loss.mu,
            problem.loss_param,
            self._lambda_p,
            problem.lambda_sparse,
            self.settings["sigma"],
            self.settings["rho"],
            self.most_trials,
        )
