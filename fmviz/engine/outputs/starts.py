"""Where runs with several outputs begin, and strengths that follow all of their data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..parameters import Parameters
from ..problem import Problem
from ..starts import informed, strengths, zero_threshold
from ..starts.strengths import References
from ..starts.zero_threshold import ZeroThreshold
from .side_by_side import AnyProblem, machines, of_outputs, outputs_in_words, stacked


def informed_start(
    problem: AnyProblem, init_scale: Any, rng: np.random.Generator, known: References | None = None
) -> Parameters:
    """Return `fmviz.engine.starts.informed.informed_start` of each output, of one size or of its own."""
    each = machines(problem)
    sizes = np.broadcast_to(init_scale, (len(each),)).tolist()
    starts = zip(each, sizes, strict=True)
    return stacked(problem, [informed.informed_start(one, size, rng, known) for one, size in starts])


def linear_fit(problem: AnyProblem, rough: bool = False, start: Parameters | None = None) -> Parameters:
    """Return `fmviz.engine.starts.zero_threshold.linear_fit` of every output."""
    each = machines(problem)
    near = [None] * len(each) if start is None else [one for _, one in of_outputs(problem, start)]
    fits = [zero_threshold.linear_fit(one, rough, at) for one, at in zip(each, near, strict=True)]
    return stacked(problem, fits)


def references(problem: AnyProblem) -> References:
    """Return the largest `fmviz.engine.starts.strengths.references` of the outputs."""
    each = [strengths.references(one) for one in machines(problem)]
    return References(
        max(one.lambda_w for one in each),
        max(one.lambda_p for one in each),
        max(one.lambda_sparse for one in each),
        max(one.size for one in each),
    )


def thresholds(problem: AnyProblem) -> list[ZeroThreshold]:
    """Return the interval that holds λ_max, for every output; of several by quick bounds."""
    each = machines(problem)
    return [zero_threshold.zero_threshold(one, tight=len(each) == 1) for one in each]


def why_empty(problem: AnyProblem, end: Parameters) -> str | None:
    """Return why a fit that was to have interactions ended with P = 0 in some output; None where in none.

    See `fmviz.engine.starts.informed.why_empty`.
    """
    found = [informed.why_empty(one, parameters) for one, parameters in of_outputs(problem, end)]
    if isinstance(problem, Problem):
        return found[0]
    empty = [c for c, why in enumerate(found) if why is not None]
    return f"{outputs_in_words(problem.target, empty)}: {found[empty[0]]}" if empty else None
