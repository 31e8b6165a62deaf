"""Regularizers compared at equal sparsity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from fmviz.engine.penalties import PENALTIES
from fmviz.engine.settings import ParamSpec
from fmviz.figures import comparison as figures
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.runner import load_dataset, truth_of
from fmviz.lab.runs.program import equal_sparsity_program
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.search.equal_sparsity import SearchFit, at_equal_sparsity, suggested_target
from fmviz.lab.search.strength_path import METHODS
from fmviz.lab.store.table import METRICS
from fmviz.ui import arena, shell, widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain
from fmviz.ui.path.interaction_count import ACCEPT, SLACK, accepted
from fmviz.ui.settings.state import Settings, Several
from fmviz.ui.starts import START_LABELS, STARTS, follow_data
from fmviz.ui.watching import failure, watch

# Those that an FM takes with an exact operator; ridge makes nothing sparse.
TABLE = (
    # Links call them by this name.
    Several("fighters", ("l1", "l21", "ti", "cs"), METHODS, help="The regularizers that are compared."),
    ParamSpec(
        "target",
        "int",
        300,
        1,
        1_000_000,
        help="About how many interactions each may use. It begins with the number of pairs that truly "
        "interact, where that is known; else with a tenth of all pairs, and at most one for ten rows.",
    ),
    ACCEPT,
    STARTS,
)
_HEIGHT = 300


def draw(settings: Settings, linked: bool) -> None:
    """Draw the comparison: its settings, the search as it narrows, and the result."""
    spec = dataset_spec(settings["dataset"])
    if (reason := spec.unavailable()) is not None:
        st.info(plain(reason), icon=":material/folder_off:")
        return
    follow_data(settings, linked, ("target",), partial(_load_target, settings))
    st.markdown(
        f"On **{plain(spec.title)}**: each regularizer at the λ that leaves it about as many interactions as "
        "the others."
    )
    experiment = _experiment(settings)
    names, target, accept = settings["fighters"], settings["target"], accepted(settings)
    key = f"duel:{experiment.digest}:{target}:{accept}:{','.join(names)}"
    task = manager().get(key)
    active = task is not None and task.state.active

    def start() -> None:
        manager().submit(key, partial(at_equal_sparsity, experiment, names, target, accept=accept))

    line = f"{widgets.labels_of(names)} · {target:,} interactions · {SLACK[settings['accept']].lower()}"
    with shell.settings_box("compare_duel_box", line, folded=task is not None):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            with st.container(width="content"):
                widgets.regularizers(settings, "fighters")
            with st.container(width=150):
                widgets.param(settings, "target", "Interactions")
            with st.container(width="content"):
                widgets.param(settings, "accept", "Accepted", labels=SLACK)
        widgets.param(settings, "starts", "Start", labels=START_LABELS)
    with st.container(horizontal=True, vertical_alignment="center"):
        widgets.action(
            settings,
            "duel",
            "Start the comparison" if task is None else "Again",
            icon=":material/balance:",
            shortcut="P",
            type="primary",
            disabled=active or not names,
            on_click=start,
        )
        widgets.stop(settings, task, name="duel_stop")
        st.caption(_budget_words(settings, accept), width="content")
    dataset = load_dataset(experiment.dataset, **dict(experiment.dataset_params))
    if task is None and _drawable(dataset):
        arena.draw_empty(names, dataset, "compare_no_duel", _HEIGHT, "Not searched for yet")
    if task is not None:
        watch(task, partial(_draw, experiment, names, accept))
        if task.state.ended and task.view().items:
            source = widgets.linked(
                equal_sparsity_program(experiment, names, target, accept),
                f"{', '.join(names)} on {experiment.dataset} at {target:,} interactions, "
                f"seed {experiment.seed}",
                data={experiment.dataset: data_hash(dataset)},
            )
            widgets.python_block(source, "Searches again and prints the table above.")


def _load_target(settings: Settings, linked: bool) -> None:
    """Take the number that the data suggest; a link without one has the default, as it always had."""
    if not linked:
        settings.set(target=suggested_target(load_dataset(settings["dataset"])))


def _budget_words(settings: Settings, accept: tuple[int, int]) -> str:
    dataset = load_dataset(settings["dataset"])
    low, high = accept
    words = f"Accepts {low:,} to {high:,} interactions" if low < high else f"Accepts {low:,} interactions"
    if truth_of(dataset) is None:
        return f"{words}."
    return f"{words}; {suggested_target(dataset):,} pairs truly interact."


def _experiment(settings: Settings) -> Experiment:
    told = suggested(settings["dataset"]).to_dict()
    told |= {"seed": settings["seed"], "model": "fm", "regularizer": "ti", "solver": "auto"}
    told["start"] = settings["starts"]
    told = {name: value for name, value in told.items() if not name.startswith(("model_", "regularizer_"))}
    return Experiment(**told | {"validation": told["validation"] or 0.2})


def _drawable(dataset: Dataset) -> bool:
    """Return whether a model of the data has one matrix that can be drawn cell by cell."""
    return dataset.X.shape[1] <= EXACT_FEATURES and len(dataset.outputs) < 2


def _draw(experiment: Experiment, names: Sequence[str], accept: tuple[int, int], view: TaskView) -> None:
    fits: list[SearchFit] = list(view.items)
    if view.state.active:
        now = plain(fits[-1].message) if fits else "Preparing the data."
        st.caption(f"{len(fits)} fits in {view.elapsed:.0f} s. {now}")
    elif view.state is TaskState.FAILED:
        failure(view)
    elif view.state is TaskState.STOPPED:
        st.caption("Stopped. The results so far are shown.")
    ends = {fit.experiment.regularizer: fit for fit in fits if fit.parameters is not None}
    last = {name: ends[name] for name in names if name in ends}
    if not last:
        return
    metric = next((name for name in METRICS if any(name in fit.metrics for fit in last.values())), None)
    table = pd.DataFrame(
        {
            "regularizer": name,
            "label": PENALTIES[name].label,
            "nearest": fit.status == "nearest",
            "λ": fit.experiment.lambda_sparse,
            "interactions": fit.used_interactions,
            "Features": fit.used_features,
            "value": fit.metrics.get(metric, math.nan) if metric else math.nan,
            "F1": fit.metrics.get("support_f1", math.nan),
            "Fits": sum(one.experiment.regularizer == name and one.status != "nearest" for one in fits),
        }
        for name, fit in last.items()
    )
    dataset = load_dataset(experiment.dataset, **dict(experiment.dataset_params))
    drawable = _drawable(dataset)
    left, right = st.columns([5, 26] if drawable else [1, 1], gap="small")
    words = METRICS[metric] if metric else ""
    if metric:
        with left:
            st.markdown(f"**{words}**")
            chart(
                figures.equal_sparsity(table, "value", words),
                key="compare_duel_chart",
                alt=f"{words} of {', '.join(table['label'])} at about the same number of interactions.",
            )
    if drawable:
        with right:
            pictures = {
                name: [arena.fitted(fit.parameters.P, "", dataset, compared=True)]
                for name, fit in last.items()
                if fit.parameters is not None
            }
            arena.draw_panels(pictures, dataset, "compare_duel_view", _HEIGHT)
    if table["nearest"].any():
        low, high = accept
        st.caption(
            f"Hatched: {plain(' and '.join(table['label'][table['nearest']]))} cannot use {low:,} to "
            f"{high:,} interactions here. The nearest number that was reached is shown."
        )
    _table(table, words)
    for name, fit in last.items():
        if fit.status == "nearest":
            st.caption(f"**{PENALTIES[name].label}**: {plain(fit.message)}")


def _table(table: pd.DataFrame, words: str) -> None:
    shown = ["label", "λ", "interactions", "Features", "value", "F1", "Fits"]
    number = st.column_config.NumberColumn
    st.dataframe(
        table[[c for c in shown if c != "F1" or table["F1"].notna().any()]],
        hide_index=True,
        key="compare_duel_table",
        column_config={
            "label": st.column_config.TextColumn("Regularizer", width="small"),
            "λ": number(format="%.5g", width="small"),
            "interactions": number("Interactions", format="localized", width="small"),
            "Features": number(format="localized", width="small"),
            "value": number(words, format="%.5g", width="small"),
            "F1": number("Support F1", format="%.3f", width="small"),
            "Fits": number(width="small"),
        },
    )
