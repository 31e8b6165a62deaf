"""A training run in the background: played, paused, stepped and stopped from any thread.

A job runs in slices of a fraction of a second, each submitted after the other, so that more jobs than
workers all progress, and a paused job holds no worker. Pages read `Job.view`, which never waits for the
solver.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.parameters import Parameters
from fmviz.engine.schedule import Schedule
from fmviz.engine.snapshot import Reason, Snapshot, Status
from fmviz.lab.background.job_view import (
    MOST_FRAMES,
    MOST_RECORDS,
    EveryNth,
    JobState,
    JobView,
)
from fmviz.lab.background.pool import Executor
from fmviz.lab.background.thinned import Frame
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.failure import in_words
from fmviz.lab.runner import Run
from fmviz.lab.runs.recorder import Recorder
from fmviz.lab.store import StoredRun, new_id

SLICE_SECONDS = 0.1
# A hidden browser tab may ask only once a minute.
ORPHAN_SECONDS = 180.0


class Prepared(Protocol):
    """What a job needs of a prepared run; `fmviz.lab.runner.Run` is one."""

    @property
    def dataset(self) -> Dataset:
        """The data."""

    @property
    def schedule(self) -> Schedule:
        """The changes of strengths, read before every epoch."""

    def snapshots(self, should_stop: Callable[[], bool], **checkpoints: Any) -> Iterator[Snapshot]:
        """Run; see `fmviz.lab.runner.Run.snapshots`."""


class Job:
    """One training run; made by `fmviz.lab.background.jobs.JobManager.start`.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    owner : str
        The session that it counts for.
    executor : Executor
        Where its slices run.
    prepare : callable
        ``prepare(experiment)`` returns a `Prepared`; called in the executor.
    orphan_seconds : float
        A running job pauses by itself when nobody has called `view` for so long.
    recorder : Recorder, optional
        What writes the run to the store; one that was resumed makes the job go on where it was.
    """

    def __init__(
        self,
        experiment: Experiment,
        owner: str,
        executor: Executor,
        prepare: Callable[[Experiment], Prepared] = Run.prepare,
        orphan_seconds: float = ORPHAN_SECONDS,
        recorder: Recorder | None = None,
    ) -> None:
        self.id = new_id() if recorder is None else recorder.run
        self.experiment = experiment
        self.owner = owner
        self._executor = executor
        self._prepare = prepare
        self._orphan_seconds = orphan_seconds
        self._recorder = recorder
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._state = JobState.PAUSED
        self._message = "Ready."
        self._details = ""
        self._version = 0
        self._wanted = 0.0  # how many snapshots may still be taken from the stream
        self._begun = False
        self._pace = 0.0
        self._scheduled = False
        self._inside = False
        self._stream: Iterator[Snapshot] | None = None
        self._run: Prepared | None = None
        self._wishes: dict[str, float] = {}
        self._kept: Callable[[], Checkpoint] | None = None
        self._dataset: Dataset | None = None
        self._last: Snapshot | None = None
        self._history: EveryNth[dict[str, Any]] = EveryNth(MOST_RECORDS)
        self._frames: EveryNth[Frame] = EveryNth(MOST_FRAMES)
        self._saved = False
        self._reached = -1
        for record in recorder.trace if recorder is not None else ():
            self._reached = record["epoch"]
            self._history.add(self._reached, record)
        self._started = time.monotonic()
        self._ended: float | None = None
        self._seen = time.monotonic()

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
        job.id, job._saved, job._dataset, job._begun = run.id, True, dataset, True
        for record in trace:
            job._reached = record["epoch"]
            job._history.add(job._reached, record)
        if parameters is not None:
            job._last = Snapshot.of_record(run.last, parameters, Status.of(run.status, run.message))
            job._frames.add(job._last.epoch, Frame.of(job._last))
        job._details = run.details
        state = JobState.FAILED if run.status == JobState.FAILED else _END.get(run.status, JobState.FINISHED)
        job._set(state, run.message)
        job._started = job._ended = time.monotonic()
        return job

    # -------------------------------------------------------------------------------------- for any thread

    @property
    def state(self) -> JobState:
        """Where the job is."""
        return self._state

    def play(self) -> None:
        """Start, or go on after a pause; nothing happens to a job that has ended."""
        self._want(math.inf)

    def step(self) -> None:
        """Make exactly one epoch more, then pause; the first step of a new job also makes epoch 0."""
        with self._lock:
            fresh = not self._begun and self._wanted == 0
            self._want(self._wanted + (2 if fresh else 1))

    def begin(self) -> None:
        """Make epoch 0, the start, if there is none yet; then pause."""
        with self._lock:
            if not self._begun and self._wanted == 0:
                self._want(1)

    def pause(self) -> None:
        """Pause after the present epoch and give the worker back."""
        with self._lock:
            if self._state.active:
                self._wanted = 0
                self._set(JobState.PAUSED, self._paused_after())
            inside = self._inside
        if not inside:
            self._record_pause()

    def stop(self) -> None:
        """End the run for good; the epoch being computed is still taken in."""
        with self._lock:
            if self._state.ended:
                return
            self._stop.set()
            if not self._inside:
                self._stop_now()

    def set_pace(self, epochs_per_second: float) -> None:
        """Slow down to so many epochs a second, for watching; 0 is full speed."""
        with self._lock:
            self._pace = max(0.0, float(epochs_per_second))

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

    def memory(self) -> Mapping[str, Any] | None:
        """Return what the solver remembers after the last epoch, or None where that alone does not tell.

        It does not while an epoch is being made, nor where the next one begins anew.
        """
        with self._lock:
            done = self._last.epoch if self._last is not None else 0
            anew = bool(self._wishes) or any(change.epoch == done for change in self.experiment.changes)
            if self._inside or self._kept is None or anew:
                return None
            kept = self._kept()
            return kept.memory if kept.epoch == done else None

    def view(self) -> JobView:
        """Return what there is to see, and note that somebody looks."""
        with self._lock:
            self._seen = time.monotonic()
            last = self._last
            return JobView(
                id=self.id,
                owner=self.owner,
                experiment=self.experiment,
                state=self._state,
                message=self._message,
                details=self._details,
                history=self._history.items(),
                stride=self._history.stride,
                frames=self._frames.items(),
                parameters=last.parameters if last is not None else None,
                dataset=self._dataset,
                elapsed=(self._ended or time.monotonic()) - self._started,
                version=self._version,
                converged=last is not None and last.status is not None and last.status.converged,
                saved=self._saved or (self._recorder is not None and self._recorder.stored),
                unsaved=self._recorder.trouble if self._recorder is not None else "",
            )

    @property
    def idle_seconds(self) -> float:
        """Seconds since somebody looked."""
        return time.monotonic() - self._seen

    @property
    def n_bytes(self) -> int:
        """About how much memory the job's results take."""
        with self._lock:
            arrays = [frame.thinned.values for frame in self._frames.items()]
            if self._last is not None:
                last = self._last.parameters
                arrays += [a for a in (last.P, last.w, last.W) if a is not None]
            return sum(a.nbytes for a in arrays) + 1_500 * len(self._history.items())

    # -------------------------------------------------------------------------------------- under the lock

    def _set(self, state: JobState, message: str) -> None:
        self._state = state
        self._message = message
        self._version += 1
        if state.ended:
            self._ended = time.monotonic()
            self._stream = None

    def _want(self, epochs: float) -> None:
        with self._lock:
            if self._state.ended:
                return
            self._wanted = epochs
            if self._begun:
                self._set(JobState.RUNNING, "Training.")
            else:
                self._set(JobState.QUEUED, "Waiting for a free worker.")
            self._seen = time.monotonic()
            if self._scheduled:
                return
            self._scheduled = True
        self._executor.submit(self._slice)

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

    def _stop_now(self) -> None:
        if self._stream is not None:
            self._stream.close()  # type: ignore[attr-defined]
        n = self._last.epoch if self._last is not None else 0
        message = f"Stopped on request after {_epochs(n)}."
        if self._recorder is not None:
            self._recorder.end(Reason.STOPPED, message)
        self._set(JobState.STOPPED, message)

    def _paused_after(self) -> str:
        n = self._last.epoch if self._last is not None else 0
        return f"Paused after {_epochs(n)}."

    # ----------------------------------------------------------------------------------------- in a worker

    def _slice(self) -> None:
        deadline = time.monotonic() + SLICE_SECONDS
        while True:
            with self._lock:
                self._inside = self._scheduled = go_on = self._may_go_on()
                if go_on:
                    self._wanted -= 1
                    if not self._begun:
                        self._begun = True
                        self._set(JobState.RUNNING, "Loading the data.")
                    pace = self._pace
            if not go_on:
                self._record_pause()
                return
            began = time.monotonic()
            snapshot, failure = self._advance()
            # Outside the lock, where it holds nobody up, and before anybody is told of the end.
            self._record(snapshot, failure)
            with self._lock:
                self._inside = False
                self._take(snapshot, failure)
                self._scheduled = go_on = self._may_go_on()
            if not go_on:
                self._record_pause()
                return
            now = time.monotonic()
            if pace or now >= deadline:
                # Behind the jobs that wait.
                self._executor.submit(self._slice, max(0.0, began + 1 / pace - now) if pace else 0.0)
                return

    def _may_go_on(self) -> bool:
        if self._state.ended:
            return False
        if self._stop.is_set():
            self._stop_now()
            return False
        if self._wanted < 1:
            if self._state is not JobState.PAUSED:
                self._set(JobState.PAUSED, self._paused_after())
            return False
        if self.idle_seconds > self._orphan_seconds:
            self._wanted = 0
            self._set(
                JobState.PAUSED,
                f"{self._paused_after()[:-1]}, because nobody had looked at this run for "
                f"{self._orphan_seconds:g} seconds. Press Play to go on.",
            )
            return False
        return True

    def _advance(self) -> tuple[Snapshot | None, BaseException | None]:
        try:
            if self._stream is None:
                run = self._run = self._prepare(self.experiment)
                self._dataset = run.dataset
                self._stream = run.snapshots(self._stop.is_set, **self._checkpoints(run.dataset))
            return next(self._stream), None
        except Exception as error:  # shown to the user, whatever it is
            return None, error

    def _take(self, snapshot: Snapshot | None, failure: BaseException | None) -> None:
        if failure is not None:
            self._fail(failure)
            return
        assert snapshot is not None
        if snapshot.epoch > self._reached:
            self._reached = snapshot.epoch
            self._history.add(snapshot.epoch, snapshot.record())
            if snapshot.epoch % self._frames.stride == 0 or snapshot.status is not None:
                self._frames.add(snapshot.epoch, Frame.of(snapshot))
        self._last = snapshot
        self._version += 1
        if snapshot.status is not None:
            self._set(_END.get(snapshot.status.reason, JobState.FINISHED), snapshot.status.message)
            return
        self._take_wishes()
        self._message = self._paused_after() if self._state is JobState.PAUSED else "Training."

    def _fail(self, failure: BaseException) -> None:
        sentence, self._details = in_words(failure)
        self._set(JobState.FAILED, sentence)

    # ------------------------------------------------------------------------------------- the run's record

    def _checkpoints(self, dataset: Dataset) -> dict[str, Any]:
        """Return where the run goes on, and who keeps its checkpoints."""
        recorder = self._recorder
        if recorder is None:
            return {"keep": self._keep}
        recorder.prepared(dataset)
        if (resume := recorder.resume) is not None:
            self._kept = lambda: resume
        return {"resume": resume, "keep": self._keep}

    def _keep(self, take: Callable[[], Checkpoint]) -> None:
        self._kept = take
        if self._recorder is not None:
            self._recorder.keep(take)

    def _record(self, snapshot: Snapshot | None, failure: BaseException | None) -> None:
        if self._recorder is None:
            return
        if failure is not None:
            self._recorder.end(JobState.FAILED, *in_words(failure))
        elif snapshot is not None:
            self._recorder.add(snapshot)
            if snapshot.status is not None:
                self._recorder.end(snapshot.status.reason, snapshot.status.message)

    def _record_pause(self) -> None:
        if self._recorder is not None and self._state is JobState.PAUSED:
            self._recorder.pause(self._message)


_END: dict[str, JobState] = {Reason.STOPPED: JobState.STOPPED, Reason.DIVERGED: JobState.DIVERGED}


def _epochs(n: int) -> str:
    return f"{n:,} epoch" + ("" if n == 1 else "s")
