"""What the server is doing: kernels being compiled, jobs running."""

from __future__ import annotations

import streamlit as st

from fmviz.engine._jit import compiling
from fmviz.lab.background.tasks import manager
from fmviz.ui.escape import plain
from fmviz.ui.guard import fragment

__all__ = ["draw_status", "is_busy", "running_jobs"]

_POLL = 1.5  # seconds between looks while something is going on


def running_jobs() -> int:
    """Return how many tasks are at work in this process, for all sessions."""
    return len(manager().running())


def is_busy() -> bool:
    """Return whether kernels are being compiled or jobs are at work."""
    return bool(compiling()) or running_jobs() > 0


def draw_status() -> None:
    """Draw what is going on, again and again while something is."""
    fragment(_chip, run_every=_POLL if is_busy() else None)()


def _chip() -> None:
    kernels, jobs = compiling(), running_jobs()
    with st.container(horizontal=True, key="shell_status", gap="xsmall"):
        if kernels:
            st.badge(
                f"Compiling {plain(kernels[0])}…",
                icon=":material/hourglass_top:",
                color="orange",
                help="The first use of a kernel compiles it; the result is kept for the next start.",
            )
        else:
            st.badge(
                "Kernels ready", icon=":material/bolt:", color="green", help="Nothing is being compiled now."
            )
        if jobs:
            st.badge(
                f"{jobs} job{'s' if jobs > 1 else ''} running",
                icon=":material/progress_activity:",
                color="blue",
                help="Training runs at work on this machine, of all sessions.",
            )
