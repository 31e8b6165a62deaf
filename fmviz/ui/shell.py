"""The frame of every page: navigation, shared settings, server status, lessons and error messages.

A page's view is one function::

    TABLE = (ParamSpec("rank", "int", 10, 1, 200),)

    def render() -> None:
        with shell.page("Train", Settings("train", TABLE)) as settings:
            st.write(settings["rank"], settings["dataset"], settings["seed"])
"""

from __future__ import annotations

import gc
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from fmviz.engine._jit import compiling
from fmviz.lab.catalog import dataset_spec
from fmviz.ui import session_uploads, widgets
from fmviz.ui.components import set_cookie
from fmviz.ui.escape import plain
from fmviz.ui.guard import guard, write_address
from fmviz.ui.lessons import panel
from fmviz.ui.navigation import FIRST, NAVIGATION, REST, Link, page_link
from fmviz.ui.settings import presets
from fmviz.ui.settings.state import LEVEL_COOKIE, LEVELS, RESTRICTIONS, Settings

# A local picture: browsers would load a Material icon from an external server. It is embedded in the page:
# Streamlit drops pictures during script runs, and browsers request the icon at every change of the address.
_ICON = "data:image/png;base64," + b64encode(Path(__file__).with_name("icon.png").read_bytes()).decode()
# Streamlit's margins leave little room for pictures side by side. With an open sidebar its header contains
# only a menu at the right. Captions, selected pills and slider values have a contrast of 4.5:1 in both
# themes. Our menu presses a hidden button of Plotly's toolbar, see picture_buttons.js.
_STYLE = """<style>
[data-testid="stMainBlockContainer"] {padding: 4rem 2.5rem 4rem; max-width: 110rem}
@media (min-width: 769px) {
  .stApp:has([data-testid="stSidebar"][data-collapsed="false"]) {
    [data-testid="stMainBlockContainer"] {padding-top: 1.25rem}
    [data-testid="stHeader"] {background: none; &, * {pointer-events: none} button {pointer-events: auto}}
    [class*="st-key-shell_heading"] {padding-right: 1rem}
  }
}
@media (max-width: 768px) {
  [data-testid="stMainBlockContainer"] {padding: 4rem 1rem 3rem}
  [data-testid="stButtonGroup"] > [role="radiogroup"] {flex-wrap: wrap}
  [data-testid="stPageLink-NavLink"] p {white-space: normal}
}
.st-key-arena_controls [data-testid="stColumn"]:last-child {min-width: 14rem}
[data-testid="stSidebarUserContent"] {padding-top: 0}
[data-testid="stSidebar"] .stSelectbox input {font-size: 0.8rem; text-overflow: ellipsis}
[data-testid="stCaptionContainer"] {color: light-dark(#5d646e, #9ba2ad); opacity: 1}
[data-testid="stSliderThumbValue"] p, button[data-selected="true"] p {color: light-dark(#1f5fa8, #8bbcf2)}
.js-plotly-plot .modebar {display: none}
.katex-display > .katex, .katex-display > .katex > .katex-html {white-space: normal}
[class*="st-key-takeaway_"] {margin-top: -0.9rem}
[class*="st-key-takeaway_"] button {font-size: 0.8rem; min-height: 1.75rem; padding-block: 0}
[class*="st-key-cards_"] {
  display: grid; align-items: stretch; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr))
}
[class*="st-key-cards_"] > div {height: auto}
[data-testid="stMainBlockContainer"] h1 {padding: 0; min-height: 2.5rem; align-content: center}
.st-key-shell_heading_small h1 {font-size: 1.5rem}
[class*="st-key-cards_lessons"] {grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr))}
</style>"""


_CHOSEN = "fmviz:level"
_n_spared = 0  # modules that garbage collection does not search


@contextmanager
def page(title: str, settings: Settings) -> Iterator[Settings]:
    """Draw the shell and guard the body.

    Parameters
    ----------
    title : str
        Title of the browser tab.
    settings : Settings
        The settings of the page; a link is read before the body runs.

    Yields
    ------
    Settings
        The settings.
    """
    st.set_page_config(page_title=f"{title} · fmviz", page_icon=_ICON, layout="wide")
    # Before drawing: fragments already in the browser must not vanish with their page.
    Settings.leave()
    with guard(settings):
        settings.read_url()
        if settings["lesson"] and Settings.names_a_lesson_alone():
            panel.open_step(settings)
        # Simple lists the keys below the sidebar only.
        keys = "" if settings["level"] == "expert" else "<style>.stButton kbd {display: none}</style>"
        st.html(_STYLE + keys)
        with st.sidebar:
            _navigation(settings)
            _shared(settings)
            if settings.shows_any("dataset", "seed") and (kernels := compiling()):
                st.badge(
                    f"Compiling {plain(kernels[0])}…",
                    icon=":material/hourglass_top:",
                    color="orange",
                    help="A kernel is compiled at first use and cached for later starts.",
                )
            last = st.container()
        if settings.notices:
            st.warning("\n\n".join(map(plain, settings.notices)), icon=":material/link_off:")
        settings.shortcuts.clear()
        with panel.beside(settings):
            yield settings
        with last:
            _teach(settings)
            listed = [f"**{plain(key)}** {plain(label)}" for key, label in settings.shortcuts.items()]
            st.caption(f":material/keyboard: {' · '.join([*listed, '**← →** move a slider'])}")
    write_address(settings, "page")
    _spare_modules()


