"""Streamlit components in JavaScript: the stage of a run, buttons that save charts, and a pulse."""

from __future__ import annotations

import functools
import json
import struct
import time
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


def pulse(key: str, seconds: float, *, to: str, payload: bytes) -> None:
    """Rerun the calling fragment after a pause, as long as its tab is visible.

    Unlike ``run_every`` of `st.fragment`, it waits for the answer before the next request, waits longer if
    answers are slow, and sends nothing from a hidden tab.

    Parameters
    ----------
    key : str
        Unique on the page.
    seconds : float
        The least pause.
    to : str
        The name of a component of the page that is handed the payload, or "".
    payload : bytes
        What to hand it.
    """
    head = json.dumps({"turn": time.monotonic_ns(), "wait": seconds, "to": to}).encode()
    component("pulse", "pulse/pulse.js")(
        data=struct.pack("<I", len(head)) + head + payload,
        key=key.replace("__", "_-"),
        on_beat_change=ignore,
    )
