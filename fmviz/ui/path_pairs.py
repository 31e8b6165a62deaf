"""The second row of λ-path: weights of pairs along λ, and how often each pair is selected."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from fmviz.engine.penalties import PENALTIES
from fmviz.figures import pairs as figures
from fmviz.figures.palette import regularizer_color
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.runner import load_dataset, truth_of
from fmviz.lab.search.strength_path import PathPlan, selections
from fmviz.paths import HALVES, STARTS, frequency_table
from fmviz.ui import widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.watching import failure, watch

_PATHS = STARTS * HALVES
# Pairs selected by at least this share of the paths count as stable.
_STABLE = 0.9


def draw(
    settings: Settings,
    plan: PathPlan,
    view: TaskView,
    name: str,
    strength: float,
    band: tuple[float, float] | None,
) -> None:
    """Draw the weights of a regularizer along λ, and the selection frequency of each pair.

    `band` is the range of λ with about the target number of pairs.
    """
    label, key = PENALTIES[name].label, f"selection:{plan.digest}:{name}"
    task = manager().get(key)
    first, second = st.columns(2, gap="medium")
    with first:
        target = f"; shaded: about {settings['target']:,} pairs" if band else ""
        st.markdown(f"**Weights of pairs**, {label}{target}")
        chart(
            _weights(plan, view, name, strength, band),
            "path_weights",
            f"The weights of the strongest pairs of {label} against λ.",
        )
        st.caption("Bold: the five strongest pairs at the smallest λ. Dashed: the λ of the fit below.")
    with second:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**How often each pair is selected**, {label}", width="content")
            widgets.action(
                settings,
                "select",
                f"Run {_PATHS} paths",
                icon=":material/repeat:",
                type="tertiary" if task is not None else "secondary",
                disabled=task is not None and task.state.active,
                on_click=manager().submit,
                args=(key, partial(selections, plan, name)),
                help=f"Stability selection: {HALVES} random halves of the training rows, {STARTS} starts on "
                "each, warm-started along λ. Pairs selected by chance differ between halves.",
            )
            if task is not None and task.state.active:
                widgets.stop(settings, task, name="select_stop", shortcut=None)
        if task is not None:
            watch(
                task,
                partial(_draw_frequencies, plan, strength),
                lambda view: (f"{len(view.items)} of {_PATHS} paths.", len(view.items) / _PATHS),
                lambda view: len(view.items),
            )


def _draw_frequencies(plan: PathPlan, strength: float, view: TaskView) -> None:
    if view.state is TaskState.FAILED:
        failure(view)
    if view.items:
        table, words = _frequencies(plan, view, strength)
        names, truth = table.attrs["names"], truth_of(load_dataset(plan.base.dataset))
        square, strip = st.columns([2, 3])
        chart(figures.frequency_matrix(table[strength], names), "path_selected", words, place=square)
        chart(
            figures.frequency_strip(table, names, truth=truth, mark=strength),
            "path_selected_along",
            "The most frequently selected pairs, along λ.",
            place=strip,
        )
        st.caption(plain(f"{words} True pairs are bold." if truth is not None else words))


def _frequencies(plan: PathPlan, view: TaskView, strength: float) -> tuple[pd.DataFrame, str]:
    """Return the frequencies over completed paths, and a sentence on them at one λ."""
    dataset = load_dataset(plan.base.dataset)
    table = frequency_table(view.items, plan.lambdas, dataset.feature_names)
    stable, truth = table.index[table[strength] >= _STABLE], truth_of(dataset)
    words = (
        f"At λ = {strength:.4g}, at least {_STABLE:.0%} of {len(view.items)} paths on halves of the training "
        f"rows select {len(stable):,} pairs"
    )
    if truth is not None:
        hits = sum(bool(truth[pair]) for pair in stable)
        words += f", {hits:,} of them true; {np.count_nonzero(np.triu(truth, 1)):,} are true"
    return table, f"{words}."


def _weights(
    plan: PathPlan,
    view: TaskView,
    name: str,
    mark: float | None,
    band: tuple[float, float] | None,
) -> go.Figure:
    fits = [fit for fit in view.items if fit.experiment.regularizer.name == name]
    fits.sort(key=lambda fit: fit.experiment.lambda_sparse)
    dataset = load_dataset(plan.base.dataset)
    return figures.weights(
        [fit.experiment.lambda_sparse for fit in fits],
        [fit.parameters.P @ fit.parameters.P.T for fit in fits],
        dataset.feature_names,
        regularizer_color(name),
        truth=truth_of(dataset),
        mark=mark,
        band=band,
    )
