"""``fmviz serve``: start the dashboard."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

from fmviz.cli._terminal import STORE, declare, store_path

HELP = "serve the dashboard"

_LOCAL = ("localhost", "127.0.0.1", "::1")
# Streamlit handles Ctrl-C once it serves; until then the process may simply end.
_SERVER = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "from streamlit.web.cli import main; main(prog_name='streamlit')"
)
_PACKAGE = Path(__file__).resolve().parents[1]


add = partial(
    declare,
    {
        "": {
            "--port": {"type": int, "help": "the port (default: 8501)"},
            "--host": {"help": "the address to listen on (default: 127.0.0.1, this machine alone)"},
            "--allow": {
                "action": "append",
                "default": [],
                "metavar": "NAME",
                "help": "a name under which it may be opened, besides localhost and, with --host, the names "
                "and addresses of this computer; repeatable, *.example.org for all below",
            },
            **STORE,
        }
    },
)


def run(arguments: argparse.Namespace) -> int:
    """Replace this process by the Streamlit server."""
    from fmviz.lab.quotas import memory_limit, uploads_limit

    # What is no limit is said before the server starts.
    memory_limit()
    uploads_limit()
    environment = dict(os.environ)
    if getattr(arguments, "store", None) is not None:
        environment["FMVIZ_STORE"] = str(store_path(arguments).resolve())
    sys.stdout.flush()
    # Not a child process, so that signals and the exit code are those of the server.
    os.execve(sys.executable, command(arguments.port, arguments.host, arguments.allow), environment)


def command(port: int | None, host: str | None, allowed: Sequence[str] = ()) -> list[str]:
    """Return the command line of the server; raises ValueError on an invalid port or address."""
    if port is not None and not 1 <= port <= 65_535:
        raise ValueError(f"--port {port} is no port; give a number from 1 to 65535.")
    names = [*_LOCAL, *own_names(host), *allowed] if host is not None or allowed else []
    given = [("port", port), ("address", host), *(("allowedHosts", name) for name in names)]
    options = [(f"--server.{option}", str(value)) for option, value in given if value is not None]
    return [sys.executable, "-c", _SERVER, "run", str(entry_page()), *chain(*options)]


def own_names(host: str | None) -> list[str]:
    """Return the names and addresses of this computer if `host` is given, or raise ValueError if invalid."""
    if host is None:
        return []
    try:
        socket.getaddrinfo(host, None, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ValueError(
            f"--host {host} is no address of this computer ({error.strerror}); 127.0.0.1 is this computer "
            "alone, 0.0.0.0 all its addresses."
        ) from None
    names = {host, socket.gethostname(), socket.getfqdn()}
    with suppress(OSError):
        names |= {str(address[4][0]) for address in socket.getaddrinfo(socket.gethostname(), None)}
    return sorted(names)


def entry_page() -> Path:
    """Return the path of app.py, in the checkout or in the installed package."""
    places = (_PACKAGE.parent / "app.py", _PACKAGE / "app" / "app.py")
    # The folder of installed packages may contain another app.py.
    path = next((p for p in places if p.is_file() and (p.parent / "pages" / "train.py").is_file()), None)
    if path is None:
        raise ValueError(
            "The pages of the dashboard are not installed; install fmviz from its source with pip install ."
        )
    return path
