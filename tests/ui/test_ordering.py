"""The end of a run is heard, however soon a fragment is asked for after it."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import MagicMock

import pytest
from streamlit import config
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.script_data import ScriptData
from streamlit.runtime.scriptrunner.script_cache import ScriptCache

from fmviz.ui import serving as ordering

PAGE = """
import streamlit as st

@st.fragment
def live():
    st.text("live")

live()
st.text("the end")
"""


async def asked_as_it_ends(path) -> list:
    """Return what a browser is sent where a fragment is asked for just after a run, before that was heard."""
    session = AppSession(
        ScriptData(str(path), is_hello=False), MemoryUploadedFileManager("/upload"), ScriptCache(), None, {}
    )
    session.request_rerun(ClientState())
    # The loop is kept busy meanwhile, as many visitors would.
    session._scriptrunner._script_thread.join()
    session.request_rerun(ClientState(fragment_id=next(iter(session._fragment_storage._fragments))))
    until = time.monotonic() + 10
    while session._scriptrunner is not None and time.monotonic() < until:
        await asyncio.sleep(0.01)
    sent = session.flush_browser_queue()
    session.shutdown()
    return sent


@pytest.mark.parametrize("heard", [True, False])
def test_a_page_keeps_its_end(tmp_path, monkeypatch, heard):
    path = tmp_path / "page.py"
    path.write_text(PAGE)
    monkeypatch.setattr(Runtime, "_instance", MagicMock(spec=Runtime))
    monkeypatch.setitem(config.get_config_options(), "server.fileWatcherType", MagicMock(value="none"))
    monkeypatch.setattr(AppSession, "_create_scriptrunner", ordering._begin)
    if heard:
        ordering.hear_endings()
    # A thread of its own: a browser of another test may have an event loop at work in this one.
    with ThreadPoolExecutor(1) as thread:
        sent = thread.submit(lambda: asyncio.run(asked_as_it_ends(path))).result()
    finished = [message for message in sent if message.HasField("script_finished")]
    texts = [one.delta.new_element.text.body for one in sent if one.delta.new_element.HasField("text")]
    # Where the second case fails, Streamlit has mended it, and `ordering.py` can go.
    assert ("the end" in texts) == heard
    assert len(finished) == 1 + heard
