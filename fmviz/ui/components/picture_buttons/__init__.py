"""Buttons that save a plotly chart as a picture, drawn by the browser alone."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any

__all__ = ["picture_buttons"]


@functools.cache
def _component() -> Any:
    import streamlit as st

    here = resources.files(__package__)
    return st.components.v2.component(
        "fmviz.picture_buttons",
        js=here.joinpath("picture_buttons.js").read_text(encoding="utf-8"),
        css=here.joinpath("picture_buttons.css").read_text(encoding="utf-8"),
    )


def picture_buttons(chart: str, file_name: str, *, key: str) -> None:
    """Draw the buttons "Picture (SVG)" and "Picture (PNG)".

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
    # Streamlit refuses a component whose key has two underscores on end, as the id of a run can make it.
    _component()(data={"chart": chart, "name": file_name}, key=key.replace("__", "_-"))
