"""Objectives over time: comparison of the speed of several methods on one problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.fit import Budget, Fit, chosen_solver
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import get_solver
from fmviz.lab.papers import Row, Tables, Verdict
from papers.judging import Said, agreed, frame, listed

# One row per epoch up to this one, then increasingly few.
_ALL_UP_TO = 10
_GROWTH = 1.15
# Tolerance of the gap to, and of the excess over, the lowest objective; and the ratio of "much faster".
SHARE, MUCH = 0.01, 2.0
STAGES = {
    "early": f"To close {1 - SHARE:.0%} of the initial gap",
    "late": f"to reach {SHARE:.0%} above the lowest objective",
}


def descend(
    problem: Problem,
    start: Parameters,
    solver: str,
    seed: int,
    own: Mapping[str, Any],
    value: Callable[[Snapshot], float] = attrgetter("objective"),
    parameters: Mapping[str, Any] | None = None,
) -> tuple[list[Row], Snapshot]:
    """Minimise; return a thinned curve of values, and the last snapshot.

    `own` are epochs, seconds and tolerance, `parameters` those of the solver.
    """
    budget = Budget(own["epochs"], own["seconds"], own["tol"], certify_every=own["epochs"] + 1)
    course: list[Row] = []
    rng, wanted = np.random.default_rng([seed, 2]), 0.0
    method = get_solver(chosen_solver(problem, solver).name, parameters)
    for last in Fit.of(problem, method, budget, start=start, rng=rng).epochs():
        if last.epoch >= wanted or last.status is not None:
            wanted = last.epoch + 1 if last.epoch < _ALL_UP_TO else last.epoch * _GROWTH
            course.append({"epoch": last.epoch, "seconds": last.seconds, "objective": value(last)})
    return course, last


def settled(course: Sequence[Mapping[Any, Any]]) -> float:
    """Return the seconds after which the objective stays within `SHARE` of its last value."""
    end = course[-1]["objective"]
    away = [i for i, row in enumerate(course) if abs(row["objective"] - end) > SHARE * abs(end)]
    return float(course[away[-1] + 1]["seconds"] if away else course[0]["seconds"])


def cut_short(tables: Tables, panel: str, among: str) -> bool:
    """Return whether objectives still changed by more than `SHARE` in the second half of their time.

    From every start, the objectives of all methods must come to rest; with `among` "lowest", for methods with
    the same objective, that of one method within `SHARE` of the lowest suffices.
    """
    rows = frame(tables, "trace", panel=panel)
    if rows.empty:
        return False
    runs = rows.groupby(["seed", "method"])
    ends = runs["objective"].last()
    resting = pd.Series(
        {key: 2.0 * settled(run.to_dict("records")) <= run["seconds"].iloc[-1] for key, run in runs}
    )
    if among == "lowest":
        near = ends <= (1.0 + SHARE) * ends.groupby(level=0).transform("min")
        resting = (resting & near).groupby(level=0).any()
    return not resting.all()


def times_to(tables: Tables, column: str = "seconds", **where: object) -> pd.DataFrame:
    """Return the times at which methods reach the vicinity of the lowest objective, by two criteria.

    For "early" and "late", the processor time of each method, or another column, infinite if never reached:
    the remaining share `SHARE` of the gap from the start to the lowest value, and `SHARE` of that value above
    it.
    """
    rows = frame(tables, "trace", **where)
    if rows.empty:
        return rows
    top, low = rows["objective"][rows["epoch"] == 0].max(), rows["objective"].min()
    targets = dict(zip(STAGES, (low + SHARE * (top - low), (1.0 + SHARE) * low), strict=True))
    times = {
        stage: rows[rows["objective"] <= target].groupby("method")[column].first()
        for stage, target in targets.items()
    }
    return pd.DataFrame(times).T.reindex(columns=rows["method"].unique()).fillna(np.inf)


def median_times(tables: Tables, panel: str, methods: Iterable[str], column: str = "seconds") -> pd.DataFrame:
    """Return the medians of `times_to` over the starts for which all of some methods have ended."""
    ends = frame(tables, "ends", panel=panel).reindex(columns=["seed", "method"])
    ended = ends.groupby("seed")["method"].agg(set)
    seeds = ended.index[[set(methods) <= names for names in ended]]
    each = [times_to(tables, column, panel=panel, seed=seed) for seed in seeds]
    return pd.concat(each).groupby(level=0).median() if each else pd.DataFrame()


def in_words(times: pd.DataFrame, methods: Sequence[str], unit: str = "s") -> str:
    """Return times as a sentence: "To close 99% of the initial gap: Lifted (CD) 0.2 s, …; to …"."""

    def words(time: float) -> str:
        return f"{time:.3g} {unit}" if np.isfinite(time) else "not within the budget"

    parts = [
        f"{stage}: {listed((name, words(times.at[key, name])) for name in methods)}"
        for key, stage in STAGES.items()
    ]
    return "; ".join(parts) + "."


def ahead(times: pd.DataFrame, faster: Sequence[str], slower: Sequence[str], factor: float = 1.0) -> Verdict:
    """Return whether all of some methods reach the vicinity of the lowest objective before all of others.

    "not settled" if the two criteria disagree, or neither was reached; a criterion that no method reaches is
    ignored. `factor` is the required ratio of times.
    """
    late, early = times[list(faster)].max(axis=1), times[list(slower)].min(axis=1)
    return agreed((factor * late < early)[np.isfinite(np.minimum(late, early))])


def sooner(
    times: pd.DataFrame,
    faster: Sequence[str],
    slower: Sequence[str],
    factor: float = 1.0,
    shown: Sequence[str] = (),
) -> Said | None:
    """Return the verdict whether some methods of a panel are `ahead` of others, with the times of `shown`."""
    first, others = ([name for name in names if name in times] for names in (faster, slower))
    if not first or not others:
        return None
    return ahead(times, first, others, factor), in_words(times, shown or (*first, *others))


def reason(last: Snapshot) -> str:
    """Return the reason for the end of a run."""
    assert last.status is not None, "the last snapshot has a status"
    return str(last.status.reason)
