"""Serve the dashboard, open its pages in a browser, and read the CPU time of the server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, Playwright

from .peers import ROOT

# The pictures are in a shadow tree.
PAINTED = """() => {
  const all = [...document.querySelectorAll('.st-key-prox_view *')].flatMap(
    (e) => (e.shadowRoot ? [...e.shadowRoot.querySelectorAll('.stage canvas')] : []));
  return all.length === 8 && all.every((c) =>
    c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((x) => x !== 0));
}"""


@contextmanager
def served() -> Iterator[str]:
    """Serve the dashboard on a free port with a temporary store; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"],
            cwd=ROOT,
            env={**os.environ, "FMVIZ_STORE": f"{folder}/runs.sqlite"},
            stdout=subprocess.DEVNULL,
        )
        try:
            for _ in range(600):
                with suppress(OSError), urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
                    if answer.read() == b"ok":
                        break
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            process.wait(20)


def server_of(port: str) -> int:
    """Return the process that listens on a port."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if f"--server.port={port}".encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                    return int(folder.name)
    raise RuntimeError(f"no server on port {port}")


def processor_seconds(pid: int) -> float:
    """Return the CPU time of a process so far."""
    spent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(spent[11]) + int(spent[12])) / os.sysconf("SC_CLK_TCK")


def browser_of(playwright: Playwright) -> Browser:
    """Launch a Chromium with software rendering and without background network requests."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    installed = next(filter(None, map(shutil.which, names)), None)
    return playwright.chromium.launch(
        executable_path=os.environ.get("FMVIZ_CHROMIUM") or installed,
        args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    )


def visit(window: BrowserContext, url: str) -> tuple[Page, float]:
    """Open the operators page; return the page and the seconds until all heatmaps are painted."""
    page = window.new_page()
    begin = time.perf_counter()
    page.goto(f"{url}/prox")
    page.wait_for_function(PAINTED, timeout=180_000)
    return page, time.perf_counter() - begin
