"""Browser components in JavaScript, and cookies."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import resources
from typing import Any

import streamlit as st
from jinja2.utils import htmlsafe_json_dumps

from fmviz.checked import checked
from fmviz.stage import Cell, View, module
from fmviz.stage import read as read_stage


def read(name: str) -> str:
    """Return a file of this folder."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@functools.cache
def component(name: str, js: str, css: str = "") -> Any:
    """Register a component.

    Once per process, not per session: the returned callable restores the definition by itself in a new
    runtime (AppTest).
    """
    return st.components.v2.component(f"fmviz.{name}", js=js, css=css or None)


def _of_module(name: str) -> Any:
    return component(name, module(), read_stage("stage.css") + read_stage("channel.css"))


def ignore() -> None:
    """Do nothing: Streamlit only keeps component values and events that have a callback."""


def stage(payload: bytes, key: str) -> None:
    """Draw matrices, numbers and small curves on one screen.

    While a run is active, the channel delivers updates.

    Parameters
    ----------
    payload : bytes
        Payload of `fmviz.ui.train.live.full_payload` or of a `fmviz.stage.pictures.Picture`.
    key : str
        Key, unique on the page.
    """
    _of_module("stage")(data=payload, key=key, on_cell_change=ignore, on_phase_change=ignore)


def matrix_view(view: View | bytes, *, key: str, on_cell: Callable[[Cell], None] | None = None) -> None:
    """Draw matrices side by side, switched in the browser while a slider is dragged.

    Parameters
    ----------
    view : View, or bytes
        The panels and their layout, or their payload by `View.encode`.
    key : str
        The widget key.
    on_cell : callable, optional
        Called with each clicked cell before the script reruns; requires ``clickable=True``. The cell may
        belong to earlier panels: check its position against the current data.

    Examples
    --------
    In a page::

        frames = [FactorFrame(Q, key=label, caption=f"{n:,} interactions") for label, Q, n in path]
        st.select_slider("λ", options=[f.key for f in frames], key="lam")
        matrix_view(View([Panel("TI", frames)], driver_key="lam"), key="view")
    """

    def clicked() -> None:
        if on_cell is not None and (cell := clicked_cell(key)) is not None:
            on_cell(cell)

    _of_module("matrix_view")(
        data=view if isinstance(view, bytes) else view.encode(),
        key=key,
        on_cell_change=ignore if on_cell is None else clicked,
    )


def clicked_cell(key: str) -> Cell | None:
    """Return the last clicked cell of the component with this key, as sent by the browser."""
    state: Any = st.session_state.get(key)
    value = state.get("cell") if hasattr(state, "get") else None
    with suppress(ValueError):
        return None if value is None else checked(Cell, value)
    return None


def picture_buttons(chart: str, file_name: str, *, key: str) -> None:
    """Draw the buttons "Picture (SVG)" and "Picture (PNG)", which save a plotly chart in the browser.

    The picture has dark text on white in both themes, and the present zoom.

    Parameters
    ----------
    chart : str
        The key of the container of the chart.
    file_name : str
        File name without extension.
    key : str
        Key, unique on the page.
    """
    folder = "picture_buttons/picture_buttons"
    # Streamlit rejects keys with two successive underscores, which run ids can contain.
    component("picture_buttons", read(f"{folder}.js"), read(f"{folder}.css"))(
        data={"chart": chart, "name": file_name}, key=key.replace("__", "_-")
    )


def address(page: str, query: Mapping[str, str], session: str, *, key: str) -> None:
    """Write the settings of a page into the address bar without a history entry.

    Parameters
    ----------
    page : str
        The last part of its path.
    query : mapping
        The query parameters.
    session : str
        Identifies the session; a browser with another session reloads the page from its address.
    key : str
        Key, unique on the page.
    """
    component("address", read("address.js"))(
        data={"page": page, "query": dict(query), "session": session}, key=key
    )


def progress(head: dict[str, Any], live: dict[str, str], *, key: str) -> None:
    """Draw a sentence and a progress bar that follow a topic; the page is redrawn when its phase ends.

    Parameters
    ----------
    head : dict
        "phase", "sentence" and "done", a number from 0 to 1 or None.
    live : dict
        The path of the channel and the id of the topic.
    key : str
        Key, unique on the page.
    """
    script = read_stage("channel.js") + read("progress/progress.js")
    draw = component("progress", script, read("progress/progress.css") + read_stage("channel.css"))
    draw(data={"head": head, "live": live}, key=key.replace("__", "_-"), on_phase_change=ignore)


def set_cookie(name: str, value: str) -> None:
    """Store a value in the browser for a year.

    Call it in every run of a page: a run that is overtaken by another may never reach the browser.

    Parameters
    ----------
    name, value : str
        Name and value of the cookie, without semicolons.
    """
    cookie = htmlsafe_json_dumps(f"{name}={value}; path=/; max-age=31536000; samesite=lax")
    st.html(f"<script>document.cookie={cookie}</script>", unsafe_allow_javascript=True)
