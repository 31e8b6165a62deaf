"""Caps of robust losses: estimation from the data, cache, and restoration from records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, fields, replace
from typing import Any

import numpy as np

from fmviz.engine.fit import chosen_solver, never
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.starts.informed import informed_solver, path_start
from fmviz.engine.starts.robust import Caps, estimate_caps
from fmviz.lab.experiment import Experiment

_NAMES = tuple(f"found_{cap.name}" for cap in fields(Caps))
# Cached experiments, up to their budget.
_known: dict[str, Caps] = {}
_starts: dict[str, Parameters] = {}
_MOST_STARTS = 8


def find(
    experiment: Experiment, problem: Problem, should_stop: Callable[[], bool] = never
) -> tuple[Problem, Parameters]:
    """Estimate the caps of a run from its data, and its start; raises StoppedError if `should_stop`."""
    rng = np.random.default_rng([experiment.seed, 4])
    solver, start = chosen_solver(problem, experiment.solver), problem.start(experiment.init_scale, rng)
    if experiment.start == "informed" and not problem.model.capped:
        solver = informed_solver(solver, problem)
        # Without caps there is no objective for the comparison of starts.
        start = path_start(problem, experiment.init_scale, rng)
    return estimate_caps(problem, Caps(), solver, start, rng, should_stop)[:2]


def find_cached(
    experiment: Experiment,
    problem: Problem,
    should_stop: Callable[[], bool] = never,
    starts: bool = True,
) -> tuple[Problem, Parameters | None]:
    """Return the result of `find`, cached for experiments that differ only in their budget.

    The start is None for caps from a record, unless the fit `starts`.
    """
    caps, start = numbers(experiment), _starts.get(_key(experiment))
    if caps is None or (starts and start is None):
        problem, start = find(experiment, problem, should_stop)
        _starts[_key(experiment)] = start
        while len(_starts) > _MOST_STARTS:
            # Another thread may have cached it.
            _starts.pop(next(iter(_starts)), None)
        remember(experiment, caps_record(problem))
        return problem, start
    loss = replace(problem.loss, **{"epsilon": caps.epsilon, "cap": caps.cap})
    about: Any = {"model": RobustFM(cap=caps.spectrum or 1.0), "lambda_p": caps.lambda_p or 0.0}
    return replace(problem, loss=loss, **(about if problem.model.capped else {})), start


def caps_record(problem: Problem) -> dict[str, float]:
    """Return the caps and the strength of a problem by record name."""
    loss, model = problem.loss, problem.model
    own = (model.settings["cap"], problem.lambda_p) if model.capped else ()
    return dict(zip(_NAMES, (loss.settings["epsilon"], loss.cap, *own), strict=False))


def numbers(experiment: Experiment) -> Caps | None:
    """Return the caps of such a run, or None if they are unknown."""
    return _known.get(_key(experiment))


def remember(experiment: Experiment, record: Mapping[str, float]) -> None:
    """Cache the caps in a record of a run, if any."""
    caps = Caps(*(record.get(name) for name in _NAMES))
    given = [value for value in astuple(caps) if value is not None]
    if experiment.finds_caps and len(given) >= 2 and all(0.0 <= value < math.inf for value in given):
        _known[_key(experiment)] = caps


def _key(experiment: Experiment) -> str:
    return replace(experiment, max_epochs=1, tol=0.0, changes=()).digest
