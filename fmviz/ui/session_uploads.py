"""Uploads of a browser session: its data sets, and limits on the size of its files."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any
from weakref import WeakValueDictionary

import streamlit as st
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from fmviz.engine.memory import in_words
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import DATASETS
from fmviz.lab.files import data_folder
from fmviz.lab.quotas import uploads_limit
from fmviz.lab.uploads import is_upload, library

_MINE = "fmviz:own:mine"


def owner() -> str:
    """Return an identifier of this browser, a hash of its XSRF cookie.

    Without cookies, it identifies only this session.
    """
    try:
        _, mask, masked, _ = st.context.cookies["_streamlit_xsrf"].strip('"').split("|")
        # Each response masks the same token differently.
        pairs = zip(bytes.fromhex(masked), cycle(bytes.fromhex(mask)), strict=False)
        token = bytes(byte ^ other for byte, other in pairs)
    except (KeyError, ValueError):
        token = st.session_state.setdefault("fmviz:own:owner", secrets.token_bytes(16))
    return hashlib.sha256(token).hexdigest()[:20]


def mine() -> list[str]:
    """Return the names in the order of upload."""
    return list(st.session_state.get(_MINE, ()))


def remember(name: str) -> None:
    """Add a data set, unless present."""
    if is_upload(name) and name not in mine():
        st.session_state[_MINE] = [*mine(), name]


def forget(name: str) -> None:
    """Remove a data set."""
    st.session_state[_MINE] = [other for other in mine() if other != name]


def menu(chosen: str) -> list[str]:
    """Return the names for a menu: registered data sets and those of this session."""
    remember(chosen)
    return [*DATASETS, *mine()]


def label(name: str) -> str:
    """Return the title for a menu; uploads get a hash prefix, since titles may repeat."""
    title = dataset_spec(name).title
    return f"{title} · {name.removeprefix('own_')[:4]}" if is_upload(name) else title


# ------------------------------------------------------------------------------------------------ sizes

SESSION_BYTES = 200_000_000


@dataclass(eq=False)
class SessionUploads:
    """The uploads of a session, discarded with it.

    Attributes
    ----------
    file, data : str, bytes
        Hash and content of a file that is unread or unreadable.
    kept : dict of str to int
        Sizes of the files read and stored on disk, by hash.
    """

    file: str = ""
    data: bytes = b""
    kept: dict[str, int] = field(default_factory=dict)

    def bring(self, file: str, data: bytes) -> None:
        """Replace the unread file by another, unless that one is stored already."""
        self.file, self.data = (file, data) if library.size_of_file(file) is None else ("", b"")

    def unread(self, file: str) -> bytes | None:
        """Return the content of the unread file, or None for any other file."""
        return self.data if self.file == file else None

    def keep(self) -> None:
        """Store the file after reading; ValueError if the disk is full."""
        self.kept[library.keep_file(self.data)] = len(self.data)
        self.bring("", b"")


_sessions: WeakValueDictionary[str, SessionUploads] = WeakValueDictionary()
_arriving: Counter[str] = Counter()


def of_session() -> SessionUploads:
    """Return the uploads of this session."""
    uploads: SessionUploads = st.session_state.setdefault("fmviz:own:uploads", SessionUploads())
    _sessions[_this_session()] = uploads
    return uploads


def room(session: str | None = None) -> tuple[float, float]:
    """Return the remaining upload bytes of a session, by default this one, and of all sessions."""
    session = _this_session() if session is None else session
    # Files not yet read by pages: Streamlit keeps them until the end of the session.
    manager: Any = Runtime.instance().uploaded_file_mgr if Runtime.exists() else None
    waiting = {} if manager is None else dict(manager.file_storage)
    in_memory = Counter(
        {name: sum(len(file.data) for file in list(files.values())) for name, files in waiting.items()}
    )
    in_memory.update(_arriving)
    in_memory.update({name: len(uploads.data) for name, uploads in list(_sessions.items())})
    kept = 0 if (mine := _sessions.get(session)) is None else sum(mine.kept.values())
    stored = sum(path.stat().st_size for path in data_folder().glob("file_*"))
    in_all = uploads_limit() - in_memory.total() - stored
    return SESSION_BYTES - in_memory[session] - kept, in_all


def why_not(n_bytes: int, session: str | None = None) -> str | None:
    """Return why a session, by default this one, may not upload this number of bytes, or None."""
    in_session, in_all = (max(0.0, remaining) for remaining in room(session))
    if n_bytes > in_session:
        return (
            f"The file has {in_words(n_bytes)}; this session can upload {in_words(in_session)} more, of "
            f"{in_words(SESSION_BYTES)}. Compress the file with gzip, or take a sample of its rows."
        )
    if n_bytes > in_all:
        return (
            f"The file has {in_words(n_bytes)}; the server has room for {in_words(in_all)} more, of "
            f"{in_words(uploads_limit())} for all visitors. Use a smaller file, or ask the administrator to "
            "raise FMVIZ_UPLOADS."
        )
    return None


@contextmanager
def arriving(session: str, n_bytes: int) -> Iterator[None]:
    """Count an upload of a session while receiving it."""
    _arriving[session] += n_bytes
    try:
        yield
    finally:
        _arriving[session] -= n_bytes
        if not _arriving[session]:
            del _arriving[session]


def taken(file: Any) -> bytes:
    """Return the content of an uploaded file and release Streamlit's copy."""
    context: Any = get_script_run_ctx()
    context.uploaded_file_mgr.remove_file(context.session_id, file.file_id)
    return bytes(file.getvalue())


def _this_session() -> str:
    context = get_script_run_ctx()
    return "" if context is None else context.session_id
