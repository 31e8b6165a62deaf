"""The start page: what this is, a picture to play with, and links into telling states of the other pages."""

from __future__ import annotations

from typing import Any

import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab import operators as lab
from fmviz.ui import navigation, shell, widgets
from fmviz.ui.components.matrix_view import matrix_view
from fmviz.ui.guard import fragment
from fmviz.ui.presets import Preset, operator_presets, training_presets
from fmviz.ui.prox import page
from fmviz.ui.state import Settings

TABLE = (
    ParamSpec(
        "log2lambda",
        "int",
        -3,
        lab.EXPONENTS[0],
        lab.EXPONENTS[-1],
        help="Drag the handle, or click it and press the arrow keys: the pictures follow.",
    ),
)
_SHOWN = ("l1", "l21", "ti", "cs")
_DRAWN = (40, 8, "blocks", 1)


def render() -> None:
    """Draw the page."""
    with shell.page("Start", Settings("start", TABLE)) as settings:
        if not settings["lesson"]:
            _hero(settings)
        with st.container(border=True):
            _playground(settings)
        if settings["lesson"]:
            return
        st.subheader("See what an operator does")
        _cards(settings, operator_presets(), "operators")
        st.subheader("Watch a model learn")
        _cards(settings, training_presets(), "training")


def _hero(settings: Settings) -> None:
    st.title("Which interactions matter?")
    st.markdown(
        "A **factorization machine** predicts from pairs of features: the weight of a pair is one cell "
        "of **PPᵀ**. A **regularizer** sets weights to exactly zero, so that few pairs, or few features, "
        "are left to read. **fmviz** shows how each regularizer does that, trains the model before your "
        "eyes, and puts a certificate beside every result."
    )
    with st.container(horizontal=True):
        level = {"level": settings.level_or("simple")}
        for key, label, icon, query, script in (
            ("start_tour", "60-second tour", ":material/tour:", {"lesson": "tour"}, None),
            ("start_to_lessons", "Lessons", navigation.LESSONS.icon, {}, navigation.LESSONS.script),
            ("start_to_prox", "Explore the operators", navigation.PROX.icon, level, navigation.PROX.script),
            ("start_to_train", "Train a model", navigation.TRAIN.icon, level, navigation.TRAIN.script),
        ):
            kind: Any = "primary" if script is None else "secondary"
            st.button(label, icon=icon, key=key, type=kind, on_click=Settings.move, args=(query, script))


@fragment
def _playground(settings: Settings) -> None:
    P = lab.sample(*_DRAWN)
    words, slider = st.columns([2, 3], vertical_alignment="center", gap="medium")
    words.markdown(
        "**Try it.** Two groups of 20 features under four regularizers. Raise λ: who finds the groups?"
    )
    with slider:
        widgets.power_of_two(settings, "log2lambda", "Strength λ")
    driver = settings.key("log2lambda") if settings.shows("log2lambda") else settings["log2lambda"]
    payload = page.pictures(("start", *_DRAWN), _SHOWN, driver, P, columns=4, show="gram", max_height=240)
    matrix_view(payload, key="start_view")


def _cards(settings: Settings, presets: list[Preset], group: str) -> None:
    presets = [preset for preset in presets if preset.card]
    # Whoever comes this way for the first time meets few controls; who has chosen otherwise keeps them.
    level = settings.level_or("simple")
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
                    query_params={**preset.query, "level": level},
                )
            else:
                st.caption(f":material/folder_off: {preset.missing}")
