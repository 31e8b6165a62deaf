"""Plotly charts that are updated in place while a run goes on."""

from __future__ import annotations

import functools
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from streamlit.elements import plotly_chart as _elements

# Keys of charts that keep their identity while their data changes.
_LIVE = "live_chart_"
_CONFIG = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}


def live_chart(figure: go.Figure, key: str, alt: str) -> None:
    """Draw a figure that the next one of the same key updates, with its zoom kept.

    `st.plotly_chart` names a chart by its data, even where it has a key, so that new data makes the browser
    throw the chart away and build another: it blinks at every update and forgets its zoom. Here the key is
    the name. Where a version of Streamlit does not allow that, charts blink.

    Parameters
    ----------
    figure : plotly Figure
        With `uirevision` set.
    key : str
        Unique on the page.
    alt : str
        What there is to see, in a sentence that does not change with the data.
    """
    _keep_identity()
    with st.container(key=key):
        st.plotly_chart(figure, key=_LIVE + key, config=_CONFIG, alt=alt)


@functools.cache
def _keep_identity() -> None:
    name_of = getattr(_elements, "compute_and_register_element_id", None)
    if name_of is None:
        return

    @functools.wraps(name_of)
    def by_key(element_type: str, *args: Any, **options: Any) -> str:
        if str(options.get("user_key") or "").startswith(_LIVE) and "key_as_main_identity" in options:
            options["key_as_main_identity"] = True
        return str(name_of(element_type, *args, **options))

    _elements.compute_and_register_element_id = by_key
