"""Track what a browser session uploads: its data sets, and the size of its files before they are read."""

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
_OWNER = "fmviz:own:owner"


def owner() -> str:
    """Return a name for whoever sits at this browser: of its cookie against forged requests, a hash.

    Where it takes no cookies, of this session alone.
    """
    try:
        _, mask, masked, _ = st.context.cookies["_streamlit_xsrf"].strip('"').split("|")
        # Every answer masks the same token anew.
        pairs = zip(bytes.fromhex(masked), cycle(bytes.fromhex(mask)), strict=False)
        token = bytes(byte ^ other for byte, other in pairs)
    except (KeyError, ValueError):
        token = st.session_state.setdefault(_OWNER, secrets.token_bytes(16))
    return hashlib.sha256(token).hexdigest()[:20]


def mine() -> list[str]:
    """Return the names, in the order in which they came."""
    return list(st.session_state.get(_MINE, ()))


def remember(name: str) -> None:
    """Add a data set, unless it is there."""
    if is_upload(name) and name not in mine():
        st.session_state[_MINE] = [*mine(), name]


def forget(name: str) -> None:
    """Take a data set away."""
    st.session_state[_MINE] = [other for other in mine() if other != name]


def menu(chosen: str) -> list[str]:
    """Return the names for a menu in which one is chosen: the registered ones and those of this session."""
    remember(chosen)
    return [*DATASETS, *mine()]


def label(name: str) -> str:
    """Return the title for a menu; of one's own, with the beginning of the hash, since titles may repeat."""
    title = dataset_spec(name).title
    return f"{title} · {name.removeprefix('own_')[:4]}" if is_upload(name) else title


# ------------------------------------------------------------------------------------------------ sizes

SESSION_BYTES = 200_000_000
_BROUGHT = "fmviz:own:uploads"


@dataclass(eq=False)
class SessionUploads:
    """What a session has brought, which goes with it.

    Attributes
    ----------
    file, data : str, bytes
        The hash and the content of a file that was not read yet, or could not be.
    kept : dict of str to int
        The sizes of those that could, which are kept on the disk.
    """

    file: str = ""
    data: bytes = b""
    kept: dict[str, int] = field(default_factory=dict)

    def bring(self, file: str, data: bytes) -> None:
        """Take in a file in place of the one that was not read; nothing of one that is kept."""
        self.file, self.data = (file, data) if library.size_of_file(file) is None else ("", b"")

    def unread(self, file: str) -> bytes | None:
        """Return the content of a file that is not kept, None where it is another one."""
        return self.data if self.file == file else None

    def keep(self) -> None:
        """Keep the file, which was read; raises ValueError where the disk is full."""
        self.kept[library.keep_file(self.data)] = len(self.data)
        self.bring("", b"")


_sessions: WeakValueDictionary[str, SessionUploads] = WeakValueDictionary()
_arriving: Counter[str] = Counter()


def of_session() -> SessionUploads:
    """Return what this session has brought."""
    uploads: SessionUploads = st.session_state.setdefault(_BROUGHT, SessionUploads())
    _sessions[_this_session()] = uploads
    return uploads


def room(session: str | None = None) -> tuple[float, float]:
    """Return how many bytes more a session, by default this one, may upload, and all of them together."""
    session = _this_session() if session is None else session
    # What pages have not taken yet: Streamlit keeps it until its session ends.
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
    """Return None, or the sentence that says why a session, by default this one, may not upload so much."""
    in_session, in_all = (max(0.0, remaining) for remaining in room(session))
    if n_bytes > in_session:
        return (
            f"{in_words(n_bytes)} are too much: a session may upload {in_words(SESSION_BYTES)}, of which it "
            f"has {in_words(in_session)} left. Compress the file with gzip, or take a sample of its rows."
        )
    if n_bytes > in_all:
        return (
            f"{in_words(n_bytes)} are too much: all visitors may upload {in_words(uploads_limit())}, and "
            f"there is room for {in_words(in_all)}. Take a smaller file, or ask whoever runs it to raise "
            "FMVIZ_UPLOADS."
        )
    return None


@contextmanager
def arriving(session: str, n_bytes: int) -> Iterator[None]:
    """Count an upload of a session while it is being received."""
    _arriving[session] += n_bytes
    try:
        yield
    finally:
        _arriving[session] -= n_bytes
        if not _arriving[session]:
            del _arriving[session]


def taken(file: Any) -> bytes:
    """Return the content of a file of an uploader, which Streamlit then keeps no longer."""
    context: Any = get_script_run_ctx()
    context.uploaded_file_mgr.remove_file(context.session_id, file.file_id)
    return bytes(file.getvalue())


def _this_session() -> str:
    context = get_script_run_ctx()
    return "" if context is None else context.session_id
