"""Figures of what a model has learned: its interactions as a network, and one prediction taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fmviz.figures import palette
from fmviz.figures.wording import literal

POSITIVE, NEGATIVE = "#db6f22", "#3f88c5"
"""The colours of what raises and of what lowers, those of the heatmaps."""
_WIDTHS = (1.2, 2.2, 3.6, 5.5)
_LABELLED = 26
_NO_WIDTH = "\N{ZERO WIDTH SPACE}"


def network(
    names: Sequence[str],
    position: np.ndarray,
    strength: np.ndarray,
    degree: np.ndarray,
    edges: np.ndarray,
    weight: np.ndarray,
    chosen: Sequence[int] = (),
    signed: bool = True,
    height: int = 400,
) -> go.Figure:
    """Draw nodes and edges.

    Parameters
    ----------
    names : sequence of str
        Of the nodes.
    position : (n, 2) ndarray
        Where they are.
    strength, degree : (n,) ndarrays
        What their size goes with, and how many edges they have.
    edges : (e, 2) int ndarray
        The ends of the edges, as places of nodes.
    weight : (e,) ndarray
        Of the edges; their colour is its sign.
    chosen : sequence of int
        Nodes that are marked.
    signed : bool
        Whether the sign of a weight says something.
    height : int
        In pixels.
    """
    figure = go.Figure()
    size = np.abs(weight)
    grade = np.minimum(
        (size / max(size.max(initial=0.0), 1e-300) * len(_WIDTHS)).astype(int), len(_WIDTHS) - 1
    )
    for positive in (True, False):
        color = (POSITIVE if positive else NEGATIVE) if signed else palette.NEUTRAL
        for level, width in enumerate(_WIDTHS):
            kept = edges[(grade == level) & ((weight >= 0) == positive)]
            if len(kept):
                lines = np.full((len(kept), 3, 2), np.nan)
                lines[:, :2] = position[kept]
                x, y = lines.reshape(-1, 2).T
                figure.add_scatter(
                    x=x,
                    y=y,
                    mode="lines",
                    line={"color": color, "width": width},
                    opacity=0.7,
                    hoverinfo="skip",
                )
    order = np.argsort(-strength, kind="stable")
    labelled = set(order[:_LABELLED].tolist()) | set(chosen)
    share = strength / max(strength.max(initial=0.0), 1e-300)
    figure.add_scatter(
        x=position[:, 0],
        y=position[:, 1],
        mode="markers+text",
        text=[_short(name) if at in labelled else "" for at, name in enumerate(names)],
        textposition="top center",
        textfont={"size": 11},
        customdata=list(range(len(names))),
        hovertext=[
            f"{literal(name)}<br>{d} edge{'s' if d != 1 else ''}, strength {s:.4g}"
            for name, d, s in zip(names, degree, strength, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        marker={
            "size": 9 + 17 * np.sqrt(share),
            "color": [POSITIVE if at in set(chosen) else palette.NEUTRAL for at in range(len(names))],
            "line": {"width": 1.5, "color": "rgba(255,255,255,0.8)"},
            "opacity": 1.0,
        },
        unselected={"marker": {"opacity": 1.0}, "textfont": {"color": None}},
    )
    _finish(figure, height, showlegend=False, clickmode="event+select", dragmode="pan")
    low, high = position.min(axis=0), position.max(axis=0)
    room = 0.08 * (high - low) + 0.35
    figure.update_xaxes(visible=False, range=[low[0] - room[0], high[0] + room[0]])
    figure.update_yaxes(visible=False, range=[low[1] - room[1], high[1] + 1.4 * room[1]])
    return figure


def waterfall(
    labels: Sequence[str],
    values: Sequence[float],
    total: float,
    start: str,
    unit: str,
    height: int | None = None,
) -> go.Figure:
    """Draw how terms add up to a prediction, from top to bottom.

    Parameters
    ----------
    labels, values : sequences
        The terms; the first is where it starts.
    total : float
        Their sum.
    start : str
        What the sum is called.
    unit : str
        The title of the axis.
    height : int, optional
        In pixels; by default as the number of terms needs.
    """
    every = [*labels, start]
    shown = [_short(label, 46) for label in every]
    # The same words twice would be one bar.
    shown = [text + _NO_WIDTH * shown[:at].count(text) for at, text in enumerate(shown)]
    figure = go.Figure(
        go.Waterfall(
            orientation="h",
            y=shown,
            x=[*values, total],
            measure=["absolute", *["relative"] * (len(values) - 1), "total"],
            text=[f"{value:+.4g}" for value in values] + [f"{total:.5g}"],
            textposition="outside",
            cliponaxis=False,
            hovertext=[
                f"{literal(label)}: {value:.6g}" for label, value in zip(every, [*values, total], strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            increasing={"marker": {"color": POSITIVE}},
            decreasing={"marker": {"color": NEGATIVE}},
            totals={"marker": {"color": palette.NEUTRAL}},
            connector={"line": {"color": palette.NEUTRAL, "width": 1, "dash": "dot"}},
        )
    )
    _finish(figure, height or 26 * len(every) + 70, showlegend=False)
    # Values are written outside the bars, which a narrow window would cut off.
    figure.update_layout(margin_r=64)
    ends = np.cumsum(values)
    spread = float(np.ptp(ends)) or abs(total) or 1.0
    if min(abs(ends)) < 2 * spread:
        ends = np.append(ends, 0.0)
    room = 0.16 * (float(np.ptp(ends)) or spread)
    figure.update_xaxes(title=unit, range=[ends.min() - room, ends.max() + room], zeroline=True)
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


def _finish(figure: go.Figure, height: int, **layout: Any) -> None:
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 12, "t": 12, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        **layout,
    )
    figure.update_xaxes(automargin=True, zeroline=False)


def _short(text: str, most: int = 22) -> str:
    return literal(text if len(text) <= most else text[: most - 1] + "…")
