"""Measure the growth of epoch time with features and non-zero entries.

    python -m bench.scaling

Dense data of 2,500 rows with d from 1,000 to 4,000, and sparse text-like data of fixed shape with increasing
numbers of non-zero entries. The exponent is the slope of log time over log size; the exponent of the floor is
listed for comparison, since exceeding a cache increases both.

Epochs in two threads are compared by elapsed time to those in one, beside a control that needs little memory:
cosines, which show how many threads the machine can run at that moment.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from timeit import timeit
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.engine.threads import Threads

from .data import Data, ml100k_like, one_hot, planted, text
from .epochs import started
from .ours import alive
from .report import alone, at_most, pick
from .timing import Lap, floor_lap, in_turns, median_ratio

IN_THREADS = (("ti", "apgd"), ("l2", "cd"), ("l1", "pcd"))
SWEEPS = (("ti", "pcd"), ("l1", "pcd"), ("cs", "pbcd"), ("l21", "pbcd"))


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return the slope of a linear fit to the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def grown(kind: str, sets: list[Data], sizes: list[int], rounds: int) -> list[dict[str, Any]]:
    """Time the sweeps on all data sets in alternating rounds; return a row per method."""
    floors = [floor_lap(data.X) for data in sets]
    rows = []
    for regularizer, solver in SWEEPS:
        runs = [started(data.problem(regularizer), data, solver)[:2] for data in sets]
        laps = {f"{i}": lap for i, (_, lap) in enumerate(runs)}
        times = in_turns(laps | {f"floor {i}": floor for i, floor in enumerate(floors)}, rounds)
        seconds = [float(np.median(times[f"{i}"])) for i in range(len(sets))]
        base = [float(np.median(times[f"floor {i}"])) for i in range(len(sets))]
        rows.append(
            {
                "in": kind,
                "regularizer": regularizer,
                "solver": solver,
                "sizes": sizes,
                "seconds": seconds,
                "exponent": exponent(sizes, seconds),
                "floor_exponent": exponent(sizes, base),
                "alive": [alive(run.parameters()) for run, _ in runs],
            }
        )
        print(f"  {solver} {regularizer} in {kind}: exponent {rows[-1]['exponent']:.3f}", flush=True)
    return rows


def in_threads(n: int, rounds: int) -> list[dict[str, Any]]:
    """Compare two threads to one on one-hot data with four fields."""
    users, angles = ml100k_like(n, n // 20, n // 40), [np.linspace(0.0, 1.0, 100_000)] * 100
    data = replace(users, X=sp.hstack([users.X, one_hot(n, 500, 50, np.random.default_rng(1))[0]], "csr"))
    laps: dict[Any, Lap] = {}
    for mapper in map(Threads, (1, 2)):
        laps["control", mapper.n_jobs] = partial(timeit, lambda own=mapper: [*own(np.cos, angles)], number=1)
        for regularizer, solver in IN_THREADS:
            epochs, _, _ = started(data.problem(regularizer, mapper=mapper), data, solver)
            laps[f"{solver} {regularizer}", mapper.n_jobs] = partial(timeit, epochs.advance, number=1)
    times = in_turns(laps, rounds)
    return [
        {
            "data": "one-hot {:,} × {:,}".format(*data.X.shape),
            "case": case,
            "ratio": median_ratio(times[case, 1], times[case, 2]),
        }
        for case, n_jobs in laps
        if n_jobs == 1
    ]


def run(quick: bool) -> dict[str, Any]:
    """Measure."""
    rounds = 3 if quick else 7
    widths = (1_000, 2_000) if quick else (1_000, 2_000, 3_000, 4_000)
    dense = [planted(2_500, d, d // 100, 0) for d in widths]
    rows = grown("d", dense, list(widths), rounds)
    sparse = [text(per_row=n) for n in ((15, 30) if quick else (15, 30, 60, 120, 240))]
    rows += grown("nnz", sparse, [int(data.X.nnz) for data in sparse], rounds)
    return {"rows": rows, "threads": in_threads(200_000 if quick else 1_000_000, rounds)}


def markdown(result: dict[str, Any]) -> str:
    """Return the table."""
    rows = [
        row
        | {
            "sizes": " / ".join(f"{size:,}" for size in row["sizes"]),
            "seconds": " / ".join(f"{1e3 * seconds:.3g}" for seconds in row["seconds"]),
        }
        for row in result["rows"]
    ]
    columns = {
        "in": "in",
        "regularizer": "regularizer",
        "solver": "solver",
        "sizes": "sizes",
        "seconds": "epoch, ms",
        "exponent": "exponent",
        "floor_exponent": "the floor's exponent",
    }
    return (
        f"{pick(rows, columns)}\n\nTwo threads against one, how many times as fast:\n\n"
        f"{pick(result.get('threads', []), {name: name for name in ('data', 'case', 'ratio')})}"
    )


def bars(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare the exponents with their bar."""
    return [
        at_most("5", f"exponent in {row['in']}, {row['solver']} {row['regularizer']}", row["exponent"], 1.05)
        for row in result["rows"]
    ]


if __name__ == "__main__":
    alone("scaling", run, markdown)
