"""Metrics of fits: recovery of interactions, prediction errors and ranking, and their registry.

A metric is defined in a file here and imported below; pages, tables, reports and commands read its
attributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from inspect import isfunction
from typing import Any

from .base import Metric, Predictions

# The most informative first.
# isort: off
from .prediction import RMSE, AUC, ACCURACY, LOG_LOSS, MAE, D2, DEVIANCE, LOSS
from .prediction import mean_absolute_error, ndcg, rmse
from .recovery import SUPPORT_F1, ESTIMATION_ERROR
from .recovery import estimation_error, interaction_weights, support_f1, support_recovered, used_pairs
# isort: on

OBJECTIVE = Metric("objective", "Objective", listed=False)
USED_INTERACTIONS = Metric("used_interactions", "Used interactions", listed=False)
USED_FEATURES = Metric("used_features", "Used features", listed=False)
USED_BASES = Metric("used_bases", "Used bases", listed=False)

__all__ = [
    name
    for name, value in dict(globals()).items()
    if isfunction(value) and value.__module__.startswith(__name__)
]
METRICS: dict[str, Metric] = {
    value.name: value for value in dict(globals()).values() if isinstance(value, Metric)
}
"""All metrics by name, the most informative first."""
_ROWS = {"validation": "validation", "train": "training"}
COLUMNS: dict[str, Metric] = {
    column.name: column
    for column in (
        *(
            replace(metric, name=f"{rows}_{metric.name}", label=f"{metric.label}, {words}")
            for rows, words in _ROWS.items()
            for metric in METRICS.values()
            if metric.on_rows
        ),
        *(metric for metric in METRICS.values() if not metric.on_rows),
    )
}
"""All metrics on all kinds of rows, by their names in records."""


def measured(what: str, *evidence: Any) -> dict[str, float]:
    """Return the metrics of one kind (`Metric.on`), computed from `Predictions`, or truth and parameters."""
    values = {
        name: metric.function(*evidence)
        for name, metric in METRICS.items()
        if metric.function is not None and what in metric.on
    }
    return {name: value for name, value in values.items() if value is not None}


def listed(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite metrics of a record that appear in tables of results."""
    values = {name: record.get(name) for name, column in COLUMNS.items() if column.listed}
    return {
        name: float(value) for name, value in values.items() if value is not None and math.isfinite(value)
    }


def in_units(record: Mapping[str, Any], unit: tuple[float, str] = (1.0, "")) -> dict[str, float]:
    """Return the listed metrics of a record by label, errors in the unit of the target."""
    each = {COLUMNS[name].within(unit): value for name, value in listed(record).items()}
    return {label: scale * value for (scale, label), value in each.items()}
