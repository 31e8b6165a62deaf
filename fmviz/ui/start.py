"""The start page: trained models to explore, and links to presets of other pages."""

from __future__ import annotations

import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab.search.arena import REGULARIZERS, STRENGTH, STRENGTHS
from fmviz.lab.search.arena import arena as from_starts
from fmviz.ui import arena, navigation, shell
from fmviz.ui.escape import plain
from fmviz.ui.guard import fragment
from fmviz.ui.settings.presets import presets
from fmviz.ui.settings.state import LEVEL_COOKIE, Settings
from fmviz.ui.watching import shared_task

TABLE = (
    ParamSpec(
        "strength",
        "float",
        STRENGTH,
        STRENGTHS[0],
        STRENGTHS[-1],
        help="Drag the handle, or click it and use the arrow keys; all matrices update.",
    ),
    arena.how("along"),
    ParamSpec(
        "why",
        "choice",
        "none",
        choices=("none", *REGULARIZERS),
        help="The regularizer of the pair explained before a cell is clicked.",
    ),
)
_FILM = "fmviz:start:film"


def render() -> None:
    """Draw the page."""
    with shell.page(
        "Start", Settings("start", TABLE, parts=("curves",), unread=("dataset", "seed"))
    ) as settings:
        if not settings["lesson"]:
            shell.heading(
                settings,
                "Which interactions matter?",
                arena.STORY[0],
            )
        with st.container(border=True):
            _arena(settings)
        if settings["lesson"]:
            return
        st.button(
            "60-second tour",
            icon=":material/tour:",
            key="start_tour",
            type="primary",
            on_click=Settings.move,
            args=({"lesson": "tour"}, None),
        )
        st.subheader("See what an operator does")
        _cards(navigation.PROX, "operators", "See it")
        st.subheader("Watch a model learn")
        _cards(navigation.TRAIN, "training", "Train it")


@fragment
def _arena(settings: Settings) -> None:
    starts = from_starts()
    if not settings["lesson"]:
        st.markdown(arena.STORY[1])
    # A first visit begins with a film, but for a link to settings.
    new = st.session_state.get(_FILM, LEVEL_COOKIE not in st.context.cookies)
    st.session_state[_FILM] = False
    if new and {*settings.brought, *settings.query()} <= {"level"}:
        settings.set(along="epochs")
    task = shared_task(f"path:{starts.plan.digest}", starts.fits)
    arena.draw(settings, starts.plan, task, ("strength", "along"), 200, starts=starts)


def _cards(target: navigation.Link, group: str, action: str) -> None:
    cards = [preset for preset in presets() if preset.card and preset.target == target]
    for number, (column, preset) in enumerate(zip(st.columns(len(cards)), cards, strict=True)):
        with column.container(border=True, height="stretch", key=f"start_{group}_{number}"):
            st.markdown(f"#### :primary[{preset.icon}] {plain(preset.title)}")
            st.markdown(preset.text)
            if preset.missing is None:
                navigation.page_link(
                    preset.target,
                    preset.query,
                    label=f"**{action}**",
                    icon=":material/arrow_forward:",
                    icon_position="right",
                )
            else:
                st.caption(f":material/folder_off: {preset.missing}")
