"""First fit of new data without settings: strengths by validation, a fit, and a contest of candidates."""

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
from fmviz.lab.search.averaged import Message
from fmviz.lab.search.contest import Contest, Name, announced, contest_of
from fmviz.lab.search.equal_sparsity import SearchFit, at_number
from fmviz.lab.search.tuning import tuned, with_settings
from fmviz.lab.store import RunStore
from fmviz.lab.store.recorder import Recorder
from fmviz.paths.validation import Trial
from fmviz.tables.curves import EVERY
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
    contest : Contest or None
        The comparison of candidates by folds, once finished.
    chosen : str
        The candidate that predicts.
    posterior : Posterior or None
        The samples that predict; None for sparse pairs.
    """

    asked: Experiment
    run: Run
    end: Snapshot
    history: list[dict[str, Any]]
    message: str
    search: Mapping[str, Any]
    stored: str = ""
    trouble: str = ""
    contest: Contest | None = None
    chosen: Name = "pairs"
    posterior: Posterior | None = None

    @property
    def n_bytes(self) -> int:
        """The memory size of the rows in bytes."""
        return self.run.problem.design.n_bytes

    def saved_model(self, encoding: Callable[[str], Encoded] | None, base: str = "auto") -> SavedModel:
        """Return the model for prediction.

        Parameters
        ----------
        encoding : callable or None
            Returns the encoded file for some bases of numbers: "", those of the run, or "every".
        base : str
            The base of a libsvm file.
        """
        run, parameters, experiment = self.run, self.end.parameters, self.run.experiment
        if self.contest is not None and self.posterior is not None:
            run, parameters = self.contest.run, self.contest.embedded(parameters, run)
        dataset = run.dataset
        target = TargetEncoding(dataset.target_name, dataset.task, labels=dataset.class_labels or ())
        encoded = None if encoding is None else encoding(EVERY if dataset.bases else "")
        return SavedModel(
            parameters,
            experiment.model,
            target if encoded is None else encoded.target.for_loss(experiment.loss),
            dataset.feature_names,
            None if encoded is None else encoded.encoder,
            experiment.loss,
            self.posterior,
            base,
            dataset.group,
        )


Step: TypeAlias = Trial | SearchFit | Message | FirstFit
"""Items of `first_fit`; each has a ``message``."""


def first_fit(
    prepared: Run,
    store: RunStore | None = None,
    should_stop: Callable[[], bool] = never,
    *,
    sparsest: bool = False,
    choose: bool = True,
    interactions: int | None = None,
    origin: str = "page",
) -> Iterator[Step]:
    """Choose strengths by validation on the training rows, fit with them, and hold a contest of candidates.

    Parameters
    ----------
    prepared : Run
        The run to fit; its strengths are ignored.
    store : RunStore, optional
        The store for the fit to the training rows.
    should_stop : callable
        Polled between fits and samples.
    sparsest : bool
        Whether to take the strengths of fewest pairs, and the sparsest candidate, within one standard error
        of the best prediction, rather than the best.
    choose : bool
        Whether to choose strengths; otherwise there is a single fit to the training rows.
    interactions : int, optional
        Target number of pairs for λ; there is no contest then.
    origin : str
        The origin of the fit, for the store.

    Yields
    ------
    Trial, SearchFit
        Every fit of the searches.
    Message
        Progress after every epoch of a fit and every sample of a Bayesian machine.
    FirstFit
        The fit, and finally with the contest, if sampling is possible.

    Raises
    ------
    ValueError
        If settings are incompatible.
    """
    run, validation = prepared, None
    search: dict[str, Any] = {}
    if choose:
        if words := announced(prepared):
            yield Message(words)
        settings, validation = yield from tuned(prepared, sparsest=sparsest, should_stop=should_stop)
        run = with_settings(prepared, settings)
        search = {"message": validation.message, "tried": [trial.record() for trial in validation.trials]}
    if interactions is not None:
        probes = []
        for probe in at_number(run, interactions, None, should_stop):
            probes.append(probe)
            yield probe
        if should_stop():
            return
        search |= {
            "wanted": interactions,
            "message": f"{search.get('message', '')} {probe.message}".strip(),
            "fits": len(probes) - 1,
            "status": "found" if probe.status == "found" else "not reachable",
        }
        run = with_settings(run, {"lambda_sparse": probe.experiment.lambda_sparse, "start": "warm"})
        run = replace(run, begin=prepared.begin if choose else probe.start)
    if should_stop():
        return
    end, history, recorder = yield from _fitted(run, store, origin, should_stop)
    if end.status.reason == "stopped":
        return
    fit = FirstFit(
        prepared.experiment,
        run,
        end,
        history,
        _words(search.get("message", ""), end),
        search,
        recorder.id if recorder.stored and not recorder.trouble else "",
        recorder.trouble,
    )
    yield fit
    if validation is None or interactions is not None or should_stop():
        return
    result = yield from contest_of(run, should_stop)
    if result is None:
        return
    chosen = result.sparsest if sparsest else result.best
    posterior = yield from result.machine(chosen, should_stop)
    if not should_stop():
        yield replace(fit, message=result.message(chosen), contest=result, chosen=chosen, posterior=posterior)


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


def first_fit_program(experiment: Experiment, sparsest: bool = False) -> str:
    """Return a program that runs `first_fit` and prints every step."""
    return (
        opening(
            [experiment.dataset.name],
            "from fmviz.lab.experiment import Experiment",
            "from fmviz.lab.runner import Run",
            "from fmviz.lab.search.first_fit import first_fit",
        )
        + f"experiment = {experiment_source(experiment)}\n"
        f"for step in first_fit(Run.prepare(experiment){', sparsest=True' if sparsest else ''}):\n"
        "    print(step.message)\n"
    )
