"""Render fits as standalone HTML pages with interactive pictures, sentences and settings."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from fmviz.engine.interactions.weights import GivenPairs, never_zero, pairs_of
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.figures import effects as effect_figures
from fmviz.figures import training as curves
from fmviz.figures.palette import regularizer_color
from fmviz.lab.background.thinned import Frame, thin
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.comparison import groups_of
from fmviz.lab.interpretation.effects import Effects, Surface, plotted
from fmviz.lab.interpretation.reading import (
    listed_pairs,
    listed_sets,
    listed_weights,
    strongest_features,
)
from fmviz.lab.interpretation.wording import Wording
from fmviz.lab.runner import dataset_of, truth_of
from fmviz.lab.runs.changes import change_words, changed_words, changes_listed
from fmviz.lab.runs.provenance import data_hash, versions
from fmviz.lab.search.findings import Findings
from fmviz.lab.store import RunStore, StoredRun
from fmviz.lab.store.table import SOLVED, label_of, name_of, numbers, title_of_settings
from fmviz.lab.uploads import is_upload, library
from fmviz.metrics import in_units
from fmviz.stage import CodesFrame, FactorFrame, Panel, encode_codes, module
from fmviz.stage.pictures import (
    MOST_FEATURES,
    Picture,
    chart_of,
    chart_of_figure,
    strongest_words,
)
from fmviz.tables.encoded import Encoded
from fmviz.tables.scaling import Scaling
from fmviz.tables.source import Source
from fmviz.typography import cell, counted, typeset

SHOWN_PAIRS = 50
SHOWN_WEIGHTS = 20
# The maximum number of heatmaps, one per output.
_OUTPUTS = 12
_LEFT_OUT = "Feature names and rankings are omitted, and errors refer to the scaled target."
# The maximum number of columns, and of column pairs, drawn.
_COLUMNS = 12
USED = "Used features and interactions"
UNION = ", all outputs together"
_FOLDER = Path(__file__).parent
_TEMPLATES = Environment(
    loader=FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, undefined=StrictUndefined
)
_TEMPLATES.filters["cell"] = cell
MOST_BYTES = 2_000_000
# Tried in turn until the page is small enough.
_FRAMES = (60, 40, 25, 12, 5, 1)
_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("cards", "penalties", "pairs", "sets", "tables", "linear", "pictures", "findings"), ()),
    **dict.fromkeys(("data", "notes", "settings", "program", "model"), None),
    "more_outputs": 0,
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """The contents of a report on a fit.

    Attributes
    ----------
    title : str
        The heading.
    experiment : Experiment
        The settings.
    model : Model
        The model with its parameters.
    message : str
        The final status as a sentence.
    history : sequence of mapping
        Records of snapshots, see `fmviz.engine.snapshot.Snapshot.record`.
    parameters : Parameters or None
        The last parameters; None before the first epoch.
    dataset : Dataset or None
        The data; None if they are no longer available.
    notes : sequence of str
        Sentences about the data.
    program : str
        The program or command that repeats the fit.
    data : mapping of str to object
        Further facts about the data.
    settings : mapping of str to object
        The listed settings, by default those of the experiment.
    output : str
        The name of the output, if it is one of several.
    compared : bool
        Whether the score of the output is meaningful only relative to those of the other classes.
    findings : sequence of Findings
        The effects of columns in every output, if the model has them.
    frames : sequence of Frame
        The epochs drawn; by default, only the final parameters.
    """

    title: str
    experiment: Experiment
    model: Model
    message: str
    history: Sequence[Mapping[str, Any]]
    parameters: Parameters | None = None
    dataset: Dataset | None = None
    notes: Sequence[str] = ()
    program: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] | None = None
    output: str = ""
    compared: bool = False
    findings: Sequence[Findings] = ()
    frames: Sequence[Frame] = ()

    @property
    def epoch(self) -> int:
        """The number of finished epochs."""
        return int(self.history[-1]["epoch"]) if self.history else 0

    @cached_property
    def wording(self) -> Wording:
        """The wording of effects of features on a single output."""
        assert self.dataset is not None
        return Wording(Attributes(self.dataset), self.experiment.loss.name, self.compared)

    def each(self) -> list[Outcome]:
        """Return the contents for every output; those of a single output unchanged."""
        if self.parameters is None:
            return [self]
        m = self.model.n_outputs_of(self.parameters)
        names = [f"output {c + 1}" for c in range(m)] if self.dataset is None else self.dataset.outputs
        return [
            replace(
                self,
                model=model,
                parameters=parameters,
                dataset=None if self.dataset is None else self.dataset.of_output(c),
                output=names[c] if m > 1 else "",
                compared=self.dataset is not None
                and self.dataset.task == "class"
                and self.model.multi_output,
                frames=[frame.of_output(c) for frame in self.frames] if m > 1 else self.frames,
            )
            for c in range(m)
            for model, parameters in [self.model.of_output(self.parameters, c)]
        ]


def of_stored(run: StoredRun, runs: RunStore, program: str = "") -> Outcome:
    """Return the contents of a report on a stored run, without data if they are unavailable."""
    experiment, notes = run.experiment, list[str]()
    dataset: Dataset | None = None
    try:
        dataset = dataset_of(experiment)
        if is_upload(name := experiment.dataset.name) and (upload := library.find(name)) is not None:
            notes += file_notes(
                library.encoded(upload.file, upload.recipe),
                library.profile(upload.file, upload.recipe.reading).source,
            )
    except ValueError as error:
        notes.append(f"{_LEFT_OUT} {error}")
    parameters = runs.parameters(run.id)
    if dataset is not None and run.data_hash and data_hash(dataset) != run.data_hash:
        dataset = None
        notes.append(f"The data have changed since. {_LEFT_OUT}")
    if dataset is not None and parameters is not None:
        run.check_data(parameters, dataset)
    return Outcome(
        run.title or title_of_settings(run.settings, run.epoch, heading=True),
        experiment,
        experiment.model,
        run.message,
        runs.trace(run.id),
        parameters,
        dataset,
        notes,
        program,
        {"hash": run.data_hash} if run.data_hash else {},
    )


def file_notes(encoded: Encoded, source: Source | None) -> list[str]:
    """Return sentences on how a file was read and how its columns and rows were used."""
    return [
        *(() if source is None else source.notes),
        *encoded.target.sentences,
        *([] if encoded.encoder is None else encoded.encoder.sentences_),
        *encoded.notes,
    ]


def page(
    title: str, messages: Sequence[str], pictures: Sequence[tuple[str, Picture]] = (), **sections: Any
) -> str:
    """Return a self-contained HTML page of at most `MOST_BYTES`.

    Parameters
    ----------
    title : str
        The heading.
    messages : sequence of str
        Sentences below the heading.
    pictures : sequence of (str, Picture)
        The pictures with their headings. To limit the size, frames are thinned out and only the strongest
        features are kept; the page states so.
    **sections
        Other sections of the template.

    Returns
    -------
    str
        The page, with all external texts escaped; it follows the reader's light or dark theme.
    """
    script, address = Markup(module()), ""
    with suppress(PackageNotFoundError):
        urls = [url.partition(", ") for url in metadata("fmviz").get_all("Project-URL", ())]
        address = next((url for name, _, url in urls if name.lower() in ("homepage", "source")), "")
    for frames in _FRAMES:
        reduced = [(heading, *picture.reduced(frames)) for heading, picture in pictures]
        text = _TEMPLATES.get_template("report.html").render(
            _EMPTY
            | sections
            | {
                "title": title,
                "style": Markup((_FOLDER / "report.css").read_text(encoding="utf-8")),
                "messages": messages,
                "pictures": [(heading, packed(picture), words) for heading, picture, words in reduced],
                "script": script,
                "version": versions()["fmviz"],
                "address": address,
                "hash": base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode(),
            }
        )
        if len(text.encode(errors="replace")) <= MOST_BYTES:
            break
    return text


def packed(picture: Picture, **options: Any) -> dict[str, str]:
    """Return a picture in the format that the script of a saved page reads; see `Picture.payload`."""
    return {"payload": base64.b64encode(gzip.compress(picture.payload(**options), mtime=0)).decode()}


def html(outcome: Outcome) -> str:
    """Return the report as an HTML page; see `page`."""
    last = outcome.history[-1] if outcome.history else {}
    each, experiment = outcome.each(), outcome.experiment
    unit = (1.0, "") if outcome.dataset is None else outcome.dataset.unit
    # The strengths of the last epoch.
    strengths = ", ".join(
        f"{name_of(name)} = {cell(value)}" for name, value in experiment.strengths(outcome.epoch - 1).items()
    )
    return page(
        outcome.title,
        [outcome.message, changed_words(outcome.experiment, outcome.epoch - 1)],
        [
            (f"The interactions{': ' if output.output else ''}{output.output}", picture)
            for output in each[:_OUTPUTS]
            if (picture := picture_of([output])) is not None
        ],
        cards=[
            *(numbers(outcome.history, outcome.model, outcome.dataset) if last else ()),
            *((label, cell(value), "", "") for label, value in in_units(last, unit).items()),
        ],
        notes=[*filter(None, [_units(outcome.dataset)]), *outcome.notes],
        solved=f"{SOLVED:g}",
        findings=[_drawn(findings) for findings in outcome.findings],
        model=f"{outcome.model.label}, {cell(experiment.regularizer)}, rank {experiment.rank}, "
        f"solver {cell(experiment.solver)}; {strengths}.",
        more_outputs=max(0, len(each) - _OUTPUTS),
        **_listed(each),
        data={**_data(outcome.dataset), **outcome.data},
        settings=_settings(outcome),
        program=outcome.program,
    )


# ---------------------------------------------------------------------------------------------- numbers


def _units(dataset: Dataset | None) -> str:
    """Return a sentence on the unit of a scaled target, else ""."""
    if dataset is None or not dataset.unit[1]:
        return ""
    scaling, unit = dataset.target_scaling, dataset.unit[1]
    assert isinstance(scaling, Scaling), "requires a single numeric output"
    return (
        f"The target is fitted as ({unit} {'+' if scaling.mean < 0 else '−'} "
        f"{typeset(abs(scaling.mean), '.6g')})/{typeset(scaling.scale, '.6g')}; the objective refers to "
        f"it; errors, weights and effects are in {unit}."
    )


def _settings(outcome: Outcome) -> dict[str, Any]:
    """Return the settings by their labels."""
    experiment = outcome.experiment
    settings = dict(experiment.to_dict() if outcome.settings is None else outcome.settings)
    if experiment.changes:
        settings["changes"] = changes_listed(experiment, experiment.changes[-1].epoch)
    return listed_settings(settings)


def listed_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return settings by their labels, formatted as text."""
    return {name_of(name): label_of(name, cell(value)) for name, value in settings.items()}


