"""Threads that run time slices of tasks when they are due, and the line in which tasks wait for them.

Those of `concurrent.futures` know no due times, and Ctrl-C would take as long as the fits at work.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import threading
import time
from collections.abc import Callable

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

    Of slices that wait in line, only the first `most` are run, until they `leave`. Where nothing has been
    taken for half a second while something is due, as where one epoch takes long, another thread joins in for
    one slice. From the first pool on, the process's threads take shorter turns.
    """

    def __init__(self, workers: int | None = None, most: int = sys.maxsize) -> None:
        workers = (os.cpu_count() or 1) if workers is None else workers
        self.most, self._most_threads = most, _MOST_THREADS * workers
        # When each is due, never while it is run, and whether it waits in line, in the order of that.
        self._slices: dict[Slice, tuple[float, bool]] = {}
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._taken = time.monotonic()
        self._threads: set[threading.Thread] = set()
        if workers:
            sys.setswitchinterval(_TURN)
            for work in (self._watch, *[self._work] * workers):
                self._add(work)

    def submit(self, task: Slice, delay: float = 0.0, *, waits: bool = False) -> None:
        """Run a slice once, not before `delay` seconds have passed; with `waits`, when it is its turn."""
        with self._changed:
            self._slices[task] = time.monotonic() + delay, waits
            self._changed.notify()

    def leave(self, task: Slice) -> bool:
        """Forget a slice and give up its place; return whether it was not yet run."""
        with self._changed:
            due, _ = self._slices.pop(task, (math.inf, False))
            self._changed.notify()
            return due < math.inf

    def line(self) -> list[Slice]:
        """Return what waits in line for its turn, the next one first."""
        with self._changed:
            return [task for task, (_, waits) in self._slices.items() if waits][self.most :]

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

    def _first(self) -> tuple[float, Slice]:
        """Return when something is due, and what."""
        places = itertools.count()
        due = [
            (due, n, task)
            for n, (task, (due, waits)) in enumerate(self._slices.items())
            if not waits or next(places) < self.most
        ]
        when, _, task = min(due, default=(math.inf, 0, self._watch))
        return when, task

    def _take(self) -> Slice:
        self._taken, (_, task) = time.monotonic(), self._first()
        self._slices[task] = math.inf, self._slices[task][1]
        return task

    def _work(self, spare: bool = False) -> None:
        while not self._closed.is_set():
            with self._changed:
                wait = self._first()[0] - time.monotonic()
                if wait > 0.0:
                    self._changed.wait(None if wait == math.inf else wait)
                    continue
                task = self._take()
            task()
            if spare:
                break
        with self._changed:
            self._threads.discard(threading.current_thread())

    def _watch(self) -> None:
        while not self._closed.wait(_STUCK / 2):
            with self._changed:
                since = max(self._taken, self._first()[0])
                if time.monotonic() - since >= _STUCK and len(self._threads) <= self._most_threads:
                    self._add(lambda: self._work(spare=True))
