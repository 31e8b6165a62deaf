"""Pictures of predicted classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from fmviz.figures.training import BLUE

# Beyond so many classes the counts are told by the pointer alone.
_WRITTEN = 12


def confusion(counts: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """Draw how many rows of each class are taken for each.

    Parameters
    ----------
    counts : (C, C) ndarray
        Rows by their true class and, along the columns, by the predicted one.
    labels : sequence of str
        The classes.

    Returns
    -------
    plotly Figure
    """
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = list(labels)
    figure = go.Figure(
        go.Heatmap(
            z=share,
            x=names,
            y=names,
            customdata=counts,
            text=counts,
            texttemplate="%{text}" if len(names) <= _WRITTEN else "",
            hovertemplate="true %{y}, predicted %{x}: %{customdata} rows, %{z:.1%}<extra></extra>",
            colorscale=[[0.0, "rgba(0, 0, 0, 0)"], [1.0, BLUE]],
            zmin=0.0,
            zmax=1.0,
            showscale=False,
        )
    )
    figure.update_xaxes(title_text="predicted", type="category", constrain="domain")
    figure.update_yaxes(title_text="true", type="category", autorange="reversed", scaleanchor="x")
    figure.update_layout(height=min(560, 160 + 32 * len(names)), margin={"l": 10, "r": 10, "t": 10, "b": 10})
    return figure
