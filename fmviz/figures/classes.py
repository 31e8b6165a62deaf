"""Pictures of predicted classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from fmviz.figures import palette
from fmviz.figures.tabular import literal
from fmviz.figures.training import BLUE

# Beyond so many classes the counts are told by the pointer alone.
_WRITTEN = 12
_LONGEST = 46


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


def contributions(
    values: np.ndarray, terms: Sequence[str], outputs: Sequence[str], *, dark: bool = False
) -> go.Figure:
    """Draw what terms add to the scores of several outputs.

    Parameters
    ----------
    values : (t, m) ndarray
        A row a term, a column an output.
    terms, outputs : sequence of str
        What they are called; outputs as HTML.
    dark : bool
        The theme.

    Returns
    -------
    plotly Figure
    """
    top = float(np.abs(values).max(initial=0.0)) or 1.0
    names = [literal(term if len(term) <= _LONGEST else f"{term[: _LONGEST - 1]}…") for term in terms]
    figure = go.Figure(
        go.Heatmap(
            z=np.where(values == 0.0, np.nan, np.sign(values) * np.sqrt(np.abs(values) / top)),
            x=list(range(len(outputs))),
            y=list(range(len(terms))),
            text=np.array([[f"{value:+.2g}" if value else "0" for value in row] for row in values]),
            texttemplate="%{text}" if len(outputs) <= _WRITTEN else "",
            customdata=values,
            hovertemplate="%{customdata:+.4g}<extra></extra>",
            colorscale=palette.diverging_colorscale(dark),
            zmin=-1.0,
            zmax=1.0,
            xgap=2,
            ygap=2,
            showscale=False,
        )
    )
    figure.update_xaxes(
        tickvals=list(range(len(outputs))), ticktext=list(outputs), side="top", showgrid=False
    )
    figure.update_yaxes(
        tickvals=list(range(len(terms))),
        ticktext=names,
        autorange="reversed",
        automargin=True,
        showgrid=False,
    )
    figure.update_layout(
        height=70 + 27 * len(terms),
        margin={"l": 10, "r": 10, "t": 44, "b": 10},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor=palette.matrix_colors(dark).zero,
    )
    return figure
