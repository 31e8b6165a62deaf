"""Draw charts that do not flicker when their data change, with downloads of data and picture.

`st.plotly_chart` names a chart by its data, also where it has a key: at every update the browser throws the
chart away and builds another, shows nothing in between, and sometimes keeps a wrong width. So while a run
goes on its curves are drawn by the stage, in place; once it rests they are plotly charts.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from fmviz.figures import tabular
from fmviz.stage.pictures import Picture, chart_of_figure
from fmviz.ui.components import picture_buttons, stage

# Zoom and pan answer to the mouse. The one button of the toolbar is hidden, and pressed from our own menu.
_CONFIG = {"displayModeBar": True, "modeBarButtons": [["toImage"]]}


def chart(figure: go.Figure, key: str, alt: str, *, place: Any = st, **options: Any) -> Any:
    """Draw a plotly chart to zoom, and to save as numbers or as a picture.

    Parameters
    ----------
    figure : plotly Figure
        With a height.
    key : str
        Unique on the page.
    alt : str
        What there is to see, in a sentence.
    place : container
        Where it is drawn.
    **options
        As for `st.plotly_chart`: ``on_select``, ``selection_mode``.

    Returns
    -------
    object
        What `st.plotly_chart` returns.
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
    """Draw a chart beside a large one, neither to zoom nor to save; `figure`, `key` and `alt` as for `chart`.

    It is as narrow as Streamlit draws one; in a narrower cell its right edge is cut off.
    """
    st.plotly_chart(figure, key=f"{key}_chart", width=150, config={"staticPlot": True}, alt=alt)


def curves(figure: go.Figure, key: str, alt: str, *, live: bool, place: Any = st) -> None:
    """Draw a figure of curves.

    Parameters
    ----------
    figure : plotly Figure
        With a height.
    key : str
        Unique on the page.
    alt : str
        What there is to see, in a sentence.
    live : bool
        Whether it is about to change: then the stage draws it, else it is a chart to zoom and to save.
    place : container
        Where it is drawn.
    """
    if not live:
        chart(figure, key, alt, place=place)
        return
    with place.container(key=key, gap="small"):
        stage(Picture(charts=[chart_of_figure("", figure)]).payload(), key=f"{key}_live")
