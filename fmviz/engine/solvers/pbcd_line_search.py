"""PBCD with a line search along every row ([A] Algorithm 6; Tseng and Yun 2009)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._jit import cached_factory
from ..design import Storage
from ..errors import WhyNot
from ..losses import ScalarLoss
from ..models import Model
from ..params import ParamSpec
from ..penalties import RowView
from ..penalties._vectors import norm
from ._anderson import ANDERSON
from ._pairs import BEYOND, NOISE
from ._sweeping import ACTIVE_SWEEPS
from .base import Solver
from .pbcd import PBCD, accumulate, raise_to_largest


@cached_factory()
def row_sweep_line_search(storage: Storage, loss: ScalarLoss, penalty: RowView, weight):
    """Return the kernel of one sweep with the line search of Tseng and Yun (2009).

    As `row_sweep`, with the constants sigma and rho, and at most `most` halvings; where none of them
    suffices the row stays.
    """
    row, value = storage.row, storage.value
    loss_value, derivative, bending = loss.value, loss.derivative, loss.second
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
        begin(P, cache)
        for j in range(d):
            if live_only and norm(P[j]) == 0.0:
                continue
            column = data[indptr[j] : indptr[j + 1]]
            rows = indices[indptr[j] : indptr[j + 1]]
            count = indptr[j + 1] - indptr[j]
            at, x, first, second = places[:count], work[0, :count], work[1, :count], work[2, :count]
            slope = work[3, :count]
            for i in range(count):
                n = row(rows, i)
                c = weight(weights, n)
                at[i] = n
                x[i] = value(column, i)
                first[i] = c * derivative(f[n], y[n], theta) * x[i]
                second[i] = c * bending(f[n], y[n], theta) * x[i] * x[i]
            g[:] = 0.0
            h[:] = 0.0
            accumulate(A, at, x, first, second, P[j], g, h)
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
                shrink(step, BEYOND if lam > 0.0 else 0.0, j, P, cache)
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
                    a = A[at[i]]
                    inner = 0.0
                    for s in range(rank):
                        inner += a[s] * step[s]
                    slope[i] = x[i] * (inner - x[i] * along)
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
                        a = A[at[i]]
                        f[at[i]] += alpha * slope[i]
                        for s in range(rank):
                            a[s] += alpha * x[i] * step[s]
                    change = max(change, alpha * moved)
        return change

    return sweep


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
    takes_pairs = False

    @classmethod
    def for_model(cls, model: Any) -> type[Solver]:
        """See `Solver.for_model`."""
        return cls

    def _why_not_model(self, model: Model) -> WhyNot | None:
        """See `Solver._why_not_model`."""
        unsuited = super()._why_not_model(model)
        if unsuited is None and model.columnar:
            return WhyNot(
                "pairs_only",
                f"{self.label} bounds the curvature of a row by the second derivatives of pairs; for "
                f"{model.label} take PBCD, whose step from the Lipschitz constant needs no search.",
            )
        return unsuited

    def _kernel(self) -> Any:
        return row_sweep_line_search(self.problem.design.storage, self._loss, self._penalty, self._weight)

    def _further(self) -> tuple[float, ...]:
        return self.settings["sigma"], self.settings["rho"], self.most_trials
