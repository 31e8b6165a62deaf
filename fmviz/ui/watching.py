"""Progress, result or error of a background task on a page."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from fmviz.lab.background.task import Make, Task, TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.search.averaged import Message
from fmviz.typography import duration
from fmviz.ui import widgets
from fmviz.ui.channel import Topic, channel, path
from fmviz.ui.components import progress
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings

# Tasks that finish within this time show no progress.
_PATIENCE, _FIRST_RESULT = 0.5, 0.15

Words = Callable[[TaskView], tuple[str, float | None]]
"""A progress message and, if known, the finished share of the task."""


def counted(view: TaskView, done: int, total: int = 0, now: str = "") -> tuple[str, float | None]:
    """Return the number of finished fits, of a total if known, and the current activity."""
    now = now or (view.message if view.state is TaskState.QUEUED else "Preparing the data.")
    return f"{_fits(done, total)}, {pace(view, done, total)}. {now}", done / total if total else None


def _fits(done: int, total: int) -> str:
    return f"{done:,} of {total:,} fits" if total else f"{done:,} fits"


def pace(view: TaskView, done: int, total: int) -> str:
    """Return the elapsed time of a task and an estimate of its remaining time."""
    if not 0 < done < total or view.elapsed < _PATIENCE:
        return f"{view.elapsed:.0f} s"
    return f"{view.elapsed:.0f} s, {duration(view.elapsed * (total - done) / done)} left"


def controls(
    settings: Settings,
    task: Task | None,
    label: str,
    start: Callable[[], object],
    *,
    icon: str = ":material/play_arrow:",
    names: tuple[str, str] = ("start", "stop"),
    disabled: bool | None = None,
    help: str | None = None,
) -> DeltaGenerator:
    """Draw the buttons that start and stop the task of a plan, and return their row.

    `names` are the parts of the page. By default the first button is `disabled` while the task is active.
    """
    row = st.container(horizontal=True, vertical_alignment="center", key=f"{settings.page}_{names[0]}_row")
    active = task is not None and task.state.active
    with row:
        widgets.action(
            settings,
            names[0],
            label,
            disabled=active if disabled is None else disabled,
            help=help,
            icon=icon,
            type="primary",
            shortcut="P",
            on_click=start,
        )
        widgets.stop(settings, task, "Finished fits are kept.", name=names[1])
    return row


def draw_fits(
    task: Task,
    draw: Callable[[TaskView], None],
    row: DeltaGenerator,
    *,
    total: int = 0,
    now: Callable[[Any], str],
    parts: Callable[[TaskView], int],
    end: Callable[[TaskView], str] = lambda view: "",
) -> None:
    """Draw the fits of a plan, its progress, and its outcome in the row of `controls`.

    ``now(fit)`` is a sentence on the last fit, and ``end(view)`` one on the ended task; see `watch`.
    """

    def body(view: TaskView) -> None:
        with row:
            outcome(view, len(view.items), total, end(view))
        if view.items:
            draw(view)

    def words(view: TaskView) -> tuple[str, float | None]:
        return counted(view, len(view.items), total, now(view.items[-1]) if view.items else "")

    watch(task, body, words, parts)


def outcome(view: TaskView, done: int, total: int = 0, end: str = "") -> None:
    """Draw the number of fits of an ended task and a further sentence, or why it failed."""
    if view.state is TaskState.FAILED:
        failure(view)
    elif not view.state.active:
        stopped = "Stopped: " if view.state is TaskState.STOPPED else ""
        st.caption(plain(f"{stopped}{_fits(done, total)} in {view.elapsed:.0f} s.{end}"))


def failure(view: TaskView) -> None:
    """Draw why a task failed, with a folded traceback if there is one."""
    st.error(plain(view.message), icon=":material/error:")
    if view.details:
        with st.expander("Details", icon=":material/info:"):
            st.code(view.details, language=None, wrap_lines=True)


def watch(
    task: Task,
    draw: Callable[[Any], Any],
    words: Words,
    parts: Callable[[TaskView], int] = lambda view: 0,
) -> None:
    """Draw the view of a task and, while it is active, its progress.

    The page is redrawn at the end of the task and whenever the count in `parts` changes.
    """
    active, until = task.state.active, time.monotonic() + _FIRST_RESULT
    while task.state.active and not task.view().items and time.monotonic() < until:
        time.sleep(0.01)
    view = task.view()
    if view.state.active:
        _follow(view, task, words, parts)
    elif active:
        # Buttons above were drawn while the task was active.
        st.rerun()
    draw(view)


def _follow(view: TaskView, task: Task, words: Words, parts: Callable[[TaskView], int]) -> None:
    known = weakref.ref(task)

    def head(view: TaskView) -> dict[str, Any]:
        sentence, done = words(view)
        return {"phase": f"{view.state} {parts(view)}", "sentence": sentence, "done": done}

    def refresh(topic: Topic) -> bool:
        task = known()
        now = {"gone": True} if task is None else head(task.view())
        changed, topic.head = now != topic.head, now
        return changed

    # A restarted task is another task.
    topic = channel.topic(("task", known), refresh)
    progress(head(view), {"path": path(), "topic": topic.id}, key=f"progress_{task.id}")


def connected() -> Callable[[], bool]:
    """Return a function that returns whether this session's browser is connected, even with a hidden tab."""
    context = get_script_run_ctx()
    if context is None or not Runtime.exists():
        return lambda: False
    return partial(Runtime.instance().is_active_session, context.session_id)


def shared_task(key: str, make: Make, *, again: bool = True, queue: str = "") -> Task:
    """Return the task of a name, shared by all sessions and started by the first.

    A stopped task, and with `again` a failed one, is restarted.
    """
    task = manager().get(key)
    if task is None or task.state is TaskState.STOPPED or (again and task.state is TaskState.FAILED):
        task = manager().submit(key, make, queue)
    return task


def results_of(
    id: str, make: Make, words: str, key: str, failed: Callable[[TaskView], None] = failure
) -> list[Any] | None:
    """Return the results of some work so far, None before the first; draw its progress and buttons.

    Parameters
    ----------
    id : str
        Identifies the work, which is done once, including everything that it depends on.
    make : callable
        Yields results, and a `Message` for progress.
    words : str
        Description of the work for the user, replaced by each `Message`.
    key : str
        Prefix of the keys of the elements, unique on the page.
    failed : callable
        Draws an error.
    """
    tasks = manager()
    task = tasks.get(id) or tasks.submit(id, make)
    until = time.monotonic() + _PATIENCE
    while task.state.active and time.monotonic() < until:
        time.sleep(0.01)

    def results(view: TaskView) -> list[Any]:
        return [item for item in view.items if not isinstance(item, Message)]

    def sentence(view: TaskView) -> tuple[str, float | None]:
        return f"{view.items[-1].message if view.items else words} {view.elapsed:.0f} s", None

    view = task.view()
    if view.state.active:
        with st.container(border=True, key=f"{key}_wait"):
            _follow(view, task, sentence, lambda view: len(results(view)))
            st.button("Stop", icon=":material/stop:", key=f"{key}_stop", on_click=task.stop)
    elif view.state is TaskState.FAILED:
        failed(view)
    elif view.state is TaskState.STOPPED:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/stop_circle: {plain(view.message)} {plain(words)}", width="content")
            st.button(
                "Go on", icon=":material/play_arrow:", key=f"{key}_go_on", on_click=tasks.forget, args=(id,)
            )
    return results(view) if results(view) or view.state is TaskState.FINISHED else None
