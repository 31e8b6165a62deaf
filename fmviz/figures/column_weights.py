"""Pictures of the weights of columns and of the eigenvalues that they make."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from fmviz.figures import palette

POSITIVE, NEGATIVE = palette.LIGHT.positive[2], palette.LIGHT.negative[2]


def signed_bars(values: np.ndarray, *, x: str, y: str, height: int = 250) -> go.Figure:
    """Draw signed numbers as bars in the order given, the colours those of the matrices.

    Parameters
    ----------
    values : (n,) ndarray
        The numbers; an exact zero gets a grey mark, so that it is seen to be one.
    x, y : str
        The titles of the axes.
    height : int
        In pixels.

    Returns
    -------
    plotly Figure
    """
    place = np.arange(1, values.size + 1)
    figure = go.Figure(
        go.Bar(
            x=place,
            y=values,
            marker={"color": np.where(values < 0, NEGATIVE, POSITIVE).tolist(), "line": {"width": 0}},
            hovertemplate="%{x}: %{y:.5g}<extra></extra>",
            showlegend=False,
        )
    )
    zero = values == 0
    if zero.any():
        figure.add_trace(
            go.Scatter(
                x=place[zero],
                y=values[zero],
                mode="markers",
                marker={"color": palette.NEUTRAL, "size": 5},
                hovertemplate="%{x}: exactly 0<extra></extra>",
                showlegend=False,
            )
        )
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 12, "t": 8, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        bargap=0.25,
        transition={"duration": 0},
    )
    figure.update_xaxes(title_text=x, automargin=True, showgrid=False, nticks=8)
    figure.update_yaxes(title_text=y, automargin=True, zeroline=True, zerolinecolor=palette.NEUTRAL)
    return figure


def sorted_by_size(values: np.ndarray) -> np.ndarray:
    """Return numbers from the largest magnitude to the smallest, signs kept."""
    return values[np.argsort(-np.abs(values), kind="stable")]
