"""Build the report of `fmviz fit`: the terminal summary and the output files."""

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
from fmviz.lab.store.table import title_of_settings
from fmviz.lab.values import plain
from fmviz.metrics import COLUMNS, in_units
from fmviz.report import Outcome, file_notes
from fmviz.report import html as page
from fmviz.typography import cell

if TYPE_CHECKING:
    from fmviz.cli.fit import Fit
    from fmviz.lab.datasets import Dataset

_PRINTED = 10


def report(fit: Fit, top: int) -> tuple[dict[str, Any], pd.DataFrame]:
    """Return the report of a fit as a dictionary for JSON, and the strongest pairs."""
    prepared, end, encoded, contest = fit.last.run, fit.last.end, fit.encoded, fit.last.contest
    dataset, experiment, parameters = prepared.dataset, prepared.experiment, end.parameters
    pairs = pair_table(prepared.problem.model, parameters, dataset, top)
    assert end.status is not None, "the fit has ended"
    scale = encoded.target.scale if encoded is not None else 1.0
    findings, candidates = fit.findings, () if contest is None else contest.errors
    columns = [by.to_dict() for by in findings]
    settings = {k: v for k, v in experiment.to_dict().items() if fit.source is None or k != "dataset"}
    content = {
        "data": {
            "name": dataset.name,
            "rows": sum(design.n_samples for design in prepared.designs),
            "training_rows": prepared.problem.design.n_samples,
            "dropped_rows": 0 if encoded is None else encoded.dropped,
            "features": int(dataset.X.shape[1]),
            "target": dataset.target_name,
            "task": dataset.task,
            "hash": array_hash(dataset.X, dataset.y),
            "group": dataset.group,
        },
        "notes": [*_notes(fit), *_units(fit)],
        "columns": columns if dataset.outputs else next(iter(columns), None),
        "settings": settings,
        "search": fit.search,
        "candidates": findings[0].candidates.to_dict("records") if findings else candidates,
        "predicts": "" if contest is None else contest.labels[fit.last.chosen],
        "result": {
            "status": str(end.status.reason),
            "message": end.status.message,
            "epochs": end.epoch,
            "seconds": end.seconds,
            "objective": end.objective,
            "certificate": end.certificate,
            "used_features": end.used_features,
            "used_interactions": end.used_interactions,
            "intercept": np.asarray(parameters.intercept).tolist(),
        },
        "metrics": in_units(end.metrics, (scale, "")),
        "linear_weights": _linear(parameters.w, dataset),
        "encoding": None if encoded is None or encoded.encoder is None else encoded.encoder.to_dict(),
        "stored_run": fit.last.stored or None,
        "versions": versions(),
        "history": [
            {k: v * COLUMNS[k].within((scale, ""))[0] if k in COLUMNS else v for k, v in record.items()}
            for record in fit.last.history
        ],
    }
    return content, pairs


def _notes(fit: Fit) -> list[str]:
    if (encoded := fit.encoded) is None:
        return []
    target = encoded.target
    notes = file_notes(encoded, fit.source)
    if target.task == "binary":
        negative, positive = target.labels
        notes.append(f"A positive score predicts {target.name} = {positive}, a negative one {negative}.")
    elif target.task != "regression" or target.parts:
        words = _TOGETHER if fit.last.run.problem.model.multi_output else _MANY
        notes.append(words[target.task].format(n=len(target.parts or target.labels), name=target.name))
    return notes


def _units(fit: Fit) -> list[str]:
    """Return a note on the units of printed and written numbers."""
    target = None if fit.encoded is None else fit.encoded.target
    if target is None or target.task != "regression" or target.parts:
        return []
    name, unit = target.name, "in the unit of the target"
    if fit.last.run.problem.loss.log_link:
        return [f"f is the logarithm of the mean of {name}, and weights add to it; errors are {unit}."]
    if target.logarithm:
        name, unit = f"log {target.name}", "of the logarithm; predictions are in the unit of the target"
    return [
        f"The target is fitted as ({name} {'+' if target.mean < 0 else '−'} {abs(target.mean):.6g})"
        f"/{target.scale:.6g}; objective and weights refer to it, errors are {unit}."
    ]


