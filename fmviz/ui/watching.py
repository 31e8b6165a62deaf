"""Redraws a background task until it has ended."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from fmviz.lab.background.task import Task, TaskView
from fmviz.ui.guard import fragment

POLL_SECONDS = 0.6


def watch(task: Task, draw: Callable[[TaskView], None], every: float = POLL_SECONDS) -> None:
    """Draw a task; while it is at work, again every so many seconds.

    Whatever `draw` makes is a fragment: its controls rerun it alone. When the task ends the page is drawn
    anew, since what stands around depends on it.

    Parameters
    ----------
    task : Task
        What to look at.
    draw : callable
        ``draw(view)`` draws what there is to see.
    every : float
        In seconds.
    """
    active = task.state.active

    def body() -> None:
        view = task.view()
        if active and not view.state.active:
            st.rerun()
        draw(view)

    fragment(body, run_every=every if active else None)()


def failure(view: TaskView) -> None:
    """Draw why a task failed: the sentence, and the traceback folded away where there is one."""
    st.error(view.message, icon=":material/error:")
    if view.details:
        with st.expander("Details", icon=":material/info:"):
            st.code(view.details, language=None, wrap_lines=True)
