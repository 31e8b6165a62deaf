"""Figures of regularization paths along λ, and of the search for a number of interactions."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fmviz.figures import palette
from fmviz.figures.training import NONE, exponents, finish, log_counts_axis, metric_axis
from fmviz.metrics import Metric

Against = Literal["lambda_sparse", "used_interactions"]
X_TITLES: dict[str, str] = {"lambda_sparse": "λ", "used_interactions": "used interactions"}
# The maximum count without a logarithmic axis.
_FEW = 30
# More points than these have smaller markers.
_MANY = 25


def path(
    table: pd.DataFrame,
    metric: Metric,
    *,
    x: Against = "lambda_sparse",
    chosen: tuple[str, float] | None = None,
    error: str | None = None,
    mark: float | None = None,
    matched: pd.DataFrame | None = None,
    height: int = 290,
) -> go.Figure:
    """Draw a column of a path against the strength or the interactions, with a line per regularizer.

    Parameters
    ----------
    table : DataFrame
        Columns ``regularizer``, ``label``, ``lambda_sparse``, ``used_interactions`` and the metric, one row
        per fit.
    metric : Metric
        The metric drawn.
    x : {"lambda_sparse", "used_interactions"}
        The horizontal axis, logarithmic unless there are few interactions; a count of 0 is at its left end,
        with a label.
    chosen : (str, float), optional
        The regularizer and strength of the marked fit.
    error : str, optional
        The column of the error bars.
    mark : float, optional
        The position of a vertical line.
    matched : DataFrame, optional
        Fits at a number of interactions, drawn as dots: rows as in the table.
    height : int
        The height in pixels.

    Returns
    -------
    plotly Figure
        The customdata of every point contains its regularizer and strength.
    """
    figure, y = go.Figure(), metric.name
    counts = y.startswith("used_")
    log_x = x == "used_interactions" and table[x].max() > _FEW
    for number, (name, rows) in enumerate(table.groupby("regularizer", sort=False)):
        color = palette.regularizer_color(str(name))
        rows = rows.dropna(subset=[y]).sort_values("lambda_sparse")
        at, value = rows[x].to_numpy(dtype=float), rows[y].to_numpy(dtype=float)
        figure.add_scatter(
            cliponaxis=False,
            x=np.maximum(at, NONE) if log_x else at,
            y=value,
            error_y=None if error is None else {"array": rows[error].fillna(0), "thickness": 1, "width": 3},
            customdata=[
                [name, strength, f"{used:,}", f"{v:,.0f}" if counts else f"{v:.5g}"]
                for strength, used, v in zip(
                    rows["lambda_sparse"], rows["used_interactions"], value, strict=True
                )
            ],
            name=rows["label"].iloc[0] if len(rows) else str(name),
            mode="lines+markers",
            line={"color": color, "width": 2},
            # Later markers are smaller, to keep markers below visible.
            marker={
                "symbol": palette.symbol_of(color),
                "size": max(5, 10 - number) if len(rows) <= _MANY else max(3, 6 - number),
                "color": color,
                "opacity": 1,
            },
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
            hovertemplate="%{fullData.name}, λ = %{customdata[1]:.4g}: %{customdata[3]}"
            + ("" if y == "used_interactions" else "<br>%{customdata[2]} interactions")
            + "<extra></extra>",
        )
    if chosen is not None:
        mine = table[(table["regularizer"] == chosen[0]) & (table["lambda_sparse"] == chosen[1])]
        if len(mine := mine.dropna(subset=[y])):
            figure.add_scatter(
                cliponaxis=False,
                x=np.maximum(mine[x], NONE) if log_x else mine[x],
                y=mine[y],
                mode="markers",
                marker={
                    "symbol": "circle-open",
                    "size": 17,
                    "color": palette.regularizer_color(chosen[0]),
                    "line": {"width": 2.5},
                },
                hoverinfo="skip",
                showlegend=False,
                name="chosen",
            )
    for row in () if matched is None else matched.to_dict("records"):
        figure.add_scatter(
            cliponaxis=False,
            x=[max(row[x], NONE) if log_x else row[x]],
            y=[row[y]],
            mode="markers",
            marker={
                "symbol": "circle",
                "size": 13,
                "color": palette.regularizer_color(row["regularizer"]),
                "line": {"width": 1.5, "color": palette.NEUTRAL},
            },
            opacity=0.75,
            hoverinfo="skip",
            showlegend=False,
            name="matched",
        )
    if log_x:
        axis = log_counts_axis(float(table[x].max()))
    elif x == "used_interactions":
        axis = {"rangemode": "tozero", "tickformat": ",d"}
    else:
        axis = {"type": "log", "dtick": 1, "exponentformat": exponents(table[x])}
    if mark is not None:
        figure.add_vline(mark, line={"color": palette.NEUTRAL, "width": 1.4, "dash": "dash"})
    figure.update_xaxes(axis, title=X_TITLES[x])
    if counts:
        few = table[y].max() <= 5
        figure.update_yaxes(title=metric.label, rangemode="tozero", tickformat=",d", dtick=1 if few else None)
    else:
        figure.update_yaxes(metric_axis(metric, table[y]))
    return finish(figure, height, hovermode="closest", showlegend=True)


def describe_path(table: pd.DataFrame, metric: Metric, x: Against = "lambda_sparse") -> str:
    """Return a sentence that describes a figure of `path`, for screen readers."""
    y = metric.name
    parts = (
        f"{rows['label'].iloc[0]} from {rows[y].iloc[0]:.4g} to {rows[y].iloc[-1]:.4g}"
        for _, rows in table.dropna(subset=[y]).groupby("regularizer", sort=False)
    )
    low, high = (f"{edge:.3g}" for edge in (table["lambda_sparse"].min(), table["lambda_sparse"].max()))
    return f"{metric.label} against {X_TITLES[x]}, λ from {low} to {high}: {'; '.join(parts)}."
