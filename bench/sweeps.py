"""The wall time of a sweep with one worker and with two.

    python -m bench.sweeps

The same 24 fits of the planted set, once in this process and once by two worker processes, in turns. The
first sweep that starts workers is timed apart; later ones find them at hand. Wall time speaks of free cores
only: the load that the machine had before is part of every row.
"""

from __future__ import annotations

import os
import time
from typing import Any

from threadpoolctl import threadpool_info

from fmviz import Experiment, sweep
from fmviz.lab.background.workers import stream

from .report import alone, pick
from .timing import in_turns, median_ratio

WORKERS = (1, 2)
# Fits of several seconds in all, so that handing out work weighs as it does in use.
STRENGTHS = (0.1, 0.3)


def fits(quick: bool) -> list[Experiment]:
    """Return the experiments: methods, strengths and seeds."""
    return [
        Experiment(
            regularizer=name, lambda_p=0.1, lambda_sparse=strength, seed=seed, tol=0.0, max_epochs=1500
        )
        for name in ("ti", "cs", "l1")
        for strength in STRENGTHS
        for seed in range(1 if quick else 4)
    ]


def wall(experiments: list[Experiment], workers: int) -> float:
    """Return the wall seconds of a sweep."""
    begin = time.perf_counter()
    rows = list(sweep(experiments, n_jobs=workers))
    seconds = time.perf_counter() - begin
    failed = [row.message for row in rows if row.status == "failed"]
    assert not failed, failed
    return seconds


def place(item: int) -> tuple[int, int]:
    """Return where this is called: the process, and how many threads a matrix product takes there."""
    del item
    time.sleep(0.05)
    threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return os.getpid(), max(threads, default=1)


def lost(item: int) -> tuple[int, int]:
    """Return what stands for a worker that died."""
    return -item, 0


def run(quick: bool) -> dict[str, Any]:
    """Measure; the load is that of the minute before."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    experiments = fits(quick)
    # What is compiled or loaded for the first time is in none of the times.
    wall(experiments[:: len(STRENGTHS)], 1)
    begun = {n: wall(experiments, n) for n in WORKERS}
    laps = {str(n): (lambda n=n: wall(experiments, n)) for n in WORKERS}
    times = in_turns(laps, 2 if quick else 5)
    rows = []
    for n in WORKERS:
        places = [where for _, where in stream(place, list(range(8 * n)), lost, n_jobs=n)]
        rows.append(
            {
                "workers": n,
                "fits": len(experiments),
                "first": begun[n],
                "seconds": min(times[str(n)]),
                "speedup": median_ratio(times[str(WORKERS[0])], times[str(n)]),
                "processes": len({process for process, _ in places}),
                "threads": max(threads for _, threads in places),
                "cores": os.cpu_count(),
                "load": load,
            }
        )
    return {"rows": rows}


def markdown(result: dict[str, Any]) -> str:
    """Return the table."""
    columns = {
        "workers": "workers",
        "fits": "fits",
        "first": "first sweep, s",
        "seconds": "later ones, s",
        "speedup": "speed-up",
        "processes": "processes",
        "threads": "threads of each",
        "cores": "cores",
        "load": "load before",
    }
    return pick(result["rows"], columns)


if __name__ == "__main__":
    alone("sweeps", run, markdown)
