"""Trained models of several regularizers side by side: along λ, epoch by epoch, and why they differ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st

from fmviz import metrics
from fmviz.engine.penalties import PENALTIES
from fmviz.figures.palette import regularizer_color
from fmviz.figures.why import two_rows
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.datasets import Dataset
from fmviz.lab.interpretation.support import describe_support
from fmviz.lab.interpretation.why_zero import why_zero
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.search.epochs import EPOCHS, Learning, learn
from fmviz.lab.search.strength_path import PathFit, PathPlan
from fmviz.ui.charts import chart
from fmviz.ui.components.matrix_view import CodesFrame, FactorFrame, Panel, encode_codes, matrix_view
from fmviz.ui.escape import plain
from fmviz.ui.watching import failure, shared_task, watch

__all__ = ["draw_epochs", "draw_path", "draw_why", "label_of"]

_LEAST_WIDTH = 140


def label_of(strength: float) -> str:
    """Return what the slider displays for a strength."""
    return f"{strength:g}"


def draw_path(plan: PathPlan, driver: str | float, key: str, height: int, view: TaskView) -> None:
    """Draw PPᵀ of the fits of a plan, as far as they are there.

    Parameters
    ----------
    plan : PathPlan
        What is fitted.
    driver : str or float
        The key of the slider over the strengths; where it is hidden, the strength.
    key : str
        The key of the view.
    height : int
        The largest of a picture, in CSS pixels.
    view : TaskView
        The task that fits; its items are the fits.
    """
    if view.state is TaskState.FAILED:
        failure(view)
        return
    dataset = _data(plan)
    found = {(fit.experiment.regularizer, fit.experiment.lambda_sparse): fit for fit in view.items}
    shown = plan.lambdas if isinstance(driver, str) else (driver,)
    nothing = np.zeros((dataset.X.shape[1], plan.base.rank))

    def frame(name: str, strength: float) -> FactorFrame:
        fit: PathFit | None = found.get((name, strength))
        if fit is None or fit.parameters is None:
            return FactorFrame(nothing, label_of(strength), notice="Being trained")
        return _frame(fit.parameters.P, label_of(strength), dataset)

    panels = {name: [frame(name, strength) for strength in shown] for name in plan.regularizers}
    _view(panels, dataset, key, height, driver=driver if isinstance(driver, str) else None)


def draw_epochs(plan: PathPlan, strength: float, key: str, height: int) -> None:
    """Draw how PPᵀ of every regularizer comes about at one strength, from one random start.

    Parameters
    ----------
    plan : PathPlan
        What is fitted, but for the strengths.
    strength : float
        λ.
    key : str
        The key of the view.
    height : int
        The largest of a picture, in CSS pixels.
    """
    dataset = _data(plan)

    def body(view: TaskView) -> None:
        if view.state is TaskState.FAILED:
            failure(view)
        elif view.state.active:
            st.caption(f":material/hourglass_top: Training {len(plan.regularizers)} models …")
        else:
            made: list[Learning] = list(view.items)
            last = max(len(one.factors) for one in made)
            keys = [f"Epoch {epoch:,}" for epoch in EPOCHS[:last]]
            panels = {
                one.regularizer: [
                    _frame(one.factors[min(at, len(one.factors) - 1)], key, dataset)
                    for at, key in enumerate(keys)
                ]
                for one in made
            }
            _view(panels, dataset, key, height, player=True)

    watch(shared_task(f"epochs:{plan.digest}:{strength!r}", partial(learn, plan, strength)), body)


def draw_why(plan: PathPlan, view: TaskView, name: str, strength: float, pair: tuple[int, int]) -> None:
    """Draw why a regularizer's fit uses a pair of features, or why it does not."""
    fit = next(
        (
            fit
            for fit in view.items
            if fit.experiment.regularizer == name and fit.experiment.lambda_sparse == strength
        ),
        None,
    )
    if fit is None or fit.parameters is None:
        st.caption("Being trained.")
        return
    names = _data(plan).feature_names
    (problem,) = Run.prepare(fit.experiment).problem.machines
    story = why_zero(problem, fit.parameters, *pair)
    st.markdown(plain(f"{story.sentence(names)} {story.reason(names)}"))
    rows = (story.one, story.other)
    held = []
    if story.thresholded and not story.shared.size:
        held = [np.stack([row.pull for row in rows]), np.stack([row.threshold for row in rows])]
    chart(
        two_rows(
            [names[j] for j in pair],
            np.stack([row.values for row in rows]),
            *held,
            dark=st.context.theme.type == "dark",
        ),
        key="arena_why",
        alt=f"The rows of {names[pair[0]]} and {names[pair[1]]} in P: {story.sentence(names)}",
    )


def _data(plan: PathPlan) -> Dataset:
    return load_dataset(plan.base.dataset, **dict(plan.base.dataset_params))


def _frame(P: np.ndarray, key: str, dataset: Dataset) -> FactorFrame:
    return FactorFrame(P, key, describe_support(metrics.used_pairs(P), dataset.truth))


def _view(
    panels: dict[str, list[FactorFrame]],
    dataset: Dataset,
    key: str,
    height: int,
    *,
    driver: str | None = None,
    player: bool = False,
) -> None:
    drawn = [
        Panel(PENALTIES[name].label, frames, color=regularizer_color(name), gram_label="PPᵀ")
        for name, frames in panels.items()
    ]
    if dataset.truth is not None:
        drawn.insert(0, _truth(dataset.truth, dataset.feature_names))
    matrix_view(
        drawn,
        key=key,
        driver_key=driver,
        player=player,
        show="gram",
        columns=len(drawn),
        min_width=_LEAST_WIDTH,
        # Weights overshoot in the first epochs; on their scale, all later ones would look alike.
        gram_scale=None if dataset.truth is None else 2.0 * float(np.abs(dataset.truth).max()),
        max_height=height,
        feature_names=dataset.feature_names,
    )


def _truth(truth: np.ndarray, names: Sequence[str]) -> Panel:
    codes, scale = encode_codes(truth, grey_diagonal=True)
    d = truth.shape[0]
    count = int(np.count_nonzero(np.triu(truth, 1)))
    caption = f"{count:,} of {d * (d - 1) // 2:,} pairs interact."
    frame = CodesFrame(codes, scale, caption=caption)
    return Panel("In truth", [frame], gram_label="W", row_labels=names, col_labels=names)
