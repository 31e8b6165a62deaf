"""Measure the time to relative distances of 1e-4 and 1e-6 above the best known objective.

    python -m bench.time_to

TI and CS on planted data (N = 200 and 20,000) and on MovieLens 100K (if in FMVIZ_DATA, from two starts). From
the same start run our sweeps with the settings of `fmviz.regularization_path` (active sets and
extrapolation), our sweeps as published, both again with `revive` if these leave columns of P at 0,
sparsepoly, and the other solvers, each for as long as ours took. Only solver time counts, not set-up or
evaluation.

The objective is not convex. As published, our sweeps never leave a zero column; in sparsepoly, rounding
errors revive some. The two therefore end in different minima, and `revive` in a lower one than both. The best
known objective is the lowest end of all sweeps of either program, and the reference for both; another solver
that ends lower is negative in the column "above". Ratios are relative to the first of our sweeps to reach the
best. If a program does not reach it, its time is infinite, and the ratio is a lower bound based on its total
time: at least 15 times our time, and until it converges or has had 40 times. The time to its own end, and
ours to the same objective, are also listed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.starts.informed import QUICK

from .data import Data, movielens, planted
from .ours import Ours, alive
from .peers import SparsePoly, sparsepoly_python
from .report import alone, at_least, pick
from .timing import floor_lap

LEVELS = (1e-4, 1e-6)
# The settings of `fmviz.regularization_path`.
FAST = {**QUICK, "anderson": 5}
# The required speed-up over sparsepoly.
BAR = 15.0
# sparsepoly is stopped after this multiple of our time, or after the bar if it has converged.
PATIENCE = 40.0
SWEEPS = {"ti": "pcd", "cs": "pbcd"}
STEPS: tuple[dict[str, float], ...] = ({"eta0": 1.0}, {"eta0": 0.1}, {"eta0": 0.01})
OTHERS: dict[str, tuple[dict[str, float], ...]] = {
    "apgd": ({},),
    "nmapgd": ({},),
    "psgd": STEPS,
    "mb_psgd": STEPS,
    "mb_katyusha": STEPS,
}


@dataclass
class Trace:
    """The trace of a run: epochs, solver seconds and objective, at increasing intervals."""

    epochs: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    objectives: list[float] = field(default_factory=list)

    def add(self, epochs: int, seconds: float, objective: float) -> None:
        """Add a point, given the epochs and seconds since the previous one."""
        self.epochs.append(epochs + (self.epochs[-1] if self.epochs else 0))
        self.seconds.append(seconds + (self.seconds[-1] if self.seconds else 0.0))
        self.objectives.append(objective)

    @property
    def end(self) -> float:
        """The lowest objective."""
        return min(self.objectives)

    def to_reach(self, target: float) -> float:
        """Return the time in seconds at which the objective first reached `target`; infinite if never."""
        met = (s for s, o in zip(self.seconds, self.objectives, strict=True) if o <= target)
        return next(met, math.inf)

    def settled(self) -> bool:
        """Whether the relative decrease in the last third of the epochs was below 1e-8."""
        then = next(i for i, epochs in enumerate(self.epochs) if epochs >= self.epochs[-1] * 2 / 3)
        return self.epochs[-1] >= 30 and self.objectives[then] - self.end <= 1e-8 * abs(self.end)


def in_steps(trace: Trace) -> int:
    """Return the number of epochs to run next: a twentieth of those completed."""
    return max(1, trace.epochs[-1] // 20) if trace.epochs else 1


def own_sweeps(
    problem: Problem, solver: str, start: Parameters, seconds: float, **params: int
) -> tuple[Trace, Parameters]:
    """Run our solver until it converges or its time is up; also return the end."""
    run, trace = Ours(problem, solver, start, **params), Trace()
    while not trace.epochs or (trace.seconds[-1] < seconds and not trace.settled()):
        n = in_steps(trace)
        trace.add(n, run.advance(n), problem.objective(run.parameters()))
    end = run.parameters()
    run.close()
    return trace, end


def peer_sweeps(
    peer: SparsePoly,
    problem: Problem,
    solver: str,
    start: Parameters,
    target: float,
    least: float,
    seconds: float,
) -> Trace:
    """Run sparsepoly until it reaches the target, converges after the minimum time, or its time is up."""
    peer.begin(problem, solver, start)
    trace = Trace()
    # The first report includes the set-up; the second epoch replaces the first.
    first = problem.objective(peer.parameters())
    epoch = peer.advance(1)["seconds"]
    trace.add(1, epoch, first)
    trace.add(1, epoch, problem.objective(peer.parameters()))
    while trace.seconds[-1] < (least if trace.settled() else seconds) and trace.end > target:
        n = in_steps(trace)
        trace.add(n, peer.advance(n)["seconds"], problem.objective(peer.parameters()))
    peer.end()
    return trace


def other(problem: Problem, solver: str, start: Parameters, seconds: float) -> Trace | None:
    """Return the best run of a solver over its step sizes; None if all diverge."""
    best = None
    for step in OTHERS[solver]:
        run, trace = Ours(problem, solver, start, **step), Trace()
        while not trace.epochs or (trace.seconds[-1] < seconds and not run.diverged):
            n = in_steps(trace)
            trace.add(n, run.advance(n), problem.objective(run.parameters()))
        run.close()
        if not run.diverged and np.isfinite(trace.end) and (best is None or trace.end < best.end):
            best = trace
    return best


def summary(
    traces: dict[str, Trace], ours: str, best: float, about: dict[str, Any], theirs: str | None = None
) -> list[dict[str, Any]]:
    """Return a row for every run: its times to the levels above `best`, and their ratios to ours.

    Also its time to within 1e-6 of the end of `theirs`, and theirs divided by the smallest of all.
    """
    rows = []
    meeting = traces[theirs].end * (1.0 + 1e-6) if theirs else -math.inf
    soonest = min(trace.to_reach(meeting) for trace in traces.values())
    for name, trace in traces.items():
        row = about | {
            "run": name,
            "epochs": trace.epochs[-1],
            "seconds": trace.seconds[-1],
            "end": trace.end,
            "above": trace.end / best - 1.0,
            "own": trace.to_reach(trace.end * (1.0 + 1e-6)),
            "meet": trace.to_reach(meeting),
            "bound": False,
        }
        row["times_meet"] = row["meet"] / soonest if row["meet"] < math.inf else None
        row["times_own"] = row["own"] / traces[ours].to_reach(traces[ours].end * (1.0 + 1e-6))
        for level in LEVELS:
            target = best * (1.0 + level)
            took, needed = trace.to_reach(target), traces[ours].to_reach(target)
            row[f"to_{level:g}"] = took
            row[f"times_{level:g}"] = min(took, trace.seconds[-1]) / needed if needed < math.inf else None
            row["bound"] = row["bound"] or took == math.inf
        rows.append(row)
    return rows


def problems(quick: bool) -> list[Data]:
    """Return the data sets.

    There is no linear term: with one, rounding errors lead the sweeps of the two programs over MovieLens into
    different minima after about ten epochs, even for CS.
    """
    rows = []
    for n in (200,) if quick else (200, 20_000):
        data = planted(n, 80, 8, 20)
        rows.append(Data(f"planted N = {n:,}", data.X, data.y, 0.1, {"": 0.1}, 0.01))
    movies = movielens()
    if movies is not None and not quick:
        rows.append(movies)
    return rows


def race(
    data: Data, regularizer: str, seed: int, seconds: float, peer: SparsePoly | None, others: Iterable[str]
) -> list[dict[str, Any]]:
    """Run all programs and solvers from a common start; return the rows."""
    problem, solver = data.problem(regularizer), SWEEPS[regularizer]
    start = problem.start(data.init_scale, np.random.default_rng(seed))
    ways: dict[str, dict[str, int]] = {f"ours {solver}, as in paths": FAST, f"ours {solver}": {}}
    ends = {name: own_sweeps(problem, solver, start, seconds, **way) for name, way in ways.items()}
    dead = any(not end.P.any(axis=0).all() for _, end in ends.values())
    if dead and problem.penalty.saddles:
        revived = {f"{name}, revived": way | {"revive": True} for name, way in ways.items()}
        ends |= {
            name: own_sweeps(problem, solver, start, 4.0 * seconds, **way) for name, way in revived.items()
        }
    traces = {name: trace for name, (trace, _) in ends.items()}
    had = max(trace.seconds[-1] for trace in traces.values())
    best = min(trace.end for trace in traces.values())
    theirs = None
    if peer is not None:
        target = best * (1.0 + LEVELS[-1])
        needed = min(trace.to_reach(target) for trace in traces.values())
        theirs = f"sparsepoly {solver}"
        traces[theirs] = peer_sweeps(
            peer, problem, solver, start, target, BAR * needed, max(PATIENCE * needed, seconds)
        )
        best = min(best, traces[theirs].end)
    target = best * (1.0 + LEVELS[-1])
    ours = min(ends, key=lambda name: (traces[name].to_reach(target), traces[name].end))
    for name in others:
        trace = other(problem, name, start, had)
        if trace is not None:
            traces[f"ours {name}"] = trace
    about = {
        "data": data.name,
        "regularizer": regularizer,
        "start": seed,
        "alive": alive(ends[ours][1]),
        "settled": traces[ours].settled(),
    }
    return summary(traces, ours, best, about, theirs)


def run(quick: bool) -> dict[str, Any]:
    """Measure."""
    result: dict[str, Any] = {"rows": [], "without": []}
    seconds = 1.0 if quick else 10.0
    movies = movielens()
    if movies is None:
        result["without"].append("MovieLens 100K (FMVIZ_DATA does not hold it)")
    if sparsepoly_python() is None:
        result["without"].append("sparsepoly")
    with contextlib.ExitStack() as stack:
        peer = None if sparsepoly_python() is None else stack.enter_context(SparsePoly())
        for data in problems(quick):
            lap = floor_lap(data.X)
            floor = float(np.median([lap() for _ in range(5)]))
            several = movies is not None and data.name == movies.name
            for regularizer, seed in product(SWEEPS, range(2 if several else 1)):
                rows = race(data, regularizer, seed, seconds, peer, () if quick else OTHERS)
                for row in rows:
                    row["floors"] = row["to_1e-06"] / floor
                    print(
                        f"  {data.name}, {regularizer}: {row['run']} {row['to_1e-06']:.3g} s to 1e-6",
                        flush=True,
                    )
                result["rows"] += rows
    return result


def markdown(result: dict[str, Any]) -> str:
    """Return the table."""
    columns = {
        "data": "data",
        "regularizer": "regularizer",
        "start": "start",
        "run": "run",
        "epochs": "epochs",
        "seconds": "seconds in all",
        "end": "end",
        "above": "end above the best",
        "to_0.0001": "s to 1e-4",
        "to_1e-06": "s to 1e-6",
        "floors": "in floors of an epoch",
        "times_0.0001": "times ours, 1e-4",
        "times_1e-06": "times ours, 1e-6",
        "times_own": "times ours, to 1e-6 above its own end",
        "meet": "s to 1e-6 above sparsepoly's end",
        "times_meet": "times the first there",
        "bound": "lower bound",
        "settled": "settled",
        "alive": "alive",
    }
    text = pick(result["rows"], columns)
    if result["without"]:
        text = f"Left out, since not on this machine: {', '.join(result['without'])}.\n\n{text}"
    return text


def bars(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return our speed-ups over sparsepoly at 1e-6 above the best objective, or above its own end."""
    rows = []
    for row in result["rows"]:
        if row["run"].startswith("sparsepoly"):
            name = f"{row['regularizer']}, {row['data']}, start {row.get('start', 0)}"
            case = f"{name}: sparsepoly's time to 1e-6 over ours"
            if not row.get("settled"):
                case += " (ours had not settled)"
            elif row["bound"]:
                case += " (it did not get there: from all the time it had)"
            rows.append(at_least("3", case, row["times_1e-06"] or 0.0, BAR))
            if row["bound"]:
                case = f"{name}: sparsepoly's time to its own end over ours to the same objective"
                rows.append(at_least("3", case, row.get("times_meet") or 0.0, BAR))
    return rows


if __name__ == "__main__":
    alone("time_to", run, markdown)
