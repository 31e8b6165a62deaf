"""Build the report of `fmviz fit`: the summary on the terminal, and its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fmviz.cli._terminal import text_table
from fmviz.figures.tabular import defused
from fmviz.lab.interpretation.reading import pair_table
from fmviz.lab.runs.program import program, with_header
from fmviz.lab.runs.provenance import array_hash, versions
from fmviz.lab.saved_model import SavedModel
from fmviz.lab.store.table import METRICS
from fmviz.lab.typography import cell
from fmviz.lab.values import plain
from fmviz.report import Outcome
from fmviz.report import html as page
from fmviz.tables.target import Target

if TYPE_CHECKING:
    from fmviz.cli.fit import Fit
    from fmviz.lab.datasets import Dataset

_PRINTED = 10


def report(fit: Fit, top: int) -> tuple[dict[str, Any], pd.DataFrame]:
    """Return the report of a fit as a dictionary for JSON, and the strongest pairs."""
    prepared, end, encoded = fit.run, fit.end, fit.encoded
    dataset, experiment = prepared.dataset, prepared.experiment
    pairs = pair_table(prepared.problem.model, end.parameters, dataset, top)
    assert end.status is not None, "the fit has ended"
    scale = encoded.target.scale if encoded is not None else 1.0
    last = fit.validated
    metrics = {
        words: float(_in_units(name, last[name], scale)) for name, words in METRICS.items() if name in last
    }
    settings = experiment.to_dict()
    if fit.stored is None:
        del settings["dataset"]
    content = {
        "data": {
            "name": dataset.name,
            "rows": len(dataset.y),
            "training_rows": last["rows"],
            "dropped_rows": 0 if encoded is None else encoded.dropped,
            "features": int(dataset.X.shape[1]),
            "target": dataset.target_name,
            "task": dataset.task,
            "hash": array_hash(dataset.X, dataset.y),
        },
        "notes": [*_notes(fit), *_units(fit), *_never(pairs)],
        "columns": _columns(fit),
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
            "intercept": np.asarray(end.parameters.intercept).tolist(),
        },
        "metrics": metrics,
        "linear_weights": _linear(end.parameters.w, dataset),
        "encoding": None if encoded is None or encoded.encoder is None else encoded.encoder.to_dict(),
        "stored_run": fit.stored,
        "versions": versions(),
        "history": [{k: _in_units(k, v, scale) for k, v in record.items()} for record in fit.history],
    }
    return content, pairs


def _columns(fit: Fit) -> dict[str, list[dict[str, Any]]] | None:
    """Return the main effects of columns and their pairs, with sentences; None where they are not read."""
    effects, scaling = fit.effects, fit.run.dataset.of_output(0).target_scaling
    assert not isinstance(scaling, tuple)
    if effects is None:
        return None
    unit = "" if scaling is None else f"{'log ' if scaling.logarithm else ''}{fit.run.dataset.target_name}"
    mains = [
        {"column": row.name, "size": row.size, "sentence": effects.main_sentence(row.column, unit)}
        for row in effects.mains.itertuples()
    ]
    pairs = [
        {"first": row.first, "second": row.second, "size": row.size}
        | {"sentence": effects.pair_sentence(row.a, row.b, unit)}
        for row in effects.pairs.head(fit.n_pairs or 0).itertuples()
    ]
    return {"mains": mains, "pairs": pairs}


def _in_units(name: str, value: float, scale: float) -> float:
    """Convert a prediction error to the unit of the target; return other values unchanged."""
    return value * scale if name.endswith("rmse") else value


def _notes(fit: Fit) -> list[str]:
    encoded = fit.encoded
    if encoded is None:
        return []
    target, encoder = encoded.target, encoded.encoder
    notes = [
        *(() if fit.source is None else fit.source.notes),
        *target.sentences,
        *([] if encoder is None else encoder.sentences_),
        *encoded.notes(),
    ]
    if target.task == "binary":
        negative, positive = target.labels
        notes.append(f"A positive score says {target.name} = {positive}, a negative one {negative}.")
    elif target.task != "regression" or target.parts:
        words = _TOGETHER if fit.run.problem.model.multi_output else _MANY
        notes.append(words[target.task].format(n=len(target.parts or target.labels), name=target.name))
    return notes


def _units(fit: Fit) -> list[str]:
    """Return a note on the units of printed and written numbers."""
    target = None if fit.encoded is None else fit.encoded.target
    if target is None or target.task != "regression" or target.parts:
        return []
    name, unit = target.name, "in the target's own unit"
    if target.logarithm:
        name, unit = f"log {target.name}", "of the logarithm; predictions are in the target's own unit"
    return [
        f"The target is fitted as ({name} − {target.mean:.6g})/{target.scale:.6g}; "
        f"objective and weights are of this, errors {unit}."
    ]


_MANY = {
    "regression": "{n} targets, {name}, are fitted side by side, each less its mean and over its standard "
    "deviation; objective, weights and errors are of these.",
    "class": "Each of the {n} classes of {name} has a machine of its own that tells it from the rest; the "
    "largest score decides.",
    "ordinal": "The {n} classes of {name} are in an order: for each but the last a machine tells whether "
    "{name} is at most this one, and the median is predicted.",
    "several": "Each of the {n} labels {name} has a machine of its own; a positive score says that it "
    "applies.",
}
_TOGETHER = {
    "regression": "{n} targets, {name}, are fitted together on one basis, each less its mean and over its "
    "standard deviation; objective, weights and errors are of these.",
    "class": "The {n} classes of {name} have scores on one basis, which are fitted together; the largest "
    "score decides.",
    "ordinal": "The {n} classes of {name} are in an order: for each but the last a score on one basis tells "
    "whether {name} is at most this one, and the median is predicted.",
    "several": "The {n} labels {name} have scores on one basis; a positive one says that the label applies.",
}


def _never(pairs: pd.DataFrame) -> list[str]:
    count = int((pairs["rows_with_both"] == 0).sum())
    if not count:
        return []
    return [
        f"{count:,} of the ranked interactions have no row with both, such as two words of one column: they "
        "come with the shared factors and change no prediction here."
    ]


def _linear(w: np.ndarray, dataset: Dataset) -> list[dict[str, Any]]:
    if w.ndim == 2:
        each = zip(dataset.outputs, w, strict=True)
        return [{"output": name, **row} for name, weights in each for row in _linear(weights, dataset)]
    names, order = dataset.feature_names, np.argsort(-np.abs(w), kind="stable")
    return [{"feature": names[j], "weight": float(w[j])} for j in order if w[j] != 0]


def summary(content: Mapping[str, Any], pairs: pd.DataFrame, outputs: int) -> str:
    """Return the summary for the terminal, with the strongest pairs of each output."""
    data, result = content["data"], content["result"]
    count = data["features"] * (data["features"] - 1) // 2
    lines = [
        f"{data['name']}: {data['rows']:,} rows, {data['training_rows']:,} of them to train, "
        f"{data['features']:,} features; target {data['target']} ({data['task']}).",
        *content["notes"],
    ]
    if content["search"] is not None:
        lines.append(content["search"]["message"])
    lines += [
        "",
        result["message"],
        f"objective {cell(result['objective'])}, certificate {result['certificate']:.1e}, "
        f"{result['used_features']:,} features and {result['used_interactions']:,} of {count:,} interactions "
        "used",
        ", ".join(f"{words} {value:.4g}" for words, value in content["metrics"].items()),
        "",
    ]
    if (columns := content["columns"]) is not None:
        lines += ["Columns by what they change in predictions, each alone:"]
        lines += [f"  {row['sentence']}" for row in columns["mains"][:_PRINTED]]
        chosen = f"{len(columns['pairs'])} pairs" if len(columns["pairs"]) != 1 else "One pair"
        lines += ["", f"{chosen} of columns, the fewest that predict within one standard error of the best:"]
        lines += [f"  {row['sentence']}" for row in columns["pairs"]] + [""]
    # Pairs that occur in no row, which change no prediction, are only in the files.
    met = pairs[pairs["rows_with_both"] > 0]
    shown = met if len(met) else pairs
    if outputs > 1:
        shown = shown.groupby("output", sort=False).head(max(3, _PRINTED // outputs))
    else:
        shown = shown.head(_PRINTED)
    lines.append(text_table(_rows(shown)) if len(shown) else "No interaction is used; try a smaller λ.")
    if content["stored_run"] is not None:
        lines += ["", f"Stored as run {content['stored_run']}."]
    return "\n".join(lines)


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    words = {name: str(name).replace("_", " ") for name in frame}
    return [{str(k): v for k, v in row.items()} for row in frame.rename(columns=words).to_dict("records")]


def write(fit: Fit, content: Mapping[str, Any], pairs: pd.DataFrame, folder: Path) -> None:
    """Write model.npz, interactions.csv, report.json and report.html into a folder."""
    dataset, encoded = fit.run.dataset, fit.encoded
    target = Target(dataset.target_name, dataset.task, labels=dataset.class_labels or ())
    if encoded is not None:
        target = encoded.target
    experiment = fit.run.experiment
    SavedModel(
        fit.end.parameters,
        experiment.model,
        target,
        dataset.feature_names,
        encoded.encoder if encoded is not None else None,
        dict(experiment.model_params),
        experiment.loss,
        fit.averaged,
        "auto" if fit.source is None else fit.source.reading.base,
    ).save(folder / "model.npz")
    pairs.map(defused).to_csv(folder / "interactions.csv", index=False)
    text = json.dumps(plain(content), indent=1, ensure_ascii=False)
    for name, written in (("report.json", text), ("report.html", html(fit, content))):
        # File names may contain bytes that are not characters.
        (folder / name).write_text(written, encoding="utf-8", errors="backslashreplace")


def html(fit: Fit, content: Mapping[str, Any]) -> str:
    """Return the report as an HTML page."""
    data, experiment = content["data"], fit.run.experiment
    # A fit to a file is repeated by the command.
    source = with_header(
        fit.command if fit.stored is None else program(experiment),
        f"{data['name']}: {fit.end.status.message if fit.end.status else ''}",
        data={data["name"]: data["hash"]},
        versions=content["versions"],
    )
    # The page has its own note on units, and no pairs that occur in no row.
    notes = _notes(fit)
    if content["search"] is not None:
        notes.append(content["search"]["message"])
    outcome = Outcome(
        data["name"],
        experiment,
        fit.run.problem.model,
        f"Target: {data['target']} ({data['task']}). {content['result']['message']}",
        fit.history,
        fit.end.parameters,
        fit.run.dataset,
        notes,
        source,
        {name.replace("_", " "): data[name] for name in ("training_rows", "dropped_rows", "hash")},
        content["settings"],
    )
    return page(outcome)
