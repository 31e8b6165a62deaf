"""Manager of all background tasks of a server."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fmviz.lab.background.job import RUNS, Job
from fmviz.lab.background.pool import ThreadPool
from fmviz.lab.background.task import Make, Task
from fmviz.lab.background.workers import WORKERS
from fmviz.lab.experiment import Experiment
from fmviz.lab.quotas import memory_limit
from fmviz.lab.runner import dataset_of
from fmviz.lab.store import RunStore, store
from fmviz.lab.store.recorder import Recorder

PLANS = "plans"
"""The queue of comparisons and paths, which are short; sweeps do not hold them up."""


class TooManyJobsError(RuntimeError):
    """The queue of runs is full; the message contains a way out."""


@dataclass(frozen=True)
class ServerLimits:
    """Limits of a server.

    If a session starts more than `per_owner` training runs, its oldest active run is stopped. `active` runs
    share the threads, and `waiting` more can queue. Plans are carried out in the order of their submission,
    `plans` at a time. The numbers of training runs and other tasks, and their memory with their data and
    that of the worker processes, are limited; those without viewers for longest are dropped first, except
    active tasks and the newest. After some time without viewers, a running training run pauses (a
    disconnected browser may return), and a paused or ended one is dropped.
    """

    per_owner: int = 2
    active: int = 32
    waiting: int = 100
    plans: int = 2
    jobs: int = 60
    tasks: int = 20
    n_bytes: float = field(default_factory=memory_limit)
    orphan_seconds: float = 180.0
    forget_seconds: float = 3_600.0


class TaskManager:
    """Training runs, and all other tasks, of a server.

    The `executor` runs their slices; runs are saved to the store returned by `open_store`.
    """

    def __init__(
        self,
        executor: ThreadPool | None = None,
        *,
        open_store: Callable[[], RunStore] | None = None,
        limits: ServerLimits | None = None,
    ) -> None:
        self.executor = executor or ThreadPool()
        self.limits = limits or ServerLimits()
        self.executor.most |= {RUNS: self.limits.active, PLANS: self.limits.plans}
        self._open_store = open_store
        self._lock = threading.RLock()
        self._tasks: OrderedDict[str, Task] = OrderedDict()

    def submit(self, id: str, make: Make, queue: str = "") -> Task:
        """Start a task, see `Task`; an active task of the same name is stopped."""
        with self._lock:
            if (old := self._tasks.get(id)) is not None:
                old.stop()
            task = self._enter(Task(id, make, self.executor, queue))
        task.play()
        return task

    def get(self, id: str) -> Task | None:
        """Return a task by its name, or None."""
        with self._lock:
            if (task := self._tasks.get(id)) is not None:
                task.look()
            return task

    def forget(self, id: str) -> None:
        """Drop an ended task."""
        with self._lock:
            if (task := self._tasks.get(id)) is not None and task.state.ended:
                del self._tasks[id]

    def shutdown(self) -> None:
        """Stop every task and end all threads and workers."""
        for task in list(self._tasks.values()):
            task.stop()
        WORKERS.close()
        self.executor.shutdown()

    def _enter(self, task: Any) -> Any:
        """Add a task as the newest, and drop tasks without viewers or beyond the limits."""
        self._tasks.pop(task.id, None)
        self._tasks[task.id] = task
        if isinstance(task, Job):
            task.orphan_seconds = self.limits.orphan_seconds
        places = {Job: self.limits.jobs, Task: self.limits.tasks}
        room = self.limits.n_bytes - WORKERS.n_bytes
        forget = {Job: self.limits.forget_seconds, Task: math.inf}
        counted: set[int] = set()

        def stays(other: Task) -> bool:
            return other is task or other.state.active

        for other in sorted(self._tasks.values(), key=lambda task: (not stays(task), task.idle_seconds)):
            kind = type(other)
            places[kind] -= 1
            # Shared objects, such as the data set, are counted with the first task that stays.
            weights = {key: size for key, size in other.weights().items() if key not in counted}
            counted |= weights.keys()
            room -= sum(weights.values())
            full = places[kind] < 0 or (any(weights.values()) and room < 0)
            if not stays(other) and (full or other.idle_seconds > forget[kind]):
                other.stop()
                del self._tasks[other.id]
        return task

    def start(
        self,
        experiment: Experiment,
        owner: str = "",
        *,
        steps: int | None = None,
        pace: float = 0.0,
        browser: str = "",
    ) -> Job:
        """Start a training run of a session and return its job.

        The run makes `steps` epochs after its start and then pauses, or plays without `steps`, at a `pace` in
        epochs per second (0: full speed). If `browser` is given, other browsers can only watch.

        Raises
        ------
        TooManyJobsError
            If the queue is full.
        """
        with self._lock:
            self._make_room(owner)
            recorder = Recorder(self._open_store, experiment, "page")
            job = self._enter(Job(recorder, self.executor, owner, browser))
        job.pace = pace
        if steps is None:
            job.play()
        else:
            job.step(steps)
        return job

    def open(self, run: str, owner: str = "", browser: str = "") -> Job | None:
        """Return the job of a stored run, or None if there is no such run.

        An ended run is in its final state; an interrupted run is at its last save and can be resumed.

        Raises
        ------
        AtWorkError
            If another process is running it.
        ValueError
            If its data are unavailable, or its settings belong to another version.
        TooManyJobsError
            If it was interrupted and the queue is full.
        """
        # Two pages may open it at once and get the same job.
        with self._lock:
            if (job := self.job(run, owner)) is not None or self._open_store is None:
                return job
            runs = self._open_store()
            if (stored := next(iter(runs.get_many([run])), None)) is None:
                return None
            data = parameters = None
            if stored.resumable:
                self._make_room(owner)
            else:
                data, parameters = dataset_of(stored.experiment), runs.parameters(run)
                if parameters is not None:
                    stored.check_data(parameters, data)
            recorder = Recorder(self._open_store, stored.experiment, stored=stored)
            job = self._enter(Job(recorder, self.executor, owner, browser if data is None else ""))
            if data is not None:
                job.show(stored, parameters, data)
        job.step(0)
        return job

    def job(self, id: str | None, owner: str | None = None) -> Job | None:
        """Return a training run by its id, or None; with `owner`, it now counts for that session."""
        with self._lock:
            job = self._tasks.get(id) if id else None
            if not isinstance(job, Job):
                return None
            if owner is not None:
                job.owner = owner
            return job

    def jobs(self, owner: str | None = None) -> list[Job]:
        """Return the training runs, oldest first; with `owner`, those of that session."""
        with self._lock:
            jobs = [task for task in self._tasks.values() if isinstance(task, Job)]
            return [job for job in jobs if owner is None or job.owner == owner]

    def _make_room(self, owner: str) -> None:
        """Stop the oldest jobs of a session beyond its limit, or refuse another job."""
        mine = [job for job in self.jobs(owner) if not job.state.ended]
        for job in mine[: max(0, len(mine) - self.limits.per_owner + 1)]:
            job.stop()
        if len(self.executor.line(RUNS)) >= self.limits.waiting:
            raise TooManyJobsError(
                f"The queue of this server is full ({self.limits.waiting} runs). Wait until some have "
                "ended, and press Play again."
            )


_manager: TaskManager | None = None
_installing = threading.Lock()


def manager() -> TaskManager:
    """Return the process's task manager, created at the first call."""
    global _manager
    with _installing:
        if _manager is None:
            _manager = TaskManager(open_store=store)
        return _manager
