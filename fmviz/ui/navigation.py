"""The list of pages, their order in the sidebar, and links to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import streamlit as st

from fmviz.ui.settings.state import Settings


class Link(NamedTuple):
    """An entry of the navigation."""

    script: str
    label: str
    icon: str


START = Link("app.py", "Start", ":material/home:")
PROX = Link("pages/prox.py", "Operators", ":material/filter_alt:")
LESSONS = Link("pages/lessons.py", "Lessons", ":material/school:")
TRAIN = Link("pages/train.py", "Train", ":material/play_circle:")
PATH = Link("pages/path.py", "λ-path", ":material/timeline:")
GEOMETRY = Link("pages/geometry.py", "Geometry", ":material/pentagon:")
COMPARE = Link("pages/compare.py", "Compare", ":material/balance:")
DATA = Link("pages/data.py", "Your data", ":material/upload_file:")
SWEEPS = Link("pages/sweeps.py", "Sweeps", ":material/grid_on:")
INTERACTIONS = Link("pages/interactions.py", "Interactions", ":material/hub:")
PAPER = Link("pages/paper.py", "Papers", ":material/menu_book:")
RUNS = Link("pages/runs.py", "Runs", ":material/history:")
ABOUT = Link("pages/about.py", "About", ":material/info:")

NAVIGATION: dict[str, tuple[Link, ...]] = {
    "Learn": (START, LESSONS, PROX, GEOMETRY),
    "Experiment": (TRAIN, PATH, SWEEPS, COMPARE),
    "My data": (DATA, INTERACTIONS),
    "Research": (PAPER, RUNS, ABOUT),
}
"""The sections of the sidebar. A new page needs a file in pages/ and a link here."""
FIRST = (START, LESSONS, PROX, TRAIN, COMPARE, DATA, INTERACTIONS)
"""Pages listed in Simple mode; the others are folded."""
REST = tuple(link for links in NAVIGATION.values() for link in links if link not in FIRST)


def page_link(link: Link, query: Mapping[str, str] | None = None, **options: Any) -> None:
    """Draw a link to a page at the current level."""
    st.page_link(
        link.script,
        query_params={**(query or {}), "level": Settings("link")["level"]},
        **{"label": link.label, "icon": link.icon, **options},
    )
