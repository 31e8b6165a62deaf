"""PCD and CD for lifted models: steps on single entries of U¹, …, U^m."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..parameters import Parameters
from ..penalties.blockwise import parts_of
from ._lifted import lifted_sweep
from ._sweeping import SweepingSolver
from .pcd import CD, PCD, check_by_columns


class LiftedPCD(PCD):
    """PCD: an epoch sweeps over w and the bias, and over all entries of every U^t in turn.

    f is linear in an entry, so the step is the closed one and the objective never rises ([B] Section 7).
    """

    def prepare(self) -> None:
        """See `Solver.prepare`."""
        problem = self.problem
        # Past the caches of the second-order kernels, which the class above would make.
        self._prepare(None)
        check_by_columns(self)
        model: Any = problem.model
        self._distinct: bool = model.distinct
        ((_, part),) = parts_of(problem.penalty)
        view = part.entry
        assert view is not None, "the driver asks why_not first"
        self._view = view
        columns = model.degree * problem.rank
        self._cache = view.cache(problem.design.n_features, columns)
        self._lambda_p = problem.lambda_p / model.degree + problem.lambda_sparse * view.quad

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """See `Solver.start`."""
        SweepingSolver.start(self, parameters, rng)

    def _kernel(self) -> Any:
        storage = self.problem.design.storage
        return lifted_sweep(storage, self._loss, self._view, self._weight, self._distinct)

    def _forward(self, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
        return self.problem.predict(parameters), self.problem.design.dot(parameters.P)

    def _sweep_factors(self) -> float:
        problem = self.problem
        return self._compiled(
            *problem.design.columns,
            problem.y,
            problem.weights,
            self._f,
            self._P,
            self._A,
            np.empty(problem.design.n_samples),
            problem.rank,
            self._moments,
            self._cache,
            problem.mu,
            problem.loss.theta,
            self._lambda_p,
            problem.lambda_sparse,
            self._live_only,
        )


class LiftedCD(LiftedPCD, CD):
    """CD: [B] Algorithm 2."""
