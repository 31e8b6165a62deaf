"""First fit of new data without settings: strengths by validation, an average, and a fit to all rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fmviz.engine.fit import never
from fmviz.engine.sampling.posterior import Posterior
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.experiment import Experiment
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
from fmviz.tables.target import TargetEncoding
from fmviz.typography import cell


@dataclass(frozen=True, eq=False)
class FirstFit:
    """A fit with the chosen strengths.

    Attributes
    ----------
    asked : Experiment
        The requested settings.
    run, end, history : Run, Snapshot, list
        The run, its last snapshot with its metrics, and the records of all snapshots.
    message : str
        A sentence on the choice and the result.
    search : mapping
        The search for strengths or for a number of interactions, for JSON.
    stored, trouble : str
        The id in the store, and the reason if it could not be stored; empty without a store.
    average : Average or None
        Predictions by samples of a Bayesian machine compared with the fit to the training rows, once
        computed.
    posterior : Posterior or None
        Samples for the rows of `run`, if they predict better.
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
        """The memory size of the rows in bytes."""
        return self.run.problem.design.n_bytes

    def saved_model(self, encoded: Encoded | None, base: str = "auto") -> SavedModel:
        """Return the model for prediction, with the encoding of its file and the base of a libsvm file."""
        dataset, experiment = self.run.dataset, self.run.experiment
        target = TargetEncoding(dataset.target_name, dataset.task, labels=dataset.class_labels or ())
        return SavedModel(
            self.end.parameters,
            experiment.model,
            target if encoded is None else encoded.target.for_loss(experiment.loss),
            dataset.feature_names,
            None if encoded is None else encoded.encoder,
            experiment.loss,
            self.posterior,
            base,
            dataset.group,
        )


Step: TypeAlias = Trial | SearchFit | Message | FirstFit | Average
"""Items of `first_fit`; each has a ``message``."""


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
        The run to fit; its strengths are ignored.
    store : RunStore, optional
        The store for the fit to the training rows.
    should_stop : callable
        Polled between fits and samples.
    sparsest : bool
        Whether to take the strengths of fewest pairs within one standard error of the best prediction,
        rather than those of the best.
    choose : bool
        Whether to choose strengths; otherwise there is a single fit to the training rows.
    interactions : int, optional
        Target number of pairs for λ; there is no average then.
    warm : bool
        Whether to start the fit at the end of the search; its settings alone then do not reproduce it.
    origin : str
        The origin of the fit, for the store.

    Yields
    ------
    Trial, SearchFit
        Every fit of the searches.
    Message
        Progress after every epoch of a fit and every sample of a Bayesian machine.
    FirstFit
        The fit to the training rows, and finally the fit to all rows.
    Average
        The comparison of samples with the fit, if sampling is possible.

    Raises
    ------
    ValueError
        If settings are incompatible.
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
        # The average predicts; the fit is for interpretation.
        run = with_settings(run, settings_of(validation.sparsest, validation.init_scale))
    if should_stop():
        return
    run = replace(on_all_rows(run), begin=end.parameters if interactions is None else probe.start)
    end, history, _ = yield from _fitted(run, None, origin, should_stop)
    # Sampling may be too slow for all rows.
    samples = (yield from averaged(run, should_stop)) if better else None
    posterior = samples or (average.posterior if average and better else None)
    if not should_stop():
        words = _words("Refitted to all rows.", end)
        yield replace(
            fit, run=run, end=end, history=history, message=words, average=average, posterior=posterior
        )


def _words(before: str, end: Snapshot) -> str:
    """Return the result of a fit as text, after a sentence on the choice."""
    uses = f"The fit uses {end.used_interactions:,} interactions of {end.used_features:,} features."
    return f"{before} {uses} {end.status.message if end.status else ''}".strip()


def _fitted(
    run: Run, store: RunStore | None, origin: str, should_stop: Callable[[], bool]
) -> Generator[Message, None, tuple[Any, list[dict[str, Any]], Recorder]]:
    """Fit and store, if there is a store; return the end, all records, and the recorder.

    The fit continues if it cannot be stored.
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
    """Return a program that runs `first_fit` and prints every step."""
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
