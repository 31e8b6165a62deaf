"""Take screenshots of every page of the dashboard, light and dark, into screenshots/: `make screenshots`.

The pages are the start page and those in `pages/`. With --docs, the pictures and films of the documentation,
which show results, are updated instead, all or only the named ones. The script starts a separate server on a
free port with a temporary store, and stops it afterwards. FMVIZ_CHROMIUM sets the browser.
"""

import io
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from PIL import Image, ImageChops
from playwright.sync_api import Browser, Error, FloatRect, Page, sync_playwright

from fmviz.lab.lessons.steps import lessons
from fmviz.lab.lessons.values import calculate, right_choice

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "screenshots"
START_SECONDS = 60
SETTLE_MS = 120_000
WIDTH, LEAST_HEIGHT, MOST_HEIGHT = 1440, 1000, 6000
RESULT_MS = 300_000
# The width of the sidebar, which pictures of the documentation omit.
SIDEBAR = 310


@dataclass(frozen=True)
class Picture:
    """A picture of the documentation.

    Attributes
    ----------
    name : str
        The name of the file in docs/.
    path : str
        The page with its settings.
    height : int
        The height in pixels, at which the page is cropped.
    press : tuple of str
        The labels of the buttons and choices to press first.
    until : str
        A text that appears with the result.
    within : str
        The part of the page, as a CSS selector, with these buttons and choices.
    """

    name: str
    path: str
    height: int
    press: tuple[str, ...] = ()
    until: str = ""
    within: str = "body"


PICTURES = (
    Picture("train", "train", 960, ("Play",), "Copy as Python"),
    Picture("geometry", "geometry", 1120),
    Picture("path", "path", 1050, until="Open in Train"),
    Picture(
        "interactions",
        "data",
        1180,
        ("Try the example", "Train and explain pairs"),
        "Pairs of features used:",
    ),
    Picture("sweeps", "sweeps?starts=random", 1100, ("Run 72 fits",), "72 of 72 fits in"),
    Picture("compare", "compare", 960, until="Copy as Python"),
)
# The step of every lesson that is photographed with its answer.
LESSONS = {
    "prox": 4,
    "all_or_nothing": 3,
    "ti": 5,
    "cs": 5,
    "lambda": 3,
    "heatmap": 2,
    "one_basis": 2,
    "outliers": 3,
}


def pictures() -> list[Picture]:
    """Return all pictures of the documentation, those of lessons included."""
    every = [*PICTURES]
    for name, number in LESSONS.items():
        step = lessons()[name].steps[number - 1]
        assert step.question is not None
        answer = right_choice(step.question, dict(calculate(step))).words
        path = f"{step.before.page}?lesson={name}&step={number}"
        every.append(
            Picture(f"lesson_{name}", path, 806, (answer,), "You were right.", ".st-key-lesson_choices")
        )
    return every


class Camera:
    """Records the frames of a film: screenshots of the first screen, with durations."""

    SIZE = (1366, 768)
    CLIP: ClassVar[FloatRect] = {"x": 312, "y": 0, "width": 1042, "height": 768}  # without the sidebar
    SHOWN = (868, 640)
    PAUSE_MS = 200

    def __init__(self, page: Page):
        self.page = page
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []

    def roll(self, seconds: float) -> None:
        """Record frames for some seconds; unchanged frames are merged into a longer one."""
        until = time.monotonic() + seconds
        while (started := time.monotonic()) < until:
            frame = (
                Image.open(io.BytesIO(self.page.screenshot(clip=self.CLIP)))
                .convert("RGB")
                .resize(self.SHOWN, 1)
            )
            self.page.wait_for_timeout(max(0.0, self.PAUSE_MS - 1000 * (time.monotonic() - started)))
            lasted = round(1000 * (time.monotonic() - started))
            if self.frames and not ImageChops.difference(frame, self.frames[-1]).getbbox():
                self.durations[-1] += lasted
            else:
                self.frames.append(frame)
                self.durations.append(lasted)

    def save(self, file: Path) -> None:
        """Save the frames as a looping animated WebP."""
        first, *others = self.frames
        first.save(
            file, save_all=True, append_images=others, duration=self.durations, loop=0, quality=75, method=6
        )


