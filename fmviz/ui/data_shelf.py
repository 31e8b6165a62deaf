"""The list of one's own data sets, to train on, to open again and to delete."""

from __future__ import annotations

import streamlit as st

from fmviz.engine.memory import in_words
from fmviz.lab.datasets import DATASETS
from fmviz.lab.own import shelf
from fmviz.lab.own.shelf import OwnSet
from fmviz.ui import own_sets, shell
from fmviz.ui.data_size import train_query
from fmviz.ui.plain import plain
from fmviz.ui.state import Settings

__all__ = ["TOLD", "draw_shelf"]

TOLD = "fmviz:data:told"
"""Where the session keeps what was just done: a sentence, and the name of a set that can be brought back."""


def draw_shelf(settings: Settings) -> None:
    """Draw the sets of this session."""
    _told()
    found = [one for name in own_sets.mine() if (one := shelf.find(name)) is not None and one.deleted is None]
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
            st.page_link(
                shell.TRAIN.script,
                label="Train",
                icon=shell.TRAIN.icon,
                query_params=train_query(one.name, settings["seed"]),
            )
            st.button(
                "Open",
                icon=":material/edit:",
                key=f"data_open_{one.name}",
                on_click=_open,
                args=(settings, one),
                help="Look at its columns, and encode it in another way.",
            )
            st.button(
                "Delete",
                icon=":material/delete:",
                key=f"data_delete_{one.name}",
                on_click=_delete,
                args=(settings, one),
                help="It can be brought back for a week.",
            )
    st.caption(
        "These sets are listed in this session alone. Whoever has a link with the name of one can open it; "
        "they stay on this computer until they are deleted."
    )


def _open(settings: Settings, one: OwnSet) -> None:
    from fmviz.ui.views.data import open_set

    open_set(settings, one)


def _delete(settings: Settings, one: OwnSet) -> None:
    shelf.delete(one.name)
    own_sets.forget(one.name)
    if settings["dataset"] == one.name:
        settings.set(dataset=next(iter(DATASETS)))
    st.session_state[TOLD] = (f"{plain(one.title)} was deleted.", one.name)


def _undelete(name: str) -> None:
    shelf.undelete(name)
    own_sets.remember(name)
    st.session_state.pop(TOLD, None)


def _told() -> None:
    told = st.session_state.get(TOLD)
    if told is None:
        return
    sentence, name = told
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="data_told"):
        st.markdown(f":material/check: {sentence}", width="content")
        if name is not None:
            st.button("Undo", icon=":material/undo:", key="data_undo", on_click=_undelete, args=(name,))
        st.button(
            "Dismiss",
            icon=":material/close:",
            key="data_dismiss",
            type="tertiary",
            on_click=lambda: st.session_state.pop(TOLD, None),
        )
