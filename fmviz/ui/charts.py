"""Plotly charts with downloads of data and picture, and charts that update without flicker.

`st.plotly_chart` identifies a chart by its data, even with a key: at every update the browser rebuilds the
chart, shows nothing in between, and sometimes keeps a wrong width. The stage therefore draws the curves of
active runs in place; curves of inactive runs are plotly charts.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from fmviz.figures import tabular
from fmviz.stage.pictures import Picture, chart_of_figure
from fmviz.ui.components import picture_buttons, stage

# The mouse zooms and pans. The only button of the toolbar is hidden and pressed by our menu.
_CONFIG = {"displayModeBar": True, "modeBarButtons": [["toImage"]]}


def chart(figure: go.Figure, key: str, alt: str, *, place: Any = st, **options: Any) -> Any:
    """Draw a plotly chart with zoom and downloads of data and picture.

    Parameters
    ----------
    figure : plotly Figure
        Figure with a height.
    key : str
        Key, unique on the page.
    alt : str
        Alternative text, one sentence.
    place : container
        The container to draw in.
    **options
        Options of `st.plotly_chart`: ``on_select``, ``selection_mode``.

    Returns
    -------
    object
        The return value of `st.plotly_chart`.
    """
    with place.container(key=key, gap="small"):
        picked = st.plotly_chart(figure, key=f"{key}_chart", config=_CONFIG, alt=alt, **options)
        row = st.container(horizontal=True, horizontal_alignment="right", key=f"takeaway_{key}")
        menu = row.popover("Download", icon=":material/download:", type="tertiary", key=f"{key}_download")
        name = f"fmviz-{key.replace('_', '-')}"
        with menu.container(gap="xsmall"):
            st.download_button(
                "Data (CSV)",
                data=partial(tabular.csv, figure),
                file_name=f"{name}.csv",
                mime="text/csv",
                key=f"{key}_csv",
                on_click="ignore",
                width="stretch",
            )
            picture_buttons(key, name, key=f"{key}_pictures")
    return picked


def small_chart(figure: go.Figure, key: str, alt: str) -> None:
    """Draw a small static chart; `figure`, `key` and `alt` as for `chart`.

    It has the minimum width of a Streamlit chart; narrower cells cut off its right edge.
    """
    st.plotly_chart(figure, key=f"{key}_chart", width=150, config={"staticPlot": True}, alt=alt)


def curves(figure: go.Figure, key: str, alt: str, *, live: bool, place: Any = st) -> None:
    """Draw a figure of curves.

    Parameters
    ----------
    figure : plotly Figure
        Figure with a height.
    key : str
        Key, unique on the page.
    alt : str
        Alternative text, one sentence.
    live : bool
        Whether the figure will change: the stage then draws it in place of `chart`.
    place : container
        The container to draw in.
    """
    if not live:
        chart(figure, key, alt, place=place)
        return
    with place.container(key=key, gap="small"):
        stage(Picture(charts=[chart_of_figure("", figure)]).payload(), key=f"{key}_live")
