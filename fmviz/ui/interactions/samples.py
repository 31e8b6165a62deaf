"""Intervals of weights, from samples of a Bayesian machine with the rank and the rows of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.runner import Run
from fmviz.lab.search.averaged import Average, can_be_averaged
from fmviz.lab.search.first_fit import Sampling, average_beside
from fmviz.ui import widgets
from fmviz.ui.escape import plain
from fmviz.ui.interactions.opened import Opened
from fmviz.ui.settings.state import Settings
from fmviz.ui.watching import failure, watch

TABLE = (
    ParamSpec(
        "samples",
        "bool",
        False,
        help="Draws samples of a Bayesian machine with the rank and the training rows of this run: an "
        "interval for the weight of every pair, and how sure its sign is.",
    ),
)


def draw(settings: Settings, reading: Opened) -> Average | None:
    """Draw the switch, and how far the samples are; return what they say once they are there."""
    if reading.pairs is None or reading.model.why_no_threshold() is not None:
        return None
    if not widgets.param(settings, "samples", "Intervals, from samples"):
        return None
    tasks, key = manager(), f"samples:{reading.key}"
    task = tasks.get(key) or tasks.submit(key, partial(_sampled, reading), most=1)
    view = task.view()
    if view.state is TaskState.FINISHED and view.items:
        average: Average = view.items[-1]
        words = plain(average.message)
        if reading.wording.log_odds:
            words += (
                f" Means and intervals are those of a probit score times {average.scale:g}, which is close "
                "to the log-odds."
            )
        elif average.posterior.binary:
            words += (
                " Means and intervals are those of a probit score: compare them with each other, not with "
                "the weights of this fit."
            )
        st.caption(f":material/stacked_line_chart: {words}")
        return average
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="interactions_sampling"):
        if view.state is TaskState.FAILED:
            failure(view)
        elif view.state.active:
            watch(task, _progress)
            st.button("Stop", icon=":material/stop:", key="interactions_samples_stop", on_click=task.stop)
        else:
            st.markdown("Stopped.", width="content")
            st.button(
                "Draw them again",
                icon=":material/replay:",
                key="interactions_samples_again",
                on_click=tasks.forget,
                args=(key,),
            )
    return None


def _progress(view: TaskView) -> None:
    st.markdown(plain(view.items[-1].message) if view.items else "Preparing the data.")
    st.caption(f"{view.elapsed:.1f} s so far.")


def _sampled(reading: Opened, should_stop: Callable[[], bool]) -> Iterator[Sampling | Average]:
    prepared = Run.prepare(reading.experiment).of_output(reading.output)
    if not can_be_averaged(prepared.problem):
        raise ValueError(
            "Samples of these data at this rank take too long, or too much memory. Lower the rank."
        )
    yield from average_beside(prepared, reading.parameters, should_stop)


def with_intervals(
    table: pd.DataFrame, average: Average | None, i: np.ndarray, j: np.ndarray
) -> pd.DataFrame:
    """Return a table of pairs (i, j) with what the samples say of them."""
    if average is None:
        return table
    return table.join(average.intervals(i, j).set_axis(table.index))
