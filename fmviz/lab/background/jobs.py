"""All training runs of a server: started, found by id, limited in number, and finally dropped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from fmviz.lab.background.job import (
    ORPHAN_SECONDS,
    Job,
    JobState,
    JobView,
    Prepared,
)
from fmviz.lab.background.pool import Executor, InlineExecutor, ThreadPool
from fmviz.lab.background.task import TaskManager
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.runs.recorder import Recorder
from fmviz.lab.store import RunStore, store

__all__ = [
    "InlineExecutor",
    "Job",
    "JobManager",
    "JobState",
    "JobView",
    "TooManyJobsError",
    "install",
    "manager",
]

FORGET_SECONDS = 3_600.0


class TooManyJobsError(RuntimeError):
    """The server trains as many models as it may; the text says what to do."""


class JobManager:
    """All jobs of a server.

    Attributes
    ----------
    tasks : TaskManager
        The server's work that is no training run, in the same executor.

    Parameters
    ----------
    executor : Executor, optional
        Where slices run; by default a pool of as many threads as the machine has cores.
    prepare : callable
        Handed to every `Job`.
    open_store : callable, optional
        Returns the store that every run is written to; without it none is.
    most_per_owner : int
        A session that starts one job more has its oldest active one stopped.
    most_active : int
        Jobs that may be queued or running at once.
    most_kept, most_bytes : int
        How many jobs in all, and how much memory of theirs, are kept; the ones that nobody has looked at
        for longest go first. Active jobs stay.
    orphan_seconds, forget_seconds : float
        After so long without a view a running job pauses, and a paused or ended one is dropped.
    """

    def __init__(
        self,
        executor: Executor | None = None,
        prepare: Callable[[Experiment], Prepared] = Run.prepare,
        *,
        open_store: Callable[[], RunStore] | None = None,
        most_per_owner: int = 2,
        most_active: int = 32,
        most_kept: int = 60,
        most_bytes: int = 400_000_000,
        orphan_seconds: float = ORPHAN_SECONDS,
        forget_seconds: float = FORGET_SECONDS,
    ) -> None:
        self.executor: Executor = executor if executor is not None else ThreadPool()
        self._prepare = prepare
        self._open_store = open_store
        self.most_per_owner = most_per_owner
        self.most_active = most_active
        self.most_kept = most_kept
        self.most_bytes = most_bytes
        self.orphan_seconds = orphan_seconds
        self.forget_seconds = forget_seconds
        self._lock = threading.RLock()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self.tasks = TaskManager(lambda: self.executor)

    def start(
        self, experiment: Experiment, owner: str = "", *, steps: int | None = None, pace: float = 0.0
    ) -> Job:
        """Start a run and return its job.

        Parameters
        ----------
        experiment : Experiment
            What to run.
        owner : str
            The session.
        steps : int, optional
            Make so many epochs after the start, then pause; without it the job plays.
        pace : float
            Epochs a second, 0 for full speed.

        Raises
        ------
        TooManyJobsError
            If `most_active` jobs are queued or running.
        """
        recorder = None
        if self._open_store is not None:
            recorder = Recorder(self._open_store, experiment, origin="page")
        job = self._enter(experiment, owner, recorder)
        job.set_pace(pace)
        if steps is None:
            job.play()
        elif steps == 0:
            job.begin()
        for _ in range(steps or 0):
            job.step()
        return job

    def resume(self, run: str, owner: str = "", *, play: bool = True) -> Job:
        """Let an interrupted run of the store go on; return its job, which waits without `play`.

        Raises
        ------
        ValueError
            If there is no store, or the run cannot be resumed, see `RunStore.claim`.
        TooManyJobsError
            If `most_active` jobs are queued or running.
        """
        if self._open_store is None:
            raise ValueError("Runs are not saved here, so there is none to resume.")
        # Two pages may ask at once: both get the one job.
        with self._lock:
            job = self.get(run, owner)
            if job is None:
                recorder = Recorder.resumed(self._open_store(), run)
                job = self._enter(recorder.experiment, owner, recorder)
        if play:
            job.play()
        else:
            job.begin()
        return job

    def made_elsewhere(self, run: str) -> bool:
        """Return whether another process is at work on a run of the store."""
        found = self._open_store().get_many([run]) if self._open_store is not None else []
        return bool(found) and not found[0].ended and self.get(run) is None

    def reopen(self, run: str, owner: str = "") -> Job | None:
        """Return the job of a run of the store that has ended, or None where there is no such run.

        Raises
        ------
        ValueError
            If its data cannot be had, or its settings are not those of this version.
        """
        if self._open_store is None:
            return None
        store = self._open_store()
        found = next(iter(store.get_many([run])), None)
        if found is None or not found.ended or found.resumable:
            return None
        experiment = found.experiment
        dataset = load_dataset(experiment.dataset, **dict(experiment.dataset_params))
        job = Job.reopened(found, store.trace(run), store.parameters(run), dataset, owner, self.executor)
        with self._lock:
            self._jobs[job.id] = job
            self._forget()
        return job

    def _enter(self, experiment: Experiment, owner: str, recorder: Recorder | None) -> Job:
        """Return a new job of a session, which has its oldest ones stopped if it has too many."""
        with self._lock:
            mine = [job for job in self._jobs.values() if job.owner == owner and not job.state.ended]
            for job in mine[: max(0, len(mine) - self.most_per_owner + 1)]:
                job.stop()
            if len(self.running()) >= self.most_active:
                raise TooManyJobsError(
                    f"The server already trains {self.most_active} models, which is all it takes at once. "
                    "Wait until one ends, or stop one, and press Play again."
                )
            job = Job(experiment, owner, self.executor, self._prepare, self.orphan_seconds, recorder)
            self._jobs[job.id] = job
            self._forget()
        return job

    def get(self, job_id: str | None, owner: str | None = None) -> Job | None:
        """Return a job by its id, or None; with `owner` it counts for that session from now on."""
        with self._lock:
            job = self._jobs.get(job_id) if job_id else None
            if job is not None and owner is not None:
                job.owner = owner
            return job

    def jobs(self, owner: str | None = None) -> list[Job]:
        """Return the jobs, oldest first; of one session with `owner`."""
        with self._lock:
            return [job for job in self._jobs.values() if owner is None or job.owner == owner]

    def running(self) -> list[Job]:
        """Return the jobs that are queued or running, of all sessions."""
        return [job for job in self.jobs() if job.state.active]

    def shutdown(self) -> None:
        """Stop every job and end the workers."""
        for job in self.jobs():
            job.stop()
        self.executor.shutdown()

    def _forget(self) -> None:
        """Drop what nobody has looked at for long, or what is too much."""
        newest = next(reversed(self._jobs), None)
        idle = sorted(
            (job for job in self._jobs.values() if not job.state.active and job.id != newest),
            key=lambda job: job.idle_seconds,
        )
        room = self.most_bytes - sum(job.n_bytes for job in self._jobs.values() if job.state.active)
        places = self.most_kept - (len(self._jobs) - len(idle))
        for job in idle:
            room -= job.n_bytes
            places -= 1
            if job.idle_seconds > self.forget_seconds or room < 0 or places < 0:
                job.stop()
                del self._jobs[job.id]


_manager: JobManager | None = None
_installing = threading.Lock()


def manager() -> JobManager:
    """Return the process's job manager, made when first asked for."""
    global _manager
    with _installing:
        if _manager is None:
            _manager = JobManager(open_store=store)
        return _manager


def install(new: JobManager | None) -> JobManager | None:
    """Put another manager in place of the process's one, for tests; return the one before."""
    global _manager
    with _installing:
        old, _manager = _manager, new
        return old
