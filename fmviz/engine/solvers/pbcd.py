"""Proximal block coordinate descent over the rows of P ([A] Algorithm 6), with and without line search."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._jit import cached_factory, jitable
from ..design import Storage
from ..errors import WhyNot
from ..losses import ScalarLoss
from ..parameters import Parameters
from ..params import ParamSpec
from ..penalties import RowView
from ..penalties._vectors import norm
from ..problem import Formulation
from ._anderson import ANDERSON
from ._pairs import BEYOND, NOISE, pair_row_sweep
from ._sweeping import ACTIVE_SWEEPS, SweepingSolver
from .base import Solver
from .pcd import not_linear

# Numbers in a cache line.
_LINE = 8


def in_lines(M: np.ndarray) -> np.ndarray:
    """Return a copy of M, shape (n, k), whose rows start cache lines and end in zeros up to whole ones.

    Loops over a row so touch no line of its neighbours and need no remainder, and the zeros stay 0.
    """
    n, k = M.shape
    wide = -(-k // _LINE) * _LINE
    memory = np.zeros(n * wide + _LINE)
    skip = -memory.ctypes.data % (8 * _LINE) // 8
    lines = memory[skip : skip + n * wide].reshape(n, wide)
    lines[:, :k] = M
    return lines


@jitable
def raise_to_largest(largest, A, tops):
    """Raise largest[0] to the largest |A|, by way of `tops`, one for each column of A."""
    tops[:] = 0.0
    for n in range(A.shape[0]):
        a = A[n]
        for s in range(tops.size):
            tops[s] = max(tops[s], abs(a[s]))
    for s in range(tops.size):
        largest[0] = max(largest[0], tops[s])


@jitable
def accumulate(A, at, x, first, second, p, g, h):
    """Add Σ first·df to g and Σ second·df² to h, entry by entry of df = a − x·p, over the rows `at` of A.

    Four rows are taken together: g and h are then read and written a quarter as often.
    """
    count, rank = at.size, p.size
    fours = count // 4
    for block in range(fours):
        i = 4 * block
        a0, a1, a2, a3 = A[at[i]], A[at[i + 1]], A[at[i + 2]], A[at[i + 3]]
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        u0, u1, u2, u3 = first[i], first[i + 1], first[i + 2], first[i + 3]
        v0, v1, v2, v3 = second[i], second[i + 1], second[i + 2], second[i + 3]
        for s in range(rank):
            d0 = a0[s] - x0 * p[s]
            d1 = a1[s] - x1 * p[s]
            d2 = a2[s] - x2 * p[s]
            d3 = a3[s] - x3 * p[s]
            g[s] += (u0 * d0 + u1 * d1) + (u2 * d2 + u3 * d3)
            h[s] += (v0 * d0 * d0 + v1 * d1 * d1) + (v2 * d2 * d2 + v3 * d3 * d3)
    for i in range(4 * fours, count):
        a0 = A[at[i]]
        for s in range(rank):
            d0 = a0[s] - x[i] * p[s]
            g[s] += first[i] * d0
            h[s] += second[i] * d0 * d0


@cached_factory()
def row_sweep(storage: Storage, loss: ScalarLoss, penalty: RowView, weight):
    """Return the kernel of one sweep over the rows of P, with the step 1/(2·lam_p + μ/N Σ c‖∇f‖²).

    P has shape (d, k) and A = XP shape (N, k), both by `in_lines`. `places`, shape (longest column,), and
    `work`, shape (4, longest column), are work space. `moments` holds the Σ c x_j² of every column and
    `largest[0]` the largest |A| so far: together they tell a slope from a rounding error, as in
    `_factors.factor_sweep`. `lam_p` contains the penalty's own quadratic part. With `live_only` the rows that
    are 0 are passed over.
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
    ):
        d, rank = P.shape
        n_samples = y.size
        g = np.empty(rank)
        h = np.empty(rank)
        step = np.empty(rank)
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
            for i in range(count):
                n = row(rows, i)
                c = weight(weights, n)
                at[i] = n
                x[i] = value(column, i)
                first[i] = c * derivative(f[n], y[n], theta) * x[i]
                second[i] = c * x[i] * x[i]
            g[:] = 0.0
            h[:] = 0.0
            accumulate(A, at, x, first, second, P[j], g, h)
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
                shrink(step, BEYOND if lam > 0.0 else 0.0, j, P, cache)
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
                    a = A[at[i]]
                    inner = 0.0
                    for s in range(rank):
                        inner += a[s] * step[s]
                        a[s] += x[i] * step[s]
                    f[at[i]] += x[i] * (inner - x[i] * along)
                change = max(change, moved)
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

    params: ClassVar[tuple[ParamSpec, ...]] = (ACTIVE_SWEEPS, ANDERSON)

    def prepare(self) -> None:
        """See `Solver.prepare`."""
        problem = self.problem
        self._prepare(problem.penalty.row)
        design = problem.design
        wide = in_lines(np.empty((1, problem.rank))).shape[1]
        self._cache = self._penalty.cache(design.n_features, wide)
        self._places = np.empty(design.longest_column, dtype=design.columns.indices.dtype)
        self._work = in_lines(np.empty((4, design.longest_column)))
        self._sizes = np.empty(design.n_features)

    @classmethod
    def for_model(cls, model: Any) -> type[Solver]:
        """See `Solver.for_model`."""
        from .columns import ColumnPBCD

        return ColumnPBCD if model.columnar else cls

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        """See `Solver.why_not`."""
        model, penalty = problem.model, problem.penalty
        if model.lifted or not model.multilinear:
            return not_linear(self.label, model)
        if penalty.row is None:
            return WhyNot(
                "no_row_view",
                penalty.why_no_row
                or f"{penalty.label} by rows squares the norm of the very row that a step moves, so the "
                "row step does not split into entries. Use PCD.",
            )
        return None

    def _lay(self, P: np.ndarray) -> np.ndarray:
        return in_lines(P)

    def _n_largest(self) -> int:
        return 1

    def parameters(self) -> Parameters:
        """See `Solver.parameters`."""
        return Parameters(self._P[:, : self.problem.rank].copy(), self._w.copy(), self._bias)

    def _kernel(self) -> Any:
        if self._partners is not None:
            return pair_row_sweep(self._loss, self._penalty, self._weight)
        return row_sweep(self.problem.design.storage, self._loss, self._penalty, self._weight)

    def _further(self) -> tuple[float, ...]:
        """Return what the kernel takes besides."""
        return ()

    def _sweep_factors(self) -> float:
        problem = self.problem
        if self._partners is not None:
            return self._compiled(
                self._partners.other,
                problem.design.columns.indices,
                problem.design.columns.indptr,
                problem.y,
                problem.weights,
                self._f,
                self._P,
                self._moments,
                self._sizes,
                self._work[0],
                self._cache,
                problem.mu,
                problem.loss.theta,
                self._lambda_p,
                problem.lambda_sparse,
                self._live_only,
            )
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
            problem.mu,
            problem.loss.theta,
            self._lambda_p,
            problem.lambda_sparse,
            self._live_only,
            *self._further(),
        )
