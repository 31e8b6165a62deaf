"""Tabulate stored runs, and name settings and metrics as the pages do."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fmviz.engine.losses import LOSSES
from fmviz.engine.models import MODELS
from fmviz.engine.penalties import ALL_PENALTIES
from fmviz.engine.schedule import Schedule
from fmviz.engine.solvers import SOLVERS
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import DATASETS, Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.store import StoredRun
from fmviz.lab.uploads import is_upload
from fmviz.lab.values import changes_from_text

__all__ = [
    "METRICS",
    "differing",
    "in_words",
    "label_of",
    "mean_and_deviation",
    "metrics_in_words",
    "metrics_of",
    "name_of",
    "runs_table",
    "seeds_folded",
    "title_of_group",
    "title_of_run",
    "title_of_settings",
    "unit_of",
]

METRICS: dict[str, str] = {
    "validation_rmse": "RMSE, validation",
    "validation_auc": "AUC, validation",
    "validation_accuracy": "Accuracy, validation",
    "validation_log_loss": "Log loss, validation",
    "train_rmse": "RMSE, training",
    "train_auc": "AUC, training",
    "train_accuracy": "Accuracy, training",
    "train_log_loss": "Log loss, training",
    "support_f1": "Support F1",
    "estimation_error": "Estimation error",
}
"""What runs can be compared by, the most telling first, in words."""

_WORDS = {
    **{"dataset": "Data set", "lambda_w": "λ_w", "lambda_p": "λ_p", "lambda_sparse": "λ"},
    **{"fit_linear": "Linear term", "fit_intercept": "Bias", "init_scale": "Scale σ of the start"},
    **{"max_epochs": "Most epochs", "validation": "Validation share", "tol": "Tolerance"},
    **METRICS,
}
# Registries whose entries have labels, by the settings that name one.
_NAMED: dict[str, Mapping[str, Any]] = {
    "model": MODELS,
    "regularizer": ALL_PENALTIES,
    "solver": SOLVERS,
    "loss": LOSSES,
}
_SETTINGS = (
    *("dataset", "model", "regularizer", "solver", "rank", "seed"),
    *("lambda_w", "lambda_p", "lambda_sparse"),
)


def label_of(setting: str, value: str) -> str:
    """Return what pages call the value of a setting."""
    if setting == "dataset" and (is_upload(value) or value in DATASETS):
        return dataset_spec(value).title
    known = _NAMED.get(setting, {}).get(value)
    return value if known is None else str(known.label)


def name_of(setting: str) -> str:
    """Return what pages call a setting or a figure of a run."""
    return _WORDS.get(setting, setting[:1].upper() + setting[1:].replace("_", " "))


def title_of_run(run: StoredRun) -> str:
    """Return what a run is called: its title, or its data, method and strength."""
    return run.title or title_of_settings(run.settings, run.epoch)


def title_of_settings(settings: Mapping[str, Any], epoch: int) -> str:
    """Return the data, the method and the strength of a run of so many epochs: the first and the last λ."""
    strength = settings.get("lambda_sparse")
    words = [label_of(name, str(settings.get(name, "?"))) for name in ("dataset", "regularizer")]
    if settings.get("model", Experiment.model) != Experiment.model:
        words.insert(1, label_of("model", str(settings["model"])))
    if isinstance(strength, int | float):
        words.append(f"λ {strength:g}")
        # A run of another version may have changes that this one cannot read.
        with contextlib.suppress(ValueError):
            changes = changes_from_text(str(settings.get("changes", "")))
            # In force at the end are those of the last epoch.
            later = Schedule(changes).after(epoch - 1).get("lambda_sparse", strength)
            words[-1] += f" → {later:g}" if later != strength else ""
    return " · ".join(words) + f" · seed {settings.get('seed', 0)}"


def metrics_of(run: StoredRun) -> dict[str, float]:
    """Return the metrics of the end of a run, those of `METRICS` that it has."""
    values = {name: run.last.get(name) for name in METRICS}
    return {
        name: float(value) for name, value in values.items() if value is not None and math.isfinite(value)
    }


def metrics_in_words(metrics: Mapping[str, float], dataset: Dataset) -> list[str]:
    """Return those of `METRICS` with their words; errors of one number that was scaled in its own unit."""
    lines = []
    for name, words in METRICS.items():
        if name in metrics:
            scale, unit = unit_of(name, dataset)
            lines.append(f"{words} {metrics[name] * scale:.4g}{unit and f' (in {unit})'}")
    return lines


def unit_of(metric: str, dataset: Dataset | None) -> tuple[float, str]:
    """Return what brings a metric into the target's own unit, and that unit; or 1 and nothing."""
    return dataset.unit if dataset is not None and metric.endswith("rmse") else (1.0, "")


