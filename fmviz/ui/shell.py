"""What every page has around it: navigation, the shared settings, the status, and the answer to errors.

A page's view is one function::

    TABLE = (ParamSpec("rank", "int", 10, 1, 200),)

    def render() -> None:
        with shell.page("Train", Settings("train", TABLE)) as settings:
            st.write(settings["rank"], settings["dataset"], settings["seed"])
"""

from __future__ import annotations

import functools
import logging
import sys
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from fmviz.engine._jit import compiling
from fmviz.lab.datasets import DATASETS
from fmviz.lab.store import StoreError
from fmviz.ui import own_sets, teach, widgets
from fmviz.ui.state import Settings

_LOG = logging.getLogger(__name__)
_POLL = 1.5  # seconds between looks at the status while something is going on
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Link(NamedTuple):
    """An entry of the navigation."""

    script: str
    label: str
    icon: str


START = Link("app.py", "Start", ":material/home:")
PROX = Link("pages/prox.py", "Proximal operators", ":material/filter_alt:")
LESSONS = Link("pages/lessons.py", "Lessons", ":material/school:")
TRAIN = Link("pages/train.py", "Train", ":material/play_circle:")
PATH = Link("pages/path.py", "λ-path", ":material/timeline:")
GEOMETRY = Link("pages/geometry.py", "Geometry", ":material/pentagon:")
COMPARE = Link("pages/compare.py", "Compare", ":material/balance:")
DATA = Link("pages/data.py", "Your data", ":material/upload_file:")
SWEEPS = Link("pages/sweeps.py", "Sweeps", ":material/grid_on:")
INTERACTIONS = Link("pages/interactions.py", "Interactions", ":material/hub:")
PAPER = Link("pages/paper.py", "Paper desk", ":material/menu_book:")
RUNS = Link("pages/runs.py", "Runs", ":material/history:")
ABOUT = Link("pages/about.py", "About", ":material/info:")

# A picture of our own: for a Material icon the browser would ask a server outside.
# It is part of the page: Streamlit forgets pictures while it runs a script, and browsers ask for it again at
# every change of the address.
_ICON = "data:image/png;base64," + b64encode(Path(__file__).with_name("icon.png").read_bytes()).decode()
# Streamlit's own margins leave little room for pictures side by side.
# Captions, the chosen of several and the value of a slider reach 4.5:1 on their grounds in both themes.
_STYLE = """<style>
[data-testid="stMainBlockContainer"] {padding: 4rem 2.5rem 4rem; max-width: 110rem}
@media (max-width: 768px) {[data-testid="stMainBlockContainer"] {padding: 4rem 1rem 3rem}}
[data-testid="stSidebarUserContent"] {padding-top: 0}
[data-testid="stCaptionContainer"] {color: light-dark(#5d646e, #9ba2ad); opacity: 1}
[data-testid="stSliderThumbValue"] p, button[data-selected="true"] p {color: light-dark(#1f5fa8, #8bbcf2)}
[class*="st-key-takeaway_"] {margin-top: -0.9rem}
[class*="st-key-takeaway_"] button {font-size: 0.8rem; min-height: 1.75rem; padding-block: 0}
[class*="st-key-cards_"] {
  display: grid; align-items: stretch; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr))
}
[class*="st-key-cards_"] > div {height: auto}
[class*="st-key-cards_lessons"] {grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr))}
</style>"""

NAVIGATION: dict[str, tuple[Link, ...]] = {
    "Learn": (START, LESSONS, PROX, GEOMETRY),
    "Experiment": (TRAIN, PATH, SWEEPS, COMPARE),
    "My data": (DATA, INTERACTIONS),
    "Research": (PAPER, RUNS, ABOUT),
}
"""The sections of the sidebar. A new page is a file in pages/ and a link here."""


@contextmanager
def page(title: str, settings: Settings) -> Iterator[Settings]:
    """Draw the shell and guard the body.

    Parameters
    ----------
    title : str
        The page's name in the browser's tab.
    settings : Settings
        The page's settings; what a link brings is read before the body runs.

    Yields
    ------
    Settings
        The same object.
    """
    st.set_page_config(page_title=f"{title} · fmviz", page_icon=_ICON, layout="wide")
    # Before anything is drawn: a fragment that the browser already knows may not vanish with its page.
    Settings.leave()
    with guard(settings):
        settings.read_url()
        if settings["lesson"] and Settings.names_a_lesson_alone():
            _lesson_panel().open_step(settings)
        st.html(_STYLE)
        with st.sidebar:
            _navigation()
            _shared(settings)
            _status()
            last = st.container()
        if settings.notices:
            st.warning("\n\n".join(settings.notices), icon=":material/link_off:")
        settings.shortcuts.clear()
        if settings["lesson"]:
            _lesson_panel().draw(settings)
        yield settings
        with last:
            teach.menu(settings)
            _keys(settings)


def _lesson_panel() -> ModuleType:
    from fmviz.ui import lesson_panel  # It uses the shell, and what trains models.

    return lesson_panel


def cards(name: str) -> DeltaGenerator:
    """Return a container that lays boxes out in rows, as many side by side as the window has room for."""
    return st.container(key=f"cards_{name}")


@contextmanager
def guard(settings: Settings | None = None) -> Iterator[None]:
    """Turn an exception of the body into a message with a way out.

    A ValueError or StoreError is taken for a sentence to the reader; anything else is a defect, and logged.
    """
    try:
        yield
    except (ValueError, StoreError) as error:
        _excuse(error, str(error), settings)
    except Exception as error:
        _LOG.exception("a page failed")
        _excuse(error, "This part of the page could not be drawn. That is a defect of fmviz.", settings)


