"""The list of uploaded data sets: train, open, delete."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from fmviz.engine.memory import in_words
from fmviz.lab.datasets import DATASETS
from fmviz.lab.uploads import library
from fmviz.lab.uploads.library import Upload
from fmviz.ui import navigation, session_uploads
from fmviz.ui.data.size import train_query
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings

__all__ = ["TOLD", "draw_shelf"]

TOLD = "fmviz:data:told"
"""Where the session keeps what was just done: a sentence, and the name of a set that can be restored."""


def draw_shelf(settings: Settings, open_set: Callable[[Settings, Upload], None]) -> None:
    """Draw the data sets of this session; `open_set` looks at the file of one again."""
    _told()
    known = map(library.find, session_uploads.mine())
    found = [one for one in known if one is not None and one.deleted is None]
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
            own = one.owner in ("", session_uploads.owner())
            st.button(
                "Delete" if own else "Take off the list",
                icon=":material/delete:" if own else ":material/playlist_remove:",
                key=f"data_delete_{one.name}",
                on_click=_delete if own else _take_off,
                args=(settings, one),
                help="It can be restored for a week."
                if own
                else "Only the browser that brought it can delete it.",
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
    st.session_state[TOLD] = (f"{plain(one.title)} was deleted.", one.name)


def _undelete(name: str) -> None:
    library.undelete(name)
    session_uploads.remember(name)
    st.session_state.pop(TOLD, None)


def _told() -> None:
    told = st.session_state.get(TOLD)
    if told is None:
        return
    sentence, name = told
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="data_told"):
        st.markdown(f":material/check: {plain(sentence)}", width="content")
        if name is not None:
            st.button("Undo", icon=":material/undo:", key="data_undo", on_click=_undelete, args=(name,))
        st.button(
            "Dismiss",
            icon=":material/close:",
            key="data_dismiss",
            type="tertiary",
            on_click=lambda: st.session_state.pop(TOLD, None),
        )
