"""Figures of learned interactions: network, waterfall of a prediction, two rows of P."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import scipy.sparse as sp
from plotly.subplots import make_subplots
from scipy.sparse.csgraph import connected_components, shortest_path

from fmviz.figures import palette
from fmviz.figures.tabular import literal
from fmviz.figures.training import BLUE, ORANGE, finish

POSITIVE, NEGATIVE = "#db6f22", "#3f88c5"
"""The colours of what raises and of what lowers, those of the heatmaps."""
_WIDTHS = (1.2, 2.2, 3.6, 5.5)


def network(
    names: Sequence[str],
    position: np.ndarray,
    strength: np.ndarray,
    degree: np.ndarray,
    edges: np.ndarray,
    weight: np.ndarray,
    chosen: Sequence[int] = (),
    signed: bool = True,
) -> go.Figure:
    """Draw a network of interactions.

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
    labelled = set(np.argsort(-strength, kind="stable")[:26].tolist()) | set(chosen)
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
            "size": 9 + 17 * np.sqrt(strength / max(strength.max(initial=0.0), 1e-300)),
            "color": [POSITIVE if at in set(chosen) else palette.NEUTRAL for at in range(len(names))],
            "line": {"width": 1.5, "color": "rgba(255,255,255,0.8)"},
            "opacity": 1.0,
        },
        unselected={"marker": {"opacity": 1.0}, "textfont": {"color": None}},
    )
    finish(figure, 400, 12, showlegend=False, clickmode="event+select", dragmode="pan")
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
    """
    every = [*labels, start]
    shown = [_short(label, 46) for label in every]
    # Equal labels would share one bar.
    shown = [text + "\N{ZERO WIDTH SPACE}" * shown[:at].count(text) for at, text in enumerate(shown)]
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
    finish(figure, 26 * len(every) + 70, 12, showlegend=False)
    # Room for the values outside the bars.
    figure.update_layout(margin_r=64)
    ends = np.cumsum(values)
    spread = float(np.ptp(ends)) or abs(total) or 1.0
    if min(abs(ends)) < 2 * spread:
        ends = np.append(ends, 0.0)
    room = 0.16 * (float(np.ptp(ends)) or spread)
    figure.update_xaxes(title=unit, range=[ends.min() - room, ends.max() + room], zeroline=True)
    figure.update_yaxes(autorange="reversed")
    return figure


def _short(text: str, most: int = 22) -> str:
    return literal(text if len(text) <= most else text[: most - 1] + "…")


# Numbers are written into the cells up to this rank.
_MOST_WRITTEN = 12


def two_rows(
    names: Sequence[str],
    values: np.ndarray,
    pulls: np.ndarray | None = None,
    thresholds: np.ndarray | None = None,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw two rows of P and, beneath, gradients against thresholds of their zero entries.

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
    thresholded = pulls is not None and thresholds is not None
    by_norm = pulls is not None and pulls.shape[1] == 1
    heights = {"row_heights": [0.42, 0.58], "vertical_spacing": 0.2} if thresholded else {}
    figure = make_subplots(rows=1 + thresholded, cols=1, shared_xaxes=not by_norm, **heights)
    top = float(np.abs(values).max(initial=0.0)) or 1.0
    labels = [_short(name, 18) for name in names]
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
    finish(figure, 330 if thresholded else 150, 12, legend_y=0.5)
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(autorange="reversed", showgrid=False, row=1, col=1)
    if thresholded:
        figure.update_yaxes(rangemode="tozero", title_text="at zero entries", row=2, col=1)
    figure.update_xaxes(title_text="row" if by_norm else "column of P", row=1 + thresholded, col=1)
    return figure


def _pulls(
    figure: go.Figure, labels: Sequence[str], values: np.ndarray, pulls: np.ndarray, thresholds: np.ndarray
) -> None:
    """Draw gradients and thresholds of zero entries beneath the rows."""
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


_ROUNDS = 120
_WIDE = 1.9  # how much wider than high the picture is


@dataclass(frozen=True, eq=False)
class Network:
    """Nodes joined by weighted edges.

    Attributes
    ----------
    nodes : (n,) int ndarray
        What the nodes stand for.
    position : (n, 2) ndarray
        Where they are.
    strength : (n,) ndarray
        The sum of |weight| of the edges of each.
    degree : (n,) int ndarray
        The number of its edges.
    edges : (e, 2) int ndarray
        The places among `nodes` of both ends.
    weight : (e,) ndarray
        Of each edge.
    """

    nodes: np.ndarray
    position: np.ndarray
    strength: np.ndarray
    degree: np.ndarray
    edges: np.ndarray
    weight: np.ndarray


def layout(i: np.ndarray, j: np.ndarray, weight: np.ndarray) -> Network:
    """Lay out the network of some pairs.

    Every connected component is drawn so that distances are near the lengths of shortest paths (stress
    majorization: Gansner, Koren and North 2004, "Graph drawing by stress majorization"), and the components
    are set side by side, the largest first. Nothing is drawn at random.

    Parameters
    ----------
    i, j : int ndarrays
        The two ends of every edge.
    weight : ndarray
        Of every edge.
    """
    nodes, ends = np.unique(np.concatenate([i, j]), return_inverse=True)
    edges = ends.reshape(2, -1).T
    n = nodes.size
    strength = np.bincount(edges.ravel(), np.repeat(np.abs(weight), 2), minlength=n)
    degree = np.bincount(edges.ravel(), minlength=n)
    graph = sp.csr_array((np.ones(len(edges)), edges.T), shape=(n, n))
    graph = graph + graph.T
    count, member = connected_components(graph, directed=False)
    parts = [np.flatnonzero(member == c) for c in range(count)]
    parts.sort(key=lambda part: (-part.size, part[0]))
    drawn = [_component(graph[part][:, part]) for part in parts]
    position = np.zeros((n, 2))
    for part, place in zip(parts, _packed(drawn), strict=True):
        position[part] = place
    return Network(nodes, position, strength, degree, edges, weight)


def _component(graph: sp.csr_array) -> np.ndarray:
    """Return positions of the nodes of a connected graph, its first node in the middle of the circle."""
    n = graph.shape[0]
    distance = shortest_path(graph, unweighted=True, directed=False)
    # Start on a circle, neighbours near each other.
    order = np.lexsort((np.arange(n), distance[int(np.argmax(distance.sum(axis=1)))]))
    angle = np.empty(n)
    angle[order] = 2 * np.pi * np.arange(n) / n
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * distance.max() / 2
    if n < 3:
        return X
    importance = 1.0 / np.square(distance + np.eye(n)) * (1 - np.eye(n))
    inverse = np.linalg.pinv(np.diag(importance.sum(axis=1)) - importance)
    for _ in range(_ROUNDS):
        ratio = importance * distance / (np.sqrt(np.square(X[:, None] - X).sum(axis=2)) + 1e-9)
        X = inverse @ ((np.diag(ratio.sum(axis=1)) - ratio) @ X)
    return np.asarray(X)


def _packed(drawn: list[np.ndarray]) -> list[np.ndarray]:
    """Return positions of the components in rows of about equal width."""
    boxes = []
    for X in drawn:
        low = X.min(axis=0)
        boxes.append((X - low, np.maximum(X.max(axis=0) - low, 0.6)))
    area = sum(float(np.prod(size + 1.0)) for _, size in boxes)
    width = max(float(np.sqrt(area * _WIDE)), max(float(size[0]) for _, size in boxes))
    positions, x, y, tall = [], 0.0, 0.0, 0.0
    for X, size in boxes:
        if x > 0 and x + size[0] > width:
            x, y, tall = 0.0, y - tall - 1.0, 0.0
        positions.append(X + np.array([x, y - float(size[1])]))
        x, tall = x + float(size[0]) + 1.0, max(tall, float(size[1]))
    return positions
