"""Choose the strengths of an experiment by validation on its training rows."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np

from fmviz.engine.drive import chosen_solver
from fmviz.engine.problem import Formulation
from fmviz.engine.starts.informed import quick_settings
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.paths.shared_basis import search_basis_strength
from fmviz.paths.validation import Trial, Validation, default_folds, search_strengths

# From so many rows of so many machines on, one part kept out tells a quick search enough.
_MANY = 3_000


def can_be_tuned(problem: Formulation) -> bool:
    """Return whether the strengths of such a machine can be chosen here.

    It is one of second order, or has several outputs on a shared basis that a norm of rows chooses.
    """
    if problem.model.multi_output:
        return problem.penalty.row_norm is not None and not problem.model.radius
    return problem.model.why_no_threshold() is None


def tuned(
    prepared: Run,
    *,
    quick: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> Generator[Trial, None, tuple[dict[str, Any], Validation]]:
    """Return settings of an experiment that predict best on rows kept out of its training rows.

    Every trial is yielded when it is done.

    Parameters
    ----------
    prepared : Run
        What is to be fitted; its strengths have no say.
    quick : bool
        Whether to try 8 strengths λ for each λ_p rather than 25.
    should_stop
        As for `fmviz.paths.validation.search_strengths`.
    """
    experiment, problem = prepared.experiment, prepared.problem
    rng = np.random.default_rng([experiment.seed, 2])
    y, together = problem.y, problem.model.multi_output
    classes = problem.loss.task == "binary" or (together and problem.target.kind != "real")
    folds = default_folds(y if y.ndim == 1 else y[:, 0], classes and y.ndim == 1, rng)
    if quick and len(problem.machines) > 1 and y.shape[0] * len(problem.machines) >= _MANY:
        folds = folds[:1]
    size: dict[str, Any] = {"count": 8, "patience": 3} if quick else {}
    solver = chosen_solver(problem, experiment.solver, dict(experiment.solver_params))
    # Whether it takes the problem is said before a minute of fits.
    solver.on(problem.machines[0])
    if together:
        (machine,) = problem.machines
        quickly: dict[str, Any] = {"count": 7, "patience": 2} if quick else {}
        basis = yield from search_basis_strength(
            machine, folds[:2] if quick else folds, rng, solver=solver, should_stop=should_stop, **quickly
        )
        return {
            "lambda_w": float(f"{basis.best.lambda_w:.4g}"),
            "lambda_sparse": float(f"{basis.best.lambda_sparse:.4g}"),
        }, basis
    chosen = "auto" if experiment.solver == "auto" else solver
    search = yield from search_strengths(problem, folds, rng, solver=chosen, should_stop=should_stop, **size)
    best = search.best
    settings = {
        "lambda_w": best.lambda_w,
        "lambda_p": best.lambda_p,
        "lambda_sparse": best.lambda_sparse,
        "init_scale": search.init_scale,
    }
    return {name: float(f"{value:.4g}") for name, value in settings.items()} | {"start": "informed"}, search


def with_strengths(prepared: Run, settings: dict[str, Any]) -> Experiment:
    """Return the experiment with the settings that `tuned` has found, and a solver that suits them."""
    experiment = replace(prepared.experiment, **settings)
    if experiment.solver == "auto":
        solver = chosen_solver(prepared.problem, "auto").name
        if settings_of_solver := quick_settings(solver):
            return replace(experiment, solver=solver, solver_params=tuple(settings_of_solver.items()))
    return experiment
