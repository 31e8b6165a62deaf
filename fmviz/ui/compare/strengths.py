"""Trained models of several regularizers side by side under one λ, on any data set."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.tasks import manager
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import suggested
from fmviz.lab.interpretation.data_pair import strongest_product
from fmviz.lab.interpretation.support import first_between
from fmviz.lab.runner import load_dataset, truth_of
from fmviz.lab.search.strength_path import (
    METHODS,
    MOST_NUMBERS,
    PathPlan,
    range_to_empty,
    strengths,
    trace,
)
from fmviz.ui import arena, shell, widgets
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings

TABLE = (
    ParamSpec("along", "float", 0.0, 0.0, 1e6, help="Drag the handle, or press the arrow keys."),
    ParamSpec(
        "shown",
        "choice",
        "truth",
        choices=("truth", "weights"),
        help="Every pair in the colour of what it is in truth, or the weights.",
    ),
    arena.how("watch"),
    arena.why(METHODS),
    ParamSpec("trained", "bool", False, help="A link with trained=1 fits the models."),
)
_POINTS = 25
_FEWEST = 5
# Of the largest strength: where one begins to look.
_MIDDLE = 0.1
_HEIGHT = 300


def draw(settings: Settings, linked: bool) -> None:
    """Draw the models, as far as they are fitted; a slider goes through the strengths in the browser."""
    if (reason := dataset_spec(settings["dataset"]).unavailable()) is not None:
        st.info(plain(reason), icon=":material/folder_off:")
        return
    data = load_dataset(settings["dataset"])
    if (reason := _too_large(data)) is not None:
        st.info(plain(reason), icon=":material/grid_off:")
        return
    truth = truth_of(data) is not None
    if not settings["fighters"]:
        widgets.regularizers(settings, "fighters")
        st.info("No regularizer is chosen. Choose at least one above.", icon=":material/touch_app:")
        return
    plan = _plan(settings, data.X.shape[1])
    key = f"path:{plan.digest}"
    line = f"{widgets.labels_of(settings['fighters'])} · {len(plan.lambdas)} values of λ"
    with shell.settings_box("compare_along_box", line, folded=manager().get(key) is not None):
        widgets.regularizers(settings, "fighters")

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
            f"Train {plan.total:,} models" if task is None else "Again",
            icon=":material/play_arrow:",
            shortcut="P",
            type="primary",
            disabled=task is not None and task.state.active,
            on_click=start,
            help="Paths along λ, from the start that the λ-path takes.",
        )
        widgets.stop(settings, task, name="along_stop")
        if truth and task is not None:
            widgets.param(
                settings, "shown", "Cells", labels={"truth": "Against the truth", "weights": "Weights"}
            )
    if task is None:
        st.caption(
            ":material/touch_app: Not trained on these data yet. Once they are, drag λ: all pictures follow."
        )
        arena.draw_empty(settings["fighters"], data, "compare_no_models", _HEIGHT, "Not trained yet")
        return
    if not settings["along"]:
        settings.set(along=_MIDDLE * plan.lambdas[-1])
    compared = truth and settings["shown"] == "truth"
    arena.draw(settings, plan, task, ("along", "watch"), _HEIGHT, pair=_pair(data), compared=compared)


@lru_cache(maxsize=8)
def _pair(data: Dataset) -> tuple[int, int] | None:
    """Return features of different groups, or where nothing is known of groups, those most worth a look."""
    truth = truth_of(data)
    return strongest_product(data) if truth is None else first_between(truth)


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
    ends = range_to_empty(base, names)
    pictures = arena.most_frames(PathPlan(base, names, ends, "onwards"))
    points = max(_FEWEST, min(_POINTS, numbers, pictures))
    return PathPlan(base, names, strengths(*ends, points), "onwards")
