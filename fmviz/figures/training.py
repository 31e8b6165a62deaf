"""Figures of a training run: objective, sparsity, metrics, recovery, residuals and spectrum.

Curves take the history of a run as a frame, one row an epoch (`Snapshot.record` in fmviz.engine
names the columns); their figures keep the zoom while rows are added.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fmviz.figures import palette
from fmviz.figures.palette import NEUTRAL
from fmviz.metrics import METRICS, Metric

X = Literal["epoch", "seconds", "used_bases"]
X_TITLES: dict[str, str] = {
    "epoch": "epoch",
    "seconds": "seconds in the solver",
    "used_bases": "bases in use",
}
MOST_POINTS = 2_000
NONE = 0.5
"""Where a count of 0 stands on a logarithmic axis."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon", "pentagon")

# Readable on both themes, and apart under the common colour vision deficiencies.
BLUE = "#3f88c5"
ORANGE = "#db6f22"
GREEN = "#07aa57"
PURPLE = "#9a6bd1"
GREY = palette.NEUTRAL

PARTS: dict[str, tuple[str, str]] = {
    "loss": ("loss", BLUE),
    "penalty_sparse": ("λ Ω(P)", ORANGE),
    "penalty_p": ("λₚ ‖P‖²", GREEN),
    "penalty_w": ("λ_w ‖w‖²", PURPLE),
}


def evenly(n: int, most: int) -> np.ndarray:
    """Return at most `most` of the places 0, …, n − 1, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def thin(history: pd.DataFrame) -> pd.DataFrame:
    """Return at most `MOST_POINTS` rows, evenly spread, the first and the last among them."""
    return history.iloc[evenly(len(history), MOST_POINTS)]


def metric_axis(metric: Metric, values: Sequence[float] | np.ndarray) -> dict[str, object]:
    """Return the titled axis of a metric, limited to its range."""
    low, high = metric.limits
    axis = axis_type(values) if metric.axis == "log" else {"type": "linear"}
    limits = {} if axis["type"] == "log" else {"minallowed": low, "maxallowed": high}
    return {**axis, **limits, "title": metric.label}


def axis_type(values: Sequence[float] | np.ndarray) -> dict[str, object]:
    """Return a linear axis, or a logarithmic one for positive values over more than a factor of 20."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    if not (finite.size and finite.min() > 0 and finite.max() > 20 * finite.min()):
        return {"type": "linear"}
    return {
        "type": "log",
        "dtick": 1 if finite.max() > 300 * finite.min() else "D2",
        "exponentformat": "power",
    }


def log_counts_axis(largest: float) -> dict[str, object]:
    """Return a logarithmic axis of counts with a tick for 0."""
    decades = range(int(np.ceil(np.log10(max(largest, 1.0)))) + 1)
    return {
        "type": "log",
        "range": [np.log10(NONE) - 0.1, np.log10(max(largest, 1.0)) + 0.15],
        "tickvals": [NONE, *(10.0**i for i in decades)],
        "ticktext": ["0", *(f"{10**i:,}" for i in decades)],
    }


def _line(
    history: pd.DataFrame,
    x: X,
    column: str,
    name: str,
    color: str,
    *,
    dash: str | None = None,
    width: float = 2,
    form: str = ".5g",
) -> go.Scatter:
    return go.Scatter(
        x=history[x].to_numpy(),
        y=history[column].to_numpy(),
        name=name,
        mode="lines+markers" if len(history) <= 60 else "lines",
        marker={"size": 4, "color": color},
        line={"color": color, "width": width, "dash": dash},
        hovertemplate=f"%{{y:{form}}}",
    )


def finish(figure: go.Figure, height: int, top: int = 34, **layout: object) -> go.Figure:
    """Set what all figures share: a transparent ground, narrow margins, a legend above."""
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
    figure.update_yaxes(automargin=True, zeroline=False)
    return figure


def _finish(figure: go.Figure, x: X, revision: str, **axis: object) -> go.Figure:
    figure.update_xaxes(title_text=X_TITLES[x], rangemode="tozero", **axis)
    return finish(
        figure,
        290,
        hovermode="x unified",
        showlegend=len(figure.data) > 1,
        # The same revision keeps zoom and hidden curves while points are added; the axis is part of it.
        uirevision=f"{revision}:{x}",
        transition={"duration": 0},
    )


