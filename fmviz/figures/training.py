"""Figures of a training run: objective, sparsity, metrics, recovery and residuals.

Curves take the history of a run as a DataFrame with one row per epoch (columns as in `Snapshot.record`
of fmviz.engine); their figures keep the zoom while rows are added.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fmviz.figures import palette
from fmviz.figures.palette import NEUTRAL
from fmviz.metrics import METRICS, SUPPORT_F1, USED_INTERACTIONS, Metric

X = Literal["epoch", "seconds", "used_bases"]
X_TITLES: dict[str, str] = {
    "epoch": "epoch",
    "seconds": "seconds in the solver",
    "used_bases": "bases in use",
}
MOST_POINTS = 2_000
NONE = 0.5
"""The position of a count of 0 on a logarithmic axis."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

# Readable on both themes, and distinguishable under the common colour vision deficiencies.
BLUE = "#3f88c5"
ORANGE = "#db6f22"
GREEN = "#07aa57"
PURPLE = "#9a6bd1"
GREY = palette.NEUTRAL

GAP = Metric("gap", "F − F*", listed=False)
"""The objective minus the lowest known one of the problem; see `gap`."""
CERTIFICATE = Metric("certificate", "Certificate", listed=False)
CONVERGENCE = (GAP, CERTIFICATE)


