"""``fmviz serve``: start the dashboard."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

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
            "--port": {"help": "the port (default: 8501)"},
            "--host": {"help": "the address to listen on (default: 127.0.0.1, this computer only)"},
            "--allow": {
                "action": "append",
                "default": [],
                "metavar": "NAME",
                "help": "an additional host name, besides localhost and, with --host, the names and "
                "addresses of this computer; repeatable, *.example.org for all subdomains",
            },
            **STORE,
        }
    },
)


def run(arguments: argparse.Namespace) -> int:
    """Replace this process by the Streamlit server; on Windows, start it and return its exit code."""
    from fmviz.lab.quotas import memory_limit, uploads_limit

    # Invalid limits are reported before the server starts.
    memory_limit()
    uploads_limit()
    line = command(arguments.port, arguments.host, arguments.allow)
    check_port(arguments.port, arguments.host)
    if "HOME" not in os.environ:  # Streamlit needs one.
        from fmviz.engine._jit import home

        home()
    environment = os.environ | {"FMVIZ_STORE": str(store_path(arguments).resolve())}
    sys.stdout.flush()
    if sys.platform != "win32":
        # Not a child process: signals and the exit code are those of the server.
        os.execve(sys.executable, line, environment)
    # Windows quotes no arguments of execve, and returns to the prompt while the server runs.
    return subprocess.call(line, env=environment)


def check_port(port: str | None, host: str | None) -> None:
    """Raise ValueError if the server cannot listen on a port; the message names a free one.

    Defaults come from Streamlit's environment variables and configuration, as in the server.
    """
    configured = tomllib.loads((entry_page().parent / ".streamlit/config.toml").read_text("utf-8"))["server"]
    address = host or os.environ.get("STREAMLIT_SERVER_ADDRESS") or configured.get("address", "")
    text = port or os.environ.get("STREAMLIT_SERVER_PORT") or str(configured["port"])
    # `make run` passes its own command.
    form = os.environ.get("FMVIZ_PORT_FORM", "fmviz serve --port ")
    if not (text.isdecimal() and len(text) < 6 and (number := int(text)) in range(1, 65_536)):
        raise ValueError(
            f"{form.split(maxsplit=2)[-1]}{text} is not a port; use a number from 1 to 65535, as in "
            f"{form}8502."
        )
    if problem := _why_closed(address, number):
        url = f"http://{'127.0.0.1' if address in ('', '0.0.0.0', '::') else address}:{number}"
        # Without a proxy; the service that answers may not speak HTTP.
        with (
            suppress(Exception),
            build_opener(ProxyHandler({})).open(f"{url}/_stcore/health", timeout=2) as answer,
        ):
            problem = f"fmviz runs at {url}" if answer.headers["X-Powered-By"] == "fmviz" else problem
        # Ports below 1024 need privileges.
        free = next((n for n in range(max(number, 1023) + 1, 65_536) if not _why_closed(address, n)), 8502)
        raise ValueError(f"Port {number} cannot be used ({problem}). Choose another one: {form}{free}")


def _why_closed(address: str, port: int) -> str:
    """Return why no server can listen on a port, or an empty string; port 0 is any free one."""
    try:
        socket.create_server(
            (address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET
        ).close()
    except OSError as error:
        return str(error.strerror).partition(" (")[0]
    return ""


def command(port: str | None, host: str | None, allowed: Sequence[str] = ()) -> list[str]:
    """Return the command line of the server; raises ValueError on an invalid address."""
    names = [*_LOCAL, *(own_names(host) if host else ()), *allowed] if host or allowed else []
    given = [("port", port), ("address", host), *(("allowedHosts", name) for name in names)]
    options = [(f"--server.{option}", value) for option, value in given if value]
    return [sys.executable, "-c", _SERVER, "run", str(entry_page()), *chain(*options)]


def own_names(host: str) -> list[str]:
    """Return the names and addresses of this computer; raises ValueError if `host` is not among them."""
    if problem := _why_closed(host, 0):
        raise ValueError(
            f"--host {host} is not an address of this computer ({problem}); use 127.0.0.1 for this "
            "computer only, 0.0.0.0 for all its addresses."
        )
    names = {host, socket.gethostname(), socket.getfqdn()}
    with suppress(OSError):
        names |= {str(address[4][0]) for address in socket.getaddrinfo(socket.gethostname(), None)}
    return sorted(names)


def entry_page() -> Path:
    """Return the path of app.py, in the checkout or in the installed package."""
    places = (_PACKAGE.parent / "app.py", _PACKAGE / "app" / "app.py")
    # The site-packages folder may contain another app.py.
    path = next((p for p in places if p.is_file() and (p.parent / "pages" / "train.py").is_file()), None)
    if path is None:
        raise ValueError(
            "The pages of the dashboard are not installed; install fmviz from its source with pip install ."
        )
    return path
