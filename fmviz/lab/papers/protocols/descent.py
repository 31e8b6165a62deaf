"""Objectives over time: several methods on one problem, and which of them is first to come down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fmviz.engine.drive import Budget, chosen_solver, iterate
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.papers.base import Runner
from fmviz.lab.papers.checkpoints import key_of
from fmviz.lab.papers.reproduction import Reproduction, Row, Tables, rows_where
from fmviz.lab.papers.statements import Said, Verdict, agreed, listed

# One row for each epoch up to this one, then fewer and fewer.
_ALL_UP_TO = 10
_GROWTH = 1.15
# Of the way down; and above the lowest objective.
SHARE = 0.01
STAGES = {
    "early": f"All but {SHARE:.0%} of the way down",
    "late": f"to {SHARE:.0%} above the lowest objective",
}
CLOSE = (
    f"all but {SHARE:.0%} of the way from the start to the lowest value of all methods, and to {SHARE:.0%} "
    "above that value"
)
# What "much faster" means at least.
MUCH = 2.0
Times = Mapping[str, Mapping[str, float]]


# ------------------------------------------------------------------------------------------------------ runs


@dataclass(frozen=True)
class Line:
    """A line of a figure.

    Attributes
    ----------
    label, solver : str
        Its name, and that of the solver.
    tries : sequence of mapping
        The solver's own parameters; of several the one with the lowest end is shown.
    """

    label: str
    solver: str = "auto"
    tries: Sequence[Mapping[str, Any]] = ({},)


def n_runs(lines: Sequence[Line]) -> dict[str, int]:
    """Return how many runs every line is."""
    return {line.label: len(line.tries) for line in lines}


def label_of(line: Line, own: Mapping[str, Any]) -> str:
    """Return what a run of a line with some of its parameters is called."""
    return f"{line.label}, {line.tries.index(own)}" if len(line.tries) > 1 else line.label


Prepare = Callable[[Line], tuple[Problem, Parameters]]
Value = Callable[[Snapshot], float]


@dataclass(frozen=True)
class Race:
    """The lines of one panel, from one start.

    Attributes
    ----------
    panel, seed : str, int
        What the rows are told apart by.
    data : str
        The name of the data in `Reproduction.data`.
    lines : sequence of Line
        Which.
    open : callable
        ``open(repro)`` reads the data, notes them, and returns two functions: of a line, its
        problem and its start; of a snapshot, the objective that is drawn.
    seconds : float
        Solver seconds of each run.
    ending : callable
        ``ending(line, own, course, last)`` returns further columns of the table "ends", from the parameters
        of the solver, the rows of the course and the last snapshot.
    mark : callable
        ``mark(own)`` tells the run from others of its line in the checkpoints.
    traced : bool
        Whether the course is kept, or its end alone.
    """

    panel: str
    seed: int
    data: str
    lines: Sequence[Line]
    open: Callable[[Reproduction], tuple[Prepare, Value]]
    seconds: float
    ending: Callable[[Line, Mapping[str, Any], Sequence[Row], Snapshot], Row]
    mark: Callable[[Mapping[str, Any]], Any] = dict
    traced: bool = True


def racing(races_of: Callable[[Reproduction], Sequence[Race]]) -> Runner:
    """Return the runner of races: all lines of all, those apart that have finished before.

    It fills the tables "trace" and "ends". Its settings have ``epochs`` and ``tol``.
    """
    return lambda repro: _run(repro, races_of(repro))


def _run(repro: Reproduction, races: Sequence[Race]) -> Iterator[str]:
    repro.total = sum(len(line.tries) for one in races for line in one.lines)
    for one in races:
        if repro.should_stop():
            return
        yield f"{one.panel}: reading the data"
        prepare, value = one.open(repro)
        for line in one.lines:
            for own in line.tries:
                yield f"{one.panel}, start {one.seed + 1}: {line.label}"
                key = key_of(one.panel, one.seed, line.label, one.mark(own), repro.data[one.data])
                steps = partial(_course, repro, one, line, own, partial(prepare, line), value)
                yield from repro.once(key, steps)
                if repro.should_stop():
                    return
                repro.done += 1
            if len(line.tries) > 1:
                _keep_best(repro, one, line)


def _course(
    repro: Reproduction,
    one: Race,
    line: Line,
    own: Mapping[str, Any],
    prepare: Callable[[], tuple[Problem, Parameters]],
    value: Value,
) -> Iterator[str]:
    course: list[Row] = []
    limits = {"epochs": repro.settings["epochs"], "seconds": one.seconds, "tol": repro.settings["tol"]}
    labels = {"panel": one.panel, "seed": one.seed}
    for last, row in descend(repro, *prepare(), (line.solver, own), value=value, seed=one.seed, **limits):
        if row is not None:
            course.append(row)
            if one.traced:
                repro.row("trace", **labels, method=label_of(line, own), **row)
        if repro.due():
            yield f"{one.panel}, start {one.seed + 1}: {line.label}, epoch {last.epoch}"
    if not repro.should_stop():
        end = {"objective": course[-1]["objective"], "seconds": last.seconds}
        repro.row("ends", **labels, method=line.label, **end, **one.ending(line, own, course, last))


def descend(
    repro: Reproduction,
    problem: Problem,
    start: Parameters,
    solver: tuple[str, Mapping[str, Any]],
    *,
    value: Callable[[Snapshot], float],
    epochs: int,
    seconds: float,
    tol: float,
    seed: int = 0,
) -> Iterator[tuple[Snapshot, Row | None]]:
    """Minimise, and yield every snapshot, with its row in a course that gets thinner, or None.

    The last snapshot always has a row.

    Parameters
    ----------
    repro : Reproduction
        Whose `should_stop`.
    problem, start : Problem, Parameters
        See `fmviz.engine.drive.iterate`.
    solver : (str, mapping)
        The name of the solver and its own parameters.
    value : callable
        ``value(snapshot)`` is the objective of a row.
    epochs, seconds, tol : int, float, float
        When the run ends.
    seed : int
        Of the solver's own randomness.
    """
    budget = Budget(epochs, seconds, tol, certify_every=epochs + 1)
    rng, wanted = np.random.default_rng([seed, 2]), 0.0
    method = chosen_solver(problem, *solver)
    for snapshot in iterate(problem, method, budget, repro.should_stop, start=start, rng=rng):
        row = None
        if snapshot.epoch >= wanted or snapshot.status is not None:
            wanted = snapshot.epoch + 1 if snapshot.epoch < _ALL_UP_TO else snapshot.epoch * _GROWTH
            row = {"epoch": snapshot.epoch, "seconds": snapshot.seconds, "objective": value(snapshot)}
        yield snapshot, row


def _keep_best(repro: Reproduction, one: Race, line: Line) -> None:
    """Leave in the table "trace" the run with the lowest end, under the name of its line."""
    here = {"panel": one.panel, "seed": one.seed}
    tried = rows_where(repro.tables, "ends", **here, method=line.label)
    best = min(tried, key=lambda row: (row["diverged"], row["objective"]))["label"]
    names = {row["label"]: None for row in tried} | {best: line.label}
    kept: list[Row] = []
    for row in repro.tables["trace"]:
        ours = all(row[name] == value for name, value in here.items())
        name = names.get(row["method"], row["method"]) if ours else row["method"]
        if name is not None:
            kept.append({**row, "method": name})
    repro.tables["trace"] = kept


# --------------------------------------------------------------------------------------------------- judging


def starts(tables: Tables, panel: str, needed: Mapping[str, int]) -> list[int]:
    """Return the starts from which every method has ended as often as it is needed."""
    ended: dict[int, dict[str, int]] = {}
    for row in rows_where(tables, "ends", panel=panel):
        counts = ended.setdefault(row.get("seed", 0), {})
        counts[row["method"]] = counts.get(row["method"], 0) + 1
    return sorted(
        seed
        for seed, counts in ended.items()
        if all(counts.get(method, 0) == count for method, count in needed.items())
    )


def times_to(
    tables: Tables, share: float, column: str = "seconds", **where: object
) -> dict[str, dict[str, float]]:
    """Return when every method comes close to the lowest objective of all, in two readings of close.

    Returns
    -------
    dict of str to dict of str to float
        For "early" and "late" the processor time of each method, or another column, inf where it never came
        there: to `share` of the way from the start to the lowest value, and to `share` of that value above
        it.
    """
    rows = rows_where(tables, "trace", **where)
    if not rows:
        return {stage: {} for stage in STAGES}
    top = max(row["objective"] for row in rows if row["epoch"] == 0)
    low = min(row["objective"] for row in rows)
    methods = list(dict.fromkeys(row["method"] for row in rows))

    def first(method: str, target: float) -> float:
        reached = (r[column] for r in rows if r["method"] == method and r["objective"] <= target)
        return next(reached, np.inf)

    targets = zip(STAGES, (low + share * (top - low), (1.0 + share) * low), strict=True)
    return {stage: {method: first(method, target) for method in methods} for stage, target in targets}


def median_times(
    tables: Tables, panel: str, needed: Mapping[str, int], column: str = "seconds"
) -> Times | None:
    """Return the medians of `times_to` over the starts from which all have ended, if there are any."""
    seeds = starts(tables, panel, needed)
    if not seeds:
        return None
    each = [times_to(tables, SHARE, column, panel=panel, seed=seed) for seed in seeds]
    return {
        stage: {name: float(np.median([one[stage][name] for one in each])) for name in each[0][stage]}
        for stage in STAGES
    }


def told(times: Times, methods: Sequence[str], unit: str = "s") -> str:
    """Return times in words: "All but 1% of the way down: Lifted (CD) 0.2 s, …; to …"."""

    def one(time: float) -> str:
        return f"{time:.3g} {unit}" if np.isfinite(time) else "not within its budget"

    parts = [
        f"{words}: {listed((name, one(times[stage][name])) for name in methods)}"
        for stage, words in STAGES.items()
    ]
    return "; ".join(parts) + "."


def ahead(times: Times, faster: Sequence[str], slower: Sequence[str], factor: float = 1.0) -> Verdict:
    """Return whether all of some methods come close to the lowest objective before all of others.

    Parameters
    ----------
    times : mapping
        As `times_to` returns them. A stage that none of the methods reaches does not count.
    faster, slower : sequence of str
        The methods.
    factor : float
        So many times as fast.

    Returns
    -------
    str
        "not settled" where the two readings of close disagree, or neither was reached.
    """
    answers = []
    for stage in STAGES:
        late = max(times[stage][name] for name in faster)
        early = min(times[stage][name] for name in slower)
        if np.isfinite(late) or np.isfinite(early):
            answers.append(factor * late < early)
    return agreed(answers)


def sooner(
    faster: Sequence[str], slower: Sequence[str], factor: float = 1.0, tell: Sequence[str] = ()
) -> Callable[[Times], Said | None]:
    """Return what says whether some methods are `ahead` of others, of those that a panel has.

    `tell` are the methods whose times are told; those that are compared by default.
    """

    def say(times: Times) -> Said | None:
        here = times["early"]
        first, rest = ([name for name in names if name in here] for names in (faster, slower))
        if not first or not rest:
            return None
        return ahead(times, first, rest, factor), told(times, tell or (*first, *rest))

    return say