def evenly(n: int, most: int) -> np.ndarray:
    """Return at most `most` evenly spaced indices of 0, …, n − 1, including the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def thin(history: pd.DataFrame) -> pd.DataFrame:
    """Return at most `MOST_POINTS` evenly spaced rows, including the first and the last."""
    return history.iloc[evenly(len(history), MOST_POINTS)]


def metric_axis(metric: Metric, values: Sequence[float] | np.ndarray) -> dict[str, object]:
    """Return the titled axis of a metric: logarithmic over more than a factor of 20, or within its range."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    if not (metric.axis == "log" and finite.size and finite.min() > 0 and finite.max() > 20 * finite.min()):
        low, high = metric.limits
        return {"type": "linear", "minallowed": low, "maxallowed": high, "title": metric.label}
    return {
        "type": "log",
        # Only some of many decades have labels.
        "dtick": -(-math.log10(span) // 6) if (span := finite.max() / finite.min()) > 300 else "D2",
        "exponentformat": exponents(finite),
        "title": metric.label,
    }


def exponents(values: np.ndarray) -> str:
    """Return Plotly's format of ticks on a logarithmic axis: plain numbers unless they are long."""
    return "none" if values.min() >= 1e-3 and values.max() < 1e5 else "power"


def log_counts_axis(largest: float) -> dict[str, object]:
    """Return a logarithmic axis of counts with a tick for 0."""
    decades = range(int(np.ceil(np.log10(max(largest, 1.0)))) + 1)
    return {
        "type": "log",
        "range": [np.log10(NONE) - 0.1, np.log10(max(largest, 1.0)) + 0.15],
        "tickvals": [NONE, *(10.0**i for i in decades)],
        "ticktext": ["0", *(f"{10**i:,}" for i in decades)],
    }


def finish(figure: go.Figure, height: int, top: int = 34, **layout: object) -> go.Figure:
    """Apply the common layout: transparent background, narrow margins, legend above."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 12, "t": top, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        **{"legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}}
        | layout,
    )
    figure.update_layout(layout, overwrite=True)
    figure.update_xaxes(automargin=True, zeroline=False)
    return figure.update_yaxes(automargin=True, zeroline=False)


@dataclass(frozen=True)
class Curve:
    """A column of a history as a line, optionally with a dashed line at its true value."""

    column: str
    name: str
    color: str
    level: float | None = None
    dash: bool = False


Floors = Sequence[tuple[int, float | None]]
"""For each problem of a run, the epoch after which it begins and the lowest objective of other runs."""


@dataclass(frozen=True)
class Plot:
    """Curves on a pair of axes; the vertical axis belongs to a metric, or begins at 0.

    With `floors`, the curve of the objective is drawn as `gap`.
    """

    metric: Metric
    curves: tuple[Curve, ...]
    zero: bool = False
    floors: Floors | None = None


UNKNOWN: Floors = ((-1, None),)
"""The floors of a run with constant strengths, if no lower objective is known."""


def convergence(color: str, floors: Floors = UNKNOWN) -> list[Plot]:
    """Return the plots of F − F* and of the certificate; `floors` as for `gap`."""
    return [
        Plot(GAP, (Curve("objective", GAP.label, color),), floors=floors),
        Plot(CERTIFICATE, (Curve("certificate", "certificate", GREY),)),
    ]


def gap(history: pd.DataFrame, floors: Floors = UNKNOWN) -> pd.Series:
    """Return F − F* of every epoch; NaN if it is not finite or within the rounding error of F.

    F* is the lowest objective of the history under the same strengths, or that of `floors` if it is lower.
    """
    after, known = np.array(floors, dtype=float).T
    problem = np.searchsorted(after, history["epoch"]) - 1
    F = history["objective"].where(np.isfinite(history["objective"]))
    above = F - np.fmin(F.groupby(problem).transform("min"), known[problem])
    return above.where(above > 1e-14 * F.abs())


def uses(
    counts: Mapping[str, str] | None = None,
    true_interactions: Mapping[str, int] | None = None,
    true_features: int | None = None,
) -> list[Plot]:
    """Return the plots of used interactions and of used features.

    Parameters
    ----------
    counts : mapping, optional
        Names by column, to draw the interactions of each order instead of all.
    true_interactions, true_features
        The true numbers, for interactions by column.
    """
    kinds = (counts or {"used_interactions": "interactions"}).items()
    curves = [
        Curve(column, name, color, (true_interactions or {}).get(column))
        for (column, name), color in zip(kinds, itertools.cycle((ORANGE, PURPLE, GREEN)), strict=False)
    ]
    curves.append(Curve("used_features", "features", BLUE, true_features))
    return [Plot(USED_INTERACTIONS, (curve,), zero=True) for curve in curves]


def metrics_in(history: Container[str]) -> list[Metric]:
    """Return the prediction metrics in the columns of a history, the most informative first."""
    return [metric for name, metric in METRICS.items() if f"train_{name}" in history]


def prediction(metric: Metric, validated: bool = True) -> list[Plot]:
    """Return the plot of a metric on the training rows and, if there are any, on the validation rows."""
    train = Curve(f"train_{metric.name}", "training", GREY)
    validation = Curve(f"validation_{metric.name}", "validation", ORANGE)
    return [Plot(metric, (train, validation) if validated else (train,))]


def recovery(history: Container[str]) -> list[Plot]:
    """Return the plot of the recovery of true interactions, none if these are unknown."""
    known = (
        Curve("support_f1", "F1 of pairs" if "support_f1_3" in history else "F1", BLUE),
        Curve("support_f1_3", "F1 of triples", PURPLE),
        Curve("estimation_error", "error", ORANGE, dash=True),
    )
    drawn = tuple(curve for curve in known if curve.column in history)
    return [Plot(SUPPORT_F1, drawn, zero=True)] if drawn else []


def curves(history: pd.DataFrame, plots: Sequence[Plot], x: X = "epoch", *, revision: str = "") -> go.Figure:
    """Draw stacked plots with a common horizontal axis.

    Parameters
    ----------
    history : DataFrame
        One row per epoch, with columns ``epoch``, ``seconds`` and those of the curves.
    plots : sequence of Plot
        The plots; columns missing in the history are omitted.
    x : {"epoch", "seconds", "used_bases"}
        The horizontal axis.
    revision : str
        Identifies the run; a new value resets the zoom.

    Returns
    -------
    plotly Figure
    """
    rows = history
    figure = make_subplots(rows=len(plots), cols=1, shared_xaxes=True, vertical_spacing=0.09)
    for row, plot in enumerate(plots, 1):
        history = thin(rows if plot.floors is None else rows.assign(objective=gap(rows, plot.floors)))
        drawn = [curve for curve in plot.curves if curve.column in history]
        for curve in drawn:
            y = history[curve.column].to_numpy()
            figure.add_scatter(
                x=history[x].to_numpy(),
                y=y,
                name=curve.name,
                mode="lines+markers" if len(history) <= 60 else "lines",
                marker={"size": 4, "color": curve.color},
                line={"color": curve.color, "width": 2, "dash": "dot" if curve.dash else None},
                hovertemplate="%{y:,d}" if y.dtype.kind == "i" else "%{y:.5g}",
                # The certificate is not computed after every epoch.
                connectgaps=curve.column == CERTIFICATE.name,
                row=row,
                col=1,
            )
            if curve.level is not None:
                figure.add_trace(
                    go.Scatter(
                        x=history[x].iloc[[0, -1]].to_numpy(),
                        y=[curve.level, curve.level],
                        name="in truth",
                        legendgroup="truth",
                        showlegend=not any(trace.name == "in truth" for trace in figure.data),
                        mode="lines",
                        line={"color": GREY, "width": 1.4, "dash": "dash"},
                        hovertemplate="%{y:,d}",
                    ),
                    row=row,
                    col=1,
                )
        values = history[[curve.column for curve in drawn]].to_numpy(dtype=float).ravel()
        axis = metric_axis(plot.metric, values)
        if plot.zero:
            # Protruding parts are partly visible.
            top = plot.metric.limits[1]
            most = min(float(values[np.isfinite(values)].max(initial=0.0)), 5.0)
            axis = {"rangemode": "tozero", "nticks": 4, "range": top and [0.0, 1.05 * max(top, most)]}
        figure.update_yaxes(axis, row=row, col=1)
    figure.update_xaxes(rangemode="tozero")
    figure.update_xaxes(title_text=X_TITLES[x], row=len(plots), col=1)
    return finish(
        figure,
        290,
        hovermode="x unified",
        showlegend=len(figure.data) > 1,
        # An unchanged revision, which includes the axis, keeps zoom and hidden curves while points are added.
        uirevision=f"{revision}:{x}",
        transition={"duration": 0},
    )


# The number of text lines for labels of vertical lines, and the share of a narrow axis per letter.
_LINES, _BREADTH = 3, 0.022


def mark_epochs(figure: go.Figure, history: pd.DataFrame, x: str, words: Mapping[int, str]) -> go.Figure:
    """Draw a labelled vertical line over all panels at some epochs; return the figure.

    Parameters
    ----------
    figure : plotly Figure
        A figure of `fmviz.figures.training`.
    history : DataFrame
        Columns ``epoch``, ascending, and ``seconds``; on an axis of seconds, the line is at the end of its
        epoch.
    x : {"epoch", "seconds"}
        The horizontal axis.
    words : mapping of int to str
        The labels of the lines by epoch.
    """
    ends, lines = history[x].iloc[[0, -1]].to_numpy(dtype=float), [-math.inf] * _LINES
    for epoch, text in words.items():
        place = float(np.interp(epoch, history["epoch"], history[x]))
        part = (place - ends[0]) / max(ends[1] - ends[0], 1e-12)
        # On the first free text line; without a label if there is none.
        line = next((at for at, end in enumerate(lines) if end < part), None)
        figure.add_shape(
            type="line",
            x0=place,
            x1=place,
            y0=0.0,
            y1=1.0,
            xref="x",
            yref="paper",
            line={"color": palette.NEUTRAL, "width": 1.4, "dash": "dash"},
        )
        if line is not None:
            lines[line] = part + _BREADTH * len(text)
            figure.add_annotation(
                x=place,
                y=1.0,
                xref="x",
                yref="paper",
                xanchor="left" if part < 0.8 else "right",
                yanchor="top",
                xshift=3 if part < 0.8 else -3,
                yshift=-13 * line,  # lines of 13 pixels
                text=text,
                showarrow=False,
                font={"size": 11, "color": palette.NEUTRAL},
            )
    return figure


# The maximum number of classes with counts in the cells; for more, they appear only on hover.
_WRITTEN = 12


def confusion(counts: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """Draw the confusion matrix.

    Parameters
    ----------
    counts : (C, C) ndarray
        The numbers of rows by true class (first axis) and predicted class.
    labels : sequence of str
        The classes.

    Returns
    -------
    plotly Figure
    """
    names = list(labels)
    figure = go.Figure(
        go.Heatmap(
            z=counts / np.maximum(counts.sum(axis=1, keepdims=True), 1),
            x=names,
            y=names,
            customdata=counts,
            text=counts,
            texttemplate="%{text}" if len(names) <= _WRITTEN else "",
            hovertemplate="true %{y}, predicted %{x}: %{customdata} rows, %{z:.1%}<extra></extra>",
            colorscale=[[0.0, "rgba(0, 0, 0, 0)"], [1.0, BLUE]],
            zmin=0.0,
            zmax=1.0,
            showscale=False,
        )
    )
    figure.update_xaxes(title_text="predicted", type="category", constrain="domain")
    figure.update_yaxes(title_text="true", type="category", autorange="reversed", scaleanchor="x")
    return figure.update_layout(
        height=min(560, 160 + 32 * len(names)), margin={"l": 10, "r": 10, "t": 10, "b": 10}
    )


_BINS = 60
_ROWS: dict[str, str] = {
    "kept": BLUE,
    "set aside": ORANGE,
    "wrong, set aside": GREEN,
    "wrong, kept": "#c23b3b",
}
"""Colours of rows by whether they are excluded and wrong."""
_LEGEND = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.08, "yanchor": "bottom"}


def residuals(
    signed: np.ndarray,
    groups: Mapping[str, np.ndarray],
    window: tuple[float, float],
    lines: Sequence[tuple[float, str]],
    title: str,
) -> go.Figure:
    """Draw a histogram of residuals; the outermost bars include those beyond the window.

    Parameters
    ----------
    signed : (n,) ndarray
        f − y, or 1 − yf.
    groups : mapping of str to (n,) bool ndarray
        Masks of the groups of rows, by keys of `COLORS`; the bars are stacked.
    window : (float, float)
        The range of the histogram.
    lines : sequence of (float, str)
        Marked positions with their names.
    title : str
        The title of the horizontal axis.
    """
    low, high = window
    edges = np.linspace(low, high, _BINS + 1)
    width = edges[1] - edges[0]
    inside = np.clip(signed, low + 0.5 * width, high - 0.5 * width)
    figure = go.Figure()
    for name, mask in groups.items():
        counts, _ = np.histogram(inside[mask], edges)
        figure.add_bar(
            x=0.5 * (edges[:-1] + edges[1:]),
            y=counts,
            name=f"{name} ({int(mask.sum()):,})",
            marker={"color": _ROWS[name], "line": {"width": 0}},
            width=width,
            hovertemplate="%{y:,} rows near %{x:.3g}",
        )
    for place, words in lines:
        figure.add_vline(
            place,
            line={"color": NEUTRAL, "width": 1.4, "dash": "dash"},
            annotation={"text": words, "font": {"size": 12, "color": NEUTRAL}, "yref": "paper", "y": 1.0},
            annotation_position="top right",
        )
    figure.update_xaxes(title_text=title, range=[low, high])
    figure.update_yaxes(title_text="rows")
    return finish(figure, 300, barmode="stack", bargap=0.0, legend=_LEGEND, showlegend=True)
