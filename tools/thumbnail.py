"""Draw the first panel of a Plotly figure as a thumbnail, a small SVG."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from fmviz.figures.palette import NEUTRAL, SYMBOLS
from fmviz.figures.tabular import literal
from fmviz.figures.training import evenly

THUMBNAIL = 300, 120
"""The width and height of the plot, above the names of the lines."""
_MARGIN, _ABOVE, _BELOW, _LINE = 8, 18, 20, 15
_GLYPHS = dict(zip(SYMBOLS, "●■◆▲✚✖★⬢⬟", strict=True))
# The line height in pixels, and the number of letters per line.
_LETTER, _MOST = 6.2, 54


def thumbnail(figure: go.Figure) -> str:
    """Draw the lines, points and boxes on the first pair of axes, with names of traces and axes.

    Parameters
    ----------
    figure : plotly Figure
        A figure with scatter and box traces, numbers on linear or logarithmic axes, or words. A line ends in
        the marker of its trace.

    Returns
    -------
    str
        An SVG for light and dark themes.
    """
    width, height = THUMBNAIL
    traces = [t for t in figure.data if (t.xaxis or "x") == "x" and t.type in ("scatter", "box") and len(t.x)]
    across = _places([t.x for t in traces], figure.layout.xaxis, _MARGIN, width - _MARGIN)
    down = _places([t.y for t in traces], figure.layout.yaxis, height - _BELOW, _ABOVE)
    titles = [figure.layout.yaxis.title.text, *(note.text for note in figure.layout.annotations[:1])]
    heading = " · ".join(filter(None, titles))
    out = [
        _text(_MARGIN, 10, heading[: _MOST - 1] + "…" if len(heading) > _MOST else heading),
        _text(width - _MARGIN, height - 6, figure.layout.xaxis.title.text or "", anchor="end"),
    ]
    out += [
        f'<path d="M{_MARGIN} {y:g}H{width - _MARGIN}" stroke="{NEUTRAL}33"/>'
        for y in np.linspace(_ABOVE, height - _BELOW, 3)
    ]
    names: dict[str, tuple[str, str]] = {}
    boxes = [t for t in traces if t.type == "box"]
    for trace, xs, ys in zip(traces, across, down, strict=True):
        known = np.isfinite(xs) & np.isfinite(ys)
        points = np.column_stack([xs, ys])[known]
        color = trace.marker.color or trace.line.color
        usual = "■" if trace.type == "box" else "–" if trace.mode == "lines" else "●"
        glyph = _GLYPHS.get(str(trace.marker.symbol).removesuffix("-open"), usual)
        names.setdefault(str(trace.name), (glyph, color))
        if trace.type == "box":
            aside = 10.0 * (boxes.index(trace) - 0.5 * (len(boxes) - 1))
            for x in dict.fromkeys(xs):
                low, middle, high = np.quantile(ys[known & (xs == x)], (0.75, 0.5, 0.25))
                out.append(
                    f'<rect x="{x + aside - 4:.1f}" y="{high:.1f}" width="8" '
                    f'height="{max(low - high, 1):.1f}" fill="{color}66" stroke="{color}"/>'
                    f'<path d="M{x + aside - 4:.1f} {middle:.1f}h8" stroke="{color}"/>'
                )
            continue
        if len(points) and "lines" in trace.mode:
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points[evenly(len(points), 60)])
            out.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        if "markers" in trace.mode:
            marked = points[-1:] if "lines" in trace.mode else points
            out += [_text(x, y + 4, glyph, color, "middle") for x, y in marked]
    x, y = float(_MARGIN), height + _LINE
    for name, (glyph, color) in names.items():
        room = _LETTER * (len(name) + 4)
        if x > _MARGIN and x + room > width:
            x, y = float(_MARGIN), y + _LINE
        out.append(_text(x, y, f"{glyph} {name}", color))
        x += room
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + _MARGIN}">'
    return "".join([head, *out, "</svg>"])


def _text(x: float, y: float, words: str, color: str = NEUTRAL, anchor: str = "start") -> str:
    style = f'fill="{color}" text-anchor="{anchor}" font-family="sans-serif" font-size="10.5"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{literal(words)}</text>'


def _places(parts: list[Any], axis: Any, start: float, end: float) -> list[np.ndarray]:
    """Return the positions of values on an axis in pixels; NaN for invalid values, words in order."""
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
