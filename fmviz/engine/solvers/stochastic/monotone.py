"""Safeguard for stochastic solvers that undoes epochs with an increased objective."""

from __future__ import annotations

from sys import float_info

import numpy as np

from ...models.pairs import pairs_of_rows
from ...parameters import Parameters
from ...problem import Problem
from ...settings import ParamSpec
from ..proximal import PGD

MONOTONE = ParamSpec(
    "monotone",
    "bool",
    True,
    help="Undo epochs that increase the objective: a proximal gradient step on all samples replaces them, "
    "and the stochastic step size is halved; it grows again with every accepted epoch. Costs one "
    "evaluation of the objective per epoch. Without it, sampling noise prevents convergence, and too "
    "large steps diverge.",
)
SHRINK = 0.5
GROW = 1.25


class Safeguard:
    """Bold driver with a fallback: accept epochs that do not increase the objective, replace others.

    The stochastic steps of an epoch are multiplied by `scale`, at most 1. An epoch that ends above its start,
    or is not finite, is undone; the iterate takes a step of `PGD` with line search instead, and `scale` is
    halved. An accepted epoch increases `scale` by a quarter.

    The objective therefore never increases. Since PGD steps require a decrease proportional to the squared
    distance to stationarity, a run with repeatedly rejected epochs converges to a stationary point, unlike
    stochastic steps of constant size.
    """

    memory = ("scale", "_value", "_rescue")

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._rescue = PGD().within(problem)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """Set the starting point."""
        self.scale = 1.0
        self._rescue.start(parameters, rng)
        self._value = self.objective(parameters)

    def objective(self, at: Parameters) -> float:
        """Return the objective; not finite on overflow."""
        problem, design = self._problem, self._problem.design
        with np.errstate(over="ignore", invalid="ignore"):
            if not problem.model.plain:
                return problem.objective(at)
            f = problem.model.linear_part(design, at)
            pairs_of_rows(design.storage)(*design.rows, np.ascontiguousarray(at.P), f)
            return sum(problem.parts(at, f).values())

    def move(self, to: Parameters) -> None:
        """Set another point to compare with, no worse than the current one."""
        self._value = self.objective(to)

    def accepts(self, end: Parameters) -> bool:
        """Return whether to accept an epoch that ends at a point, and set the scale of the next epoch."""
        value = self.objective(end)
        # Written with <= to reject NaN.
        if value <= self._value:
            self._value = value
            self.scale = min(1.0, GROW * self.scale)
            return True
        return False

    def fallback(self, start: Parameters) -> tuple[Parameters, float]:
        """Return the point after a rejected epoch, and the size of the step to it as in `PGD`."""
        # At 0, the change of steps of full size would be undefined.
        self.scale = max(float_info.min, SHRINK * self.scale)
        self._rescue.resume(start)
        change = self._rescue.epoch()
        end = self._rescue.parameters()
        # PGD descends up to rounding; the objective computed here decides.
        value = self.objective(end)
        if value <= self._value:
            self._value = value
            return end, change
        return start, change
