"""The start page: what this is, trained models to play with, and links into telling states of other pages."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from fmviz.engine.penalties import PENALTIES
from fmviz.engine.settings import ParamSpec
from fmviz.lab.search.arena import PAIR, REGULARIZERS, STRENGTHS, arena_fits, arena_plan
from fmviz.ui import arena, navigation, shell, widgets
from fmviz.ui.guard import fragment
from fmviz.ui.presets import Preset, operator_presets, training_presets
from fmviz.ui.state import Settings
from fmviz.ui.watching import shared_task, watch

TABLE = (
    ParamSpec(
        "strength",
        "float",
        0.1,
        STRENGTHS[0],
        STRENGTHS[-1],
        help="Drag the handle, or click it and press the arrow keys: the pictures follow.",
    ),
    ParamSpec(
        "along",
        "choice",
        "lambda",
        choices=("lambda", "epochs"),
        help="The trained models along λ; or how they come about at this λ, epoch by epoch from one start.",
    ),
    ParamSpec(
        "why", "choice", "none", choices=("none", *REGULARIZERS), help="What a regularizer does to a pair."
    ),
)
_ALONG = {"lambda": "Along λ", "epochs": "Epoch by epoch"}
_LABELS = {"none": "–", **{name: PENALTIES[name].label for name in REGULARIZERS}}
_HEIGHT = 200
_MECHANISMS = {
    "l1": "ℓ₁ has one threshold, λ, for all entries of P. It cannot tell whether an entry stands beside "
    "those of its own group: features of both groups share columns until λ is large.",
    "l21": "ℓ₂,₁ removes whole rows of P, that is features. Those that stay share all columns, and so "
    "interact with each other.",
    "ti": "TI's threshold for an entry grows with what else its column holds: beside large entries of one "
    "group, small ones of the other go. Every column is left to one group.",
    "cs": "CS removes whole rows of P, as ℓ₂,₁ does, with a threshold that grows with all other rows. "
    "Features that stay share all columns, and so interact with each other.",
}


def render() -> None:
    """Draw the page."""
    with shell.page("Start", Settings("start", TABLE)) as settings:
        if not settings["lesson"]:
            _hero()
        with st.container(border=True):
            _arena(settings)
        if settings["lesson"]:
            return
        _onwards(settings)
        st.subheader("See what an operator does")
        _cards(settings, operator_presets(), "operators")
        st.subheader("Watch a model learn")
        _cards(settings, training_presets(), "training")


def _hero() -> None:
    st.title("Which interactions matter?")
    st.markdown(
        "A **factorization machine** predicts from pairs of features: the weight of a pair is one cell of "
        "**PPᵀ**. A **regularizer** with strength **λ** sets weights to exactly zero, so that few pairs are "
        "left to read."
    )


def _onwards(settings: Settings) -> None:
    with st.container(horizontal=True):
        for key, label, icon, query, script in (
            ("start_tour", "60-second tour", ":material/tour:", {"lesson": "tour"}, None),
            ("start_to_lessons", "Lessons", navigation.LESSONS.icon, {}, navigation.LESSONS.script),
            ("start_to_prox", "Explore the operators", navigation.PROX.icon, {}, navigation.PROX.script),
            ("start_to_train", "Train a model", navigation.TRAIN.icon, {}, navigation.TRAIN.script),
            ("start_to_data", "Bring your data", navigation.DATA.icon, {}, navigation.DATA.script),
        ):
            kind: Any = "primary" if script is None else "secondary"
            st.button(label, icon=icon, key=key, type=kind, on_click=Settings.move, args=(query, script))


@fragment
def _arena(settings: Settings) -> None:
    plan = arena_plan()
    nearest = min(plan.lambdas, key=lambda strength: abs(strength - settings["strength"]))
    if settings["strength"] != nearest:
        settings.set(strength=nearest)
    st.markdown(
        "**Four regularizers, trained on the same data**: two groups of 15 features interact, 10 features "
        "are noise. Drag λ: who finds the groups?"
    )
    left, right = st.columns([5, 2], gap="large", vertical_alignment="bottom")
    with left:
        widgets.control(
            settings, "strength", st.select_slider, "Strength λ", plan.lambdas, format_func=arena.label_of
        )
    with right:
        widgets.param(settings, "along", "Watch", labels=_ALONG)
    task = shared_task(f"path:{plan.digest}", partial(arena_fits, plan))
    if settings["along"] == "epochs":
        arena.draw_epochs(plan, settings["strength"], "start_epochs", _HEIGHT)
    else:
        driver = settings.key("strength") if settings.shows("strength") else settings["strength"]
        watch(task, partial(arena.draw_path, plan, driver, "start_view", _HEIGHT))
    if settings.shows("why", "Why"):
        with st.container(horizontal=True, vertical_alignment="center", key="start_reason"):
            st.markdown("**Why** does it join the groups, or keep them apart?", width="content")
            widgets.control(
                settings,
                "why",
                st.segmented_control,
                "Regularizer",
                list(_LABELS),
                format_func=_LABELS.__getitem__,
                required=True,
                label_visibility="collapsed",
            )
    if settings["why"] != "none":
        st.markdown(_MECHANISMS[settings["why"]])
        arena.draw_why(plan, task.view(), settings["why"], settings["strength"], PAIR)


def _cards(settings: Settings, presets: list[Preset], group: str) -> None:
    presets = [preset for preset in presets if preset.card]
    for number, (column, preset) in enumerate(zip(st.columns(len(presets)), presets, strict=True)):
        with column.container(border=True, height="stretch", key=f"start_{group}_{number}"):
            st.markdown(f"#### :primary[{preset.icon}] {preset.title}")
            st.markdown(preset.text)
            if preset.missing is None:
                st.page_link(
                    preset.target.script,
                    label=f"**{preset.action}**",
                    icon=":material/arrow_forward:",
                    icon_position="right",
                    # Opened in a tab of its own, too, it widens nothing.
                    query_params={**preset.query, "level": settings["level"]},
                )
            else:
                st.caption(f":material/folder_off: {preset.missing}")
