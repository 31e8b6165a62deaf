"""A run as it goes on and when it rests: the stage, and beneath it what there is to read at leisure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from fmviz.engine.interactions.of_order import pairs_of
from fmviz.engine.parameters import Parameters
from fmviz.figures import training as figures
from fmviz.figures.classes import confusion
from fmviz.figures.marks import mark_epochs
from fmviz.figures.palette import regularizer_color
from fmviz.lab.background.job import Job, JobView
from fmviz.lab.background.task import Task, TaskState, TaskView
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.data_pair import TargetGrid, strongest_product, target_grid
from fmviz.lab.runner import Run, load_dataset, truth_of
from fmviz.lab.runs.changes import change_words, changed_words, with_jumps
from fmviz.ui import widgets
from fmviz.ui.charts import chart
from fmviz.ui.components.stage import stage
from fmviz.ui.escape import plain
from fmviz.ui.guard import fragment
from fmviz.ui.settings.state import Settings
from fmviz.ui.train import epoch_trace, higher_order, outliers, slices, why_zero
from fmviz.ui.train import stage as scenes
from fmviz.ui.train.interactions import axis_of, draw_notes, draw_options, draw_pairs
from fmviz.ui.train.strengths import adopt
from fmviz.ui.watching import connected, shared_task

POLL_SECONDS = 0.25
_OUTPUTS_SECONDS = 1.0
_SENT = "fmviz:train:sent"


def show(job: Job | None, experiment: Experiment, settings: Settings, *, stale: str | None = None) -> None:
    """Draw a run, or what there is to see before it; while it goes on, again and again.

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
    loading = None if job is not None else _loading(experiment, settings["output"])
    going = (view is not None and view.state.active) or settings["motion"]
    if view is not None:
        if view.unsaved:
            st.warning(plain(view.unsaved), icon=":material/save:")
        if stale:
            st.warning(stale, icon=":material/sync_problem:")
        if view.state in (TaskState.FAILED, TaskState.DIVERGED):
            _error(view)
    waiting = loading is not None and loading.state.active
    dataset = view.dataset if view is not None else _loaded(loading)
    had = dataset is not None and (view is None or bool(view.history))

    first = True

    def feed() -> tuple[str, bytes] | None:
        """Hand the stage what is new, or have the page drawn where more than the stage changes."""
        nonlocal first
        if job is None:
            if waiting and loading is not None and not loading.state.active:
                st.rerun()
            return None
        if settings["motion"]:
            epoch_trace.tick(settings, job)
        now = job.view()
        ended = now.state.ended if settings["motion"] else not now.state.active
        if (going and ended) or adopt(settings, job) or (not had and now.history):
            st.rerun()
        if not stale:
            epoch_trace.draw(settings, job, now)
        if first:
            first = False
            return None
        scene = _scene(now, experiment, now.dataset, settings)
        payload, st.session_state[_SENT] = scenes.news(scene, st.session_state[_SENT])
        return scenes.FEED, payload

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
        payload, st.session_state[_SENT] = scenes.whole(scene)
        stage(payload, key="train_matrix")
    if job is not None and view is not None and dataset is not None and dataset.outputs:
        # The chosen output is on the stage; here are all of them, more rarely.
        _outputs(job, settings, _OUTPUTS_SECONDS if going else None)
    if view is not None and view.history and not going:
        _at_rest(view, settings, output)


def _outputs(job: Job, settings: Settings, run_every: float | None) -> None:
    def outputs() -> None:
        slices.draw(job.view(), settings)

    fragment(outputs, run_every=run_every)()


def _at_rest(view: JobView, settings: Settings, output: int) -> None:
    """Draw what there is to read once nothing moves."""
    one = view.of_output(output)
    assert one.dataset is not None, "the view has data"
    look = higher_order.looked_at(one, settings)
    if one.thinned is not None and np.isfinite(one.thinned.values).all():
        draw_notes(one)
    if words := higher_order.order_words(view.machine, view.last):
        st.caption(words)
    if planted := _recovery_words(view):
        st.caption(planted)
    if look is not None:
        if not outliers.draws_spectrum(one):
            higher_order.draw_columns(one, look)
        higher_order.draw_subset(one, one.dataset, settings)
    why_zero.draw_why(one, one.dataset, settings)
    outliers.draw(settings, one)
    if settings.shows("pairs", "The strongest interactions"):
        draw_pairs(one, one.dataset, look)
        outliers.draw_squares(one, one.dataset)
    if settings.shows("quality", "Prediction and recovery"):
        _confusion(view)
    if settings.shows("curves", "Curves"):
        quality = settings.shows("quality", "Prediction and recovery")
        if made := changed_words(view.experiment, view.epoch):
            # Of the small curves above, too.
            st.caption(plain(made))
        # Half of what the page costs, so only for those who look.
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
) -> scenes.Scene:
    output = settings["output"]
    one = None if view is None or dataset is None else view.of_output(output)
    data = dataset if dataset is None or not dataset.outputs else dataset.of_output(output)
    moving = bool(settings["motion"])
    explains = one is not None and not moving and why_zero.explains(one)
    d = 0 if data is None else data.X.shape[1]
    return scenes.Scene(
        experiment=experiment if view is None else view.experiment,
        view=view if one is None else one,
        dataset=data,
        words=_ready_words(loading, settings) if view is None else "",
        look=None if one is None else higher_order.looked_at(one, settings),
        compared=settings["support"],
        grid=None
        if data is None or truth_of(data) is not None
        else _data_grid(one, dataset, output, loading),
        x=settings[axis_of(view)],
        n_outputs=1 if dataset is None else max(1, len(dataset.outputs)),
        metric=_metric(view, dataset, settings),
        mark=why_zero.mark(settings, d) if explains else None,
        clickable=explains,
        moving=moving,
    )


