"""What the stage of the training page shows: pictures, numbers and curves of a run, whole or what is new."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmviz.engine._jit import compiling
from fmviz.engine.interactions.of_order import orders_of
from fmviz.figures import training as figures
from fmviz.figures.palette import regularizer_color
from fmviz.lab.background.job import JobView
from fmviz.lab.background.task import TaskState
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.data_pair import TargetGrid
from fmviz.lab.runner import truth_of
from fmviz.lab.runs.changes import change_words
from fmviz.ui.components.matrix_view import FactorFrame, Mark, Panel, encode_view
from fmviz.ui.train import higher_order, panels
from fmviz.ui.train.matrix_options import Look, factors_repeat

FEED = "fmviz-train"
"""The name under which a pulse hands over what is new."""
GOOD_CERTIFICATE = 1e-3
# What is known of the steepest direction to another basis is an interval, about so wide.
_GOOD_BASIS_GAP = 0.02
_HEIGHT = 420
# Of every word the state of a run has, its tone.
_STATES: dict[TaskState, tuple[str, str]] = {
    TaskState.QUEUED: ("Queued", ""),
    TaskState.RUNNING: ("Running", "going"),
    TaskState.PAUSED: ("Paused", "waiting"),
    TaskState.FINISHED: ("Finished", "good"),
    TaskState.STOPPED: ("Stopped", ""),
    TaskState.FAILED: ("Failed", "bad"),
    TaskState.DIVERGED: ("Diverged", "bad"),
}


@dataclass(frozen=True, eq=False)
class Scene:
    """What there is to show.

    Attributes
    ----------
    experiment : Experiment
        What runs, or would.
    view : JobView or None
        The run, of one output; None before there is one.
    dataset : Dataset or None
        The data of that output, once they are loaded.
    words : str
        What is to be said where there is no run.
    look : Look or None
        The order that is looked at.
    compared : bool
        Whether the support is compared with the true one, pair by pair.
    grid : TargetGrid or None
        The target against two features, where no truth is known.
    x, metric : str
        The axis of the curves, and how predictions are measured.
    mark : Mark or None
        The cell that is explained.
    clickable : bool
        Whether a click on a cell is taken.
    moving : bool
        Whether the run goes on in slow motion.
    n_outputs : int
        How many outputs there are in all.
    """

    experiment: Experiment
    view: JobView | None
    dataset: Dataset | None
    words: str = ""
    look: Look | None = None
    compared: bool = False
    grid: TargetGrid | None = None
    x: str = "epoch"
    metric: str = "rmse"
    mark: Mark | None = None
    clickable: bool = False
    moving: bool = False
    n_outputs: int = 1

    @property
    def drawn(self) -> bool:
        """Whether the run has parameters that can be drawn."""
        view = self.view
        return (
            view is not None
            and self.dataset is not None
            and view.thinned is not None
            and bool(np.isfinite(view.thinned.values).all())
        )


@dataclass(frozen=True)
class Sent:
    """What the browser has been sent of a scene.

    Attributes
    ----------
    run : tuple
        Names the run and how its records are thinned.
    n : int
        So many records.
    version : int
        Of the run.
    pair : tuple of int or None
        The features of the picture of the data.
    drawn : bool
        Whether there was a matrix.
    words : str
        What was said of its state.
    """

    run: tuple[Any, ...]
    n: int
    version: int
    pair: tuple[int, int] | None
    drawn: bool
    words: str


def whole(scene: Scene) -> tuple[bytes, Sent]:
    """Return all of a scene, for the stage to begin with."""
    shown = _panels(scene, film=True)
    history = scene.view.history if scene.view is not None else ()
    played = len(shown) > 0 and len(shown[0].frames) > 1
    told = {
        **_told(scene),
        "part": False,
        "x": scene.x,
        "film": played,
        "charts": _charts(scene),
        "from": 0,
        "columns": _columns(scene, history),
    }
    options: dict[str, Any] = {"player": "rests"} if played else {}
    return _encode(scene, shown, told, **options), _sent(scene)


def news(scene: Scene, sent: Sent) -> tuple[bytes, Sent]:
    """Return what is new since the last time, or no bytes, and what the browser has then."""
    now = _sent(scene)
    if now == sent:
        return b"", now
    if now.run != sent.run or now.drawn != sent.drawn or not sent.n:
        return whole(scene)
    # The truth and the data stay as they are.
    shown = _panels(scene, film=False, beside=scene.compared or now.pair != sent.pair)
    first = max(0, sent.n - 1)
    assert scene.view is not None
    told = {
        **_told(scene),
        "part": True,
        "places": list(range(len(shown))),
        "from": first,
        "columns": _columns(scene, scene.view.history[first:]),
    }
    return _encode(scene, shown, told), now


def _sent(scene: Scene) -> Sent:
    view = scene.view
    pair = None if scene.grid is None else scene.grid.pair
    if view is None:
        return Sent(("", scene.dataset is None), 0, 0, pair, False, scene.words)
    said = _state(scene)["sentence"]
    return Sent((view.id, view.stride), len(view.history), view.version, pair, scene.drawn, said)


def _encode(scene: Scene, shown: list[Panel], told: dict[str, Any], **options: Any) -> bytes:
    dataset = scene.dataset
    scale = None
    if dataset is not None and dataset.truth is not None:
        # Fixed, or all later pictures would look alike beside the first epochs.
        scale = 1.25 * float(np.abs(dataset.truth).max()) or None
    factors = bool(shown) and isinstance(shown[0].frames[0], FactorFrame)
    return encode_view(
        shown,
        show="gram",
        columns=2,
        max_height=_HEIGHT,
        min_width=240,
        gram_scale=scale,
        feature_names=dataset.feature_names if factors and dataset is not None else None,
        clickable=scene.clickable,
        mark=scene.mark,
        named=True,
        zoom=True,
        empty=scene.words or "The data are being loaded.",
        more={"feed": FEED, "stage": told},
        **options,
    )


def _told(scene: Scene) -> dict[str, Any]:
    view = scene.view
    marks = [] if view is None else [int(epoch) for epoch in change_words(view.experiment, view.epoch)]
    return {
        "turn": time.time_ns() // 1_000,
        "state": _state(scene),
        "numbers": _numbers(scene),
        "marks": marks,
    }


# ----------------------------------------------------------------------------------------------- pictures


def _panels(scene: Scene, *, film: bool, beside: bool = True) -> list[Panel]:
    view, dataset, look = scene.view, scene.dataset, scene.look
    if dataset is None:
        return []
    truth = truth_of(dataset)
    # Before the first epoch, too: what is known of the truth does not depend on the run.
    sized = dataset.truth is not None and not factors_repeat(scene.experiment.machine)
    if look is not None:
        truth, sized = look.truth(dataset)
    compared = scene.compared and truth is not None and dataset.X.shape[1] <= EXACT_FEATURES
    if not scene.drawn or view is None:
        shown = [panels.nothing_learned(scene.experiment, dataset, scene.words)]
    else:
        frames = panels.film(view, look, compared) if film and not view.state.active else ()
        frames = frames if len(frames) > 1 else (panels.last_frame(view),)
        shown = [panels.learned(view, dataset, frames, look)]
        if compared and truth is not None:
            return [*shown, panels.support_panel(dataset, truth, frames, look)]
    if not beside:
        return shown
    if truth is not None:
        shown.append(panels.truth_panel(dataset, truth, sized, look))
    elif (data := panels.data_panel(dataset, scene.grid)) is not None:
        shown.append(data)
    return shown


# ------------------------------------------------------------------------------------------- state, numbers


def _state(scene: Scene) -> dict[str, str]:
    view = scene.view
    if view is None:
        return {"word": "Ready", "tone": "", "sentence": scene.words}
    word, tone = _STATES[view.state]
    if view.state is TaskState.FINISHED and not view.converged:
        word, tone = "Not converged", "waiting"
    sentence = view.message
    kernels = compiling()
    if view.state.active and kernels and view.epoch == 0:
        sentence = (
            f"Compiling {kernels[0]}. The first run of a kind compiles its kernels, for some seconds; later "
            "runs start at once."
        )
    elif view.state is TaskState.QUEUED:
        sentence = f"{sentence} Other runs are at work."
    elif view.state.active and not view.history:
        sentence = f"{sentence} {view.elapsed:.0f} s so far."
    elif view.state is TaskState.RUNNING and view.history:
        sentence = f"Epoch {view.epoch:,} of at most {view.experiment.max_epochs:,}."
    if scene.moving and not view.state.ended:
        word, tone, sentence = "Slow motion", "going", f"Epoch {view.epoch + 1:,}, step by step."
    if view.state in (TaskState.FAILED, TaskState.DIVERGED):
        sentence = "What happened is told above."
    return {"word": word, "tone": tone, "sentence": sentence}


def _numbers(scene: Scene) -> list[tuple[str, str, str, str]]:
    """Return label, value, help and tone of every number."""
    view, dataset = scene.view, scene.dataset
    if view is None or not view.history:
        return []
    last = view.last
    d = dataset.X.shape[1] if dataset is not None else 0
    machine = view.machine
    factorised = machine.factorised
    rows = "rows of P that are not zero" if factorised else "those in a pair whose weight in W is not zero"
    if machine.lifted:
        rows = "those in a product that some column makes of entries that are not zero"
    pairs = (
        "pairs of rows that share a column in which both are not zero"
        if factorised
        else "pairs whose weight in W is not zero"
    )
    pairs += f", of {d * (d - 1) // 2:,}"
    if machine.lifted:
        pairs = (
            "sets of distinct features that can be dealt out to the factors of a column, no entry being zero"
        )
    if machine.columnar and orders_of(machine) != (2,):
        pairs = "sets of features, of every order, that share a column of P in which all are not zero"
    sweeps = "Sweeps over all parameters." if factorised else "Steps of all parameters at once."
    spent = "Time in the solver; evaluating and drawing are left out."
    return [
        ("Epoch", f"{view.epoch:,}", sweeps, ""),
        ("Objective", f"{last['objective']:.5g}", "Loss and penalties, the sum that is minimised.", ""),
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
            else [("Bases", f"{last['used_bases']:,}", "The rows of V that are not zero.", "")]
        ),
        *_predicted(scene),
        _certificate(view),
        ("Solver time", _seconds(view.seconds), spent, ""),
    ]


def _certificate(view: JobView) -> tuple[str, str, str, str]:
    solved = f"Up to {GOOD_CERTIFICATE:g}, a tenth of a percent, counts as solved."
    told, good = "", GOOD_CERTIFICATE
    if view.machine.certificate == "stationarity":
        label, value = "Certificate", float(view.last["certificate"])
        words = (
            "The largest step that a minimisation over one entry (or row) would still make, relative to the "
            f"largest parameter, recomputed from the parameters alone. 0 at a stationary point. {solved}"
        )
    else:
        # Not every epoch has one.
        found = next((r for r in reversed(view.history) if math.isfinite(r["certificate"])), None)
        epoch, value = (0, 1.0) if found is None else (found["epoch"], float(found["certificate"]))
        label, least = "Duality gap", None if found is None else found.get("least_certificate")
        words = (
            "The relative duality gap: the objective is at most this part of itself above the least "
            f"possible, proved from the parameters alone. 0 at the optimum. {solved} Computed every tenth "
            f"epoch; this is that of epoch {epoch:,}."
        )
        if least is not None:
            words = (
                "The relative duality gap: the objective is at most the second number of itself above the "
                "least that any bases reach, proved from the parameters alone. The steepest direction to "
                "another basis is known between two bounds: no better proof brings the gap below the first "
                f"number. Computed every tenth epoch; this is that of epoch {epoch:,}."
            )
            told, good = _interval(least, value), _GOOD_BASIS_GAP
    # As it is shown: what reads as the bound meets it.
    tone = "good" if float(f"{value:.1e}") <= good else "bad" if view.state.ended else ""
    told = told or f"{value:.1e}"
    return label, "–" if math.isnan(value) else told, words, "" if math.isnan(value) else tone


def _interval(least: float, most: float) -> str:
    """Return both ends of a gap in percent, once where they look alike."""
    ends = [f"{100 * end:.0f}" if most >= 0.1 else f"{100 * end:.2g}" for end in (least, most)]
    return f"{'–'.join(dict.fromkeys(ends))} %"


def _predicted(scene: Scene) -> list[tuple[str, str, str, str]]:
    """Return how well several outputs are predicted, where there are several."""
    if scene.view is None or scene.n_outputs < 2:
        return []
    for metric in ("accuracy", "rmse"):
        for rows, words in (("validation", "the validation rows"), ("train", "the training rows")):
            if (value := scene.view.last.get(f"{rows}_{metric}")) is not None:
                told = f"{value:.1%}" if metric == "accuracy" else f"{value:.4g}"
                return [(figures.METRICS[metric], told, f"On {words}.", "")]
    return []


def _seconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


# ------------------------------------------------------------------------------------------------- curves


def _charts(scene: Scene) -> list[dict[str, Any]]:
    """Return which curves there are, from the top to the bottom of each."""
    experiment, metric = scene.experiment, scene.metric
    history = scene.view.history if scene.view is not None else ()
    names = set(history[-1]) if history else None
    machine = experiment.machine if scene.view is None else scene.view.machine
    counts = higher_order.interaction_columns(machine, names or ()) or {"used_interactions": "interactions"}
    true = higher_order.true_counts(machine, scene.dataset, len(counts) > 1)
    levels = true.get("true_interactions", {})
    colors = (figures.ORANGE, figures.PURPLE, figures.GREEN)
    used = [
        _row([_series(column, name, color, level=levels.get(column))], zero=True)
        for (column, name), color in zip(counts.items(), colors, strict=False)
    ]
    if "used_bases" in (names or ()):
        # Its bases join all features; they are what is chosen.
        used = [_row([_series("used_bases", "bases", figures.ORANGE)], zero=True)]
    features = _series("used_features", "features", figures.BLUE, level=true.get("true_features"))
    error = [_series(f"train_{metric}", "training", figures.GREY)]
    if experiment.validation > 0:
        error.append(_series(f"validation_{metric}", "validation", figures.ORANGE))
    share = metric in ("accuracy", "auc")
    objective = _series("objective", "", regularizer_color(experiment.regularizer))
    charts = [
        ("Objective", [_row([objective], log=True)]),
        (
            "What the model uses",
            used if "used_bases" in (names or ()) else [*used, _row([features], zero=True)],
        ),
        (figures.METRICS[metric], [_row(error, log=not share, top=float(share))]),
    ]
    recovery = [
        _series("support_f1", "F1 of pairs", figures.BLUE),
        _series("support_f1_3", "F1 of triples", figures.PURPLE),
        _series("estimation_error", "error", figures.ORANGE, dash=True),
    ]
    if names is None:
        known = scene.dataset is not None and truth_of(scene.dataset) is not None
        recovery = [recovery[0]] if known else []
    else:
        recovery = [one for one in recovery if one["column"] in names]
    if recovery:
        charts.append(("Recovery of the truth", [_row(recovery, zero=True, top=1.0)]))
    return [{"title": title, "rows": rows} for title, rows in charts]


def _series(
    column: str, name: str, color: str, *, level: int | None = None, dash: bool = False
) -> dict[str, Any]:
    return {"column": column, "name": name, "color": color, "level": level, "dash": dash}


def _row(series: list[dict[str, Any]], **axis: Any) -> dict[str, Any]:
    return {"series": series, **axis}


def _columns(scene: Scene, history: Iterable[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns that the curves are drawn from."""
    wanted = {"epoch", scene.x}
    wanted |= {one["column"] for chart in _charts(scene) for row in chart["rows"] for one in row["series"]}
    return {name: [_rounded(record.get(name)) for record in history] for name in sorted(wanted)}


def _rounded(value: Any) -> float | int | None:
    if isinstance(value, int | np.integer):
        return int(value)
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
