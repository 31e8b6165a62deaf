"""Where runs with several outputs begin, and strengths that follow all of their data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..parameters import Parameters
from ..starts import informed, strengths, zero_threshold
from ..starts.strengths import References
from ..starts.zero_threshold import ZeroThreshold
from .side_by_side import AnyProblem, outputs_in_words


def informed_start(
    problem: AnyProblem, init_scale: Any, rng: np.random.Generator, shrunk: bool = False
) -> Parameters:
    """Return `fmviz.engine.starts.informed.informed_start` of each output, of one size or of its own."""
    sizes = np.broadcast_to(init_scale, (len(problem.machines),)).tolist()
    each = zip(problem.machines, sizes, strict=True)
    return problem.stacked([informed.informed_start(one, size, rng, shrunk) for one, size in each])


def linear_fit(problem: AnyProblem, rough: bool = False, start: Parameters | None = None) -> Parameters:
    """Return `fmviz.engine.starts.zero_threshold.linear_fit` of every output."""
    near = (None,) * len(problem.machines) if start is None else problem.split(start)
    each = zip(problem.machines, near, strict=True)
    return problem.stacked([zero_threshold.linear_fit(one, rough, at) for one, at in each])


def references(problem: AnyProblem) -> References:
    """Return the largest `fmviz.engine.starts.strengths.references` of the outputs."""
    each = [strengths.references(one) for one in problem.machines]
    return References(
        max(one.lambda_w for one in each),
        max(one.lambda_p for one in each),
        max(one.lambda_sparse for one in each),
        max(one.size for one in each),
    )


def thresholds(problem: AnyProblem) -> list[ZeroThreshold]:
    """Return the interval that holds λ_max, for every output; of several by quick bounds."""
    tight = len(problem.machines) == 1
    return [zero_threshold.zero_threshold(one, tight=tight) for one in problem.machines]


def why_empty(problem: AnyProblem, end: Parameters) -> str | None:
    """Return why a fit that was to have interactions ended with P = 0 in some output; None where in none.

    That of a constant target was not to have any. See `fmviz.engine.starts.informed.why_empty`.
    """
    each = zip(problem.machines, problem.split(end), strict=True)
    found = [None if one.at_constant else informed.why_empty(one, parameters) for one, parameters in each]
    if problem.n_machines is None:
        return found[0]
    empty = [c for c, why in enumerate(found) if why is not None]
    return f"{outputs_in_words(problem.target, empty)}: {found[empty[0]]}" if empty else None
