"""Figures of papers, drawn from the tables of a result; one function per kind.

Each function takes tables, axis titles, and the number of panels per row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, product
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fmviz.figures.operators import power
from fmviz.figures.palette import NEUTRAL, REGULARIZER_COLORS, SERIES, symbol_of
from fmviz.lab.papers import Tables
from fmviz.typography import in_powers

_HEIGHT = 330
_LEVEL = {"color": NEUTRAL, "dash": "dash"}


def method_colors(labels: Sequence[str]) -> dict[str, str]:
    """Return a colour for every method: that of the regularizer in its label, or an unused one."""
    known = {label: REGULARIZER_COLORS.get(label.split(" ")[0].lower()) for label in labels}
    others = cycle([color for color in SERIES if color not in known.values()] or list(SERIES))
    return {label: color or next(others) for label, color in known.items()}


def _frame(tables: Tables, table: str, *columns: str) -> pd.DataFrame:
    return pd.DataFrame(tables.get(table, ()), columns=list(columns))


def _where(rows: pd.DataFrame, **where: Any) -> pd.DataFrame:
    return rows[(rows[list(where)] == pd.Series(where)).all(axis=1)]


def _means(rows: pd.DataFrame, by: str, value: str) -> pd.DataFrame:
    """Return the means of a column grouped by another, with standard errors, 0 for a single value."""
    groups = rows.dropna(subset=[value]).groupby(by)[value]
    return groups.agg(["mean", "sem"]).fillna({"sem": 0.0})


def _subplots(down: int, across: int, titles: Sequence[str], **layout: Any) -> go.Figure:
    figure = make_subplots(down, across, subplot_titles=list(map(in_powers, titles)), **layout)
    return figure.update_annotations(font_size=12).update_layout(margin={"l": 8, "r": 8, "t": 40, "b": 8})


class _Panels:
    """A grid of panels, in which a method has a common colour and legend entry."""

    def __init__(self, titles: Sequence[str], methods: Sequence[str], columns: int) -> None:
        across = min(columns, max(1, len(titles)))
        self.down = down = max(1, -(-len(titles) // across))
        self.figure = _subplots(
            down,
            across,
            [*map(str, titles)] or [""],
            horizontal_spacing=0.3 / (across + 2),
            vertical_spacing=0.28 / down,
        )
        legend = {"orientation": "h", "yanchor": "top", "y": -0.28 / down, "x": 0}
        self.figure.update_layout(height=_HEIGHT * down + 60, legend=legend)
        self.places = {
            title: {"row": i // across + 1, "col": i % across + 1} for i, title in enumerate(titles)
        }
        self.colors = method_colors(methods)
        self.symbols = {method: symbol_of(color) for method, color in self.colors.items()}
        self._named: set[str] = set()

    def parts(
        self, rows: pd.DataFrame, panel: str = "panel", method: str = "method"
    ) -> Iterator[tuple[str, str, pd.DataFrame]]:
        """Yield the panels and methods that have rows, with their rows."""
        for title, name in product(self.places, self.colors):
            part = _where(rows, **{panel: title, method: name})
            if len(part):
                yield title, name, part

    def add(
        self, title: str, method: str, x: Sequence[Any], y: Sequence[Any], hover: str, **style: Any
    ) -> None:
        """Add a line or points of a method to a panel; `line` overrides the common line style."""
        if style["mode"] != "markers":
            style["line"] = {"color": self.colors.get(method), "width": 2, **style.get("line", {})}
        self.figure.add_scatter(
            x=list(x),
            y=list(y),
            name=method,
            legendgroup=method,
            showlegend=method not in self._named,
            hovertemplate=f"{method}, {hover}<extra></extra>",
            **style,
            **self.places[title],
        )
        self._named.add(method)

    def titled(self, x_title: str = "", y_title: str = "") -> go.Figure:
        """Return the figure with axis titles."""
        self.figure.update_xaxes(title_text=x_title)
        return self.figure.update_yaxes(title_text=y_title, col=1)


def descent(tables: Tables, columns: int = 2, **titles: str) -> go.Figure:
    """Draw decreasing objectives: a panel for each ``panel``, a colour for each ``method`` of "trace".

    The runs of a method from several starts share its colour. Both axes are logarithmic and omit the start.
    """
    rows = _frame(tables, "trace", "panel", "method", "seed", "epoch", "seconds", "objective")
    panels = _Panels(rows["panel"].unique(), rows["method"].unique(), columns)
    for title, method, part in panels.parts(rows):
        for _, run in part.groupby("seed", sort=False):
            shown = run[run["seconds"] > 0]
            epochs, hover = shown[["epoch"]].values.tolist(), "epoch %{customdata[0]}: %{y:.4g}"
            # Some markers suffice to distinguish the lines.
            marker = {"symbol": panels.symbols[method], "size": 7, "maxdisplayed": 6}
            style = {"customdata": epochs, "mode": "lines+markers", "marker": marker}
            panels.add(title, method, shown["seconds"], shown["objective"], hover, **style)
    panels.figure.update_xaxes(type="log")
    # On a logarithmic axis, only 2 and 5 are labelled between the powers of ten.
    panels.figure.update_yaxes(type="log", dtick="D2", exponentformat="power")
    return panels.titled(**titles)


def sparsity(tables: Tables, columns: int = 2, **titles: str) -> go.Figure:
    """Draw scores by used interactions: a panel for each ``data``, a line for each ``method``.

    The means of "grid" at each strength form a line, the rows of "table3a" are large markers, and the row of
    FM in "table3b" is a level. The horizontal axis is logarithmic; zero used interactions are drawn at 1.
    """
    names = ("data", "method", "used", "score")
    rows = _frame(tables, "grid", *names, "lambda_sparse").dropna(subset=["score"])
    limited = _frame(tables, "table3a", *names).dropna(subset=["score"])
    free = _frame(tables, "table3b", *names).dropna(subset=["score"])
    # A result without stored fits has only the large markers.
    known = limited if rows.empty else rows
    panels = _Panels(known["data"].unique(), known["method"].unique(), columns)

    def add(title: str, method: str, points: pd.DataFrame, **style: Any) -> None:
        if len(points):
            hover, used = "%{customdata[0]:,.0f} used: %{y:.5f}", points[["used"]].values.tolist()
            x = points["used"].clip(lower=1.0)
            panels.add(title, method, x, points["score"], hover, customdata=used, **style)

    for title in panels.places:
        for method, symbol in panels.symbols.items():
            line = _where(rows, data=title, method=method).groupby("lambda_sparse")[["used", "score"]].mean()
            add(title, method, line, mode="lines+markers", marker={"symbol": symbol})
            large = {"symbol": symbol, "size": 14, "color": panels.colors[method]}
            add(title, method, _where(limited, data=title, method=method), mode="markers", marker=large)
        for level in _where(free, data=title, method="FM")["score"]:
            used = _where(known, data=title)["used"].astype(float)
            ends = pd.DataFrame({"used": [used.min(), used.max()], "score": level})
            add(title, "FM", ends, mode="lines", line=_LEVEL)
    panels.figure.update_xaxes(type="log", nticks=4)
    return panels.titled(**titles)


def lines(  # noqa: PLR0913 (the options of a figure's TOML file)
    tables: Tables,
    table: str = "lines",
    x: str = "x",
    y: str = "y",
    panel: str = "panel",
    columns: int = 2,
    log: bool | str = False,
    highest: bool = False,
    ticks: Literal["powers of two", "numbers", "linear"] = "powers of two",
    **titles: str,
) -> go.Figure:
    """Draw a column of a table by another: a panel for each `panel`, a line for each ``method``.

    If several rows share an x, points are means, with standard errors as bars. A method with only x = 0 is
    drawn as a level. `log` is whether the y axis is logarithmic, or a word that selects panels by their
    titles. With `highest`, for scores for which higher is better, values far below zero are clipped. `ticks`
    defines the labels: the values as powers of two or as numbers on a logarithmic axis, or the default of a
    linear one.
    """
    rows = _frame(tables, table, panel, "method", x, y).dropna(subset=[y])
    panels = _Panels(rows[panel].unique(), sorted(rows["method"].unique()), columns)
    for title, method, part in panels.parts(rows, panel):
        means = _means(part, x, y)
        error_y = {"array": list(means["sem"]), "thickness": 1} if means["sem"].any() else None
        style: dict[str, Any] = {"mode": "lines+markers", "error_y": error_y}
        others = sorted({*rows[x][rows[panel] == title]} - {0})
        if others and list(means.index) == [0]:
            means = means.loc[[0] * len(others)].set_axis(others)
            style = {"mode": "lines", "line": _LEVEL}
        # Later lines are thinner, to keep lines below visible.
        size = max(6, 11 - list(panels.symbols).index(method))
        style["marker"] = {"symbol": panels.symbols[method], "size": size}
        panels.add(title, method, means.index, means["mean"], "%{xaxis.title.text} = %{x}: %{y:.4g}", **style)
    powers = ticks == "powers of two"
    for title, place in panels.places.items():
        here = rows[rows[panel] == title]
        at = sorted({*here[x].tolist()} - {0})[:: 2 if powers else 1]
        if at and ticks != "linear":
            names = [f"2<sup>{math.log2(value):.0f}</sup>" if powers else f"{value:,}" for value in at]
            panels.figure.update_xaxes(type="log", tickvals=at, ticktext=names, **place)
        if log is True or (log and log in title):
            panels.figure.update_yaxes(type="log", dtick=1, exponentformat="power", **place)
        if highest and min(here[y]) < 0.0 < max(here[y]):
            panels.figure.update_yaxes(range=[-0.05, 1.1 * max(here[y])], **place)
    return panels.titled(**titles)


def boxes(tables: Tables, columns: int = 2, **titles: str) -> go.Figure:
    """Draw the spread of ``y`` of "ratios": a panel per ``panel``, a box per ``method`` and ``stage``."""
    rows = _frame(tables, "ratios", "panel", "method", "stage", "y")
    panels = _Panels(rows["panel"].unique(), rows["stage"].unique(), columns)
    for title, stage, part in panels.parts(rows, method="stage"):
        panels.figure.add_box(
            x=list(part["method"]),
            y=list(part["y"]),
            name=stage,
            legendgroup=stage,
            showlegend=title == next(iter(panels.places)),
            offsetgroup=stage,
            marker={"color": panels.colors[stage], "size": 3},
            line={"width": 1.5},
            **panels.places[title],
        )
    panels.figure.update_layout(boxmode="group")
    return panels.titled(**titles)


def cells(tables: Tables, columns: int = 2, **titles: str) -> go.Figure:
    """Draw "cells" of a table of accuracies: a panel per ``data``, a row per ``method``.

    ``accuracy`` is a point, with error bars of twice ``std``, and ``printed``, which may be None, a diamond.
    """
    rows = _frame(tables, "cells", "data", "method", "accuracy", "std", "printed")
    methods = rows["method"].unique()[::-1].tolist()
    panels = _Panels(rows["data"].unique(), ("mean ± 2 std", "printed"), columns)
    for title, place in panels.places.items():
        here = _where(rows, data=title)
        bars = {"array": list(2.0 * here["std"].fillna(0.0)), "thickness": 1.5}
        for name, y, symbol, size, error in (
            ("mean ± 2 std", "accuracy", None, 8, bars),
            ("printed", "printed", "diamond-open", 10, None),
        ):
            style = {"color": panels.colors[name], "symbol": symbol, "size": size}
            part, about = here.dropna(subset=[y]), {"mode": "markers", "error_x": error}
            panels.add(title, name, part[y], part["method"], "%{y}: %{x:.2f}", marker=style, **about)
        panels.figure.update_yaxes(categoryorder="array", categoryarray=methods, **place)
    panels.figure.update_layout(height=panels.figure.layout.height + 14 * len(methods) * panels.down)
    return panels.titled(**titles)


# Transparent, for light and dark themes; zero pairs have a separate colour.
_SHARES = ((0.0, "#7d859026"), (1e-6, "#748dff66"), (1.0, "#4050d8ff"))
_TOP, _GAP, _CELL = 300, 50, 150


def operators(tables: Tables, *, x_title: str, y_title: str) -> go.Figure:
    """Draw used interactions and used features against λ, and W = QQᵀ of one P at some λ.

    Medians of "counts" over the seeds are drawn, with minimum and maximum as bars; a row of "W" is a row of a
    matrix of tiles that starts at a feature.
    """
    counts = _frame(tables, "counts", "method", "log2_lambda", "interactions", "features")
    pictures = _frame(tables, "W", "method", "log2_lambda", "first", "shares")
    if counts.empty:
        return go.Figure()
    methods, shown = list(counts["method"].unique()), sorted(pictures["log2_lambda"].unique())
    across, down = max(2, len(shown) + len(shown) % 2), len(methods) if shown else 0
    height = _TOP + (_GAP + _CELL * down if down else 0) + 120
    # Space for the axis above and the headings below.
    gap = bool(down)
    half = [{"colspan": across // 2}, *[None] * (across // 2 - 1)]
    figure = _subplots(
        1 + gap + down,
        across,
        ["Used interactions", "Used features", *(f"{x_title} = {power(e)}" for e in shown)],
        specs=[[*half, *half], *([[None] * across] * gap), *([[{}] * across] * down)],
        row_heights=[_TOP, *[_GAP] * gap, *[_CELL] * down],
        horizontal_spacing=0.025,
        vertical_spacing=0.13 / (1 + gap + down),
    )
    for column, col in (("interactions", 1), ("features", 1 + across // 2)):
        _draw_counts(figure, counts, column, x_title, {"row": 1, "col": col})
    plain = {"showticklabels": False, "showgrid": False, "zeroline": False}
    for (i, method), (j, exponent) in product(enumerate(methods), enumerate(shown)):
        rows = _where(pictures, method=method, log2_lambda=exponent)
        if rows.empty:
            continue
        place = {"row": i + 3, "col": j + 1}
        figure.add_heatmap(
            x=list(rows["first"]),
            y=list(rows["first"]),
            z=list(rows["shares"]),
            coloraxis="coloraxis",
            name=f"{method}, {x_title} = {power(exponent)}",
            hovertemplate="from features %{y} and %{x} on: %{z:.0%} used<extra>%{fullData.name}</extra>",
            **place,
        )
        figure.update_xaxes(**plain, **place)
        figure.update_yaxes(autorange="reversed", **plain, **place)
        if j == 0:
            title = {"text": method.replace(" (", "<br>("), "font": {"size": 12}}
            figure.update_yaxes(title=title, **place)
    bar = {
        "title": {"text": y_title, "side": "top", "font": {"size": 12}},
        "orientation": "h", "tickformat": ".0%", "thickness": 10, "len": 0.35,
        "x": 0.0, "xanchor": "left", "y": 0.0, "yanchor": "top", "ypad": 12,
    }  # fmt: skip
    scale = {"colorscale": [list(stop) for stop in _SHARES], "cmin": 0.0, "cmax": 1.0}
    return figure.update_layout(
        height=height,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0 + 30 / height, "x": 0},
        coloraxis={**scale, "showscale": bool(shown), "colorbar": bar},
    )


def _draw_counts(
    figure: go.Figure, counts: pd.DataFrame, column: str, x_title: str, place: Mapping[str, int]
) -> None:
    colors = method_colors(counts["method"].unique())
    for method, color in colors.items():
        groups = counts[counts["method"] == method].groupby("log2_lambda")[column]
        least, middle, most = groups.min(), groups.median(), groups.max()
        figure.add_scatter(
            x=list(middle.index),
            y=list(middle),
            error_y={"array": list(most - middle), "arrayminus": list(middle - least), "thickness": 1},
            mode="lines+markers",
            name=method,
            legendgroup=method,
            showlegend=place["col"] == 1,
            line={"color": color, "width": 2, "dash": "dash" if "rows" in method else "solid"},
            marker={"size": 7, "symbol": symbol_of(color)},
            hovertemplate=f"{method}: %{{y:,}}<extra></extra>",
            **place,
        )
    at, names = zip(*((e, power(e)) for e in sorted(counts["log2_lambda"].unique())[::2]), strict=True)
    figure.update_xaxes(tickvals=at, ticktext=names, title=x_title, zeroline=False, **place)
    figure.update_yaxes(rangemode="tozero", tickformat=",d", **place)


KINDS: dict[str, Callable[..., go.Figure]] = {
    kind.__name__: kind for kind in (descent, sparsity, lines, boxes, cells, operators)
}
"""The kinds of figures of artefacts, by name."""


def draw(tables: Tables, *, kind: str, **options: Any) -> go.Figure:
    """Draw the tables of a result; `kind` is one of `KINDS`."""
    return KINDS[kind](tables, **options)


def stored(figure: go.Figure) -> dict[str, Any]:
    """Return a figure as the picture of a `Result`: Plotly's JSON, without the template, its default."""
    picture: dict[str, Any] = json.loads(figure.to_json())
    del picture["layout"]["template"]
    return picture
