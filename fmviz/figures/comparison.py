"""Figures that compare runs: overlaid curves, trade-offs, equal sparsity, metrics against strengths."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from fmviz.figures import palette
from fmviz.figures.training import DASHES, X_TITLES, X, finish, metric_axis, thin
from fmviz.metrics import Metric


def overlay(
    histories: Sequence[tuple[str, str, pd.DataFrame]],
    metric: Metric,
    x: X = "epoch",
) -> go.Figure:
    """Draw one column of the histories of several runs.

    Parameters
    ----------
    histories : sequence of (str, str, DataFrame)
        The names of runs, their regularizers and their histories; runs of one name have one style, also where
        some lack the column and are left out.
    metric : Metric
        What is drawn.
    x : {"epoch", "seconds"}
        The horizontal axis.
    """
    figure, column = go.Figure(), metric.name
    values: list[float] = []
    regularizers = {name: regularizer for name, regularizer, _ in histories}
    alike = [*regularizers.values()]
    # Runs of one colour have different dashes.
    dashes = {name: alike[:at].count(alike[at]) for at, name in enumerate(regularizers)}
    for name, regularizer, history in histories:
        if column not in history:
            continue
        rows = thin(history.dropna(subset=[column]))
        values += rows[column].tolist()
        figure.add_scatter(
            x=rows[x],
            y=rows[column],
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
        )
    figure.update_xaxes(title=X_TITLES[x], rangemode="tozero")
    figure.update_yaxes(metric_axis(metric, values))
    return finish(
        figure,
        360,
        30,
        hovermode="x unified",
        showlegend=True,
        # At the edge of the figure, since many names on a narrow page would shrink the plot.
        legend={"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"},
        uirevision=f"{column}:{x}",
    )


def equal_sparsity(table: pd.DataFrame, metric: str, title: str) -> go.Figure:
    """Draw a metric of every regularizer at about the same number of interactions.

    Parameters
    ----------
    table : DataFrame
        Columns ``regularizer``, ``label``, ``interactions``, ``nearest``, and the metric. A regularizer that
        does not reach the number is hatched: it is the nearest that it reaches.
    metric, title : str
        The column, and its name.
    """
    figure = go.Figure(
        go.Bar(
            x=[
                f"{label}<br>{'only ' * near}{count:,}"
                for label, count, near in zip(
                    table["label"], table["interactions"], table["nearest"], strict=True
                )
            ],
            y=table[metric],
            marker={
                "color": [palette.regularizer_color(name) for name in table["regularizer"]],
                "pattern": {
                    "shape": ["/" if near else "" for near in table["nearest"]],
                    "fillmode": "replace",
                },
            },
            text=[f"{value:.4g}" for value in table[metric]],
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"%{{x}}: {title} %{{y:.6g}}<extra></extra>",
        )
    )
    # The numbers stand on the bars.
    return finish(figure, 300, 30, yaxis_visible=False)
