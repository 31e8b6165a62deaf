"""Explanation of a zero in PPᵀ for two features, clicked on the matrix or chosen from lists."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.figures import interactions as figures
from fmviz.lab.background.job import JobView
from fmviz.lab.interpretation.why_zero import why_zero
from fmviz.lab.runner import Run
from fmviz.stage import Mark
from fmviz.ui import widgets
from fmviz.ui.charts import chart
from fmviz.ui.components import clicked_cell
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings, Values
from fmviz.ui.train.panels import Scene, TrainPanel

VIEW = (
    ParamSpec("cell_i", "int", -1, -1, 10_000_000, help="First feature, numbered from 0."),
    ParamSpec("cell_j", "int", -1, -1, 10_000_000, help="Second feature, numbered from 0."),
)
_SEEN = "fmviz:train:clicked"
# Longer lists are slow to send and tedious to scroll.
_MOST_LISTED = 5_000


def explains(view: JobView) -> bool:
    """Return whether pairs can be explained: for an FM of order 2 that is not training."""
    return view.machine.plain and not view.state.active and view.parameters is not None


def chosen(settings: Values, d: int) -> tuple[int, int] | None:
    """Return the two chosen features, or None."""
    i, j = settings["cell_i"], settings["cell_j"]
    return (i, j) if i != j and 0 <= i < d and 0 <= j < d else None


def take_click(settings: Settings, key: str, d: int) -> None:
    """Set the features to the newly clicked cell of the matrix view with this key."""
    cell = clicked_cell(key)
    if cell is None or st.session_state.get(_SEEN) == cell:
        return
    st.session_state[_SEEN] = cell
    if cell.picture == "gram" and cell.row != cell.col and max(cell.row, cell.col) < d:
        settings.set(cell_i=cell.row, cell_j=cell.col)


def mark(settings: Values, d: int) -> Mark | None:
    """Return the outline that marks the chosen cell."""
    pair = chosen(settings, d)
    return None if pair is None else Mark(*pair)


def _draw(scene: Scene, settings: Settings) -> None:
    """Draw the choice of two features and the explanation of their weight."""
    view, d, names = scene.fit, scene.data.X.shape[1], scene.data.feature_names
    with st.container(horizontal=True, vertical_alignment="bottom", key="train_cell"):
        for name, label in (("cell_i", "Feature"), ("cell_j", "with feature")):
            if settings[name] >= d:
                settings.set(**{name: -1})
            if d > _MOST_LISTED:
                widgets.control(settings, name, st.number_input, f"{label}, from 0", -1, d - 1, width=220)
            else:
                widgets.control(
                    settings,
                    name,
                    st.selectbox,
                    label,
                    range(-1, d),
                    format_func=lambda at: "–" if at < 0 else names[at],
                    width=260,
                )
    pair = chosen(settings, d)
    if pair is None:
        same = settings["cell_i"] >= 0 and settings["cell_i"] == settings["cell_j"]
        st.caption(
            "Choose two different features."
            if same
            else "Click a cell of the matrix above, or choose two features."
        )
        return
    assert view.parameters is not None
    problem = Run.prepare(view.experiment).problem.at(**view.experiment.strengths(view.epoch - 1))
    story = why_zero(problem.machines[view.output or 0], view.parameters, *pair)
    st.markdown(plain(story.sentence(names)))
    if reason := story.reason(names):
        st.markdown(plain(reason))
    rows = (story.first, story.second)
    live = [int(row.live.sum()) for row in rows]
    thresholds = []
    if story.thresholded and not story.shared.size:
        thresholds = [np.stack([row.pull for row in rows]), np.stack([row.threshold for row in rows])]
    figure = figures.two_rows(
        [names[row.feature] for row in rows],
        np.stack([row.values for row in rows]),
        *thresholds,
        dark=st.context.theme.type == "dark",
    )
    chart(
        figure,
        key="train_why",
        alt=f"Rows of {names[pair[0]]} ({live[0]} of {rows[0].values.size} entries non-zero) and "
        f"{names[pair[1]]} ({live[1]} non-zero); {story.shared.size} columns in common.",
    )
    words = ""
    if thresholds:
        pull, what, size = ("norm of the", "row", "norm") if story.by_norm else ("absolute", "entry", "size")
        words = (
            f"Pull: {pull} loss gradient of the {what}. A zero {what} stays zero up to the threshold, λ "
            f"times the weight of its {size} in Ω."
        )
    st.caption(f"At epoch {view.epoch:,}, recomputed from the parameters. {words}")


WHY = TrainPanel("why", "Why is this cell zero?", "", lambda scene: scene.clickable, draw=_draw)
