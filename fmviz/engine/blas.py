"""Restrict BLAS to a single thread, since rounding depends on the number of threads."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import repeat
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

# A generator may be closed by garbage collection inside the lock.
_lock = threading.RLock()
# The limits of the process before the first active block in any thread.
_before: list[int] = []
_n_inside = 0


@cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries of the process, loaded when NumPy and SciPy are imported."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _limit(numbers: Iterable[int]) -> None:
    for library, number in zip(_libraries(), numbers, strict=False):
        # The public function may have no effect in any thread but the first to call it.
        getattr(library, "_real_set_num_threads", library.set_num_threads)(number)


@contextmanager
def one_thread() -> Iterator[None]:
    """Restrict matrix products to one thread inside the block or the decorated function.

    The limit applies to the process. Blocks of several threads may overlap; after the last of them, the limit
    before the first is restored. Do not hold the block across a `yield`: see `each_on_one_thread`.
    """
    global _n_inside
    with _lock:
        if not _n_inside:
            _before[:] = [library.get_num_threads() for library in _libraries()]
            _limit(repeat(1))
        _n_inside += 1
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if not _n_inside:
                _limit(_before)


def each_on_one_thread(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """Yield the items of a generator, computing each item and the end under `one_thread`."""
    end = object()
    try:
        while True:
            with one_thread():
                item: Any = next(items, end)
            if item is end:
                return
            yield item
    finally:
        with one_thread():
            items.close()
