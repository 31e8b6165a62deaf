"""The same budget for all: every regularizer brought to an equal number of interactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from fmviz.engine.drive import Budget, never
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.paths import Probe, search_lambda

__all__ = ["Bout", "duel"]

GRID = tuple(10.0**e for e in range(-6, 3))
# Closer ends of a bracket would make no difference that anybody can see.
NARROWEST = 1e-6


@dataclass(frozen=True, eq=False)
class Bout:
    """One fit of the search for one regularizer.

    Attributes
    ----------
    experiment : Experiment
        The settings with its λ̃.
    probe : Probe
        The state of the search, see `fmviz.find_lambda`.
    metrics : dict of str to float
        See `fmviz.lab.runner.Run.measure`; empty while the search goes on.
    """

    experiment: Experiment
    probe: Probe
    metrics: dict[str, float]


def duel(
    experiment: Experiment,
    regularizers: Sequence[str],
    target: int,
    should_stop: Callable[[], bool] = never,
) -> Iterator[Bout]:
    """Search for every regularizer the λ̃ that uses about `target` interactions, and measure it there.

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
        run = Run.prepare(own)
        for probe in search_lambda(
            run.problem,
            target,
            grid=GRID,
            narrowest=NARROWEST,
            budget=Budget(experiment.max_epochs, None, experiment.tol, report_every=None),
            init_scale=experiment.init_scale,
            random_state=[experiment.seed, 1],
            should_stop=should_stop,
        ):
            done = probe.status != "searching"
            metrics = run.measure(probe.snapshot.parameters) if done else {}
            yield Bout(replace(own, lambda_sparse=probe.lambda_sparse), probe, metrics)
        if should_stop():
            return