def runs_table(runs: Sequence[StoredRun]) -> pd.DataFrame:
    """Return one row a run: what it is, how it ended, and what it found.

    Columns: id, run, status, when (a time zone's), dataset, model, regularizer, solver, the three strengths,
    rank, seed, epochs, objective, spark (the objective along the run), features, interactions, certificate,
    seconds, metric (words and value of the first of `METRICS`), origin.
    """
    rows: list[dict[str, Any]] = []
    for run in runs:
        settings, last, metrics = run.settings, run.last, metrics_of(run)
        name = next(iter(metrics), None)
        rows.append(
            {
                "id": run.id,
                "run": title_of_run(run),
                "status": run.status,
                "when": pd.Timestamp(run.created, unit="s", tz="UTC"),
                **{name: settings.get(name) for name in _SETTINGS},
                "epochs": run.epoch,
                "objective": last.get("objective"),
                "spark": run.spark,
                "features": last.get("used_features"),
                "interactions": last.get("used_interactions"),
                "certificate": last.get("certificate"),
                "seconds": run.seconds,
                "metric": "" if name is None else f"{METRICS[name]} {metrics[name]:.4g}",
                "origin": run.origin,
            }
        )
    return pd.DataFrame(rows)


def seeds_folded(runs: Sequence[StoredRun]) -> list[list[StoredRun]]:
    """Return runs in groups that differ in their seed alone, in the order of their first ones."""
    groups: dict[str, list[StoredRun]] = {}
    for run in runs:
        settings = {name: value for name, value in run.settings.items() if name != "seed"}
        groups.setdefault(repr(sorted(settings.items())), []).append(run)
    return list(groups.values())


def title_of_group(runs: Sequence[StoredRun]) -> str:
    """Return what runs that differ in their seed alone are called."""
    title = title_of_run(runs[0])
    if len(runs) == 1:
        return title
    return f"{title.rpartition(' · seed')[0] or title} · {len(runs)} seeds"


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of values that are known, and their standard deviation; NaN where there is none."""
    known = [value for value in values if math.isfinite(value)]
    return (
        statistics.fmean(known) if known else math.nan,
        statistics.stdev(known) if len(known) > 1 else math.nan,
    )


def differing(groups: Sequence[Sequence[StoredRun]], only: bool = True) -> pd.DataFrame:
    """Return the settings and figures of runs side by side: one row each, one column a group of runs.

    Parameters
    ----------
    groups : sequence of sequence of StoredRun
        What to compare: single runs, or those of `seeds_folded`, whose figures are told as mean ± standard
        deviation.
    only : bool
        Leave out what is the same in all of them.

    Returns
    -------
    DataFrame
        Columns ``what`` and the ids of the first runs; all values are texts.
    """
    names = list(dict.fromkeys(name for group in groups for name in group[0].settings))
    figures = ["epoch", "objective", "used_features", "used_interactions"]
    figures += ["used_bases", "certificate", *METRICS]
    rows = []
    for what, table in (*((n, "settings") for n in names), *((n, "last") for n in figures)):
        texts = [
            _texts([getattr(run, table).get(what) for run in group], folded=table == "last")
            for group in groups
        ]
        if any(texts) and (not only or len(set(texts)) > 1):
            ids = [group[0].id for group in groups]
            rows.append({"what": what, **dict(zip(ids, texts, strict=True))})
    return pd.DataFrame(rows, columns=["what", *(group[0].id for group in groups)])


def in_words(table: pd.DataFrame) -> pd.DataFrame:
    """Return what `differing` returns as pages call it."""
    rows = [
        [name_of(what), *(label_of(what, text) for text in texts)]
        for what, *texts in table.itertuples(index=False)
    ]
    return pd.DataFrame(rows, columns=table.columns)


def _texts(values: Sequence[Any], folded: bool) -> str:
    known = [value for value in values if value is not None]
    texts = list(dict.fromkeys(map(_text, known)))
    if folded and len(texts) > 1:
        mean, deviation = mean_and_deviation(known)
        return f"{mean:.5g} ± {deviation:.2g}"
    return ", ".join(texts)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
