"""A training run in the background: a task that can be changed, and writes itself to the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from fmviz.engine.memory import array_bytes
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.snapshot import Reason, Snapshot, Status
from fmviz.lab.background.pool import ThreadPool
from fmviz.lab.background.task import Task, TaskState, TaskView
from fmviz.lab.background.thinned import Frame, thin
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import MOST_EPOCHS, Experiment
from fmviz.lab.runner import Run
from fmviz.lab.store import RUNNING, StoredRun
from fmviz.lab.store.recorder import Recorder
from fmviz.typography import counted, ordinal

MOST_RECORDS = 2_000
MOST_FRAMES = 40
_ENDS: dict[str, TaskState] = {
    "failed": TaskState.FAILED,
    Reason.STOPPED: TaskState.STOPPED,
    Reason.DIVERGED: TaskState.DIVERGED,
}

T = TypeVar("T")


class EveryNth(Generic[T]):
    """Every 2ⁱ-th epoch and the last one, at most `most` items in all, the same at every repetition."""

    def __init__(self, most: int) -> None:
        self.most, self.stride = most, 1
        self._kept: dict[int, T] = {}
        self._last = 0

    def add(self, epoch: int, item: T) -> None:
        """Take in the item of an epoch later than all before."""
        if self._last % self.stride:
            self._kept.pop(self._last, None)
        self._kept[epoch], self._last = item, epoch
        while len(self._kept) > self.most:
            self.stride *= 2
            self._kept = {n: kept for n, kept in self._kept.items() if n % self.stride == 0 or n == epoch}

    def items(self) -> tuple[T, ...]:
        """Return what is kept."""
        return tuple(self._kept.values())


@dataclass(frozen=True, eq=False, kw_only=True)
class JobView(TaskView):
    """What a training run looks like at one moment.

    `items` are records of snapshots, every `stride` epochs, and `frames` the pictures of some epochs; both
    have the first and the last one. `parameters` are the last ones, not to be written to. They, the data and
    the pictures are of the outputs of `model`: of all, or of the one numbered `output`. `saved` says whether
    the run store has the run, `unsaved` why it does not have all of it.
    """

    experiment: Experiment
    stride: int
    frames: tuple[Frame, ...]
    parameters: Parameters | None
    dataset: Dataset | None
    converged: bool
    saved: bool
    unsaved: str
    output: int | None = None
    model: Model | None = None

    @property
    def machine(self) -> Model:
        """The model that its parameters are of."""
        return self.model or self.experiment.model

    @property
    def n_outputs(self) -> int:
        """How many outputs there are."""
        return 1 if self.parameters is None else self.machine.n_outputs_of(self.parameters)

    def of_output(self, c: int) -> JobView:
        """Return the view of one of several outputs; itself where there is one only."""
        if self.parameters is None:
            return self
        model, parameters = self.machine.of_output(self.parameters, c)
        if parameters is self.parameters:
            return self
        return replace(
            self,
            model=model,
            parameters=parameters,
            dataset=None if self.dataset is None else self.dataset.of_output(c),
            frames=tuple(frame.of_output(c) for frame in self.frames),
            output=c if self.n_outputs > 1 else None,
        )

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """The records of its epochs."""
        return self.items

    @cached_property
    def thinned(self) -> Any:
        """The last parameters, thinned for a picture, or None."""
        return None if self.parameters is None else thin(self.parameters)

    @property
    def last(self) -> dict[str, Any]:
        """The last record, empty before the first."""
        return self.history[-1] if self.history else {}

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return int(self.last.get("epoch", 0))


class Job(Task):
    """One training run; made by `fmviz.lab.background.tasks.TaskManager`.

    It is made and written by its `recorder`, counts for the session `owner`, and is steered by one `browser`,
    or by everybody where that is empty. `budget` is the number of epochs that it began with.
    """

    slice_seconds = 0.1
    _loading, _working, _waits = "Loading the data.", "Training.", True

    def __init__(self, recorder: Recorder, pool: ThreadPool, owner: str = "", browser: str = "") -> None:
        super().__init__(recorder.id, self._snapshots, pool)
        self.experiment, self.owner, self.browser = recorder.experiment, owner, browser
        self._recorder = recorder
        self.state, self._message = TaskState.PAUSED, "Ready."
        self.budget = self.experiment.max_epochs
        self._run: Run | None = None
        self._wishes: dict[str, float] = {}
        self._dataset: Dataset | None = None
        self._last: Snapshot | None = None
        self._history: EveryNth[dict[str, Any]] = EveryNth(MOST_RECORDS)
        self._frames: EveryNth[Frame] = EveryNth(MOST_FRAMES)
        self._reached = -1
        for record in recorder.trace:
            self._recall(record)
        if self.experiment.finds_caps:
            self._loading = "Finding the caps from the data."

    def show(self, run: StoredRun, parameters: Parameters | None, dataset: Dataset) -> None:
        """Be the run as it ended."""
        if parameters is not None:
            self._last = Snapshot.of_record(run.last, parameters, Status.of(run.status, run.message))
            self._frames.add(self._last.epoch, Frame.of(self._last))
        self._dataset, self._details = dataset, run.details
        self._set(_ENDS.get(run.status, TaskState.FINISHED), run.message)
        self._ended = self._started

    def step(self, results: int = 1) -> None:
        """Make so many epochs more, then pause; in a new run after epoch 0, the start."""
        with self._lock:
            self._want(self._wanted + results + (not self._has_started and self._wanted == 0))

    @property
    def strengths(self) -> dict[str, float]:
        """The strengths of the next epoch."""
        with self._lock:
            done = self._last.epoch if self._last is not None else -1
            return self.experiment.strengths(done) | self._wishes

    @property
    def goes_on(self) -> bool:
        """Whether other strengths act on it from its present parameters, be it at its end."""
        if not self.state.ended:
            return self.state.active or self._epoch > 0
        lost = self.state in (TaskState.FAILED, TaskState.DIVERGED) or self._recorder.resume is None
        return not lost and 0 < self._epoch < MOST_EPOCHS

    def change(self, **strengths: float) -> None:
        """Go on with other strengths from the next epoch on, also after the end, with a new budget of epochs.

        The present epoch is finished first. The change becomes part of `experiment`; nothing happens to a run
        that cannot go on.

        Raises
        ------
        ValueError
            If a value is out of range, or the model does not take it.
        AtWorkError
            If it has ended, and another process has changed it since it was opened.
        """
        with self._lock:
            changed = self.experiment.changed(max(0, self._epoch), **self._wishes | strengths)
            if not self.state.ended:
                self._wishes |= strengths
                self._version += 1
                if not self._inside:
                    self._take_wishes()
            elif self.goes_on and changed != self.experiment:
                self._recorder.own()
                most = min(MOST_EPOCHS, max(changed.max_epochs, self._epoch + self.budget))
                self._amend(replace(changed, max_epochs=most))
                self._recorder.note(RUNNING, self._working)
                self._stop.clear()
                self._make, self._has_started, self._ended = self._snapshots, False, None
                self._set(TaskState.PAUSED, self._paused())
                self.play()
        self._halted()

    def view(self) -> JobView:
        """Return what there is to see, and note that somebody looks."""
        with self._lock:
            last, now = self._last, self._now()
            if self._slice in (line := self._pool.line()):
                words = f"Waiting: {ordinal(line.index(self._slice) + 1)} in line."
                now |= {"state": TaskState.QUEUED, "message": words}
            return JobView(
                **now,
                experiment=self.experiment,
                items=self._history.items(),
                stride=self._history.stride,
                frames=self._frames.items(),
                parameters=last.parameters if last is not None else None,
                dataset=self._dataset,
                converged=last is not None and last.status is not None and last.status.converged,
                saved=self._recorder.stored,
                unsaved=self._recorder.trouble,
            )

    def weights(self) -> dict[int, int]:
        """Return about how many bytes its results, its data set and the copies for its solver take."""
        with self._lock:
            arrays = [array for frame in self._frames.items() for array in frame.arrays]
            if self._last is not None:
                # Twice where it can go on with other strengths.
                arrays += [*self._last.parameters.values()] * (1 + self.state.ended)
            results = array_bytes(*arrays) + 1_500 * len(self._history.items())
            data = (self._dataset, *(() if self._run is None else self._run.designs))
            return {id(self): results} | {id(array): array.n_bytes for array in data if array is not None}

    @property
    def _epoch(self) -> int:
        return self._last.epoch if self._last is not None else 0

    def _set(self, state: TaskState, message: str) -> None:
        super()._set(state, message)
        if state.ended:
            # What makes epochs has copies of the data.
            self._run = None

    def _paused(self) -> str:
        return f"Paused after {counted(self._epoch, 'epoch')}."

    def _recall(self, record: dict[str, Any]) -> None:
        self._reached = record["epoch"]
        self._history.add(self._reached, record)

    def _take_wishes(self) -> None:
        """Make the changes that were asked for part of the run, after the epochs that are done."""
        if self._wishes and self._last is not None and self._run is not None:
            self._amend(self.experiment.changed(self._last.epoch, **self._wishes))
            self._wishes = {}
            self._run.schedule.changes = self.experiment.changes

    def _amend(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._recorder.amend(experiment)
        self._version += 1

    def _take(self, result: Snapshot, failure: Exception | None) -> None:
        if failure is not None:
            super()._take(result, failure)
            return
        status = result.status
        if result.epoch > self._reached:
            self._recall(result.record())
            if result.epoch % self._frames.stride == 0 or status is not None:
                self._frames.add(result.epoch, Frame.of(result))
        self._last = result
        self._version += 1
        if status is not None:
            self._set(_ENDS.get(status.reason, TaskState.FINISHED), status.message)
            return
        self._take_wishes()
        self._message = self._paused() if self.state is TaskState.PAUSED else self._working

    def _snapshots(self, should_stop: Callable[[], bool]) -> Iterator[Snapshot]:
        def prepare() -> Run:
            run = self._run = Run.loaded(self.experiment)
            self._dataset = run.dataset
            return run

        return self._recorder.snapshots(prepare, should_stop)

    def _halted(self) -> None:
        if self.state is TaskState.PAUSED:
            self._recorder.note(self.state, self._message)
