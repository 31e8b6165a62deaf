"""Background tasks in time slices that can be watched, paused and stopped from any thread.

A task is an iterator. A worker draws results for a moment and then moves the task to the end of the queue:
more tasks than workers all progress, and waiting tasks occupy no worker. Pages read `Task.view`, which never
blocks.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fmviz.engine.errors import StoppedError
from fmviz.lab.background.pool import FIRST, ThreadPool
from fmviz.lab.failure import in_words
from fmviz.typography import ordinal

Make = Callable[[Callable[[], bool]], Iterator[Any]]
"""``make(should_stop)`` returns an iterator of results that ends early if `should_stop()` is true."""


class TaskState(StrEnum):
    """The state of a task."""

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
        """Whether the task has ended."""
        return not self.active and self is not TaskState.PAUSED


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskView:
    """An immutable view of a task.

    `items` are the results so far, `message` is a sentence for users, `details` the traceback of an
    unexpected error, `elapsed` the seconds since the start, and `version` increases with every change.
    """

    id: str
    state: TaskState
    message: str
    details: str
    items: tuple[Any, ...]
    elapsed: float
    version: int


class Task:
    """An iterator evaluated in the background after `play`; its results are kept.

    A worker of the `pool` creates the iterator, in the order of a `queue` if one is named.
    """

    slice_seconds = 0.0
    """Duration of a slice in seconds; at least one result."""
    orphan_seconds = math.inf
    """Seconds without viewers after which the task pauses."""
    _loading, _working = "Running.", "Running."

    def __init__(self, id: str, make: Make, pool: ThreadPool, queue: str = "") -> None:
        self.id, self._queue = id, queue
        self._make: Make | None = make
        self._pool = pool
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self.state, self._message, self._details = TaskState.QUEUED, "Waiting for a free worker.", ""
        self._items: list[Any] = []
        self._stream: Iterator[Any] | None = None
        self._version = 0
        self._wanted = 0.0  # number of results still to draw
        self._has_started = self._scheduled = self._inside = False
        self._started = self._seen = time.monotonic()
        self._ended: float | None = None
        self.attended: Callable[[], bool] = lambda: False
        """Whether a browser shows the task, even in a hidden tab."""
        self.pace = 0.0
        """Results per second; 0 is full speed."""

    def play(self) -> None:
        """Start or resume; ended tasks are not changed."""
        self._want(math.inf)

    def pause(self) -> None:
        """Pause after the current result and release the worker."""
        with self._lock:
            if self.state.active:
                self._wanted = 0
                self._set(TaskState.PAUSED, self._paused())
            inside = self._inside
        if not inside:
            self._halted()

    def stop(self) -> None:
        """End the task; a result in progress is still added."""
        with self._lock:
            self._stop.set()
            if not self._inside and self._may_go_on():
                # The task polls for the stop itself, and may have a final message.
                running = self._scheduled and not self._pool.leave(self._slice)
                self._set(TaskState.RUNNING, self._working)
                if not running:
                    self._scheduled = True
                    self._pool.submit(self._slice, FIRST)

    def view(self) -> TaskView:
        """Return the current view, and register a viewer."""
        with self._lock:
            return TaskView(**self._now(), items=tuple(self._items))

    def look(self) -> None:
        """Register a viewer."""
        self._seen = time.monotonic()

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last view."""
        return time.monotonic() - self._seen

    def weights(self) -> dict[int, int]:
        """Return approximate sizes in bytes, by ids of objects that tasks may share."""
        return {id(item): item.n_bytes for item in self._items if hasattr(item, "n_bytes")}

    # The following methods require the lock.

    def _now(self) -> dict[str, Any]:
        self.look()
        names = ("id", "state", "_message", "_details", "_version")
        elapsed = (self._ended or time.monotonic()) - self._started
        now = {"elapsed": elapsed, **{name.lstrip("_"): getattr(self, name) for name in names}}
        if self._queue and self._slice in (line := self._pool.line(self._queue)):
            words = f"Waiting: {ordinal(line.index(self._slice) + 1)} in the queue."
            now |= {"state": TaskState.QUEUED, "message": words}
        return now

    def _set(self, state: TaskState, message: str) -> None:
        self.state, self._message = state, message
        self._version += 1
        if state.ended:
            self._ended, self._stream = time.monotonic(), None
        if not state.active and self._pool.leave(self._slice):
            self._scheduled = False

    def _paused(self) -> str:
        return "Paused."

    def _want(self, results: float) -> None:
        with self._lock:
            if self.state.ended:
                return
            self._wanted = results
            if self._has_started:
                self._set(TaskState.RUNNING, self._working)
            else:
                self._set(TaskState.QUEUED, "Waiting for a free worker.")
            self.look()
            if not self._scheduled:
                self._scheduled = True
                self._pool.submit(self._slice, FIRST, queue=self._queue)

    def _may_go_on(self) -> bool:
        """Return whether to draw another result; if not, the state has the reason."""
        if self._stop.is_set() and not self._has_started and not self.state.ended:
            self._set(TaskState.STOPPED, "Stopped on request.")
        if self.state.ended or self._stop.is_set():
            return not self.state.ended
        if self.idle_seconds > self.orphan_seconds and not self.attended():
            self._wanted = 0
            self._set(
                TaskState.PAUSED,
                f"{self._paused()[:-1]}, because no page had shown this run for {self.orphan_seconds:g} "
                "seconds. Press Play to resume.",
            )
        elif self._wanted < 1 and self.state is not TaskState.PAUSED:
            self._set(TaskState.PAUSED, self._paused())
        return self._wanted >= 1

    def _take(self, result: Any, failure: Exception | None) -> None:
        """Add a result."""
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

    # The following methods are called by a worker.

    def _slice(self) -> None:
        deadline = time.monotonic() + self.slice_seconds
        while self._enter():
            began, result, failure = time.monotonic(), None, None
            try:
                if self._stream is None:
                    # Once: it may have an open file.
                    make, self._make = self._make, None
                    assert make is not None
                    self._stream = iter(make(self._stop.is_set))
                result = next(self._stream)
            except Exception as error:  # shown to the user
                failure = error
            with self._lock:
                self._inside = False
                self._take(result, failure)
                self._scheduled = go_on = self._may_go_on()
            if not go_on:
                break
            now, pace = time.monotonic(), self.pace
            if pace or now >= deadline:
                # Behind the waiting tasks.
                delay = max(0.0, began + 1 / pace - now) if pace else 0.0
                self._pool.submit(self._slice, delay, queue=self._queue)
                return
        self._halted()

    def _enter(self) -> bool:
        with self._lock:
            self._inside = self._scheduled = go_on = self._may_go_on()
            if go_on:
                self._wanted -= 1
                if not self._has_started:
                    self._has_started = True
                    self._set(TaskState.RUNNING, self._loading)
            return go_on

    def _halted(self) -> None:
        """Update the state if nothing more is drawn for now."""
