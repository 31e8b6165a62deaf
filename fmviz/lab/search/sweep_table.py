"""The results of a sweep as tables: one row for each fit, and means over the seeds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd

from fmviz.engine.penalties import ALL_PENALTIES
from fmviz.lab.interpretation.comparison import LOWER_IS_BETTER
from fmviz.lab.search.sweep import FAILED
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.store import StoredRun
from fmviz.lab.store.table import METRICS, metrics_of

__all__ = ["best_runs", "failures", "fits_table", "main_metric", "means_table", "method_name"]


def method_name(method: dict[str, object]) -> str:
    """Return what a method of a plan is called: its regularizer, and whatever else it sets."""
    rest = [f"{name} {value}" for name, value in method.items() if name != "regularizer"]
    penalty = str(method.get("regularizer", ""))
    label = ALL_PENALTIES[penalty].label if penalty in ALL_PENALTIES else penalty
    return ", ".join([part for part in (label, *rest) if part]) or "default"


def fits_table(plan: SweepPlan, fits: Iterable[tuple[int, StoredRun]]) -> pd.DataFrame:
    """Return one row a fit: data set, method, the values of the grid, seed, status, figures, metrics.

    Parameters
    ----------
    plan : SweepPlan
        The sweep.
    fits : iterable of (int, StoredRun)
        The places among `SweepPlan.cells`, and the results.
    """
    rows = []
    for index, run in fits:
        cell = plan.cells[index].to_dict()
        method = next(
            (m for m in plan.methods if all(cell.get(name) == value for name, value in m.items())),
            {},
        )
        rows.append(
            {
                "run": run.id,
                "dataset": cell["dataset"],
                "method": method_name(dict(method)),
                "regularizer": cell["regularizer"],
                **{name: cell[name] for name in plan.grid},
                "seed": cell["seed"],
                "status": run.status,
                "objective": run.last.get("objective", math.nan),
                "used_interactions": run.last.get("used_interactions", math.nan),
                "used_features": run.last.get("used_features", math.nan),
                **metrics_of(run),
            }
        )
    return pd.DataFrame(rows)


def main_metric(table: pd.DataFrame) -> str:
    """Return the most telling metric that the fits have, or "objective"."""
    return next((name for name in METRICS if name in table), "objective")


def means_table(table: pd.DataFrame, grid: Sequence[str], metric: str) -> pd.DataFrame:
    """Return mean and standard deviation over the seeds, one row for data set, method and point of the grid.

    Parameters
    ----------
    table : DataFrame
        Of `fits_table`; failed fits, which have no figures, do not count.
    grid : sequence of str
        The settings of the grid.
    metric : str
        What is averaged besides the used interactions.

    Returns
    -------
    DataFrame
        The keys, ``fits``, ``mean`` and ``std`` of the metric, and ``interactions`` with
        ``interactions_std``; a deviation of a single fit is NaN.
    """
    keys = ["dataset", "method", "regularizer", *grid]
    groups = table.dropna(subset=[metric]).groupby(keys, sort=False, dropna=False)
    found = groups.agg(
        fits=(metric, "size"),
        mean=(metric, "mean"),
        std=(metric, "std"),
        interactions=("used_interactions", "mean"),
        interactions_std=("used_interactions", "std"),
    )
    return found.reset_index()


def best_runs(table: pd.DataFrame, grid: Sequence[str], metric: str, most: int) -> list[str]:
    """Return the ids of the runs of every data set and method at its best point of the grid, by the means.

    Of equals it is the one with the fewest interactions.

    Parameters
    ----------
    table : DataFrame
        Of `fits_table`.
    grid : sequence of str
        The settings of the grid.
    metric : str
        What is best.
    most : int
        About so many in all; of each method as many of its seeds.
    """
    means = means_table(table, grid, metric)
    ascending = metric.endswith(LOWER_IS_BETTER)
    keys = ["dataset", "method"]
    order = means.sort_values(["mean", "interactions"], ascending=[ascending, True])
    best = order.drop_duplicates(keys).sort_index()
    found = best[[*keys, *grid]].merge(table.dropna(subset=[metric]), on=[*keys, *grid])
    seeds = max(1, most // max(1, len(best)))
    return list(found.groupby(keys, sort=False).head(seeds)["run"])


def failures(runs: Iterable[StoredRun]) -> dict[str, int]:
    """Return the sentences of fits that failed, with how often each occurred."""
    return dict(Counter(run.message for run in runs if run.status == FAILED))
