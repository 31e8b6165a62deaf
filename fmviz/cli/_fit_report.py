"""What `fmviz fit` tells: a summary on the terminal, and the files of a report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fmviz.cli._terminal import cell, plain, text_table
from fmviz.lab.history import METRICS
from fmviz.lab.pair_table import pair_table
from fmviz.lab.provenance import array_hash, versions
from fmviz.lab.spreadsheet import defused
from fmviz.lab.table_run import SavedModel
from fmviz.lab.tables import Target

if TYPE_CHECKING:
    from fmviz.cli.fit import Fit

_SHOWN_PAIRS = 50
_SHOWN_WEIGHTS = 20
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1c2430}"
    "table{border-collapse:collapse;margin:.5rem 0 1.5rem}th,td{padding:.2rem .8rem .2rem 0;text-align:left;"
    "border-bottom:1px solid #d3dae3;vertical-align:top}td.n{text-align:right;"
    "font-variant-numeric:tabular-nums}"
    "h2{margin-top:2rem;font-size:1.2rem}"
)


def report(fit: Fit, top: int) -> tuple[dict[str, Any], pd.DataFrame]:
    """Return the report of a fit as JSON takes it, and the strongest pairs."""
    prepared, end, own = fit.run, fit.end, fit.own
    dataset, experiment = prepared.dataset, prepared.experiment
    pairs = pair_table(prepared.problem.model, end.parameters, dataset, top)
    assert end.status is not None, "the fit has ended"
    scale = own.target.scale if own is not None else 1.0
    last = end.record()
    metrics = {
        words: float(_in_units(name, last[name], scale)) for name, words in METRICS.items() if name in last
    }
    settings = experiment.to_dict()
    if own is not None:
        del settings["dataset"]
    told = {
        "data": {
            "name": dataset.name,
            "rows": int(dataset.y.size),
            "training_rows": prepared.problem.design.n_samples,
            "dropped_rows": 0 if own is None else own.dropped,
            "features": int(dataset.X.shape[1]),
            "target": dataset.target_name,
            "task": dataset.task,
            "hash": array_hash(dataset.X, dataset.y),
        },
        "notes": [*_notes(fit), *_never(pairs)],
        "settings": settings,
        "search": fit.search,
        "result": {
            "status": str(end.status.reason),
            "message": end.status.message,
            "epochs": end.epoch,
            "seconds": end.seconds,
            "objective": end.objective,
            "certificate": end.certificate,
            "used_features": end.used_features,
            "used_interactions": end.used_interactions,
            **{"intercept": end.parameters.intercept},
        },
        "metrics": metrics,
        "linear_weights": _linear(end.parameters.w, dataset.feature_names),
        "encoding": None if own is None or own.encoding is None else own.encoding.to_dict(),
        "stored_run": fit.stored,
        "versions": versions(),
        "history": [{k: _in_units(k, v, scale) for k, v in record.items()} for record in fit.history],
    }
    return told, pairs


def _in_units(name: str, value: float, scale: float) -> float:
    """Return a figure of a fit in the target's own unit, where it is an error of predictions."""
    return value * scale if name.endswith("rmse") else value


def _notes(fit: Fit) -> list[str]:
    own = fit.own
    if own is None:
        return []
    notes = list(own.encoding.notes) if own.encoding is not None else []
    if own.dropped:
        notes.append(
            f"Left out since a value is missing: {own.dropped:,} of the rows; --missing impute keeps those "
            "whose target is known."
        )
    if own.target.task == "regression":
        notes.append(
            f"The target is fitted as ({own.target.name} − {own.target.mean:.6g})/{own.target.scale:.6g}; "
            "objective and weights are of this, errors in the target's own unit."
        )
    else:
        negative, positive = own.target.labels
        notes.append(f"A positive score says {own.target.name} = {positive}, a negative one {negative}.")
    if own.encoding is not None:
        notes.append("Columns of numbers have mean 0 and deviation 1; each word has a column of 0 and 1.")
    return notes


def _never(pairs: pd.DataFrame) -> list[str]:
    count = int((pairs["rows_with_both"] == 0).sum())
    if not count:
        return []
    return [
        f"{count:,} of the ranked interactions have no row with both, such as two words of one column: they "
        "come with the shared factors and change no prediction here."
    ]


def _linear(w: np.ndarray, names: Sequence[str]) -> list[dict[str, Any]]:
    order = np.argsort(-np.abs(w), kind="stable")
    return [{"feature": names[j], "weight": float(w[j])} for j in order[: w.size] if w[j] != 0]


