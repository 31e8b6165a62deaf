"""Streamlit drops the end of a page where a fragment is asked for just then: here it is heard to its end."""

from __future__ import annotations

from functools import partial
from typing import Any

from streamlit.runtime.app_session import AppSession, AppSessionState

__all__ = ["hear_endings"]

_begin = AppSession._create_scriptrunner


def hear_endings() -> None:
    """Have a new run begin only when all that the run before it has said is on its way to the browser.

    A fragment is drawn by the run that goes on, unless that run has just ended and refuses. What it said last
    may then still wait for the event loop, and would be ignored, since another run is the current one: the
    page would lack its last elements until the next click, or seem to be running. All of it is in the queue
    of the loop by then, so the new run is put behind it.
    """
    AppSession._create_scriptrunner = _begin_in_turn  # type: ignore[method-assign, assignment]


def _begin_in_turn(session: AppSession, asked: Any) -> None:
    if session._scriptrunner is None:
        _begin(session, asked)
    else:
        session._call_soon_on_event_loop(partial(_begin_after, session, session._scriptrunner, asked))


def _begin_after(session: AppSession, ended: Any, asked: Any) -> None:
    current = session._scriptrunner
    if session._state is AppSessionState.SHUTDOWN_REQUESTED:
        return
    if current is None or current is ended:
        _begin(session, asked)
    elif not current.request_rerun(asked):
        _begin_in_turn(session, asked)
