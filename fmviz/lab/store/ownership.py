"""Which process writes a run, and whether that process still lives."""

from __future__ import annotations

import os
import socket
import time
from functools import cache
from pathlib import Path

# A run of another machine counts as abandoned when it has not been heard of for so long.
SILENT_SECONDS = 900.0


def _begun(pid: int) -> str:
    """Return when a process began, in the system's own ticks; empty where that cannot be told.

    A process that has ended but is still listed, since nobody has asked for its end, has another answer.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        # The second field, the program's name in parentheses, may hold spaces.
        fields = text.rpartition(")")[2].split()
        return "ended" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""


@cache
def _owner_of(pid: int) -> str:
    return f"{socket.gethostname()}/{pid}/{_begun(pid)}"


def this_process() -> str:
    """Return the name of this process, which no other one has had or will have."""
    return _owner_of(os.getpid())


def lives(owner: str, updated: float) -> bool:
    """Return whether the process that wrote a run last, at the time `updated`, may still write it.

    Parameters
    ----------
    owner : str
        What `this_process` told there.
    updated : float
        Seconds since the epoch.
    """
    host, _, rest = owner.rpartition("/")[0].rpartition("/")
    pid, begun = rest, owner.rpartition("/")[2]
    if not pid.isdecimal():
        return False
    if host != socket.gethostname():
        # Neither does one that wrote in a time to come.
        return abs(time.time() - updated) < SILENT_SECONDS
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return _begun(int(pid)) == begun
