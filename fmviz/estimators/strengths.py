"""Strengths that are left to the data."""

from __future__ import annotations

from typing import Any

from fmviz.engine.errors import finite_number
from fmviz.engine.problem import Problem
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.informed import informed_solver
from fmviz.engine.starts.strengths import fill_strengths

from .base import ModelEstimator


class StrengthsOfData(ModelEstimator):
    """An estimator whose strengths, and the size of whose start, follow the data where they are None."""

    lambda_sparse_: float
    lambda_p_: float
    lambda_w_: float

    def _problem_arguments(self) -> dict[str, Any]:
        about = super()._problem_arguments()
        return {name: 0.0 if value is None else value for name, value in about.items()}

    def _completed(self, problem: Problem, anew: bool = True) -> tuple[Problem, float]:
        given = {name: getattr(self, name) for name in STRENGTHS}
        if not anew:
            given |= {name: getattr(self, f"{name}_") for name in STRENGTHS if hasattr(self, f"{name}_")}
        size = None if self.init_scale is None else finite_number("init_scale", self.init_scale, low=0)
        problem, size = fill_strengths(problem, {**given, "init_scale": size})
        for name in STRENGTHS:
            setattr(self, f"{name}_", getattr(problem, name))
        return problem, size

    def _chosen_solver(self, problem: Problem) -> Solver:
        return informed_solver(super()._chosen_solver(problem), problem)
