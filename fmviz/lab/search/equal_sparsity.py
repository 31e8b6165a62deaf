"""Comparison at equal sparsity: for each regularizer, the λ that uses a given number of interactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fmviz.engine.drive import Budget, never
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.runs.program import experiment_source, opening
from fmviz.paths import search_lambda

__all__ = ["Bout", "duel", "search", "search_program"]

GRID = tuple(10.0**e for e in range(-6, 3))
# Closer ends of a bracket would make no difference that anybody can see.
NARROWEST = 1e-6


@dataclass(frozen=True, eq=False)
class Bout:
    """One fit of the search for one regularizer.

    Attributes
    ----------
    experiment : Experiment
        The settings with its λ; `Run.end` of them makes the same fit.
    used_interactions, used_features : int
        What the fit uses.
    objective : float
        What it reached.
    low, high, status, message
        The state of the search after it, see `fmviz.paths.Probe`.
    metrics : dict of str to float
        See `fmviz.lab.runner.Run.measure`; empty while the search goes on.
    """

    experiment: Experiment
    used_interactions: int
    used_features: int
    objective: float
    low: float
    high: float
    status: Literal["searching", "found", "not reachable"]
    message: str
    metrics: dict[str, float]


def search(
    experiment: Experiment,
    target: int,
    accept: tuple[int, int] | None = None,
    *,
    grid: Sequence[float] = GRID,
    narrowest: float = NARROWEST,
    should_stop: Callable[[], bool] = never,
) -> Iterator[Bout]:
    """Search the λ at which an experiment uses a number of interactions, and measure it there.

    Parameters
    ----------
    experiment : Experiment
        All other settings; its own λ has no say. Every fit begins at the start that its seed draws.
    target, accept, grid, narrowest, should_stop
        As in `fmviz.find_lambda`.

    Yields
    ------
    Bout
        For every fit; the last is found, or says why the number is not reachable.

    Raises
    ------
    ValueError
        If something is out of range or does not fit together.
    """
    run = Run.prepare(experiment)
    for probe in search_lambda(
        run.problem,
        target,
        accept,
        grid=grid,
        narrowest=narrowest,
        solver=experiment.solver,
        budget=Budget(experiment.max_epochs, None, experiment.tol, report_every=None),
        init_scale=experiment.init_scale,
        random_state=[experiment.seed, 1],
        should_stop=should_stop,
    ):
        end = probe.snapshot
        yield Bout(
            replace(experiment, lambda_sparse=probe.lambda_sparse),
            probe.used_interactions,
            end.used_features,
            end.objective,
            probe.low,
            probe.high,
            probe.status,
            probe.message,
            run.measure(end.parameters) if probe.status != "searching" else {},
        )


def duel(
    experiment: Experiment,
    regularizers: Sequence[str],
    target: int,
    should_stop: Callable[[], bool] = never,
) -> Iterator[Bout]:
    """Search for every regularizer the λ that uses about `target` interactions, and measure it there.

    Parameters
    ----------
    experiment : Experiment
        All other settings; the same for all.
    regularizers : sequence of str
        Their names.
    target : int
        The number of interactions. What is accepted lies between the binomial coefficients around it, which
        are all that a selection of features can reach, see `fmviz.find_lambda`.
    should_stop : callable
        Asked between epochs.

    Yields
    ------
    Bout
        For every fit; the last of a regularizer is found, or says why the number is not reachable.

    Raises
    ------
    ValueError
        If a regularizer does not suit the model and loss.
    """
    for name in regularizers:
        own = replace(experiment, regularizer=name, solver="auto", regularizer_params=(), solver_params=())
        yield from search(own, target, should_stop=should_stop)
        if should_stop():
            return


def search_program(
    experiment: Experiment,
    target: int,
    accept: tuple[int, int] | None = None,
    *,
    grid: Sequence[float] = GRID,
    narrowest: float = NARROWEST,
) -> str:
    """Return a program that makes the same search as `search` and prints every fit."""
    return (
        opening(
            [experiment.dataset],
            "from fmviz.lab.search.equal_sparsity import search",
            "from fmviz.lab.experiment import Experiment",
        )
        + f"experiment = {experiment_source(experiment)}\n"
        f"grid = {list(grid)!r}\n"
        f"for fit in search(experiment, {target}, {accept!r}, grid=grid, narrowest={narrowest!r}):\n"
        "    print(fit.message)\n"
        "\n"
        'print(f"lambda_sparse {fit.experiment.lambda_sparse!r}")\n'
        'print(f"used features {fit.used_features}")\n'
        'print(f"used interactions {fit.used_interactions}")\n'
    )
