"""The numbers behind a figure as a table, and text that is safe in charts and spreadsheets."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

__all__ = ["csv", "defused", "literal", "spoken", "table"]

_PLACES = ("x", "y", "z", "r", "theta", "lat", "lon")
_OTHERS = ("text", "value", "values", "labels", "u", "v", "w", "i", "j", "k", "intensity")
_GRIDS = frozenset({"heatmap", "contour", "surface", "histogram2d", "histogram2dcontour"})


def table(figure: go.Figure) -> pd.DataFrame:
    """Return the data of a figure, a row a point.

    Parameters
    ----------
    figure : plotly Figure
        Of curves, points, bars, heatmaps, surfaces or meshes, with frames or without.

    Returns
    -------
    DataFrame
        ``frame`` where the figure has frames, ``trace`` with the name of the trace, and what its points
        have: ``x``, ``y``, ``z``, ``text``, ``error_x``, ``error_y``; a grid has a row a cell.
        Traces that only catch the pointer, of opacity 0, are left out.
    """
    parts = [part for frame, traces in _frames(figure) for part in _parts(frame, traces)]
    if not parts:
        return pd.DataFrame({"trace": []})
    joined = pd.concat(parts, ignore_index=True)
    first = [name for name in ("frame", "trace", *_PLACES) if name in joined]
    return joined[[*first, *(name for name in joined if name not in first)]]


def csv(figure: go.Figure) -> str:
    """Return `table` as CSV text; floats read back exactly, and words are those that the chart shows.

    Words that a spreadsheet would execute are defused.
    """
    found = table(figure)
    words = found.select_dtypes(exclude="number").columns
    found[words] = found[words].map(lambda cell: defused(spoken(cell)))
    return found.to_csv(index=False, lineterminator="\n")


def _frames(figure: go.Figure) -> Iterator[tuple[str | None, list[Any]]]:
    if not figure.frames:
        yield None, list(figure.data)
        return
    for number, frame in enumerate(figure.frames):
        places = frame.traces if frame.traces is not None else range(len(frame.data))
        traces = list(figure.data)
        for place, change in zip(places, frame.data, strict=False):
            merged = {**traces[place].to_plotly_json(), **change.to_plotly_json()}
            merged["name"] = change.name or traces[place].name
            traces[place] = type(traces[place])(**{**merged, "type": traces[place].type})
        yield frame.name or str(number), traces


def _parts(frame: str | None, traces: list[Any]) -> Iterator[pd.DataFrame]:
    for number, trace in enumerate(traces):
        if _given(trace, "opacity") == 0 or trace.visible is False:
            continue
        columns = _columns(trace)
        size = max((len(c) for c in columns.values()), default=0)
        if not size:
            continue
        name = trace.name or (f"trace {number + 1}" if len(traces) > 1 else trace.type)
        head = {"trace": [name] * size}
        if frame is not None:
            head = {"frame": [frame] * size, **head}
        yield pd.DataFrame({**head, **{key: _filled(column, size) for key, column in columns.items()}})


def _given(trace: Any, name: str) -> Any:
    """Return a property of a trace, or None where its kind has none of the name."""
    try:
        return trace[name]
    except (KeyError, ValueError):
        return None


def _columns(trace: Any) -> dict[str, np.ndarray]:
    if trace.type in _GRIDS and trace["z"] is not None:
        return _grid(trace)
    found = {}
    for name in (*_PLACES, *_OTHERS):
        value = _given(trace, name)
        if value is not None and not isinstance(value, str) and np.ndim(array := _array(value)) == 1:
            found[name] = array
    size = max((len(c) for c in found.values()), default=0)
    for name, other in (("x", "y"), ("y", "x")):
        # What is left out plotly counts itself.
        if name not in found and other in found and trace.type in ("scatter", "scattergl", "bar"):
            start, step = trace[f"{name}0"] or 0, trace[f"d{name}"] or 1
            found[name] = start + step * np.arange(size)
    for name in ("error_x", "error_y", "error_z"):
        bars = _given(trace, name)
        if bars is not None and bars.array is not None:
            found[name] = _flat(bars.array)
            if bars.arrayminus is not None:
                found[f"{name}_minus"] = _flat(bars.arrayminus)
    return found


def _grid(trace: Any) -> dict[str, np.ndarray]:
    z = np.atleast_2d(_array(trace.z))
    rows, columns = z.shape
    found = {}
    for name, count, axis in (("x", columns, 1), ("y", rows, 0)):
        given = trace[name]
        place = np.arange(count) if given is None else _array(given)
        if place.ndim == 1:
            # A cell may be given by its two edges.
            place = place[:count]
            place = np.broadcast_to(place[None, :] if axis else place[:, None], z.shape)
        found[name] = place.ravel()
    found["z"] = z.ravel()
    for name in ("text", "surfacecolor"):
        value = _given(trace, name)
        if value is not None and np.shape(array := _array(value)) == z.shape:
            found[name] = array.ravel()
    return found


def _array(value: Any) -> np.ndarray:
    """Return an array, decoded where it is spelled as plotly sends it to the browser."""
    if isinstance(value, Mapping) and "bdata" in value:
        flat = np.frombuffer(base64.b64decode(value["bdata"]), dtype=np.dtype(value["dtype"]))
        shape = value.get("shape")
        if shape is None:
            return flat
        sizes = shape.split(",") if isinstance(shape, str) else np.atleast_1d(shape)
        return flat.reshape([int(size) for size in sizes])
    return np.asarray(value)


def _flat(value: Any) -> np.ndarray:
    return np.array([]) if value is None else _array(value).ravel()


def _filled(column: np.ndarray, size: int) -> Any:
    if len(column) == size:
        return column
    return pd.Series(column).reindex(range(size)).to_numpy()


_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


def literal(text: str) -> str:
    """Return text that Plotly shows as it is; it takes tags such as <b> and <a> for its own."""
    return html.escape(text, quote=False)


def spoken(text: object) -> object:
    """Return the words behind what `literal` wrote; anything but a text as it is."""
    return html.unescape(text) if isinstance(text, str) else text


def defused(cell: object) -> object:
    """Return a cell that a spreadsheet shows instead of executing it.

    A word that begins with =, +, -, @, a tab or a carriage return gets an apostrophe in front; numbers, also
    those that are written as words, stay as they are.
    """
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    return cell if _NUMBER.fullmatch(cell) else f"'{cell}"
