"""Strengths of `fmviz fit`: chosen by validation, or searched for a number of interactions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fmviz.cli._terminal import Progress

if TYPE_CHECKING:
    from fmviz.engine.sampling.posterior import Posterior
    from fmviz.engine.snapshot import Snapshot
    from fmviz.lab.experiment import Experiment
    from fmviz.lab.runner import Run

# Where a search for a number of interactions looks.
_STRENGTHS = tuple(10.0**e for e in range(-7, 2))


def left_to_the_data(prepared: Run, given: Iterable[str]) -> bool:
    """Return whether no strength is given, of a machine whose strengths can be chosen."""
    from fmviz.lab.search.tuning import can_be_tuned

    named = {"lambda_w", "lambda_p", "lambda_sparse"}.intersection(given)
    return not named and can_be_tuned(prepared.problem)


def tuned_run(prepared: Run, again: Callable[[Experiment], Run]) -> tuple[Run, dict[str, Any]]:
    """Return the run with the strengths that predict best, and what was tried."""
    from fmviz.engine.drive import chosen_solver
    from fmviz.engine.starts.informed import quick_settings
    from fmviz.lab.search.tuning import tuned

    progress = Progress(every=0)
    settings, found = tuned(prepared, tell=lambda trial: progress.tell(trial.message))
    progress.clear()
    best, tried = found.best, [trial.record() for trial in found.trials]
    lowest, highest = min(t.lambda_sparse for t in found.trials), max(t.lambda_sparse for t in found.trials)
    words = (
        f"Chosen on rows kept out of training: λ = {best.lambda_sparse:.3g}, λ_p = {best.lambda_p:.3g} and "
        f"λ_w = {best.lambda_w:.3g}, the best of {len(tried)} fits with λ from {highest:.3g} to {lowest:.3g}."
    )
    experiment = replace(prepared.experiment, **settings)
    if experiment.solver == "auto":
        solver = chosen_solver(prepared.problem, "auto").name
        if settings_of_solver := quick_settings(solver):
            experiment = replace(experiment, solver=solver, solver_params=tuple(settings_of_solver.items()))
    return again(experiment), {"message": words, "tried": tried}


def averaged_predictions(prepared: Run, end: Snapshot, scale: float) -> tuple[Posterior | None, str]:
    """Return samples of a Bayesian machine if they predict better, and what to say of it."""
    from fmviz.lab.runner import quality
    from fmviz.lab.search.averaged import averaged

    if prepared.validation is None or (posterior := averaged(prepared)) is None:
        return None, ""
    design, y = prepared.validation
    sampled = quality(y, posterior.scores(design.matrix))
    own = quality(y, prepared.problem.model.predict(design, end.parameters))
    which, unit, sign = ("auc", 1.0, 1.0) if "auc" in own else ("rmse", scale, -1.0)
    found = (
        f"{which.upper()} {unit * sampled[which]:.4g} on the rows kept out, this one {unit * own[which]:.4g}"
    )
    if not sign * sampled[which] > sign * own[which]:
        return None, f" An average over samples of a Bayesian machine predicts no better ({found})."
    return (
        posterior,
        f" Predictions with model.npz are averages over samples of a Bayesian machine, which are better "
        f"({found}); interactions are those of this one.",
    )


def searched(prepared: Run, again: Callable[[Experiment], Run], wanted: int) -> tuple[Run, dict[str, Any]]:
    """Return the run at the strength whose fit uses about so many pairs, and what the search came to."""
    from fmviz.engine.drive import Budget, chosen_solver
    from fmviz.engine.starts.informed import informed_solver
    from fmviz.paths import search_lambda

    experiment, progress = prepared.experiment, Progress()
    solver = chosen_solver(prepared.problem, experiment.solver, dict(experiment.solver_params))
    if experiment.start == "informed":
        solver = informed_solver(solver, prepared.problem)
    probes = []
    for probe in search_lambda(
        prepared.problem,
        wanted,
        grid=_STRENGTHS,
        narrowest=1e-9,
        solver=solver,
        budget=Budget(experiment.max_epochs, None, experiment.tol, report_every=None),
        init_scale=experiment.init_scale,
        random_state=[experiment.seed, 1],
    ):
        probes.append(probe)
        progress.tell(probe.message)
    progress.clear()
    # By ratio: half as many or twice as many are as near, and none is far from some.
    nearest = min(probes, key=lambda one: abs(math.log((one.used_interactions + 1) / (wanted + 1))))
    best = probes[-1] if probes[-1].status == "found" else nearest
    found = replace(experiment, lambda_sparse=best.lambda_sparse)
    words = probes[-1].message
    if probes[-1].status != "found":
        words += f" Taken is λ = {best.lambda_sparse:.6g} with {best.used_interactions:,}."
    told = {"wanted": wanted, "status": probes[-1].status, "message": words, "fits": len(probes)}
    return again(found), told
