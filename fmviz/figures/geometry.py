"""Figures of unit balls, flows of proximal operators, shrinkage curves and thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fmviz.figures import palette
from fmviz.figures.training import BLUE, ORANGE, PURPLE, finish

REACH = 2.0
# Colours by the zeros of the prox: none, the first coordinate, the second, both.
ZERO_COLORS: tuple[str, ...] = (palette.NEUTRAL, ORANGE, BLUE, PURPLE)
ZERO_SYMBOLS: tuple[str, ...] = ("circle", "line-ew-open", "line-ns-open", "x-thin-open")
_CLEAR = "rgba(0,0,0,0)"


def _line(points: np.ndarray, color: str, width: float, dash: str = "solid") -> dict[str, Any]:
    x, y = np.round(points, 4).T
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "line": {"color": color, "width": width, "dash": dash},
        "hoverinfo": "skip",
    }


def _dots(points: np.ndarray, marker: dict[str, Any]) -> dict[str, Any]:
    x, y = np.round(points, 10).T
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "marker": marker, "hoverinfo": "skip"}


def plane(
    levels: Sequence[np.ndarray],
    flow: tuple[np.ndarray, np.ndarray],
    path: np.ndarray,
    points: tuple[np.ndarray, np.ndarray],
    axes: Sequence[str],
    *,
    color: str,
    height: int,
    lattice: np.ndarray | None = None,
) -> go.Figure:
    """Draw the unit ball, the flow of the operator and the path of one point.

    Parameters
    ----------
    levels : sequence of (n, 2) ndarray
        Level curves of Ω, the unit ball first.
    flow : (n, steps, 2) ndarray and (n,) ndarray of int
        Paths from grid points to their prox, and for each the sum of 2^i over the coordinates of its end that
        are exactly 0.
    path : (m, 2) ndarray
        The trajectory of the point as λ grows.
    points : two (2,) ndarrays
        The point and its prox at the current λ.
    axes : (str, str)
        The names of the coordinates.
    color : str
        The colour of the regularizer.
    height : int
        The height in pixels.
    lattice : (m,) ndarray, optional
        Clickable coordinates: an invisible grid over the plane, the last trace. Without it, the figure is
        small and its axes have no numbers.
    """
    (ways, codes), (point, moved) = flow, points
    scale = 0.5 if lattice is None else 1.0
    # Built in one call: adding traces one by one is several times slower at every click.
    traces: list[dict[str, Any]] = []
    for number, level in enumerate(levels):
        ball = number == 0
        traces.append(
            {
                **_line(level, color, 2.5 if ball else 1.0, "solid" if ball else "dot"),
                "name": "unit ball" if ball else "level",
                **({"fill": "toself", "fillcolor": f"{color}29"} if ball else {}),
            }
        )
    for code, (shade, symbol) in enumerate(zip(ZERO_COLORS, ZERO_SYMBOLS, strict=True)):
        mine = ways[codes == code]
        if not len(mine):
            continue
        # A single line, interrupted by NaN after every path.
        gaps = np.pad(mine, ((0, 0), (0, 1), (0, 0)), constant_values=np.nan)
        lines = _line(gaps.reshape(-1, 2), shade, 1.0)
        traces.append({**lines, "opacity": 0.55 if code == 0 else 0.8, "name": f"ways {code}"})
        width = 0 if code == 0 else 2
        size = scale * (4 if code == 0 else 9)
        marker = {"color": shade, "symbol": symbol, "size": size, "line": {"width": width, "color": shade}}
        traces.append({**_dots(np.unique(np.round(mine[:, -1], 4), axis=0), marker), "name": f"ends {code}"})
    ring = {"symbol": "circle-open", "size": 4 + 10 * scale, "color": color, "line": {"width": 3}}
    disc = {"symbol": "circle", "size": 4 + 8 * scale, "color": color, "line": {"width": 2, "color": "white"}}
    traces += [
        {**_line(path, color, 4.0), "name": "path"},
        {**_dots(point[None], ring), "name": "point"},
        {**_dots(moved[None], disc), "name": "prox"},
    ]
    if lattice is not None:
        # Transparent and without labels, but still clickable.
        grid = np.stack(np.meshgrid(lattice, lattice), axis=-1).reshape(-1, 2)
        click = {"type": "scattergl", "opacity": 0, "hoverinfo": "none", "name": "click"}
        traces.append(_dots(grid, {"size": 12}) | click)
    axis = {
        "automargin": False,
        "showticklabels": lattice is not None,
        "tickfont": {"size": 11},
        "range": [-1.06 * REACH, 1.06 * REACH],
        "constrain": "domain",
        "zeroline": True,
        "zerolinewidth": 1.5,
        "zerolinecolor": palette.NEUTRAL,
        "fixedrange": True,
    }
    # The name of the axis replaces its last tick label: a title would shrink the plot or cover its lines.
    numbers = list(range(-int(REACH), int(REACH)))
    xaxis, yaxis = (
        axis
        | {
            "tickvals": [*numbers, REACH],
            "ticktext": [*(str(n).replace("-", "−") for n in numbers), f"<b>{name}</b>"],
        }
        for name in axes
    )
    return go.Figure(
        data=traces,
        layout={
            "xaxis": xaxis,
            "yaxis": yaxis | {"scaleanchor": "x", "scaleratio": 1},
            "height": height,
            "margin": {"l": 2, "r": 42, "t": 2, "b": 2}
            if lattice is None
            else {"l": 28, "r": 12, "t": 8, "b": 22},
            "paper_bgcolor": _CLEAR,
            "plot_bgcolor": _CLEAR,
            "showlegend": False,
            "dragmode": False,
        },
    )


def column_bars(before: np.ndarray, after: np.ndarray, threshold: float, soft: float) -> go.Figure:
    """Draw the entries of a column against the threshold of TI.

    Parameters
    ----------
    before, after : (d,) ndarray
        The entries and their prox; absolute values are drawn.
    threshold : float
        The shrinkage 2λS of every entry.
    soft : float
        λ, the threshold of ℓ₁, for comparison.
    """
    size, remaining = np.abs(before), np.abs(after)
    names = [f"p<sub>{j}</sub>" for j in range(1, size.size + 1)]
    ti = palette.regularizer_color("ti")
    figure = go.Figure()
    figure.add_bar(
        x=names,
        y=size - remaining,
        base=0,
        name="taken away",
        marker={"color": [f"{palette.NEUTRAL}59" if q else f"{ORANGE}8c" for q in remaining]},
        customdata=size,
        hovertemplate="%{x}: %{y:.4g} of %{customdata:.4g} taken away<extra></extra>",
    )
    figure.add_bar(
        x=names,
        y=remaining,
        base=size - remaining,
        name="left: |q|",
        marker={"color": ti},
        text=["0" if q == 0 else f"{q:.3g}" for q in remaining],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{x}: %{y:.4g} is left<extra></extra>",
    )
    for level, name, color, dash in (
        (threshold, "TI: τ = 2λS", ti, "solid"),
        (soft, "ℓ₁: λ", palette.regularizer_color("l1"), "dot"),
    ):
        figure.add_scatter(
            x=names,
            y=[level] * size.size,
            mode="lines",
            line={"color": color, "width": 2.5, "dash": dash},
            name=name,
            hovertemplate=f"{name} = %{{y:.4g}}<extra></extra>",
        )
    finish(figure, 330, barmode="overlay", bargap=0.35)
    return figure.update_yaxes(title="|p|", rangemode="tozero")
