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
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.runner import load_dataset
from fmviz.lab.runs.program import equal_sparsity_program
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.runs.table import METRICS
from fmviz.lab.search.equal_sparsity import SearchFit, at_equal_sparsity
from fmviz.lab.search.strength_path import METHODS
from fmviz.ui import capsule, widgets
from fmviz.ui.charts import chart
from fmviz.ui.starts import START_LABELS, STARTS
from fmviz.ui.state import Settings, Several
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
        help="About how many interactions each may use (atarashi2021, 8.3).",
    ),
    STARTS,
)


def draw(settings: Settings) -> None:
    """Draw the comparison: its settings, the search as it narrows, and the result."""
    st.subheader("Regularizers at equal sparsity")
    spec = dataset_spec(settings["dataset"])
    st.markdown(
        f"On **{spec.title}**, chosen in the sidebar, each regularizer gets the strength λ at which "
        "it uses as many interactions as the others. All are then measured on held-out rows."
    )
    if (reason := spec.unavailable()) is not None:
        st.info(reason, icon=":material/folder_off:")
        return
    widgets.several(
        settings,
        "fighters",
        "Regularizers",
        labels={name: PENALTIES[name].label for name in METHODS},
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        widgets.param(settings, "target", "Interactions")
        widgets.param(settings, "starts", "Start", labels=START_LABELS)
        experiment = _experiment(settings)
        names = settings["fighters"]
        key = f"duel:{experiment.digest}:{settings['target']}:{','.join(names)}"
        task = manager().get(key)
        active = task is not None and task.state.active

        def start() -> None:
            manager().submit(key, partial(at_equal_sparsity, experiment, names, settings["target"]))

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
    if task is not None:
        watch(task, _draw)
        if task.state.ended and task.view().items:
            _capsule(experiment, names, settings["target"])


def _capsule(experiment: Experiment, names: Sequence[str], target: int) -> None:
    dataset = load_dataset(experiment.dataset, **dict(experiment.dataset_params))
    found = capsule.capsule(
        f"{', '.join(names)} on {experiment.dataset} at {target:,} interactions, seed {experiment.seed}",
        equal_sparsity_program(experiment, names, target),
        seed=experiment.seed,
        data={experiment.dataset: data_hash(dataset)},
    )
    capsule.draw("duel", found, "Searches again and prints the table above.")


def _experiment(settings: Settings) -> Experiment:
    told = suggested(settings["dataset"]).to_dict()
    told |= {"seed": settings["seed"], "model": "fm", "regularizer": "ti", "solver": "auto"}
    told["start"] = settings["starts"]
    told = {name: value for name, value in told.items() if not name.startswith(("model_", "regularizer_"))}
    return Experiment(**told | {"validation": told["validation"] or 0.2})


def _draw(view: TaskView) -> None:
    fits: list[SearchFit] = list(view.items)
    last = {fit.experiment.regularizer: fit for fit in fits}
    if view.state.active:
        now = fits[-1].message if fits else "Preparing the data."
        st.caption(f"{len(fits)} fits in {view.elapsed:.0f} s. {now}")
    elif view.state is TaskState.FAILED:
        failure(view)
    elif view.state is TaskState.STOPPED:
        st.caption("Stopped. The results so far are shown.")
    if not last:
        return
    metric = next((name for name in METRICS if any(name in fit.metrics for fit in last.values())), None)
    rows = []
    for name, fit in last.items():
        tries = sum(one.experiment.regularizer == name for one in fits)
        rows.append(
            {
                "regularizer": name,
                "label": PENALTIES[name].label,
                "λ": fit.experiment.lambda_sparse,
                "Interactions": fit.used_interactions,
                "Features": fit.used_features,
                "value": fit.metrics.get(metric, math.nan) if metric else math.nan,
                "F1": fit.metrics.get("support_f1", math.nan),
                "Fits": tries,
            }
        )
    table = pd.DataFrame(rows)
    words = METRICS[metric] if metric else ""
    shown = ["label", "λ", "Interactions", "Features", "value", "F1", "Fits"]
    left, right = st.columns([3, 2])
    with left:
        st.dataframe(
            table[[c for c in shown if c != "F1" or table["F1"].notna().any()]],
            hide_index=True,
            key="compare_duel_table",
            column_config={
                "label": st.column_config.TextColumn("Regularizer", width="small"),
                "λ": st.column_config.NumberColumn(format="%.5g", width="small"),
                "Interactions": st.column_config.NumberColumn(format="localized", width="small"),
                "Features": st.column_config.NumberColumn(format="localized", width="small"),
                "value": st.column_config.NumberColumn(words, format="%.5g", width="small"),
                "F1": st.column_config.NumberColumn("Support F1", format="%.3f", width="small"),
                "Fits": st.column_config.NumberColumn(width="small"),
            },
        )
        for name, fit in last.items():
            if fit.status == "not reachable":
                st.caption(f"**{PENALTIES[name].label}**: {fit.message}")
    found = table[[fit.status == "found" for fit in last.values()]]
    if metric and len(found):
        with right:
            # Not as a picture while the comparison goes on: it changes a few times only.
            chart(
                figures.equal_sparsity(found, "value", words),
                key="compare_duel_chart",
                alt=f"{words} of {', '.join(found['label'])} at the same number of interactions.",
            )
