"""Plot the residuals of a capped loss, and the spectrum of a robust machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from fmviz.figures.palette import NEUTRAL
from fmviz.figures.training import BLUE, GREEN, ORANGE

__all__ = ["COLORS", "residuals", "spectrum"]

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
    figure.update_yaxes(title_text="rows", zeroline=False)
    return _finish(figure)


def spectrum(values: np.ndarray, edge: float | None, most: int = 30) -> go.Figure:
    """Draw eigenvalues, the largest first: those beyond √ε₃ are free.

    Parameters
    ----------
    values : (r,) ndarray
        Of this machine's Z.
    edge : float or None
        √ε₃; None without a cap.
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
    high = 1.12 * float(values.max(initial=0.0)) or 1.0
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
    return _finish(figure)


def _finish(figure: go.Figure) -> go.Figure:
    figure.update_layout(
        height=300,
        margin={"l": 8, "r": 12, "t": 34, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1.08, "yanchor": "bottom"},
        showlegend=True,
    )
    figure.update_xaxes(automargin=True)
    figure.update_yaxes(automargin=True)
    return figure