def fragment(function: _Function | None = None, *, run_every: float | None = None) -> Any:
    """Make a function a `st.fragment` whose exceptions are guarded, also in a rerun of its own.

    A page's guard does not cover a fragment that reruns alone.
    """

    def decorate(inner: _Function) -> Any:
        @functools.wraps(inner)
        def guarded(*args: Any, **kwargs: Any) -> None:
            with guard():
                inner(*args, **kwargs)

        return st.fragment(guarded, run_every=run_every)

    return decorate if function is None else decorate(function)


def _excuse(error: Exception, sentence: str, settings: Settings | None) -> None:
    st.error(sentence, icon=":material/error:")
    with st.expander("Details", icon=":material/info:"):
        here = Path(__file__).resolve().parents[2]
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if Path(f.filename).is_relative_to(here / "fmviz")] or list(frames)
        place = Path(ours[-1].filename)
        shown = place.relative_to(here) if place.is_relative_to(here) else place.name
        st.markdown(f"`{type(error).__name__}` in `{shown}`, line {ours[-1].lineno}")
        st.code(str(error) or "(no message)", language=None, wrap_lines=True)
    with st.container(horizontal=True):
        if settings is not None and settings.own:
            st.button(
                "Reset this page",
                icon=":material/restart_alt:",
                key=f"{settings.page}_reset_after_error",
                on_click=settings.reset,
                help="Puts the settings of this page back to their defaults.",
            )
        st.page_link(START.script, label="Back to the start", icon=START.icon)


def _navigation() -> None:
    st.markdown("### :primary[:material/grid_view:] fmviz")
    st.caption("Sparse factorization machines, seen and trained")
    for section, links in NAVIGATION.items():
        st.caption(f"**{section}**")
        for link in links:
            st.page_link(link.script, label=link.label, icon=link.icon, width="stretch")


def _shared(settings: Settings) -> None:
    if settings.shows_any("dataset", "seed"):
        st.caption("**Data and seed**")
    names = own_sets.menu(settings["dataset"])
    missing = {name: reason for name in names if (reason := DATASETS[name].unavailable())}

    def words(name: str) -> str:
        return own_sets.label(name) + (" (not here)" if name in missing else "")

    widgets.control(settings, "dataset", st.selectbox, "Data set", names, format_func=words)
    chosen = settings["dataset"]
    if chosen in missing:
        st.info(missing[chosen], icon=":material/folder_off:")
    elif settings.shows("dataset"):
        spec = DATASETS[chosen]
        with st.popover("About this data set", icon=":material/dataset:", type="tertiary"):
            st.markdown(f"**{spec.title}** · {spec.task}\n\n{spec.description}")
            if spec.source:
                st.caption(f"Source: {spec.source}. Licence: {spec.licence}.")
    seed = settings.spec("seed")
    widgets.control(settings, "seed", st.number_input, "Seed", int(seed.low or 0), int(seed.high or 0))
    if settings.expert:
        widgets.param(settings, "level", "Controls")
        if settings.widened:
            st.caption(f":material/info: Expert, since the link sets {settings.widened}.")


def _keys(settings: Settings) -> None:
    """Draw the line that lists the keys of this page."""
    keys = [f"**{key}** {label}" for key, label in settings.shortcuts.items()]
    st.caption(f":material/keyboard: {' · '.join([*keys, '**← →** move a slider'])}")


def heading(settings: Settings, title: str, text: str) -> None:
    """Draw a page's title and what it is for; in a lesson the title alone, since the lesson says more."""
    if settings["lesson"]:
        st.subheader(title)
        return
    from fmviz.ui import presets  # They name pages, which are named here.

    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.title(title, width="content")
        presets.menu(settings, f"pages/{settings.page}.py")
    st.markdown(text)


def theme_color(name: str, otherwise: str) -> str:
    """Return a colour of the present theme by its name in Streamlit's configuration."""
    kind = st.context.theme.type or "light"
    return str(st.get_option(f"theme.{kind}.{name}") or st.get_option(f"theme.{name}") or otherwise)


def background_color() -> str:
    """Return the page's background colour on either theme, for what must cover what scrolls beneath it."""
    light, dark = (st.get_option(f"theme.{kind}.backgroundColor") or "Canvas" for kind in ("light", "dark"))
    return f"light-dark({light}, {dark})"


# --------------------------------------------------------------------------------------------------- status


def running_jobs() -> int:
    """Return how many jobs are at work in this process, for all sessions.

    Jobs can only run once something has imported `fmviz.lab.jobs`, so the shell does not import it.
    """
    # Another thread may be in the middle of importing it.
    manager = getattr(sys.modules.get("fmviz.lab.jobs"), "manager", None)
    if manager is None:
        return 0
    return len(manager().running()) + len(manager().tasks.running())


def is_busy() -> bool:
    """Return whether kernels are being compiled or jobs are at work."""
    return bool(compiling()) or running_jobs() > 0


def _status() -> None:
    fragment(_chip, run_every=_POLL if is_busy() else None)()


def _chip() -> None:
    kernels, jobs = compiling(), running_jobs()
    with st.container(horizontal=True, key="shell_status", gap="xsmall"):
        if kernels:
            st.badge(
                f"Compiling {kernels[0]}…",
                icon=":material/hourglass_top:",
                color="orange",
                help="The first use of a kernel compiles it; the result is kept for the next start.",
            )
        else:
            st.badge(
                "Kernels ready", icon=":material/bolt:", color="green", help="Nothing is being compiled now."
            )
        if jobs:
            st.badge(
                f"{jobs} job{'s' if jobs > 1 else ''} running",
                icon=":material/progress_activity:",
                color="blue",
                help="Training runs at work on this machine, of all sessions.",
            )
