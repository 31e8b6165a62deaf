"""Draw the first panel of a figure as a thumbnail: a small SVG without text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fmviz.figures.palette import NEUTRAL
from fmviz.figures.training import evenly

WIDTH, HEIGHT = 300, 120
_MARGIN = 8


def svg(figure: go.Figure) -> str:
    """Return the lines, points and boxes on the first pair of axes.

    Parameters
    ----------
    figure : plotly Figure
        Of scatter and box traces there; numbers on linear or logarithmic axes, or words.

    Returns
    -------
    str
        An SVG that reads on light and on dark.
    """
    traces = [t for t in figure.data if (t.xaxis or "x") == "x" and t.type in ("scatter", "box") and len(t.x)]
    at_x = _scale([t.x for t in traces], figure.layout.xaxis, _MARGIN, WIDTH - _MARGIN)
    at_y = _scale([t.y for t in traces], figure.layout.yaxis, HEIGHT - _MARGIN, _MARGIN)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">']
    out += [
        f'<path d="M{_MARGIN} {HEIGHT * share:g}H{WIDTH - _MARGIN}" stroke="{NEUTRAL}33"/>'
        for share in (0.1, 0.5, 0.9)
    ]
    boxes = [t for t in traces if t.type == "box"]
    for trace in traces:
        if trace.type == "box":
            aside = 10.0 * (boxes.index(trace) - 0.5 * (len(boxes) - 1))
            out += _boxes(trace, at_x, at_y, aside)
        else:
            out += _curve(trace, at_x, at_y)
    return "".join([*out, "</svg>"])


Scale = Callable[[Any], float]


def _scale(values: Sequence[Any], axis: Any, start: float, end: float) -> Scale:
    """Return a scale from values to pixels; NaN for invalid values, words in their order."""
    flat = [value for part in values for value in part]
    words = list(dict.fromkeys(value for value in flat if isinstance(value, str)))
    log = axis.type == "log"

    def number(value: Any) -> float:
        if words:
            return float(words.index(value))
        if value is None or (log and value <= 0):
            return math.nan
        return math.log10(value) if log else float(value)

    known = np.array([number(value) for value in flat])
    known = known[np.isfinite(known)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    if axis.range is not None and not words:
        low, high = axis.range
    if words or high <= low:
        low, high = low - 0.5, high + 0.5

    def at(value: Any) -> float:
        share = (number(value) - low) / (high - low)
        return start + float(np.clip(share, 0.0, 1.0)) * (end - start)

    return at


def _curve(trace: Any, at_x: Scale, at_y: Scale) -> list[str]:
    points = [(at_x(x), at_y(y)) for x, y in zip(trace.x, trace.y, strict=True)]
    points = [point for point in points if all(map(math.isfinite, point))]
    if trace.mode == "markers":
        color = trace.marker.color
        return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{color}"/>' for x, y in points]
    thinned = [points[i] for i in evenly(len(points), 60)]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in thinned)
    return [f'<path d="M{path}" fill="none" stroke="{trace.line.color}" stroke-width="1.5"/>'] if path else []


def _boxes(trace: Any, at_x: Scale, at_y: Scale, aside: float) -> list[str]:
    """Draw the median and the quartiles of every group."""
    out, color = [], trace.marker.color
    groups = np.array(trace.x)
    for group in dict.fromkeys(trace.x):
        mine = np.array(trace.y, float)[groups == group]
        low, middle, high = (at_y(value) for value in np.quantile(mine, (0.25, 0.5, 0.75)))
        x = at_x(group) + aside
        out.append(
            f'<rect x="{x - 4:.1f}" y="{high:.1f}" width="8" height="{max(low - high, 1):.1f}" '
            f'fill="{color}66" stroke="{color}"/><path d="M{x - 4:.1f} {middle:.1f}h8" stroke="{color}"/>'
        )
    return out
