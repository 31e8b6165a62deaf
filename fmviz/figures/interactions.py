"""Figures of learned interactions: waterfall of a prediction, two rows of P."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fmviz.figures import palette
from fmviz.figures.tabular import literal
from fmviz.figures.training import BLUE, ORANGE, finish
from fmviz.typography import typeset

POSITIVE, NEGATIVE = "#db6f22", "#3f88c5"
"""The colours of positive and negative contributions, as in the heatmaps."""


def waterfall(
    labels: Sequence[str],
    values: Sequence[float],
    total: float,
    start: str,
    unit: str,
) -> go.Figure:
    """Draw the sum of terms to a prediction, from top to bottom.

    Parameters
    ----------
    labels, values : sequences
        The terms; the first is the starting value.
    total : float
        The sum of the terms.
    start : str
        The name of the sum.
    unit : str
        The title of the axis.
    """
    every = [*labels, start]
    shown = [short(label, 46) for label in every]
    # Equal labels would share a bar.
    shown = [text + "\N{ZERO WIDTH SPACE}" * shown[:at].count(text) for at, text in enumerate(shown)]
    figure = go.Figure(
        go.Waterfall(
            orientation="h",
            y=shown,
            x=[*values, total],
            measure=["absolute", *["relative"] * (len(values) - 1), "total"],
            text=[typeset(value, "+.4g") for value in values] + [typeset(total, ".5g")],
            textposition="outside",
            cliponaxis=False,
            hovertext=[
                f"{literal(label)}: {typeset(value, '.6g')}"
                for label, value in zip(every, [*values, total], strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            increasing={"marker": {"color": POSITIVE}},
            decreasing={"marker": {"color": NEGATIVE}},
            totals={"marker": {"color": palette.NEUTRAL}},
            connector={"line": {"color": palette.NEUTRAL, "width": 1, "dash": "dot"}},
        )
    )
    # Room for the values outside the bars.
    finish(figure, 26 * len(every) + 70, 12, showlegend=False, margin_r=64)
    ends = np.cumsum(values)
    spread = float(np.ptp(ends)) or abs(total) or 1.0
    if min(abs(ends)) < 2 * spread:
        ends = np.append(ends, 0.0)
    room = 0.16 * (float(np.ptp(ends)) or spread)
    figure.update_xaxes(title=unit, range=[ends.min() - room, ends.max() + room], zeroline=True)
    return figure.update_yaxes(autorange="reversed")


def short(text: str, most: int) -> str:
    """Return the beginning of an external text, escaped."""
    return literal(text if len(text) <= most else text[: most - 1] + "…")


# The maximum rank up to which numbers are written into the cells.
_MOST_WRITTEN = 12


def two_rows(
    names: Sequence[str],
    values: np.ndarray,
    pulls: np.ndarray | None = None,
    thresholds: np.ndarray | None = None,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw two rows of P and, below, gradients against thresholds of their zero entries.

    Parameters
    ----------
    names : two str
        The features.
    values : (2, k) ndarray
        Their rows. Exact zeros have the colour of zero.
    pulls, thresholds : (2, k) or (2, 1) ndarrays, optional
        The gradients of the loss, and the thresholds below which zeros stay 0; one number per row if the
        regularizer shrinks rows by their norms. If omitted, only the rows are drawn.
    dark : bool
        Whether the theme is dark.

    Returns
    -------
    plotly Figure
    """
    k = values.shape[1]
    colors = palette.DARK if dark else palette.LIGHT
    thresholded = pulls is not None and thresholds is not None
    by_norm = pulls is not None and pulls.shape[1] == 1
    heights = {"row_heights": [0.42, 0.58], "vertical_spacing": 0.2} if thresholded else {}
    figure = make_subplots(rows=1 + thresholded, cols=1, shared_xaxes=not by_norm, **heights)
    top = float(np.abs(values).max(initial=0.0)) or 1.0
    labels = [short(name, 18) for name in names]
    if labels[0] == labels[1]:
        labels[1] += " "
    written = np.array([["0" if v == 0 else typeset(v, ".2g") for v in row] for row in values])
    common = {"x": np.arange(1, k + 1), "y": labels, "xgap": 2, "ygap": 4, "showscale": False}
    figure.add_trace(
        go.Heatmap(
            z=np.where(values == 0, 0.0, np.nan),
            colorscale=[[0.0, colors.zero], [1.0, colors.zero]],
            name="exact zero",
            hovertemplate="%{y}, column %{x}: exact zero<extra></extra>",
            **common,
        ),
        row=1,
        col=1,
    )
    figure.add_trace(
        go.Heatmap(
            z=np.where(values == 0, np.nan, values),
            zmin=-top,
            zmax=top,
            colorscale=palette.diverging_colorscale(dark),
            text=written,
            texttemplate="%{text}" if k <= _MOST_WRITTEN else None,
            name="P",
            hovertemplate="%{y}, column %{x}: %{z:.5g}<extra></extra>",
            **common,
        ),
        row=1,
        col=1,
    )
    if pulls is not None and thresholds is not None:
        _pulls(figure, labels, values, pulls, thresholds)
    finish(figure, 330 if thresholded else 150, 12, legend_y=0.5)
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(autorange="reversed", showgrid=False, row=1, col=1)
    figure.update_xaxes(title_text="row" if by_norm else "column of P", row=1 + thresholded, col=1)
    return figure


def _pulls(
    figure: go.Figure, labels: Sequence[str], values: np.ndarray, pulls: np.ndarray, thresholds: np.ndarray
) -> None:
    """Draw gradients and thresholds of zero entries below the rows."""
    by_norm = pulls.shape[1] == 1
    columns = np.arange(1, values.shape[1] + 1)
    for row, color in enumerate((BLUE, ORANGE)):
        zero = (~values[row].any(keepdims=True)) if by_norm else values[row] == 0
        x = np.array([labels[row]]) if by_norm else columns + (0.12 if row else -0.12)
        for what, marks, symbol in (
            ("threshold", thresholds, "line-ew"),
            ("pull of the loss", pulls, "circle"),
        ):
            figure.add_trace(
                go.Scatter(
                    x=x[zero],
                    y=marks[row][zero],
                    name=f"{what}, {labels[row].strip()}",
                    mode="markers",
                    marker={
                        "symbol": symbol,
                        "size": 14 if symbol == "line-ew" else 7,
                        "color": color,
                        "line": {"color": color, "width": 2.5 if symbol == "line-ew" else 0},
                    },
                    hovertemplate="%{y:.4g}",
                ),
                row=2,
                col=1,
            )
    figure.update_yaxes(rangemode="tozero", title_text="at zero entries", row=2, col=1)
