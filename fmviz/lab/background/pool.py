"""Threads that run time slices of tasks when due, and the queue of waiting tasks.

`concurrent.futures` has no due times, and would delay Ctrl-C until the running fits end.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

Slice = Callable[[], None]

FIRST = -math.inf
"""The delay of a slice with priority, just requested by a user."""
# Switch interval of Python's threads: pages wait up to this long for a worker, for each of their elements.
_TURN = 0.001
# Maximum time without a new slice while slices wait.
_STUCK = 0.5
_MOST_THREADS = 4  # per worker


class ThreadPool:
    """Daemon threads, by default one per core, that run slices in the order of their due times.

    Of the slices in a queue only the first run, as many as `most` states for its name, until they `leave`. If
    no slice has been started for half a second although one is due, for instance because of a long epoch,
    another thread runs one slice. The first pool shortens the switch interval of the process's threads.
    """

    def __init__(self, workers: int | None = None) -> None:
        workers = (os.cpu_count() or 1) if workers is None else workers
        self.most: dict[str, int] = {}
        self._most_threads = _MOST_THREADS * workers
        # Due time of each slice (infinite while it runs) and its queue, if any, in queue order.
        self._slices: dict[Slice, tuple[float, str]] = {}
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._taken = time.monotonic()
        self._threads: set[threading.Thread] = set()
        if workers:
            sys.setswitchinterval(_TURN)
            for work in (self._watch, *[self._work] * workers):
                self._add(work)

    def submit(self, task: Slice, delay: float = 0.0, *, queue: str = "") -> None:
        """Run a slice once, after `delay` seconds at the earliest, in the order of its queue."""
        with self._changed:
            self._slices[task] = time.monotonic() + delay, queue
            self._changed.notify()

    def leave(self, task: Slice) -> bool:
        """Drop a slice from the queue; return whether it had not run."""
        with self._changed:
            due, _ = self._slices.pop(task, (math.inf, ""))
            self._changed.notify()
            return due < math.inf

    def line(self, queue: str) -> list[Slice]:
        """Return the slices that wait in a queue, the next one first."""
        with self._changed:
            running = self.most.get(queue, sys.maxsize)
            return [task for task, (_, own) in self._slices.items() if own == queue][running:]

    def shutdown(self, wait: float = 5.0) -> None:
        """Drop waiting slices, and give running slices `wait` seconds to end."""
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
        """Return the next due time and its slice."""
        places: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)
        due = [
            (due, n, task)
            for n, (task, (due, queue)) in enumerate(self._slices.items())
            if next(places[queue]) < self.most.get(queue, sys.maxsize)
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
