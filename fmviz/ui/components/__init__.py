"""Streamlit components in JavaScript: the stage of a run, progress, buttons that save charts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any

import streamlit as st


def read(name: str) -> str:
    """Return a file of this folder."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@functools.cache
def component(name: str, *files: str) -> Any:
    """Register a component whose JavaScript and CSS are files of this folder.

    Once a process, not once a session: registering again would only repeat the same definition, and the
    returned callable puts the definition back by itself where a new runtime (AppTest) lacks it.
    """
    js, css = ("".join(read(file) for file in files if file.endswith(kind)) for kind in (".js", ".css"))
    return st.components.v2.component(f"fmviz.{name}", js=js, css=css or None)


def ignore() -> None:
    """Do nothing: Streamlit keeps a value or event of a component only if it has a callback."""


def stage(payload: bytes, key: str) -> None:
    """Draw a training run on one screen: its matrices, its numbers, and its curves in small.

    While a run is active, the channel brings what is new.

    Parameters
    ----------
    payload : bytes
        Of `fmviz.ui.train.live.full_payload`.
    key : str
        Unique on the page.
    """
    draw = component(
        "stage",
        "channel.js",
        "matrix_view/matrices.js",
        "curves.js",
        "stage/stage.js",
        "matrix_view/matrix_view.css",
        "stage/stage.css",
    )
    draw(data=payload, key=key, on_cell_change=ignore, on_phase_change=ignore)


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
    component("picture_buttons", f"{folder}.js", f"{folder}.css")(
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
    component("address", "address.js")(data={"page": page, "query": dict(query), "session": session}, key=key)


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
    draw = component("progress", "channel.js", "progress/progress.js", "progress/progress.css")
    draw(data={"head": head, "live": live}, key=key.replace("__", "_-"), on_phase_change=ignore)
