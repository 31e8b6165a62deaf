"""Matrix products on one thread of BLAS: with two threads their sums are rounded in another way."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import repeat
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

_lock = threading.Lock()
# The limits of the process before the first block, while any is entered, in whatever thread.
_before: list[int] = []
_n_inside = 0


@cache
def _libraries() -> list[Any]:
    """Return the libraries of the process, which NumPy and SciPy load when they are imported."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _limit(numbers: Iterable[int]) -> None:
    for library, number in zip(_libraries(), numbers, strict=False):
        # The public function may do nothing in any thread but the first that has called it.
        getattr(library, "_real_set_num_threads", library.set_num_threads)(number)


@contextmanager
def one_thread() -> Iterator[None]:
    """Give matrix products one thread inside the block, or a decorated function.

    The limit is the process's. Blocks of several threads overlap; after the last of them it is as before the
    first. Never to be entered across a `yield`: see `each_on_one_thread`.
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
    """Yield what a generator yields, and compute each item, and its end, by `one_thread`."""
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
