"""The page Papers: figures and tables reproduced, and what the papers say of them checked."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping

import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab.papers import ARTEFACTS, BUDGETS, Artefact
from fmviz.lab.papers.results import last_results
from fmviz.lab.papers.shipped import shipped_results
from fmviz.lab.store import StoreError, store
from fmviz.lab.store.results import Kept, newest
from fmviz.lab.typography import duration
from fmviz.ui import navigation, shell, widgets
from fmviz.ui.escape import plain
from fmviz.ui.paper import reproduction, result
from fmviz.ui.settings.state import Settings

ALL = "all"
TABLE = (
    ParamSpec(
        "artefact",
        "choice",
        ALL,
        choices=(ALL, *ARTEFACTS),
        help="A figure or table of a paper, with its protocol and what the paper says about it.",
    ),
    ParamSpec(
        "budget",
        "choice",
        BUDGETS[0],
        choices=BUDGETS,
        help="Quick: fewer repetitions, smaller data. Full: as the paper did it.",
    ),
)


def render() -> None:
    """Draw the page."""
    with shell.page("Papers", Settings("paper", TABLE, unread=("dataset", "seed"))) as settings:
        shell.heading(
            settings,
            "Papers",
            "Figures and tables of papers, reproduced under their own protocol. What a paper says about one "
            "becomes a check: it holds, it does not hold, or it is not settled, with the number that was "
            "measured.",
        )
        kept = _kept()
        _choice(settings)
        if settings["artefact"] == ALL:
            _cards(settings, kept)
        else:
            artefact = ARTEFACTS[settings["artefact"]]
            last = kept.get((artefact.name, settings["budget"]))
            reproduction.draw(artefact, settings["budget"], last or _newest(artefact, kept))


def by_paper() -> dict[str, list[Artefact]]:
    """Return the artefacts, grouped by their papers."""
    found: dict[str, list[Artefact]] = {}
    for one in ARTEFACTS.values():
        found.setdefault(one.paper, []).append(one)
    return found


def _kept() -> Mapping[tuple[str, str], Kept]:
    try:
        return last_results(store())
    except (StoreError, sqlite3.Error) as error:
        st.warning(f"{plain(error)} Results of earlier sessions cannot be shown.", icon=":material/save:")
        return shipped_results()


def _newest(artefact: Artefact, kept: Mapping[tuple[str, str], Kept]) -> Kept | None:
    return newest(kept[artefact.name, budget] for budget in BUDGETS if (artefact.name, budget) in kept)


def _choice(settings: Settings) -> None:
    labels = {ALL: "All figures"}
    labels |= {name: f"{one.name.rpartition('_')[0]} · {one.title}" for name, one in ARTEFACTS.items()}
    with st.container(horizontal=True, vertical_alignment="bottom", key="paper_choice"):
        widgets.param(settings, "artefact", "Figure", labels=labels, style="select")
        chosen = ARTEFACTS.get(settings["artefact"])
        words = {name: name.capitalize() for name in BUDGETS}
        if chosen is not None:
            words = {name: f"{word}, {duration(60 * chosen.minutes[name])}" for name, word in words.items()}
        widgets.param(settings, "budget", "Budget", labels=words)


def _cards(settings: Settings, kept: Mapping[tuple[str, str], Kept]) -> None:
    papers = by_paper()
    for tab, (paper, artefacts) in zip(
        st.tabs([plain(_short(one)) for one in papers]), papers.items(), strict=True
    ):
        with tab:
            st.caption(plain(paper))
            with shell.cards(artefacts[0].name.rpartition("_")[0]):
                for one in artefacts:
                    with st.container(border=True, height="stretch"):
                        _card(one, settings, kept)


def _short(paper: str) -> str:
    """Return the first author and the year of a citation, or the first words of one without them."""
    year = re.search(r"\d{4}$", paper)
    return paper.split(",")[0] + (f" {year.group()}" if year else "")


def _card(one: Artefact, settings: Settings, kept: Mapping[tuple[str, str], Kept]) -> None:
    st.markdown(f"**{plain(one.title)}**", help=f"“{one.statements[0].text}” ({one.statements[0].where})")
    last = _newest(one, kept)
    ours = last is None or last.shipped
    parts = reproduction.finished_parts(one, settings["budget"]) if ours else 0
    if last is not None:
        result.thumbnail(one, last)
        with st.container(horizontal=True, gap="xsmall"):
            result.verdicts(last.verdicts)
    if parts:
        kept_words = "1 part is kept" if parts == 1 else f"{parts:,} parts are kept"
        st.caption(f"Not finished yet: {kept_words} at the {plain(settings['budget'])} budget.")
    elif last is None:
        st.caption(
            f"Not run here yet. {duration(60 * one.minutes['quick']).capitalize()} at the quick budget."
        )
    else:
        less = f"; unfinished, {last.parts[0]:,} of {last.parts[1]:,} parts" if last.parts else ""
        less += f"; without {plain(', '.join(last.without))}" if last.without else ""
        st.caption(
            f"{'Our result' if ours else 'Last run'} of {plain(result.when(last))}, {plain(last.budget)} "
            f"budget{less}."
        )
    navigation.page_link(
        navigation.PAPER,
        settings.link(artefact=one.name, budget=last.budget if last else settings["budget"]),
        label="Open",
        icon=":material/arrow_forward:",
    )
