"""Export the data of a figure as a table, and escape text for charts and spreadsheets."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

_PLACES = ("x", "y", "z")


def table(figure: go.Figure) -> pd.DataFrame:
    """Return the data of a figure, with a row per point.

    Parameters
    ----------
    figure : plotly Figure
        A figure with curves, points, bars or heatmaps.

    Returns
    -------
    DataFrame
        ``trace`` with the name of the trace, and the available data of its points: ``x``, ``y``, ``z``,
        ``text``, ``error_x``, ``error_y``; grids have a row per cell. Invisible traces for clicks are
        omitted.
    """
    if not (parts := list(_parts(figure.data))):
        return pd.DataFrame({"trace": []})
    joined = pd.concat(parts, ignore_index=True)
    first = [name for name in ("trace", *_PLACES) if name in joined]
    return joined[[*first, *joined.columns.difference(first, sort=False)]]


def csv(figure: go.Figure) -> str:
    """Return `table` as CSV text with exact floats and displayed text.

    Cells that a spreadsheet would execute are escaped.
    """
    points = table(figure)
    words = points.select_dtypes(exclude="number").columns
    points[words] = points[words].map(lambda cell: defused(spoken(cell)))
    return points.to_csv(index=False, lineterminator="\n")


def _parts(traces: Sequence[Any]) -> Iterator[pd.DataFrame]:
    for number, trace in enumerate(traces):
        if getattr(trace, "opacity", None) == 0 or trace.visible is False:
            continue
        columns = _grid(trace) if trace.type == "heatmap" else _points(trace)
        name = trace.name or (f"trace {number + 1}" if len(traces) > 1 else trace.type)
        part = pd.DataFrame({key: pd.Series(column) for key, column in columns.items()})
        if len(part):
            yield part.assign(trace=name)


def _points(trace: Any) -> dict[str, np.ndarray]:
    columns = {}
    for name in (*_PLACES, "text"):
        value = getattr(trace, name, None)
        if value is not None and not isinstance(value, str):
            columns[name] = np.asarray(value)
    for name in ("error_x", "error_y"):
        if (bars := getattr(trace, name, None)) is not None and bars.array is not None:
            columns[name] = np.asarray(bars.array)
    return columns


def _grid(trace: Any) -> dict[str, np.ndarray]:
    z = np.asarray(trace.z)
    columns = {}
    for name, count, axis in (("x", z.shape[1], 1), ("y", z.shape[0], 0)):
        place = np.arange(count) if trace[name] is None else np.asarray(trace[name])
        columns[name] = np.broadcast_to(place[None, :] if axis else place[:, None], z.shape).ravel()
    text = {} if trace.text is None else {"text": np.asarray(trace.text).ravel()}
    return columns | {"z": z.ravel()} | text


_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


def literal(text: str) -> str:
    """Escape text for Plotly, which interprets tags such as <b> and <a>."""
    return html.escape(text, quote=False)


def spoken(text: object) -> object:
    """Undo `literal`; return anything but text unchanged."""
    return html.unescape(text) if isinstance(text, str) else text


def defused(cell: object) -> object:
    """Escape a cell that a spreadsheet would execute as a formula.

    A word that begins with =, +, -, @, a tab or a carriage return is prefixed by an apostrophe; numbers,
    including those stored as text, are unchanged.
    """
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    return cell if _NUMBER.fullmatch(cell) else f"'{cell}"
