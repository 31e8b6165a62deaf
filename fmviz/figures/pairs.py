"""Figures of pairs along λ: their weights, and their selection frequencies on halves of the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fmviz.figures import palette
from fmviz.figures.interactions import short
from fmviz.figures.training import exponents, finish

LABELLED = 5
"""The number of labelled pairs, the strongest at the smallest λ."""
_LINE, _HEIGHT = 15, 280
# The maximum number of true pairs drawn, and of other pairs: those with the largest weights.
_MOST = 150
_SHADES = [[0.0, "rgba(125,133,144,0.1)"], [0.5, "#8db9dd"], [1.0, "#1c61a6"]]


def _names(pair: tuple[int, int], names: Sequence[str]) -> str:
    return " × ".join(short(names[feature], 12) for feature in pair)


def weights(
    lambdas: Sequence[float],
    W: Sequence[np.ndarray],
    names: Sequence[str],
    color: str,
    *,
    truth: np.ndarray | None = None,
    mark: float | None = None,
    band: tuple[float, float] | None = None,
) -> go.Figure:
    """Draw the weights of pairs against λ; the strongest pairs are labelled at the smallest λ.

    Parameters
    ----------
    lambdas : (L,) sequence of float
        Ascending.
    W : L (d, d) ndarrays
        The weights.
    names : d str
        The feature names.
    color : str
        The colour of the true pairs or, if these are unknown, of the labelled pairs.
    truth : (d, d) ndarray, optional
        The true weights, non-zero for true pairs.
    mark : float, optional
        The position of a vertical line.
    band : (float, float), optional
        A shaded range of λ.
    """
    i, j = np.triu_indices(len(names), 1)
    values = np.array([weight[i, j] for weight in W])
    true = np.full(i.size, True) if truth is None else truth[i, j] != 0
    order = np.argsort(-np.abs(values).max(axis=0), kind="stable")
    drawn = np.concatenate([order[true[order]][:_MOST], order[~true[order]][:_MOST]])
    drawn = drawn[np.argsort(-np.abs(values[0, drawn]), kind="stable")]
    labels = {pair: _names((i[pair], j[pair]), names) for pair in drawn}
    top, others = drawn[:LABELLED], drawn[LABELLED:]
    colored = np.isin(np.arange(i.size), top) if truth is None else true
    figure, place = go.Figure(), np.inf
    for name, shown in (("other pairs", others[~colored[others]]), ("true pairs", others[colored[others]])):
        if shown.size:
            # One trace of many lines with gaps between them.
            figure.add_scatter(
                x=np.tile([*lambdas, np.nan], shown.size),
                y=np.vstack([values[:, shown], np.full(shown.size, np.nan)]).T.ravel(),
                text=np.repeat([labels[pair] for pair in shown], len(lambdas) + 1),
                name=name,
                mode="lines",
                line={"color": color if colored[shown[0]] else palette.NEUTRAL, "width": 1},
                opacity=0.55,
                hovertemplate="%{text}, λ = %{x:.4g}: %{y:.4g}<extra></extra>",
            )
    step = _LINE / (_HEIGHT - 80) * (max(0.0, values.max(initial=0.0)) - min(0.0, values.min(initial=0.0)))
    for pair in top[np.argsort(-values[0, top], kind="stable")]:
        shade, place = color if colored[pair] else palette.NEUTRAL, min(place - step, values[0, pair])
        figure.add_scatter(
            x=lambdas,
            y=values[:, pair],
            name=labels[pair],
            mode="lines",
            line={"color": shade, "width": 2},
            showlegend=False,
            hovertemplate="%{fullData.name}, λ = %{x:.4g}: %{y:.4g}<extra></extra>",
        ).add_annotation(
            x=0,
            xref="paper",
            y=place,
            text=labels[pair],
            showarrow=False,
            xanchor="right",
            font={"size": 11, "color": shade},
        )
    if band is not None:
        figure.add_vrect(*band, fillcolor=color, opacity=0.12, line_width=0)
    if mark is not None:
        figure.add_vline(mark, line={"color": palette.NEUTRAL, "width": 1.4, "dash": "dash"})
    room = 12 + 6 * max((len(labels[pair]) for pair in top), default=0)
    figure.update_xaxes(type="log", title="λ", exponentformat=exponents(np.array(lambdas)), dtick=1)
    figure.update_yaxes(title="weight", side="right")
    return finish(figure, _HEIGHT, 30, hovermode="closest", margin_l=room, showlegend=truth is not None)


def square(share: pd.Series, d: int) -> np.ndarray:
    """Return the symmetric (d, d) matrix of values of pairs (i, j) of features, the index of `share`."""
    matrix = np.zeros((d, d))
    i, j = (share.index.get_level_values(level) for level in (0, 1))
    matrix[i, j] = matrix[j, i] = share
    return matrix


def frequency_matrix(share: pd.Series, names: Sequence[str]) -> go.Figure:
    """Draw the selection frequency of each pair at one λ: a column of `fmviz.selection_frequencies`."""
    d, labels = len(names), [short(name, 24) for name in names]
    z = square(share, d)
    z[range(d), range(d)] = np.nan
    heat = go.Heatmap(
        z=z,
        x=np.arange(d),
        y=np.arange(d),
        customdata=np.array(np.meshgrid(labels, labels)).T,
        zmin=0.0,
        zmax=1.0,
        colorscale=_SHADES,
        showscale=False,
        hovertemplate="%{customdata[0]} × %{customdata[1]}: %{z:.0%}<extra></extra>",
    )
    axis = {
        "tickvals": [*range(d)] if d <= 12 else [],
        "ticktext": labels,
        "showgrid": False,
        "constrain": "domain",
    }
    figure = (
        go.Figure(heat)
        .update_xaxes(axis)
        .update_yaxes(axis, autorange="reversed", scaleanchor="x", constraintoward="top")
    )
    return finish(figure, _HEIGHT, 8, showlegend=False)


def frequency_strip(
    table: pd.DataFrame,
    names: Sequence[str],
    *,
    truth: np.ndarray | None = None,
    mark: float | None = None,
    most: int = 12,
) -> go.Figure:
    """Draw the selection frequencies of the most frequently selected pairs along λ.

    Parameters
    ----------
    table : DataFrame
        A table by `fmviz.selection_frequencies`.
    names : sequence of str
        The features.
    truth : (d, d) ndarray, optional
        The true weights; the names of true pairs are bold.
    mark : float, optional
        The position of a vertical line.
    most : int
        The maximum number of pairs drawn.
    """
    top = table.loc[table.mean(axis=1).sort_values(ascending=False, kind="stable").index[:most]]
    labels = [_names(pair, names) for pair in top.index]
    if truth is not None:
        labels = [
            f"<b>{label}</b>" * bool(truth[p]) or label for label, p in zip(labels, top.index, strict=True)
        ]
    x = np.log10(top.columns.to_numpy(dtype=float))
    decades = np.arange(np.ceil(x.min()), x.max() + 1e-9)
    figure = go.Figure(
        go.Heatmap(
            z=top.to_numpy(),
            x=x,
            y=np.arange(len(top)),
            text=np.repeat(np.array(labels, dtype=object)[:, None], x.size, axis=1),
            customdata=np.tile(top.columns, (len(top), 1)),
            zmin=0.0,
            zmax=1.0,
            colorscale=_SHADES,
            ygap=1,
            colorbar={"thickness": 8, "tickformat": ".0%", "outlinewidth": 0, "nticks": 3},
            hovertemplate="%{text}, λ = %{customdata:.4g}: %{z:.0%}<extra></extra>",
        )
    ).update_xaxes(title="λ", tickvals=decades, ticktext=[f"{10.0**at:g}" for at in decades])
    if mark is not None:
        figure.add_vline(np.log10(mark), line={"color": palette.NEUTRAL, "width": 1.4, "dash": "dash"})
    figure.update_yaxes(tickvals=[*range(len(top))], ticktext=labels, autorange="reversed", showgrid=False)
    return finish(figure, _HEIGHT, 8, showlegend=False)
