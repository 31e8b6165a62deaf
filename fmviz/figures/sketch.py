"""Draw a Plotly figure as a thumbnail, a small SVG without text."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from fmviz.figures.palette import NEUTRAL
from fmviz.figures.training import evenly

THUMBNAIL = 300, 120
_MARGIN = 8


def thumbnail(figure: go.Figure) -> str:
    """Return the lines, points and boxes on the first pair of axes, without text.

    Parameters
    ----------
    figure : plotly Figure
        Of scatter and box traces there; numbers on linear or logarithmic axes, or words.

    Returns
    -------
    str
        An SVG that reads on light and on dark.
    """
    width, height = THUMBNAIL
    traces = [t for t in figure.data if (t.xaxis or "x") == "x" and t.type in ("scatter", "box") and len(t.x)]
    across = _places([t.x for t in traces], figure.layout.xaxis, _MARGIN, width - _MARGIN)
    down = _places([t.y for t in traces], figure.layout.yaxis, height - _MARGIN, _MARGIN)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">']
    out += [
        f'<path d="M{_MARGIN} {height * share:g}H{width - _MARGIN}" stroke="{NEUTRAL}33"/>'
        for share in (0.1, 0.5, 0.9)
    ]
    boxes = [t for t in traces if t.type == "box"]
    for trace, xs, ys in zip(traces, across, down, strict=True):
        known = np.isfinite(xs) & np.isfinite(ys)
        points = np.column_stack([xs, ys])[known]
        if trace.type == "box":
            aside, color = 10.0 * (boxes.index(trace) - 0.5 * (len(boxes) - 1)), trace.marker.color
            for x in dict.fromkeys(xs):
                low, middle, high = np.quantile(ys[known & (xs == x)], (0.75, 0.5, 0.25))
                out.append(
                    f'<rect x="{x + aside - 4:.1f}" y="{high:.1f}" width="8" '
                    f'height="{max(low - high, 1):.1f}" fill="{color}66" stroke="{color}"/>'
                    f'<path d="M{x + aside - 4:.1f} {middle:.1f}h8" stroke="{color}"/>'
                )
        elif trace.mode == "markers":
            circle = f'r="2.5" fill="{trace.marker.color}"/>'
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" {circle}' for x, y in points]
        elif len(points):
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points[evenly(len(points), 60)])
            out.append(f'<path d="M{path}" fill="none" stroke="{trace.line.color}" stroke-width="1.5"/>')
    return "".join([*out, "</svg>"])


def _places(parts: list[Any], axis: Any, start: float, end: float) -> list[np.ndarray]:
    """Return where values are on an axis, in pixels; NaN for invalid ones, words in their order."""
    words = list(dict.fromkeys(value for part in parts for value in part if isinstance(value, str)))
    numbers = [
        np.array([words.index(value) for value in part] if words else part, dtype=float) for part in parts
    ]
    if axis.type == "log":
        with np.errstate(divide="ignore", invalid="ignore"):
            numbers = [np.log10(part) for part in numbers]
    known = np.concatenate([*numbers, np.zeros(0)])
    known = known[np.isfinite(known)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    if axis.range is not None and not words:
        low, high = axis.range
    if words or high <= low:
        low, high = low - 0.5, high + 0.5
    places = [start + np.clip((part - low) / (high - low), 0.0, 1.0) * (end - start) for part in numbers]
    return [np.where(np.isfinite(part), place, np.nan) for part, place in zip(numbers, places, strict=True)]