_MANY = {
    "regression": "{n} targets, {name}, are standardized and fitted separately; objective, weights and "
    "errors refer to the standardized targets.",
    "class": "Each of the {n} classes of {name} has a one-vs-rest machine; the largest score is predicted.",
    "ordinal": "The {n} classes of {name} are ordered: for each but the last, a machine predicts whether "
    "{name} is at most this class; the prediction is the median class.",
    "several": "Each of the {n} labels {name} has a separate machine; a positive score predicts the label.",
}
_TOGETHER = {
    "regression": "{n} targets, {name}, are standardized and fitted jointly on a shared basis; objective, "
    "weights and errors refer to the standardized targets.",
    "class": "The scores of the {n} classes of {name} are fitted jointly on a shared basis; the largest "
    "score is predicted.",
    "ordinal": "The {n} classes of {name} are ordered: for each but the last, a score on a shared basis "
    "predicts whether {name} is at most this class; the prediction is the median class.",
    "several": "The scores of the {n} labels {name} are fitted jointly on a shared basis; a positive score "
    "predicts the label.",
}


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
        f"{data['name']}: {data['rows']:,} rows, {data['training_rows']:,} for training, "
        f"{data['features']:,} features; target {data['target']} ({data['task']}).",
        *content["notes"],
    ]
    if content["search"] is not None:
        lines.append(content["search"]["message"])
    lines += ["", text_table(content["candidates"])] if content["candidates"] else []
    # Fits converge by the change of parameters.
    distance = " (the distance from optimality)" * (result["certificate"] > content["settings"]["tol"])
    machine = [
        result["message"],
        f"objective {cell(result['objective'])}, certificate {result['certificate']:.1e}{distance}, "
        f"{result['used_features']:,} features and {result['used_interactions']:,} of {count:,} interactions "
        "used",
        ", ".join(f"{words} {value:.4g}" for words, value in content["metrics"].items()),
    ]
    if not content["candidates"]:
        lines += ["", *machine, ""]
    columns = content["columns"] or []
    for part in [columns] if isinstance(columns, dict) else columns:
        of = f", {part['output']}" * bool(part["output"])
        mains = [
            f"  {row['sentence']}" + " (within chance)" * (not row["stands_out"])
            for row in part["mains"][:_PRINTED]
        ]
        lines += [f"Columns by their individual effect on predictions{of}:", *mains, ""]
        lines += [part["message"], *(f"  {row['sentence']}" for row in part["pairs"]), ""]
    if content["candidates"]:
        kind = "Pairs" if content["predicts"] == "pairs" else "Sparse pairs"
        lines += [f"{kind}, fitted to {data['training_rows']:,} rows:", *machine, ""]
    each = pairs.groupby("output", sort=False) if outputs > 1 else pairs
    shown = each.head(max(3, _PRINTED // outputs) if outputs > 1 else _PRINTED)
    rows = shown.rename(columns=lambda name: name.replace("_", " ")).to_dict("records")
    if len(shown):
        lines += ["Weights are shrunk by λ and λ_p: interpret their order and sign rather than their size."]
    none = "No interaction is used; try a smaller λ."
    if result["used_interactions"]:
        none = "The pairs of features with the largest weights occur in none of the rows; see the columns."
    lines.append(text_table(rows) if len(shown) else none)
    if content["stored_run"] is not None:
        lines += ["", f"Stored as run {content['stored_run']}."]
    return "\n".join(lines)


def write(fit: Fit, content: Mapping[str, Any], pairs: pd.DataFrame, folder: Path) -> None:
    """Write model.npz, interactions.csv, report.json and report.html into a folder."""
    base = "auto" if fit.source is None else fit.source.reading.base
    fit.last.saved_model(fit.encoding, base).save(folder / "model.npz")
    pairs.map(defused).to_csv(folder / "interactions.csv", index=False)
    text = json.dumps(plain(content), indent=1, ensure_ascii=False)
    for name, written in (("report.json", text), ("report.html", html(fit, content))):
        # File names may contain bytes that are not characters.
        (folder / name).write_text(written, encoding="utf-8", errors="backslashreplace")


def html(fit: Fit, content: Mapping[str, Any]) -> str:
    """Return the report as an HTML page."""
    data, experiment = content["data"], fit.last.run.experiment
    # The command reproduces a fit to a file.
    source = with_header(
        program(experiment) if fit.last.stored else fit.command,
        f"{data['name']}: {content['result']['message']}",
        data={data["name"]: data["hash"]},
        versions=content["versions"],
    )
    # The page has a separate note on units, and omits pairs that occur in no row.
    notes = _notes(fit)
    if content["search"] is not None:
        notes.append(content["search"]["message"])
    return page(
        Outcome(
            title_of_settings(
                experiment.to_dict() | {"dataset": data["name"]}, fit.last.end.epoch, heading=True
            ),
            experiment,
            fit.last.run.problem.model,
            f"Target: {data['target']} ({data['task']}). {content['result']['message']}",
            fit.last.history,
            fit.last.end.parameters,
            fit.last.run.dataset,
            notes,
            source,
            {name.replace("_", " "): data[name] for name in ("training_rows", "dropped_rows", "hash")},
            content["settings"],
            findings=fit.findings,
        )
    )