def _navigation(settings: Settings) -> None:
    st.markdown("### :primary[:material/grid_view:] fmviz")
    st.caption("Visualize and train sparse factorization machines")
    if settings["level"] == "expert":
        for section, links in NAVIGATION.items():
            st.caption(f"**{section}**")
            _links(links)
        return
    _links(FIRST)
    inside = any(link.script == f"pages/{settings.page}.py" for link in REST)
    with st.expander("Research", icon=":material/science:", expanded=inside, key="shell_research"):
        _links(REST)


def _links(links: Sequence[Link]) -> None:
    for link in links:
        page_link(link, width="stretch")


def _shared(settings: Settings) -> None:
    if settings.shows("dataset") and settings.shows("seed"):
        st.caption("**Data and seed**")
    names = session_uploads.menu(settings["dataset"])
    missing = {name: reason for name in names if (reason := dataset_spec(name).unavailable())}

    def words(name: str) -> str:
        return session_uploads.label(name) + (" (not here)" if name in missing else "")

    spec = dataset_spec(settings["dataset"])
    source = f"\n\nSource: {spec.source}. Licence: {spec.licence}." if spec.source else ""
    about = f"**{plain(spec.title)}** · {plain(spec.task)}\n\n{plain(spec.description + source)}"
    widgets.control(settings, "dataset", st.selectbox, "Data set", names, format_func=words, help=about)
    if spec.name in missing:
        st.info(plain(missing[spec.name]), icon=":material/folder_off:")
    seed = settings.spec("seed")
    widgets.control(settings, "seed", st.number_input, "Seed", int(seed.low or 0), int(seed.high or 0))
    widgets.param(
        settings, "level", "Controls", then=lambda: st.session_state.update({_CHOSEN: settings["level"]})
    )
    # Remember Simple even if not chosen: it marks returning visitors, for whom Start plays no film.
    level = st.session_state.get(_CHOSEN)
    if level is None and settings["level"] == "simple" and LEVEL_COOKIE not in st.context.cookies:
        level = "simple"
    if level in LEVELS:
        set_cookie(LEVEL_COOKIE, level)


def heading(settings: Settings, title: str, text: str, *, folded: bool = False) -> None:
    """Draw the title and purpose of a page; in a lesson only the title.

    On pages with little space, the text is `folded` into an icon beside the title.
    """
    if settings["lesson"]:
        st.subheader(title)
        return
    with st.container(
        horizontal=True,
        horizontal_alignment="distribute",
        vertical_alignment="center",
        key="shell_heading_small" if folded else "shell_heading",
    ):
        st.title(title, anchor=False, width="content", help=text if folded else None)
        presets.menu(settings, f"pages/{settings.page}.py")
    if not folded:
        st.markdown(text)


def available(settings: Settings) -> bool:
    """Return whether the chosen data set is available; otherwise draw the reason and a way out."""
    reason = dataset_spec(settings["dataset"]).unavailable()
    if reason is not None:
        st.info(plain(reason), icon=":material/folder_off:")
        offer_other_data(settings)
    return reason is None


def offer_other_data(settings: Settings) -> None:
    """Draw a button that replaces an unavailable data set."""
    st.button(
        "Use the planted interactions instead",
        key=f"{settings.page}_other_data",
        icon=":material/dataset:",
        on_click=lambda: settings.set(dataset="planted_interactions"),
    )


def settings_box(key: str, words: str, *, folded: bool, border: bool = True) -> DeltaGenerator:
    """Return the container of a page's settings: an expander if there is a result, else a box.

    Parameters
    ----------
    key : str
        Key of the box.
    words : str
        Summary of the settings, the label of the expander.
    folded : bool
        Whether there is a result below.
    border : bool
        Whether the box has one.
    """
    if folded:
        return st.expander(words, icon=":material/tune:", key=f"{key}_folded")
    return st.container(border=border, key=key)


def _teach(settings: Settings) -> None:
    """Draw the popover in which a teacher creates a link for a class.

    Drawn last: it lists the controls drawn by the page.
    """
    restricted = (*settings["hide"], *settings["lock"])
    words = settings.seen | {name: settings.seen.get(name, "") for name in restricted}
    with st.popover("Teach", icon=":material/co_present:", key=f"{settings.page}_teach", width="stretch"):
        st.markdown(
            "**Create a link for a class.** It opens this page in its current state. Hidden controls are not "
            "drawn; locked controls cannot be changed."
        )
        here = urlsplit(st.context.url or "")
        address = here._replace(query=urlencode(settings.query(), safe=","), fragment="")
        st.code(address.geturl(), language=None, wrap_lines=True)
        for item, verb in zip(RESTRICTIONS, ("Hide", "Lock"), strict=True):
            st.multiselect(
                verb,
                list(words),
                format_func=lambda name: words[name] or widgets.title_of(name),
                placeholder="Nothing",
                help=item.help,
                **widgets.ONE_AT_A_TIME,
                **widgets.start_of(st.multiselect, settings[item.name], list(words)),
                **settings.bind(item.name),
            )
        if restricted:
            st.button(
                "Show and unlock everything",
                icon=":material/lock_open:",
                key=f"{settings.page}_teach_end",
                on_click=lambda: settings.reset(*(item.name for item in RESTRICTIONS)),
            )


def _spare_modules() -> None:
    """Exclude the objects of modules from garbage collection, which Streamlit runs after every script.

    Searching some 200,000 objects would take longer than most fragments. Repeated after further imports of
    many modules.
    """
    global _n_spared
    if len(sys.modules) >= _n_spared + 20:
        _n_spared = len(sys.modules)
        gc.collect()
        gc.freeze()
