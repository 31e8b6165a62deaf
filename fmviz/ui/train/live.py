"""Draw a run while it trains and once it has ended: stage, curves, metrics and certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from fmviz.engine._jit import compiling
from fmviz.engine.interactions.weights import orders_of
from fmviz.engine.parameters import Parameters
from fmviz.figures import training as figures
from fmviz.figures.classes import confusion
from fmviz.figures.palette import regularizer_color
from fmviz.figures.training import mark_epochs
from fmviz.lab.background.job import Job, JobView
from fmviz.lab.background.task import Task, TaskState, TaskView
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, load_dataset, truth_of
from fmviz.lab.runs.changes import change_words, changed_words, with_jumps
from fmviz.ui import widgets
from fmviz.ui.charts import chart
from fmviz.ui.components import stage
from fmviz.ui.components.matrix_view import FactorFrame, Mark, Panel, encode_view
from fmviz.ui.escape import plain
from fmviz.ui.guard import fragment
from fmviz.ui.settings.state import Settings
from fmviz.ui.train import interactions, outliers, panels, slices, why_zero
from fmviz.ui.train.interactions import axis_of, draw_notes, draw_options, draw_pairs
from fmviz.ui.train.panels import Look, factors_repeat, order_name
from fmviz.ui.train.settings import adopt
from fmviz.ui.watching import connected, failure, shared_task

POLL_SECONDS = 0.25
_SENT = "fmviz:train:sent"


def show(job: Job | None, experiment: Experiment, settings: Settings, *, stale: str | None = None) -> None:
    """Draw a run, or the data before there is one; redraw it while it is active.

    Parameters
    ----------
    job : Job or None
        What to show.
    experiment : Experiment
        What the settings describe.
    settings : Settings
        The page's, with ``x``, ``parts`` and ``metric``.
    stale : str, optional
        The sentence that the settings have changed since.
    """
    view = None
    if job is not None:
        job.attend(connected())
        view = job.view()
    loading = None if job is not None else _loading(experiment)
    going = view is not None and view.state.active
    if view is not None:
        if view.unsaved:
            st.warning(plain(view.unsaved), icon=":material/save:")
        if stale:
            st.warning(stale, icon=":material/sync_problem:")
        if view.state in (TaskState.FAILED, TaskState.DIVERGED):
            failure(view)
        if view.state is TaskState.FAILED:
            st.caption(
                "This is a defect of fmviz or of its surroundings. Other settings may go round it: change "
                "one, then press Play."
                if view.details
                else "Change the setting that the sentence names, then press Play."
            )
    waiting = loading is not None and loading.state.active
    loaded: tuple[Any, ...] = () if loading is None else loading.view().items
    dataset: Dataset | None = next(iter(loaded), None) if view is None else view.dataset
    had = dataset is not None and (view is None or bool(view.history))

    first = True

    def feed() -> tuple[str, bytes] | None:
        """Send updates to the stage, or rerun the page where more than the stage changes."""
        nonlocal first
        if job is None:
            if waiting and loading is not None and not loading.state.active:
                st.rerun()
            return None
        now = job.view()
        if (going and not now.state.active) or adopt(settings, job) or (not had and now.history):
            st.rerun()
        if first:
            first = False
            return None
        scene = _scene(now, experiment, now.dataset, settings)
        payload, st.session_state[_SENT] = news(scene, st.session_state[_SENT])
        return FEED, payload

    fragment(feed, run_every=POLL_SECONDS if going or waiting else None)()
    place = st.container(key="train_stage_box")
    output = 0
    if dataset is not None:
        output, _ = draw_options(view if had else None, dataset, settings)
    scene = _scene(view, experiment, dataset, settings, loading)
    with place:
        if scene.clickable and scene.dataset is not None:
            why_zero.take_click(settings, "train_matrix", scene.dataset.X.shape[1])
            scene = _scene(view, experiment, dataset, settings, loading)
        payload, st.session_state[_SENT] = full_payload(scene)
        stage(payload, key="train_matrix")
    if job is not None and view is not None and dataset is not None and dataset.outputs:
        # The stage shows the chosen output; all outputs are updated less often.

        def outputs() -> None:
            slices.draw(job.view(), settings)

        fragment(outputs, run_every=1.0 if going else None)()
    if view is not None and view.history and not going:
        _at_rest(view, settings, output)


def _at_rest(view: JobView, settings: Settings, output: int) -> None:
    """Draw the tables, curves and explanations of a run that is not active."""
    single = view.of_output(output)
    assert single.dataset is not None, "the view has data"
    look = interactions.looked_at(single, settings)
    if single.thinned is not None and np.isfinite(single.thinned.values).all():
        draw_notes(single)
    last = view.last
    each = [
        f"{last[f'used_interactions_{m}']:,} {order_name(m)} of {last[f'used_features_{m}']:,} features"
        for m in orders_of(view.machine)
        if f"used_interactions_{m}" in last
    ]
    if each:
        st.caption(f"By order: {' · '.join(each)}.")
    if planted := _recovery_words(view):
        st.caption(planted)
    why_zero.draw_why(single, single.dataset, settings)
    outliers.draw(single)
    if settings.shows("pairs", "The strongest interactions"):
        draw_pairs(single, single.dataset, look)
        outliers.draw_squares(single, single.dataset)
    if settings.shows("quality", "Prediction and recovery"):
        _confusion(view)
    if settings.shows("curves", "Curves"):
        quality = settings.shows("quality", "Prediction and recovery")
        if changes := changed_words(view.experiment, view.epoch):
            # This applies to the small curves above, too.
            st.caption(plain(changes))
        # Half of the cost of the page, so only on demand.
        box = st.expander(
            "Curves, large", icon=":material/show_chart:", key="train_curves", on_change="rerun"
        )
        if box.open:
            with box:
                history = pd.DataFrame(view.history)
                _curves(view, history, settings)
                if quality:
                    _quality(view, history, settings)


# -------------------------------------------------------------------------------------------------- scene


def _scene(
    view: JobView | None,
    experiment: Experiment,
    dataset: Dataset | None,
    settings: Settings,
    loading: Task | None = None,
) -> Scene:
    output = settings["output"]
    single = None if view is None or dataset is None else view.of_output(output)
    data = dataset if dataset is None or not dataset.outputs else dataset.of_output(output)
    explains = single is not None and why_zero.explains(single)
    return Scene(
        experiment=experiment if view is None else view.experiment,
        view=view if single is None else single,
        dataset=data,
        words=_ready_words(loading, settings) if view is None else "",
        look=None if single is None else interactions.looked_at(single, settings),
        compared=settings["support"],
        x=settings[axis_of(view)],
        n_outputs=1 if dataset is None else max(1, len(dataset.outputs)),
        metric=_metric(view, dataset, settings),
        mark=why_zero.mark(settings, 0 if data is None else data.X.shape[1]) if explains else None,
        clickable=explains,
    )


def _metric(view: JobView | None, dataset: Dataset | None, settings: Settings) -> str:
    """Return the chosen metric, or a default that applies to these data."""
    metric: str = settings["metric"]
    if view is not None and view.history:
        names = figures.metric_names(view.last)
        return metric if metric in names or not names else names[0]
    numbers = dataset is None or dataset.task == "regression"
    return metric if numbers or metric != "rmse" else "accuracy"


def _loading(experiment: Experiment) -> Task | None:
    """Return the task that loads the data before a run, or None where they are not available."""
    name, params = experiment.dataset, dict(experiment.dataset_params)
    if dataset_spec(name).unavailable() is not None:
        return None

    def make(should_stop: Callable[[], bool]) -> Iterator[Dataset]:
        yield load_dataset(name, **params)

    return shared_task(f"data:{name}:{sorted(params.items())}", make, again=False)


def _ready_words(loading: Task | None, settings: Settings) -> str:
    if loading is None:
        return "There are no data."
    view: TaskView = loading.view()
    if view.state is TaskState.FAILED:
        return view.message
    if not view.items:
        return "Loading the data …"
    return "Press Play" if settings.shows("play") else "Not trained yet"


# ------------------------------------------------------------------------------------------------- curves


def _curves(view: JobView, history: pd.DataFrame, settings: Settings) -> None:
    widgets.param(settings, "parts", "Parts of the objective")
    x = settings[axis_of(view)]
    left, right = st.columns(2)
    notation = view.machine.notation
    with left:
        st.markdown("**Objective**")
        changes = changed_words(view.experiment, view.epoch)
        _draw_curve(
            figures.objective(
                with_jumps(history, view.experiment),
                x,
                parts=settings["parts"],
                terms={"penalty_p": notation.shrinkage_term, "penalty_sparse": notation.penalty_term},
                color=regularizer_color(view.experiment.regularizer),
                revision=view.id,
            ),
            view,
            history,
            settings,
            key="train_objective",
            alt=f"The objective against {figures.X_TITLES[x]}. {changes}".strip(),
        )
    with right:
        if "used_bases" in history:
            # Its bases join all features; they are what is chosen.
            _prediction(view, history, settings)
        else:
            _uses(view, history, settings)
    if view.stride > 1:
        st.caption(f"The run is long: every {view.stride:,}th epoch is kept, and the last.")


def _uses(view: JobView, history: pd.DataFrame, settings: Settings) -> None:
    st.markdown("**What the model uses**")
    parts = interactions.interaction_columns(view.machine, history)
    counts = interactions.true_counts(view.machine, view.dataset, bool(parts))
    _draw_curve(
        figures.sparsity(history, settings["x"], revision=view.id, parts=parts, **counts),
        view,
        history,
        settings,
        key="train_sparsity",
        alt="The numbers of used interactions and of used features.",
    )


def _draw_curve(
    figure: go.Figure, view: JobView, history: pd.DataFrame, settings: Settings, key: str, alt: str
) -> None:
    """Draw a figure with marks at the epochs at which strengths changed."""
    words = change_words(view.experiment, view.epoch)
    chart(mark_epochs(figure, history, settings[axis_of(view)], words), key=key, alt=alt)


def _prediction(view: JobView, history: pd.DataFrame, settings: Settings) -> None:
    metric = settings["metric"]
    st.markdown("**Prediction**")
    _draw_curve(
        figures.prediction(history, metric, settings[axis_of(view)], revision=f"{view.id}:{metric}"),
        view,
        history,
        settings,
        key="train_prediction",
        alt=f"{figures.METRICS[metric]} on the training rows"
        + (" and the validation rows." if f"validation_{metric}" in history else "."),
    )
    if view.experiment.validation == 0:
        st.caption("No rows are kept out. Raise *Validation share* to see how the model generalises.")


def _quality(view: JobView, history: pd.DataFrame, settings: Settings) -> None:
    planted = "support_f1" in history or "support_f1_3" in history
    above = "used_bases" in history
    columns = st.columns(2) if planted and not above else [st.container()]
    if not above:
        with columns[0]:
            _prediction(view, history, settings)
    if planted:
        with columns[-1]:
            st.markdown("**Recovery of the truth**")
            _draw_curve(
                figures.recovery(history, settings[axis_of(view)], revision=view.id),
                view,
                history,
                settings,
                key="train_recovery",
                alt="The F1 score of the support, and the estimation error.",
            )
            st.caption(_recovery_words(view))


def _confusion(view: JobView) -> None:
    """Draw the confusion matrix of a run that is not active."""
    dataset = view.dataset
    if view.state.active or view.parameters is None or dataset is None:
        return
    if dataset.task not in ("class", "ordinal") or not np.isfinite(view.parameters.P).all():
        return
    counts, rows = _confused(view.id, view.epoch, view.experiment, view.parameters)
    st.markdown(f"**Which classes are confused**, on the {plain(rows)} rows")
    chart(
        confusion(counts, dataset.class_labels or ()),
        key="train_confusion",
        alt=f"Confusion matrix of {len(counts)} classes: true classes against predicted ones.",
    )


@st.cache_data(max_entries=16, show_spinner=False)
def _confused(run: str, epoch: int, _experiment: Experiment, _parameters: Parameters) -> Any:
    del run, epoch
    return Run.prepare(_experiment).confusion(_parameters)


def _recovery_words(view: JobView) -> str:
    last, matrix = view.last, view.machine.notation.matrix
    said = []
    for key, kind in (("", " of pairs"), ("_3", " of triples")):
        if f"support_f1{key}" not in last:
            continue
        kind = kind if "support_f1_3" in last else ""
        exactly = "is exactly" if last[f"support_recovered{key}"] else "is not exactly"
        words = f"The support{kind} {exactly} the true one. F1 {last[f'support_f1{key}']:.3f}"
        if not key and "estimation_error" in last:
            words += f", estimation error {last['estimation_error']:.3f} ({matrix} = 0 has 1)"
        said.append(words + ".")
    return " ".join(said)


# --------------------------------------------------------------------------------------------------- stage


FEED = "fmviz-train"
"""The name under which a pulse hands over what is new."""
GOOD_CERTIFICATE = 1e-3
# The largest dual norm is known to within an interval of about this width.
_GOOD_BASIS_GAP = 0.02
_HEIGHT = 420
# Label and tone of every state of a run.
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
    """The state that the stage shows.

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
    x, metric : str
        The axis of the curves, and how predictions are measured.
    mark : Mark or None
        The cell that is explained.
    clickable : bool
        Whether a click on a cell is taken.
    n_outputs : int
        How many outputs there are in all.
    """

    experiment: Experiment
    view: JobView | None
    dataset: Dataset | None
    words: str = ""
    look: Look | None = None
    compared: bool = False
    x: str = "epoch"
    metric: str = "rmse"
    mark: Mark | None = None
    clickable: bool = False
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
    """Which part of a scene the browser has received.

    Attributes
    ----------
    run : tuple
        Names the run and how its records are thinned.
    n : int
        So many records.
    version : int
        Of the run.
    drawn : bool
        Whether there was a matrix.
    words : str
        What was said of its state.
    """

    run: tuple[Any, ...]
    n: int
    version: int
    drawn: bool
    words: str


def full_payload(scene: Scene) -> tuple[bytes, Sent]:
    """Encode a scene completely, for the first payload of a stage."""
    shown = _panels(scene, film=True)
    history = scene.view.history if scene.view is not None else ()
    played = len(shown) > 0 and len(shown[0].frames) > 1
    header = {
        **_header(scene),
        "part": False,
        "x": scene.x,
        "film": played,
        "charts": _charts(scene),
        "from": 0,
        "columns": _columns(scene, history),
    }
    options: dict[str, Any] = {"player": "rests"} if played else {}
    return _encode(scene, shown, header, **options), _sent(scene)


def news(scene: Scene, sent: Sent) -> tuple[bytes, Sent]:
    """Encode the changes since the last payload, or no bytes; return the new state of the browser."""
    now = _sent(scene)
    if now == sent:
        return b"", now
    if now.run != sent.run or now.drawn != sent.drawn or not sent.n:
        return full_payload(scene)
    # The truth stays as it is.
    shown = _panels(scene, film=False, beside=scene.compared)
    first = max(0, sent.n - 1)
    assert scene.view is not None
    header = {
        **_header(scene),
        "part": True,
        "places": list(range(len(shown))),
        "from": first,
        "columns": _columns(scene, scene.view.history[first:]),
    }
    return _encode(scene, shown, header), now


def _sent(scene: Scene) -> Sent:
    view = scene.view
    if view is None:
        return Sent(("", scene.dataset is None), 0, 0, False, scene.words)
    said = _state(scene)["sentence"]
    return Sent((view.id, view.stride), len(view.history), view.version, scene.drawn, said)


def _encode(scene: Scene, shown: list[Panel], header: dict[str, Any], **options: Any) -> bytes:
    dataset = scene.dataset
    truth = None if dataset is None else dataset.truth
    # Fixed; otherwise the first epochs would dominate the scale.
    scale = None if truth is None else 1.25 * float(np.abs(truth).max()) or None
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
        more={"feed": FEED, "stage": header},
        **options,
    )


def _header(scene: Scene) -> dict[str, Any]:
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
    # Before the first epoch, too: the truth does not depend on the run.
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
        ("Solver time", f"{s:.2f} s" if (s := view.seconds) >= 1 else f"{1000 * s:.0f} ms", spent, ""),
    ]


def _certificate(view: JobView) -> tuple[str, str, str, str]:
    solved = f"Up to {GOOD_CERTIFICATE:g}, a tenth of a percent, counts as solved."
    shown, good = "", GOOD_CERTIFICATE
    if view.machine.certificate == "stationarity":
        label, value = "Certificate", float(view.last["certificate"])
        words = (
            "The largest step that a minimisation over one entry (or row) would still make, relative to the "
            f"largest parameter, recomputed from the parameters alone. 0 at a stationary point. {solved}"
        )
    else:
        # Not every epoch has a certificate.
        record = next((r for r in reversed(view.history) if math.isfinite(r["certificate"])), None)
        epoch, value = (0, 1.0) if record is None else (record["epoch"], float(record["certificate"]))
        label, least = "Duality gap", None if record is None else record.get("least_certificate")
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
            # One number where both bounds round to the same.
            ends = [f"{100 * end:.0f}" if value >= 0.1 else f"{100 * end:.2g}" for end in (least, value)]
            shown, good = f"{'–'.join(dict.fromkeys(ends))} %", _GOOD_BASIS_GAP
    # Compare the rounded value that is displayed.
    tone = "good" if float(f"{value:.1e}") <= good else "bad" if view.state.ended else ""
    shown = shown or f"{value:.1e}"
    return label, "–" if math.isnan(value) else shown, words, "" if math.isnan(value) else tone


def _predicted(scene: Scene) -> list[tuple[str, str, str, str]]:
    """Return a prediction metric over all outputs, where there are several."""
    if scene.view is None or scene.n_outputs < 2:
        return []
    for metric in ("accuracy", "rmse"):
        for rows, words in (("validation", "the validation rows"), ("train", "the training rows")):
            if (value := scene.view.last.get(f"{rows}_{metric}")) is not None:
                shown = f"{value:.1%}" if metric == "accuracy" else f"{value:.4g}"
                return [(figures.METRICS[metric], shown, f"On {words}.", "")]
    return []


# ------------------------------------------------------------------------------------------------- curves


def _charts(scene: Scene) -> list[dict[str, Any]]:
    """Return the charts of the stage with their curves."""
    experiment, metric = scene.experiment, scene.metric
    history = scene.view.history if scene.view is not None else ()
    names = set(history[-1]) if history else None
    machine = experiment.machine if scene.view is None else scene.view.machine
    counts = interactions.interaction_columns(machine, names or ()) or {"used_interactions": "interactions"}
    true = interactions.true_counts(machine, scene.dataset, len(counts) > 1)
    levels = true.get("true_interactions", {})
    colors = (figures.ORANGE, figures.PURPLE, figures.GREEN)
    used = [
        {"series": [_series(column, name, color, level=levels.get(column))], "zero": True}
        for (column, name), color in zip(counts.items(), colors, strict=False)
    ]
    if "used_bases" in (names or ()):
        # Its bases join all features; they are what is chosen.
        used = [{"series": [_series("used_bases", "bases", figures.ORANGE)], "zero": True}]
    else:
        features = _series("used_features", "features", figures.BLUE, level=true.get("true_features"))
        used.append({"series": [features], "zero": True})
    error = [_series(f"train_{metric}", "training", figures.GREY)]
    if experiment.validation > 0:
        error.append(_series(f"validation_{metric}", "validation", figures.ORANGE))
    share = metric in ("accuracy", "auc")
    objective = _series("objective", "", regularizer_color(experiment.regularizer))
    charts = [
        ("Objective", [{"series": [objective], "log": True}]),
        ("What the model uses", used),
        (figures.METRICS[metric], [{"series": error, "log": not share, "top": float(share)}]),
    ]
    recovery = [
        _series("support_f1", "F1 of pairs", figures.BLUE),
        _series("support_f1_3", "F1 of triples", figures.PURPLE),
        _series("estimation_error", "error", figures.ORANGE, dash=True),
    ]
    if names is None:
        recovery = [recovery[0]] if scene.dataset is not None and truth_of(scene.dataset) is not None else []
    else:
        recovery = [curve for curve in recovery if curve["column"] in names]
    if recovery:
        charts.append(("Recovery of the truth", [{"series": recovery, "zero": True, "top": 1.0}]))
    return [{"title": title, "rows": rows} for title, rows in charts]


def _series(
    column: str, name: str, color: str, *, level: int | None = None, dash: bool = False
) -> dict[str, Any]:
    return {"column": column, "name": name, "color": color, "level": level, "dash": dash}


def _columns(scene: Scene, history: Iterable[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns that the curves are drawn from."""
    wanted = {"epoch", scene.x}
    wanted |= {
        series["column"] for chart in _charts(scene) for row in chart["rows"] for series in row["series"]
    }
    return {name: [_rounded(record.get(name)) for record in history] for name in sorted(wanted)}


def _rounded(value: Any) -> float | int | None:
    if isinstance(value, int | np.integer):
        return int(value)
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
