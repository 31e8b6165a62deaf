"""Objectives on the way down: the rows that comparisons of solvers are drawn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fmviz.engine.drive import Budget, iterate
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Parameters, Snapshot
from fmviz.lab.papers.base import Desk, Row, Tables, rows_where

# One row for each epoch up to this one, then fewer and fewer.
_ALL_UP_TO = 10
_GROWTH = 1.15


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
    rng, wanted = np.random.default_rng([seed, 2]), 0.0
    own = dict(solver_params or {})
    for snapshot in iterate(problem, solver, budget, desk.should_stop, start=start, rng=rng, **own):
        if traced and (snapshot.epoch >= wanted or snapshot.status is not None):
            wanted = snapshot.epoch + 1 if snapshot.epoch < _ALL_UP_TO else snapshot.epoch * _GROWTH
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
