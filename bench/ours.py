"""Run fmviz a few epochs at a time, alternating with another program."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import get_solver
from fmviz.engine.warmup import make_ready


class Ours:
    """A solver of fmviz on a problem, from a given start, with compiled kernels."""

    def __init__(self, problem: Problem, solver: str, start: Parameters, **params: Any) -> None:
        self.problem, self.epochs = problem, 0
        self._method = get_solver(solver, params).on(problem)
        make_ready(problem, self._method)
        self._method.start(start, np.random.default_rng(0))
        self._change = 0.0

    def advance(self, epochs: int = 1) -> float:
        """Run a number of epochs and return their CPU seconds, by the clock of the solver."""
        begin = self._method.clock()
        for _ in range(epochs):
            self._change = self._method.epoch()
        seconds = self._method.clock() - begin
        self.epochs += epochs
        return seconds

    @property
    def diverged(self) -> bool:
        """Whether the last epoch diverged."""
        return not np.isfinite(self._change)

    @property
    def at_rest(self) -> bool:
        """Whether the last epoch changed nothing."""
        return self._change == 0.0

    def parameters(self) -> Parameters:
        """Return the current parameters."""
        return self._method.parameters()

    def close(self) -> None:
        """Release the resources of the solver."""
        self._method.close()


def alive(parameters: Parameters) -> float:
    """Return the share of non-zero entries of P."""
    return float(np.count_nonzero(parameters.P) / parameters.P.size)
