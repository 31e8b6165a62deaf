"""``fmviz serve``: the dashboard."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from fmviz.cli._terminal import add_store, store_path

HELP = "serve the dashboard"

_PACKAGE = Path(__file__).resolve().parents[1]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--port", type=int, help="the port (default: 8501)")
    parser.add_argument("--host", help="the address to listen on (default: 127.0.0.1, this machine alone)")
    add_store(parser)


def run(arguments: argparse.Namespace) -> int:
    """Become Streamlit's server, with the settings beside the entry page."""
    environment = dict(os.environ)
    if getattr(arguments, "store", None) is not None:
        environment["FMVIZ_STORE"] = str(store_path(arguments).resolve())
    sys.stdout.flush()
    # Not a child: signals and the exit code are the server's own.
    os.execve(sys.executable, command(arguments.port, arguments.host), environment)


def command(port: int | None, host: str | None) -> list[str]:
    """Return the command line of the server; raises ValueError on a port that there cannot be."""
    if port is not None and not 1 <= port <= 65_535:
        raise ValueError(f"--port {port} is no port; give a number from 1 to 65535.")
    line = [sys.executable, "-m", "streamlit", "run", str(entry_page())]
    if port is not None:
        line += ["--server.port", str(port)]
    if host is not None:
        line += ["--server.address", host]
    return line


def entry_page() -> Path:
    """Return app.py: that of a checkout, or the copy that an installed package holds."""
    places = (_PACKAGE.parent / "app.py", _PACKAGE / "app" / "app.py")
    # Anything may be called app.py in the folder that a package was installed into.
    found = next((p for p in places if p.is_file() and (p.parent / "pages" / "train.py").is_file()), None)
    if found is None:
        raise ValueError(
            "The pages of the dashboard are not installed; install fmviz from its source with pip install ."
        )
    return found
