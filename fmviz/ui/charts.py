"""Charts that do not blink while their data changes.

`st.plotly_chart` names a chart by its data, also where it has a key: at every update the browser throws the
chart away and builds another, shows nothing in between, and sometimes keeps a wrong width. So while a run
goes on its curves are drawn as pictures, which are replaced in place; once it rests they are plotly charts.
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from fmviz.figures import sketch

_CONFIG = {"displaylogo": False}


def chart(figure: go.Figure, key: str, alt: str, **options: Any) -> Any:
    """Draw a plotly chart to zoom and to save.

    Parameters
    ----------
    figure : plotly Figure
        With a height.
    key : str
        Unique on the page.
    alt : str
        What there is to see, in a sentence.
    **options
        As for `st.plotly_chart`: ``on_select``, ``selection_mode``.

    Returns
    -------
    object
        What `st.plotly_chart` returns.
    """
    with st.container(key=key):
        return st.plotly_chart(figure, key=f"{key}_chart", config=_CONFIG, alt=alt, **options)


def curves(figure: go.Figure, key: str, alt: str, *, live: bool) -> None:
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
        Whether it is about to change: then it is a picture, else a chart to zoom and to save.
    """
    if live:
        with st.container(key=key):
            st.image(sketch.svg(figure), width="stretch", alt=alt)
    else:
        chart(figure, key, alt)
