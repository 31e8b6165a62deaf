"""A training run in the background that can be paused, stepped, slowed down and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from fmviz.engine.errors import StoppedError
from fmviz.engine.memory import array_bytes
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.snapshot import Reason, Snapshot, Status
from fmviz.lab.background.pool import Executor, Line
from fmviz.lab.background.task import Task, TaskState, TaskView
from fmviz.lab.background.thinned import Frame, thin
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.failure import in_words
from fmviz.lab.runner import Run
from fmviz.lab.store import StoredRun, new_id
from fmviz.lab.store.recorder import Recorder
from fmviz.lab.typography import counted

MOST_RECORDS = 2_000
MOST_FRAMES = 40


T = TypeVar("T")


class EveryNth(Generic[T]):
    """Every 2ⁱ-th epoch and the last one, at most `most` items in all, the same at every repetition."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.stride = 1
        self._kept: list[tuple[int, T]] = []
        self._last: tuple[int, T] | None = None

    def add(self, epoch: int, item: T) -> None:
        """Take in the item of an epoch later than all before."""
        self._last = (epoch, item)
        if epoch % self.stride == 0:
            self._kept.append(self._last)
        # One place is the last item's.
        while len(self._kept) >= self.most:
            self.stride *= 2
            self._kept = [kept for kept in self._kept if kept[0] % self.stride == 0]

    def items(self) -> tuple[T, ...]:
        """Return what is kept."""
        kept = [item for _, item in self._kept]
        if self._last is not None and (not self._kept or self._kept[-1][0] != self._last[0]):
            kept.append(self._last[1])
        return tuple(kept)