# --------------------------------------------------------------------------------------------- pictures


def picture_of(outputs: Sequence[Outcome], **options: Any) -> Picture | None:
    """Return the weight matrices of the outputs of a fit, the true one if known, and its curves."""
    outcome = outputs[0]
    experiment, dataset, history = outcome.experiment, outcome.dataset, outcome.history
    color = regularizer_color(experiment.regularizer.name)
    truth = None if dataset is None else truth_of(dataset)
    truth = truth if truth is not None and truth.ndim == 2 else None
    charts: list[dict[str, Any]] = []
    known = {} if truth is None else {"used_interactions": int(np.triu(truth != 0, 1).sum())}
    if len(history) > 1:
        last = history[-1]
        plots = {
            "Convergence, F* of this run": curves.convergence(
                color, [(-1, None), *((change.epoch, None) for change in experiment.changes)]
            ),
            USED + bool(outcome.output) * UNION: curves.uses(true_interactions=known),
        }
        for metric in curves.metrics_in(last)[:1]:
            plots[metric.label] = curves.prediction(metric, f"validation_{metric.name}" in last)
        charts = [chart_of(name, plot) for name, plot in plots.items() if plot[0].curves[0].column in last]
    panels, features, words = list[Panel](), np.arange(0), ""
    drawn = [
        (
            each.output or "Learned",
            each.model,
            [
                # Counts of frames cover all outputs.
                (frame.key, frame.thinned, 0 if each.output else frame.used_interactions)
                for frame in each.frames
                # Not tiles.
                if frame.thinned.factors or len(frame.thinned.values) == frame.thinned.n_features
            ]
            or [("", each.parameters, 0)],
        )
        for each in outputs
    ]
    try:
        panels, features, words = learned(drawn, [color] * len(drawn))
    except ValueError:  # The model has no pairs.
        if not charts:
            return None
    if panels and truth is not None:
        shown = truth[np.ix_(features, features)]
        codes, scale = encode_codes(shown, grey_diagonal=True)
        panels.append(
            Panel(
                "Truth" if dataset is not None and dataset.truth is not None else "Truth (support only)",
                [CodesFrame(codes, scale, caption=f"{known['used_interactions']:,} true pairs")],
                gram_label="W",
                blocks=groups_of(shown),
            )
        )
    names = [str(j) for j in features] if dataset is None else [dataset.feature_names[j] for j in features]
    return Picture(
        panels,
        names,
        charts,
        history,
        # The first epochs overshoot; on their colour scale, all later epochs would look alike.
        scale=None if dataset is None or dataset.truth is None else 1.25 * float(np.abs(dataset.truth).max()),
        total=outcome.epoch,
        omitted=words,
        marks=[*change_words(experiment, outcome.epoch).items()],
        **options,
    )


