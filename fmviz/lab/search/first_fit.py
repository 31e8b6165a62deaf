"""Fit a new data set without settings: strengths by validation, and an averaged model beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from fmviz.engine.drive import never
from fmviz.engine.parameters import Parameters
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.runs.program import experiment_source, opening
from fmviz.lab.search.averaged import Average, Sampling, averaged
from fmviz.lab.search.tuning import tuned, with_strengths
from fmviz.lab.store import RunStore
from fmviz.lab.store.recorder import Recorder
from fmviz.paths.validation import Trial, Validation


@dataclass(frozen=True, eq=False)
class FirstFit:
    """A fit with the strengths that were chosen.

    Attributes
    ----------
    asked : Experiment
        What was asked for.
    experiment : Experiment
        The same with the strengths.
    validation : Validation
        What was tried.
    end : Snapshot
        How it ended, with its metrics.
    run : str
        Its id in the store; empty without a store.
    """

    asked: Experiment
    experiment: Experiment
    validation: Validation
    end: Snapshot
    run: str

    @property
    def message(self) -> str:
        """What was chosen and what it comes to, in two sentences."""
        status = "" if self.end.status is None else self.end.status.message
        return (
            f"{self.validation.message} The fit uses {self.end.used_interactions:,} interactions of "
            f"{self.end.used_features:,} features. {status}"
        )


Step: TypeAlias = Trial | FirstFit | Sampling | Average
"""What `first_fit` yields; each has a ``message``."""


def first_fit(
    experiment: Experiment, store: RunStore | None = None, should_stop: Callable[[], bool] = never
) -> Iterator[Step]:
    """Choose strengths by validation on the training rows, fit with them, and average over samples.

    Parameters
    ----------
    experiment : Experiment
        All other settings; its strengths have no say.
    store : RunStore, optional
        Where the fit goes.
    should_stop : callable
        Asked between fits and samples.

    Yields
    ------
    Trial
        Every fit of the search.
    FirstFit
        The fit with the best strengths.
    Sampling
        After every sample of a Bayesian machine.
    Average
        What the samples predict beside the fit, where they can be had.

    Raises
    ------
    ValueError
        If something does not fit together, or the data cannot be had.
    """
    given = Run.prepare(experiment)
    settings, validation = yield from tuned(given, should_stop=should_stop)
    if should_stop():
        return
    prepared = Run.prepare(with_strengths(given, settings))
    end, run = _stored(prepared, store, should_stop)
    if end is None:
        return
    yield FirstFit(experiment, prepared.experiment, validation, end, run)
    yield from average_beside(prepared, end.parameters, should_stop)


def average_beside(
    prepared: Run, parameters: Parameters, should_stop: Callable[[], bool] = never
) -> Iterator[Sampling | Average]:
    """Draw samples for a run, where there can be any, and compare their predictions with its own."""
    posterior = yield from averaged(prepared, should_stop)
    if posterior is not None:
        yield Average.beside(prepared, parameters, posterior)


def _stored(
    prepared: Run, store: RunStore | None, should_stop: Callable[[], bool]
) -> tuple[Snapshot | None, str]:
    """Fit, into the store if there is one; return the end, or None where it was stopped."""
    if store is None:
        return prepared.end(), ""
    recorder = Recorder(lambda: store, prepared.experiment, origin="page")
    recorder.prepared(prepared.dataset)
    for end in prepared.snapshots(should_stop):
        recorder.add(end)
    assert end.status is not None, "the last snapshot says how the run ended"
    recorder.end(end.status.reason, end.status.message)
    return (None if end.status.reason == "stopped" else end), recorder.run


def first_fit_program(experiment: Experiment) -> str:
    """Return a program that searches, fits and averages as `first_fit` does, and prints every step."""
    return (
        opening(
            [experiment.dataset],
            "from fmviz.lab.experiment import Experiment",
            "from fmviz.lab.search.first_fit import first_fit",
        )
        + f"experiment = {experiment_source(experiment)}\n"
        "for step in first_fit(experiment):\n"
        "    print(step.message)\n"
    )
