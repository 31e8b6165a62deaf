"""Manager of all background tasks of a server: start, find, limit and drop them."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from fmviz.lab.background.job import ORPHAN_SECONDS, Job, Prepare
from fmviz.lab.background.pool import Executor, Line, ThreadPool
from fmviz.lab.background.task import Make, Task
from fmviz.lab.experiment import Experiment
from fmviz.lab.quotas import memory_limit
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.store import RunStore, store
from fmviz.lab.store.recorder import Recorder


class TooManyJobsError(RuntimeError):
    """As many runs wait for the server as may; the text says what to do."""


@dataclass(frozen=True)
class Limits:
    """How much a server takes on, and keeps.

    Attributes
    ----------
    per_owner : int
        A session that starts one training run more has its oldest active one stopped.
    active, waiting : int
        How many training runs share the workers, and how many more may wait in line for that.
    jobs, tasks : int
        How many training runs, and how many other tasks, are kept; the ones that nobody has looked at for
        longest go first. What is active, and what came last, stays.
    n_bytes : int
        How much memory the tasks may take, with the data of the training runs, before they are dropped in the
        same order.
    orphan_seconds, forget_seconds : float
        After so long without a look a running training run pauses, and a paused or ended one is dropped.
    """

    per_owner: int = 2
    active: int = 32
    waiting: int = 100
    jobs: int = 60
    tasks: int = 20
    n_bytes: float = field(default_factory=memory_limit)
    orphan_seconds: float = ORPHAN_SECONDS
    forget_seconds: float = 3_600.0


class TaskManager:
    """Training runs, and all other tasks, of a server.

    Parameters
    ----------
    executor : Executor, optional
        Where slices run; by default a pool of as many threads as the machine has cores.
    prepare : callable
        Handed to every `Job`.
    open_store : callable, optional
        Returns the store that every training run is written to; without it none is.
    limits : Limits, optional
        How much is taken on, and kept.
    """

    def __init__(
        self,
        executor: Executor | None = None,
        prepare: Prepare = Run.loaded,
        *,
        open_store: Callable[[], RunStore] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.executor: Executor = executor if executor is not None else ThreadPool()
        self._prepare = prepare
        self._open_store = open_store
        self.limits = limits = limits or Limits()
        self._line = Line(self.executor, limits.active)
        self._lock = threading.RLock()
        self._tasks: OrderedDict[str, Task] = OrderedDict()

    # ------------------------------------------------------------------------------------------- any task

    def submit(self, id: str, make: Make, most: int | None = None) -> Task:
        """Start a task, see `Task`; one of that name that is still at work is stopped."""
        with self._lock:
            if (old := self._tasks.get(id)) is not None:
                old.stop()
            task = self._enter(Task(id, make, self.executor, most))
        task.play()
        return task

    def get(self, id: str) -> Task | None:
        """Return a task by its name, or None."""
        with self._lock:
            if (task := self._tasks.get(id)) is not None:
                task.look()
            return task

    def running(self) -> list[Task]:
        """Return what is queued or running, of all sessions."""
        with self._lock:
            return [task for task in self._tasks.values() if task.state.active]

    def forget(self, id: str) -> None:
        """Drop a task that has ended."""
        with self._lock:
            task = self._tasks.get(id)
            if task is not None and task.state.ended:
                del self._tasks[id]

    def shutdown(self) -> None:
        """Stop every task and end the workers."""
        for task in list(self._tasks.values()):
            task.stop()
        self.executor.shutdown()

    def _enter(self, task: Task) -> Task:
        """Take in a task as the newest, and drop what nobody has looked at for long, or what is too much."""
        self._tasks.pop(task.id, None)
        self._tasks[task.id] = task
        places, room = {Job: self.limits.jobs, Task: self.limits.tasks}, self.limits.n_bytes
        forget = {Job: self.limits.forget_seconds, Task: math.inf}
        counted: set[int] = set()

        def stays(other: Task) -> bool:
            return other is task or other.state.active

        for other in sorted(self._tasks.values(), key=lambda task: (not stays(task), task.idle_seconds)):
            kind = Job if isinstance(other, Job) else Task
            places[kind] -= 1
            # What several have in common, as the data set, is counted with the first that stays.
            weights = {key: size for key, size in other.weights().items() if key not in counted}
            counted |= weights.keys()
            room -= sum(weights.values())
            full = places[kind] < 0 or (any(weights.values()) and room < 0)
            if not stays(other) and (full or other.idle_seconds > forget[kind]):
                other.stop()
                del self._tasks[other.id]
        return task

    # -------------------------------------------------------------------------------------- training runs

    def start(
        self,
        experiment: Experiment,
        owner: str = "",
        *,
        steps: int | None = None,
        pace: float = 0.0,
        browser: str = "",
    ) -> Job:
        """Start a training run and return its job.

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
        browser : str
            Who may steer it, while others watch; everybody may without it.

        Raises
        ------
        TooManyJobsError
            If as many wait for their turn as may.
        """
        open_store = self._open_store
        recorder = None if open_store is None else Recorder(open_store, experiment, origin="page")
        job = self._train(experiment, owner, recorder)
        job.browser = browser
        job.set_pace(pace)
        if steps is None:
            job.play()
        elif steps == 0:
            job.begin()
        for _ in range(steps or 0):
            job.step()
        return job

    def resume(self, run: str, owner: str = "", *, play: bool = True, browser: str = "") -> Job:
        """Let an interrupted run of the store go on; return its job, which waits without `play`.

        `owner` and `browser` are as for `start`.

        Raises
        ------
        ValueError
            If there is no store, or the run cannot be resumed, see `RunStore.claim`.
        TooManyJobsError
            If as many wait for their turn as may.
        """
        if self._open_store is None:
            raise ValueError("Runs are not saved here, so there is none to resume.")
        # Two pages may ask at once: both get the one job.
        with self._lock:
            job = self.job(run, owner)
            if job is None:
                recorder = Recorder.resumed(self._open_store(), run)
                job = self._train(recorder.experiment, owner, recorder)
                job.browser = browser
        if play:
            job.play()
        else:
            job.begin()
        return job

    def made_elsewhere(self, run: str) -> bool:
        """Return whether another process is at work on a run of the store."""
        stored = self._open_store().get_many([run]) if self._open_store is not None else []
        return bool(stored) and not stored[0].ended and self.job(run) is None

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
        stored = next(iter(store.get_many([run])), None)
        if stored is None or not stored.ended or stored.resumable:
            return None
        experiment = stored.experiment
        dataset = load_dataset(experiment.dataset)
        job = Job.reopened(stored, store.trace(run), store.parameters(run), dataset, owner, self.executor)
        with self._lock:
            self._enter(job)
        return job

    def job(self, id: str | None, owner: str | None = None) -> Job | None:
        """Return a training run by its id, or None; with `owner` it counts for that session from now on."""
        with self._lock:
            job = self._tasks.get(id) if id else None
            if not isinstance(job, Job):
                return None
            if owner is not None:
                job.owner = owner
            return job

    def jobs(self, owner: str | None = None) -> list[Job]:
        """Return the training runs, oldest first; of one session with `owner`."""
        with self._lock:
            jobs = [task for task in self._tasks.values() if isinstance(task, Job)]
            return [job for job in jobs if owner is None or job.owner == owner]

    def _train(self, experiment: Experiment, owner: str, recorder: Recorder | None) -> Job:
        """Return a new job of a session, which has its oldest ones stopped if it has too many."""
        limits = self.limits
        with self._lock:
            mine = [job for job in self.jobs(owner) if not job.state.ended]
            for job in mine[: max(0, len(mine) - limits.per_owner + 1)]:
                job.stop()
            if len(self._line) >= limits.waiting:
                raise TooManyJobsError(
                    f"{limits.waiting} runs wait for this server already, which is all it takes. Wait until "
                    "some have ended, and press Play again."
                )
            job = Job(
                experiment, owner, self.executor, self._prepare, recorder, limits.orphan_seconds, self._line
            )
            self._enter(job)
        return job


_manager: TaskManager | None = None
_installing = threading.Lock()


def manager() -> TaskManager:
    """Return the process's task manager, made when first asked for."""
    global _manager
    with _installing:
        if _manager is None:
            _manager = TaskManager(open_store=store)
        return _manager


def install(new: TaskManager | None) -> TaskManager | None:
    """Put another manager in place of the process's one, for tests; return the one before."""
    global _manager
    with _installing:
        old, _manager = _manager, new
        return old