def learned(
    given: Sequence[tuple[str, Model, Sequence[tuple[str, Any, int]]]], colors: Sequence[str]
) -> tuple[list[Panel], np.ndarray, str]:
    """Return matrices of pair weights of the same features, with a frame per fit, and these features.

    Parameters
    ----------
    given : sequence of (str, Model, sequence of (str, Parameters or Thinned, int))
        The title of a matrix, its model, and its fits, each with the name of its frame and, for thinned
        parameters, the number of interactions.
    colors : sequence of str
        The colours of the panels.

    Returns
    -------
    (list of Panel, ndarray, str)
        Beyond `MOST_FEATURES` features, only the strongest are drawn; the string states the omission.

    Raises
    ------
    ValueError
        If there are no pairs to draw.
    """
    drawn = [
        [
            (key, x, count, pairs_of(model, x) if x.factors else GivenPairs.of(x.values))
            for key, x, count in (
                (key, thin(x, len(x.w)) if isinstance(x, Parameters) else x, count)
                for key, x, count in fits
                if x is not None
            )
            if np.isfinite(x.values).all()
        ]
        for _, model, fits in given
    ]
    if not all(drawn):
        raise ValueError("No epoch has parameters to draw.")
    d = drawn[0][0][1].n_features
    features, words = np.arange(d), []
    if d > MOST_FEATURES:
        ends = {fit[-1] for fits in drawn for fit in (fits[-1], max(fits, key=lambda fit: fit[-1].rows.size))}
        features, used = strongest_features([*ends], MOST_FEATURES)
        features = features if used else np.arange(MOST_FEATURES)
        # A thinned fit lacks its weakest rows.
        used = max(
            used, *(len(x.values) + x.n_dropped for fits in drawn for _, x, *_ in fits if x.n_dropped), 0
        )
        words.append(strongest_words(features.size, used, d))
    if larger := any(max(model.orders, default=2) > 2 for _, model, _ in given):
        words.append("The matrix shows only pairs, not products of three or more features.")
    kind, panels = "pair" if larger else "interaction", []
    for (title, model, _), color, fits in zip(given, colors, drawn, strict=True):
        frames: list[FactorFrame | CodesFrame] = []
        for key, x, count, pairs in fits:
            weight, used_pairs = pairs.among(features, features)
            shown = total = int(np.count_nonzero(used_pairs)) // 2
            if features.size < d:
                total = sum(int(np.count_nonzero(used)) for *_, used in pairs.upper())
            caption = counted(max(total, count if x.n_dropped and not larger else 0), kind)
            if shown < total:
                caption += f", {shown:,} of them among the {features.size} displayed features"
            if x.factors and model.plain:
                frames.append(FactorFrame(x.dense()[features], key, caption))
            else:
                codes, scale = encode_codes(np.where(used_pairs, never_zero(weight), 0.0), grey_diagonal=True)
                frames.append(CodesFrame(codes, scale, key, caption))
        panels.append(Panel(title, frames, color=color, gram_label=model.notation.weights))
    return panels, features, " ".join(words)


