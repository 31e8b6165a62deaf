"""A fit as one HTML page that needs nothing else: no script, no server, no network; it prints, too."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from latex2mathml.converter import convert

from fmviz.engine.losses import LOSSES
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.figures import sketch, training
from fmviz.figures.palette import regularizer_color
from fmviz.figures.raster import matrix_png
from fmviz.lab.background.job_view import JobView
from fmviz.lab.background.thinned import (
    EXACT_FEATURES,
    N_TILES,
    ThinnedFactors,
    thin,
)
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.comparison import Weights
from fmviz.lab.interpretation.pair_table import pair_table
from fmviz.lab.interpretation.subsets import (
    factors_of,
    orders_of,
    rankable,
    ranked_sets,
)
from fmviz.lab.interpretation.tiles import pooled_matrix
from fmviz.lab.runner import load_dataset
from fmviz.lab.runs.capsule import Capsule
from fmviz.lab.runs.history import METRICS, title_of_run
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.store import RunStore, StoredRun
from fmviz.lab.tables.cells import cell

__all__ = ["Outcome", "html", "of_stored", "of_view"]

SHOWN_PAIRS = 50
SHOWN_WEIGHTS = 20
_SOLVED = 1e-3
_WIDTH = 460


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a report tells of a fit.

    Attributes
    ----------
    title : str
        The heading.
    experiment : Experiment
        The settings.
    model : Model
        With its own parameters.
    message : str
        How it ended, in a sentence.
    history : sequence of mapping
        Records of snapshots, see `fmviz.engine.snapshot.Snapshot.record`.
    parameters : Parameters or None
        The last ones; None where the fit has not got so far.
    dataset : Dataset or None
        The data; None where they cannot be had any more.
    notes : sequence of str
        Sentences about the data and the units.
    capsule : Capsule or None
        How to get it again.
    data : mapping of str to object
        Facts about the data beside those of `dataset`.
    settings : mapping of str to object
        What is listed as settings; all of the experiment's without it.
    """

    title: str
    experiment: Experiment
    model: Model
    message: str
    history: Sequence[Mapping[str, Any]]
    parameters: Parameters | None = None
    dataset: Dataset | None = None
    notes: Sequence[str] = ()
    capsule: Capsule | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] | None = None


def of_view(view: JobView, capsule: Capsule | None = None) -> Outcome:
    """Return what a report tells of a job that has ended or is paused."""
    experiment = view.experiment
    return Outcome(
        f"{experiment.dataset} · {experiment.regularizer} · seed {experiment.seed}",
        experiment,
        experiment.machine,
        view.message,
        view.history,
        view.parameters,
        view.dataset,
        capsule=capsule,
        data={} if view.dataset is None else {"hash": data_hash(view.dataset)},
    )


def of_stored(run: StoredRun, runs: RunStore, capsule: Capsule | None = None) -> Outcome:
    """Return what a report tells of a stored run; its data are loaded, and left out where they are gone."""
    experiment = run.experiment
    notes = []
    dataset: Dataset | None = None
    try:
        dataset = load_dataset(experiment.dataset, **dict(experiment.dataset_params))
    except ValueError as error:
        notes.append(f"Names of features and rankings are left out. {error}")
    if dataset is not None and run.data_hash and data_hash(dataset) != run.data_hash:
        dataset = None
        notes.append("The data have changed since: names of features and rankings are left out.")
    return Outcome(
        title_of_run(run),
        experiment,
        experiment.machine,
        run.message,
        runs.trace(run.id),
        runs.parameters(run.id),
        dataset,
        notes,
        capsule,
        {"hash": run.data_hash} if run.data_hash else {},
    )


