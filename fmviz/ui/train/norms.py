"""The norms of the rows of P, by size: how much every feature takes part in interactions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from fmviz.figures.palette import NEUTRAL, regularizer_color
from fmviz.figures.training import finish
from fmviz.lab.runner import truth_of
from fmviz.ui.charts import chart
from fmviz.ui.settings.state import Settings
from fmviz.ui.train.panels import Panel, Scene

_MOST = 200
# So many names have room below their bars.
_NAMED = 16


def _draw(scene: Scene, settings: Settings) -> None:
    data, truth = scene.data, truth_of(scene.data)
    P = scene.fit.parameters.P  # type: ignore[union-attr]
    live = np.flatnonzero(P.any(axis=1))
    norms = pd.Series(np.linalg.norm(P[live], axis=1), live).sort_values(ascending=False, kind="stable")
    shown = norms.head(_MOST)
    groups = {"": (np.ones(len(shown), dtype=bool), regularizer_color(scene.experiment.regularizer.name))}
    if truth is not None:
        true = (truth != 0).any(axis=0)[shown.index]
        groups = {"interacts in truth": (true, groups[""][1]), "does not": (~true, NEUTRAL)}
    words = f"{len(P) - len(live):,} of {len(P):,} rows are exactly zero."
    st.caption(words + (f" The largest {_MOST} of {len(live):,} others are drawn." * (len(live) > _MOST)))
    names = [data.feature_names[j] for j in shown.index]
    figure = go.Figure()
    for name, (mask, color) in groups.items():
        figure.add_bar(
            x=1 + np.flatnonzero(mask),
            y=shown[mask],
            name=name,
            width=0.8,
            marker={"color": color, "line": {"width": 0}},
            customdata=[feature for feature, here in zip(names, mask, strict=True) if here],
            hovertemplate="%{customdata}: %{y:.4g}<extra></extra>",
        )
    ticks = {"tickvals": list(range(1, len(names) + 1)), "ticktext": names} if len(names) <= _NAMED else {}
    figure.update_xaxes(title_text="features, by the norm of their row", **ticks)
    figure.update_yaxes(title_text="norm", rangemode="tozero")
    chart(
        finish(figure, 310, showlegend=truth is not None),
        key="train_norms",
        alt=f"The norms of the rows, the largest first. {words}",
    )


NORMS = Panel(
    "norms",
    lambda scene: f"Norms of the rows of {scene.machine.notation.matrix}",
    "curves",
    lambda scene: scene.drawn and scene.machine.factorised and not scene.machine.convex,
    draw=_draw,
)
