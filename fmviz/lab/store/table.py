"""Tables of stored runs, and labels of settings and metrics."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fmviz.engine.losses import LOSSES
from fmviz.engine.models import MODELS, Model
from fmviz.engine.penalties import ALL_PENALTIES
from fmviz.engine.schedule import Schedule
from fmviz.engine.solvers import SOLVERS
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import DATASETS, Dataset
from fmviz.lab.experiment import OWNERS, Experiment
from fmviz.lab.store import StoredRun
from fmviz.lab.uploads import is_upload
from fmviz.lab.values import changes_from_text
from fmviz.metrics import COLUMNS, listed
from fmviz.typography import cell, counted, typeset, with_spread

_WORDS = {
    **{"dataset": "Data set", "lambda_w": "λ_w", "lambda_p": "λ_p", "lambda_sparse": "λ"},
    **{"fit_linear": "Linear term", "fit_intercept": "Bias", "init_scale": "Scale σ of the start"},
    **{"max_epochs": "Maximum epochs", "validation": "Validation share", "tol": "Tolerance"},
    "changes": "Changes of λ",
    **{name: column.label for name, column in COLUMNS.items()},
}
LABELS: dict[str, Mapping[str, str]] = {
    **{
        setting: {name: str(value.label) for name, value in registry.items()}
        for setting, registry in (
            *(("model", MODELS), ("regularizer", ALL_PENALTIES)),
            *(("solver", SOLVERS), ("loss", LOSSES)),
        )
    },
    "start": {
        "informed": "Leaves P = 0 where it can",
        "random": "Random, as published",
        "warm": "Warm, from weaker λ",
    },
    "caps": {"given": "As set", "auto": "From the data"},
}
"""Labels of the values of settings."""
_SETTINGS = (
    *("dataset", "model", "regularizer", "solver", "rank", "seed"),
    *("lambda_w", "lambda_p", "lambda_sparse"),
)
SOLVED = 1e-3
"""The largest relative certificate of a solved problem."""
# The largest dual norm is known up to an interval of about this width.
_SOLVED_BASES = 0.02


def label_of(setting: str, value: str) -> str:
    """Return the label of the value of a setting."""
    if setting == "dataset" and (is_upload(value) or value in DATASETS):
        return dataset_spec(value).title
    if setting == "changes":
        # Changes of another version may be unreadable.
        with contextlib.suppress(ValueError):
            each = changes_from_text(value)
            return "; ".join(f"{name_of(name)} = {new:g} after epoch {at:,}" for at, name, new in each)
    return LABELS.get(setting, {}).get(value, value)


def name_of(setting: str) -> str:
    """Return the label of a setting or a metric; labels of parameters start with their owner."""
    owner, _, own = setting.partition("_")
    words = f"{name_of(owner)}: {own}" if own and owner in OWNERS else setting[:1].upper() + setting[1:]
    return _WORDS.get(setting, words.replace("_", " "))


def title_of_run(run: StoredRun) -> str:
    """Return the title of a run, by default its data, method and strength."""
    return run.title or title_of_settings(run.settings, run.epoch)


def title_of_settings(settings: Mapping[str, Any], epoch: int, heading: bool = False) -> str:
    """Return a title with data, method, and the first and last λ of a run.

    A `heading` of a page always has the machine and the epochs, but not the seed.
    """
    strength, strengths = settings.get("lambda_sparse"), ""
    data, machine, penalty = (
        label_of(name, str(settings.get(name, "?"))) for name in ("dataset", "model", "regularizer")
    )
    if isinstance(strength, int | float):
        strengths = typeset(strength, ".4g")
        # Changes of another version may be unreadable.
        with contextlib.suppress(ValueError):
            changes = changes_from_text(str(settings.get("changes", "")))
            # The strength of the last epoch.
            later = Schedule(changes).after(epoch - 1).get("lambda_sparse", strength)
            strengths += f" → {typeset(later, '.4g')}" if later != strength else ""
    if heading:
        at = f" at λ = {strengths}, {counted(epoch, 'epoch')}" if strengths else ""
        return f"{data}: {machine[0].lower()}{machine[1:].removesuffix(', order 2')} with {penalty}{at}"
    machine *= settings.get("model", Experiment.model) != Experiment.model
    words = data, machine, penalty, f"λ {strengths}" * bool(strengths), f"seed {settings.get('seed', 0)}"
    return " · ".join(filter(None, words))


def numbers(
    history: Sequence[Mapping[str, Any]], machine: Model, dataset: Dataset | None, ended: bool = True
) -> list[tuple[str, str, str, str]]:
    """Return label, value, help and tone of the numbers of a run; certificate and time are last.

    Parameters
    ----------
    history : sequence of mapping
        The records, at least one.
    machine : Model
        The model with its parameters.
    dataset : Dataset or None
        The data, if they are available.
    ended : bool
        Whether the run has ended, and a large certificate is final.
    """
    last, seconds = history[-1], float(history[-1].get("seconds", 0.0))
    d = dataset.X.shape[1] if dataset is not None else 0
    rows, every = "non-zero rows of P", f", of {d * (d - 1) // 2:,}"
    pairs = f"pairs of rows that share a column in which both are non-zero{every}"
    if not machine.factorised:
        rows = "features in a pair with a non-zero weight in W"
        pairs = f"pairs with a non-zero weight in W{every}"
    elif not (machine.plain or machine.columnar):
        rows = "features in a product of non-zero entries of some column"
        pairs = "sets of distinct features with non-zero entries in the factors of some column"
    elif machine.orders != (2,):
        pairs = "sets of features, of every order, that share a column of P in which all are non-zero"
    sweeps = "Sweeps over all parameters." if machine.factorised else "Steps of all parameters at once."
    return [
        ("Epoch", f"{int(last['epoch']):,}", sweeps, ""),
        ("Objective", cell(float(last["objective"])), "Sum of loss and penalties, which is minimised.", ""),
        *(
            [
                ("Features", f"{last['used_features']:,}", f"Used features: {rows}, of {d:,}.", ""),
                (
                    "Interactions",
                    f"{last['used_interactions']:,}",
                    f"Used interactions: {pairs}; counted exactly.",
                    "",
                ),
            ]
            if "used_bases" not in last
            else [("Bases", f"{last['used_bases']:,}", "Non-zero rows of V.", "")]
        ),
        _certificate(history, machine, ended),
        (
            "Solver time",
            f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms",
            "Solver time, without evaluation and drawing.",
            "",
        ),
    ]


def _certificate(
    history: Sequence[Mapping[str, Any]], machine: Model, ended: bool
) -> tuple[str, str, str, str]:
    solved = f"Values up to {SOLVED:g} count as solved."
    shown, good = "", SOLVED
    if machine.certificate == "stationarity":
        label, value = "Certificate", float(history[-1].get("certificate", math.nan))
        words = (
            "Largest remaining step of a minimisation over one entry (or row), relative to the largest "
            f"parameter; recomputed from the parameters alone. 0 at a stationary point. {solved}"
        )
    else:
        # Not every epoch has a certificate.
        record = next((r for r in reversed(history) if math.isfinite(r["certificate"])), None)
        epoch, value = (0, 1.0) if record is None else (record["epoch"], float(record["certificate"]))
        label, least = "Duality gap", None if record is None else record.get("least_certificate")
        words = (
            "Relative duality gap: an upper bound on the excess of the objective over its minimum, as a "
            f"fraction of the objective; computed from the parameters alone. 0 at the optimum. {solved} "
            f"Updated every tenth epoch, last at epoch {epoch:,}."
        )
        if least is not None:
            words = (
                "Relative duality gap: the second number bounds the excess of the objective over the "
                "minimum for any bases, as a fraction of the objective; computed from the parameters alone. "
                "The dual norm is known between two bounds, and the first number is the smallest gap "
                f"consistent with them. Updated every tenth epoch, last at epoch {epoch:,}."
            )
            # One number if both bounds round to it.
            ends = [f"{100 * end:.0f}" if value >= 0.1 else f"{100 * end:.2g}" for end in (least, value)]
            shown, good = f"{'–'.join(dict.fromkeys(ends))} %", _SOLVED_BASES
    # Compare the rounded value that is displayed.
    tone = "good" if float(f"{value:.1e}") <= good else "bad" if ended else ""
    shown = shown or typeset(value, ".1e")
    return label, "–" if math.isnan(value) else shown, words, "" if math.isnan(value) else tone


def runs_table(runs: Sequence[StoredRun]) -> pd.DataFrame:
    """Return a table with one run per row.

    Columns: id, run, status, when (in UTC), dataset, model, regularizer, solver, rank, seed, the three
    strengths, epochs, objective, spark (the objective during the run), features, interactions, certificate,
    seconds, metric (label and value of the primary metric), origin.
    """
    rows: list[dict[str, Any]] = []
    for run in runs:
        settings, last, metrics = run.settings, run.last, listed(run.last)
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
                "metric": "" if name is None else f"{COLUMNS[name].label} {typeset(metrics[name], '.4g')}",
                "origin": run.origin,
            }
        )
    return pd.DataFrame(rows)


def seeds_folded(runs: Sequence[StoredRun]) -> list[list[StoredRun]]:
    """Return groups of runs that differ only in their seed, ordered by the first run of each group."""
    groups: dict[str, list[StoredRun]] = {}
    for run in runs:
        settings = {name: value for name, value in run.settings.items() if name != "seed"}
        groups.setdefault(repr(sorted(settings.items())), []).append(run)
    return list(groups.values())


def differing(groups: Sequence[Sequence[StoredRun]], only: bool = True) -> pd.DataFrame:
    """Return settings and metrics as rows, with one column per group of runs.

    Parameters
    ----------
    groups : sequence of sequence of StoredRun
        Single runs, or groups by `seeds_folded`, whose metrics are given as mean ± standard deviation.
    only : bool
        Whether to drop rows with equal values.

    Returns
    -------
    DataFrame
        Columns ``what`` and the ids of the first runs; all values are strings.
    """
    names = list(dict.fromkeys(name for group in groups for name in group[0].settings))
    figures = ["epoch", "objective", "used_features", "used_interactions", "used_bases", "certificate"]
    figures += [name for name, column in COLUMNS.items() if column.listed]
    rows = []
    for what, table in (*((n, "settings") for n in names), *((n, "last") for n in figures)):
        texts = [
            _texts([getattr(run, table).get(what) for run in group], folded=table == "last")
            for group in groups
        ]
        if any(texts) and (not only or len(set(texts)) > 1):
            rows.append({"what": what, **dict(zip([group[0].id for group in groups], texts, strict=True))})
    return pd.DataFrame(rows, columns=["what", *(group[0].id for group in groups)])


def in_words(table: pd.DataFrame) -> pd.DataFrame:
    """Replace names and values in a table by `differing` with their labels."""
    return pd.DataFrame(
        [
            [name_of(what), *(label_of(what, text) for text in texts)]
            for what, *texts in table.itertuples(index=False)
        ],
        columns=table.columns,
    )


def _texts(values: Sequence[Any], folded: bool) -> str:
    known = [value for value in values if value is not None]
    texts = list(dict.fromkeys(map(_text, known)))
    if folded and len(texts) > 1:
        finite = pd.Series(filter(math.isfinite, known), dtype=float)
        return with_spread(finite.mean(), finite.std())
    return ", ".join(texts)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return typeset(value, ".6g") if isinstance(value, float) else str(value)