def _metric(view: JobView | None, dataset: Dataset | None, settings: Settings) -> str:
    """Return how predictions are measured, as far as these data are measured so."""
    metric: str = settings["metric"]
    if view is not None and view.history:
        names = figures.metric_names(view.last)
        return metric if metric in names or not names else names[0]
    numbers = dataset is None or dataset.task == "regression"
    return metric if numbers or metric != "rmse" else "accuracy"


def _data_grid(
    one: JobView | None, dataset: Dataset | None, output: int, loading: Task | None
) -> TargetGrid | None:
    """Return the target against the strongest pair: of the run, or before it of the data."""
    if dataset is None:
        return None
    pair: tuple[int, int] | None = None
    plain = one is not None and one.machine.plain
    if plain and one is not None and one.thinned is not None and np.isfinite(one.thinned.values).all():
        found = pairs_of(one.machine, one.thinned).ranked(1)
        pair = (int(found.i[0]), int(found.j[0])) if len(found.i) else None
    if pair is None:
        pair = _first_pair(dataset, output)
    return None if pair is None else _grid(dataset, output, *pair)


@lru_cache(maxsize=8)
def _first_pair(dataset: Dataset, output: int) -> tuple[int, int] | None:
    return strongest_product(dataset.of_output(output))


@lru_cache(maxsize=16)
def _grid(dataset: Dataset, output: int, i: int, j: int) -> TargetGrid:
    return target_grid(dataset.of_output(output), i, j)


def _loading(experiment: Experiment, output: int) -> Task | None:
    """Return the task that loads the data before there is a run, or None where they cannot be had."""
    name, params = experiment.dataset, dict(experiment.dataset_params)
    if dataset_spec(name).unavailable() is not None:
        return None

    def make(should_stop: Callable[[], bool]) -> Iterator[Dataset]:
        dataset = load_dataset(name, **params)
        if truth_of(dataset) is None and not should_stop():
            _first_pair(dataset, output)
        yield dataset

    return shared_task(f"data:{name}:{sorted(params.items())}:{output}", make, again=False)


def _loaded(loading: Task | None) -> Dataset | None:
    items: tuple[Any, ...] = () if loading is None else loading.view().items
    return items[0] if items else None


def _ready_words(loading: Task | None, settings: Settings) -> str:
    if loading is None:
        return "There are no data."
    view: TaskView = loading.view()
    if view.state is TaskState.FAILED:
        return view.message
    if not view.items:
        return "Loading the data …"
    return "Press Play" if settings.shows("play") else "Not trained yet"


# -------------------------------------------------------------------------------------------------- errors


def _error(view: JobView) -> None:
    st.error(plain(view.message), icon=":material/error:")
    if view.state is TaskState.FAILED and view.details:
        st.caption(
            "This is a defect of fmviz or of its surroundings. Other settings may go round it: change one, "
            "then press Play."
        )
        with st.expander("Details", icon=":material/info:"):
            st.code(view.details, language=None, wrap_lines=True)
    elif view.state is TaskState.FAILED:
        st.caption("Change the setting that the sentence names, then press Play.")


# ------------------------------------------------------------------------------------------------- curves


def _curves(view: JobView, history: pd.DataFrame, settings: Settings) -> None:
    widgets.param(settings, "parts", "Parts of the objective")
    x = settings[axis_of(view)]
    left, right = st.columns(2)
    notation = view.machine.notation
    with left:
        st.markdown("**Objective**")
        made = changed_words(view.experiment, view.epoch)
        figure = figures.objective(
            with_jumps(history, view.experiment),
            x,
            parts=settings["parts"],
            terms={"penalty_p": notation.shrinkage_term, "penalty_sparse": notation.penalty_term},
            color=regularizer_color(view.experiment.regularizer),
            revision=view.id,
        )
        chart(
            _marked(figure, view, history, settings),
            key="train_objective",
            alt=f"The objective against {figures.X_TITLES[x]}. {made}".strip(),
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
    parts = higher_order.interaction_columns(view.machine, history)
    counts = higher_order.true_counts(view.machine, view.dataset, bool(parts))
    figure = figures.sparsity(history, settings["x"], revision=view.id, parts=parts, **counts)
    chart(
        _marked(figure, view, history, settings),
        key="train_sparsity",
        alt="The numbers of used interactions and of used features.",
    )


def _marked(figure: go.Figure, view: JobView, history: pd.DataFrame, settings: Settings) -> go.Figure:
    """Mark the changes of strengths."""
    return mark_epochs(figure, history, settings[axis_of(view)], change_words(view.experiment, view.epoch))


def _prediction(view: JobView, history: pd.DataFrame, settings: Settings) -> None:
    metric = settings["metric"]
    st.markdown("**Prediction**")
    figure = figures.prediction(history, metric, settings[axis_of(view)], revision=f"{view.id}:{metric}")
    chart(
        _marked(figure, view, history, settings),
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
            figure = figures.recovery(history, settings[axis_of(view)], revision=view.id)
            chart(
                _marked(figure, view, history, settings),
                key="train_recovery",
                alt="The F1 score of the support, and the estimation error.",
            )
            st.caption(_recovery_words(view))


def _confusion(view: JobView) -> None:
    """Draw how often each class is taken for each, once nothing moves."""
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
