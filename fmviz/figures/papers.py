"""Figures of papers, drawn from the tables of a result; one function for each kind.

Each takes tables, the titles of its axes, and how many panels stand beside each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from statistics import fmean, stdev
from typing import Any, Literal

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fmviz.figures.palette import NEUTRAL, method_colors
from fmviz.figures.paper_operators import operators

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
_HEIGHT = 330
_LEVEL = {"color": NEUTRAL, "dash": "dash"}


def _values(rows: Sequence[Row], column: str) -> list[Any]:
    """Return the different values of a column, in the order of their first appearance."""
    return list(dict.fromkeys(row[column] for row in rows))


def _grouped(rows: Sequence[Row], by: str, value: str) -> dict[Any, list[float]]:
    """Return the values of one column by those of another, which rise."""
    groups: dict[Any, list[float]] = {}
    for row in rows:
        if row[value] is not None:
            groups.setdefault(row[by], []).append(row[value])
    return dict(sorted(groups.items()))


def _standard_error(values: Sequence[float]) -> float:
    """Return that of the mean: what a difference between two points is to be held against."""
    return float(stdev(values)) / len(values) ** 0.5 if len(values) > 1 else 0.0


class _Panels:
    """Panels beside and beneath each other, in which a method has one colour and one place in the legend."""

    def __init__(self, titles: Sequence[str], methods: Sequence[str], columns: int) -> None:
        across = min(columns, max(1, len(titles)))
        self.down = down = max(1, -(-len(titles) // across))
        self.figure = make_subplots(
            down,
            across,
            subplot_titles=[str(title) for title in titles] or ("",),
            horizontal_spacing=0.3 / (across + 2),
            vertical_spacing=0.28 / down,
        )
        self.figure.update_annotations(font_size=12)
        self.figure.update_layout(
            height=_HEIGHT * down + 60,
            margin={"l": 8, "r": 8, "t": 40, "b": 8},
            legend={"orientation": "h", "yanchor": "top", "y": -0.28 / down, "x": 0},
        )
        self.places = {
            title: {"row": i // across + 1, "col": i % across + 1} for i, title in enumerate(titles)
        }
        self.methods = {method: number for number, method in enumerate(methods)}
        self._colors = method_colors(methods)
        self._named: set[str] = set()

    def color(self, method: str) -> str:
        """Return the colour of a method."""
        return self._colors[method]

    def symbol(self, method: str) -> str:
        """Return the marker of a method."""
        return _SYMBOLS[self.methods[method] % len(_SYMBOLS)]

    def add(
        self, title: str, method: str, x: Sequence[Any], y: Sequence[Any], hover: str, **style: Any
    ) -> None:
        """Add a line or points of a method to a panel; `line` is what differs from the line of all."""
        if style["mode"] != "markers":
            style["line"] = {"color": self._colors.get(method), "width": 2, **style.get("line", {})}
        self.figure.add_scatter(
            x=x,
            y=y,
            name=method,
            legendgroup=method,
            showlegend=method not in self._named,
            hovertemplate=f"{method}, {hover}<extra></extra>",
            **style,
            **self.places[title],
        )
        self._named.add(method)

    def titled(self, x_title: str = "", y_title: str = "") -> go.Figure:
        """Return the figure with its axes named."""
        self.figure.update_xaxes(title_text=x_title)
        self.figure.update_yaxes(title_text=y_title, col=1)
        return self.figure


def descent(tables: Tables, columns: int = 2, **titles: str) -> go.Figure:
    """Draw objectives on their way down: a panel for each ``panel``, a colour for each ``method`` of "trace".

    The runs of a method from several starts share its colour. Both axes are logarithmic, and leave out the
    start.
    """
    rows = tables.get("trace", ())
    panels = _Panels(_values(rows, "panel"), _values(rows, "method"), columns)
    for title, method in product(panels.places, panels.methods):
        mine = [row for row in rows if row["panel"] == title and row["method"] == method]
        for seed in _values(mine, "seed"):
            run = [row for row in mine if row["seed"] == seed and row["seconds"] > 0]
            x, y = [row["seconds"] for row in run], [row["objective"] for row in run]
            epochs, hover = [[row["epoch"]] for row in run], "epoch %{customdata[0]}: %{y:.4g}"
            panels.add(title, method, x, y, hover, customdata=epochs, mode="lines")
    panels.figure.update_xaxes(type="log")
    # On a logarithmic axis 2 and 5 alone are named between the powers of ten.
    panels.figure.update_yaxes(type="log", dtick="D2")
    return panels.titled(**titles)


def curves(
    tables: Tables, columns: int = 2, highest: bool = False, size: str = "bases", **titles: str
) -> go.Figure:
    """Draw the scores of "test" by ``bases``: a panel for each ``data``, a line for each ``method``.

    Points are means over seeds, with their standard error as a bar. A method with 0 bases has no size, and is
    drawn as a level. Where a higher score is better, with `highest`, what lies far below zero is cut off;
    `size` is what is counted on the horizontal axis, in a word.
    """
    rows = [row for row in tables.get("test", ()) if row["score"] is not None]
    panels = _Panels(_values(rows, "data"), sorted(_values(rows, "method")), columns)
    for title, place in panels.places.items():
        here = [row for row in rows if row["data"] == title]
        sizes = sorted({row["bases"] for row in here if row["bases"]})
        for method in panels.methods:
            groups = _grouped([row for row in here if row["method"] == method], "bases", "score")
            if not groups:
                continue
            level = list(groups) == [0]
            if level:
                groups = dict.fromkeys(sizes, groups[0])
            bars = {"array": [_standard_error(group) for group in groups.values()], "thickness": 1}
            panels.add(
                title,
                method,
                list(groups),
                [fmean(group) for group in groups.values()],
                f"%{{x}} {size}: %{{y:.4f}}",
                error_y=None if level else bars,
                mode="lines" if level else "lines+markers",
                line=_LEVEL if level else {"dash": "solid"},
                marker={"symbol": panels.symbol(method), "size": 8},
            )
        if sizes:
            panels.figure.update_xaxes(type="log", tickvals=sizes, ticktext=[str(s) for s in sizes], **place)
        scores = [row["score"] for row in here]
        if highest and scores and min(scores) < 0.0 < max(scores):
            panels.figure.update_yaxes(range=[-0.05, 1.1 * max(scores)], **place)
    return panels.titled(**titles)


def sparsity(tables: Tables, columns: int = 2, **titles: str) -> go.Figure:
    """Draw scores by used interactions: a panel for each ``data``, a line for each ``method``.

    The means of "grid" at each strength are a line, the rows of "table3a" stars, and that of FM in "table3b"
    a level. The horizontal axis is logarithmic, and what uses nothing stands at 1.
    """
    rows = [row for row in tables.get("grid", ()) if row["score"] is not None]
    limited = [row for row in tables.get("table3a", ()) if row["score"] is not None]
    # A result of which the fits are not kept has its stars.
    known = rows or limited
    panels = _Panels(_values(known, "data"), _values(known, "method"), columns)

    def add(title: str, method: str, points: Sequence[tuple[float, float]], **style: Any) -> None:
        if points:
            used, score = (list(column) for column in zip(*points, strict=True))
            panels.add(
                title,
                method,
                [max(count, 1.0) for count in used],
                score,
                "%{customdata[0]:,.0f} used: %{y:.5f}",
                customdata=[[count] for count in used],
                **style,
            )

    for title in panels.places:
        here = [row for row in known if row["data"] == title]
        for method in panels.methods:
            mine = [row for row in rows if (row["data"], row["method"]) == (title, method)]
            used, score = (_grouped(mine, "lambda_sparse", name) for name in ("used", "score"))
            line = [(fmean(used[strength]), fmean(score[strength])) for strength in score]
            add(title, method, line, mode="lines+markers", marker={"symbol": panels.symbol(method)})
            stars = [
                (row["used"], row["score"])
                for row in limited
                if (row["data"], row["method"]) == (title, method)
            ]
            star = {"symbol": "star", "size": 14, "color": panels.color(method)}
            add(title, method, stars, mode="markers", marker=star)
        level = [
            row["score"] for row in tables.get("table3b", ()) if (row["data"], row["method"]) == (title, "FM")
        ]
        if level and here:
            ends = [float(f(row["used"] for row in here)) for f in (min, max)]
            add(title, "FM", [(used, level[0]) for used in ends], mode="lines", line=_LEVEL)
    panels.figure.update_xaxes(type="log")
    return panels.titled(**titles)


def lines(
    tables: Tables,
    table: str = "lines",
    x: str = "x",
    y: str = "y",
    columns: int = 2,
    log: bool | str = False,
    ticks: Literal["powers of two", "numbers", "linear"] = "powers of two",
    **titles: str,
) -> go.Figure:
    """Draw a column of a table by another: a panel for each ``panel``, a line for each ``method``.

    Where several rows share an x, points are means, with their standard error as a bar. `log` is whether y is
    on a logarithmic axis, or a word: in the panels with this word in their titles. `ticks` are the values
    there are, written as powers of two or as numbers, on a logarithmic axis, or a linear one's own.
    """
    rows = tables.get(table, ())
    panels = _Panels(_values(rows, "panel"), sorted(_values(rows, "method")), columns)
    for title, (method, number) in product(panels.places, panels.methods.items()):
        mine = [row for row in rows if row["panel"] == title and row["method"] == method]
        groups = _grouped(mine, x, y)
        bars = [_standard_error(group) for group in groups.values()]
        error_y = {"array": bars, "thickness": 1} if any(bars) else None
        # The later lines are smaller, so that those beneath show around them.
        marker = {"symbol": panels.symbol(method), "size": max(5, 11 - 2 * number)}
        style = {"mode": "lines+markers", "error_y": error_y, "marker": marker}
        means = [fmean(group) for group in groups.values()]
        panels.add(title, method, list(groups), means, "%{xaxis.title.text} = %{x}: %{y:.4g}", **style)
    powers = ticks == "powers of two"
    at = sorted({row[x] for row in rows})[:: 2 if powers else 1]
    if at and ticks != "linear":
        names = [f"2<sup>{math.log2(value):.0f}</sup>" if powers else f"{value:,}" for value in at]
        panels.figure.update_xaxes(type="log", tickvals=at, ticktext=names)
    for title, place in panels.places.items():
        if log is True or (log and log in title):
            panels.figure.update_yaxes(type="log", dtick=1, **place)
    return panels.titled(**titles)


def boxes(tables: Tables, columns: int = 2, **titles: str) -> go.Figure:
    """Draw how ``y`` of "ratios" spreads: a panel each ``panel``, a box each ``method`` and ``stage``."""
    rows = tables.get("ratios", ())
    panels = _Panels(_values(rows, "panel"), _values(rows, "stage"), columns)
    for title, stage in product(panels.places, panels.methods):
        mine = [row for row in rows if row["panel"] == title and row["stage"] == stage]
        panels.figure.add_box(
            x=[row["method"] for row in mine],
            y=[row["y"] for row in mine],
            name=stage,
            legendgroup=stage,
            showlegend=title == next(iter(panels.places)),
            offsetgroup=stage,
            marker={"color": panels.color(stage), "size": 3},
            line={"width": 1.5},
            **panels.places[title],
        )
    panels.figure.update_layout(boxmode="group")
    return panels.titled(**titles)


def cells(tables: Tables, columns: int = 2, **titles: str) -> go.Figure:
    """Draw the cells of a table of accuracies: a panel for each ``data``, a place for each ``method``.

    Rows of "test" are points; where there are "cells", their ``accuracy`` takes the place of these, with
    ``std`` drawn twice to both sides, and ``printed``, which may be None, as a diamond.
    """
    single = [row for row in tables.get("test", ()) if row["score"] is not None]
    rows = tables.get("cells", ())
    methods = list(reversed(_values(rows or single, "method")))
    panels = _Panels(_values(rows or single, "data"), ("mean ± 2 std", "printed", "one split"), columns)
    for title, place in panels.places.items():
        mine = [row for row in rows if row["data"] == title]
        if not mine:
            here = [row for row in single if row["data"] == title]
            score, method = ([row[name] for row in here] for name in ("score", "method"))
            marker = {"color": panels.color("one split"), "symbol": "line-ns-open", "size": 8}
            panels.add(title, "one split", score, method, "%{y}: %{x:.2f}", mode="markers", marker=marker)
            continue
        mean, method = ([row[name] for row in mine] for name in ("accuracy", "method"))
        bars = {"array": [2.0 * (row["std"] or 0.0) for row in mine], "thickness": 1.5}
        marker = {"color": panels.color("mean ± 2 std"), "size": 8}
        panels.add(
            title, "mean ± 2 std", mean, method, "%{y}: %{x:.2f}", mode="markers", error_x=bars, marker=marker
        )
        known = [row for row in mine if row["printed"] is not None]
        marker = {"color": panels.color("printed"), "symbol": "diamond-open", "size": 10}
        value, method = ([row[name] for row in known] for name in ("printed", "method"))
        panels.add(title, "printed", value, method, "%{y}: %{x:.2f}", mode="markers", marker=marker)
        panels.figure.update_yaxes(categoryorder="array", categoryarray=methods, **place)
    panels.figure.update_layout(height=panels.figure.layout.height + 14 * len(methods) * panels.down)
    return panels.titled(**titles)


KINDS: dict[str, Callable[..., go.Figure]] = {
    "descent": descent,
    "curves": curves,
    "sparsity": sparsity,
    "lines": lines,
    "boxes": boxes,
    "cells": cells,
    "operators": operators,
}
"""What an artefact's picture may be, by its name."""


def draw(kind: str, tables: Tables, **options: Any) -> go.Figure:
    """Draw the tables of a result; raise ValueError for an unknown kind."""
    if kind not in KINDS:
        raise ValueError(f"There is no figure {kind!r}; there are {', '.join(KINDS)}.")
    return KINDS[kind](tables, **options)


def standalone(title: str, kind: str, tables: Tables, **options: Any) -> str:
    """Return the tables of a result, drawn, as one HTML page that needs nothing else; see `draw`."""
    shown = draw(kind, tables, **options).update_layout(title=title, margin_t=90)
    return str(shown.to_html(include_plotlyjs=True, div_id="figure"))