def summary(told: Mapping[str, Any], pairs: pd.DataFrame) -> str:
    """Return what the terminal shows."""
    data, result = told["data"], told["result"]
    count = data["features"] * (data["features"] - 1) // 2
    lines = [
        f"{data['name']}: {data['rows']:,} rows, {data['training_rows']:,} of them to train, "
        f"{data['features']:,} features; target {data['target']} ({data['task']}).",
        *told["notes"],
    ]
    if told["search"] is not None:
        lines.append(told["search"]["message"])
    lines += [
        "",
        result["message"],
        f"objective {cell(result['objective'])}, certificate {result['certificate']:.1e}, "
        f"{result['used_features']:,} features and {result['used_interactions']:,} of {count:,} interactions "
        "used",
        ", ".join(f"{words} {value:.4g}" for words, value in told["metrics"].items()),
        "",
    ]
    lines.append(text_table(_rows(pairs)) if len(pairs) else "No interaction is used; try a smaller λ̃.")
    if told["stored_run"] is not None:
        lines += ["", f"Stored as run {told['stored_run']}."]
    return "\n".join(lines)


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    words = {name: str(name).replace("_", " ") for name in frame}
    return [{str(k): v for k, v in row.items()} for row in frame.rename(columns=words).to_dict("records")]


def write(fit: Fit, told: Mapping[str, Any], pairs: pd.DataFrame, folder: Path) -> None:
    """Write model.npz, interactions.csv, report.json and report.html into a folder."""
    dataset, own = fit.run.dataset, fit.own
    target = own.target if own is not None else _target_of(dataset)
    experiment = fit.run.experiment
    SavedModel(
        fit.end.parameters,
        experiment.model,
        target,
        dataset.feature_names,
        own.encoding if own is not None else None,
        dict(experiment.model_params),
    ).save(folder / "model.npz")
    pairs.map(defused).to_csv(folder / "interactions.csv", index=False)
    text = json.dumps(plain(told), indent=1, ensure_ascii=False)
    (folder / "report.json").write_text(text, encoding="utf-8")
    (folder / "report.html").write_text(html(told, pairs), encoding="utf-8")


def _target_of(dataset: Any) -> Target:
    return Target(dataset.target_name, dataset.task, labels=dataset.class_labels or ())


def html(told: Mapping[str, Any], pairs: pd.DataFrame) -> str:
    """Return the report as one page; the script that draws its figures is in it, about 5 MB."""
    from fmviz.figures import training

    data, result = told["data"], told["result"]
    history = pd.DataFrame(told["history"])
    drawn = [
        ("Objective", training.objective(history, parts=True)),
        ("Used interactions and features", training.sparsity(history)),
        *((training.METRICS[m], training.prediction(history, m)) for m in training.metric_names(history)),
    ]
    parts = [
        f"<h1>{escape(data['name'])}</h1>",
        *_paragraphs([f"Target: {data['target']} ({data['task']}). {result['message']}", *told["notes"]]),
        *_paragraphs([] if told["search"] is None else [told["search"]["message"]]),
        "<h2>Result</h2>",
        _pairs_of({**result, **told["metrics"], **{f"data, {k}": v for k, v in data.items()}}),
        f"<h2>The strongest interactions</h2><p>{result['used_interactions']:,} are used"
        + (f"; these are the first {_SHOWN_PAIRS}" if result["used_interactions"] > _SHOWN_PAIRS else "")
        + ".</p>",
        _html_table(_rows(pairs.head(_SHOWN_PAIRS))),
        "<h2>The strongest linear weights</h2>",
        _html_table(told["linear_weights"][:_SHOWN_WEIGHTS]),
        "<h2>The course of the fit</h2>",
    ]
    for place, (title, figure) in enumerate(drawn):
        figure.update_layout(template="plotly_white")
        drawing = figure.to_html(full_html=False, include_plotlyjs=place == 0)
        parts += [f"<h3>{escape(title)}</h3>", drawing]
    parts += [
        "<h2>Settings</h2>",
        _pairs_of(told["settings"]),
        "<h2>Made with</h2>",
        _pairs_of(told["versions"]),
    ]
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(data["name"])} · fmviz'
        f"</title><style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [f"<p>{escape(text)}</p>" for text in texts]


def _pairs_of(values: Mapping[str, Any]) -> str:
    return _html_table([{"": name.replace("_", " "), " ": value} for name, value in values.items()])


def _html_table(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="n">{escape(cell(v))}</td>'
            if isinstance(v, int | float)
            else f"<td>{escape(cell(v))}</td>"
            for v in row.values()
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
