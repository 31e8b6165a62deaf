"""The strength λ from which on a machine has no interaction, for the data and settings of an experiment."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from fmviz.engine.starts.zero_threshold import why_no_threshold, zero_threshold
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run

# Stored entries of X up to which it takes a moment.
_MOST_ENTRIES = 3_000_000


def lambda_max(experiment: Experiment) -> tuple[float, float] | None:
    """Return the ends of an interval that holds it, or None where there is none or it would take long.

    See `fmviz.lambda_max`.
    """
    # What has no say is set alike, so that it is found once.
    return _found(
        replace(
            experiment,
            rank=1,
            lambda_sparse=0.0,
            solver="auto",
            solver_params=(),
            changes=(),
            max_epochs=1,
            tol=0.0,
            start="random",
            init_scale=0.01,
        )
    )


@lru_cache(maxsize=64)
def _found(experiment: Experiment) -> tuple[float, float] | None:
    try:
        problem = Run.prepare(experiment).problem
    except ValueError:
        return None
    if problem.design.nnz > _MOST_ENTRIES or why_no_threshold(problem) is not None:
        return None
    found = zero_threshold(problem)
    return found.lower, found.upper
