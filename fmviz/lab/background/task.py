"""Background work other than training runs: streamed, watched and stopped from any page."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fmviz.lab.background.job_view import JobState
from fmviz.lab.background.pool import Executor
from fmviz.lab.failure import in_words

Make = Callable[[Callable[[], bool]], Iterator[Any]]
"""``make(should_stop)`` returns an iterator of results; it ends early where `should_stop()` is true."""


@dataclass(frozen=True, eq=False)
class TaskView:
    """What a task looks like at one moment. Nothing in it changes any more.

    Attributes
    ----------
    key : str
        What the task was asked for by.
    state : JobState
        Where it is.
    message, details : str
        A sentence for people; the traceback of an unexpected error, else empty.
    items : tuple
        The results so far, in order.
    elapsed : float
        Seconds since the start, up to the end.
    """

    key: str
    state: JobState
    message: str
    details: str
    items: tuple[Any, ...]
    elapsed: float


class Task:
    """An iterator that is drawn from in the background, one result after the other.

    Parameters
    ----------
    key : str
        Its name.
    make : callable
        Returns the results; called in the executor.
    executor : Executor
        Where it runs.
    most : int, optional
        So many of the last results are kept; all of them by default.
    """

    def __init__(self, key: str, make: Make, executor: Executor, most: int | None = None) -> None:
        self.key = key
        self._make = make
        self._executor = executor
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._state = JobState.QUEUED
        self._message, self._details = "Waiting for a free worker.", ""
        self._items: deque[Any] = deque(maxlen=most)
        self._stream: Iterator[Any] | None = None
        self._started = time.monotonic()
        self._ended: float | None = None
        executor.submit(self._advance)

    @property
    def state(self) -> JobState:
        """Where the task is."""
        return self._state

    def stop(self) -> None:
        """End it after the present result."""
        self._stop.set()

    def view(self) -> TaskView:
        """Return what there is to see."""
        with self._lock:
            elapsed = (self._ended or time.monotonic()) - self._started
            return TaskView(self.key, self._state, self._message, self._details, tuple(self._items), elapsed)

    def _advance(self) -> None:
        """Draw one result, and take a place behind the others that wait."""
        try:
            if self._stream is None:
                self._set(JobState.RUNNING, "At work.")
                self._stream = iter(self._make(self._stop.is_set))
            item = next(self._stream)
        except StopIteration:
            stopped = self._stop.is_set()
            self._set(
                JobState.STOPPED if stopped else JobState.FINISHED,
                "Stopped on request." if stopped else "Done.",
            )
            return
        except Exception as error:  # shown to the user, whatever it is
            sentence, self._details = in_words(error)
            self._set(JobState.FAILED, sentence)
            return
        with self._lock:
            self._items.append(item)
        self._executor.submit(self._advance)

    def _set(self, state: JobState, message: str) -> None:
        with self._lock:
            self._state, self._message = state, message
            if state.ended:
                self._ended, self._stream = time.monotonic(), None


class TaskManager:
    """The tasks of a server, found again by what they were asked for.

    Parameters
    ----------
    executor : callable
        Returns where tasks run; asked when one is started.
    most : int
        So many are kept; those that nobody asked for longest go first, but none that is at work.
    """

    def __init__(self, executor: Callable[[], Executor], most: int = 20) -> None:
        self._executor = executor
        self._most = most
        self._lock = threading.RLock()
        self._tasks: OrderedDict[str, Task] = OrderedDict()

    def get(self, key: str) -> Task | None:
        """Return the task of that name, or None."""
        with self._lock:
            task = self._tasks.get(key)
            if task is not None:
                self._tasks.move_to_end(key)
            return task

    def start(self, key: str, make: Make, most: int | None = None) -> Task:
        """Start a task, see `Task`; one of that name that is still at work is stopped."""
        with self._lock:
            old = self._tasks.pop(key, None)
            if old is not None:
                old.stop()
            task = self._tasks[key] = Task(key, make, self._executor(), most)
            for name in [n for n, t in self._tasks.items() if t.state.ended][: -self._most or None]:
                if len(self._tasks) > self._most:
                    del self._tasks[name]
            return task

    def forget(self, key: str) -> None:
        """Drop a task that has ended."""
        with self._lock:
            task = self._tasks.get(key)
            if task is not None and task.state.ended:
                del self._tasks[key]

    def running(self) -> list[Task]:
        """Return the tasks that are at work."""
        with self._lock:
            return [task for task in self._tasks.values() if task.state.active]
