"""A safeguard for stochastic solvers that undoes epochs which raised the objective."""

from __future__ import annotations

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
    help="Undo an epoch that raised the objective: one proximal gradient step on all samples takes its "
    "place, and the stochastic steps are halved, to grow again with every epoch that is kept. Costs one "
    "evaluation of the objective an epoch. Without it the noise of the samples keeps a run from settling, "
    "and steps that are too long diverge.",
)
SHRINK = 0.5
GROW = 1.25


class Safeguard:
    """Bold driver with a fallback: keep an epoch that did not raise the objective, replace any other.

    The stochastic steps of an epoch are multiplied by `scale`, at most 1. An epoch whose end lies above its
    start, or is not finite, is undone, and the iterate makes one step of `PGD` instead, with its line
    search; then `scale` is halved. An epoch that is kept raises `scale` by a quarter.

    So the objective never rises. As PGD's steps require a decrease in proportion to the squared distance to
    stationarity, a run whose epochs are rejected again and again tends to a stationary point, which
    stochastic steps of a constant size do not.
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
        """Return the objective; not finite where it overflows."""
        problem, design = self._problem, self._problem.design
        with np.errstate(over="ignore", invalid="ignore"):
            if problem.model.columnar:
                return problem.objective(at)
            f = problem.model.linear_part(design, at)
            pairs_of_rows(design.storage)(*design.rows, np.ascontiguousarray(at.P), f)
            return sum(problem.parts(at, f).values())

    def move(self, to: Parameters) -> None:
        """Set another point to compare with, which is no worse than the present one."""
        self._value = self.objective(to)

    def accepts(self, end: Parameters) -> bool:
        """Return whether an epoch may end there, and set the scale of the next one."""
        value = self.objective(end)
        # Written with <=, so that NaN is rejected.
        if value <= self._value:
            self._value = value
            self.scale = min(1.0, GROW * self.scale)
            return True
        return False

    def fallback(self, start: Parameters) -> tuple[Parameters, float]:
        """Return the point after a rejected epoch, and the length of the step to it as in `PGD`."""
        self.scale *= SHRINK
        self._rescue.resume(start)
        change = self._rescue.epoch()
        end = self._rescue.parameters()
        # PGD descends up to rounding; the objective as computed here decides.
        value = self.objective(end)
        if value <= self._value:
            self._value = value
            return end, change
        return start, change
