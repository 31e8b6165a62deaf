"""Objectives over time: the rows that comparisons of solvers are drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fmviz.engine.drive import Budget, iterate
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import get_solver
from fmviz.lab.papers.base import Desk, Row, Tables, Verdict, rows_where

# One row for each epoch up to this one, then fewer and fewer.
_ALL_UP_TO = 10
_GROWTH = 1.15
# Of the way down; and above the lowest objective.
SHARE = 0.01
STAGES = {
    "early": f"All but {SHARE:.0%} of the way down",
    "late": f"to {SHARE:.0%} above the lowest objective",
}
Times = Mapping[str, Mapping[str, float]]


def thinned(snapshots: Iterable[Snapshot]) -> Iterator[tuple[Snapshot, bool]]:
    """Yield every snapshot, and whether it is one of a course that gets thinner; the last one always is."""
    wanted = 0.0
    for snapshot in snapshots:
        chosen = snapshot.epoch >= wanted or snapshot.status is not None
        if chosen:
            wanted = snapshot.epoch + 1 if snapshot.epoch < _ALL_UP_TO else snapshot.epoch * _GROWTH
        yield snapshot, chosen


def descend(
    desk: Desk,
    problem: Problem,
    solver: str,
    start: Parameters,
    scale: float,
    *,
    epochs: int,
    seconds: float,
    tol: float,
    seed: int = 0,
    traced: bool = True,
    solver_params: Mapping[str, Any] | None = None,
    **labels: object,
) -> Iterator[Snapshot]:
    """Minimise, add the objective times `scale` to the table "trace", and yield every snapshot.

    Rows get thinner as the run goes on; the last one is always there. Without `traced` there are none.

    Parameters
    ----------
    desk : Desk
        Whose tables, and whose `should_stop`.
    problem, solver, start : Problem, str, Parameters
        See `fmviz.engine.drive.iterate`.
    scale : float
        From our objective, which averages the losses, to that of the paper.
    epochs, seconds, tol : int, float, float
        When the run ends.
    seed : int
        Of the solver's own randomness; a column of the rows.
    traced : bool
        Whether there are to be rows.
    solver_params : mapping, optional
        The solver's own parameters.
    **labels
        What else the rows are told apart by.
    """
    budget = Budget(epochs, seconds, tol, certify_every=epochs + 1)
    method, rng = get_solver(solver, solver_params), np.random.default_rng([seed, 2])
    run = iterate(problem, method, budget, desk.should_stop, start=start, rng=rng)
    for snapshot, chosen in thinned(run):
        if traced and chosen:
            desk.row(
                "trace",
                **labels,
                seed=seed,
                epoch=snapshot.epoch,
                seconds=snapshot.seconds,
                objective=scale * snapshot.objective,
            )
        yield snapshot


def first(rows: list[Row], target: float, column: str) -> float:
    """Return when, by a column, the objective is first at most `target`; inf where it never is."""
    return next((row[column] for row in rows if row["objective"] <= target), np.inf)


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
        return {"early": {}, "late": {}}
    top = max(row["objective"] for row in rows if row["epoch"] == 0)
    low = min(row["objective"] for row in rows)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    return {
        name: {m: first([r for r in rows if r["method"] == m], target, column) for m in methods}
        for name, target in (("early", low + share * (top - low)), ("late", (1.0 + share) * low))
    }


def median_times(tables: Tables, seeds: Iterable[int], panel: str) -> Times:
    """Return `times_to` up to `SHARE` as medians over runs from several seeds."""
    each = [times_to(tables, SHARE, panel=panel, seed=seed) for seed in seeds]
    return {
        stage: {name: float(np.median([one[stage][name] for one in each])) for name in each[0][stage]}
        for stage in STAGES
    }


def told(times: Times, methods: Sequence[str], unit: str = "s") -> str:
    """Return times in words: "All but 1% of the way down: Lifted (CD) 0.2 s, …; to …"."""

    def one(name: str, time: float) -> str:
        return f"{name} {time:.3g} {unit}" if np.isfinite(time) else f"{name} not within its budget"

    parts = [
        f"{words}: {', '.join(one(name, times[stage][name]) for name in methods)}"
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


def agreed(answers: Sequence[bool]) -> Verdict:
    """Return the verdict on which all answers agree, else "not settled"."""
    if not answers or (any(answers) and not all(answers)):
        return "not settled"
    return "holds" if all(answers) else "does not hold"
