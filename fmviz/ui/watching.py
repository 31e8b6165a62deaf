"""Show the progress, the result or the error of a background task on a page."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import streamlit as st
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from fmviz.lab.background.job import Job
from fmviz.lab.background.task import Make, Task, TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.typography import duration
from fmviz.ui import session_uploads
from fmviz.ui.escape import plain
from fmviz.ui.guard import fragment

_POLL_SECONDS = 0.5
# What is ready so soon is not seen to load.
_PATIENCE = 0.5
# A first result that comes so soon is drawn at once, and not at the next poll.
_FIRST_RESULT = 0.15


def watch(task: Task, draw: Callable[[Any], None]) -> None:
    """Draw a task; while it is at work, again and again.

    Whatever `draw` makes is a fragment: its controls rerun it alone. When the task ends the page is drawn
    anew, since what stands around depends on it.

    Parameters
    ----------
    task : Task
        What to look at.
    draw : callable
        ``draw(view)`` draws what there is to see.
    """
    until = time.monotonic() + _FIRST_RESULT
    while task.state.active and not task.view().items and time.monotonic() < until:
        time.sleep(0.01)
    active = task.state.active

    def body() -> None:
        view = task.view()
        if active and not view.state.active:
            st.rerun()
        draw(view)

    fragment(body, run_every=_POLL_SECONDS if active else None, name=task.id)()


def connected() -> Callable[[], bool]:
    """Return a function that tells whether the browser of this session is there, its tab hidden or not."""
    context = get_script_run_ctx()
    if context is None or not Runtime.exists():
        return lambda: False
    runtime, session = Runtime.instance(), context.session_id
    return lambda: runtime.is_active_session(session)


def watched(job: Job) -> bool:
    """Return whether a training run goes on that another browser has started: here it is looked at only."""
    return not job.state.ended and job.browser not in ("", session_uploads.owner())


def shared_task(key: str, make: Make, *, again: bool = True) -> Task:
    """Return the task of a name, which all sessions share; whoever comes first starts it.

    One that was stopped, and with `again` one that failed, is started anew.
    """
    tasks = manager()
    task = tasks.get(key)
    if task is None or task.state is TaskState.STOPPED or (again and task.state is TaskState.FAILED):
        task = tasks.submit(key, make)
    return task


def pace(view: TaskView, done: int, total: int) -> str:
    """Return how long a task has been at work, and how long the rest takes at the pace so far."""
    spent = f"{view.elapsed:.0f} s"
    if not 0 < done < total or view.elapsed < _PATIENCE:
        return spent
    return f"{spent}, {duration(view.elapsed * (total - done) / done)} left"


def progress(view: TaskView, done: int, total: int = 0, *, now: str = "", end: str = "") -> None:
    """Draw how far a task of many fits is, or why it failed.

    Parameters
    ----------
    view : TaskView
        The task.
    done, total : int
        How many fits there are, and will be; 0 where that is not known.
    now, end : str
        What is added while it goes on, and afterwards.
    """
    fits = f"{done:,} of {total:,} fits" if total else f"{done:,} fits"
    if view.state.active:
        words = f"{fits}, {pace(view, done, total)}. {now or 'Preparing the data.'}"
        st.progress(min(done / (total or math.inf), 1.0), text=words)
    elif view.state is TaskState.FAILED:
        failure(view)
    else:
        stopped = "Stopped: " if view.state is TaskState.STOPPED else ""
        st.caption(f"{stopped}{fits} in {view.elapsed:.0f} s.{end}")


def failure(view: TaskView) -> None:
    """Draw why a task failed: the sentence, and the traceback folded away where there is one."""
    st.error(plain(view.message), icon=":material/error:")
    if view.details:
        with st.expander("Details", icon=":material/info:"):
            st.code(view.details, language=None, wrap_lines=True)


def done(
    key: str,
    make: Callable[[Callable[[], bool]], Any],
    words: str,
    failed: Callable[[TaskView], None] = failure,
) -> bool:
    """Return whether some work has been done; until then draw that it goes on, or why it failed.

    Parameters
    ----------
    key : str
        Names the work: it is done once.
    make : callable
        ``make(should_stop)`` does it, and remembers the result by itself. If it is a generator, what it
        yields says how far it is.
    words : str
        What is going on.
    failed : callable
        ``failed(view)`` draws a failure.
    """
    tasks = manager()

    def once(should_stop: Callable[[], bool]) -> Iterator[str]:
        task = make(should_stop)
        if isinstance(task, Iterator):
            yield from task
        yield ""

    def loading(view: TaskView) -> None:
        with st.container(border=True, horizontal=True, vertical_alignment="center", key="data_loading"):
            st.markdown(f":material/hourglass_top: {plain(words)} {view.elapsed:.0f} s", width="content")
            st.button("Stop", icon=":material/stop:", key="data_stop", on_click=task.stop)
            if view.items:
                st.caption(plain(view.items[-1]))

    task = tasks.get(key) or tasks.submit(key, once)
    until = time.monotonic() + _PATIENCE
    while task.state.active and time.monotonic() < until:
        time.sleep(0.01)
    view = task.view()
    if view.state.active:
        watch(task, loading)
    elif view.state is TaskState.FAILED:
        failed(view)
    elif view.state is TaskState.STOPPED:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(":material/stop_circle: Stopped.", width="content")
            st.button(
                "Go on", icon=":material/play_arrow:", key="data_go_on", on_click=tasks.forget, args=(key,)
            )
    return view.state is TaskState.FINISHED
