"""Choose strengths for an upload by validation: the search, its progress and its results."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from fmviz.engine.models import SharedBasis
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.settings import ParamSpec
from fmviz.figures import comparison as figures
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.experiment import suggested
from fmviz.lab.importing import import_upload
from fmviz.lab.runner import load_dataset
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.saved_model import SavedModel
from fmviz.lab.search.averaged import Average
from fmviz.lab.search.first_fit import FirstFit, Step, first_fit, first_fit_program
from fmviz.lab.store import store
from fmviz.lab.store.table import metrics_in_words
from fmviz.lab.uploads import library
from fmviz.paths.validation import Trial
from fmviz.tables.recipe import Recipe
from fmviz.ui import navigation, session_uploads, widgets
from fmviz.ui.charts import curves
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.watching import failure, watch

if TYPE_CHECKING:
    from fmviz.report import Outcome

TABLE = (ParamSpec("search", "bool", False, help="A link with search=1 searches for strengths."),)
GONE = dict.fromkeys(("suspects", "by"), "Rows that look wrong are listed on the page Interactions.")
PARTS = ("search_start", "search_stop")


def _changes(settings: Settings) -> dict[str, Any]:
    """Return what differs from the experiment that is suggested; bases are as many as that says."""
    rank = {} if settings["outputs"] == "shared" else {"rank": settings["rank"]}
    return {**rank, "validation": settings["validation"], "seed": settings["seed"]}


def _key(settings: Settings, recipe: Recipe) -> str:
    return f"strengths:{library.name_of(settings['file'], recipe)}:{_changes(settings)}"


def is_started(settings: Settings, recipe: Recipe) -> bool:
    """Return whether a search has begun, so that there is something to see."""
    return manager().get(_key(settings, recipe)) is not None


def draw(settings: Settings, recipe: Recipe, possible: bool, linked: bool) -> None:
    """Draw the search: its buttons, how far it is, and what it has come to."""
    file, title = settings["file"], settings["title"]
    key, changes, tasks = _key(settings, recipe), _changes(settings), manager()
    task = tasks.get(key)

    def start() -> None:
        session_uploads.remember(library.name_of(file, recipe))
        model = SharedBasis.name if settings["outputs"] == "shared" else None
        tasks.submit(key, partial(_searched, file, recipe, title, session_uploads.owner(), changes, model))
        settings.set(search=True)

    if linked and settings["search"] and possible and task is None and not settings.notices:
        start()
        task = tasks.get(key)
    if task is None and not settings.shows("search_start"):
        return
    st.subheader("Choose the strengths by validation")
    st.markdown(
        "Some fifty strengths are tried, each on held-out rows, as `fmviz fit` does. Then a model is fitted "
        "with the best, and compared with an average over samples of a Bayesian machine."
    )
    with st.container(horizontal=True, vertical_alignment="center", key="data_search_controls"):
        widgets.action(
            settings,
            "search_start",
            "Search for strengths" if task is None else "Search again",
            icon=":material/tune:",
            disabled=not possible or (task is not None and task.state.active),
            on_click=start,
        )
        widgets.stop(settings, task, name="search_stop", shortcut=None)
    if task is not None:
        watch(task, partial(_draw, settings))


def _searched(
    file: str,
    recipe: Recipe,
    title: str,
    owner: str,
    changes: dict[str, Any],
    model: str | None,
    should_stop: Callable[[], bool],
) -> Iterator[Step]:
    """Enter the data set where it is not there yet, and search."""
    name = library.name_of(file, recipe)
    if library.find(name) is None:
        yield from import_upload(file, recipe, title, should_stop, owner, model)
    if not should_stop():
        if not load_dataset(name).outputs:
            model = None
        yield from first_fit(replace(suggested(name, model), **changes), store(), should_stop)


def _draw(settings: Settings, view: TaskView) -> None:
    steps: list[Step] = list(view.items)
    fit = next((step for step in steps if isinstance(step, FirstFit)), None)
    average = next((step for step in steps if isinstance(step, Average)), None)
    trials = [step for step in steps if isinstance(step, Trial)] if fit is None else fit.validation.trials
    if view.state.active:
        now = plain(steps[-1].message) if steps else "Preparing the data."
        st.caption(f":material/hourglass_top: {len(trials)} fits in {view.elapsed:.0f} s. {now}")
    elif view.state is TaskState.FAILED:
        failure(view)
    elif view.state is TaskState.STOPPED:
        st.caption(f"Stopped after {len(trials)} fits. The results so far are shown.")
    if fit is not None:
        st.markdown(plain(fit.message))
        measured = metrics_in_words(fit.end.metrics, load_dataset(fit.experiment.dataset))
        st.caption(plain(", ".join(measured)) + ".")
    if average is not None:
        st.markdown(plain(average.message))
    if len(trials) > 1:
        _chart(trials, view.state.active)
    if fit is None:
        return
    if not view.state.active:
        _takeaway(fit, average)


def _model(fit: FirstFit, average: Average | None) -> bytes:
    """Return what `fmviz fit` writes as model.npz."""
    experiment = fit.experiment
    upload = library.find(experiment.dataset)
    assert upload is not None, "the data set was entered"
    own = library.encoded(upload.file, upload.recipe)
    sink = io.BytesIO()
    SavedModel(
        fit.end.parameters,
        experiment.model,
        own.target,
        load_dataset(experiment.dataset).feature_names,
        own.encoder,
        dict(experiment.model_params),
        experiment.loss,
        average.posterior if average is not None and average.better else None,
        upload.recipe.reading.base,
    ).save(sink)
    return sink.getvalue()


def _chart(trials: list[Trial], live: bool) -> None:
    table = pd.DataFrame([trial.record() for trial in trials]).assign(
        method=PENALTIES["ti"].label,
        regularizer="ti",
        dataset=[f"λ_p = {trial.lambda_p:.3g}" for trial in trials],
    )
    left, right = st.columns(2)
    for column, value, title in (
        (left, "validation_loss", "Loss, held-out rows"),
        (right, "used_interactions", "Used interactions"),
    ):
        with column:
            curves(
                figures.against_strength(table, "lambda_sparse", value, None, value, title),
                key=f"data_search_{value}",
                alt=f"{title} against λ, a curve for each λ_p.",
                live=live,
            )


def _takeaway(fit: FirstFit, average: Average | None) -> None:
    experiment = fit.experiment
    dataset = load_dataset(experiment.dataset)
    source = widgets.linked(
        first_fit_program(fit.asked),
        f"Strengths for {dataset.title}, seed {experiment.seed}: λ = {experiment.lambda_sparse:.4g}, "
        f"objective {fit.end.objective:.10g}",
        data={experiment.dataset: data_hash(dataset)},
    )

    def outcome() -> Outcome:
        from fmviz.report import of_stored

        runs = store()
        return of_stored(runs.get(fit.run), runs, source)

    better = average is not None and average.better
    name = f"{experiment.dataset}-seed{experiment.seed}"
    with st.container(horizontal=True, vertical_alignment="center", key="data_search_links"):
        navigation.page_link(
            navigation.TRAIN,
            {**experiment.to_query(), "run": fit.run},
            label="Open in Train",
        )
        navigation.page_link(
            navigation.INTERACTIONS,
            {"run": fit.run} | ({"samples": "1"} if better else {}),
            label="Its interactions, with intervals" if better else "Its interactions in words",
        )
        if len(dataset.outputs) < 2:
            navigation.page_link(
                navigation.INTERACTIONS, {"run": fit.run, "view": "suspects"}, label="Rows that look wrong"
            )
        widgets.download(
            "All trials (CSV)",
            lambda: fit.validation.frame.to_csv(index=False),
            f"strengths-{name}.csv",
            key="data_search_csv",
        )
        widgets.download(
            "Model (npz)",
            partial(_model, fit, average),
            f"model-{name}.npz",
            key="data_search_model",
            help="For `fmviz predict`: it predicts "
            + ("by the average, which is better." if better else "as this fit does."),
        )
        widgets.download_report("data_search_report", outcome, f"report-{name}.html")
    widgets.python_block(source, "Searches and fits again, and prints every step.")
