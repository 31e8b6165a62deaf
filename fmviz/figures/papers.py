"""Figures of papers, drawn from the tables of a result; one function for each kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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


def _values(rows: Sequence[Row], column: str) -> list[Any]:
    """Return the different values of a column, in the order of their first appearance."""
    return list(dict.fromkeys(row[column] for row in rows))


def _standard_error(values: Sequence[float]) -> float:
    """Return that of the mean: what a difference between two points is to be held against."""
    return float(stdev(values)) / len(values) ** 0.5 if len(values) > 1 else 0.0


def _panels(titles: Sequence[str], columns: int) -> tuple[go.Figure, list[dict[str, int]]]:
    """Return a figure of panels, and where each of them is."""
    across = min(columns, max(1, len(titles)))
    down = max(1, -(-len(titles) // across))
    figure = make_subplots(
        down,
        across,
        subplot_titles=[str(title) for title in titles] or ("",),
        horizontal_spacing=0.3 / (across + 2),
        vertical_spacing=0.28 / down,
    )
    figure.update_annotations(font_size=12)
    figure.update_layout(
        height=_HEIGHT * down + 60,
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        legend={"orientation": "h", "yanchor": "top", "y": -0.28 / down, "x": 0},
    )
    return figure, [{"row": i // across + 1, "col": i % across + 1} for i in range(max(1, len(titles)))]


def descent(
    tables: Tables,
    *,
    x_title: str,
    y_title: str,
    columns: int = 2,
    x: str = "seconds",
    log_y: bool = False,
) -> go.Figure:
    """Draw objectives on their way down: a panel for each ``panel``, a colour for each ``method``.

    Parameters
    ----------
    tables : mapping
        With "trace": rows of ``panel``, ``method``, ``seed``, ``objective`` and the column `x`. The runs of
        one method from several starts share its colour.
    x_title, y_title : str
        Of the axes.
    columns : int
        Panels beside each other.
    x : {"seconds", "epoch"}
        What the objective is drawn against; seconds on a logarithmic axis, which leaves out the start.
    log_y : bool
        Whether the objective is on a logarithmic axis.
    """
    rows = tables.get("trace", ())
    titles, methods = _values(rows, "panel"), _values(rows, "method")
    figure, places = _panels(titles, columns)
    colors = method_colors(methods)
    named: set[str] = set()
    for title, place in zip(titles, places, strict=False):
        for method in methods:
            mine = [row for row in rows if row["panel"] == title and row["method"] == method]
            for seed in _values(mine, "seed"):
                run = [row for row in mine if row["seed"] == seed and (x != "seconds" or row[x] > 0)]
                figure.add_scatter(
                    x=[row[x] for row in run],
                    y=[row["objective"] for row in run],
                    customdata=[[row["epoch"]] for row in run],
                    mode="lines",
                    name=method,
                    legendgroup=method,
                    showlegend=method not in named,
                    line={"color": colors[method], "width": 2},
                    hovertemplate=f"{method}, epoch %{{customdata[0]}}: %{{y:.4g}}<extra></extra>",
                    **place,
                )
                named.add(method)
    figure.update_xaxes(type="log" if x == "seconds" else "linear", title_text=x_title)
    # On a logarithmic axis 2 and 5 alone are named between the powers of ten.
    figure.update_yaxes(type="log", dtick="D2") if log_y else figure.update_yaxes(type="linear")
    figure.update_yaxes(title_text=y_title, col=1)
    return figure


def curves(
    tables: Tables,
    *,
    x_title: str,
    y_title: str,
    columns: int = 2,
    highest: bool = False,
    size: str = "bases",
) -> go.Figure:
    """Draw test scores against the number of bases: a panel for each ``data``, a line for each ``method``.

    Parameters
    ----------
    tables : mapping
        With "test": rows of ``data``, ``method``, ``bases``, ``seed`` and ``score``. Points are means over
        seeds, with their standard error as a bar. A method with 0 bases has no size, and is drawn as a level.
    x_title, y_title : str
        Of the axes.
    columns : int
        Panels beside each other.
    highest : bool
        Whether a higher score is better; then what lies far below zero is cut off.
    size : str
        What is counted on the horizontal axis, in a word.
    """
    rows = [row for row in tables.get("test", ()) if row["score"] is not None]
    titles, methods = _values(rows, "data"), sorted(_values(rows, "method"))
    figure, places = _panels(titles, columns)
    colors = method_colors(methods)
    named: set[str] = set()
    for title, place in zip(titles, places, strict=False):
        here = [row for row in rows if row["data"] == title]
        sizes = sorted({row["bases"] for row in here if row["bases"]})
        for number, method in enumerate(methods):
            mine = [row for row in here if row["method"] == method]
            if not mine:
                continue
            level = all(row["bases"] == 0 for row in mine)
            at = sizes if level else sorted({row["bases"] for row in mine})
            groups = [[r["score"] for r in mine if level or r["bases"] == size] for size in at]
            figure.add_scatter(
                x=at,
                y=[fmean(group) for group in groups],
                error_y=None
                if level
                else {"array": [_standard_error(group) for group in groups], "thickness": 1},
                mode="lines" if level else "lines+markers",
                name=method,
                legendgroup=method,
                showlegend=method not in named,
                line={
                    "color": NEUTRAL if level else colors[method],
                    "width": 2,
                    "dash": "dash" if level else "solid",
                },
                marker={"symbol": _SYMBOLS[number % len(_SYMBOLS)], "size": 8},
                hovertemplate=f"{method}, %{{x}} {size}: %{{y:.4f}}<extra></extra>",
                **place,
            )
            named.add(method)
        if sizes:
            figure.update_xaxes(type="log", tickvals=sizes, ticktext=[str(s) for s in sizes], **place)
        scores = [row["score"] for row in here]
        if highest and scores and min(scores) < 0.0 < max(scores):
            figure.update_yaxes(range=[-0.05, 1.1 * max(scores)], **place)
    figure.update_xaxes(title_text=x_title)
    figure.update_yaxes(title_text=y_title, col=1)
    return figure


def sparsity(tables: Tables, *, x_title: str, y_title: str, columns: int = 2) -> go.Figure:
    """Draw test scores against used interactions: a panel for each ``data``, a line for each ``method``.

    Parameters
    ----------
    tables : mapping
        With "grid": rows of ``data``, ``method``, ``lambda_sparse``, ``used`` and ``score``, whose means at
        each strength are a line; "table3a": rows of ``data``, ``method``, ``used`` and ``score``, which are
        stars; "table3b": the same, of which the row of FM is a level.
    x_title, y_title : str
        Of the axes; the horizontal one is logarithmic, and what uses nothing stands at 1.
    columns : int
        Panels beside each other.
    """
    rows = [row for row in tables.get("grid", ()) if row["score"] is not None]
    titles, methods = _values(rows, "data"), _values(rows, "method")
    figure, places = _panels(titles, columns)
    colors = method_colors(methods)
    named: set[str] = set()

    def add(method: str, points: Sequence[tuple[float, float]], place: dict[str, int], **style: Any) -> None:
        figure.add_scatter(
            x=[max(used, 1.0) for used, _ in points],
            y=[score for _, score in points],
            customdata=[[used] for used, _ in points],
            name=method,
            legendgroup=method,
            showlegend=method not in named,
            hovertemplate=f"{method}, %{{customdata[0]:,.0f}} used: %{{y:.5f}}<extra></extra>",
            **style,
            **place,
        )
        named.add(method)

    for title, place in zip(titles, places, strict=False):
        here = [row for row in rows if row["data"] == title]
        for number, method in enumerate(methods):
            mine = [row for row in here if row["method"] == method]
            groups = [
                [row for row in mine if row["lambda_sparse"] == strength]
                for strength in sorted(_values(mine, "lambda_sparse"))
            ]
            color = colors[method]
            line = [
                (fmean(row["used"] for row in group), fmean(row["score"] for row in group))
                for group in groups
            ]
            symbol = _SYMBOLS[number % len(_SYMBOLS)]
            add(
                method,
                line,
                place,
                mode="lines+markers",
                line={"color": color, "width": 2},
                marker={"symbol": symbol},
            )
            stars = [
                (row["used"], row["score"])
                for row in tables.get("table3a", ())
                if (row["data"], row["method"]) == (title, method) and row["score"] is not None
            ]
            if stars:
                star = {"symbol": "star", "size": 14, "color": color}
                add(method, stars, place, mode="markers", marker=star)
        level = [
            row["score"] for row in tables.get("table3b", ()) if (row["data"], row["method"]) == (title, "FM")
        ]
        if level and here:
            ends = [float(f(row["used"] for row in here)) for f in (min, max)]
            line_style = {"color": NEUTRAL, "width": 2, "dash": "dash"}
            add("FM", [(used, level[0]) for used in ends], place, mode="lines", line=line_style)
    figure.update_xaxes(type="log", title_text=x_title)
    figure.update_yaxes(title_text=y_title, col=1)
    return figure


def lines(
    tables: Tables,
    *,
    x_title: str,
    y_title: str,
    table: str = "lines",
    x: str = "x",
    y: str = "y",
    columns: int = 2,
    log: bool = False,
    ticks: Literal["powers of two", "numbers"] = "powers of two",
) -> go.Figure:
    """Draw a column of a table against another: a panel for each ``panel``, a line for each ``method``.

    Parameters
    ----------
    tables : mapping
        With `table`: rows of ``panel``, ``method`` and the columns `x` and `y`. Where several rows share
        an x, points are means, with their standard error as a bar.
    x_title, y_title : str
        Of the axes.
    table, x, y : str
        Names.
    columns : int
        Panels beside each other.
    log : bool
        Whether y is on a logarithmic axis.
    ticks : {"powers of two", "numbers"}
        What is named on the horizontal axis, which is logarithmic: every second x, as a power of 2, or every
        x as it is.
    """
    rows = tables.get(table, ())
    titles, methods = _values(rows, "panel"), sorted(_values(rows, "method"))
    figure, places = _panels(titles, columns)
    colors = method_colors(methods)
    at_all = sorted({row[x] for row in rows})
    for number, (title, place) in enumerate(zip(titles, places, strict=False)):
        for kind, method in enumerate(methods):
            groups: dict[float, list[float]] = {}
            for row in rows:
                if row["panel"] == title and row["method"] == method and row[y] is not None:
                    groups.setdefault(row[x], []).append(row[y])
            at = sorted(groups)
            bars = [_standard_error(groups[value]) for value in at]
            figure.add_scatter(
                x=at,
                y=[fmean(groups[value]) for value in at],
                error_y={"array": bars, "thickness": 1} if any(bars) else None,
                mode="lines+markers",
                name=method,
                legendgroup=method,
                showlegend=number == 0,
                line={"color": colors[method], "width": 2},
                # The later lines are smaller, so that those beneath show around them.
                marker={"symbol": _SYMBOLS[kind % len(_SYMBOLS)], "size": max(5, 11 - 2 * kind)},
                hovertemplate=f"{method}, {x_title} = %{{x}}: %{{y:.4g}}<extra></extra>",
                **place,
            )
    if ticks == "powers of two":
        at_all = at_all[::2]
    if at_all:
        names = [
            f"2<sup>{math.log2(value):.0f}</sup>" if ticks == "powers of two" else f"{value:,}"
            for value in at_all
        ]
        figure.update_xaxes(type="log", tickvals=at_all, ticktext=names)
    figure.update_xaxes(title_text=x_title)
    if log:
        figure.update_yaxes(type="log", dtick=1)
    figure.update_yaxes(title_text=y_title, col=1)
    return figure


KINDS: dict[str, Callable[..., go.Figure]] = {
    "descent": descent,
    "curves": curves,
    "sparsity": sparsity,
    "lines": lines,
    "operators": operators,
}
"""What an artefact's picture may be, by its name."""


def draw(kind: str, tables: Tables, **options: Any) -> go.Figure:
    """Draw the tables of a result; see the functions in `KINDS` for what they need.

    Raises
    ------
    ValueError
        If there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"There is no figure {kind!r}; there are {', '.join(KINDS)}.")
    return KINDS[kind](tables, **options)


def standalone(title: str, kind: str, tables: Tables, **options: Any) -> str:
    """Return the tables of a result, drawn, as one HTML page that needs nothing else; see `draw`."""
    shown = draw(kind, tables, **options).update_layout(title=title, margin_t=90)
    return str(shown.to_html(include_plotlyjs=True, div_id="figure"))
