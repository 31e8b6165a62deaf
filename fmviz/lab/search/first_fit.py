"""Fit a new data set without settings: strengths by validation, an average, and a fit to all rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fmviz.engine.drive import never
from fmviz.engine.sampling.posterior import Posterior
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.experiment import Experiment, changed_of
from fmviz.lab.runner import Run
from fmviz.lab.runs.program import experiment_source, opening
from fmviz.lab.saved_model import SavedModel
from fmviz.lab.search.averaged import Average, Message, average_beside, averaged
from fmviz.lab.search.equal_sparsity import SearchFit, at_number
from fmviz.lab.search.tuning import on_all_rows, settings_of, tuned, with_settings
from fmviz.lab.store import RunStore
from fmviz.lab.store.recorder import Recorder
from fmviz.paths.validation import Trial
from fmviz.tables.encoded import Encoded
from fmviz.tables.target import Target
from fmviz.typography import cell


@dataclass(frozen=True, eq=False)
class FirstFit:
    """A fit, with the strengths that were chosen.

    Attributes
    ----------
    asked : Experiment
        What was asked for.
    run, end, history : Run, Snapshot, list
        The run, its last snapshot with its metrics, and the records of all snapshots.
    message : str
        What was chosen and what it comes to.
    search : mapping
        The search for strengths, or a number of interactions, for JSON.
    stored, trouble : str
        Its id in the store, and what keeps it from being stored; empty without a store.
    average : Average or None
        What samples of a Bayesian machine predict beside the fit to the training rows, once it is known.
    posterior : Posterior or None
        Its samples for the rows of `run`, if they predict better.
    """

    asked: Experiment
    run: Run
    end: Snapshot
    history: list[dict[str, Any]]
    message: str
    search: Mapping[str, Any]
    stored: str = ""
    trouble: str = ""
    average: Average | None = None
    posterior: Posterior | None = None

    @property
    def n_bytes(self) -> int:
        """How much memory the rows take."""
        return self.run.problem.design.n_bytes

    def saved_model(self, encoded: Encoded | None, base: str = "auto") -> SavedModel:
        """Return what predicts: of a file or an upload with its encoding, and the base of a libsvm file."""
        dataset, experiment = self.run.dataset, self.run.experiment
        target = Target(dataset.target_name, dataset.task, labels=dataset.class_labels or ())
        return SavedModel(
            self.end.parameters,
            experiment.model.name,
            target if encoded is None else encoded.target,
            dataset.feature_names,
            None if encoded is None else encoded.encoder,
            changed_of(experiment.model),
            experiment.loss.name,
            self.posterior,
            base,
            dataset.group,
        )


Step: TypeAlias = Trial | SearchFit | Message | FirstFit | Average
"""What `first_fit` yields; each has a ``message``."""


def first_fit(
    prepared: Run,
    store: RunStore | None = None,
    should_stop: Callable[[], bool] = never,
    *,
    sparsest: bool = True,
    choose: bool = True,
    interactions: int | None = None,
    warm: bool = False,
    origin: str = "page",
) -> Iterator[Step]:
    """Choose strengths by validation on the training rows, fit with them, average, and fit to all rows.

    Parameters
    ----------
    prepared : Run
        What is to be fitted; its strengths have no say.
    store : RunStore, optional
        Where the fit to the training rows goes.
    should_stop : callable
        Asked between fits and samples.
    sparsest : bool
        Whether to take the strengths of fewest pairs within one standard error of the best prediction,
        rather than those of the best.
    choose : bool
        Whether to choose strengths at all; with given ones there is a single fit, to the training rows.
    interactions : int, optional
        Search the λ that uses about so many pairs; then there is no average.
    warm : bool
        Whether to begin the fit where the search ended; then its settings alone do not repeat it.
    origin : str
        Where the fit was started, for the store.

    Yields
    ------
    Trial, SearchFit
        Every fit of the searches.
    Message
        After every epoch of a fit, and every sample of a Bayesian machine.
    FirstFit
        The fit to the training rows, and last the one to all rows.
    Average
        What the samples predict beside the fit, where they can be had.

    Raises
    ------
    ValueError
        If something does not fit together.
    """
    run, validation = prepared, None
    search: dict[str, Any] = {}
    if choose:
        settings, validation = yield from tuned(prepared, sparsest=sparsest, should_stop=should_stop)
        run = replace(with_settings(prepared, settings), begin=validation.start if warm else prepared.begin)
        search = {"message": validation.message, "tried": [trial.record() for trial in validation.trials]}
    if interactions is not None:
        searched = on_all_rows(run) if choose else run
        probes = []
        for probe in at_number(searched, interactions, None, should_stop):
            probes.append(probe)
            yield probe
        if should_stop():
            return
        words = f"{search.get('message', '')} {probe.message}".strip()
        search |= {"wanted": interactions, "message": words, "fits": len(probes) - 1}
        search["status"] = "found" if probe.status == "found" else "not reachable"
        strength = {"lambda_sparse": probe.experiment.lambda_sparse, "start": "warm"}
        run = replace(with_settings(run, strength), begin=prepared.begin if choose else probe.start)
    if should_stop():
        return
    end, history, recorder = yield from _fitted(run, store, origin, should_stop)
    if end.status.reason == "stopped":
        return
    words = _words(search.get("message", ""), end)
    fit = FirstFit(prepared.experiment, run, end, history, words, search)
    stored = recorder.id if recorder.stored and not recorder.trouble else ""
    fit = replace(fit, stored=stored, trouble=recorder.trouble)
    yield fit
    if validation is None:
        return
    compared = interactions is None and run.validation is not None
    average = (yield from average_beside(run, end.parameters, should_stop)) if compared else None
    better = average is not None and average.better
    if better:
        # It predicts; the fit is there to be read.
        run = with_settings(run, settings_of(validation.sparsest, validation.init_scale))
    if should_stop():
        return
    run = replace(on_all_rows(run), begin=end.parameters if interactions is None else probe.start)
    end, history, _ = yield from _fitted(run, None, origin, should_stop)
    # All rows may be too many to draw samples for.
    samples = (yield from averaged(run, should_stop)) if better else None
    posterior = samples or (average.posterior if average and better else None)
    if not should_stop():
        words = _words("Fitted again, to all rows.", end)
        yield replace(
            fit, run=run, end=end, history=history, message=words, average=average, posterior=posterior
        )


def _words(before: str, end: Snapshot) -> str:
    """Return what a fit comes to, after some words on what was chosen."""
    uses = f"The fit uses {end.used_interactions:,} interactions of {end.used_features:,} features."
    return f"{before} {uses} {end.status.message if end.status else ''}".strip()


def _fitted(
    run: Run, store: RunStore | None, origin: str, should_stop: Callable[[], bool]
) -> Generator[Message, None, tuple[Any, list[dict[str, Any]], Recorder]]:
    """Fit, into the store if there is one; return the end, all records, and what wrote them.

    The fit goes on if it cannot be stored.
    """
    recorder = Recorder(None if store is None else lambda: store, run.experiment, origin)
    history, status, epochs = [], None, run.experiment.max_epochs
    try:
        for end in recorder.snapshots(lambda: run, should_stop):
            history.append(end.record())
            status = end.status
            yield Message(
                f"Epoch {end.epoch:,} of at most {epochs:,}: objective {cell(end.objective)}, "
                f"{end.used_interactions:,} interactions."
            )
    finally:
        if status is None:
            recorder.note("stopped", "Stopped.")
    return end, history, recorder


def first_fit_program(experiment: Experiment, sparsest: bool = True) -> str:
    """Return a program that searches, fits and averages as `first_fit` does, and prints every step."""
    return (
        opening(
            [experiment.dataset.name],
            "from fmviz.lab.experiment import Experiment",
            "from fmviz.lab.runner import Run",
            "from fmviz.lab.search.first_fit import first_fit",
        )
        + f"experiment = {experiment_source(experiment)}\n"
        f"for step in first_fit(Run.prepare(experiment){'' if sparsest else ', sparsest=False'}):\n"
        "    print(step.message)\n"
    )
