"""A training run in the background: an adjustable task that saves itself to the store."""

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
from fmviz.typography import counted

RUNS = "runs"
"""The queue of training runs."""
MOST_RECORDS = 2_000
MOST_FRAMES = 40
_ENDS: dict[str, TaskState] = {
    "failed": TaskState.FAILED,
    Reason.STOPPED: TaskState.STOPPED,
    Reason.DIVERGED: TaskState.DIVERGED,
}

T = TypeVar("T")


class EveryNth(Generic[T]):
    """Items of every 2ⁱ-th epoch and of the last, at most `most` in total, deterministic."""

    def __init__(self, most: int) -> None:
        self.most, self.stride = most, 1
        self._kept: dict[int, T] = {}
        self._last = 0

    def add(self, epoch: int, item: T) -> None:
        """Add the item of an epoch later than all previous ones."""
        if self._last % self.stride:
            self._kept.pop(self._last, None)
        self._kept[epoch], self._last = item, epoch
        while len(self._kept) > self.most:
            self.stride *= 2
            self._kept = {n: kept for n, kept in self._kept.items() if n % self.stride == 0 or n == epoch}

    def items(self) -> tuple[T, ...]:
        """Return the kept items."""
        return tuple(self._kept.values())


@dataclass(frozen=True, eq=False, kw_only=True)
class JobView(TaskView):
    """An immutable view of a training run.

    `items` are records of snapshots, every `stride` epochs, and `frames` pictures of some epochs; both
    include the first and the last. `parameters` are the latest, read-only. Parameters, data and pictures
    cover all outputs of `model`, or only the output with index `output`. `saved` is whether the run is in the
    run store, `unsaved` why it is incomplete there.
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
        """The model of the parameters."""
        return self.model or self.experiment.model

    @property
    def n_outputs(self) -> int:
        """The number of outputs."""
        return 1 if self.parameters is None else self.machine.n_outputs_of(self.parameters)

    def of_output(self, c: int) -> JobView:
        """Return the view of one of several outputs; with a single output, the view itself."""
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
        """The records of the epochs."""
        return self.items

    @cached_property
    def thinned(self) -> Any:
        """The latest parameters, thinned for a picture, or None."""
        return None if self.parameters is None else thin(self.parameters)

    @property
    def last(self) -> dict[str, Any]:
        """The latest record, initially empty."""
        return self.history[-1] if self.history else {}

    @property
    def epoch(self) -> int:
        """The number of completed epochs."""
        return int(self.last.get("epoch", 0))


class Job(Task):
    """A training run, created by `fmviz.lab.background.tasks.TaskManager`.

    Its `recorder` creates and saves it. It counts for the session `owner` and is controlled by one `browser`,
    or by all if that is empty. `budget` is the initial number of epochs.
    """

    slice_seconds = 0.1
    _loading, _working = "Loading the data.", "Training."

    def __init__(self, recorder: Recorder, pool: ThreadPool, owner: str = "", browser: str = "") -> None:
        super().__init__(recorder.id, self._snapshots, pool, RUNS)
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
            self._loading = "Estimating the caps from the data."

    def show(self, run: StoredRun, parameters: Parameters | None, dataset: Dataset) -> None:
        """Restore the ended run."""
        if parameters is not None:
            self._last = Snapshot.of_record(run.last, parameters, Status.of(run.status, run.message))
            self._frames.add(self._last.epoch, Frame.of(self._last))
        self._dataset, self._details = dataset, run.details
        self._set(_ENDS.get(run.status, TaskState.FINISHED), run.message)
        self._ended = self._started

    def step(self, results: int = 1) -> None:
        """Run some more epochs, then pause; a new run pauses after epoch 0, the start."""
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
        """Whether changed strengths take effect from the current parameters, even after the end."""
        if not self.state.ended:
            return self.state.active or self._epoch > 0
        lost = self.state in (TaskState.FAILED, TaskState.DIVERGED) or self._recorder.resume is None
        return not lost and 0 < self._epoch < MOST_EPOCHS

    def change(self, **strengths: float) -> None:
        """Continue with other strengths from the next epoch, even after the end, with a new epoch budget.

        The current epoch is finished first. The change becomes part of `experiment`. Runs that cannot
        continue are not changed.

        Raises
        ------
        ValueError
            If a value is out of range or invalid for the model.
        AtWorkError
            If the run has ended and another process has changed it since.
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
        """Return the current view, and register a viewer."""
        with self._lock:
            last, now = self._last, self._now()
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
        """Return the approximate size of results, data set and solver copies, in bytes."""
        with self._lock:
            arrays = [array for frame in self._frames.items() for array in frame.arrays]
            if self._last is not None:
                # Twice if the run can continue with other strengths.
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
            # The solver has copies of the data.
            self._run = None

    def _paused(self) -> str:
        return f"Paused after {counted(self._epoch, 'epoch')}."

    def _recall(self, record: dict[str, Any]) -> None:
        self._reached = record["epoch"]
        self._history.add(self._reached, record)

    def _take_wishes(self) -> None:
        """Apply requested changes after the completed epochs."""
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
