"""Draw the curves of a Plotly figure as a small SVG, and a matrix as a PNG."""

from __future__ import annotations

import math
import struct
import zlib
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fmviz.figures.palette import NEUTRAL, matrix_colors
from fmviz.figures.training import evenly

WIDTH = 367
_TEXT = "#7d8590"
_GRID = "#7d859033"
_LEFT, _RIGHT, _TOP, _BOTTOM, _GAP = 46, 10, 34, 40, 16
_NAMED = 14  # wider at the left where a vertical axis has a name
_MOST = 300
# Longer curves are drawn without markers.
_MARKED = 60
_DASH = {"dot": "2 3", "dash": "7 4"}


def svg(figure: go.Figure, width: int = WIDTH, text: str = _TEXT) -> str:
    """Return the curves of a figure with one panel or several stacked ones.

    Parameters
    ----------
    figure : plotly Figure
        Scatter traces of lines or markers on linear or logarithmic axes, as in `fmviz.figures.training`,
        perhaps with the lines of `fmviz.figures.training`.
    width : int
        In pixels; the height is the figure's.
    text : str
        The colour of the letters; "currentColor" where the picture is part of a page.

    Returns
    -------
    str
        An SVG that reads on light and on dark.
    """
    height = int(figure.layout.height or 290)
    traces = [t for t in figure.data if len(t.x)]
    axes = sorted({t.yaxis or "y" for t in traces}, key=lambda name: (len(name), name))
    log_x = any(axis.type == "log" for axis in figure.select_xaxes())
    given = next((axis.range for axis in figure.select_xaxes() if axis.range is not None), None)
    x_low, x_high = _breadth(traces, log_x) if given is None else (float(given[0]), float(given[1]))
    start = _LEFT + _NAMED * any(axis.title.text for axis in figure.select_yaxes())
    each = (height - _TOP - _BOTTOM - _GAP * (len(axes) - 1)) / max(1, len(axes))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="11" fill="{text}">'
    ]
    out += _legend(traces, width)

    def at_x(x: float) -> float:
        value = math.log10(x) if log_x else x
        return start + (value - x_low) / (x_high - x_low) * (width - start - _RIGHT)

    for number, name in enumerate(axes):
        top = _TOP + number * (each + _GAP)
        mine = [t for t in traces if (t.yaxis or "y") == name]
        axis = figure.layout["yaxis" + name[1:]]
        log = axis.type == "log"
        low, high = _range(mine, axis, log)

        def at_y(y: float, top: float = top, low: float = low, high: float = high, log: bool = log) -> float:
            value = math.log10(y) if log else y
            return top + (1 - (value - low) / (high - low)) * each

        for tick in _ticks(min(low, high), max(low, high), 3 if len(axes) > 1 else 5, log):
            value = 10**tick if log else tick
            y = at_y(value)
            out.append(f'<path d="M{start} {y:.1f}H{width - _RIGHT}" stroke="{_GRID}"/>')
            out.append(f'<text x="{start - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')
        if axis.title.text:
            out.append(
                f'<text transform="translate(11 {top + each / 2:.1f}) rotate(-90)" text-anchor="middle">'
                f"{escape(axis.title.text)}</text>"
            )
        for trace in mine:
            kept = evenly(len(trace.x), _MOST)
            xs, ys = np.asarray(trace.x, float)[kept], np.asarray(trace.y, float)[kept]
            out.append(
                _path(
                    trace,
                    [
                        (at_x(a), at_y(b)) if _drawable(a, log_x) and _drawable(b, log) else None
                        for a, b in zip(xs, ys, strict=True)
                    ],
                )
            )
    out += [
        f'<path d="M{at_x(shape.x0):.1f} {_TOP}V{height - _BOTTOM}" stroke="{shape.line.color}" '
        f'stroke-width="{shape.line.width}" stroke-dasharray="{_DASH[shape.line.dash]}"/>'
        for shape in figure.layout.shapes
    ]
    out += [
        f'<text x="{at_x(note.x) + note.xshift:.1f}" y="{_TOP + 11 - note.yshift:.1f}" '
        f'text-anchor="{"end" if note.xanchor == "right" else "start"}">{escape(note.text)}</text>'
        for note in figure.layout.annotations
    ]
    for tick in _ticks(x_low, x_high, 5, log_x):
        value = 10**tick if log_x else tick
        out.append(
            f'<text x="{at_x(value):.1f}" y="{height - _BOTTOM + 16}" text-anchor="middle">{value:.4g}</text>'
        )
    titles = [a.title.text for a in figure.select_xaxes() if a.title.text]
    title = escape(titles[-1]) if titles else ""
    out.append(
        f'<text x="{(start + width - _RIGHT) / 2}" y="{height - 6}" text-anchor="middle">{title}</text></svg>'
    )
    return "".join(out)


def _drawable(y: float, log: bool) -> bool:
    return math.isfinite(y) and (y > 0 or not log)


def _breadth(traces: list[Any], log: bool) -> tuple[float, float]:
    """Return the range of the horizontal axis: from 0, or of the logarithms with a margin."""
    values = np.concatenate([np.asarray(t.x, float) for t in traces]) if traces else np.zeros(0)
    values = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not values.size:
        return 0.0, 1.0
    if not log:
        return 0.0, float(values.max()) or 1.0
    low, high = math.log10(values.min()), math.log10(values.max())
    margin = 0.04 * (high - low) or 0.5
    return low - margin, high + margin


