"""Limits of memory, disk space and uploads, and a cache bounded by the size of its values."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, TypeVar

Value = TypeVar("Value")

_UNITS = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}


def memory_limit() -> float:
    """Return the memory limit of results in bytes: ``FMVIZ_MEMORY``, or 1 GB."""
    return _limit("FMVIZ_MEMORY", 1e9)


def uploads_limit() -> float:
    """Return the limit of all uploads in bytes: ``FMVIZ_UPLOADS``, or 2 GB."""
    return _limit("FMVIZ_UPLOADS", 2e9)


def disk_limit(folder: Path) -> float:
    """Return the limit of encoded rows on disk in bytes: ``FMVIZ_DISK``, or half of the free space."""
    return _limit("FMVIZ_DISK", shutil.disk_usage(folder).free / 2)


def _limit(name: str, default: float) -> float:
    if not (text := os.environ.get(name, "").strip()):
        return default
    if (match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]b)", text, re.IGNORECASE)) is None:
        raise ValueError(f"{name} is {text!r}; give a number with a unit, such as 500 MB or 2 GB.")
    return float(match[1]) * _UNITS[match[2].lower()]


class WeighedCache(Generic[Value]):
    """A thread-safe cache that evicts the least recently used values.

    Parameters
    ----------
    most : int
        Maximum number of values. They take at most a quarter of `memory_limit`; the last value is always
        kept.
    weigh : callable
        Returns the size of a value in bytes.
    """

    def __init__(self, most: int, weigh: Callable[[Value], float]) -> None:
        self._most, self._weigh = most, weigh
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[Value, float]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the cached value of a key, computed by `make` if missing."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = make()
        with self._lock:
            self._values[key] = value, self._weigh(value)
            while len(self._values) > self._most or (
                len(self._values) > 1
                and sum(weight for _, weight in self._values.values()) > memory_limit() / 4
            ):
                self._values.popitem(last=False)
        return value
