"""What a sweep has found as a table: every method at every point of the grid, over its seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fmviz.lab.experiment import Experiment
from fmviz.lab.history import METRICS, metrics_of
from fmviz.lab.store import StoredRun
from fmviz.lab.sweep import FAILED
from fmviz.lab.sweep_plan import SweepPlan

__all__ = ["failures", "main_metric", "sweep_table"]


def main_metric(found: Mapping[int, StoredRun]) -> str | None:
    """Return the first of `fmviz.lab.history.METRICS` that all fits that have any metric share, or None."""
    had = [set(told) for run in found.values() if (told := metrics_of(run))]
    return next((name for name in METRICS if had and all(name in one for one in had)), None)


def sweep_table(plan: SweepPlan, found: Mapping[int, StoredRun], metric: str | None = None) -> pd.DataFrame:
    """Return one row for every method and point of the grid, over the seeds.

    Parameters
    ----------
    plan : SweepPlan
        What was to be fitted.
    found : mapping of int to StoredRun
        The results, by the place of their cell.
    metric : str, optional
        A name of `fmviz.lab.history.METRICS`; `main_metric` without it.

    Returns
    -------
    DataFrame
        The settings that differ between cells, in the order of the plan, and the columns ``fits`` (how many
        have ended), ``failed``, ``metric`` and ``metric_sd``, ``interactions`` and ``interactions_sd``: means
        and sample standard deviations over the fits that have not failed, NaN where there are too few.
    """
    metric = metric or main_metric(found)
    groups: dict[Experiment, list[int]] = {}
    for index, experiment in enumerate(plan.cells):
        groups.setdefault(replace(experiment, seed=0), []).append(index)
    settings = [one.to_dict() for one in groups]
    names = [
        name
        for name in dict.fromkeys(name for told in settings for name in told)
        if len({repr(told.get(name)) for told in settings}) > 1
    ]
    rows = []
    for told, places in zip(settings, groups.values(), strict=True):
        runs = [found[i] for i in places if i in found]
        ended = [run for run in runs if run.status != FAILED]
        row: dict[str, Any] = {name: told.get(name) for name in names}
        row |= {"fits": len(ended), "failed": len(runs) - len(ended)}
        row |= _spread("metric", [metrics_of(run).get(metric or "") for run in ended])
        row |= _spread("interactions", [run.last.get("used_interactions") for run in ended])
        rows.append(row)
    return pd.DataFrame(rows)


def failures(found: Mapping[int, StoredRun]) -> dict[str, int]:
    """Return the sentences of fits that failed, with how often each occurred."""
    counts: dict[str, int] = {}
    for run in found.values():
        if run.status == FAILED:
            counts[run.message] = counts.get(run.message, 0) + 1
    return counts


def _spread(name: str, values: list[float | None]) -> dict[str, float]:
    known = np.array([value for value in values if value is not None], dtype=float)
    return {
        name: float(known.mean()) if known.size else float("nan"),
        f"{name}_sd": float(known.std(ddof=1)) if known.size > 1 else float("nan"),
    }
