"""Estimate the caps of robust losses from the data, cache them, and restore them from records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, fields, replace
from threading import Lock
from typing import Any

import numpy as np

from fmviz.engine.drive import chosen_solver, never
from fmviz.engine.errors import StoppedError
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.problem import Problem
from fmviz.engine.starts.informed import informed_solver, informed_start
from fmviz.engine.starts.robust import Caps, EstimatedCaps, estimate_caps, estimate_loss_caps
from fmviz.lab.experiment import Experiment

_NAMES = tuple(f"found_{cap.name}" for cap in fields(Caps))
_MOST_FOUND, _MOST_KNOWN = 8, 1_000
_estimates: dict[str, EstimatedCaps] = {}
_known: dict[str, Caps] = {}
_finding = Lock()
_WAIT_SECONDS = 0.1


def find(experiment: Experiment, problem: Problem, should_stop: Callable[[], bool] = never) -> EstimatedCaps:
    """Estimate the caps of a run from its data, and its start; raises StoppedError if `should_stop`."""
    rng = np.random.default_rng([experiment.seed, 4])
    solver = chosen_solver(problem, experiment.solver)
    if _robust(problem):
        return estimate_caps(problem, Caps(), solver, rng, should_stop)
    start = problem.start(experiment.init_scale, rng)
    if experiment.start == "informed":
        solver = informed_solver(solver, problem)
        start = informed_start(problem, experiment.init_scale, rng)
    return estimate_loss_caps(problem, solver, start, rng, should_stop)


def find_cached(
    experiment: Experiment, problem: Problem, should_stop: Callable[[], bool] = never
) -> EstimatedCaps:
    """Return the estimate of `find`, cached for experiments that differ only in their budget."""
    key = _key(experiment)
    while not _finding.acquire(timeout=_WAIT_SECONDS):
        if should_stop():
            raise StoppedError
    try:
        if key not in _estimates:
            _keep(_estimates, key, find(experiment, problem, should_stop), _MOST_FOUND)
        return _estimates[key]
    finally:
        _finding.release()


def known(experiment: Experiment, problem: Problem) -> Problem | None:
    """Return the problem with caps restored from a record of such a run, or None."""
    caps = _known.get(_key(experiment))
    if caps is None or _key(experiment) in _estimates:
        return None
    loss: Any = problem.loss
    own = replace(problem, loss=replace(loss, epsilon=caps.epsilon, cap=caps.cap))
    if not _robust(problem):
        return own
    model: Any = problem.model
    return replace(own, model=replace(model, cap=caps.spectrum)).at(lambda_p=caps.lambda_p or 0.0)


def caps_record(problem: Problem) -> dict[str, float]:
    """Return the caps and the strength of a problem by their names in records."""
    loss: Any = problem.loss
    model: Any = problem.model
    caps = Caps(loss.epsilon, loss.cap, *((model.cap, problem.lambda_p) if _robust(problem) else ()))
    return {name: value for name, value in zip(_NAMES, astuple(caps), strict=True) if value is not None}


def numbers(experiment: Experiment) -> Caps | None:
    """Return the estimated caps of such a run, or None if they are unknown."""
    key = _key(experiment)
    if key in _estimates:
        record = caps_record(_estimates[key].problem)
        return Caps(*(record.get(name) for name in _NAMES))
    return _known.get(key)


def remember(experiment: Experiment, record: Mapping[str, float]) -> None:
    """Restore the caps from a record of a run, if it has any."""
    caps = Caps(*(record.get(name) for name in _NAMES))
    given = [value for value in astuple(caps) if value is not None]
    if experiment.finds_caps and len(given) >= 2 and all(0.0 <= value < math.inf for value in given):
        _keep(_known, _key(experiment), caps, _MOST_KNOWN)


def _robust(problem: Problem) -> bool:
    return isinstance(problem.model, RobustFM) and problem.model.capped


def _key(experiment: Experiment) -> str:
    return replace(experiment, max_epochs=1, tol=0.0, changes=()).digest


def _keep(kept: dict[str, Any], key: str, value: Any, most: int) -> None:
    while len(kept) >= most:
        del kept[next(iter(kept))]
    kept[key] = value
