"""Independent tasks in parallel processes, with streamed results and tolerance of dying workers."""

from __future__ import annotations

import gc
import os
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from functools import cache
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config

from fmviz.engine.blas import one_thread

Item = TypeVar("Item")
Result = TypeVar("Result")

_WATCH_SECONDS = 0.5


def stream(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    lost: Callable[[Item], Result],
    *,
    n_jobs: int = -1,
    backend: str | None = "loky",
) -> Generator[tuple[int, Result]]:
    """Call `function`, importable by name, on every item; yield (index, result) on completion.

    Items start in order, on `n_jobs` workers, or one per core for -1. Each call has a single thread,
    including matrix products and kernels. Closing the generator, or an exception in its consumer, ends the
    workers; an exception in `function` propagates. ``lost(item)`` is the result for an item whose worker
    died, for instance for lack of memory. `backend` is a joblib backend, or None for that of an enclosing
    `joblib.parallel_config`.
    """
    waiting = dict(enumerate(items))
    while waiting:
        started: list[int] = []
        try:
            for index, result in _results(function, dict(waiting), started, n_jobs, backend):
                del waiting[index]
                yield index, result
        except BrokenProcessPool:
            # One of the running items killed its process and thereby the pool. Run alone, it affects no
            # other item.
            for index in [i for i in started if i in waiting]:
                item = waiting.pop(index)
                try:
                    yield from _results(function, {index: item}, [], 2, backend)
                except BrokenProcessPool:
                    yield index, lost(item)


def _results(
    function: Callable[[Item], Result],
    tasks: dict[int, Item],
    started: list[int],
    n_jobs: int,
    backend: str | None,
) -> Generator[tuple[int, Result]]:
    def calls() -> Iterator[Any]:
        # joblib draws from here in its own threads.
        for index, item in tasks.items():
            started.append(index)
            yield delayed(_on_one_thread)(function, index, item, os.getpid())

    own: dict[str, Any] = {}
    if backend == "loky":
        own = {"inner_max_num_threads": 1, "initializer": _end_with, "initargs": (os.getpid(),)}
    with nullcontext() if backend is None else parallel_config(backend, n_jobs=n_jobs, **own):
        # Batches would delay finished results.
        results = Parallel(n_jobs, return_as="generator_unordered", batch_size=1)(calls())
    try:
        # Not `yield from`, which would forward a close outside the guard below.
        for result in results:  # noqa: UP028
            yield result
    finally:
        with warnings.catch_warnings():
            # joblib warns about dropped results after an early close, which is intended.
            warnings.filterwarnings("ignore", r"[\s\S]*tasks (have been|which were)", UserWarning)
            results.close()


def checked_jobs(n_jobs: int) -> int:
    """Return the number of workers, or raise ValueError."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1):
        raise ValueError(f"n_jobs = {n_jobs!r}; give a positive number of workers, or -1 for one per core.")
    return n_jobs


def _end_with(home: int) -> None:
    """Make this worker end soon after its parent process."""

    def watch() -> None:
        while os.getppid() == home:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="fmviz-parent", daemon=True).start()


@cache
def _settle() -> None:
    # A worker collects garbage every second; exclude imported objects from it.
    gc.collect()
    gc.freeze()


def _on_one_thread(
    function: Callable[[Item], Result], index: int, item: Item, home: int
) -> tuple[int, Result]:
    # Local workers start with one thread; other backends, and this process, do not.
    with one_thread():
        result = function(item)
    if os.getpid() != home:
        _settle()
    return index, result
