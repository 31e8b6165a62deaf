"""Objectives over time: several methods on one problem, and which of them is first to come down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fmviz.engine.drive import Budget, chosen_solver, iterate
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.papers.reproduction import Reproduction
from fmviz.lab.papers.tables import Row, Tables, frame, rows_where
from fmviz.lab.papers.verdicts import Said, Verdict, agreed, listed

# One row for each epoch up to this one, then fewer and fewer.
_ALL_UP_TO = 10
_GROWTH = 1.15
# Of the way down, and above the lowest objective; and what "much faster" means at least.
SHARE, MUCH = 0.01, 2.0
STAGES = {
    "early": f"All but {SHARE:.0%} of the way down",
    "late": f"to {SHARE:.0%} above the lowest objective",
}


Value = float | Callable[[Snapshot], float]
"""What is drawn: so many times the objective, or a function."""


class Line(NamedTuple):
    """A line of a figure: its label, a solver, and what is tried of its parameters; the best is shown."""

    label: str
    solver: str = "auto"
    tries: Sequence[Mapping[str, Any]] = ({},)

    def title(self, own: Mapping[str, Any]) -> str:
        """Return what a run with some of the parameters is called."""
        return f"{self.label}, {self.tries.index(own)}" if len(self.tries) > 1 else self.label


def n_runs(lines: Sequence[Line]) -> dict[str, int]:
    """Return how many runs every line is."""
    return {line.label: len(line.tries) for line in lines}


def race(
    repro: Reproduction,
    panel: str,
    seed: int,
    data: str,
    lines: Sequence[Line],
    starts: Mapping[str, tuple[Problem, Parameters]],
    ending: Callable[[Line, Mapping[str, Any], Sequence[Row], Snapshot], Row],
    seconds: float,
    value: Value = 1.0,
    *,
    traced: bool = True,
) -> Iterator[str]:
    """Run the lines of a panel, those apart that have finished before; tables "trace" and "ends".

    `starts` are a problem and its start by label; ``ending(line, own, course, last)``, with the parameters of
    the solver, returns further columns of "ends". `seconds` are solver seconds of each run; unless it is
    `traced`, its end alone is kept.
    """
    labels = {"panel": panel, "seed": seed}

    def run(line: Line, own: Mapping[str, Any]) -> Iterator[str]:
        course: list[Row] = []
        for last, row in descend(repro, *starts[line.label], (line.solver, own), seconds, seed, value):
            if row is not None:
                course.append(row)
                if traced:
                    repro.row("trace", **labels, method=line.title(own), **row)
            if repro.due():
                yield f"{panel}, start {seed + 1}: {line.label}, epoch {last.epoch}"
        repro.check()
        end = {"objective": course[-1]["objective"], "seconds": last.seconds}
        repro.row("ends", **labels, method=line.label, **end, **ending(line, own, course, last))

    for line in lines:
        for own in line.tries:
            yield f"{panel}, start {seed + 1}: {line.label}"
            key = panel, seed, line.label, own, traced, repro.data[data]
            yield from repro.once(key, partial(run, line, own))
        if len(line.tries) > 1:
            _keep_best(repro, labels, line)


def reason(last: Snapshot) -> str:
    """Return why a run has ended."""
    assert last.status is not None, "the last snapshot says how the run ended"
    return str(last.status.reason)


def descend(
    repro: Reproduction,
    problem: Problem,
    start: Parameters,
    solver: tuple[str, Mapping[str, Any]],
    seconds: float,
    seed: int,
    value: Value = 1.0,
) -> Iterator[tuple[Snapshot, Row | None]]:
    """Minimise, and yield every snapshot with its row in a course that gets thinner, or None.

    The last snapshot always has a row. `solver` is a name with parameters.
    """
    epochs = repro.settings["epochs"]
    budget = Budget(epochs, seconds, repro.settings["tol"], certify_every=epochs + 1)
    rng, wanted = np.random.default_rng([seed, 2]), 0.0
    method = chosen_solver(problem, *solver)
    for snapshot in iterate(problem, method, budget, repro.should_stop, start=start, rng=rng):
        row = None
        if snapshot.epoch >= wanted or snapshot.status is not None:
            wanted = snapshot.epoch + 1 if snapshot.epoch < _ALL_UP_TO else snapshot.epoch * _GROWTH
            objective = value(snapshot) if callable(value) else value * snapshot.objective
            row = {"epoch": snapshot.epoch, "seconds": snapshot.seconds, "objective": objective}
        yield snapshot, row


def _keep_best(repro: Reproduction, labels: Row, line: Line) -> None:
    """Leave in the table "trace" the run with the lowest end, under the name of its line."""
    tried = rows_where(repro.tables, "ends", **labels, method=line.label)
    best = min(tried, key=lambda row: (row["diverged"], row["objective"]))["label"]
    names, renamed = {row["label"] for row in tried}, []
    for row in repro.tables["trace"]:
        ours = labels.items() <= row.items() and row["method"] in names
        if not ours or row["method"] == best:
            renamed.append({**row, "method": line.label} if ours else row)
    repro.tables["trace"] = renamed


# ---------------------------------------------------------------------------------------------------- judging


def times_to(tables: Tables, column: str = "seconds", **where: object) -> pd.DataFrame:
    """Return when every method comes close to the lowest objective of all, in two readings of close.

    For "early" and "late" the processor time of each method, or another column, inf where it never came
    there: to `SHARE` of the way from the start to the lowest value, and to `SHARE` of that value above it.
    """
    rows = frame(tables, "trace", **where)
    if rows.empty:
        return rows
    top, low = rows["objective"][rows["epoch"] == 0].max(), rows["objective"].min()
    times = {}
    for stage, target in zip(STAGES, (low + SHARE * (top - low), (1.0 + SHARE) * low), strict=True):
        times[stage] = rows[rows["objective"] <= target].groupby("method")[column].first()
    return pd.DataFrame(times).T.reindex(columns=rows["method"].unique()).fillna(np.inf)


def median_times(
    tables: Tables, panel: str, needed: Mapping[str, int], column: str = "seconds"
) -> pd.DataFrame:
    """Return the medians of `times_to` over the starts from which all have ended as often as needed."""
    ends = frame(tables, "ends", panel=panel).reindex(columns=["seed", "method"])
    counts = pd.crosstab(ends["seed"], ends["method"]).reindex(columns=list(needed), fill_value=0)
    seeds = counts.index[(counts == pd.Series(needed)).all(axis=1)]
    each = [times_to(tables, column, panel=panel, seed=seed) for seed in seeds]
    return pd.concat(each).groupby(level=0).median() if each else pd.DataFrame()


def in_words(times: pd.DataFrame, methods: Sequence[str], unit: str = "s") -> str:
    """Return times as a sentence: "All but 1% of the way down: Lifted (CD) 0.2 s, …; to …"."""

    def words(time: float) -> str:
        return f"{time:.3g} {unit}" if np.isfinite(time) else "not within its budget"

    parts = [
        f"{stage}: {listed((name, words(times.at[key, name])) for name in methods)}"
        for key, stage in STAGES.items()
    ]
    return "; ".join(parts) + "."


def ahead(times: pd.DataFrame, faster: Sequence[str], slower: Sequence[str], factor: float = 1.0) -> Verdict:
    """Return whether all of some methods come close to the lowest objective before all of others.

    "not settled" where the two readings of close disagree, or neither was reached: a stage that none of the
    methods reaches does not count. `factor` is how many times as fast they are to be.
    """
    late, early = times[list(faster)].max(axis=1), times[list(slower)].min(axis=1)
    reached = np.isfinite(np.minimum(late, early))
    return agreed((factor * late < early)[reached])


def sooner(
    times: pd.DataFrame,
    faster: Sequence[str],
    slower: Sequence[str],
    factor: float = 1.0,
    shown: Sequence[str] = (),
) -> Said | None:
    """Say whether some methods are `ahead` of others, of those that a panel has; `shown` tells of which."""
    first, others = ([name for name in names if name in times] for names in (faster, slower))
    if not first or not others:
        return None
    return ahead(times, first, others, factor), in_words(times, shown or (*first, *others))
