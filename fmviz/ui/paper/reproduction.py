"""The reproduction of one figure or table: started, watched, stopped, resumed."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from functools import partial

import streamlit as st

from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.papers import Artefact, Result
from fmviz.lab.papers.results import run_and_keep, unfinished
from fmviz.lab.store import StoreError, store
from fmviz.lab.store.results import Kept
from fmviz.ui.escape import plain
from fmviz.ui.paper import result as shown_result
from fmviz.ui.watching import failure, pace, watch

# A chart is drawn anew with every change, which would flicker at every poll.
REDRAW_SECONDS = 3.0
_SHOWN = "fmviz:paper:shown"


def draw(artefact: Artefact, budget: str, kept: Kept | None) -> None:
    """Draw an artefact: what it is, its controls, and its present or last result."""
    st.subheader(plain(artefact.title))
    st.caption(f"{plain(artefact.paper)}.")
    key = f"paper:{artefact.name}:{budget}"
    tasks = manager()
    task = tasks.get(key)
    active = task is not None and task.state.active

    parts = 0 if active else finished_parts(artefact, budget)

    def start(fresh: bool = False) -> None:
        st.session_state.pop(_SHOWN, None)
        tasks.submit(key, partial(run_and_keep, artefact, budget, store, fresh=fresh), most=1)

    with st.container(horizontal=True, vertical_alignment="center", key="paper_controls"):
        st.button(
            "Go on" if parts else "Run" if task is None and kept is None else "Run again",
            icon=":material/play_arrow:",
            key="paper_run",
            type="primary",
            disabled=active,
            on_click=start,
            help=f"{parts:,} finished parts of an earlier run are kept." if parts else None,
        )
        if parts:
            st.button(
                "Start afresh",
                icon=":material/restart_alt:",
                key="paper_fresh",
                on_click=partial(start, fresh=True),
            )
        st.button(
            "Stop",
            icon=":material/stop:",
            key="paper_stop",
            disabled=not active,
            on_click=task.stop if task is not None else None,
        )
        if task is not None and not active and task.state is not TaskState.FINISHED and kept is not None:
            st.button(
                "Back to the last result",
                icon=":material/undo:",
                key="paper_back",
                on_click=partial(tasks.forget, key),
            )
    st.code(_command(artefact, budget), language="sh")
    if task is not None:
        watch(task, partial(_draw, artefact, parts))
    elif kept is not None:
        _draw_kept(artefact, kept)
    else:
        _empty(artefact, parts)


def finished_parts(artefact: Artefact, budget: str) -> int:
    """Return how many parts an unfinished run has finished."""
    # A store that cannot be read is told of by the page.
    with suppress(StoreError, sqlite3.Error):
        return unfinished(artefact, budget, store())
    return 0


def _draw(artefact: Artefact, parts: int, view: TaskView) -> None:
    result: Result | None = view.items[-1] if view.items else None
    if view.state.active:
        now = view.message if result is None else result.message
        made, total = (0, 1) if result is None else (result.done, max(result.total, 1))
        text = f"{pace(view, made, total)}. {now}"
        st.progress(min(made / total, 1.0), text=text)
        result = _steady(view.id, result)
    elif view.state is TaskState.FAILED:
        failure(view)
    elif view.state is TaskState.STOPPED:
        done = f" after {result.done:,} of {result.total:,} parts" if result is not None else ""
        kept = f" Kept: {parts:,}. “Go on” continues from them." if parts else ""
        st.info(f"Stopped{done}. The results so far are shown.{kept}", icon=":material/stop:")
    if result is None:
        return
    shown_result.draw(artefact, result, live=view.state.active)


def _steady(key: str, result: Result | None) -> Result | None:
    """Return the result that is on the screen until it is time for a newer one."""
    now = time.monotonic()
    shown = st.session_state.get(_SHOWN)
    if shown is None or shown[0] != key or now - shown[1] >= REDRAW_SECONDS:
        shown = (key, now if result is not None else 0.0, result)
        st.session_state[_SHOWN] = shown
    return shown[2]


def _draw_kept(artefact: Artefact, kept: Kept) -> None:
    try:
        result = shown_result.last_of(artefact, kept)
    except ValueError as error:
        st.info(plain(error), icon=":material/history:")
        return
    if result is None:
        return
    if kept.shipped:
        programs = dict(result.versions)
        machine = programs.pop("platform", "an unknown machine")
        made_with = ", ".join(f"{name} {version}" for name, version in programs.items())
        parts = "" if result.state == "complete" else f", after {result.done:,} of {result.total:,} parts"
        st.caption(
            f"Our result of {plain(shown_result.when(kept))}{parts}, which came with fmviz; made by "
            f"`{_command(artefact, kept.budget)}` with {plain(made_with)} on {plain(machine)}."
        )
    else:
        st.caption(f"The last result, of {plain(shown_result.when(kept))}.")
    shown_result.draw(artefact, result, live=False)


def _command(artefact: Artefact, budget: str) -> str:
    return f"python -m fmviz paper {artefact.name} --budget {budget}"


def _empty(artefact: Artefact, parts: int) -> None:
    done = f"Not finished yet: {parts:,} of its parts are kept." if parts else "Not run yet."
    with st.container(border=True, key="paper_empty"):
        st.markdown(f"{done} What will be checked:")
        st.markdown("\n".join(f"- “{one.text}” ({one.where})" for one in artefact.statements))
    shown_result.differences(artefact.differences)
