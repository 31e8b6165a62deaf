"""What one watched training run costs the server, and what it sends, beyond what the run itself costs.

    python -m bench.live_view [checkout]

Serves a checkout, opens its page *Train* with a run that does not end, and takes the processor time of the
server and the bytes of its messages while the page is looked at, and the processor time once no page is open.
Needs Playwright and a Chromium (FMVIZ_CHROMIUM names one).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import sync_playwright

from .pages import browser_of, served_apart
from .peers import ROOT

LINK = "train?tol=0&max_epochs=100000&speed=slow&play=1"
SECONDS = 15.0


def server_of(port: str) -> int:
    """Return the process that serves a port."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if f"--server.port={port}".encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                    return int(folder.name)
    raise RuntimeError(f"no server on port {port}")


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process so far."""
    spent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(spent[11]) + int(spent[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()
    with served_apart(root) as url, sync_playwright() as playwright:
        server = server_of(url.rpartition(":")[2])
        browser = browser_of(playwright)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        got: list[int] = []
        page.on("websocket", lambda socket: socket.on("framereceived", lambda data: got.append(len(data))))
        page.goto(f"{url}/{LINK}")
        page.locator(".st-key-train_matrix canvas:visible").first.wait_for(timeout=180_000)
        page.wait_for_timeout(8_000)
        got.clear()
        before, began = processor_seconds(server), time.monotonic()
        page.wait_for_timeout(1000 * SECONDS)
        watched = (processor_seconds(server) - before) / (time.monotonic() - began)
        sent = list(got)
        page.close()
        time.sleep(2)
        before, began = processor_seconds(server), time.monotonic()
        time.sleep(SECONDS)
        alone = (processor_seconds(server) - before) / (time.monotonic() - began)
        browser.close()
    kilobytes = sum(sent) / 1_000 / SECONDS
    print(
        f"{commit}: watched {watched:.3f} cores, alone {alone:.3f}, the view {watched - alone:.3f}; "
        f"{len(sent) / SECONDS:.1f} messages and {kilobytes:.1f} kB a second"
    )


if __name__ == "__main__":
    main()
