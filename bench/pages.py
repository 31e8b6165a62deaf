"""How long a person waits: from a running dashboard to painted heatmaps, and from a key to a new picture.

    make run                                   # in one terminal
    python -m bench.pages http://127.0.0.1:8501

The first visit is reported apart from the later ones, medians of five in new tabs of the same browser window.
Needs Playwright and a Chromium (FMVIZ_CHROMIUM names one).
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from .peers import ROOT
from .plot import chromium

# The pictures live in a shadow tree.
CANVASES = """[...document.querySelectorAll('.st-key-prox_view *')].flatMap(
  (e) => (e.shadowRoot ? [...e.shadowRoot.querySelectorAll('.stage canvas')] : []))"""
PAINTED = f"""() => {{
  const all = {CANVASES};
  return all.length === 8 && all.every((c) =>
    c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((x) => x !== 0));
}}"""
KEY = f"""() => new Promise((done) => {{
  const canvas = {CANVASES}[5];
  const before = canvas.toDataURL();
  const box = document.querySelector('.st-key-prox_log2lambda');
  const thumb = box.querySelector('input[type=range], [role=slider]');
  thumb.focus();
  thumb.addEventListener('keydown', () => {{
    const start = performance.now();
    const tick = () => canvas.toDataURL() !== before ? window.took(performance.now() - start)
                                                     : requestAnimationFrame(tick);
    tick();
  }}, {{ once: true, capture: true }});
  done();
}})"""


@contextmanager
def served(surroundings: Mapping[str, str], root: Path = ROOT) -> Iterator[str]:
    """Serve a checkout's dashboard on a free port, with more environment variables; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"],
        cwd=root,
        env={**os.environ, **surroundings},
        stdout=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
                    if answer.read() == b"ok":
                        break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def served_apart(root: Path = ROOT) -> Iterator[str]:
    """Serve a dashboard over an empty store of its own, which goes with it; yield its address."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served({"FMVIZ_STORE": f"{folder}/runs.sqlite"}, root) as url,
    ):
        yield url


def launching() -> dict[str, Any]:
    """Return what launches a Chromium that paints without a graphics card and calls nobody."""
    return {
        "executable_path": chromium(),
        "args": ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    }


def browser_of(playwright: Playwright) -> Browser:
    """Return such a Chromium."""
    return playwright.chromium.launch(**launching())


def first_visit(window: BrowserContext, url: str) -> float:
    """Return the seconds until the start page has its heading."""
    page = window.new_page()
    begin = time.perf_counter()
    page.goto(url)
    page.get_by_role("heading", level=1).wait_for(timeout=180_000)
    return time.perf_counter() - begin


def visit(window: BrowserContext, url: str) -> tuple[Page, float]:
    """Open the operators page; return the page and the seconds until all heatmaps are painted."""
    page = window.new_page()
    begin = time.perf_counter()
    page.goto(f"{url}/prox")
    page.wait_for_function(PAINTED, timeout=180_000)
    return page, time.perf_counter() - begin


def main() -> None:
    """Measure and print."""
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8501"
    with sync_playwright() as playwright:
        browser = browser_of(playwright)
        window = browser.new_context(viewport={"width": 1440, "height": 900})
        print(f"start page, first visit:            {first_visit(window, url):.2f} s")
        page, first = visit(window, url)
        print(f"operators, first visit, painted:    {first:.2f} s")
        later = []
        for _ in range(5):
            page.close()
            page, seconds = visit(window, url)
            later.append(seconds)
        print(
            f"operators, later visits, painted:   {statistics.median(later):.2f} s (worst {max(later):.2f})"
        )
        page.wait_for_timeout(2_000)
        keys: list[float] = []
        page.expose_function("took", lambda seconds: keys.append(seconds))
        for key in ["ArrowRight"] * 4 + ["ArrowLeft"] * 4:
            page.evaluate(KEY)
            page.keyboard.press(key)
            page.wait_for_timeout(700)
        print(f"arrow key to updated picture:       {statistics.median(keys):.0f} ms (worst {max(keys):.0f})")
        browser.close()


if __name__ == "__main__":
    main()
