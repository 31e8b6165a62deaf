"""Figures that compare runs: overlaid curves, trade-offs, equal sparsity, metrics against strengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fmviz.figures import palette
from fmviz.figures.training import DASHES, X_TITLES, X, exponents, finish, metric_axis, thin
from fmviz.metrics import Metric


def overlay(
    histories: Sequence[tuple[str, str, pd.DataFrame]],
    *metrics: Metric,
    x: X = "epoch",
) -> go.Figure:
    """Draw columns of the histories of several runs, one above the other.

    Parameters
    ----------
    histories : sequence of (str, str, DataFrame)
        The names of runs, their regularizers and their histories; runs of the same name share a style, even
        if some lack the column and are omitted.
    *metrics : Metric
        The metrics drawn.
    x : {"epoch", "seconds"}
        The horizontal axis.
    """
    figure = make_subplots(rows=len(metrics), cols=1, shared_xaxes=True, vertical_spacing=0.06)
    regularizers = {name: regularizer for name, regularizer, _ in histories}
    alike = [*regularizers.values()]
    # Runs of the same colour have different dashes.
    dashes = {name: alike[:at].count(alike[at]) for at, name in enumerate(regularizers)}
    for row, metric in enumerate(metrics, 1):
        values: list[float] = []
        for name, regularizer, history in histories:
            if metric.name not in history:
                continue
            rows = thin(history.dropna(subset=[metric.name]))
            values += rows[metric.name].tolist()
            figure.add_scatter(
                x=rows[x],
                y=rows[metric.name],
                name=name,
                legendgroup=name,
                showlegend=not any(trace.name == name for trace in figure.data),
                mode="lines+markers" if len(rows) <= 30 else "lines",
                marker={"size": 5},
                line={
                    "color": palette.regularizer_color(regularizer),
                    "dash": DASHES[dashes[name] % len(DASHES)],
                    "width": 2,
                },
                hovertemplate="%{y:.5g}",
                row=row,
                col=1,
            )
        figure.update_yaxes(metric_axis(metric, values), row=row)
    figure.update_xaxes(rangemode="tozero")
    figure.update_xaxes(title=X_TITLES[x], row=len(metrics))
    return finish(
        figure,
        360,
        30,
        hovermode="x unified",
        showlegend=True,
        # At the edge of the figure, since many names would shrink the plot on a narrow page.
        legend={"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
        uirevision=f"{metrics[0].name}:{x}",
    )


def equal_sparsity(table: pd.DataFrame, metric: Metric, height: int) -> go.Figure:
    """Draw a metric of every regularizer at about equal numbers of interactions, fitted and refitted.

    Parameters
    ----------
    table : DataFrame
        Columns ``regularizer``, ``label``, ``interactions``, ``nearest``, ``value`` and ``refitted``, one row
        per seed; ``λ``, drawn in a second panel, and ``strongest``, the end of the bar of λ with accepted
        counts. A cross marks a regularizer that does not reach the number, at its closest count.
    metric : Metric
        The metric of the values.
    height : int
        The height in pixels.
    """
    figure = make_subplots(1, 2, shared_yaxes=True, column_widths=[0.6, 0.4], horizontal_spacing=0.06)
    labels = list(dict.fromkeys(table["label"]))
    for place, (name, rows) in enumerate(table.groupby("regularizer", sort=False)):
        color, own = palette.regularizer_color(str(name)), rows[["value", "refitted"]].assign(gap=np.nan)
        # Seeds side by side.
        y = place + np.linspace(-0.3, 0.3, len(rows) + 2)[1:-1]
        figure.add_scatter(
            x=own.to_numpy().ravel(),
            y=np.repeat(y, 3),
            mode="lines",
            line={"color": color, "width": 2},
            hoverinfo="skip",
        )
        for column, sign, words in (("value", "-open", "as fitted"), ("refitted", "", "refitted without λ")):
            figure.add_scatter(
                x=rows[column],
                y=y,
                name=f"{rows['label'].iloc[0]}, {words}",
                mode="markers",
                cliponaxis=False,
                marker={
                    "color": color,
                    "size": 9,
                    "symbol": [f"{'x' if near else 'circle'}{sign}" for near in rows["nearest"]],
                    "line": {"width": 2, "color": color},
                },
                customdata=rows["interactions"],
                hovertemplate="%{fullData.name}: %{x:.4g}<br>%{customdata:,} interactions<extra></extra>",
            )
        figure.add_scatter(
            x=rows[["λ", "strongest"]].assign(gap=np.nan).to_numpy().ravel(),
            y=np.repeat(y, 3),
            name=f"{rows['label'].iloc[0]}, λ",
            mode="lines+markers",
            cliponaxis=False,
            line={"color": color, "width": 3},
            # A dot at the chosen λ alone.
            marker={"size": [9, 0, 0] * len(rows)},
            hovertemplate="%{fullData.name} = %{x:.3g}<extra></extra>",
            row=1,
            col=2,
        )
    axis = metric_axis(metric, table[["value", "refitted"]].to_numpy().ravel())
    figure.update_xaxes(axis | {"title": None, "showgrid": True}, row=1, col=1)
    figure.update_xaxes(
        type="log", dtick=1, exponentformat=exponents(table["λ"]), showgrid=True, row=1, col=2
    )
    figure.update_yaxes(
        tickvals=[*range(len(labels))], ticktext=labels, range=[len(labels) - 0.5, -0.5], showgrid=False
    )
    return finish(figure, height, 8, showlegend=False, hovermode="closest")
