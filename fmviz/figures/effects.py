"""Figures of the effects of columns on predictions: curves, bars of levels, and surfaces of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fmviz.figures import palette
from fmviz.figures.interactions import NEGATIVE, POSITIVE, short
from fmviz.figures.tabular import literal
from fmviz.figures.training import BLUE, finish

# The maximum number of words written below bars.
_MOST_WORDS = 16
_BAND = "rgba(63,136,197,0.18)"


def main_effect(curve: pd.DataFrame, labels: Sequence[str] | None, name: str, unit: str) -> go.Figure:
    """Draw a main effect: a curve for a number, or a bar for each word, with a posterior band.

    Parameters
    ----------
    curve : DataFrame
        Columns ``value``, ``effect``, ``lower`` and ``upper``.
    labels : sequence of str or None
        The words; None for a number.
    name, unit : str
        Titles of the axes.
    """
    figure = go.Figure()
    banded = not np.allclose(curve["lower"], curve["upper"])
    if labels is None:
        x = curve["value"].to_numpy(float)
        if banded:
            for end, fill in (("lower", None), ("upper", "tonexty")):
                figure.add_scatter(
                    x=x,
                    y=curve[end],
                    mode="lines",
                    line={"color": BLUE, "width": 0.5},
                    fill=fill,
                    fillcolor=_BAND,
                    name=f"{end} end of 90 %",
                    showlegend=False,
                    hoverinfo="skip",
                )
        figure.add_scatter(
            x=x,
            y=curve["effect"],
            mode="lines",
            line={"color": BLUE, "width": 2.5},
            name="effect",
            showlegend=False,
            hovertemplate="%{x:.4g}: %{y:+.3g}<extra></extra>",
        )
        figure.update_xaxes(range=[float(x.min()), float(x.max())], tickformat="~g")
    else:
        effect = curve["effect"]
        figure.add_bar(
            x=[literal(word) for word in labels],
            y=effect,
            marker={"color": np.where(effect >= 0, POSITIVE, NEGATIVE).tolist()},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": curve["upper"] - effect,
                "arrayminus": effect - curve["lower"],
                "color": palette.NEUTRAL,
                "thickness": 1.2,
                "width": 0,
                "visible": banded,
            },
            customdata=curve["rows"],
            hovertemplate="%{x}: %{y:+.3g}, %{customdata:,} rows<extra></extra>",
            showlegend=False,
        )
        shown = labels[:: -(-len(labels) // _MOST_WORDS)]
        figure.update_xaxes(
            type="category",
            tickvals=[literal(word) for word in shown],
            ticktext=[short(word, 16) for word in shown],
        )
    return (
        finish(figure, 230, 12, showlegend=False)
        .update_xaxes(title_text=short(name, 36))
        .update_yaxes(title_text=short(unit, 30), zeroline=True, zerolinecolor=palette.NEUTRAL)
    )


def curves_of_words(curves: pd.DataFrame, name: str, word: str, unit: str) -> go.Figure:
    """Draw the effect of a pair of columns as a curve over the number, the index, for each word."""
    figure = go.Figure()
    for color, level in zip(palette.SERIES, curves, strict=False):
        figure.add_scatter(
            x=curves.index.to_numpy(float),
            y=curves[level],
            mode="lines",
            line={"color": color, "width": 2.5},
            name=literal(str(level)),
            hovertemplate="%{x:.4g}: %{y:+.3g}",
        )
    return (
        finish(figure, 360, 12, legend_title_text=literal(word))
        .update_xaxes(
            title_text=literal(name), range=[curves.index.min(), curves.index.max()], tickformat="~g"
        )
        .update_yaxes(title_text=literal(unit), zeroline=True, zerolinecolor=palette.NEUTRAL)
    )


def surface(
    effect: np.ndarray,
    rows: np.ndarray | None,
    labels: tuple[Sequence[str], Sequence[str]],
    ends: Sequence[np.ndarray | None],
    names: tuple[str, str],
    unit: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw the effect of a pair of columns as a heatmap with cells scaled to ranges of numbers.

    Parameters
    ----------
    effect : (m, n) ndarray
        The mean over the rows in each cell, NaN for empty cells.
    rows : (m, n) ndarray or None
        The number of rows in each cell.
    labels : pair of sequences of str
        The labels of rows and columns of the heatmap.
    ends : pair of (m, 2) ndarrays or None
        The ends of ranges of numbers.
    names : pair of str
        The two columns.
    unit : str
        The unit of the effect.
    dark : bool
        Whether the theme is dark.
    """
    top = float(np.nanmax(np.abs(effect), initial=0.0)) or 1.0
    y, x = (
        [literal(word) for word in own] if end is None else _edges(end)
        for own, end in zip(labels, ends, strict=True)
    )
    heads = np.array([[f"{literal(a)}, {literal(b)}" for b in labels[1]] for a in labels[0]], dtype=object)
    colors = palette.DARK if dark else palette.LIGHT
    figure = go.Figure(
        go.Heatmap(
            z=effect,
            x=x,
            y=y,
            zmin=-top,
            zmax=top,
            colorscale=[*colors.negative[::-1], colors.zero, *colors.positive],
            hoverongaps=False,
            customdata=heads[:, :, None] if rows is None else np.dstack([heads, rows]),
            hovertemplate="%{customdata[0]}: %{z:+.3g}"
            + ("" if rows is None else ", %{customdata[1]:,} rows")
            + "<extra></extra>",
            colorbar={"title": {"text": literal(unit), "side": "right"}, "thickness": 12},
        )
    )
    finish(figure, max(320, min(620, 70 + 18 * len(labels[0]))), 12)
    for axis, name, end in (
        (figure.update_yaxes, names[0], ends[0]),
        (figure.update_xaxes, names[1], ends[1]),
    ):
        axis(title_text=literal(name), showgrid=False, zeroline=False, tickformat="~g")
        if end is None:
            axis(type="category")
    if ends[0] is None:
        figure.update_yaxes(autorange="reversed")
    return figure


def _edges(ends: np.ndarray) -> np.ndarray:
    """Return the edges of adjacent ranges, halfway between neighbouring numbers."""
    inner = (ends[1:, 0] + ends[:-1, 1]) / 2
    if len(ends) < 2:
        return np.array([ends[0, 0] - 0.5, ends[0, 1] + 0.5])
    # A range of a single number is symmetric.
    (low, end), (begin, high) = ends[0], ends[-1]
    return np.r_[
        2 * low - inner[0] if low == end else low, inner, 2 * high - inner[-1] if begin == high else high
    ]
