"""Thread pool that runs time slices of tasks when they are due, and a synchronous one for tests.

That of `concurrent.futures` knows no due times, and waits for its threads when the process ends: Ctrl-C would
take as long as the fits at work.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from threadpoolctl import threadpool_limits

Task = Callable[[], None]

FIRST = -math.inf
"""The delay of a task that goes before all others that wait: somebody has just asked for it."""
# Of Python's threads: a page that waits for a worker's turn to end waits so long, for each of its elements.
_TURN = 0.001
# So long nothing may be begun while something waits.
_STUCK = 0.5
_MOST_SPARE = 3  # for each worker


class Executor(Protocol):
    """What a `fmviz.lab.background.tasks.TaskManager` needs of the place where its slices run."""

    def submit(self, task: Task, delay: float = 0.0) -> None:
        """Run `task` once, not before `delay` seconds have passed; before all others with `FIRST`."""

    def shutdown(self) -> None:
        """Drop what waits and end the threads."""


class ThreadPool:
    """At most `workers` daemon threads that run tasks in the order in which they fall due.

    Where nothing has been begun for half a second while something waits, as where one epoch takes long,
    another thread joins in for one task, and the system shares the cores among them. From the first pool on,
    the process's matrix products take one core each, and its threads shorter turns.

    Parameters
    ----------
    workers : int, optional
        As many as the machine has cores by default.
    """

    def __init__(self, workers: int | None = None) -> None:
        # Jobs run beside each other: were the matrix products of each to take all cores as well, their
        # threads would wait for one another.
        threadpool_limits(1, user_api="blas")
        sys.setswitchinterval(_TURN)
        self.workers = max(1, workers if workers is not None else os.cpu_count() or 1)
        self._waiting: list[tuple[float, int, Task]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = self._spare = 0
        self._started_at = time.monotonic()
        self._closed = False
        self._watch: threading.Timer | None = None

    def submit(self, task: Task, delay: float = 0.0) -> None:
        """See `Executor.submit`; a pool that was shut down drops the task."""
        with self._changed:
            if self._closed:
                return
            heapq.heappush(self._waiting, (time.monotonic() + delay, next(self._numbers), task))
            if not self._idle and len(self._threads) < self.workers:
                name = f"fmviz-job-{len(self._threads)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
            self._look_again()

    def shutdown(self, wait: float = 5.0) -> None:
        """Drop what waits, and give the running slices `wait` seconds to end."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
            watch = [] if self._watch is None else [self._watch]
        for timer in watch:
            timer.cancel()
        deadline = time.monotonic() + wait
        for thread in [*self._threads, *watch]:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _next(self) -> Task | None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                if self._waiting and self._waiting[0][0] <= now:
                    return self._pop(now)
                self._idle += 1
                self._changed.wait(self._waiting[0][0] - now if self._waiting else None)
                self._idle -= 1
            return None

    def _pop(self, now: float) -> Task:
        self._started_at = now
        return heapq.heappop(self._waiting)[2]

    def _work(self) -> None:
        task = self._next()
        while task is not None:
            task()
            task = self._next()

    def _look_again(self) -> None:
        """See soon whether what waits waits too long."""
        if self._waiting and not self._idle and self._watch is None:
            self._watch = threading.Timer(_STUCK, self._join_in)
            self._watch.daemon = True
            self._watch.start()

    def _join_in(self) -> None:
        """Run one task beside the workers, if these have been stuck for a while."""
        with self._changed:
            self._watch = None
            now = time.monotonic()
            stuck = not self._closed and not self._idle and bool(self._waiting)
            stuck = stuck and now - max(self._started_at, self._waiting[0][0]) >= _STUCK
            self._look_again()
            if not stuck or self._spare >= _MOST_SPARE * self.workers:
                return
            task = self._pop(now)
            self._spare += 1
        try:
            task()
        finally:
            with self._changed:
                self._spare -= 1


class Line:
    """At most so many tasks share the workers; the others wait in line until one of them ends or pauses.

    Parameters
    ----------
    executor : Executor
        Where tasks run.
    most : int
        How many share it.
    """

    def __init__(self, executor: Executor, most: int) -> None:
        self._executor = executor
        self.most = most
        self._lock = threading.Lock()
        self._within: set[Task] = set()
        self._waiting: deque[Task] = deque()

    def enter(self, task: Task) -> None:
        """Run a task once, before those that are at work, or as soon as it is its turn."""
        with self._lock:
            if len(self._within) >= self.most and task not in self._within:
                self._waiting.append(task)
                return
            self._within.add(task)
        self._executor.submit(task, FIRST)

    def leave(self, task: Task) -> bool:
        """Give up a place, if there is one; return whether the task was not yet submitted."""
        with self._lock:
            if waited := task in self._waiting:
                self._waiting.remove(task)
            self._within.discard(task)
            within = len(self._within) < self.most and bool(self._waiting)
            if within:
                following = self._waiting.popleft()
                self._within.add(following)
        if within:
            self._executor.submit(following, FIRST)
        return waited

    def place(self, task: Task) -> int:
        """Return the place in line, 1 for the next one, 0 where a task does not wait."""
        with self._lock:
            return self._waiting.index(task) + 1 if task in self._waiting else 0

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)
