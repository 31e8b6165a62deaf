"""A run during and after training: stage, curves, metrics and certificate."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine._jit import compiling
from fmviz.engine.losses import LOSSES
from fmviz.figures import training as figures
from fmviz.figures.training import mark_epochs
from fmviz.lab.background.job import JobView
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import load_dataset
from fmviz.lab.runs.changes import change_words, changed_words
from fmviz.lab.store.table import numbers
from fmviz.metrics import METRICS, Metric, in_units
from fmviz.stage import FactorFrame, Panel, View, encode_frames
from fmviz.stage.pictures import chart_of, names_in, row_of
from fmviz.ui.channel import Topic, channel, path
from fmviz.ui.charts import chart
from fmviz.ui.components import matrix_view, stage
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings, Values
from fmviz.ui.train import PANELS, interactions, matrices, why_zero
from fmviz.ui.train.interactions import axis_of, draw_notes, draw_options
from fmviz.ui.train.matrices import order_name
from fmviz.ui.train.panels import PARTS, Scene
from fmviz.ui.watching import failure, shared_task


def show(
    view: JobView | None, experiment: Experiment, settings: Settings, *, stale: str | None = None
) -> None:
    """Draw a run, or the data without a run; redraw while it is active.

    Parameters
    ----------
    view : JobView or None
        The run to draw.
    experiment : Experiment
        The experiment of the settings.
    settings : Settings
        The settings of the page, with ``x`` and ``metric``.
    stale : str, optional
        Message about settings changed since the run.
    """
    loading = None if view is not None else _loading(experiment)
    if view is not None:
        if view.unsaved:
            st.warning(plain(view.unsaved), icon=":material/save:")
        if stale:
            st.warning(stale, icon=":material/sync_problem:")
        if view.state in (TaskState.FAILED, TaskState.DIVERGED):
            failure(view)
        if view.state is TaskState.FAILED:
            st.caption(
                "This is a bug in fmviz or its environment. Other settings may avoid it: change one, then "
                "press Play."
                if view.details
                else "Change this setting, then press Play."
            )
    loaded = next(iter(() if loading is None else loading.items), None)
    dataset: Dataset | None = loaded if view is None else view.dataset
    place = st.container(key="train_stage_box")
    if dataset is not None:
        draw_options(view if view is not None and view.history else None, dataset, settings)
    words = _ready_words(loading, settings) if view is None else ""
    scene = _scene(view, experiment, dataset, settings, words)
    with place:
        if scene.clickable and scene.dataset is not None:
            why_zero.take_click(settings, "train_matrix", scene.dataset.X.shape[1])
            scene = _scene(view, experiment, dataset, settings, words)
        listens = _listen(scene, experiment, settings, loading)
        stage(full_payload(scene, listens, simple=not settings.is_expert), key="train_matrix")
    if view is not None and not view.state.active:
        if view.experiment.model.multi_output:
            _draw_basis(view)
        if view.history:
            _at_rest(scene, settings)


def _draw_basis(view: JobView) -> None:
    """Draw the bases shared by several outputs; the stage chooses the epoch."""
    if view.dataset is None or view.parameters is None or not view.parameters.finite():
        return
    # A resumed run has only its last epoch.
    frames = [frame for frame in view.frames if frame.finite] or [matrices.last_frame(view)]
    st.markdown("**The bases they share**: the rows of V")
    shown = View(
        [matrices.basis_panel(frames, view.dataset)],
        driver_key="train_matrix" if len(frames) > 1 else None,
        columns=1,
        min_width=120,
        max_height=330,
        named=True,
    )
    matrix_view(shown, key="train_output_layer")


def _at_rest(scene: Scene, settings: Settings) -> None:
    """Draw the explanations, tables and curves of an inactive run."""
    view = scene.fit
    last = view.last
    if scene.drawn:
        draw_notes(view)
    each = [
        f"{last[f'used_interactions_{m}']:,} {order_name(m)} of {last[f'used_features_{m}']:,} features"
        for m in view.machine.orders
        if f"used_interactions_{m}" in last
    ]
    if each:
        st.caption(f"By order: {' · '.join(each)}.")
    if planted := _recovery_words(view):
        st.caption(planted)
    for panel in PANELS:
        if panel.draw and panel.shown(scene, settings):
            st.markdown(f"**{plain(panel.heading(scene))}**")
            panel.draw(scene, settings)
    if settings.shows("curves", PARTS["curves"]):
        # Half the cost of the page, hence on demand.
        box = st.expander(
            "Curves, large", icon=":material/show_chart:", key="train_curves", on_change="rerun"
        )
        if box.open:
            with box:
                _curves(scene, settings)


def _curves(scene: Scene, settings: Settings) -> None:
    """Draw the curves of the stage at full size."""
    view, history = scene.fit, pd.DataFrame(scene.history)
    marks = change_words(view.experiment, view.epoch)
    changes = changed_words(view.experiment, view.epoch)
    places = itertools.cycle(st.columns(2))
    for panel in PANELS:
        if panel.plots is None or not (plots := panel.plots(scene)) or not panel.shown(scene, settings):
            continue
        title = panel.heading(scene)
        figure = figures.curves(history, plots, scene.x, revision=f"{view.id}:{title}")  # type: ignore[arg-type]
        with next(places):
            st.markdown(f"**{plain(title)}**")
            chart(
                mark_epochs(figure, history, scene.x, marks),
                key=f"train_{panel.name}",
                alt=f"{title} against {figures.X_TITLES[scene.x]}. {changes}".strip(),
            )
    if view.stride > 1:
        st.caption(f"Long run: only every {view.stride:,}th epoch and the last are stored.")
    if view.experiment.validation == 0:
        st.caption("No held-out rows. Raise *Validation share* to estimate the generalization error.")


# -------------------------------------------------------------------------------------------------- scene


def _scene(
    view: JobView | None,
    experiment: Experiment,
    dataset: Dataset | None,
    settings: Values,
    words: str = "",
) -> Scene:
    output = settings["output"]
    single = None if view is None or dataset is None else view.of_output(output)
    data = dataset if dataset is None or not dataset.outputs else dataset.of_output(output)
    explains = single is not None and why_zero.explains(single)
    return Scene(
        experiment=experiment if view is None else view.experiment,
        run=view,
        view=view if single is None else single,
        dataset=data,
        words=words,
        look=None if single is None else interactions.looked_at(single, settings),
        compared=settings["support"],
        x=settings[axis_of(view)],
        metric=_metric(view, dataset, settings),
        mark=why_zero.mark(settings, 0 if data is None else data.X.shape[1]) if explains else None,
        clickable=explains,
    )


def _metric(view: JobView | None, dataset: Dataset | None, settings: Values) -> Metric:
    """Return the chosen metric, or a default that applies to these data."""
    chosen = METRICS[settings["metric"]]
    if view is not None and view.history:
        offered = figures.metrics_in(view.last)
    else:
        linked = LOSSES[settings["loss"]].log_link
        kind = "real" if dataset is None or dataset.task == "regression" else dataset.task
        offered = [metric for metric in METRICS.values() if kind in metric.on and metric.log_link <= linked]
    return chosen if chosen in offered or not offered else offered[0]


def _loading(experiment: Experiment) -> TaskView | None:
    """Return the loading progress of the data before a run, or None if they are unavailable."""
    source = experiment.dataset
    if source.spec.unavailable() is not None:
        return None

    def make(should_stop: Callable[[], bool]) -> Iterator[Dataset]:
        yield load_dataset(source)

    return shared_task(f"data:{source.name}:{source.given}", make, again=False).view()


def _ready_words(loading: TaskView | None, settings: Settings) -> str:
    if loading is None:
        return "No data"
    if loading.state is TaskState.FAILED:
        return loading.message
    if not loading.items:
        return "Loading the data …"
    return "Press Play" if settings.shows("play") else "Not trained yet"


def _recovery_words(view: JobView) -> str:
    last, error = view.last, ""
    if "estimation_error" in last:
        none = f"{view.machine.notation.matrix} = 0 has 1"
        error = f", estimation error {last['estimation_error']:.3f} ({none})"
    kinds = (("", " of pairs" * ("support_f1_3" in last), error), ("_3", " of triples", ""))
    return " ".join(
        f"The support{kind} is {'' if last[f'support_recovered{key}'] else 'not '}exactly the true one. "
        f"F1 {last[f'support_f1{key}']:.3f}{more}."
        for key, kind, more in kinds
        if f"support_f1{key}" in last
    )


# --------------------------------------------------------------------------------------------------- stage


# Share of the window: matrices leave room for settings and curves.
_HEIGHT = 0.43
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


def full_payload(scene: Scene, live: dict[str, str] | None, *, simple: bool = False) -> bytes:
    """Encode a complete scene; `live` is the channel of further updates.

    In `simple` words, pairs and the entries of W and PPᵀ are interactions.
    """
    shown = _matrices(scene, film=True)
    if simple:
        symbols = ("W", "pairs", scene.machine.notation.weights)
        words = ["interactions" if panel.gram_label in symbols else panel.gram_label for panel in shown]
        shown = [replace(panel, gram_label=word) for panel, word in zip(shown, words, strict=True)]
    played = len(shown) > 0 and len(shown[0].frames) > 1
    names = names_in(_charts(scene), scene.x)
    header = {
        **_facts(scene),
        "run": "" if scene.view is None else scene.view.id,
        "live": live,
        "x": scene.x,
        "film": played,
        "charts": _charts(scene),
        "names": names,
        "generation": _generation(scene),
        "rows": [row_of(record, names) for record in scene.history],
    }
    dataset = scene.dataset
    factors = bool(shown) and isinstance(shown[0].frames[0], FactorFrame)
    return View(
        shown,
        show="gram",
        columns=2,
        max_height=_HEIGHT,
        min_width=240,
        gram_scale=_gram_scale(dataset),
        feature_names=dataset.feature_names if factors and dataset is not None else None,
        player="rests" if played else False,
        clickable=scene.clickable,
        mark=scene.mark,
        named=True,
        zoom=True,
        empty=scene.words or "Loading the data …",
    ).encode(stage=header)


def _listen(scene: Scene, experiment: Experiment, settings: Settings, loading: TaskView | None) -> Any:
    """Return the channel of a run, or of the loading of its data; else None."""
    if scene.run is None:
        if loading is None or not loading.state.active:
            return None
        topic = channel.topic(("loading", loading.id), partial(_loads, loading.id))
    elif scene.run.state.ended:
        return None
    else:
        chosen = {name: settings[name] for name in _CHOSEN}
        names = names_in(_charts(scene), scene.x)
        news = _News(scene.run.id, experiment, chosen, names)
        topic = channel.topic((scene.run.id, *chosen.items(), *names), news.refresh)
    return {"path": path(), "topic": topic.id}


_CHOSEN = ("output", "support", "metric", "order", "cell_i", "cell_j", "x", "against")


def _loads(id: str, topic: Topic) -> bool:
    """Update the topic with the loading progress of the data."""
    task = manager().get(id)
    ended = task is None or not task.state.active
    topic.head = {"gone": True} if ended else {"turn": 0, "phase": ""}
    return ended


@dataclass(eq=False)
class _News:
    """Updates of a run for all viewers with the same choices."""

    run: str
    experiment: Experiment
    chosen: dict[str, Any]
    names: list[str]
    seen: tuple[Any, ...] = ()

    def refresh(self, topic: Topic) -> bool:
        """Update the topic; return whether anything changed."""
        job = manager().job(self.run)
        if job is None:
            topic.head = {"gone": True}
            return True
        view = job.view()
        scene = _scene(view, self.experiment, view.dataset, self.chosen)
        if self.seen == (seen := (view.version, _state(scene))):
            return False
        self.seen = seen
        # The truth does not change.
        shown = _matrices(scene, film=False, beside=scene.compared) if scene.drawn else []
        pictures, topic.body = encode_frames(dict(enumerate(shown)), gram_scale=_gram_scale(scene.dataset))
        topic.head = {**_facts(scene), **pictures}
        same = topic.generation == _generation(scene)
        first = max(0, len(topic.rows) - 1) if same else 0
        topic.generation = _generation(scene)
        topic.rows[first:] = [
            json.dumps(row_of(record, self.names), separators=(",", ":")) for record in scene.history[first:]
        ]
        return True


def _facts(scene: Scene) -> dict[str, Any]:
    """Return the state, the numbers and the marks of a scene, and the phase of the page."""
    view = scene.run
    return {
        "turn": time.time_ns() // 1_000,
        "phase": "" if view is None else f"{view.state} {bool(view.history)} {view.experiment.changes}",
        "state": _state(scene),
        "numbers": _numbers(scene),
        "marks": [] if view is None else list(change_words(view.experiment, view.epoch).items()),
    }


def _generation(scene: Scene) -> str:
    """Return the identity of the records, which changes with the stride."""
    return "" if scene.view is None else str(scene.view.stride)


def _gram_scale(dataset: Dataset | None) -> float | None:
    """Return a fixed scale if the truth is known; otherwise the first epochs would dominate it."""
    truth = None if dataset is None else dataset.truth
    return None if truth is None else 1.25 * float(np.abs(truth).max()) or None


# ----------------------------------------------------------------------------------------------- pictures


def _matrices(scene: Scene, *, film: bool, beside: bool = True) -> list[Panel]:
    view, dataset, look = scene.view, scene.dataset, scene.look
    if dataset is None:
        return []
    # Also before the first epoch: the truth does not depend on the run.
    truth, sized = (look or matrices.Look(scene.machine, 2)).truth(dataset)
    compared = scene.compared and truth is not None and dataset.X.shape[1] <= EXACT_FEATURES
    if not scene.drawn or view is None:
        shown = [matrices.nothing_learned(scene.experiment, dataset, scene.words)]
    else:
        frames = matrices.film(view, look, compared) if film and not view.state.active else ()
        frames = frames if len(frames) > 1 else (matrices.last_frame(view),)
        shown = [matrices.learned(view, dataset, frames, look)]
        if compared and truth is not None:
            return [*shown, matrices.support_panel(dataset, truth, frames, look)]
    if beside and truth is not None:
        shown.append(matrices.truth_panel(dataset, truth, sized, look))
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
    if view.state.active and view.epoch == 0 and (kernels := compiling()):
        sentence = (
            f"Compiling {kernels[0]}. This takes some seconds for the first run of its kind; later runs "
            "start at once."
        )
    elif view.state is TaskState.QUEUED:
        sentence = f"{sentence} Other runs are in progress."
    elif view.state.active and not view.history:
        sentence = f"{sentence} {view.elapsed:.0f} s so far."
    elif view.state is TaskState.RUNNING and view.history:
        sentence = f"Epoch {view.epoch:,} of at most {view.experiment.max_epochs:,}."
    if view.state in (TaskState.FAILED, TaskState.DIVERGED):
        sentence = "See the message above."
    return {"word": word, "tone": tone, "sentence": sentence}


def _numbers(scene: Scene) -> list[tuple[str, str, str, str]]:
    """Return the label, value, help and tone of every number."""
    if scene.view is None or not scene.history:
        return []
    shown = numbers(scene.history, scene.machine, scene.dataset, scene.view.state.ended)
    telling = in_units(scene.view.last) if scene.run is not None and scene.run.n_outputs > 1 else {}
    total = [(label, f"{value:.4g}", "Over all outputs.", "") for label, value in telling.items()][:1]
    return [*shown[:-2], *total, *shown[-2:]]


# ------------------------------------------------------------------------------------------------- curves


def _charts(scene: Scene) -> list[dict[str, Any]]:
    """Return the charts of the stage: the curves of every panel."""
    drawn = ((panel, panel.plots(scene)) for panel in PANELS if panel.plots)
    return [chart_of(panel.heading(scene), plots) for panel, plots in drawn if plots]
