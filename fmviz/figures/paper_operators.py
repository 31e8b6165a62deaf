"""What operators leave of a matrix: counts along λ above, pictures of QQᵀ beneath."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fmviz.figures.operators import power
from fmviz.figures.palette import method_colors

Row = Mapping[str, Any]

# Transparent, so that they read on light and on dark; no pair at all has a colour of its own.
_SHARES = ((0.0, "#7d859026"), (1e-6, "#748dff66"), (1.0, "#4050d8ff"))
_TOP, _GAP, _CELL = 300, 50, 150
_COUNTS = {"interactions": "Used interactions", "features": "Used features"}


def operators(tables: Mapping[str, Sequence[Row]], *, x_title: str, y_title: str) -> go.Figure:
    """Draw used interactions and used features against λ, and W = QQᵀ of one P at some λ.

    Medians of "counts" over the seeds are drawn, with the least and the greatest as bars; a row of "W" is the
    row of a matrix of tiles from a feature on.
    """
    counts, pictures = tables.get("counts", ()), tables.get("W", ())
    methods = list(dict.fromkeys(row["method"] for row in counts))
    shown = sorted({row["log2_lambda"] for row in pictures})
    if not counts:
        return go.Figure()
    across = max(2, len(shown) + len(shown) % 2)
    down = len(methods) if shown else 0
    height = _TOP + (_GAP + _CELL * down if down else 0) + 120
    # Between the two there is room for the axis above and the headings beneath.
    gap = bool(down)
    half = [{"colspan": across // 2}, *[None] * (across // 2 - 1)]
    figure = make_subplots(
        1 + gap + down,
        across,
        specs=[[*half, *half], *([[None] * across] * gap), *([[{}] * across] * down)],
        row_heights=[_TOP, *[_GAP] * gap, *[_CELL] * down],
        horizontal_spacing=0.025,
        vertical_spacing=0.13 / (1 + gap + down),
        subplot_titles=[*_COUNTS.values(), *(f"{x_title} = {power(e)}" for e in shown)],
    )
    figure.update_annotations(font_size=12)
    _draw_counts(figure, counts, methods, across, x_title)
    for i, method in enumerate(methods):
        for j, exponent in enumerate(shown):
            rows = [r for r in pictures if r["method"] == method and r["log2_lambda"] == exponent]
            if not rows:
                continue
            place = {"row": i + 3, "col": j + 1}
            starts = [row["first"] for row in rows]
            figure.add_heatmap(
                x=starts,
                y=starts,
                z=[row["shares"] for row in rows],
                coloraxis="coloraxis",
                name=f"{method}, {x_title} = {power(exponent)}",
                hovertemplate="from features %{y} and %{x} on: %{z:.0%} used<extra>%{fullData.name}</extra>",
                **place,
            )
            figure.update_xaxes(showticklabels=False, showgrid=False, zeroline=False, **place)
            figure.update_yaxes(
                showticklabels=False, showgrid=False, zeroline=False, autorange="reversed", **place
            )
            if j == 0:
                figure.update_yaxes(
                    title={"text": method.replace(" (", "<br>("), "font": {"size": 12}}, **place
                )
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0 + 30 / height, "x": 0},
        coloraxis={
            "colorscale": [list(stop) for stop in _SHARES],
            "cmin": 0.0,
            "cmax": 1.0,
            "showscale": bool(shown),
            "colorbar": {
                "title": {"text": y_title, "side": "top", "font": {"size": 12}},
                "orientation": "h",
                "tickformat": ".0%",
                "thickness": 10,
                "len": 0.35,
                "x": 0.0,
                "xanchor": "left",
                "y": 0.0,
                "yanchor": "top",
                "ypad": 12,
            },
        },
    )
    return figure


def _draw_counts(
    figure: go.Figure, counts: Sequence[Row], methods: Sequence[str], across: int, x_title: str
) -> None:
    colors = method_colors(methods)
    exponents = sorted({row["log2_lambda"] for row in counts})
    for at, column in enumerate(_COUNTS):
        place = {"row": 1, "col": 1 + at * (across // 2)}
        for method in methods:
            groups = [
                [r[column] for r in counts if r["method"] == method and r["log2_lambda"] == e]
                for e in exponents
            ]
            middle = [median(group) for group in groups]
            rows_reading = "rows" in method
            figure.add_scatter(
                x=exponents,
                y=middle,
                error_y={
                    "array": [max(g) - m for g, m in zip(groups, middle, strict=True)],
                    "arrayminus": [m - min(g) for g, m in zip(groups, middle, strict=True)],
                    "thickness": 1,
                },
                mode="lines+markers",
                name=method,
                legendgroup=method,
                showlegend=at == 0,
                line={"color": colors[method], "width": 2, "dash": "dash" if rows_reading else "solid"},
                marker={"size": 6, "symbol": "square" if rows_reading else "circle"},
                hovertemplate=f"{method}: %{{y:,}}<extra></extra>",
                **place,
            )
        figure.update_xaxes(
            tickvals=exponents[::2],
            ticktext=[power(e) for e in exponents[::2]],
            title={"text": x_title, "standoff": 4},
            zeroline=False,
            **place,
        )
        figure.update_yaxes(rangemode="tozero", tickformat=",d", **place)
