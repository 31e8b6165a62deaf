"""Plotly charts that do not blink while their data changes.

`st.plotly_chart` names a chart by its data, also where it has a key: at every update the browser throws the
chart away and builds another, and shows nothing in between. So a live chart has two places, one upon the
other. An update goes to the hidden one, which is shown at the next update, when it has long been built.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import plotly.graph_objects as go
import streamlit as st

_CONFIG = {"displaylogo": False}
_STATE = "fmviz:live_charts"


class Charts:
    """The charts of one drawing of a page; make it anew for each.

    Parameters
    ----------
    name : str
        Names what is drawn: with another name nothing is taken from the drawing before.
    live : bool
        Whether another drawing follows soon. Otherwise every chart is a single one, to zoom and to save.
    """

    def __init__(self, name: str, live: bool) -> None:
        self.live = live
        before: MutableMapping[str, Any] = st.session_state.get(_STATE, {})
        same = live and before.get("name") == name
        self.shown = before["hidden"] if same else 0
        self.hidden = 1 - self.shown
        self._before: dict[str, go.Figure] = before["figures"] if same else {}
        self._now: dict[str, go.Figure] = {}
        if live:
            st.session_state[_STATE] = {"name": name, "hidden": self.hidden, "figures": self._now}
            # First of all, so that the place about to change is hidden before it does.
            st.html(
                '<style>[class*="st-key-live_chart_"] { display: grid; }'
                '[class*="st-key-live_place_"] { grid-area: 1 / 1; min-width: 0; }'
                f'[class*="st-key-live_place_{self.hidden}_"] {{ opacity: 0; pointer-events: none; }}</style>'
            )
        else:
            st.session_state.pop(_STATE, None)

    def draw(self, figure: go.Figure, key: str, alt: str) -> None:
        """Draw a figure.

        Parameters
        ----------
        figure : plotly Figure
            With a height.
        key : str
            Unique on the page.
        alt : str
            What there is to see, in a sentence.
        """
        if not self.live:
            with st.container(key=key):
                st.plotly_chart(figure, key=f"{key}_chart", config=_CONFIG, alt=alt)
            return
        self._now[key] = figure
        with (
            st.container(key=key),
            st.container(key=f"live_chart_{key}", height=figure.layout.height, border=False),
        ):
            for place in (0, 1):
                # The same figure again leaves the chart in the shown place as it is.
                drawn = self._before.get(key, figure) if place == self.shown else figure
                st.plotly_chart(drawn, key=f"live_place_{place}_{key}", config=_CONFIG, alt=alt)
