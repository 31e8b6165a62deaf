"""Trained models of several regularizers side by side: along λ, epoch by epoch, and why they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import streamlit as st

from fmviz import metrics
from fmviz.engine.penalties import PENALTIES
from fmviz.figures.palette import regularizer_color
from fmviz.figures.why import two_rows
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.datasets import Dataset
from fmviz.lab.interpretation.support import compare_supports, describe_support
from fmviz.lab.interpretation.why_zero import why_zero
from fmviz.lab.runner import Run, load_dataset, truth_of
from fmviz.lab.search.epochs import EPOCHS, Learning, learn
from fmviz.lab.search.strength_path import PathFit, PathPlan
from fmviz.ui.charts import chart
from fmviz.ui.components.matrix_view import (
    NOT_AN_INTERACTION,
    ClassesFrame,
    FactorFrame,
    Frame,
    Panel,
    matrix_view,
)
from fmviz.ui.escape import plain
from fmviz.ui.train.panels import SUPPORT, truth_panel
from fmviz.ui.watching import failure, shared_task, watch

__all__ = ["draw_epochs", "draw_panels", "draw_path", "draw_why", "fitted", "label_of"]

_LEAST_WIDTH = 140
_WAITING = "Being trained"


def label_of(strength: float) -> str:
    """Return what the slider displays for a strength."""
    return f"{strength:g}"


def draw_path(
    plan: PathPlan,
    driver: str | float,
    key: str,
    height: int,
    view: TaskView,
    *,
    compared: bool = False,
) -> None:
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
    compared : bool
        Whether every pair has the colour of what it is in truth, which has to be known.
    """
    if view.state is TaskState.FAILED:
        failure(view)
        return
    dataset = _data(plan)
    found = {(fit.experiment.regularizer, fit.experiment.lambda_sparse): fit for fit in view.items}
    shown = plan.lambdas if isinstance(driver, str) else (driver,)

    def frame(name: str, strength: float) -> Frame:
        fit: PathFit | None = found.get((name, strength))
        if fit is None or fit.parameters is None:
            return _waiting(dataset, plan.base.rank, label_of(strength), compared)
        return fitted(fit.parameters.P, label_of(strength), dataset, compared)

    panels = {name: [frame(name, strength) for strength in shown] for name in plan.regularizers}
    draw_panels(panels, dataset, key, height, driver=driver if isinstance(driver, str) else None)


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
                    fitted(one.factors[min(at, len(one.factors) - 1)], key, dataset)
                    for at, key in enumerate(keys)
                ]
                for one in made
            }
            draw_panels(panels, dataset, key, height, player=True)

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


def _waiting(dataset: Dataset, rank: int, key: str, compared: bool) -> Frame:
    d = dataset.X.shape[1]
    if not compared:
        return FactorFrame(np.zeros((d, rank)), key, notice=_WAITING)
    nothing = np.full((d, d), NOT_AN_INTERACTION, dtype=np.int8)
    return ClassesFrame(nothing, [0] * len(SUPPORT), key, _WAITING)


def fitted(P: np.ndarray, key: str, dataset: Dataset, compared: bool = False) -> Frame:
    """Return the picture of factors, of shape (d, rank).

    Where it is `compared` and the truth is known, every pair has the colour of what it is in truth.
    """
    truth = truth_of(dataset)
    used = metrics.used_pairs(P)
    words = describe_support(used, truth)
    if not compared or truth is None:
        return FactorFrame(P, key, words)
    support = compare_supports(truth, used)
    np.fill_diagonal(support.codes, NOT_AN_INTERACTION)
    return ClassesFrame(support.codes, support.counts, key, words)


def draw_panels(
    panels: Mapping[str, Sequence[Frame]],
    dataset: Dataset,
    key: str,
    height: int,
    *,
    driver: str | None = None,
    player: bool = False,
    min_width: int = _LEAST_WIDTH,
) -> None:
    """Draw the pictures that `fitted` makes, some for each regularizer; beside weights, those in truth."""
    names, truth = dataset.feature_names, truth_of(dataset)
    drawn = []
    for name, frames in panels.items():
        compared = isinstance(frames[0], ClassesFrame)
        drawn.append(
            Panel(
                PENALTIES[name].label,
                frames,
                color=regularizer_color(name),
                gram_label="support" if compared else "PPᵀ",
                row_labels=names if compared else None,
                col_labels=names if compared else None,
                classes=SUPPORT if compared else (),
            )
        )
    if truth is not None and not all(panel.classes for panel in drawn):
        drawn.insert(0, truth_panel(dataset, truth, dataset.truth is not None, None))
    matrix_view(
        drawn,
        key=key,
        driver_key=driver,
        player=player,
        show="gram",
        columns=len(drawn),
        min_width=min_width,
        # Weights overshoot in the first epochs; on their scale, all later ones would look alike.
        gram_scale=None if dataset.truth is None else 2.0 * float(np.abs(dataset.truth).max()),
        max_height=height,
        feature_names=names,
    )
