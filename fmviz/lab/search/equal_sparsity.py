"""Compare regularizers at equal sparsity: find the λ of each that uses a given number of interactions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fmviz.engine.drive import Budget, never
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.starts.strengths import References
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, truth_of
from fmviz.lab.search.strength_path import two_at_a_time
from fmviz.paths import Probe, onwards, search_lambda

_GRID = tuple(10.0**e for e in range(-6, 3))
# Closer ends of a bracket would make no difference that anybody can see.
_NARROWEST = 1e-6
# Of a path that goes up: where it begins near zero and in short steps it chooses better.
_STRENGTHS, _SMALLEST_SHARE = 30, 1e-5


@dataclass(frozen=True, eq=False)
class SearchFit:
    """One fit of the search for one regularizer.

    Attributes
    ----------
    experiment : Experiment
        The settings with its λ; with a random start `Run.end` of them makes the same fit.
    used_interactions, used_features : int
        What the fit uses.
    objective : float
        What it reached.
    low, high, status, message
        The state of the search after it, see `fmviz.paths.Probe`; "nearest" is the fit of a comparison that
        stands for a number that is not reachable.
    metrics : dict of str to float
        See `fmviz.lab.runner.Run.measure`; empty while the search goes on.
    parameters : Parameters or None
        Those of the fit that a comparison has come to.
    """

    experiment: Experiment
    used_interactions: int
    used_features: int
    objective: float
    low: float
    high: float
    status: Literal["searching", "found", "not reachable", "nearest"]
    message: str
    metrics: dict[str, float]
    parameters: Parameters | None = None


def _fit(run: Run, probe: Probe, *, final: bool) -> SearchFit:
    end = probe.snapshot
    return SearchFit(
        replace(run.experiment, lambda_sparse=probe.lambda_sparse),
        probe.used_interactions,
        end.used_features,
        end.objective,
        probe.low,
        probe.high,
        probe.status,
        probe.message,
        run.measure(end.parameters) if final else {},
        end.parameters if final else None,
    )


def suggested_target(dataset: Dataset) -> int:
    """Return at how many interactions to compare: the true ones, where they are known.

    Else a tenth of all pairs, but no more than one for ten rows.
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
) -> Iterator[SearchFit]:
    """Search for every regularizer the λ that uses about `target` interactions, and measure it there.

    Two of them are searched at a time.

    Parameters
    ----------
    experiment : Experiment
        All other settings; the same for all.
    regularizers : sequence of str
        Their names.
    target : int
        The number of interactions.
    should_stop : callable
        Asked between epochs.
    accept : (int, int), optional
        The accepted range, which holds the target. By default it lies between the binomial coefficients
        around it, which are all that a selection of features can reach, see `fmviz.find_lambda`.

    Yields
    ------
    SearchFit
        For every fit. The last of a regularizer is found; or, where the number is not reachable, it is the
        nearest of its fits, by the ratio of the two numbers.

    Raises
    ------
    ValueError
        If a regularizer does not suit the model and loss.
    """
    each = [replace(experiment, regularizer=PENALTIES[name], solver="auto") for name in regularizers]
    return two_at_a_time(
        lambda ends: [nearest(Run.prepare(candidate), target, accept, ends) for candidate in each],
        should_stop,
    )


def nearest(
    run: Run,
    target: int,
    accept: tuple[int, int] | None = None,
    should_stop: Callable[[], bool] = never,
    *,
    cold: bool = False,
) -> Iterator[SearchFit]:
    """Search the λ at which a run uses a number of interactions; by default the fits are those of a path.

    Where the number is not reachable, the last fit is the nearest of all. With `cold` every fit begins as the
    run does, and can be repeated alone.
    """
    experiment, probes = run.experiment, []
    solver, warm = experiment.solver, experiment.start == "informed" and not cold
    for probe in search_lambda(
        run.problem,
        target,
        accept,
        # Along these strengths a path does not lose the interactions that it has chosen.
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
            # The first of the nearest, by the ratio of the numbers.
            used = [probe.used_interactions or math.inf for probe in probes]
            logs = [abs(math.log(number / (target or 1))) for number in used]
            best = _fit(run, probes[logs.index(min(logs))], final=True)
            yield replace(best, status="nearest", message=probe.message)
