"""Strengths that are left to the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fmviz.engine.errors import finite_number
from fmviz.engine.outputs.side_by_side import AnyProblem
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.informed import informed_solver
from fmviz.engine.starts.strengths import fill_strengths

from ..base import ModelEstimator


class StrengthsOfData(ModelEstimator):
    """An estimator whose strengths, and the size of whose start, follow the data where they are None."""

    _strengths: ClassVar[Mapping[str, str]] = {name: name for name in STRENGTHS}
    """What the estimator calls those that it has."""

    lambda_sparse_: Any
    lambda_p_: Any
    lambda_w_: Any

    def _problem_arguments(self) -> dict[str, Any]:
        about = super()._problem_arguments()
        return {name: 0.0 if value is None else value for name, value in about.items()}

    def _completed(self, problem: AnyProblem, anew: bool = True) -> tuple[AnyProblem, Any]:
        given = dict.fromkeys(STRENGTHS, 0.0) | {
            name: getattr(self, own) for name, own in self._strengths.items()
        }
        if not anew:
            given |= {
                name: getattr(self, f"{own}_")
                for name, own in self._strengths.items()
                if hasattr(self, f"{own}_")
            }
        size = None if self.init_scale is None else finite_number("init_scale", self.init_scale, low=0)
        values = {
            name: np.broadcast_to(np.array(value, dtype=object), len(problem.machines))
            for name, value in {**given, "init_scale": size}.items()
        }
        filled = [
            fill_strengths(one, {name: value[c] for name, value in values.items()})
            for c, one in enumerate(problem.machines)
        ]
        problem = problem.with_machines([one for one, _ in filled])
        for name, own in self._strengths.items():
            setattr(self, f"{own}_", getattr(problem, name))
        return problem, problem.joined([size for _, size in filled])

    def _chosen_solver(self, problem: AnyProblem) -> Solver:
        return informed_solver(super()._chosen_solver(problem), problem)


class TraceNormStrengths(StrengthsOfData):
    """An estimator whose λ_p is that of the trace norm of W."""

    _strengths: ClassVar[Mapping[str, str]] = {"lambda_w": "lambda_w", "lambda_p": "lambda_trace"}

    lambda_trace: float | None
    lambda_trace_: Any

    def _shrinkage(self) -> float:
        return 0.0 if self.lambda_trace is None else finite_number("lambda_trace", self.lambda_trace, low=0)
