"""Strengths by validation on training rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fmviz.engine.fit import chosen_solver, never
from fmviz.engine.problem import Formulation
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.starts.informed import QUICK
from fmviz.lab.runner import Run
from fmviz.lab.search.averaged import can_be_sampled
from fmviz.paths.shared_basis import search_basis_strength
from fmviz.paths.validation import Trial, Validation, default_folds, search_strengths

# From this number of rows times machines on, a single held-out part suffices for a quick search.
_MANY = 3_000


def can_be_tuned(problem: Formulation) -> bool:
    """Return whether the strengths of a machine can be chosen by validation.

    Possible for machines of second order, and for shared bases with a norm of rows.
    """
    if problem.model.multi_output:
        return problem.penalty.row_norm is not None and not problem.model.radius
    return problem.model.plain


def tuned(
    prepared: Run,
    *,
    sparsest: bool = False,
    should_stop: Callable[[], bool] = never,
) -> Generator[Trial, None, tuple[dict[str, Any], Validation]]:
    """Return the settings with the best predictions on held-out training rows.

    Yields every trial on completion. If sampling is possible, samples usually predict better, and a coarse
    grid of strengths suffices. The settings include an appropriate solver, unless one is set.

    Parameters
    ----------
    prepared : Run
        The run to fit; its strengths are ignored.
    sparsest : bool
        Whether to choose the strengths with the fewest pairs within one standard error of the best.
    should_stop
        See `fmviz.paths.validation.search_strengths`.
    """
    experiment, problem = prepared.experiment, prepared.problem
    rng = np.random.default_rng([experiment.seed, 2])
    y, together = problem.y, problem.model.multi_output
    classes = problem.loss.task == "binary" or (together and problem.target.kind != "real")
    folds = default_folds(y if y.ndim == 1 else y[:, 0], classes and y.ndim == 1, rng, prepared.row_groups[0])
    size: dict[str, Any] = {}
    if can_be_sampled(problem):
        size = {"count": 8, "patience": 3}
        if len(problem.machines) > 1 and y.shape[0] * len(problem.machines) >= _MANY:
            folds = folds[:1]
    solver = chosen_solver(problem, experiment.solver)
    # Report an incompatible solver before a minute of fits.
    solver.on(problem.machines[0])
    suited: dict[str, Any] = {}
    if experiment.solver == "auto" and (quick := solver.having(**QUICK)) != solver:
        suited = {"solver": quick}
    if together:
        basis = yield from search_basis_strength(problem, folds, rng, solver=solver, should_stop=should_stop)
        strengths = {"lambda_w": basis.best.lambda_w, "lambda_sparse": basis.best.lambda_sparse}
        return _rounded(strengths) | suited, basis
    search = yield from search_strengths(
        problem,
        folds,
        rng,
        solver="auto" if experiment.solver == "auto" else solver,
        one_se=sparsest,
        groups=prepared.dataset.groups,
        should_stop=should_stop,
        **size,
    )
    return settings_of(search.best, search.init_scale) | suited, search


def settings_of(trial: Trial, init_scale: float) -> dict[str, Any]:
    """Return the settings of an experiment with the strengths of a trial."""
    strengths = {name: getattr(trial, name) for name in STRENGTHS}
    return _rounded({**strengths, "init_scale": init_scale}) | {"start": "informed"}


def _rounded(settings: dict[str, float]) -> dict[str, Any]:
    return {name: float(f"{value:.4g}") for name, value in settings.items()}


def with_settings(run: Run, settings: Mapping[str, Any]) -> Run:
    """Return the run with other strengths and other fit settings."""
    strengths = {name: value for name, value in settings.items() if name in STRENGTHS}
    return replace(run, experiment=replace(run.experiment, **settings), problem=run.problem.at(**strengths))
