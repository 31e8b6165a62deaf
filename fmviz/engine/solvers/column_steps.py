"""SGD and PSGD for models that are sums of kernels of the columns of P."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Problem
from ..snapshot import Parameters
from ._coefficients import CoefficientStep
from ._lazy import lazy_entries
from ._steps import Steps
from ._terms import COLUMNS, kind_of
from .psgd import PSGD, SGD, ShuffledSolver


class _ColumnSteps(ShuffledSolver):
    """The frame: a step costs O(nnz(x)·m) for every column of order m, by the recursions of `kernels`.

    Where the coefficients λ are fitted, each epoch begins with the exact fit of λ, and the step size of
    column s is η/|λ_s|: a step of size η on √|λ_s| p_s. λ_p Σ|λ_s|‖p_s‖² is the plain squared norm of these,
    and K is homogeneous, so all columns decay alike, as lazy updates need. A column with λ_s = 0 rests.
    """

    memory = (*ShuffledSolver.memory, "_coefficients")

    def __init__(self, problem: Problem, **params: Any) -> None:
        super().__init__(problem, **params)
        model: Any = problem.model
        blocks = model.blocks(problem.rank)
        self._kinds = np.repeat([kind_of(block.kernel) for block in blocks], problem.rank).astype(np.int64)
        self._fit = CoefficientStep(problem) if model.fits_coefficients else None

    def _take(self, parameters: Parameters) -> None:
        super()._take(parameters)
        given = parameters.coefficients
        self._coefficients = None if given is None else given.copy()

    def _here(self) -> Parameters:
        return Parameters(self._P, self._w, float(self._bias), coefficients=self._coefficients)

    def epoch(self) -> float:
        """See `Solver.epoch`."""
        if self._fit is None:
            return super().epoch()
        before = self.parameters()
        fitted = self._fit.refit(before)
        self._take(fitted)
        if self._guard is not None:
            self._guard.move(fitted)
        moved = float(np.abs(fitted.multipliers - before.multipliers).max())
        size = max(float(np.abs(fitted.multipliers).max()), moved)
        return max(moved / size if size else 0.0, super().epoch())

    def _run(self, order: np.ndarray, batch: int, steps: Steps) -> tuple[float, bool]:
        problem, design = self.problem, self.problem.design
        given = self._here().multipliers
        resting = given == 0.0
        root = np.sqrt(np.where(resting, 1.0, np.abs(given)))
        P = np.ascontiguousarray(self._P * root)
        columns = (self._kinds, given / root ** np.abs(self._kinds))
        kernel = lazy_entries(design.storage, problem.loss, COLUMNS)
        rest = self._w, self._bias, problem.loss_param, design.longest_row, self._period(), columns
        bias, finite = kernel(*self._common(order), *steps, P, *rest)
        P /= root
        P[:, resting] = self._P[:, resting]
        self._P = P
        return bias, finite


class ColumnSGD(_ColumnSteps, SGD):
    """SGD."""


class ColumnPSGD(_ColumnSteps, PSGD):
    """PSGD, with the penalties that shrink every entry for itself."""

    def _path(self, wanted: str) -> str:
        if wanted == "dense":
            raise ValueError(
                f"operator = 'dense' is not possible for {self.problem.model.label}: steps are made for the "
                "features of the sample only. Choose 'auto' or 'sparse', which are the same here."
            )
        return "sparse"
