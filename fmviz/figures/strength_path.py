"""Figures of regularization paths along λ, and of the search for a number of interactions."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fmviz.figures import palette
from fmviz.figures.training import NONE, SYMBOLS, finish, log_counts_axis, metric_axis
from fmviz.metrics import Metric

Against = Literal["lambda_sparse", "used_interactions"]
X_TITLES: dict[str, str] = {"lambda_sparse": "λ", "used_interactions": "used interactions"}
# Up to this number, counts need no logarithmic axis.
_FEW = 30


def path(
    table: pd.DataFrame,
    metric: Metric,
    *,
    x: Against = "lambda_sparse",
    chosen: tuple[str, float] | None = None,
    ends: tuple[float, float] | None = None,
    error: str | None = None,
    mark: float | None = None,
    height: int = 290,
) -> go.Figure:
    """Draw a column of a path against the strength or the interactions, with a line for each regularizer.

    Parameters
    ----------
    table : DataFrame
        Columns ``regularizer``, ``label``, ``lambda_sparse``, ``used_interactions`` and the metric, one row a
        fit.
    metric : Metric
        What is drawn.
    x : {"lambda_sparse", "used_interactions"}
        The horizontal axis, logarithmic but for few interactions; a count of 0 stands at its left end, and is
        named.
    chosen : (str, float), optional
        The regularizer and the strength of the fit that is marked.
    ends : (float, float), optional
        The lowest and the highest strength of the whole path, where it still grows.
    error : str, optional
        The column of the bars.
    mark : float, optional
        Where a vertical line stands.
    height : int
        In pixels.

    Returns
    -------
    plotly Figure
        The customdata of every point holds its regularizer and its strength.
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
            # Later markers are smaller, so that markers beneath remain visible.
            marker={
                "symbol": SYMBOLS[number % len(SYMBOLS)],
                "size": max(5, 10 - number),
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
        if len(mine) and np.isfinite(mine[y].iloc[0]):
            at, value = float(mine[x].iloc[0]), float(mine[y].iloc[0])
            figure.add_scatter(
                cliponaxis=False,
                x=[max(at, NONE) if log_x else at],
                y=[value],
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
    if log_x:
        axis = log_counts_axis(float(table[x].max()))
    elif x == "used_interactions":
        axis = {"rangemode": "tozero", "tickformat": ",d"}
    else:
        axis = {"type": "log", "dtick": 1, "exponentformat": "power"}
        if ends is not None:
            low, high = np.log10(ends)
            margin = 0.03 * (high - low)
            axis["range"] = [low - margin, high + margin]
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
    """Describe a figure of `path` in a sentence, for screen readers."""
    y = metric.name
    parts = (
        f"{rows['label'].iloc[0]} from {rows[y].iloc[0]:.4g} to {rows[y].iloc[-1]:.4g}"
        for _, rows in table.dropna(subset=[y]).groupby("regularizer", sort=False)
    )
    low, high = (f"{edge:.3g}" for edge in (table["lambda_sparse"].min(), table["lambda_sparse"].max()))
    return f"{metric.label} against {X_TITLES[x]}, λ from {low} to {high}: {'; '.join(parts)}."