def objective(
    history: pd.DataFrame,
    x: X = "epoch",
    *,
    parts: bool = False,
    terms: Mapping[str, str] | None = None,
    color: str = palette.NEUTRAL,
    revision: str = "",
) -> go.Figure:
    """Draw the objective against epochs or seconds.

    Parameters
    ----------
    history : DataFrame
        Columns ``epoch``, ``seconds``, ``objective``, and with `parts` the four parts.
    x : {"epoch", "seconds"}
        The horizontal axis.
    parts : bool
        Whether the parts are drawn as well, as far as they are not zero throughout.
    terms : mapping, optional
        Other names of parts than those in `PARTS`.
    color : str
        The colour of the total.
    revision : str
        Names the run: another one forgets the zoom.

    Returns
    -------
    plotly Figure
    """
    history = thin(history)
    figure = go.Figure(_line(history, x, "objective", "objective", color, width=2.6, form=".6g"))
    if parts:
        for column, (name, part_color) in PARTS.items():
            if history[column].to_numpy().any():
                name = (terms or {}).get(column, name)
                figure.add_trace(_line(history, x, column, name, part_color, dash="dot", width=1.6))
    figure.update_yaxes(axis_type(history["objective"]))
    return _finish(figure, x, revision)


def sparsity(
    history: pd.DataFrame,
    x: X = "epoch",
    *,
    true_features: int | None = None,
    true_interactions: Mapping[str, int] | None = None,
    parts: Mapping[str, str] | None = None,
    revision: str = "",
) -> go.Figure:
    """Draw the used interactions above the used features, with dashed lines at the true numbers if known.

    Parameters
    ----------
    history : DataFrame
        Columns ``epoch``, ``seconds``, ``used_interactions``, ``used_features``.
    x, revision
        As in `objective`.
    true_features : int, optional
        How many there are in truth.
    true_interactions : mapping, optional
        How many there are in truth of the interactions in a column.
    parts : mapping, optional
        Names by columns, in place of all interactions: those of each order.

    Returns
    -------
    plotly Figure
    """
    history = thin(history)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.09)
    known = true_interactions or {}
    kinds = (parts or {"used_interactions": "interactions"}).items()
    rows = [
        (1, column, name, color, known.get(column))
        for (column, name), color in zip(kinds, itertools.cycle((ORANGE, PURPLE, GREEN)), strict=False)
    ]
    rows.append((2, "used_features", "features", BLUE, true_features))
    named = False
    for row, column, name, color, truth in rows:
        figure.add_trace(_line(history, x, column, name, color, form=",d"), row=row, col=1)
        if truth is not None:
            figure.add_trace(
                go.Scatter(
                    x=history[x].iloc[[0, -1]].to_numpy(),
                    y=[truth, truth],
                    name="in truth",
                    legendgroup="truth",
                    showlegend=not named,
                    mode="lines",
                    line={"color": GREY, "width": 1.4, "dash": "dash"},
                    hovertemplate="%{y:,d}",
                ),
                row=row,
                col=1,
            )
            named = True
    figure.update_yaxes(rangemode="tozero", nticks=4)
    figure.update_xaxes(rangemode="tozero")
    return _finish(figure, x, revision, row=2, col=1)


def metrics_in(history: Container[str]) -> list[Metric]:
    """Return the metrics of predictions in the columns of a history, the most telling first."""
    return [metric for name, metric in METRICS.items() if f"train_{name}" in history]


def prediction(
    history: pd.DataFrame,
    metric: Metric,
    x: X = "epoch",
    *,
    revision: str = "",
) -> go.Figure:
    """Draw a metric on the training rows and, if there are any, on the validation rows.

    Parameters
    ----------
    history : DataFrame
        Columns ``epoch``, ``seconds``, ``train_<metric>`` and perhaps ``validation_<metric>``.
    metric : Metric
        What is drawn.
    x, revision
        As in `objective`.

    Returns
    -------
    plotly Figure
    """
    history = thin(history)
    figure = go.Figure()
    columns = [
        (f"train_{metric.name}", "training", GREY),
        (f"validation_{metric.name}", "validation", ORANGE),
    ]
    present = [item for item in columns if item[0] in history]
    for column, name, color in present:
        figure.add_trace(_line(history, x, column, name, color))
    values = np.concatenate([history[column].to_numpy(dtype=float) for column, _, _ in present])
    figure.update_yaxes(metric_axis(metric, values))
    return _finish(figure, x, revision)


