"""Time a warm-started regularization path of 20 strengths.

    python -m bench.path

The strengths decrease from 1 to 1e-3; a fit ends when no parameter changes by more than 1e-4 of the largest.
If sparsepoly is installed, it follows the same path and leaves each strength when its objective is within
1e-4 of our final one; its time is compared with ours to the same accuracy. A fit that has not reached it
after 20 times our epochs ends and counts as short.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fmviz.engine.fit import Budget, Fit
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot

from .data import Data, planted
from .peers import SparsePoly, sparsepoly_python
from .report import alone, pick
from .timing import floor_lap

COUNT = 20
CLOSE = 1e-4
PATIENCE = 20


def strengths(most: float, least: float) -> list[float]:
    """Return the strengths of the path, in decreasing order."""
    return [float(x) for x in np.geomspace(most, least, COUNT)]


def our_path(problem: Problem, solver: str, start: Parameters) -> list[list[Snapshot]]:
    """Return the snapshots of every fit."""
    budget = Budget(epochs=1_000, tol=1e-4, certify_every=2**31)
    fits = []
    for strength in strengths(1.0, 1e-3):
        step = replace(problem, lambda_sparse=strength)
        fits.append(list(Fit.of(step, solver, budget, start=start, rng=np.random.default_rng(0)).epochs()))
        start = fits[-1][-1].parameters
    return fits


def close(fit: list[Snapshot]) -> Snapshot:
    """Return the first snapshot within `CLOSE` of the end."""
    return next(s for s in fit if s.objective <= fit[-1].objective * (1.0 + CLOSE))


def their_path(
    problem: Problem, fits: list[list[Snapshot]], solver: str, start: Parameters
) -> tuple[float, int, int]:
    """Run sparsepoly along the path; return its seconds, its epochs, and the number of short fits."""
    seconds, epochs, short = 0.0, 0, 0
    with SparsePoly() as peer:
        for strength, fit in zip(strengths(1.0, 1e-3), fits, strict=True):
            step = replace(problem, lambda_sparse=strength)
            target = fit[-1].objective * (1.0 + CLOSE)
            peer.begin(step, solver, start)
            spent, done = 0.0, 1
            while step.objective(peer.parameters()) > target:
                if done >= PATIENCE * max(fit[-1].epoch, 10):
                    short += 1
                    break
                n = max(1, done // 20)
                spent += peer.advance(n)["seconds"]
                done += n
            if done == 1:
                spent, done = peer.advance(1)["seconds"], 2
            # The time of the first epoch includes the set-up; the mean of the others replaces it.
            seconds, epochs = seconds + spent * done / (done - 1), epochs + done
            start = peer.parameters()
            peer.end()
    return seconds, epochs, short


def run(quick: bool) -> dict[str, Any]:
    """Measure."""
    rows = []
    for n in (200,) if quick else (200, 20_000):
        sample = planted(n, 80, 8, 20)
        data = Data(f"planted N = {n:,}", sample.X, sample.y, 0.01, {"": 1.0}, 0.01)
        floor = floor_lap(data.X)
        for regularizer, solver in (("ti", "pcd"), ("cs", "pbcd")):
            problem = data.problem(regularizer)
            start = problem.start(data.init_scale, np.random.default_rng(0))
            fits = our_path(problem, solver, start)
            ends = [fit[-1] for fit in fits]
            seconds = sum(end.seconds for end in ends)
            row: dict[str, Any] = {
                "data": data.name,
                "regularizer": regularizer,
                "solver": solver,
                "seconds": seconds,
                "close": sum(close(fit).seconds for fit in fits),
                "epochs": sum(end.epoch for end in ends),
                "converged": sum(end.status is not None and end.status.converged for end in ends),
                "ratio": seconds / float(np.median([floor() for _ in range(5)])),
                "interactions": [end.used_interactions for end in ends],
            }
            if sparsepoly_python() is not None:
                theirs, epochs, short = their_path(problem, fits, solver, start)
                row |= {"peer": theirs, "peer_epochs": epochs, "peer_short": short}
                row["speedup"] = theirs / row["close"]
            print(f"  {data.name}, {regularizer}: {seconds:.3g} s", flush=True)
            rows.append(row)
    return {"rows": rows}


def markdown(result: dict[str, Any]) -> str:
    """Return the table."""
    return pick(
        result["rows"],
        {
            "data": "data",
            "regularizer": "regularizer",
            "solver": "solver",
            "seconds": f"{COUNT} fits, s",
            "epochs": "epochs",
            "converged": "converged",
            "ratio": "in floors of an epoch",
            "close": "s to 1e-4",
            "peer": "sparsepoly, s to 1e-4",
            "peer_epochs": "its epochs",
            "peer_short": "its fits that fell short",
            "speedup": "times faster",
        },
    )


if __name__ == "__main__":
    alone("path", run, markdown)
