"""Turn exceptions of a page or fragment into a message with a way out."""

from __future__ import annotations

import functools
import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from fmviz.lab.background.pool import pages
from fmviz.lab.store import StoreError
from fmviz.ui import navigation
from fmviz.ui.components import pulse
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings

_LOG = logging.getLogger(__name__)
_Function = TypeVar("_Function", bound=Callable[..., Any])
# The parts of a core that drawing again and again may take: one fragment, and all of a server, which draws
# its pages with one core.
_SHARE, _SHARE_OF_ALL = 0.1, 0.4
_RECENT = 10.0
_repeated: dict[str, float] = {}
"""When each fragment of each session was last drawn again."""


@contextmanager
def guard(settings: Settings | None = None) -> Iterator[None]:
    """Turn an exception of the body into a message with a way out.

    A ValueError or StoreError is taken for a sentence to the reader; anything else is a defect, and logged.
    """
    try:
        with pages.drawn():
            yield
    except (ValueError, StoreError) as error:
        _excuse(error, str(error), settings)
    except Exception as error:
        _LOG.exception("a page failed")
        _excuse(error, "This part of the page could not be drawn. That is a defect of fmviz.", settings)


def fragment(function: _Function, *, run_every: float | None = None, name: str = "") -> Any:
    """Make a function a `st.fragment` whose exceptions are guarded, also in a rerun of its own.

    A page's guard does not cover a fragment that reruns alone.

    Parameters
    ----------
    function : callable
        What draws.
    run_every : float, optional
        Draw again after so many seconds, and later where drawing is dear, as long as the tab is looked at. A
        function that returns a name and bytes has these handed to that component, see `pulse`.
    name : str
        Tells fragments of one function apart.
    """

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        key = f"pulse_{function.__module__.rpartition('.')[2]}_{function.__name__.strip('_')}_{name}"
        beat = st.container(key=f"{key}_box") if run_every is not None else None
        began = time.thread_time()
        handed: tuple[str, bytes] | None = None
        with guard():
            handed = function(*args, **kwargs)
        if beat is not None and run_every is not None:
            to, payload = handed or ("", b"")
            with beat:
                share = min(_SHARE, _SHARE_OF_ALL / _n_repeated(key))
                pulse(key, max(run_every, (time.thread_time() - began) / share), to=to, payload=payload)

    return st.fragment(guarded)


def _n_repeated(key: str) -> int:
    """Note that a fragment is drawn again; return how many are, of all sessions."""
    context, now = get_script_run_ctx(suppress_warning=True), time.monotonic()
    _repeated[f"{'' if context is None else context.session_id}:{key}"] = now
    for name, seen in list(_repeated.items()):
        if now - seen > _RECENT:
            _repeated.pop(name, None)
    return len(_repeated)


def _excuse(error: Exception, sentence: str, settings: Settings | None) -> None:
    st.error(plain(sentence), icon=":material/error:")
    with st.expander("Details", icon=":material/info:"):
        here = Path(__file__).resolve().parents[2]
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if Path(f.filename).is_relative_to(here / "fmviz")] or list(frames)
        place = Path(ours[-1].filename)
        shown = place.relative_to(here) if place.is_relative_to(here) else place.name
        st.markdown(plain(f"{type(error).__name__} in {shown}, line {ours[-1].lineno}"))
        st.code(str(error) or "(no message)", language=None, wrap_lines=True)
    with st.container(horizontal=True):
        if settings is not None and settings.own:
            st.button(
                "Reset this page",
                icon=":material/restart_alt:",
                key=f"{settings.page}_reset_after_error",
                on_click=settings.reset,
                help="Puts the settings of this page back to their defaults.",
            )
        navigation.page_link(navigation.START, label="Back to the start")
