"""Vertical lines on the curves of a run: where a strength was changed, and which epoch is looked at."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fmviz.figures import palette

_LEVELS = 3
_LINE = 13  # pixels


def mark_epochs(
    figure: go.Figure,
    history: pd.DataFrame,
    x: str,
    words: Mapping[int, str],
    looked_at: int | None = None,
) -> go.Figure:
    """Draw a labelled vertical line over all panels at some epochs; return the figure.

    Parameters
    ----------
    figure : plotly Figure
        Of `fmviz.figures.training`.
    history : DataFrame
        Columns ``epoch``, ascending, and ``seconds``: an axis of seconds has the line where its epoch ended.
    x : {"epoch", "seconds"}
        The horizontal axis.
    words : mapping of int to str
        What to write beside the line of an epoch.
    looked_at : int, optional
        An epoch that is marked by a thin line without words.
    """

    def place(epoch: int) -> float:
        return float(np.interp(epoch, history["epoch"], history[x]))

    if looked_at is not None:
        figure.add_shape(_line(place(looked_at), "dot", 1.0))
    for number, (epoch, text) in enumerate(words.items()):
        figure.add_shape(_line(place(epoch), "dash", 1.4))
        figure.add_annotation(
            x=place(epoch),
            y=1.0,
            xref="x",
            yref="paper",
            xanchor="left",
            yanchor="top",
            xshift=3,
            yshift=-_LINE * (number % _LEVELS),
            text=text,
            showarrow=False,
            font={"size": 11, "color": palette.NEUTRAL},
        )
    return figure


def _line(x: float, dash: str, width: float) -> dict[str, object]:
    return {
        "type": "line",
        "x0": x,
        "x1": x,
        "y0": 0.0,
        "y1": 1.0,
        "xref": "x",
        "yref": "paper",
        "line": {"color": palette.NEUTRAL, "width": width, "dash": dash},
    }
