"""First fit of an upload without settings: strengths by validation, progress and results."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from fmviz.engine.models import SharedBasis
from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.task import TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.experiment import suggested
from fmviz.lab.importing import import_upload, suggest
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.search.first_fit import FirstFit, Step, first_fit, first_fit_program
from fmviz.lab.store import store
from fmviz.lab.uploads import library
from fmviz.paths.validation import Trial
from fmviz.tables.recipe import Recipe
from fmviz.ui import navigation, session_uploads, widgets
from fmviz.ui.escape import plain
from fmviz.ui.interactions import page as interactions
from fmviz.ui.interactions.columns import candidates
from fmviz.ui.settings.state import Settings
from fmviz.ui.watching import counted, outcome, shared_task, watch

TABLE = (
    ParamSpec("search", "bool", False, help="A link with search=1 searches for strengths."),
    ParamSpec(
        "strengths",
        "choice",
        "best",
        choices=("best", "sparsest"),
        help="The smallest error in validation, or the sparsest model within one standard error of it, which "
        "is easier to interpret.",
    ),
)
PARTS = ("read", "search_stop")
_OWN = ("rank", "validation", "seed", "outputs", "strengths")
_READ = "fmviz:data:read"


def task_name(settings: Settings, recipe: Recipe) -> str:
    """Return the name of the task that computes the first fit."""
    return f"strengths:{library.name_of(settings['file'], recipe)}:{settings.as_dict(*_OWN)}"


def draw(settings: Settings, recipe: Recipe, possible: bool, linked: bool, top: DeltaGenerator) -> None:
    """Draw the first fit: its button at the `top` of the page, its progress and its results."""
    file, title, own = settings["file"], settings["title"], settings.as_dict(*_OWN)
    key = task_name(settings, recipe)

    def start() -> None:
        session_uploads.remember(library.name_of(file, recipe))
        shared_task(key, partial(_fitted, file, recipe, title, session_uploads.owner(), own))
        settings.set(search=True)

    def read() -> None:
        start()
        st.session_state[_READ] = key

    if linked and settings["search"] and possible and not settings.notices:
        start()
    task = manager().get(key)
    with top:
        widgets.action(
            settings,
            "read",
            "Train and explain pairs",
            icon=navigation.INTERACTIONS.icon,
            type="primary",
            disabled=not possible or (task is not None and task.state.active),
            on_click=read,
            help="Needs no settings; opens the Interactions page.",
        )
    if task is None:
        return
    fit = next((step for step in task.view().items if isinstance(step, FirstFit)), None)
    if fit is not None and fit.stored and not task.state.active and st.session_state.pop(_READ, "") == key:
        # Not by address, which Streamlit would also add to the history of this page.
        there = Settings("interactions", interactions.TABLE)
        there.reset()
        there.set(run=fit.stored, strengths=settings["strengths"])
        st.switch_page(navigation.INTERACTIONS.script)
    st.subheader("Choose the strengths by validation")
    st.markdown(
        "Evaluates about forty strengths on held-out rows, like `fmviz fit`. The sparse pairs of the chosen "
        "strengths are then compared, by folds of the rows, with the mean, the columns alone, and averages "
        "over samples of a Bayesian machine."
    )
    widgets.stop(settings, task, name="search_stop", shortcut=None)
    watch(
        task,
        partial(_draw, settings, key),
        lambda view: counted(view, _trials(view), now=view.items[-1].message if view.items else ""),
        lambda view: len(_results(view)),
    )


def _fitted(
    file: str,
    recipe: Recipe,
    title: str,
    owner: str,
    own: dict[str, Any],
    should_stop: Callable[[], bool],
) -> Iterator[Step]:
    """Register the data set if necessary, and fit."""
    name = import_upload(file, recipe, title, should_stop, owner).name
    changes = {name: own[name] for name in ("rank", "validation", "seed")}
    model = "fm"
    if own["outputs"] == "shared" and load_dataset(name).outputs:
        # The model suggests the number of bases.
        model = SharedBasis.name
        del changes["rank"]
    asked = replace(suggested(name, model), **changes)
    sparsest = own["strengths"] == "sparsest"
    for step in first_fit(Run.prepare(asked), store(), should_stop, sparsest=sparsest):
        if isinstance(step, FirstFit) and step.stored:
            suggest(step.run.experiment)
        yield step


def _trials(view: TaskView) -> int:
    return sum(isinstance(step, Trial) for step in view.items)


def _results(view: TaskView) -> list[FirstFit]:
    return [step for step in view.items if isinstance(step, FirstFit)]


def _draw(settings: Settings, key: str, view: TaskView) -> None:
    fits = _results(view)
    if not view.state.active and fits and st.session_state.get(_READ) == key:
        st.rerun()
    outcome(view, _trials(view))
    for fit in fits:
        st.markdown(plain(fit.message))
        if fit.contest is not None:
            candidates(fit.contest.errors)
    if fits and fits[0].trouble:
        st.error(plain(fits[0].trouble), icon=":material/database_off:")
    elif fits and not view.state.active:
        _takeaway(fits[0], fits[-1], settings["strengths"])


def _model(fit: FirstFit) -> bytes:
    """Return the contents of the file model.npz of `fmviz fit`."""
    upload = library.find(fit.asked.dataset.name)
    assert upload is not None, "the data set was entered"
    sink = io.BytesIO()
    fit.saved_model(partial(library.in_bases, upload), upload.recipe.reading.base).save(sink)
    return sink.getvalue()


def _takeaway(fit: FirstFit, last: FirstFit, strengths: str) -> None:
    experiment, dataset = fit.run.experiment, fit.run.dataset
    source = widgets.linked(
        first_fit_program(fit.asked, strengths == "sparsest"),
        f"Strengths for {dataset.title}, seed {experiment.seed}: λ = {experiment.lambda_sparse:.4g}, "
        f"objective {fit.end.objective:.10g}",
        data={experiment.dataset.name: data_hash(dataset)},
    )

    with st.container(horizontal=True, vertical_alignment="center", key="data_search_links"):
        query = {**experiment.to_query(), "run": fit.stored}
        navigation.page_link(navigation.TRAIN, query, label="Open in Train")
        navigation.page_link(
            navigation.INTERACTIONS,
            {"run": fit.stored, "strengths": strengths},
            label="Interactions explained",
        )
        widgets.download(
            "Model (npz)",
            partial(_model, last),
            f"model-{experiment.dataset}-seed{experiment.seed}.npz",
            key="data_search_model",
            help="For `fmviz predict`; predicts like "
            + plain("this fit." if last.contest is None else f"{last.contest.labels[last.chosen]}."),
        )
    widgets.python_block(source, "Repeats search and fit, and prints every step.")
