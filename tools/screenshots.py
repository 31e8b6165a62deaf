"""Photograph every page of the dashboard, light and dark, into screenshots/: `make screenshots`.

The pages are those in `pages/` beside the start page. With --docs the pictures of the documentation, which
show results, are renewed instead, all of them or those that are named. The script starts a server of its own
on a free port, with a store of its own, and stops it afterwards. FMVIZ_CHROMIUM names the browser.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Error, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "screenshots"
START_SECONDS = 60
SETTLE_MS = 120_000
WIDTH, LEAST_HEIGHT, MOST_HEIGHT = 1440, 1000, 6000
RESULT_MS = 600_000


@dataclass(frozen=True)
class Picture:
    """A picture of the documentation.

    Attributes
    ----------
    name : str
        Of the file in docs/.
    path : str
        The page, and its settings.
    height : int
        In pixels; what lies below is cut off.
    press : tuple of str
        The buttons and choices that are pressed first, by their words.
    until : str
        A text that is there as soon as there is a result.
    """

    name: str
    path: str
    height: int
    press: tuple[str, ...] = ()
    until: str = ""


PICTURES = (
    Picture("train", "train", 1290, ("Play",), "Take it with you"),
    Picture("prox", "prox", 1010),
    Picture(
        "lesson",
        "prox?lesson=all_or_nothing&step=2",
        1100,
        ("Nearly all: over 90 %", "Reveal"),
        "Two rows meet",
    ),
    Picture("geometry", "geometry", 1120),
    Picture("path", "path", 1900, ("Run 52 fits",), "One fit of the path"),
    Picture("interactions", "interactions", 1500, ("Train on Late flights from New York",), "Sort by"),
    Picture("sweeps", "sweeps", 1100, ("Run 72 fits",), "72 of 72 fits in"),
    Picture("compare", "compare", 1000, ("Start the comparison",), "Copy as Python"),
)


def page_paths() -> dict[str, str]:
    """Return the URL path of every page by the name of its picture."""
    paths = {"start": ""}
    for file in sorted((ROOT / "pages").glob("*.py")):
        # Streamlit leaves the number that orders the pages out of the address.
        name = re.sub(r"^\d+[_ -]*", "", file.stem)
        paths[name] = name
    return paths


def free_port() -> int:
    """Return a port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_served(address: str, server: subprocess.Popen[bytes]) -> None:
    """Return once the server answers `ok`; exit with a sentence when it does not."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
                if answer.read() == b"ok":
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    sys.exit(f"the dashboard did not start within {START_SECONDS} s: try make run")


def settle(page: Page) -> None:
    """Wait until the page has been drawn and its script has ended."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=SETTLE_MS)
    for loading in ("[data-stale=true]", "[data-testid=stSkeleton]"):
        page.locator(loading).first.wait_for(state="detached", timeout=SETTLE_MS)
    page.wait_for_timeout(2500)  # charts fade in


def stretch(page: Page) -> None:
    """Make the window as high as the page: Streamlit scrolls inside its main block, not the document."""
    height = page.evaluate("document.querySelector('[data-testid=stMain]')?.scrollHeight ?? 0")
    height = max(LEAST_HEIGHT, min(int(height), MOST_HEIGHT))
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.wait_for_timeout(800)


def photograph(browser: Browser, address: str) -> list[str]:
    """Save the pictures of all pages and return a sentence for every page that failed."""
    problems = []
    TARGET.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):
        for name, path in page_paths().items():
            page = browser.new_page(viewport={"width": WIDTH, "height": LEAST_HEIGHT}, color_scheme=scheme)
            try:
                page.goto(f"{address}/{path}")
                settle(page)
                if page.locator("[data-testid=stException]").count():
                    problems.append(f"{name} ({scheme}) shows an exception")
                stretch(page)
                page.screenshot(path=TARGET / f"{name}-{scheme}.png")
                print(f"screenshots/{name}-{scheme}.png")
            except Error as problem:
                problems.append(f"{name} ({scheme}): {problem.message.splitlines()[0]}")
            finally:
                page.close()
    return problems


def illustrate(browser: Browser, address: str) -> list[str]:
    """Save the pictures of the documentation and return a sentence for every one that failed."""
    problems = []
    named = [picture for picture in PICTURES if picture.name in sys.argv]
    for picture in named or PICTURES:
        page = browser.new_page(viewport={"width": WIDTH, "height": picture.height}, color_scheme="light")
        try:
            page.goto(f"{address}/{picture.path}")
            settle(page)
            for words in picture.press:
                page.get_by_text(words, exact=True).first.click()
                settle(page)
            if picture.until:
                page.get_by_text(picture.until).first.wait_for(timeout=RESULT_MS)
                settle(page)
            page.mouse.move(WIDTH - 1, picture.height // 2)
            settle(page)
            file = ROOT / "docs" / f"{picture.name}.png"
            page.screenshot(path=file)
            Image.open(file).convert("RGB").quantize(256).save(file, optimize=True)
            print(f"docs/{picture.name}.png")
        except Error as problem:
            problems.append(f"{picture.name}: {problem.message.splitlines()[0]}")
        finally:
            page.close()
    return problems


def main() -> None:
    """Serve, photograph, stop."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"FMVIZ_STORE": str(Path(folder) / "runs.sqlite")},
        )
        try:
            wait_until_served(address, server)
            with sync_playwright() as playwright:
                # A container's root user has no sandbox to offer; the pages shown are our own.
                browser = playwright.chromium.launch(
                    executable_path=os.environ.get("FMVIZ_CHROMIUM") or None, args=["--no-sandbox"]
                )
                problems = (illustrate if "--docs" in sys.argv else photograph)(browser, address)
                browser.close()
        finally:
            server.terminate()
            server.wait(timeout=20)
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
