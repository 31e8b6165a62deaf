"""What pages have the browser do: components in JavaScript, and cookies."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from typing import Any

import streamlit as st
from jinja2.utils import htmlsafe_json_dumps

from fmviz.checked import checked
from fmviz.stage import Cell, Panel, encode_view, module
from fmviz.stage import read as read_stage


def read(name: str) -> str:
    """Return a file of this folder."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@functools.cache
def component(name: str, js: str, css: str = "") -> Any:
    """Register a component.

    Once a process, not once a session: registering again would only repeat the same definition, and the
    returned callable puts the definition back by itself where a new runtime (AppTest) lacks it.
    """
    return st.components.v2.component(f"fmviz.{name}", js=js, css=css or None)


def _of_module(name: str) -> Any:
    return component(name, module(), read_stage("stage.css") + read_stage("channel.css"))


def ignore() -> None:
    """Do nothing: Streamlit keeps a value or event of a component only if it has a callback."""


def stage(payload: bytes, key: str) -> None:
    """Draw matrices, numbers, and curves in small on one screen.

    While a run is active, the channel brings what is new.

    Parameters
    ----------
    payload : bytes
        Of `fmviz.ui.train.live.full_payload`, or of a `fmviz.stage.pictures.Picture`.
    key : str
        Unique on the page.
    """
    _of_module("stage")(data=payload, key=key, on_cell_change=ignore, on_phase_change=ignore)


def matrix_view(
    panels: Sequence[Panel] | bytes,
    *,
    key: str,
    on_cell: Callable[[Cell], None] | None = None,
    **options: Any,
) -> None:
    """Draw matrices side by side, switched in the browser while a slider is dragged.

    Parameters
    ----------
    panels : sequence of Panel, or bytes
        The panels, or the payload that `encode_view` made of them.
    key : str
        The widget key.
    on_cell : callable, optional
        Called with every cell that is clicked, with ``clickable=True``, before the script runs again. It may
        be of panels shown before: check its place against the data at hand.
    **options
        The keyword arguments of `encode_view`; a payload has its own.

    Examples
    --------
    In a page::

        frames = [FactorFrame(Q, key=label, caption=f"{n:,} interactions") for label, Q, n in path]
        st.select_slider("λ", options=[f.key for f in frames], key="lam")
        matrix_view([Panel("TI", frames)], driver_key="lam", key="view")
    """

    def clicked() -> None:
        if on_cell is not None and (cell := clicked_cell(key)) is not None:
            on_cell(cell)

    payload = panels if isinstance(panels, bytes) else encode_view(panels, **options)
    _of_module("matrix_view")(data=payload, key=key, on_cell_change=ignore if on_cell is None else clicked)


def clicked_cell(key: str) -> Cell | None:
    """Return the cell that was last clicked in the component with this key, as the browser sent it."""
    state: Any = st.session_state.get(key)
    value = state.get("cell") if hasattr(state, "get") else None
    with suppress(ValueError):
        return None if value is None else checked(Cell, value)
    return None


def picture_buttons(chart: str, file_name: str, *, key: str) -> None:
    """Draw the buttons "Picture (SVG)" and "Picture (PNG)", which save a plotly chart in the browser.

    The picture has dark letters on white, on either theme, and the zoom that is on the screen.

    Parameters
    ----------
    chart : str
        The key of the container that holds the chart.
    file_name : str
        Without an ending.
    key : str
        Unique on the page.
    """
    folder = "picture_buttons/picture_buttons"
    # Streamlit refuses keys with two successive underscores, which the id of a run can contain.
    component("picture_buttons", read(f"{folder}.js"), read(f"{folder}.css"))(
        data={"chart": chart, "name": file_name}, key=key.replace("__", "_-")
    )


def address(page: str, query: Mapping[str, str], session: str, *, key: str) -> None:
    """Write the settings of a page into the address bar, without an entry in the history.

    Parameters
    ----------
    page : str
        The last part of its path.
    query : mapping
        The query parameters.
    session : str
        Names the session: where it is another one, the page is opened again by the address that it has.
    key : str
        Unique on the page.
    """
    component("address", read("address.js"))(
        data={"page": page, "query": dict(query), "session": session}, key=key
    )


def progress(head: dict[str, Any], live: dict[str, str], *, key: str) -> None:
    """Draw a sentence and a bar that follow a topic; the page is drawn again when its phase ends.

    Parameters
    ----------
    head : dict
        With "phase", "sentence" and "done", a number from 0 to 1 or None.
    live : dict
        The path of the channel, and the id of the topic.
    key : str
        Unique on the page.
    """
    script = read_stage("channel.js") + read("progress/progress.js")
    draw = component("progress", script, read("progress/progress.css") + read_stage("channel.css"))
    draw(data={"head": head, "live": live}, key=key.replace("__", "_-"), on_phase_change=ignore)


def set_cookie(name: str, value: str) -> None:
    """Have the browser keep a value for a year.

    To be called with every run of a page: a run that another one overtakes may never reach the browser.

    Parameters
    ----------
    name, value : str
        Without semicolons, which end a value.
    """
    cookie = htmlsafe_json_dumps(f"{name}={value}; path=/; max-age=31536000; samesite=lax")
    st.html(f"<script>document.cookie={cookie}</script>", unsafe_allow_javascript=True)
