"""Run independent tasks in parallel processes, stream their results, and survive a worker's death."""

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
    """Call `function`, importable by name, on every item; yield (index, result) as soon as it is there.

    Items are started in their order, by so many workers, or one a core for -1. Each call has one thread: the
    matrix products of a worker, and the kernels, take one core. Closing the generator, or an exception in its
    consumer, ends the workers; what `function` raises ends the whole. ``lost(item)`` is the result for an
    item whose worker died, for lack of memory for instance. `backend` is one of joblib, or None for that of
    an enclosing `joblib.parallel_config`.
    """
    waiting = dict(enumerate(items))
    while waiting:
        started: list[int] = []
        try:
            for index, result in _results(function, dict(waiting), started, n_jobs, backend):
                del waiting[index]
                yield index, result
        except BrokenProcessPool:
            # One of those that were at work killed its process, and all others went with it. Alone it takes
            # nothing with it.
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
        # joblib draws from here in threads of its own.
        for index, item in tasks.items():
            started.append(index)
            yield delayed(_on_one_thread)(function, index, item, os.getpid())

    own: dict[str, Any] = {}
    if backend == "loky":
        own = {"inner_max_num_threads": 1, "initializer": _end_with, "initargs": (os.getpid(),)}
    with nullcontext() if backend is None else parallel_config(backend, n_jobs=n_jobs, **own):
        # Batches would hold finished results back.
        results = Parallel(n_jobs, return_as="generator_unordered", batch_size=1)(calls())
    try:
        # Not `yield from`, which would hand a close on outside the guard below.
        for result in results:  # noqa: UP028
            yield result
    finally:
        with warnings.catch_warnings():
            # Told by joblib to whoever closes early: which results are dropped. That is what was asked for.
            warnings.filterwarnings("ignore", r"[\s\S]*tasks (have been|which were)", UserWarning)
            results.close()


def checked_jobs(n_jobs: int) -> int:
    """Return the number of workers, or raise ValueError with a sentence."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1):
        raise ValueError(f"n_jobs = {n_jobs!r}; give a number of workers from 1, or -1 for one a core.")
    return n_jobs


def _end_with(home: int) -> None:
    """Let this worker end soon after the process that started it, however that ended."""

    def watch() -> None:
        while os.getppid() == home:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="fmviz-parent", daemon=True).start()


@cache
def _settle() -> None:
    # A worker collects garbage every second, which need not go through all that was imported each time.
    gc.collect()
    gc.freeze()


def _on_one_thread(
    function: Callable[[Item], Result], index: int, item: Item, home: int
) -> tuple[int, Result]:
    # Workers of this machine are started with one thread; other backends, and this process itself, are not.
    with one_thread():
        result = function(item)
    if os.getpid() != home:
        _settle()
    return index, result
