"""The strongest interactions, as a network and in words."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from fmviz.engine.interactions.of_order import orders_of
from fmviz.engine.interactions.pairs import Ranking
from fmviz.engine.settings import ParamSpec
from fmviz.lab.interpretation.reading import Search, ranking_words, table_of_pairs
from fmviz.lab.search.averaged import Average
from fmviz.ui import navigation, widgets
from fmviz.ui.escape import plain
from fmviz.ui.interactions.opened import Opened, calculated
from fmviz.ui.interactions.parts import draw_network, pairs_in_words
from fmviz.ui.interactions.samples import with_intervals
from fmviz.ui.settings.state import Settings, Text

MOST = 500
_SORTS = {"weight": "Weight", "spread": "Typical size", "support": "Rows with both"}
TABLE = (
    Text(
        "find",
        limit=200,
        help="Parts of names of features or attributes; several with semicolons between, of which a pair "
        'must have each. "In quotation marks" whole names.',
    ),
    ParamSpec(
        "sort",
        "choice",
        "weight",
        choices=tuple(_SORTS),
        help=f"The order of the table, among the {MOST} pairs of largest weight that the search finds.",
    ),
    ParamSpec(
        "siblings",
        "bool",
        False,
        help="Pairs of two levels of one attribute. No row has both, so that they change no prediction.",
    ),
    ParamSpec("edges", "int", 40, 5, 150, help="The network is drawn of so many of the strongest pairs."),
)


def draw(settings: Settings, reading: Opened, average: Average | None) -> None:
    """Draw the part, with intervals where there are samples."""
    if reading.pairs is None:
        st.info(plain(reading.no_pairs), icon=":material/block:")
        return
    search_row(settings)
    with st.container(horizontal=True, vertical_alignment="bottom", key="interactions_sorts"):
        widgets.param(settings, "sort", "Sort by", labels=_SORTS)
        if reading.attributes.grouped:
            widgets.param(settings, "siblings", "Levels of one attribute, too")
    codes = None if settings["siblings"] or not reading.attributes.grouped else reading.attributes.codes
    dataset = reading.dataset
    search = Search(settings["find"])

    def make(between: Any) -> Ranking:
        assert reading.pairs is not None
        hits = search.hits(dataset.feature_names, dataset.groups)
        return reading.pairs.ranked(MOST, codes, hits, between)

    name = f"pairs:{codes is None}:{search.words}"
    found = calculated(reading, name, make, "Ranking all pairs of features.")
    if found is None:
        return
    if not found.total:
        _none(settings, reading, found)
        return
    table = _table(f"{reading.key}:{name}", reading, found)
    _summary(reading, found, table)
    column = {"support": "rows_with_both"}.get(settings["sort"], settings["sort"])
    order = table[column].abs().sort_values(ascending=False, kind="stable").index
    told = with_intervals(table, average, found.i, found.j)
    pairs_in_words(told.loc[order], reading.wording, "interactions_pairs", f"pairs-{reading.run.id[:6]}.csv")
    if (table["rows_with_both"] == 0).any():
        st.caption(
            "Pairs with 0 rows never occur together in these data: the regularizer left them, and they "
            "change no prediction here."
        )
    with st.container(width=420):
        widgets.param(settings, "edges", "Edges of the network", style="slider")
    few = slice(0, settings["edges"])
    draw_network(
        dataset.feature_names,
        found.i[few],
        found.j[few],
        found.weight[few],
        key="interactions_network",
        alt=f"A network of features joined by the {len(found.i[few])} strongest pairs; the strongest is "
        f"{table['feature_i'][0]} with {table['feature_j'][0]}.",
        chosen=[search.words.strip('"')],
        pick=partial(pick_node, settings),
    )
    st.caption(
        "Orange raises, blue lowers; wider is stronger, and larger nodes have more strength in all. Click a "
        "node to list its pairs."
    )
    navigation.page_link(
        navigation.COMPARE,
        {"runs": reading.run.id},
        label="Do these pairs come back from other seeds? See Compare",
    )


def search_row(settings: Settings) -> None:
    """Draw the search, and the way back from it."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="interactions_search"):
        widgets.control(
            settings,
            "find",
            st.text_input,
            "Search features and attributes",
            placeholder="month; carrier",
            icon=":material/search:",
            width=360,
        )
        if settings.shows("find"):
            st.button(
                "Show all",
                icon=":material/filter_alt_off:",
                key="interactions_all",
                disabled=not settings["find"] or settings.locks("find"),
                on_click=settings.set,
                kwargs={"find": ""},
            )


def pick_node(settings: Settings, name: str) -> None:
    """Let the search find one name, unless the link holds it."""
    if settings.locks("find"):
        return
    settings.set(find=Search.exactly(name) or name.replace(";", " "))


@st.cache_resource(max_entries=16, show_spinner="Counting how often they occur together.")
def _table(name: str, _reading: Opened, _found: Ranking) -> pd.DataFrame:
    return table_of_pairs(_found.i, _found.j, _found.weight, _reading.dataset, _reading.wording)


def _summary(reading: Opened, found: Ranking, table: pd.DataFrame) -> None:
    st.markdown(f"**The strongest pair.** {plain(table['sentence'][0])}")
    st.caption(plain(ranking_words(found, higher=len(orders_of(reading.model)) > 1)))


def _none(settings: Settings, reading: Opened, found: Ranking) -> None:
    with st.container(border=True, key="interactions_none"):
        if settings["find"]:
            st.markdown("No used pair fits the search.")
            st.button(
                "Show all pairs",
                icon=":material/filter_alt_off:",
                key="interactions_none_all",
                on_click=settings.set,
                kwargs={"find": ""},
            )
        elif found.siblings:
            st.markdown(plain(ranking_words(found, higher=False)))
        else:
            st.markdown(f"{plain(ranking_words(found, higher=False))} Train with less of it.")
            navigation.page_link(
                navigation.TRAIN,
                {**reading.experiment.to_query(), "run": reading.run.id},
                label="Open in Train",
            )
