"""PCD, CD and PBCD for models that are sums of kernels of the columns of P, whatever their order."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..kernels import Anova, ColumnKernel, Polynomial
from ..parameters import Parameters
from ..penalties import EntryView, Penalty, RowView
from ..penalties.blockwise import parts_of
from ._coefficients import CoefficientStep
from ._multilinear import anova_sweep, subsets_sweep
from ._multilinear_rows import anova_row_sweep, anova_tables, subsets_row_sweep, subsets_tables
from ._polynomial import polynomial_sweep
from ._sweeping import SweepingSolver
from .pbcd import PBCD
from .pcd import CD, PCD, check_by_columns


class _ColumnSweeps(SweepingSolver):
    """The frame: an epoch sweeps over λ, where it is fitted, w and the bias, and every block of P."""

    memory: ClassVar[tuple[str, ...]] = (*SweepingSolver.memory, "_coefficients")

    def prepare(self) -> None:
        """See `Solver.prepare`."""
        problem = self.problem
        # Past the caches of the second-order kernels, which the class beside this one would make.
        self._prepare(None)
        views = parts_of(problem.penalty)
        model: Any = problem.model
        self._parts = [
            (kernel, self._view(part)) for (_, part), kernel in zip(views, model.kernels(), strict=True)
        ]
        d = problem.design.n_features
        self._caches = [view.cache(d, problem.rank) for _, view in self._parts]
        self._coefficient_step = CoefficientStep(problem) if problem.model.fits_coefficients else None

    @staticmethod
    def _view(penalty: Penalty) -> Any:
        """Return Ω of one block, as an entry or a row sees it."""
        raise NotImplementedError

    def _sweep_block(
        self, b: int, kernel: ColumnKernel, view: Any, P: np.ndarray, coefficients: np.ndarray
    ) -> float:
        raise NotImplementedError

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """See `Solver.start`."""
        self._coefficients = parameters.multipliers.copy()
        self._given = parameters.coefficients is not None
        SweepingSolver.start(self, parameters, rng)

    def _kernel(self) -> None:
        """Every block has a kernel of its own."""

    def _hold(self, f: np.ndarray, A: np.ndarray | None) -> None:
        self._f = f - self._shift

    def _sweep(self) -> float:
        if self._coefficient_step is None:
            return super()._sweep()
        before = self._coefficients.copy()
        self._coefficient_step.step(self._f, self.parameters().P, self._coefficients)
        moved = float(np.abs(self._coefficients - before).max())
        size = max(float(np.abs(self._coefficients).max()), moved)
        return max(moved / size if size else 0.0, super()._sweep())

    def _sweep_factors(self) -> float:
        change = 0.0
        rank = self.problem.rank
        for b, (kernel, view) in enumerate(self._parts):
            coefficients = self._coefficients[b * rank : (b + 1) * rank]
            change = max(change, self._sweep_block(b, kernel, view, self._P[b], coefficients))
        return change

    def _data(self) -> tuple[Any, ...]:
        problem = self.problem
        return (*problem.design.columns, problem.y, problem.weights, self._f)

    def _lay(self, P: np.ndarray) -> np.ndarray:
        """Return P, shape (d, columns), as (blocks, k, d)."""
        return np.array(P.T, order="C").reshape(len(self._parts), -1, P.shape[0])

    def _flat(self) -> np.ndarray:
        """Return P, shape (d, columns)."""
        return np.array(self._P.reshape(-1, self._P.shape[2]).T, order="C")

    def parameters(self) -> Parameters:
        """See `Solver.parameters`."""
        coefficients = self._coefficients.copy() if self._given else None
        return Parameters(self._flat(), self._w.copy(), self._bias, coefficients=coefficients)


class _CoordinateSweeps(_ColumnSweeps):
    """Steps on single entries."""

    def prepare(self) -> None:
        """See `Solver.prepare`."""
        super().prepare()
        check_by_columns(self)

    @staticmethod
    def _view(penalty: Penalty) -> EntryView | None:
        return penalty.entry

    def _sweep_block(
        self, b: int, kernel: ColumnKernel, view: Any, P: np.ndarray, coefficients: np.ndarray
    ) -> float:
        problem, n = self.problem, self.problem.design.n_samples
        shrink = problem.lambda_p * (np.abs(coefficients) if self._given else np.ones(coefficients.size))
        model: Any = problem.model
        power = model.shrinkage_power
        shrink += problem.lambda_sparse * view.quad
        storage, weight, loss = problem.design.storage, self._weight, self._loss
        if isinstance(kernel, Polynomial):
            A = np.ascontiguousarray(problem.design.dot(P.T).T)
            sweep = polynomial_sweep(storage, loss, weight, kernel.degree, power)
            own = (P, A, coefficients, np.empty(n), problem.mu, problem.loss.theta, shrink)
            return sweep(*self._data(), *own, self._live_only)
        state: tuple[np.ndarray, ...]
        if isinstance(kernel, Anova):
            sweep = anova_sweep(storage, loss, view, weight, kernel.degree, power)
            state = (np.empty((kernel.degree + 1, n)), self._moments)
        else:
            sweep = subsets_sweep(storage, loss, view, weight)
            state = (np.empty(n), np.empty(n, dtype=np.int64))
        strengths = (problem.mu, problem.loss.theta, shrink, problem.lambda_sparse)
        return sweep(*self._data(), P, coefficients, *state, self._caches[b], *strengths, self._live_only)


class ColumnPCD(_CoordinateSweeps, PCD):
    """PCD."""


class ColumnCD(_CoordinateSweeps, CD):
    """CD."""


class ColumnPBCD(_ColumnSweeps, PBCD):
    """PBCD: steps on the rows of every block."""

    @staticmethod
    def _view(penalty: Penalty) -> RowView | None:
        return penalty.row

    def _lay(self, P: np.ndarray) -> np.ndarray:
        """Return P, shape (d, columns), as (blocks, d, k)."""
        return np.array(P.reshape(P.shape[0], len(self._parts), -1).transpose(1, 0, 2), order="C")

    def _flat(self) -> np.ndarray:
        return np.array(self._P.transpose(1, 0, 2), order="C").reshape(self._P.shape[1], -1)

    def _hold(self, f: np.ndarray, A: np.ndarray | None) -> None:
        super()._hold(f, A)
        problem, shape = self.problem, (self.problem.design.n_samples, self.problem.rank)
        storage = problem.design.storage
        self._states: list[tuple[np.ndarray, ...]] = []
        for (kernel, _), P in zip(self._parts, self._P, strict=True):
            state: tuple[np.ndarray, ...]
            if isinstance(kernel, Anova):
                state = (np.empty((shape[0], kernel.degree, shape[1])),)
                anova_tables(storage)(*problem.design.rows, P, *state)
                self._states.append((*state, self._moments))
            else:
                state = (np.empty(shape), np.empty(shape, dtype=np.int64))
                subsets_tables(storage)(*problem.design.rows, P, *state)
                self._states.append(state)

    def _sweep_block(
        self, b: int, kernel: ColumnKernel, view: Any, P: np.ndarray, coefficients: np.ndarray
    ) -> float:
        problem = self.problem
        storage, weight, loss = problem.design.storage, self._weight, self._loss
        if isinstance(kernel, Anova):
            sweep = anova_row_sweep(storage, loss, view, weight, kernel.degree)
        else:
            sweep = subsets_row_sweep(storage, loss, view, weight)
        shrink = problem.lambda_p + problem.lambda_sparse * view.quad
        strengths = (problem.mu, problem.loss.theta, shrink, problem.lambda_sparse)
        return sweep(
            *self._data(),
            P,
            coefficients,
            *self._states[b],
            self._caches[b],
            *strengths,
            self._live_only,
        )