@dataclass(frozen=True, eq=False, kw_only=True)
class JobView(TaskView):
    """What a training run looks like at one moment. Nothing in it changes any more.

    Attributes
    ----------
    items : tuple of dict
        Records of snapshots (`Snapshot.record`), at most `MOST_RECORDS`, the first and the last among them.
    experiment : Experiment
        What runs.
    stride : int
        The items are every so many epochs.
    frames : tuple of Frame
        At most `MOST_FRAMES` epochs, evenly spread, the first and the last among them.
    parameters : Parameters or None
        The last parameters. Not to be written to.
    dataset : Dataset or None
        The data, once loaded.
    converged : bool
        Whether the run ended because it met its tolerance.
    saved : bool
        Whether the run store has it, under its id.
    unsaved : str
        Why the run store does not have all of it, else empty.
    output : int or None
        Which of several outputs its parameters, its data and the pictures of its frames are of; None where
        they are of all.
    model : Model or None
        What its parameters are of, where that is not the model of the experiment: one of several outputs.
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

    @property
    def seconds(self) -> float:
        """Seconds spent in the solver."""
        return float(self.last.get("seconds", 0.0))


# A browser that lost its connection may come back.
ORPHAN_SECONDS = 180.0


Prepare = Callable[[Experiment], Run]


class Job(Task):
    """One training run; made by `fmviz.lab.background.tasks.TaskManager.start`.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    owner : str
        The session that it counts for.
    executor : Executor
        Where its slices run.
    prepare : callable
        ``prepare(experiment)`` returns a `Run`; called in the executor.
    recorder : Recorder, optional
        What writes the run to the store; one that was resumed makes the job go on where it was.
    orphan_seconds : float
        A running job pauses by itself when nobody has looked for so long, nor attends it.
    line : Line, optional
        Where it waits for its turn; by default there is none.
    """

    slice_seconds = 0.1
    _loading, _working = "Loading the data.", "Training."

    def __init__(
        self,
        experiment: Experiment,
        owner: str,
        executor: Executor,
        prepare: Prepare = Run.loaded,
        recorder: Recorder | None = None,
        orphan_seconds: float = ORPHAN_SECONDS,
        line: Line | None = None,
    ) -> None:
        super().__init__(
            new_id() if recorder is None else recorder.run, self._snapshots, executor, owner=owner
        )
        self._line = Line(executor, 1) if line is None else line
        self.experiment = experiment
        self._prepare = prepare
        self._recorder = recorder
        self._orphan_seconds = orphan_seconds
        self.browser = ""
        """Who may steer it besides those who only watch; everybody where it is empty."""
        self._attended: Callable[[], bool] = lambda: False
        self._state, self._message = TaskState.PAUSED, "Ready."
        self._run: Run | None = None
        self._wishes: dict[str, float] = {}
        self._dataset: Dataset | None = None
        self._last: Snapshot | None = None
        self._history: EveryNth[dict[str, Any]] = EveryNth(MOST_RECORDS)
        self._frames: EveryNth[Frame] = EveryNth(MOST_FRAMES)
        self._saved = False
        self._reached = -1
        self._recall(recorder.trace if recorder is not None else ())
        if experiment.finds_caps:
            self._loading = "Finding the caps from the data."

    @classmethod
    def reopened(
        cls,
        run: StoredRun,
        trace: Iterable[dict[str, Any]],
        parameters: Parameters | None,
        dataset: Dataset,
        owner: str,
        executor: Executor,
    ) -> Job:
        """Return the job of a run that has ended, as the store tells it."""
        job = cls(run.experiment, owner, executor)
        job.id, job._saved, job._dataset, job._has_started = run.id, True, dataset, True
        job._recall(trace)
        if parameters is not None:
            job._last = Snapshot.of_record(run.last, parameters, Status.of(run.status, run.message))
            job._frames.add(job._last.epoch, Frame.of(job._last))
        job._details = run.details
        failed = run.status == TaskState.FAILED
        job._set(TaskState.FAILED if failed else _END.get(run.status, TaskState.FINISHED), run.message)
        job._ended = job._started
        return job

    # -------------------------------------------------------------------------------------- for any thread

    def step(self) -> None:
        """Make exactly one epoch more, then pause; the first step of a new job also makes epoch 0."""
        with self._lock:
            self._want(self._wanted + (2 if not self._has_started and self._wanted == 0 else 1))

    def begin(self) -> None:
        """Make epoch 0, the start, if there is none yet; then pause."""
        with self._lock:
            if not self._has_started and self._wanted == 0:
                self._want(1)

    def pause(self) -> None:
        """Pause after the present epoch and give the worker back."""
        with self._lock:
            if self._state.active:
                self._wanted = 0
                self._set(TaskState.PAUSED, self._paused_after())
            inside = self._inside
        if not inside:
            self._record_pause()

    def set_pace(self, epochs_per_second: float) -> None:
        """Slow down to so many epochs a second, for watching; 0 is full speed."""
        with self._lock:
            self._pace = max(0.0, float(epochs_per_second))

    def attend(self, present: Callable[[], bool]) -> None:
        """Count the run as looked at for as long as `present()` is true, be its page hidden or not."""
        self._attended = present

    @property
    def strengths(self) -> dict[str, float]:
        """The strengths of the next epoch."""
        with self._lock:
            done = self._last.epoch if self._last is not None else -1
            return self.experiment.strengths(done) | self._wishes

    def change(self, **strengths: float) -> None:
        """Go on with other strengths from the next epoch on; nothing happens to a job that has ended.

        The present epoch is finished first. The change becomes part of `experiment`.

        Raises
        ------
        ValueError
            If a value is out of range, or the model does not take it.
        """
        with self._lock:
            if self._state.ended:
                return
            self.experiment.changed(0, **self._wishes | strengths)
            self._wishes |= strengths
            self._version += 1
            if not self._inside:
                self._take_wishes()
        self._record_pause()

    def view(self) -> JobView:
        """Return what there is to see, and note that somebody looks."""
        with self._lock:
            last, recorder = self._last, self._recorder
            seen = self._seen_now()
            if self._state.active and (place := self._line.place(self._slice)):
                seen |= {"state": TaskState.QUEUED, "message": f"Waiting: {ordinal(place)} in line."}
            return JobView(
                **seen,
                experiment=self.experiment,
                items=self._history.items(),
                stride=self._history.stride,
                frames=self._frames.items(),
                parameters=last.parameters if last is not None else None,
                dataset=self._dataset,
                converged=last is not None and last.status is not None and last.status.converged,
                saved=self._saved or (recorder is not None and recorder.stored),
                unsaved=recorder.trouble if recorder is not None else "",
            )

    def weights(self) -> dict[int, int]:
        """Return about how much memory its results, its data set and the copies for its solver take."""
        with self._lock:
            arrays = [frame.thinned.values for frame in self._frames.items()]
            if self._last is not None:
                arrays += self._last.parameters.values()
            results = array_bytes(*arrays) + 1_500 * len(self._history.items())
            data = (self._dataset, *(() if self._run is None else self._run.designs))
            return {id(self): results} | {id(array): array.n_bytes for array in data if array is not None}

    # -------------------------------------------------------------------------------------- under the lock

    @property
    def _epoch(self) -> int:
        return self._last.epoch if self._last is not None else 0

    def _begin(self) -> None:
        self._line.enter(self._slice)

    def _set(self, state: TaskState, message: str) -> None:
        super()._set(state, message)
        if state.ended:
            # What makes epochs has copies of the data.
            self._run = None
        if not state.active and self._line.leave(self._slice):
            self._scheduled = False

    def _paused_after(self) -> str:
        return f"Paused after {counted(self._epoch, 'epoch')}."

    def _recall(self, trace: Iterable[dict[str, Any]]) -> None:
        """Take in the records of epochs that were made before."""
        for record in trace:
            self._reached = record["epoch"]
            self._history.add(self._reached, record)

    def _take_wishes(self) -> None:
        """Make the changes that were asked for part of the run, after the epochs that are done."""
        if not self._wishes or self._last is None or self._run is None:
            return
        self.experiment = self.experiment.changed(self._last.epoch, **self._wishes)
        self._wishes = {}
        self._run.schedule.changes = self.experiment.changes
        if self._recorder is not None:
            self._recorder.amend(self.experiment)
        self._version += 1

    def _may_go_on(self) -> bool:
        if self._state.ended:
            return False
        if self._stop.is_set():
            if self._stream is not None:
                self._stream.close()  # type: ignore[attr-defined]
            message = f"Stopped on request after {counted(self._epoch, 'epoch')}."
            if self._recorder is not None:
                self._recorder.end(Reason.STOPPED, message)
            self._set(TaskState.STOPPED, message)
            return False
        if self._wanted < 1:
            if self._state is not TaskState.PAUSED:
                self._set(TaskState.PAUSED, self._paused_after())
            return False
        if self.idle_seconds > self._orphan_seconds and not self._attended():
            self._wanted = 0
            self._set(
                TaskState.PAUSED,
                f"{self._paused_after()[:-1]}, because nobody had looked at this run for "
                f"{self._orphan_seconds:g} seconds. Press Play to go on.",
            )
            return False
        return True

    def _take(self, snapshot: Snapshot, failure: Exception | None) -> None:
        if failure is not None:
            super()._take(snapshot, failure)
            return
        if snapshot.epoch > self._reached:
            self._recall([snapshot.record()])
            if snapshot.epoch % self._frames.stride == 0 or snapshot.status is not None:
                self._frames.add(snapshot.epoch, Frame.of(snapshot))
        self._last = snapshot
        self._version += 1
        if snapshot.status is not None:
            self._set(_END.get(snapshot.status.reason, TaskState.FINISHED), snapshot.status.message)
            return
        self._take_wishes()
        self._message = self._paused_after() if self._state is TaskState.PAUSED else self._working

    # ----------------------------------------------------------------------------------------- in a worker

    def _snapshots(self, should_stop: Callable[[], bool]) -> Iterator[Snapshot]:
        run = self._run = self._prepare(self.experiment)
        self._dataset = run.dataset
        if (recorder := self._recorder) is None:
            return run.snapshots(should_stop)
        recorder.prepared(run.dataset)
        return run.snapshots(should_stop, resume=recorder.resume, keep=recorder.keep)

    def _record(self, snapshot: Snapshot | None, failure: Exception | None) -> None:
        if self._recorder is None:
            return
        if failure is not None:
            if not isinstance(failure, StoppedError):
                self._recorder.end(TaskState.FAILED, *in_words(failure))
        elif snapshot is not None:
            self._recorder.add(snapshot)
            if snapshot.status is not None:
                self._recorder.end(snapshot.status.reason, snapshot.status.message)

    def _record_pause(self) -> None:
        if self._recorder is not None and self._state is TaskState.PAUSED:
            self._recorder.pause(self._message)


_END: dict[str, TaskState] = {Reason.STOPPED: TaskState.STOPPED, Reason.DIVERGED: TaskState.DIVERGED}


def ordinal(n: int) -> str:
    """Return a number as in 1st, 2nd, 3rd and 4th."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"
