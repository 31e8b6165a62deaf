"""The beat by which a fragment is drawn again and again, set by the browser."""

from __future__ import annotations

import functools
import json
import struct
import time
from importlib import resources
from typing import Any

__all__ = ["pulse"]


@functools.cache
def _component() -> Any:
    import streamlit as st

    here = resources.files(__package__)
    return st.components.v2.component("fmviz.pulse", js=here.joinpath("pulse.js").read_text(encoding="utf-8"))


def _ignore() -> None:
    # Streamlit takes no event of a component without a callback.
    pass


def pulse(key: str, seconds: float, *, to: str = "", payload: bytes = b"") -> None:
    """Have the fragment that this is called in drawn again after a while, as long as its tab is looked at.

    Unlike ``run_every`` of `st.fragment`, it waits for the answer before it asks anew, waits longer where the
    answer takes long, and asks for nothing in a hidden tab.

    Parameters
    ----------
    key : str
        Unique on the page.
    seconds : float
        The least pause.
    to : str
        The name of a component of the page, if it is to be handed something.
    payload : bytes
        What to hand it.
    """
    head = json.dumps({"turn": time.monotonic_ns(), "wait": seconds, "to": to}).encode()
    _component()(
        data=struct.pack("<I", len(head)) + head + payload,
        key=key.replace("__", "_-"),
        on_beat_change=_ignore,
    )
