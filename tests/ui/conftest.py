"""A running dashboard and a real browser for the tests marked `browser`."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from apptests import after_every_run, raises_nothing, scan_packages_once, shows_no_error
from inline_executor import InlineExecutor
from streamlit.testing.v1 import AppTest
from ui import driving
from ui.sentences import Sentences

from fmviz.lab.background import tasks
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.background.workers import WORKERS
from fmviz.lab.store import RunStore
from fmviz.lab.store import store as process_store
from fmviz.ui.settings import state

AppTest._run = after_every_run(raises_nothing)  # type: ignore[method-assign]
scan_packages_once()

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_FLAGS = (
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option that takes over what pages say."""
    parser.addoption(
        "--update-sentences", action="store_true", help="write tests/ui/sentences anew from the pages"
    )


@pytest.fixture(autouse=True)
def _expert(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests in this process meet all controls, but those that are marked `simple`."""
    if request.node.get_closest_marker("simple") is None:
        shared = (replace(spec, default="expert") if spec.name == "level" else spec for spec in state.SHARED)
        monkeypatch.setattr(state, "SHARED", tuple(shared))


@pytest.fixture(autouse=True)
def _faultless(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every page of tests marked `faultless` show no error."""
    marker = request.node.get_closest_marker("faultless")
    if marker is not None and marker.args != (False,):
        monkeypatch.setattr(AppTest, "_run", after_every_run(shows_no_error))


@pytest.fixture(scope="session")
def sentences(request: pytest.FixtureRequest) -> Iterator[Sentences]:
    """Compare what pages say with their files, or write these."""
    update = request.config.getoption("--update-sentences")
    if update and hasattr(request.config, "workerinput"):
        pytest.fail("--update-sentences writes from one process: leave -n out")
    recorded = Sentences(update)
    yield recorded
    if update:
        recorded.write()


@dataclass
class Server:
    """One Streamlit server: its address and where it writes what it says."""

    url: str
    log: Path

    def tail(self, lines: int = 40) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_healthy(url: str) -> bool:
    # Compare the body: paths that do not exist answer with status 200 as well.
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
            return bool(answer.read() == b"ok")
    except (OSError, urllib.error.URLError):
        return False


@contextlib.contextmanager
def _running(script: Path, log: Path, port: int = 0) -> Iterator[Server]:
    port = port or _free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    options = {
        "server.headless": "true",
        "server.address": "127.0.0.1",
        "server.port": str(port),
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
    }
    path = os.pathsep.join(x for x in (str(ROOT), os.environ.get("PYTHONPATH", "")) if x)
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command + [f"--{name}={value}" for name, value in options.items()],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
        server = Server(url, log)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not _is_healthy(url):
                if process.poll() is not None:
                    pytest.fail(f"streamlit ended with code {process.returncode}:\n{server.tail()}")
                if time.monotonic() > deadline:
                    pytest.fail(f"streamlit was not ready after {START_SECONDS} s:\n{server.tail()}")
                time.sleep(0.1)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    """Start the server of a script, given relative to the repository, once a session."""
    with contextlib.ExitStack() as stack:
        servers: dict[str, Server] = {}

        def start(script: str) -> Server:
            if script not in servers:
                log = tmp_path_factory.mktemp("server") / "streamlit.log"
                servers[script] = stack.enter_context(_running(ROOT / script, log))
            return servers[script]

        yield start


@pytest.fixture
def serve_anew(tmp_path: Path) -> Callable[[], contextlib.AbstractContextManager[Server]]:
    """Return a context of the dashboard for one test, at the same address whenever it is entered."""
    return partial(_running, ROOT / "app.py", tmp_path / "streamlit.log", _free_port())


@pytest.fixture(scope="session")
def server(serve: Callable[[str], Server]) -> Server:
    """The dashboard itself."""
    return serve("app.py")


def _chromium() -> str:
    given = os.environ.get("FMVIZ_CHROMIUM")
    if given:
        if not shutil.which(given):
            pytest.fail(f"FMVIZ_CHROMIUM = {given!r} is not a program that can be run.")
        return given
    for name in CHROMIUM_NAMES:
        path = shutil.which(name)
        if path:
            return path
    pytest.fail(
        f"No browser found: none of {', '.join(CHROMIUM_NAMES)} is on the PATH. Install Chromium or set "
        "FMVIZ_CHROMIUM to its path; leave these tests out with -m 'not browser'."
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The system's Chromium, headless."""
    from playwright.sync_api import sync_playwright

    path = _chromium()
    with sync_playwright() as driver:
        # The sandbox needs privileges that containers often lack, and only our own pages are opened.
        chromium = driver.chromium.launch(
            executable_path=path, headless=True, chromium_sandbox=False, args=list(CHROMIUM_FLAGS)
        )
        yield chromium
        chromium.close()


def _is_local(url: str) -> bool:
    return urlsplit(url).hostname in (None, "", "127.0.0.1", "localhost")


@pytest.fixture(scope="session")
def profile(browser: Any) -> Iterator[Any]:
    """The browser of a user who has been here before: it keeps the scripts that it has read and compiled."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context
    context.close()


@pytest.fixture
def new_page(browser: Any, profile: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Open pages; errors in their consoles fail the test at its end.

    Pages share the `profile`, which takes half the time of a new one, and leave nothing in it; one that is
    opened `apart` has a browser to itself. The options are those of playwright's `new_context`. Each page has
    the list of its errors as `.errors`.
    """
    taking_turns = request.node.nodeid.endswith("@browser")
    assert taking_turns or not request.config.getoption("loadgroup", False), "tests/conftest.py has no effect"
    errors: list[str] = []
    with contextlib.ExitStack() as stack:

        def said(message: Any) -> None:
            where = message.location.get("url", "")
            lost = "Failed to load resource" in message.text or "net::ERR" in message.text
            # Opened at /train, Streamlit looks for its health beneath /train first; that miss is its own.
            excused = lost and (not _is_local(where) or "/_stcore/" in where)
            if message.type == "error" and not excused:
                errors.append(f"{message.text} ({where})")

        def asked(request: Any) -> None:
            if not _is_local(request.url):
                errors.append(f"a request leaves the server: {request.url}")

        def leave(page: Any) -> None:
            if page.url.startswith("http"):
                page.evaluate("() => localStorage.clear()")
            page.close()

        def open_page(apart: bool = False, **options: Any) -> Any:
            options = {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light", **options}
            if apart:
                context = browser.new_context(**options)
                stack.callback(context.close)
                page = context.new_page()
            else:
                page = profile.new_page()
                stack.callback(leave, page)
                page.set_viewport_size(options.pop("viewport"))
                page.emulate_media(color_scheme=options.pop("color_scheme"))
                assert not options, f"{options}: for a page of its own, pass apart=True"
            # Kernels that no warm-up foresaw may have to be compiled on the way.
            page.set_default_timeout(60_000)
            page.on("console", said)
            page.on("request", asked)
            page.on("pageerror", lambda error: errors.append(f"uncaught: {error}"))
            page.errors = errors
            return page

        yield open_page
    if errors:
        logs = [x.tail() for x in request.node.funcargs.values() if isinstance(x, Server)]
        pytest.fail("The page reported errors:\n" + "\n".join([*errors, *logs]))


@pytest.fixture
def page(new_page: Callable[..., Any]) -> Any:
    """One page, 1440 × 900 on the light theme."""
    return new_page(color_scheme="light")


_IDLE = """() => {
  const app = document.querySelector('[data-testid="stApp"]');
  return !!app
    && app.dataset.testConnectionState === "CONNECTED"
    && app.dataset.testScriptState === "notRunning"
    && !document.querySelector('[data-testid="stStatusWidgetRunningIcon"], [data-testid="stSkeleton"]')
    && !!document.querySelector('[data-testid="stMain"] [data-testid="stElementContainer"]');
}"""


@pytest.fixture
def wait_idle() -> Callable[..., None]:
    """Return a function of a page that waits until its script has ended and stays ended for a moment."""

    def wait(page: Any, seconds: float = 60.0, calm: float = 0.25) -> None:
        deadline = time.monotonic() + seconds
        since: float | None = None
        while True:
            now = time.monotonic()
            if page.evaluate(_IDLE):
                since = now if since is None else since
                if now - since >= calm:
                    return
            else:
                since = None
            if now > deadline:
                state = page.evaluate(
                    "() => ({...(document.querySelector('.stApp') || {dataset: {}}).dataset})"
                )
                pytest.fail(f"{page.url} is not idle after {seconds:g} s: {state}")
            page.wait_for_timeout(50)

    return wait


@pytest.fixture
def shoot() -> Callable[..., Path | None]:
    """Return a function (page, name) that saves a screenshot into the folder FMVIZ_SCREENSHOTS, if set."""

    def save(page: Any, name: str, full_page: bool = True) -> Path | None:
        folder = os.environ.get("FMVIZ_SCREENSHOTS")
        if not folder:
            return None
        path = Path(folder) / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(path), full_page=full_page)
        return path

    return save


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """Return an empty run store, which this process's jobs, done at once, are written to."""
    monkeypatch.setenv("FMVIZ_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.setattr(WORKERS, "most", 0)
    opened = process_store()
    monkeypatch.setattr(tasks, "_manager", TaskManager(InlineExecutor(), open_store=lambda: opened))
    return opened


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskManager:
    """Install a manager without a store, whose jobs are done at once; nor are runs of others read."""
    monkeypatch.setenv("FMVIZ_STORE", str(tmp_path / "none.sqlite"))
    monkeypatch.setattr(WORKERS, "most", 0)
    mine = TaskManager(InlineExecutor())
    monkeypatch.setattr(tasks, "_manager", mine)
    return mine


@pytest.fixture
def open_train(manager: TaskManager) -> Callable[..., AppTest]:
    """Return what opens the page Train by a link."""
    return partial(driving.page, "train")
