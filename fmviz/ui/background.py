"""Work that a page waits for, done in the background with a sign of loading where it takes long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import streamlit as st

from fmviz.lab.background import jobs
from fmviz.lab.background.job_view import JobState
from fmviz.lab.background.task import Task
from fmviz.ui.guard import fragment

__all__ = ["done"]

_POLL_SECONDS = 0.4
# What is ready so soon is not seen to load.
_PATIENCE = 0.5


def done(key: str, make: Callable[[], Any], words: str, failed: Callable[[str, str], None]) -> bool:
    """Return whether some work has been done; until then draw that it goes on, or why it failed.

    Parameters
    ----------
    key : str
        Names the work: it is done once.
    make : callable
        Does it, and remembers the result by itself.
    words : str
        What is going on.
    failed : callable
        ``failed(sentence, details)`` draws a failure.
    """
    tasks = jobs.manager().tasks

    def once(should_stop: Callable[[], bool]) -> Iterator[bool]:
        make()
        yield True

    task = tasks.get(key) or tasks.start(key, once)
    until = time.monotonic() + _PATIENCE
    while task.state.active and time.monotonic() < until:
        time.sleep(0.01)
    view = task.view()
    if view.state.active:
        fragment(_loading, run_every=_POLL_SECONDS)(task, words)
    elif view.state is JobState.FAILED:
        failed(view.message, view.details)
    elif view.state is JobState.STOPPED:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(":material/stop_circle: Stopped.", width="content")
            st.button(
                "Go on", icon=":material/play_arrow:", key="data_go_on", on_click=tasks.forget, args=(key,)
            )
    return view.state is JobState.FINISHED


def _loading(task: Task, words: str) -> None:
    view = task.view()
    if not view.state.active:
        st.rerun()
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="data_loading"):
        st.markdown(f":material/hourglass_top: {words} {view.elapsed:.0f} s", width="content")
        st.button("Stop", icon=":material/stop:", key="data_stop", on_click=task.stop)
