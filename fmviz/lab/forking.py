"""Servers that have imported modules once and fork a process for every request, on Linux."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

FORKS = sys.platform == "linux"
"""Whether this system has fork servers."""
_LONGEST_NAME = 4096


class ForkServer:
    """A process, started at the first request, that forks a child for every request.

    The server ends with this process, and all its children with the server.

    Parameters
    ----------
    child : str
        The module and the name of the function that a child calls with the descriptor of its connection.
    environment : callable
        Returns the environment variables of the server.
    """

    def __init__(self, child: str, environment: Callable[[], Mapping[str, str]]) -> None:
        self._child, self._environment = child, environment
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        atexit.register(self.close)

    def connect(self, function: Callable[..., Any]) -> socket.socket:
        """Fork a child, and return the connection to it; the server imports the module of the function."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            # A process forked from this one needs its own server.
            if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
                self._close()
                self._start()
            socket.send_fds(self._control, [pickle.dumps(function)], [theirs.fileno()])
        return ours

    def close(self) -> None:
        """Kill the server and its children; the next request starts another one."""
        with self._lock:
            self._close()

    def _start(self) -> None:
        self._control, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        module, _, name = self._child.rpartition(".")
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-c"),
                    f"from {__name__} import serve; from {module} import {name}; "
                    f"serve({theirs.fileno()}, {name})",
                ],
                pass_fds=(theirs.fileno(),),
                env=dict(self._environment()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C in a terminal interrupts the parent only.
            )
        self._owner = os.getpid()

    def _close(self) -> None:
        if self._process is not None:
            self._control.close()
            if self._owner == os.getpid() and self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._process = None


# ---------------------------------------------------------------------------------------------- in the server


def serve(descriptor: int, child: Callable[[int], None]) -> None:
    """Fork a child for every incoming connection until the parent ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Children are never waited for.
    with socket.socket(fileno=descriptor) as control:
        while True:
            message, connections, *_ = socket.recv_fds(control, _LONGEST_NAME, 1)
            if not message:
                break
            # Unpickling imports the module for all later calls. Errors recur in the child.
            with contextlib.suppress(Exception):
                pickle.loads(message)
            # Imported objects are garbage in no child, and their pages stay shared.
            gc.freeze()
            if not os.fork():
                try:
                    control.close()  # Others' requests come in there.
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    child(connections[0])
                finally:
                    os._exit(1)
            os.close(connections[0])
    os.killpg(0, signal.SIGKILL)
