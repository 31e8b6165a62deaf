"""The list of uploaded data sets: train, open, delete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from fmviz.engine.memory import in_words
from fmviz.lab.datasets import DATASETS
from fmviz.lab.uploads import library
from fmviz.lab.uploads.library import Upload
from fmviz.ui import navigation, session_uploads, widgets
from fmviz.ui.data.size import train_query
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings

__all__ = ["TOLD", "draw_shelf"]

TOLD = "fmviz:data:told"
"""Where the session keeps a sentence on what was just done."""


def draw_shelf(settings: Settings, open_set: Callable[[Settings, Upload], None]) -> None:
    """Draw the data sets of this session; `open_set` looks at the file of one again."""
    _told()
    known = map(library.find, session_uploads.mine())
    found = [one for one in known if one is not None]
    if not found:
        return
    st.subheader("My data sets")
    for one in found:
        with st.container(
            border=True, horizontal=True, vertical_alignment="center", key=f"data_set_{one.name}"
        ):
            st.markdown(
                f"**{plain(one.title)}** · {one.rows:,} rows, {one.features:,} features · "
                f"{in_words(one.bytes)}",
                width="stretch",
            )
            navigation.page_link(
                navigation.TRAIN,
                train_query(one.name, settings["seed"]),
                label="Train",
            )
            st.button(
                "Open",
                icon=":material/edit:",
                key=f"data_open_{one.name}",
                on_click=open_set,
                args=(settings, one),
                help="Look at its columns, and encode it in another way.",
            )
            if one.owner in ("", session_uploads.owner()):
                widgets.confirm_delete(
                    f"data_delete_{one.name}",
                    f"**{plain(one.title)}** and its file go for good; links and runs can no longer load "
                    "these data.",
                    partial(_delete, settings, one),
                )
            else:
                st.button(
                    "Take off the list",
                    icon=":material/playlist_remove:",
                    key=f"data_delete_{one.name}",
                    on_click=_take_off,
                    args=(settings, one),
                    help="Only the browser that brought it can delete it.",
                )
    st.caption(
        "These sets are listed in this session alone. Whoever has a link with the name of one can open it; "
        "only the browser that brought it can delete it, and until then it stays on this computer."
    )


def _take_off(settings: Settings, one: Upload) -> None:
    session_uploads.forget(one.name)
    if settings["dataset"] == one.name:
        settings.set(dataset=next(iter(DATASETS)))


def _delete(settings: Settings, one: Upload) -> None:
    library.delete(one.name)
    _take_off(settings, one)
    st.session_state[TOLD] = f"{one.title} was deleted."


def _told() -> None:
    if (sentence := st.session_state.get(TOLD)) is not None:
        widgets.dismissible("data", sentence, TOLD)