def film_of_arena(page: Page, roll: Callable[[float], None]) -> None:
    """Move λ on the start page, then train the four models at a fixed strength."""
    page.get_by_text("exactly the true pairs").first.wait_for(timeout=RESULT_MS)
    page.get_by_text("Along λ", exact=True).first.click()
    settle(page)
    roll(1.5)
    handle = page.get_by_role("slider", name="Strength λ").first
    handle.focus()
    for key in ("ArrowLeft",) * 6 + ("ArrowRight",) * 14:
        handle.press(key)
        roll(0.3)
    roll(1.5)
    for _ in range(8):
        handle.press("ArrowLeft")
    page.get_by_text("Epoch by epoch", exact=True).first.click()
    roll(6)


def film_of_data(page: Page, roll: Callable[[float], None]) -> None:
    """Load the example, press one button, and scroll through the sentences."""
    roll(1)
    page.get_by_text("Try the example", exact=True).first.click()
    train = page.get_by_role("button", name="Train and explain pairs").first
    train.wait_for(timeout=SETTLE_MS)
    page.mouse.move(1, 1)
    roll(2.5)
    train.click()
    page.get_by_text("Read it by").first.wait_for(timeout=RESULT_MS)
    roll(1.5)
    page.get_by_text("Pairs of features used:").first.wait_for(timeout=RESULT_MS)
    roll(2)
    for _ in range(8):
        page.get_by_test_id("stMain").evaluate("(main) => main.scrollBy(0, 60)")
        roll(0.3)
    roll(2)


FILMS = {"arena": ("", film_of_arena), "sentences": ("data", film_of_data)}


def film(browser: Browser, address: str, name: str) -> None:
    """Save a film of the documentation."""
    path, script = FILMS[name]
    width, height = Camera.SIZE
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    try:
        page.goto(f"{address}/{path}")
        settle(page)
        camera = Camera(page)
        script(page, camera.roll)
        camera.save(ROOT / "docs" / f"{name}.webp")
        print(f"docs/{name}.webp")
    finally:
        page.close()


def page_paths() -> dict[str, str]:
    """Return the URL path of every page by the name of its picture."""
    paths = {"start": ""}
    for file in sorted((ROOT / "pages").glob("*.py")):
        # Streamlit omits the number that orders the pages from the URL.
        name = re.sub(r"^\d+[_ -]*", "", file.stem)
        paths[name] = name
    return paths


def free_port() -> int:
    """Return a currently unused port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_served(address: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server responds with `ok`; exit with a message if it does not."""
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
    """Wait until the page is rendered and its script has ended."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=SETTLE_MS)
    for loading in ("[data-stale=true]", "[data-testid=stSkeleton]"):
        page.locator(loading).first.wait_for(state="detached", timeout=SETTLE_MS)
    page.wait_for_timeout(2500)  # charts fade in


def stretch(page: Page) -> None:
    """Resize the window to the height of the page: Streamlit scrolls its main block, not the document."""
    height = page.evaluate("document.querySelector('[data-testid=stMain]')?.scrollHeight ?? 0")
    height = max(LEAST_HEIGHT, min(int(height), MOST_HEIGHT))
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.wait_for_timeout(800)


def photograph(browser: Browser, address: str) -> list[str]:
    """Save screenshots of all pages and return a message for every page that failed."""
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
    """Save the pictures of the documentation and return a message for every one that failed."""
    problems = []
    every = pictures()
    named = {*sys.argv}.intersection((*FILMS, *(picture.name for picture in every)))
    for name in FILMS:
        if name in named or not named:
            try:
                film(browser, address, name)
            except Error as problem:
                problems.append(f"{name}: {problem.message.splitlines()[0]}")
    for picture in every:
        if named and picture.name not in named:
            continue
        page = browser.new_page(viewport={"width": WIDTH, "height": picture.height}, color_scheme="light")
        try:
            page.goto(f"{address}/{picture.path}")
            settle(page)
            for words in picture.press:
                page.locator(picture.within).get_by_text(words, exact=True).first.click()
                settle(page)
            if picture.until:
                page.get_by_text(picture.until).first.wait_for(timeout=RESULT_MS)
                settle(page)
            page.mouse.move(WIDTH - 1, picture.height // 2)
            settle(page)
            file = ROOT / "docs" / f"{picture.name}.png"
            shown = {"x": SIDEBAR, "y": 0, "width": WIDTH - SIDEBAR, "height": picture.height}
            page.screenshot(path=file, clip=shown)
            Image.open(file).convert("RGB").quantize(256).save(file, optimize=True)
            print(f"docs/{picture.name}.png")
        except Error as problem:
            problems.append(f"{picture.name}: {problem.message.splitlines()[0]}")
        finally:
            page.close()
    return problems


def main() -> None:
    """Start a server, take the screenshots, and stop it."""
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
                # The root user of a container has no sandbox; only our own pages are opened.
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
