"""Apply functions to blocks of rows, in sequence or in threads; results do not depend on the number."""

from __future__ import annotations

import contextvars
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, TypeVar

from .errors import whole_number

Item = TypeVar("Item")
Result = TypeVar("Result")


def count_cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(eq=False)
class Threads:
    """A mapper over blocks of rows, as in `Problem`: `n_jobs` threads, or a plain loop for 1.

    Another object with the same attributes may replace it, for blocks that are not in this process.

    Attributes
    ----------
    n_jobs : int
        The number of threads.
    seconds : float
        The CPU time of all threads so far, without that of callers.
    """

    n_jobs: int = 1
    seconds: float = 0.0

    @classmethod
    def of(cls, n_jobs: int | None) -> Threads:
        """Return a mapper by a number as in scikit-learn: None is 1, -1 one thread per core, -2 one less, ….

        Raises
        ------
        ValueError
            If it is 0 or not a whole number.
        """
        if (n := whole_number("n_jobs", 1 if n_jobs is None else n_jobs)) == 0:
            raise ValueError("n_jobs = 0 leaves no thread; use a number from 1, or -1 for one per core.")
        return cls(n if n > 0 else max(1, count_cores() + 1 + n))

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results for all items, in their order."""
        if (n_threads := min(self.n_jobs, len(items))) < 2:
            yield from map(function, items)
            return
        # The caller's context includes its floating-point error handling; a context runs in one thread only.
        contexts = [contextvars.copy_context() for _ in items]

        # A pool per call takes a tenth of a millisecond; threads would not survive a fork of the process.
        with ThreadPoolExecutor(n_threads, "fmviz-rows") as pool:
            for result, seconds in pool.map(_timed_in, contexts, repeat(function), items):
                self.seconds += seconds
                yield result

    def then(self, function: Callable[[Any], Any], source: Callable[[], Any]) -> Any:
        """Return the source of a function of the rows of a source, see `fmviz.engine.parts.Parts`."""
        return partial(_composed, function, source)


def timed(function: Callable[[Item], Result], item: Item) -> tuple[Result, float]:
    """Return the result for an item, and the CPU time that it took."""
    begin = time.thread_time()
    return function(item), time.thread_time() - begin


def _timed_in(context: contextvars.Context, *arguments: Any) -> Any:
    return context.run(timed, *arguments)


def _composed(function: Callable[[Any], Any], source: Callable[[], Any]) -> Any:
    return function(source())


IN_TURN = Threads()
