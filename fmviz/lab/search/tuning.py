"""Strengths of a run that are chosen by validation on its training rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fmviz.engine.drive import chosen_solver
from fmviz.engine.problem import Problem
from fmviz.lab.runner import Run
from fmviz.paths.validation import Trial, Validation, choose_strengths, default_folds

__all__ = ["can_be_tuned", "tuned"]


def can_be_tuned(problem: Problem) -> bool:
    """Return whether the strengths of such a machine can be chosen here: it is one of second order."""
    return problem.model.why_no_threshold() is None


def tuned(
    prepared: Run,
    *,
    quick: bool = False,
    tell: Callable[[Trial], Any] = lambda trial: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[dict[str, Any], Validation]:
    """Return settings of an experiment that predict best on rows kept out of its training rows.

    Parameters
    ----------
    prepared : Run
        What is to be fitted; its strengths have no say.
    quick : bool
        Whether to try 8 strengths λ for each λ_p rather than 25.
    tell, should_stop
        As for `fmviz.paths.validation.choose_strengths`.
    """
    experiment, problem = prepared.experiment, prepared.problem
    rng = np.random.default_rng([experiment.seed, 2])
    folds = default_folds(problem.y, problem.loss.task == "binary", rng)
    size: dict[str, Any] = {"count": 8, "patience": 3} if quick else {}
    solver = chosen_solver(problem, experiment.solver, dict(experiment.solver_params))
    # Whether it takes the problem is said before a minute of fits.
    solver.on(problem)
    chosen = "auto" if experiment.solver == "auto" else solver
    found = choose_strengths(problem, folds, rng, solver=chosen, tell=tell, should_stop=should_stop, **size)
    best = found.best
    settings = {
        "lambda_w": best.lambda_w,
        "lambda_p": best.lambda_p,
        "lambda_sparse": best.lambda_sparse,
        "init_scale": found.init_scale,
    }
    return {name: float(f"{value:.4g}") for name, value in settings.items()} | {"start": "informed"}, found
