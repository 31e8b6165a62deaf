"""A small pool of threads with due times, and a synchronous one for tests.

That of `concurrent.futures` knows no due times, and waits for its threads when the process ends: Ctrl-C would
take as long as the fits at work.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from threadpoolctl import threadpool_limits

Task = Callable[[], None]


class Executor(Protocol):
    """What a `fmviz.lab.background.tasks.TaskManager` needs of the place where its slices run."""

    def submit(self, task: Task, delay: float = 0.0) -> None:
        """Run `task` once, not before `delay` seconds have passed."""

    def shutdown(self) -> None:
        """Drop what waits and end the threads."""


class ThreadPool:
    """At most `workers` daemon threads that run tasks in the order in which they fall due.

    From the first pool on, the process's matrix products take one core each.

    Parameters
    ----------
    workers : int, optional
        As many as the machine has cores by default.
    """

    def __init__(self, workers: int | None = None) -> None:
        # Jobs run beside each other: were the matrix products of each to take all cores as well, their
        # threads would wait for one another.
        threadpool_limits(1, user_api="blas")
        self.workers = max(1, workers if workers is not None else os.cpu_count() or 1)
        self._waiting: list[tuple[float, int, Task]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

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

    def shutdown(self, wait: float = 5.0) -> None:
        """Drop what waits, and give the running slices `wait` seconds to end."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        deadline = time.monotonic() + wait
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _next(self) -> Task | None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                if self._waiting and self._waiting[0][0] <= now:
                    return heapq.heappop(self._waiting)[2]
                self._idle += 1
                self._changed.wait(self._waiting[0][0] - now if self._waiting else None)
                self._idle -= 1
            return None

    def _work(self) -> None:
        task = self._next()
        while task is not None:
            task()
            task = self._next()


class InlineExecutor:
    """Runs tasks at once, in the thread that submits them, without delays: for tests.

    With ``hold=True`` tasks wait until `run` is called.
    """

    def __init__(self, hold: bool = False) -> None:
        self.hold = hold
        self.waiting: deque[Task] = deque()
        self._running = False

    def submit(self, task: Task, delay: float = 0.0) -> None:
        """See `Executor.submit`; a task submitted by a task runs after it."""
        self.waiting.append(task)
        if not self.hold:
            self.run()

    def run(self, most: int | None = None) -> int:
        """Run what waits, at most `most` tasks; return how many ran."""
        if self._running:
            return 0
        done = 0
        self._running = True
        try:
            while self.waiting and (most is None or done < most):
                self.waiting.popleft()()
                done += 1
        finally:
            self._running = False
        return done

    def shutdown(self) -> None:
        """Drop what waits."""
        self.waiting.clear()
