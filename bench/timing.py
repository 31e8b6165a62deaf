"""Measure CPU time in interleaved rounds, relative to a floor of matrix-vector products.

Times are CPU seconds of the calling thread with one BLAS thread, which limits the influence of other load on
the machine. Compared cases alternate within one run; ratios are medians over the rounds, and carry over to
other machines, unlike seconds.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

RANK = 30
# An epoch multiplies by X at least once for the slopes and once for the update of each component.
FLOOR_PRODUCTS = 2 * RANK
LEAST_LAP = 0.02

Lap = Callable[[], float]


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return the CPU time of a call in this thread."""
    begin = time.thread_time()
    call()
    return time.thread_time() - begin


def repeats(seconds: float, least: float = LEAST_LAP) -> int:
    """Return the number of calls of a given duration in a measurable lap."""
    return max(1, int(np.ceil(least / max(seconds, 1e-7))))


def in_turns(laps: Mapping[str, Lap], rounds: int) -> dict[str, list[float]]:
    """Run the laps in alternating rounds and return the seconds reported by each."""
    times: dict[str, list[float]] = {name: [] for name in laps}
    for _ in range(rounds):
        for name, lap in laps.items():
            times[name].append(lap())
    return times


def median_ratio(above: list[float], below: list[float]) -> float:
    """Return the median of above / below over the rounds."""
    return float(np.median(np.asarray(above) / np.asarray(below)))


def floor_lap(X: Any) -> Lap:
    """Return the lap of `FLOOR_PRODUCTS` matrix-vector products with X, in the fastest layout."""
    v = np.ones(X.shape[1])
    if sp.issparse(X):
        layouts = [sp.csr_array(X), sp.csc_array(X)]
    else:
        layouts = [np.ascontiguousarray(X), np.asfortranarray(X)]
    for A in layouts:
        A @ v
    A = min(layouts, key=lambda A: min(cpu_seconds(lambda: A @ v) for _ in range(5)))
    count = repeats(FLOOR_PRODUCTS * cpu_seconds(lambda: A @ v))

    def products() -> None:
        for _ in range(FLOOR_PRODUCTS * count):
            A @ v

    return lambda: cpu_seconds(products) / count


def cpu_model() -> str:
    """Return the name of the processor, if available."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def where() -> dict[str, Any]:
    """Return the date and the machine, saved with every result."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return {
        "date": date.today().isoformat(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "load": round(load, 1),
        "python": platform.python_version(),
        **{package: version(package) for package in ("numba", "numpy", "scipy")},
    }
