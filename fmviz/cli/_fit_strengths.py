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
    from fmviz.lab.search.tuning import tuned, with_strengths
    from fmviz.paths.validation import finished

    progress = Progress(every=0)
    settings, found = finished(tuned(prepared), lambda trial: progress.tell(trial.message))
    progress.clear()
    told = {"message": found.message, "tried": [trial.record() for trial in found.trials]}
    return again(with_strengths(prepared, settings)), told


def averaged_predictions(prepared: Run, end: Snapshot, scale: float) -> tuple[Posterior | None, str]:
    """Return samples of a Bayesian machine if they predict better, and what to say of it."""
    from fmviz.lab.search.averaged import Average, averaged
    from fmviz.paths.validation import finished

    if prepared.validation is None or (posterior := finished(averaged(prepared))) is None:
        return None, ""
    average = Average.beside(prepared, end.parameters, posterior)
    assert average.score is not None, "rows were kept out"
    assert average.own_score is not None, "rows were kept out"
    which = "AUC" if posterior.binary else "RMSE"
    unit = 1.0 if posterior.binary else scale
    sampled, own = (unit * abs(one) for one in (average.score, average.own_score))
    found = f"{which} {sampled:.4g} on the rows kept out, this one {own:.4g}"
    if not average.better:
        return None, f" An average over samples of a Bayesian machine predicts no better ({found})."
    return (
        posterior,
        f" Predictions with model.npz are averages over samples of a Bayesian machine, which are better "
        f"({found}); interactions are those of this one.",
    )


def searched(prepared: Run, again: Callable[[Experiment], Run], wanted: int) -> tuple[Run, dict[str, Any]]:
    """Return the run at the strength whose fit uses about so many pairs, and what the search came to."""
    from fmviz.engine.drive import Budget, chosen_solver
    from fmviz.paths import search_lambda

    experiment, progress = prepared.experiment, Progress()
    solver = chosen_solver(prepared.problem, experiment.solver, dict(experiment.solver_params))
    probes = []
    for probe in search_lambda(
        prepared.problem,
        wanted,
        grid=_STRENGTHS,
        narrowest=1e-9,
        solver=solver,
        budget=Budget(experiment.max_epochs, None, experiment.tol, report_every=None),
        start=experiment.start,
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
