"""Pictures of how far predictions are off, which rows are set aside, and what is left of the spectrum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from fmviz.figures.palette import NEUTRAL
from fmviz.figures.training import BLUE, GREEN, ORANGE

__all__ = ["COLORS", "highest_bar", "precision_recall", "residuals", "spectrum"]

_BINS = 60
_RED = "#c23b3b"
COLORS: dict[str, str] = {
    "kept": BLUE,
    "set aside": ORANGE,
    "wrong, set aside": GREEN,
    "wrong, kept": _RED,
}
"""What becomes of rows."""


def residuals(
    signed: np.ndarray,
    groups: Mapping[str, np.ndarray],
    window: tuple[float, float],
    lines: Sequence[tuple[float, str]],
    title: str,
    most: float | None = None,
) -> go.Figure:
    """Draw a histogram of residuals; those beyond the window are in its outermost bars.

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
    most : float, optional
        Where the vertical axis ends, so that pictures can be compared.
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
            marker={"color": COLORS[name], "line": {"width": 0}},
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
    figure.update_layout(barmode="stack", bargap=0.0)
    figure.update_xaxes(title_text=title, range=[low, high], zeroline=False)
    figure.update_yaxes(title_text="rows", range=None if most is None else [0, most], zeroline=False)
    return _finish(figure, 300)


def highest_bar(signed: np.ndarray, window: tuple[float, float]) -> int:
    """Return the largest number of rows in a bar of `residuals`."""
    low, high = window
    half = 0.5 * (high - low) / _BINS
    return int(np.histogram(np.clip(signed, low + half, high - half), _BINS, window)[0].max(initial=1))


def spectrum(
    values: np.ndarray, edge: float | None, plain: np.ndarray | None = None, most: int = 30
) -> go.Figure:
    """Draw eigenvalues, the largest first: those beyond √ε₃ are free.

    Parameters
    ----------
    values : (r,) ndarray
        Of this machine's Z.
    edge : float or None
        √ε₃; None without a cap.
    plain : ndarray, optional
        Those of the plain machine.
    most : int
        So many are drawn.
    """
    values = np.sort(values[values > 0.0])[::-1][:most]
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
    if plain is not None:
        plain = np.sort(plain[plain > 0.0])[::-1][:most]
        figure.add_scatter(
            x=1 + np.arange(plain.size),
            y=plain,
            name="plain machine",
            mode="markers",
            marker={"color": ORANGE, "size": 8, "symbol": "line-ew", "line": {"color": ORANGE, "width": 3}},
            hovertemplate="eigenvalue %{x} of the plain machine: %{y:.4g}",
        )
    high = 1.12 * max(values.max(initial=0.0), 0.0 if plain is None else plain.max(initial=0.0)) or 1.0
    if edge is not None:
        # A cap far beyond all eigenvalues is told, and leaves them their room.
        figure.add_hline(
            min(edge, high),
            line={"color": NEUTRAL, "width": 1.4, "dash": "dash"},
            annotation={
                "text": "√ε₃" if edge <= high else f"√ε₃ = {edge:.3g}, beyond this picture",
                "font": {"size": 12, "color": NEUTRAL},
            },
            annotation_position="top right" if edge <= 0.9 * high else "bottom right",
        )
    figure.update_layout(barmode="overlay", bargap=0.25)
    figure.update_xaxes(title_text="eigenvalue of Z, by size", zeroline=False)
    figure.update_yaxes(title_text="λ", range=[0.0, high], zeroline=False)
    return _finish(figure, 300)


def precision_recall(
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]], point: tuple[float, float] | None, base: float
) -> go.Figure:
    """Draw how many of the rows that are furthest off are wrong in truth.

    Parameters
    ----------
    curves : mapping of str to (recall, precision)
        By machine, for every length of the list.
    point : (recall, precision), optional
        Of the rows that are set aside.
    base : float
        The share of wrong rows, which a list at random has.
    """
    figure = go.Figure()
    for (name, (recall, precision)), color in zip(curves.items(), (BLUE, ORANGE, NEUTRAL), strict=False):
        kept = np.unique(np.linspace(0, recall.size - 1, 400).round().astype(int))
        figure.add_scatter(
            x=recall[kept],
            y=precision[kept],
            name=name,
            mode="lines",
            line={"color": color, "width": 2},
            hovertemplate="recall %{x:.3f}, precision %{y:.3f}",
        )
    if point is not None:
        figure.add_scatter(
            x=[point[0]],
            y=[point[1]],
            name="set aside",
            mode="markers",
            marker={"color": BLUE, "size": 11, "symbol": "diamond"},
            hovertemplate="set aside: recall %{x:.3f}, precision %{y:.3f}",
        )
    figure.add_hline(base, line={"color": NEUTRAL, "width": 1, "dash": "dot"})
    figure.update_xaxes(title_text="recall of wrong rows", range=[0, 1.02], zeroline=False)
    figure.update_yaxes(title_text="precision", range=[0, 1.05], zeroline=False)
    return _finish(figure, 300)


def _finish(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 12, "t": 34, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.08, "yanchor": "bottom"},
        showlegend=True,
    )
    figure.update_xaxes(automargin=True)
    figure.update_yaxes(automargin=True)
    return figure
