"""The lowest known objective of a run's problem, for plots of convergence."""

from __future__ import annotations

import bisect
import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fmviz.lab.experiment import Experiment
from fmviz.lab.store.database import StoreError
from fmviz.lab.store.runs import store
from fmviz.lab.store.stored_run import StoredRun
from fmviz.lab.store.table import label_of
from fmviz.typography import typeset

# Settings on which an objective does not depend.
_METHOD = ("solver", "init_scale", "max_epochs", "tol", "start")


@dataclass(frozen=True)
class Lowest:
    """The lowest known objective of a problem of a run.

    Attributes
    ----------
    after : int
        The problem begins after this epoch, at a change of strengths; -1 for the first problem.
    value : float or None
        The objective; None before the first epoch.
    source : str
        The run that reached it.
    """

    after: int
    value: float | None
    source: str

    @property
    def sentence(self) -> str:
        """Return a sentence on F* and the run that reached it."""
        known = "not known" if self.value is None else typeset(self.value, ".6g")
        return f"F* = {known}, the lowest objective known for this problem: {self.source or 'no run'}."


def same_problem(experiment: Experiment, data: str) -> list[StoredRun]:
    """Return the stored runs with the objective of an experiment on the data with a hash, newest first.

    Solvers, starts and budgets may differ, and so may seeds that affect neither rows nor caps.
    """
    wanted = _problem(json.loads(experiment.to_json()))
    alike: list[StoredRun] = []
    with contextlib.suppress(StoreError):  # Its page says so.
        alike = store().runs(
            dataset=[wanted["dataset"]],
            regularizer=[wanted["regularizer"]],
            text=f'"lambda_sparse": {json.dumps(wanted["lambda_sparse"])},',
        )
    return [run for run in alike if run.last and run.data_hash == data and _problem(run.settings) == wanted]


def _problem(settings: Mapping[str, Any]) -> dict[str, Any]:
    drawn = settings.get("validation") or settings.get("caps") == "auto"
    ignored = (*_METHOD, *(() if drawn else ("seed",)))
    return {n: value for n, value in settings.items() if n not in ignored and not n.startswith("solver_")}


def lowest(
    experiment: Experiment, history: Sequence[Mapping[str, Any]], data: str, run: str = ""
) -> list[Lowest]:
    """Return the lowest known objectives of the problems of a run: one before each change of strengths.

    Parameters
    ----------
    experiment : Experiment
        Its settings.
    history : sequence of mapping
        Its records.
    data : str
        The hash of its data; "" compares with no other run.
    run : str
        Its id.
    """
    starts = [-1, *dict.fromkeys(change.epoch for change in experiment.changes)]
    problems = [experiment.strengths(epoch) for epoch in starts]
    reached: list[Lowest] = []
    for after, problem in zip(starts, problems, strict=True):
        own = [
            (record["objective"], f"this run at epoch {record['epoch']:,}")
            for record in history
            if problems[bisect.bisect_left(starts, record["epoch"]) - 1] == problem
        ]
        others = [
            (other.last["objective"], f"run {other.id[:4]}, {label_of('solver', other.settings['solver'])}")
            for other in (same_problem(experiment.under(problem), data) if data else ())
            if other.id != run
        ]
        known = [(value, source) for value, source in (*own, *others) if math.isfinite(value)]
        reached.append(Lowest(after, *min(known, key=lambda item: item[0], default=(None, ""))))
    return reached