# ---------------------------------------------------------------------------------------------- columns


def main_figure(effects: Effects, column: int) -> Any:
    """Draw the main effect of a column."""
    curve, own = effects.curve(column), effects.columns[column]
    number = own.kind == "number"
    curve["value"] = plotted(own, curve["value"]) if number else curve["value"]
    return effect_figures.main_effect(curve, None if number else [*curve["value"]], own.name, effects.unit)


def pair_figure(surface: Surface, unit: str, dark: bool = False) -> Any:
    """Draw the effect of a pair of columns: a curve for each category, or a heatmap."""
    axes = surface.first, surface.second
    names = axes[0].column.name, axes[1].column.name
    if surface.curves is not None:
        word, line = sorted(axes, key=lambda axis: axis.ends is not None)
        curves = surface.curves.set_axis(plotted(line.column, surface.curves.index))
        return effect_figures.curves_of_words(curves, line.column.name, word.column.name, unit)
    labels = axes[0].labels, axes[1].labels
    ends = [None if axis.ends is None else plotted(axis.column, axis.ends) for axis in axes]
    return effect_figures.surface(surface.effect, surface.rows, labels, ends, names, unit, dark=dark)


class ShownFindings(Findings):
    """Findings that a notebook shows, and that can be saved as a page."""

    def _repr_html_(self) -> str:
        tables = self.candidates, self.columns.drop(columns="column"), self.pairs.drop(columns=["a", "b"])
        shown = [table.head(_COLUMNS).to_html(index=False, na_rep="") for table in tables if len(table)]
        return "".join([f"<p>{escape(text)}</p>" for text in (self.message, *self.sentences)] + shown)

    def save(self, file: str | Path) -> Path:
        """Save the findings as a standalone HTML page with pictures, and return the file.

        Parameters
        ----------
        file : str or Path
            The HTML file.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        text = page(f"Findings on {self.effects.unit}", [], findings=[_drawn(self)])
        Path(file).write_text(text, encoding="utf-8")
        return Path(file)


def _drawn(findings: Findings) -> dict[str, Any]:
    """Return the largest columns and the pairs beyond chance, with the pictures of the page."""
    effects = findings.effects
    return {
        "output": findings.output,
        "words": [findings.message, *findings.sentences],
        "unit": effects.unit,
        "mains": [
            {"sentence": row.sentence, "stands_out": row.stands_out, **_main(effects, row.column)}
            for row in findings.columns.head(_COLUMNS).itertuples()
        ],
        "pairs": [
            {
                "name": f"{row.first} × {row.second}",
                "sentence": row.sentence,
                "picture": _surface(effects.surface(row.a, row.b), effects.unit),
            }
            for row in findings.named.head(_COLUMNS).itertuples()
        ],
        "candidates": findings.candidates.to_dict("records"),
    }


def _lines(figure: Any) -> dict[str, str]:
    return packed(Picture(charts=[chart_of_figure("", figure)]))


def _main(effects: Effects, column: int) -> dict[str, Any]:
    """Return the picture of the effect of a number, or the table of the effect of every level."""
    own, curve = effects.columns[column], effects.curve(column)
    if own.kind == "number":
        return {"picture": _lines(main_figure(effects, column))}
    return {"levels": curve.rename(columns={"value": own.name}).to_dict("records")}


def _surface(surface: Surface, unit: str) -> dict[str, str]:
    """Return the picture of a pair of columns: curves of few levels, or a matrix."""
    if surface.curves is not None:
        return _lines(pair_figure(surface, unit))
    codes, scale = encode_codes(np.nan_to_num(surface.effect))
    rows, columns = surface.first.labels, surface.second.labels
    panel = Panel("", [CodesFrame(codes, scale)], row_labels=rows, col_labels=columns, gram_label="effect")
    return packed(Picture(), panels=[panel], clickable=False, min_width=420, ask="")


# ----------------------------------------------------------------------------------------------- tables


def _listed(each: Sequence[Outcome]) -> dict[str, list[dict[str, Any]]]:
    """Return the strongest pairs, larger sets and linear weights of every output."""
    lists: dict[str, list[dict[str, Any]]] = {"pairs": [], "sets": [], "linear": []}
    for outcome in each:
        if outcome.parameters is None or outcome.dataset is None:
            continue
        given = outcome.model, outcome.parameters, outcome.wording, SHOWN_PAIRS
        output = {"output": outcome.output}
        lists["pairs"].append(output | listed_pairs(*given))
        lists["sets"] += [output | part for part in listed_sets(*given)]
        if outcome.experiment.fit_linear:
            lists["linear"].append(
                output | listed_weights(outcome.parameters, outcome.wording, SHOWN_WEIGHTS)
            )
    return lists


def _data(dataset: Dataset | None) -> dict[str, Any]:
    if dataset is None:
        return {}
    return {
        "data set": dataset.title,
        "rows": len(dataset.y),
        "features": int(dataset.X.shape[1]),
        "target": dataset.target_name,
        "task": dataset.task,
    }
