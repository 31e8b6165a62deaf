"""Comparison of regularizers at equal sparsity, each at the λ with a given number of interactions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from fmviz.engine.drive import Budget, never
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.solvers._flat_problem import Joint
from fmviz.engine.starts.strengths import References
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, truth_of
from fmviz.lab.search.strength_path import in_rounds
from fmviz.metrics import SUPPORT_F1, Metric
from fmviz.paths import Probe, onwards, search_lambda

_GRID = tuple(10.0**e for e in range(-6, 3))
# Closer ends of a bracket make no visible difference.
_NARROWEST = 1e-6
# An upward path selects better if it starts near zero with short steps.
_STRENGTHS, _SMALLEST_SHARE = 30, 1e-5
_MOST_STEPS = 500
REFITTED = "refitted_"
"""Prefix of metrics of refitted parameters."""


@dataclass(frozen=True, eq=False)
class SearchFit:
    """A fit in the search for one regularizer.

    Attributes
    ----------
    experiment : Experiment
        The settings with its λ; with a random start, `Run.end` reproduces the fit.
    used_interactions, used_features : int
        Counts of the fit.
    status, message
        The state of the search after the fit, see `fmviz.paths.Probe`; "nearest" is the closest fit to an
        unreachable number.
    metrics : dict of str to float
        See `fmviz.lab.runner.Run.measure`; empty during the search. Metrics of the refit on validation rows
        have the prefix `REFITTED`.
    parameters : Parameters or None
        The parameters of the final fit.
    """

    experiment: Experiment
    used_interactions: int
    used_features: int
    status: Literal["searching", "found", "not reachable", "nearest"]
    message: str
    metrics: dict[str, float]
    parameters: Parameters | None = None


def refitted(problem: Problem, parameters: Parameters, should_stop: Callable[[], bool] = never) -> Parameters:
    """Minimise the objective of a machine by L-BFGS from given parameters; zeros of P stay zero.

    With λ = 0 the selected pairs stay and are not shrunk by Ω.
    """
    joint = Joint(problem)
    start = joint.pack(parameters)
    free = np.pad(parameters.P.ravel() != 0.0, (0, start.size - parameters.P.size), constant_values=True)

    def masked(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = joint.smooth_value_and_gradient(theta)
        # Ends without a gradient.
        return value, gradient * (free & (not should_stop()))

    end = minimize(masked, start, jac=True, method="L-BFGS-B", options={"maxiter": _MOST_STEPS})
    return joint.copy(end.x)


def _fit(run: Run, probe: Probe, *, final: bool) -> SearchFit:
    end = probe.snapshot
    return SearchFit(
        replace(run.experiment, lambda_sparse=probe.lambda_sparse),
        probe.used_interactions,
        end.used_features,
        probe.status,
        probe.message,
        run.measure(end.parameters) if final else {},
        end.parameters if final else None,
    )


def suggested_target(dataset: Dataset) -> int:
    """Return the default number of interactions of a comparison: the number of true ones, if known.

    Otherwise a tenth of all pairs, at most one per ten rows.
    """
    truth = truth_of(dataset)
    if truth is not None and (true := int(np.triu(truth != 0, 1).sum())):
        return true
    rows, d = dataset.X.shape
    return max(1, min(d * (d - 1) // 2, rows) // 10)


def at_equal_sparsity(
    experiment: Experiment,
    regularizers: Sequence[str],
    target: int,
    should_stop: Callable[[], bool] = never,
    *,
    accept: tuple[int, int] | None = None,
    seeds: int = 1,
) -> Iterator[SearchFit]:
    """Search the λ of every regularizer with about `target` interactions, and evaluate the fit.

    Two searches run at a time, seed by seed.

    Parameters
    ----------
    experiment : Experiment
        The common settings.
    regularizers : sequence of str
        Names of regularizers.
    target : int
        The number of interactions.
    should_stop : callable
        Polled between epochs.
    accept : (int, int), optional
        The accepted range around the target. By default, the range between the adjacent binomial
        coefficients, the only counts that a selection of features can reach, see `fmviz.find_lambda`.
    seeds : int
        The number of seeds, starting at that of the experiment; each has its own start and validation rows.

    Yields
    ------
    SearchFit
        Every fit. The last fit of a regularizer and seed has the accepted number or, if that is unreachable,
        the nearest number by ratio.

    Raises
    ------
    ValueError
        If a regularizer is incompatible with model and loss.
    """
    for seed in range(experiment.seed, experiment.seed + seeds):
        own = replace(experiment, seed=seed, solver="auto")
        runs = [Run.prepare(replace(own, regularizer=PENALTIES[name])) for name in regularizers]
        streams = [_compared(run, nearest(run, target, accept, should_stop), should_stop) for run in runs]
        yield from in_rounds(streams, should_stop)


def _compared(run: Run, fits: Iterator[SearchFit], should_stop: Callable[[], bool]) -> Iterator[SearchFit]:
    for fit in fits:
        if fit.parameters is not None:
            free = run.problem.at(lambda_sparse=0.0)
            each = free.by_machine(partial(refitted, should_stop=should_stop), fit.parameters)
            again = run.measure(free.joined(each))
            extra = {REFITTED + name: again[name] for name in again if name.startswith("validation_")}
            fit = replace(fit, metrics=fit.metrics | extra)
        yield fit


def ends_table(
    fits: Sequence[SearchFit], regularizers: Sequence[str], accept: tuple[int, int], metric: Metric
) -> pd.DataFrame:
    """Return the results of the searches of `at_equal_sparsity`.

    Returns
    -------
    DataFrame
        One row for each regularizer and seed, for seeds completed by all regularizers, if any: ``fit``,
        ``regularizer``, ``label``, ``seed``, ``λ``, ``interactions``, ``Features``, the metric as ``value``
        and ``refitted``, ``F1`` of the pairs, ``Fits``; ``nearest``, whether the number was missed, and
        ``instead``, the adjacent numbers.
    """
    rows = []
    for fit in (fit for fit in fits if fit.parameters is not None):
        own = fit.experiment
        same = [other for other in fits if replace(other.experiment, lambda_sparse=own.lambda_sparse) == own]
        tried = sorted(other.used_interactions for other in same if other.status != "nearest")
        around = [n for n in tried if n < accept[0]][-1:] + [n for n in tried if n > accept[1]][:1]
        rows.append(
            {
                "fit": fit,
                "regularizer": own.regularizer.name,
                "label": own.regularizer.label,
                "seed": own.seed,
                "λ": own.lambda_sparse,
                "interactions": fit.used_interactions,
                "Features": fit.used_features,
                "value": fit.metrics.get(metric.name, math.nan),
                "refitted": fit.metrics.get(REFITTED + metric.name, math.nan),
                "F1": fit.metrics.get(SUPPORT_F1.name, math.nan),
                "Fits": len(tried),
                "nearest": fit.status == "nearest",
                "instead": " or ".join(f"{n:,}" for n in around),
            }
        )
    rows.sort(key=lambda row: (regularizers.index(row["regularizer"]), row["seed"]))
    table = pd.DataFrame(rows)
    complete = table.groupby("seed")["label"].transform("size") == len(regularizers)
    return table[complete] if complete.any() else table


def nearest(
    run: Run,
    target: int,
    accept: tuple[int, int] | None = None,
    should_stop: Callable[[], bool] = never,
    *,
    cold: bool = False,
) -> Iterator[SearchFit]:
    """Search the λ at which a run uses a number of interactions, by default along a path.

    If the number is unreachable, the last fit is the nearest. With `cold`, every fit has the start of the run
    and can be repeated separately.
    """
    experiment, probes = run.experiment, []
    solver, warm = experiment.solver, experiment.start == "informed" and not cold
    for probe in search_lambda(
        run.problem,
        target,
        accept,
        # Steps small enough for a path to keep its interactions.
        grid=References(run.problem).grid(_STRENGTHS, _SMALLEST_SHARE) if warm else _GRID,
        narrowest=_NARROWEST,
        solver=solver,
        budget=Budget(experiment.max_epochs, None, experiment.tol, report_every=None),
        start=experiment.start,
        order=onwards(run.problem) if warm else "cold",
        init_scale=experiment.init_scale,
        random_state=[experiment.seed, 1],
        should_stop=should_stop,
    ):
        yield _fit(run, probe, final=probe.status == "found")
        probes.append(probe)
        if probe.status == "not reachable":
            # The first of the nearest by ratio.
            used = [probe.used_interactions or math.inf for probe in probes]
            logs = [abs(math.log(number / (target or 1))) for number in used]
            best = _fit(run, probes[logs.index(min(logs))], final=True)
            yield replace(best, status="nearest", message=probe.message)
