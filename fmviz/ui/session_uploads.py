"""Track the uploads that a browser session may see."""

from __future__ import annotations

import hashlib
import secrets
from itertools import cycle

import streamlit as st

from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import DATASETS
from fmviz.lab.uploads import is_upload

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