def html(outcome: Outcome, pairs: pd.DataFrame | None = None) -> str:
    """Return the report as one page of HTML.

    Parameters
    ----------
    outcome : Outcome
        The fit.
    pairs : DataFrame, optional
        Of `fmviz.lab.interpretation.pair_table.pair_table`, where somebody has it already.

    Returns
    -------
    str
        Everything is in it, and every text from outside is escaped. It follows the light or dark theme of
        the reader.
    """
    settings = outcome.experiment.to_dict() if outcome.settings is None else outcome.settings
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    sections = [
        f"<h1>{escape(outcome.title)}</h1>",
        _paragraphs([outcome.message, *outcome.notes]),
        _cards(outcome),
        _section("The objective", _formulas(outcome)),
        _section("The interactions", _heatmap(outcome)),
        _section("The strongest interactions", _pairs(outcome, pairs)),
        _sets(outcome),
        _section("The strongest linear weights", _linear(outcome)),
        _section("The course of the fit", _curves(outcome)),
        _section("Data", _facts({**_data(outcome), **outcome.data})),
        _section("Settings", _facts(settings)),
        _section("Reproduction capsule", _capsule(outcome.capsule)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        # Nothing from outside, and no script at all.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">"
        f"<title>{escape(outcome.title)} · fmviz</title><style>{style}</style></head><body><main>\n"
        + "\n".join(part for part in sections if part)
        + "\n</main></body></html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>\n{body}</section>" if body else ""


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts if text)


# ---------------------------------------------------------------------------------------------- numbers


def _cards(outcome: Outcome) -> str:
    if not outcome.history:
        return ""
    last = outcome.history[-1]
    certificate = float(last.get("certificate", math.nan))
    d = outcome.dataset.X.shape[1] if outcome.dataset is not None else None
    of = f" of {d:,}" if d else ""
    cards: dict[str, tuple[str, str]] = {
        "Objective": (cell(last.get("objective")), ""),
        "Duality gap" if outcome.model.certificate == "gap" else "Certificate": (
            "–" if math.isnan(certificate) else f"{certificate:.1e}",
            "" if math.isnan(certificate) else "good" if certificate <= _SOLVED else "bad",
        ),
        "Used interactions": (cell(last.get("used_interactions")), ""),
        "Used features": (cell(last.get("used_features")) + of, ""),
        "Epochs": (cell(last.get("epoch")), ""),
        "Solver time": (f"{float(last.get('seconds', 0.0)):.3g} s", ""),
    }
    cards |= {words: (cell(last[name]), "") for name, words in METRICS.items() if _finite(last.get(name))}
    return (
        '<dl class="cards">'
        + "".join(
            f'<div><dt>{escape(name)}</dt><dd class="{kind}">{escape(value)}</dd></div>'
            for name, (value, kind) in cards.items()
        )
        + "</dl>"
        '<p class="soft">The certificate tells how far the fit is from optimal, recomputed from the '
        f"parameters alone; up to {_SOLVED:g} counts as solved. Used interactions are counted exactly, "
        "without a tolerance.</p>"
    )


def _finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _formulas(outcome: Outcome) -> str:
    told, notation = outcome.experiment, outcome.model.notation
    objective = (
        r"\min\ \frac{1}{N}\sum_n \ell(f(x_n),y_n)+\lambda_w\|w\|^2"
        rf"+{notation.lambda_p}{notation.shrinkage}+{notation.lambda_sparse}\,{notation.penalty}"
    )
    parts = [objective, outcome.model.formula, rf"\ell(f,y)={LOSSES[told.loss].formula}"]
    if not (outcome.model.columnar or outcome.model.lifted):
        parts.append(outcome.model.penalty_words(told.penalty)[0])
    strengths = [
        rf"\lambda_w={told.lambda_w:g}",
        f"{notation.lambda_p}={told.lambda_p:g}",
        f"{notation.lambda_sparse}={told.lambda_sparse:g}",
    ]
    drawn = "".join(
        f'<div class="formula">{_mathml(latex)}</div>' for latex in (*parts, r",\quad ".join(strengths))
    )
    penalty = PENALTIES[told.regularizer].label
    words = f"{outcome.model.label}, {penalty}, rank {told.rank}, solver {told.solver}."
    return f"<p>{escape(words)}</p>{drawn}"


def _mathml(latex: str) -> str:
    # The converter does not know sizes of brackets.
    latex = re.sub(r"\\[bB]igg?[lrm]?(?![a-zA-Z])", "", latex)
    return str(convert(latex))


# --------------------------------------------------------------------------------------------- pictures


def _heatmap(outcome: Outcome) -> str:
    if outcome.parameters is None:
        return ""
    matrix, exact = _matrix(outcome.model, outcome.parameters)
    if matrix is None or not np.isfinite(matrix).all():
        return ""
    light, dark = (
        "data:image/png;base64,"
        + base64.b64encode(matrix_png(matrix, dark=dark, grey_diagonal=exact)).decode()
        for dark in (False, True)
    )
    used = int(outcome.history[-1].get("used_interactions", 0)) if outcome.history else 0
    size = len(matrix)
    what = f"{size:,} × {size:,} {'features' if exact else 'tiles of features'}"
    alt = f"Heatmap of the interaction weights, {what}; {used:,} interactions are used."
    caption = (
        f"{outcome.model.notation.weights}, {what}. Orange is positive, blue negative, the colour next to "
        "that of the page an exact zero"
        + (", grey the diagonal." if exact else "; a tile shows its largest interaction.")
    )
    return (
        f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{escape(alt)}" width="{size}" height="{size}"></picture>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _matrix(model: Model, parameters: Parameters) -> tuple[np.ndarray | None, bool]:
    """Return the weights of the pairs or their tiles, and whether it is the former."""
    try:
        weights = Weights.of(model, parameters)
    except ValueError:
        thinned = thin(parameters)
        plain = isinstance(thinned, ThinnedFactors) and not (model.columnar or model.lifted)
        return (thinned.tiles(), False) if plain else (None, False)  # type: ignore[union-attr]
    # A pair whose weight cancels is still used.
    W = np.where(weights.used & (weights.W == 0), np.nextafter(0, 1), weights.W)
    exact = len(W) <= EXACT_FEATURES
    return (W if exact else pooled_matrix(W, N_TILES)), exact


def _curves(outcome: Outcome) -> str:
    history = pd.DataFrame([dict(record) for record in outcome.history])
    if len(history) < 2:
        return ""
    notation = outcome.model.notation
    terms = {"penalty_p": notation.shrinkage_term, "penalty_sparse": notation.penalty_term}
    color = regularizer_color(outcome.experiment.regularizer)
    drawn = [
        ("Objective", training.objective(history, parts=True, terms=terms, color=color)),
        ("Used interactions and features", training.sparsity(history)),
        *((training.METRICS[m], training.prediction(history, m)) for m in training.metric_names(history)),
    ]
    if "support_f1" in history or "support_f1_3" in history:
        drawn.append(("Recovery of the truth", training.recovery(history)))
    return (
        '<div class="two">'
        + "".join(
            f'<figure role="img" aria-label="{escape(title)} against epochs"><h3>{escape(title)}</h3>'
            f"{sketch.svg(figure, _WIDTH, text='currentColor')}</figure>"
            for title, figure in drawn
        )
        + "</div>"
    )


# ----------------------------------------------------------------------------------------------- tables


def _pairs(outcome: Outcome, pairs: pd.DataFrame | None) -> str:
    if outcome.parameters is None or outcome.dataset is None:
        return ""
    if pairs is None:
        try:
            pairs = pair_table(outcome.model, outcome.parameters, outcome.dataset, SHOWN_PAIRS)
        except ValueError as error:
            return _paragraphs([str(error)])
    last = outcome.history[-1] if outcome.history else {}
    # A machine of higher order counts sets of all orders together, and the pairs among them.
    used = int(last.get("used_interactions_2", last.get("used_interactions", len(pairs))))
    first = f"; these are the first {SHOWN_PAIRS}" if used > SHOWN_PAIRS else ""
    words = {"feature_i": "feature", "feature_j": "with feature", "rows_with_both": "rows with both"}
    rows = pairs.head(SHOWN_PAIRS).rename(columns=words).to_dict("records")
    return f"<p>{used:,} are used{first}.</p>" + _table([{str(k): v for k, v in row.items()} for row in rows])


def _sets(outcome: Outcome) -> str:
    """Return the strongest interactions of more than two features, a section for every order."""
    parameters, dataset = outcome.parameters, outcome.dataset
    if parameters is None or dataset is None:
        return ""
    sections = []
    for order in orders_of(outcome.model):
        if order == 2:
            continue
        factors = factors_of(outcome.model, parameters, order)
        few = factors.largest_rows(rankable(factors.rows.size, order))
        sets, weight = ranked_sets(few, SHOWN_PAIRS)
        heads = ["feature", *(f"feature {place}" for place in range(2, order + 1))]
        rows = [
            {
                **{head: dataset.feature_names[j] for head, j in zip(heads, one, strict=True)},
                "weight": float(w),
            }
            for one, w in zip(sets, weight, strict=True)
        ]
        used = factors.n_used()
        first = f"; these are the first {len(rows)}" if used > len(rows) else ""
        sections.append(
            _section(
                f"The strongest interactions of {order} features",
                f"<p>{used:,} are used{first}.</p>" + _table(rows),
            )
        )
    return "".join(sections)


def _linear(outcome: Outcome) -> str:
    if outcome.parameters is None or outcome.dataset is None or not outcome.experiment.fit_linear:
        return ""
    w = outcome.parameters.w
    order = np.argsort(-np.abs(w), kind="stable")[:SHOWN_WEIGHTS]
    names = outcome.dataset.feature_names
    rows = [{"feature": names[j], "weight": float(w[j])} for j in order if w[j] != 0]
    return _paragraphs([f"Bias {cell(outcome.parameters.intercept)}."]) + _table(rows)


def _data(outcome: Outcome) -> dict[str, Any]:
    found = outcome.dataset
    if found is None:
        return {}
    return {
        "name": found.name,
        "rows": int(found.y.size),
        "features": int(found.X.shape[1]),
        "target": found.target_name,
        "task": found.task,
    }


def _capsule(capsule: Capsule | None) -> str:
    return "" if capsule is None else f"<pre>{escape(capsule.to_text())}</pre>"


def _facts(values: Mapping[str, Any]) -> str:
    return (
        _table([{"": name.replace("_", " "), " ": cell(value)} for name, value in values.items()])
        if values
        else ""
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "<p>None.</p>"
    named = any(name.strip() for name in rows[0])
    head = (
        "<tr>" + "".join(f'<th scope="col">{escape(name)}</th>' for name in rows[0]) + "</tr>"
        if named
        else ""
    )
    body = "".join("<tr>" + "".join(_cell(v) for v in row.values()) + "</tr>" for row in rows)
    return f'<div class="wide"><table>{head}{body}</table></div>'


def _cell(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"<td{' class=n' if number else ''}>{escape(cell(value))}</td>"
