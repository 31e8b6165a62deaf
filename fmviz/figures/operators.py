"""Plot counts of interactions or features against the strength λ of proximal operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import plotly.graph_objects as go

from fmviz.figures.palette import NEUTRAL, symbol_of
from fmviz.figures.training import DASHES, finish
from fmviz.typography import superscript

Curve: TypeAlias = tuple[str, str, np.ndarray, int]
"""A line: label, colour, a count for each λ, and the variant of the regularizer."""


def power(exponent: int) -> str:
    """Return a power of two, such as "2⁻³"."""
    return f"2{superscript(exponent)}"


def counts_figure(
    exponents: Sequence[int],
    curves: Sequence[Curve],
    *,
    what: str,
    total: int,
    current: int | None = None,
) -> go.Figure:
    """Draw counts against λ = 2^e.

    Parameters
    ----------
    exponents : sequence of int, length m
        The grid.
    curves : sequence of Curve
        One line each; coinciding lines differ by their markers.
    what : str
        The counted quantity, such as "used interactions".
    total : int
        The maximum possible count, drawn as a thin line.
    current : int, optional
        The marked exponent.
    """
    figure = go.Figure()
    x = list(exponents)
    for number, (label, color, counts, reading) in enumerate(curves):
        figure.add_scatter(
            x=x,
            y=counts,
            mode="lines+markers",
            name=label,
            line={"color": color, "width": 2.5, "dash": DASHES[reading % len(DASHES)]},
            marker={
                "symbol": symbol_of(color),
                # Later markers are smaller, to keep markers below visible.
                "size": max(6, 11 - number),
                "color": color,
            },
            customdata=[[power(e), f"{2.0**e:.6g}", f"{int(c):,}"] for e, c in zip(x, counts, strict=True)],
            hovertemplate=f"{label}: %{{customdata[2]}} of {total:,}<extra></extra>",
        )
    figure.add_hline(y=total, line={"color": NEUTRAL, "width": 1, "dash": "dot"})
    if current is not None:
        figure.add_vline(
            x=current,
            line={"color": NEUTRAL, "width": 2},
            annotation={
                "text": f"λ = {power(current)}",
                "yanchor": "bottom",
                "y": 1.0,
                "x": current,
                "xanchor": "center",
                "font": {"size": 13},
                "showarrow": False,
            },
        )
    figure.update_xaxes(
        title="λ",
        tickvals=x,
        ticktext=[power(e) for e in x],
        range=[min(x) - 0.5, max(x) + 0.5],
        unifiedhovertitle={"text": "λ = %{customdata[0]} = %{customdata[1]}"},
    )
    figure.update_yaxes(
        title=what.capitalize(),
        range=[-0.04 * max(total, 1), 1.06 * max(total, 1)],
        tickformat=",d",
        dtick=1 if total <= 8 else None,  # Otherwise plotly puts ticks between integers.
    )
    return finish(
        figure,
        320,
        40,
        hovermode="x unified",
        legend={"orientation": "h", "yanchor": "top", "y": -0.22, "x": 0},
    )


def describe(exponents: Sequence[int], curves: Sequence[Curve], what: str, total: int) -> str:
    """Return a sentence that describes the figure, for screen readers."""
    ends = "; ".join(
        f"{label} from {int(counts[0]):,} to {int(counts[-1]):,}" for label, _, counts, _ in curves
    )
    reach = f"λ from {power(exponents[0])} to {power(exponents[-1])}"
    return f"{what.capitalize()} of {total:,} against {reach}: {ends}."
