"""Threads that run time slices of tasks when they are due, and the line in which tasks wait for them.

Those of `concurrent.futures` know no due times, and Ctrl-C would take as long as the fits at work.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import sys
import threading
import time
from collections.abc import Callable

from threadpoolctl import threadpool_limits

Slice = Callable[[], None]

FIRST = -math.inf
"""The delay of a slice that goes before all others: somebody has just asked for it."""
# Of Python's threads: a page that waits for a worker's turn to end waits so long, for each of its elements.
_TURN = 0.001
# So long nothing may be taken while something waits.
_STUCK = 0.5
_MOST_THREADS = 4  # for each worker


class ThreadPool:
    """Daemon threads, by default one a core, that run slices in the order in which they fall due.

    Where nothing has been taken for half a second while something waits, as where one epoch takes long,
    another thread joins in for one slice. From the first pool on, the process's matrix products take one core
    each, since runs share the cores already, and its threads shorter turns.
    """

    def __init__(self, workers: int | None = None) -> None:
        threadpool_limits(1, user_api="blas")
        sys.setswitchinterval(_TURN)
        self._most = _MOST_THREADS * (workers := workers or os.cpu_count() or 1)
        self._waiting: list[tuple[float, int, Slice]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._taken = time.monotonic()
        self._threads: set[threading.Thread] = set()
        for work in (self._watch, *[self._work] * workers):
            self._add(work)

    def submit(self, task: Slice, delay: float = 0.0) -> None:
        """Run a slice once, not before `delay` seconds have passed, unless the pool was shut down."""
        with self._changed:
            if not self._closed.is_set():
                heapq.heappush(self._waiting, (time.monotonic() + delay, next(self._numbers), task))
                self._changed.notify()

    def shutdown(self, wait: float = 5.0) -> None:
        """Drop what waits, and give the running slices `wait` seconds to end."""
        with self._changed:
            self._closed.set()
            self._changed.notify_all()
            threads = self._threads - {threading.current_thread()}
        deadline = time.monotonic() + wait
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _add(self, work: Slice) -> None:
        thread = threading.Thread(target=work, name="fmviz-worker", daemon=True)
        self._threads.add(thread)
        thread.start()

    def _work(self, spare: bool = False) -> None:
        while (task := self._next()) is not None:
            task()
            if spare:
                break
        with self._changed:
            self._threads.discard(threading.current_thread())

    def _next(self) -> Slice | None:
        with self._changed:
            while not self._closed.is_set():
                now = time.monotonic()
                if self._waiting and self._waiting[0][0] <= now:
                    self._taken = now
                    return heapq.heappop(self._waiting)[2]
                self._changed.wait(self._waiting[0][0] - now if self._waiting else None)
        return None

    def _watch(self) -> None:
        while not self._closed.wait(_STUCK / 2):
            with self._changed:
                since = max(self._taken, self._waiting[0][0]) if self._waiting else math.inf
                if time.monotonic() - since >= _STUCK and len(self._threads) <= self._most:
                    self._add(lambda: self._work(spare=True))


class Line:
    """Tasks in their order, of which the first `most` share the workers, until they end or pause."""

    def __init__(self, executor: ThreadPool, most: int = sys.maxsize) -> None:
        self.executor, self.most = executor, most
        self._lock = threading.Lock()
        self._order: list[Slice] = []

    def enter(self, task: Slice) -> None:
        """Run a slice once, before those that are at work, or as soon as it is its turn."""
        with self._lock:
            if task not in self._order:
                self._order.append(task)
        if not self.place(task):
            self.executor.submit(task, FIRST)

    def leave(self, task: Slice) -> bool:
        """Give up a place, if there is one; return whether the slice was not yet submitted."""
        with self._lock:
            if task not in self._order:
                return False
            at = self._order.index(task)
            del self._order[at]
            following = self._order[self.most - 1 : self.most] if at < self.most else []
        for slice_ in following:
            self.executor.submit(slice_, FIRST)
        return at >= self.most

    def place(self, task: Slice) -> int:
        """Return the place in line, 1 for the next one, 0 where a task does not wait."""
        with self._lock:
            return max(0, self._order.index(task) + 1 - self.most) if task in self._order else 0

    def __len__(self) -> int:
        """Return how many wait."""
        return max(0, len(self._order) - self.most)