def recovery(history: pd.DataFrame, x: X = "epoch", *, revision: str = "") -> go.Figure:
    """Draw the recovery of the planted structure: F1 of the support and estimation error.

    A thick green line at 1 marks the epochs at which the support is exactly the true one.

    Parameters
    ----------
    history : DataFrame
        Columns ``epoch``, ``seconds``, of pairs ``support_f1``, ``support_recovered`` and perhaps
        ``estimation_error``, of triples ``support_f1_3`` and ``support_recovered_3``; of either or of both.
    x, revision
        As in `objective`.

    Returns
    -------
    plotly Figure
    """
    history = thin(history)
    figure = go.Figure()
    pairs, triples = "support_f1" in history, "support_f1_3" in history
    if pairs:
        name = "F1 of pairs" if triples else "support F1"
        figure.add_trace(_line(history, x, "support_f1", name, BLUE, form=".3f"))
    if triples:
        figure.add_trace(_line(history, x, "support_f1_3", "F1 of triples", PURPLE, form=".3f"))
    if "estimation_error" in history:
        figure.add_trace(
            _line(history, x, "estimation_error", "estimation error", ORANGE, dash="dot", form=".3f")
        )
    measured = [c for c in ("support_recovered", "support_recovered_3") if c in history]
    exact = (history[measured].to_numpy(dtype=float) == 1.0).all(axis=1)
    if exact.any():
        figure.add_trace(
            go.Scatter(
                x=history[x].to_numpy(),
                y=np.where(exact, 1.0, np.nan),
                name="support exact",
                mode="lines+markers",
                marker={"size": 6, "color": GREEN},
                line={"color": GREEN, "width": 6},
                opacity=0.55,
                hovertemplate="yes",
                connectgaps=False,
            )
        )
    top = 1.05
    if "estimation_error" in history:
        errors = history["estimation_error"].to_numpy(dtype=float)
        errors = errors[np.isfinite(errors)]
        top = max(top, 1.05 * min(float(errors.max(initial=0.0)), 5.0))
    figure.update_yaxes(range=[0, top])
    return _finish(figure, x, revision)


def mark_epochs(figure: go.Figure, history: pd.DataFrame, x: str, words: Mapping[int, str]) -> go.Figure:
    """Draw a labelled vertical line over all panels at some epochs; return the figure.

    Parameters
    ----------
    figure : plotly Figure
        Of `fmviz.figures.training`.
    history : DataFrame
        Columns ``epoch``, ascending, and ``seconds``: an axis of seconds has the line where its epoch ended.
    x : {"epoch", "seconds"}
        The horizontal axis.
    words : mapping of int to str
        What to write beside the line of an epoch.
    """
    for number, (epoch, text) in enumerate(words.items()):
        place = float(np.interp(epoch, history["epoch"], history[x]))
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
        figure.add_annotation(
            x=place,
            y=1.0,
            xref="x",
            yref="paper",
            xanchor="left",
            yanchor="top",
            xshift=3,
            yshift=-13 * (number % 3),  # three lines of 13 pixels
            text=text,
            showarrow=False,
            font={"size": 11, "color": palette.NEUTRAL},
        )
    return figure


_BINS = 60
_ROWS: dict[str, str] = {
    "kept": BLUE,
    "set aside": ORANGE,
    "wrong, set aside": GREEN,
    "wrong, kept": "#c23b3b",
}
"""Colours of rows by whether they are set aside and wrong."""
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
        What becomes of rows, keys of `COLORS`; the bars are stacked.
    window : (float, float)
        From where to where.
    lines : sequence of (float, str)
        Places that are marked, with their names.
    title : str
        Of the horizontal axis.
    """
    low, high = window
    edges = np.linspace(low, high, _BINS + 1)
    width = edges[1] - edges[0]
    inside = np.clip(signed, low + 0.5 * width, high - 0.5 * width)
    middle = 0.5 * (edges[:-1] + edges[1:])
    figure = go.Figure()
    for name, mask in groups.items():
        counts, _ = np.histogram(inside[mask], edges)
        figure.add_bar(
            x=middle,
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


def spectrum(values: np.ndarray, edge: float | None) -> go.Figure:
    """Draw eigenvalues, the largest first; those above √ε₃ are not shrunk.

    Parameters
    ----------
    values : (r,) ndarray
        Of this machine's Z.
    edge : float or None
        √ε₃; None without a cap.
    """
    values = np.sort(values[values > 0.0])[::-1][:30]
    free = np.ones(values.size, dtype=bool) if edge is None else values > edge
    figure = go.Figure()
    names = ("free", "shrunk") if edge is not None else ("this machine", "")
    for name, mask, color in zip(names, (free, ~free), (BLUE, NEUTRAL), strict=True):
        if mask.any() or name == "free":
            figure.add_bar(
                x=1 + np.flatnonzero(mask),
                y=values[mask],
                name=f"{name} ({int(mask.sum())})",
                marker={"color": color},
                hovertemplate="eigenvalue %{x}: %{y:.4g}",
            )
    high = 1.12 * float(values.max(initial=0.0)) or 1.0
    if edge is not None:
        # A cap far above all eigenvalues is written at the top instead of scaling the axis.
        figure.add_hline(
            min(edge, high),
            line={"color": NEUTRAL, "width": 1.4, "dash": "dash"},
            annotation={
                "text": "√ε₃" if edge <= high else f"√ε₃ = {edge:.3g}, beyond this picture",
                "font": {"size": 12, "color": NEUTRAL},
            },
            annotation_position="top right" if edge <= 0.9 * high else "bottom right",
        )
    figure.update_xaxes(title_text="eigenvalue of Z, by size")
    figure.update_yaxes(title_text="λ", range=[0.0, high])
    return finish(figure, 300, barmode="overlay", bargap=0.25, legend=_LEGEND, showlegend=True)
