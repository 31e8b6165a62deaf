"""Trained models of several regularizers side by side under one λ, on any data set."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.tasks import manager
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import suggested
from fmviz.lab.runner import load_dataset, truth_of
from fmviz.lab.search.strength_path import (
    MOST_NUMBERS,
    PathPlan,
    range_to_empty,
    strengths,
    trace,
)
from fmviz.ui import arena, widgets
from fmviz.ui.state import Settings
from fmviz.ui.watching import watch

TABLE = (
    ParamSpec("along", "float", 0.0, 0.0, 1e6, help="Drag the handle, or press the arrow keys."),
    ParamSpec(
        "shown",
        "choice",
        "truth",
        choices=("truth", "weights"),
        help="Every pair in the colour of what it is in truth, or the weights.",
    ),
    ParamSpec("trained", "bool", False, help="A link with trained=1 fits the models."),
)
_POINTS = 25
_FEWEST = 5
# Of the largest strength: where one begins to look.
_MIDDLE = 0.1
_HEIGHT = 300
# What the pictures of all strengths may weigh on their way to the browser.
_MOST_BYTES = 6_000_000


def draw(settings: Settings, linked: bool) -> None:
    """Draw the models, as far as they are fitted; a slider goes through the strengths in the browser."""
    if (reason := dataset_spec(settings["dataset"]).unavailable()) is not None:
        st.info(reason, icon=":material/folder_off:")
        return
    data = load_dataset(settings["dataset"])
    if (reason := _too_large(data)) is not None:
        st.info(reason, icon=":material/grid_off:")
        return
    truth = truth_of(data) is not None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width="content"):
            widgets.regularizers(settings, "fighters")
        if truth:
            with st.container(width="content"):
                widgets.param(
                    settings, "shown", "Cells", labels={"truth": "Against the truth", "weights": "Weights"}
                )
    if not settings["fighters"]:
        st.info("No regularizer is chosen. Choose at least one above.", icon=":material/touch_app:")
        return
    plan = _plan(settings, data.X.shape[1])
    key = f"path:{plan.digest}"

    def start() -> None:
        settings.set(trained=True)
        manager().submit(key, partial(trace, plan))

    if linked and settings["trained"] and manager().get(key) is None:
        start()
    task = manager().get(key)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        widgets.action(
            settings,
            "along_start",
            f"Train {plan.total} models" if task is None else "Again",
            icon=":material/play_arrow:",
            shortcut="P",
            type="primary",
            disabled=task is not None and task.state.active,
            on_click=start,
            help="Paths along λ, from the start that the λ-path takes.",
        )
        widgets.stop(settings, task, name="along_stop")
    if task is None:
        st.caption(
            ":material/touch_app: Not trained on these data yet. Once they are, drag λ: all pictures follow."
        )
        return
    near = settings["along"] or _MIDDLE * plan.lambdas[-1]
    nearest = min(plan.lambdas, key=lambda strength: abs(strength - near))
    if settings["along"] != nearest:
        settings.set(along=nearest)
    widgets.control(
        settings, "along", st.select_slider, "Strength λ", plan.lambdas, format_func=arena.label_of
    )
    driver = settings.key("along") if settings.shows("along") else settings["along"]
    compared = truth and settings["shown"] == "truth"
    watch(task, partial(arena.draw_path, plan, driver, "compare_along_view", _HEIGHT, compared=compared))


def _too_large(data: Dataset) -> str | None:
    d = data.X.shape[1]
    if len(data.outputs) > 1:
        return (
            "Here there is one matrix for each regularizer; these data have several outputs, with one each."
        )
    if d > EXACT_FEATURES:
        return f"These data have {d:,} features; matrices along λ are drawn for up to {EXACT_FEATURES:,}."
    return None


def _plan(settings: Settings, d: int) -> PathPlan:
    names = settings["fighters"]
    base = replace(suggested(settings["dataset"], "fm"), start="informed", seed=settings["seed"])
    numbers = MOST_NUMBERS // (len(names) * d * base.rank)
    pictures = _MOST_BYTES // (len(names) * max(d * d, 4 * d * base.rank))
    points = max(_FEWEST, min(_POINTS, numbers, pictures))
    return PathPlan(base, names, strengths(*range_to_empty(base, names), points), "onwards")
