"""Background tasks that run in time slices and can be watched and stopped from any thread.

A task is an iterator. A worker draws from it for a moment and puts it behind the others that wait, so that
more tasks than workers all progress, and one that waits holds no worker. Pages read `Task.view`, which never
waits for the work.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fmviz.engine.errors import StoppedError
from fmviz.lab.background.pool import FIRST, Executor
from fmviz.lab.failure import in_words

Make = Callable[[Callable[[], bool]], Iterator[Any]]
"""``make(should_stop)`` returns an iterator of results; it ends early where `should_stop()` is true."""


class TaskState(StrEnum):
    """Where a task is."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    DIVERGED = "diverged"

    @property
    def active(self) -> bool:
        """Whether the task waits for a worker or has one."""
        return self in (TaskState.QUEUED, TaskState.RUNNING)

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return not self.active and self is not TaskState.PAUSED


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskView:
    """What a task looks like at one moment. Nothing in it changes any more.

    Attributes
    ----------
    id, owner : str
        Its name, and the session that it counts for.
    state : TaskState
        Where it is.
    message, details : str
        A sentence for people; the traceback of an unexpected error, else empty.
    items : tuple
        The results so far, in order.
    elapsed : float
        Seconds since the start, up to the end.
    version : int
        Grows with every change.
    """

    id: str
    owner: str
    state: TaskState
    message: str
    details: str
    items: tuple[Any, ...]
    elapsed: float
    version: int


class Task:
    """An iterator that is drawn from in the background, from `play` on.

    Parameters
    ----------
    id : str
        Its name.
    make : callable
        Returns the results; called in the executor.
    executor : Executor
        Where it runs.
    most : int, optional
        So many of the last results are kept; all of them by default.
    owner : str
        The session that it counts for.

    Attributes
    ----------
    slice_seconds : float
        A worker draws for so long, but one result at least.
    """

    slice_seconds = 0.0
    _loading, _working = "At work.", "At work."

    def __init__(
        self, id: str, make: Make, executor: Executor, most: int | None = None, owner: str = ""
    ) -> None:
        self.id, self.owner = id, owner
        self._make: Make | None = make
        self._executor = executor
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._state, self._message, self._details = TaskState.QUEUED, "Waiting for a free worker.", ""
        self._items: deque[Any] = deque(maxlen=most)
        self._stream: Iterator[Any] | None = None
        self._version = 0
        self._wanted = 0.0  # how many results may still be drawn
        self._pace = 0.0
        self._has_started = self._scheduled = self._inside = False
        self._started = self._seen = time.monotonic()
        self._ended: float | None = None

    # -------------------------------------------------------------------------------------- for any thread

    @property
    def state(self) -> TaskState:
        """Where the task is."""
        return self._state

    def play(self) -> None:
        """Start, or go on after a pause; nothing happens to a task that has ended."""
        self._want(math.inf)

    def stop(self) -> None:
        """End it for good; the result that is being made is still taken in."""
        with self._lock:
            self._stop.set()
            if not self._inside:
                self._may_go_on()

    def view(self) -> TaskView:
        """Return what there is to see, and note that somebody looks."""
        with self._lock:
            return TaskView(**self._seen_now(), items=tuple(self._items))

    def look(self) -> None:
        """Note that somebody looks."""
        self._seen = time.monotonic()

    @property
    def idle_seconds(self) -> float:
        """Seconds since somebody looked."""
        return time.monotonic() - self._seen

    def weights(self) -> dict[int, int]:
        """Return about how much memory it keeps, by the ids of what may be shared with others."""
        return {id(item): item.n_bytes for item in self._items if hasattr(item, "n_bytes")}

    @property
    def n_bytes(self) -> int:
        """About how much memory is kept in all."""
        return sum(self.weights().values())

    # -------------------------------------------------------------------------------------- under the lock

    def _seen_now(self) -> dict[str, Any]:
        self.look()
        return {
            "id": self.id,
            "owner": self.owner,
            "state": self._state,
            "message": self._message,
            "details": self._details,
            "elapsed": (self._ended or time.monotonic()) - self._started,
            "version": self._version,
        }

    def _set(self, state: TaskState, message: str) -> None:
        self._state = state
        self._message = message
        self._version += 1
        if state.ended:
            self._ended = time.monotonic()
            self._stream = None

    def _want(self, results: float) -> None:
        with self._lock:
            if self._state.ended:
                return
            self._wanted = results
            if self._has_started:
                self._set(TaskState.RUNNING, self._working)
            else:
                self._set(TaskState.QUEUED, "Waiting for a free worker.")
            self.look()
            if self._scheduled:
                return
            self._scheduled = True
            self._begin()

    def _begin(self) -> None:
        """Have a worker draw soon: somebody has just asked for it."""
        self._executor.submit(self._slice, FIRST)

    def _may_go_on(self) -> bool:
        """Return whether another result is to be drawn; if not, the state says why."""
        if self._state.ended:
            return False
        # What has begun learns of the stop by itself, and may have something to say at its end.
        if self._stop.is_set() and not self._has_started:
            self._set(TaskState.STOPPED, "Stopped on request.")
            return False
        return True

    def _take(self, result: Any, failure: Exception | None) -> None:
        """Take in what was drawn."""
        if failure is None:
            self._items.append(result)
            self._version += 1
        elif not isinstance(failure, StopIteration | StoppedError):
            sentence, self._details = in_words(failure)
            self._set(TaskState.FAILED, sentence)
        elif self._stop.is_set():
            self._set(TaskState.STOPPED, "Stopped on request.")
        else:
            self._set(TaskState.FINISHED, "Done.")

    # ----------------------------------------------------------------------------------------- in a worker

    def _slice(self) -> None:
        deadline = time.monotonic() + self.slice_seconds
        while self._enter():
            began = time.monotonic()
            drawn = self._draw()
            # Outside the lock, where it holds nobody up, and before anybody is told of the end.
            self._record(*drawn)
            with self._lock:
                self._inside = False
                self._take(*drawn)
                self._scheduled = go_on = self._may_go_on()
                pace = self._pace
            if not go_on:
                break
            now = time.monotonic()
            if pace or now >= deadline:
                # Behind the tasks that wait.
                self._executor.submit(self._slice, max(0.0, began + 1 / pace - now) if pace else 0.0)
                return
        self._record_pause()

    def _enter(self) -> bool:
        with self._lock:
            self._inside = self._scheduled = go_on = self._may_go_on()
            if go_on:
                self._wanted -= 1
                if not self._has_started:
                    self._has_started = True
                    self._set(TaskState.RUNNING, self._loading)
            return go_on

    def _draw(self) -> tuple[Any, Exception | None]:
        try:
            if self._stream is None:
                # Once: it may hold a file.
                make, self._make = self._make, None
                assert make is not None
                self._stream = iter(make(self._stop.is_set))
            return next(self._stream), None
        except Exception as error:  # shown to the user, whatever it is
            return None, error

    def _record(self, result: Any, failure: Exception | None) -> None:
        """Write down what was drawn, for those that keep a record."""

    def _record_pause(self) -> None:
        """Write down that nothing more is to be drawn for now."""
