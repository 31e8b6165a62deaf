"""Two rows of P as strips of cells, and what holds their zeros at zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fmviz.figures import palette
from fmviz.figures.training import BLUE, ORANGE
from fmviz.figures.wording import literal

# More numbers would not be read in cells so narrow.
_MOST_WRITTEN = 12


def two_rows(
    names: Sequence[str],
    values: np.ndarray,
    pulls: np.ndarray | None = None,
    thresholds: np.ndarray | None = None,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw two rows of P above each other, and beneath them pull against threshold where they are zero.

    Parameters
    ----------
    names : two str
        The features.
    values : (2, k) ndarray
        Their rows. An exact zero has the colour of zero.
    pulls, thresholds : (2, k) or (2, 1) ndarrays, optional
        What the loss pulls with, and up to which pull a zero stays; one number a row where the regularizer
        shrinks rows by their norms. Without them the strips stand alone.
    dark : bool
        The theme.

    Returns
    -------
    plotly Figure
    """
    k = values.shape[1]
    columns = np.arange(1, k + 1)
    colors = palette.matrix_colors(dark)
    held = pulls is not None and thresholds is not None
    by_norm = pulls is not None and pulls.shape[1] == 1
    heights = {"row_heights": [0.42, 0.58], "vertical_spacing": 0.2} if held else {}
    figure = make_subplots(rows=1 + held, cols=1, shared_xaxes=not by_norm, **heights)
    top = float(np.abs(values).max(initial=0.0)) or 1.0
    labels = [_short(name) for name in names]
    if labels[0] == labels[1]:
        labels[1] += " "
    written = np.array([["0" if v == 0 else f"{v:.2g}" for v in row] for row in values])
    common = {"x": columns, "y": labels, "xgap": 2, "ygap": 4, "showscale": False}
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
    figure.update_layout(
        height=330 if held else 150,
        margin={"l": 8, "r": 12, "t": 12, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 0.5, "yanchor": "bottom"},
    )
    figure.update_xaxes(automargin=True, zeroline=False, showgrid=False)
    figure.update_yaxes(automargin=True, zeroline=False)
    figure.update_yaxes(autorange="reversed", showgrid=False, row=1, col=1)
    if held:
        figure.update_yaxes(rangemode="tozero", title_text="at zero entries", row=2, col=1)
    figure.update_xaxes(title_text="row" if by_norm else "column of P", row=1 + held, col=1)
    return figure


def _pulls(
    figure: go.Figure, labels: Sequence[str], values: np.ndarray, pulls: np.ndarray, thresholds: np.ndarray
) -> None:
    """Draw pull and threshold of what is zero beneath the strips."""
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


def _short(name: str, most: int = 18) -> str:
    return literal(name if len(name) <= most else name[: most - 1] + "…")
