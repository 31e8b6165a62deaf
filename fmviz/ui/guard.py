"""Error messages in place of exceptions of a page or fragment."""

from __future__ import annotations

import functools
import logging
import secrets
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import streamlit as st

from fmviz.lab.store import StoreError
from fmviz.ui import navigation
from fmviz.ui.components import address
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings

_SESSION = "fmviz:session"
_LOG = logging.getLogger(__name__)
_Function = TypeVar("_Function", bound=Callable[..., Any])


@contextmanager
def guard(settings: Settings | None = None) -> Iterator[None]:
    """Turn an exception of the body into a message with a way out.

    The text of a ValueError or StoreError is shown to the reader; any other exception is a bug, and logged.
    """
    try:
        yield
    except (ValueError, StoreError) as error:
        _excuse(error, str(error), settings)
    except Exception as error:
        _LOG.exception("a page failed")
        _excuse(error, "This part of the page could not be drawn because of a bug in fmviz.", settings)


def fragment(function: _Function) -> Any:
    """Make a function a `st.fragment` whose exceptions are guarded, also in fragment reruns.

    In a fragment rerun the page's guard is not active, and the page does not write the address.
    """

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        with guard():
            function(*args, **kwargs)
        write_address(Settings.drawn(), function.__name__.strip("_"))

    return st.fragment(guarded)


def write_address(settings: Settings, key: str) -> None:
    """Write the settings of a page into the browser's address bar."""
    session = st.session_state.setdefault(_SESSION, secrets.token_hex(8))
    address(settings.page, settings.written(), session, key=f"address_{key}")


def _excuse(error: Exception, sentence: str, settings: Settings | None) -> None:
    st.error(plain(sentence), icon=":material/error:")
    with st.expander("Details", icon=":material/info:"):
        st.code("".join(traceback.format_exception_only(error)), language=None, wrap_lines=True)
    with st.container(horizontal=True):
        if settings is not None and settings.own:
            st.button(
                "Reset this page",
                icon=":material/restart_alt:",
                key=f"{settings.page}_reset_after_error",
                on_click=settings.reset,
                help="Resets the settings of this page to their defaults.",
            )
        navigation.page_link(navigation.START, label="Back to the start")