def _range(traces: list[Any], axis: Any, log: bool) -> tuple[float, float]:
    if axis.range is not None:
        return float(axis.range[0]), float(axis.range[1])
    values = np.concatenate([np.asarray(t.y, float) for t in traces])
    values = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not values.size:
        return 0.0, 1.0
    if log:
        values = np.log10(values)
    low, high = float(values.min()), float(values.max())
    if axis.rangemode == "tozero":
        low = min(low, 0.0)
    margin = 0.06 * (high - low) or 0.5
    low, high = (low if axis.rangemode == "tozero" else low - margin), high + margin
    if axis.minallowed is not None:
        low = max(low, axis.minallowed)
    return low, high if axis.maxallowed is None else min(high, axis.maxallowed)


def _ticks(low: float, high: float, most: int, log: bool = False) -> list[float]:
    rough = (high - low) / max(1, most)
    if log and high - low >= 1.5:  # Whole powers of ten, where there are two.
        rough = max(rough, 1.0)
    if not math.isfinite(rough) or rough <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _path(trace: Any, points: list[tuple[float, float] | None]) -> str:
    circles = ""
    if trace.mode == "markers" or ("markers" in (trace.mode or "") and len(points) <= _MARKED):
        radius = 0.4 * (trace.marker.size or 6)
        circles = "".join(
            f'<circle cx="{p[0]:.1f}" cy="{p[1]:.1f}" r="{radius:g}" '
            f'fill="{trace.marker.color or trace.line.color}"/>'
            for p in points
            if p is not None
        )
    if trace.mode == "markers":
        return circles
    parts, pen = [], "M"
    for point in points:
        if point is None:
            pen = "M"
            continue
        parts.append(f"{pen}{point[0]:.1f} {point[1]:.1f}")
        pen = "L"
    if len(parts) == 1:
        parts.append("h0.1")
    dash = f' stroke-dasharray="{_DASH[trace.line.dash]}"' if trace.line.dash in _DASH else ""
    return (
        f'<path d="{"".join(parts)}" fill="none" stroke="{trace.line.color}" '
        f'stroke-width="{trace.line.width}" stroke-linecap="round" opacity="{trace.opacity or 1}"{dash}/>'
        + circles
    )


def _legend(traces: list[Any], width: float) -> list[str]:
    named = [t for t in traces if t.showlegend is not False]
    if len(named) < 2:
        return []
    # A smaller font if the names do not fit on one line.
    letter = min(6.2, (width - _LEFT - 38 * len(named)) / sum(len(t.name) for t in named))
    size = f' font-size="{11 * letter / 6.2:.1f}"' if letter < 6.2 else ""
    out, x = [], float(_LEFT)
    for trace in named:
        if trace.mode == "markers":
            out.append(f'<circle cx="{x + 9:.0f}" cy="16" r="4" fill="{trace.marker.color}"/>')
        else:
            out.append(
                f'<path d="M{x:.0f} 16h18" stroke="{trace.line.color}" '
                f'stroke-width="{min(trace.line.width, 3)}"/>'
            )
        out.append(f'<text x="{x + 23:.0f}" y="20"{size}>{escape(trace.name)}</text>')
        x += 38 + letter * len(trace.name)
    return out


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


_CODES = 127
_SKIP = -128


def matrix_png(values: np.ndarray, *, dark: bool = False, grey_diagonal: bool = False) -> bytes:
    """Return a picture of a matrix as the bytes of a PNG file.

    Parameters
    ----------
    values : (n, m) ndarray
        Colours go with the square root of the magnitude. An exact zero has a colour of its own, and the
        smallest non-zero is visibly tinted.
    dark : bool
        Whether it is for the dark theme.
    grey_diagonal : bool
        Whether the diagonal is drawn in grey, as no interaction.

    Returns
    -------
    bytes
        m × n pixels; enlarge it without smoothing.
    """
    size = np.abs(values)
    top = float(size.max(initial=0.0)) or 1.0
    codes = np.sign(values) * np.where(size > 0, np.maximum(1, np.round(_CODES * np.sqrt(size / top))), 0)
    if grey_diagonal:
        np.fill_diagonal(codes, _SKIP)
    pixels = (codes - _SKIP).astype(np.uint8)
    rows = np.hstack([np.zeros((len(pixels), 1), np.uint8), pixels])  # each row begins with its filter: none
    head = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", _colors(dark)), (b"IDAT", zlib.compress(rows.tobytes(), 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in (*parts, (b"IEND", b""))
    )


def _colors(dark: bool) -> bytes:
    """Return the colours of the codes from −128 to 127, three bytes each."""
    chosen = matrix_colors(dark)
    place = np.arange(_CODES) / (_CODES - 1)

    def arm(stops: tuple[str, ...]) -> np.ndarray:
        known = np.linspace(0, 1, len(stops))
        return np.column_stack(
            [np.interp(place, known, channel) for channel in np.array([*map(_rgb, stops)]).T]
        )

    middle = np.array([_rgb(chosen.zero)])
    skip = np.array([_rgb(chosen.diagonal)])
    table = np.vstack([skip, arm(chosen.negative)[::-1], middle, arm(chosen.positive)])
    return table.round().astype(np.uint8).tobytes()


def _rgb(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color.lstrip("#")))
