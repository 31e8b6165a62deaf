"""What the benchmarks share: processor time in rounds, and a table that is printed and kept."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"


def seconds_of(calls: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """Return the median processor time of each call, after one that is not timed.

    The calls take turns, so that a change in the machine's load meets them all.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            begin = time.thread_time()
            call()
            times[name].append(time.thread_time() - begin)
    return {name: float(np.median(laps)) for name, laps in times.items()}


def print_table(title: str, rows: list[dict[str, Any]]) -> None:
    """Print rows of equal keys as Markdown."""
    print(f"\n{title}\n\n| {' | '.join(rows[0])} |\n|{'---|' * len(rows[0])}")
    for row in rows:
        print("| " + " | ".join(f"{x:.4g}" if isinstance(x, float) else str(x) for x in row.values()) + " |")


def keep(name: str, tables: Mapping[str, list[dict[str, Any]]]) -> None:
    """Write tables to bench/results, with the date and the machine."""
    RESULTS.mkdir(exist_ok=True)
    report = {"date": date.today().isoformat(), "machine": platform.processor() or platform.machine()}
    (RESULTS / f"{name}.json").write_text(json.dumps({**report, **tables}, indent=1) + "\n")
