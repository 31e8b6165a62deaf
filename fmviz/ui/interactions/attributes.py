"""Draw how strongly attributes interact, and the weights between their levels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.lab.interpretation.reading import (
    GroupStrengths,
    Search,
    block_of,
    group_strengths,
    table_of_pairs,
    typical_sizes,
)
from fmviz.lab.search.averaged import Average
from fmviz.ui import widgets
from fmviz.ui.components.matrix_view import Cell, CodesFrame, Panel, encode_codes, matrix_view
from fmviz.ui.escape import plain
from fmviz.ui.interactions.opened import Opened, calculated
from fmviz.ui.interactions.pairs import (
    EDGES,
    draw_network,
    pairs_in_words,
    pick_node,
    search_row,
    with_intervals,
)
from fmviz.ui.settings.state import Settings, Whole

TABLE = (Whole("pair", help="The two attributes whose levels are shown, by their numbers."),)
_LISTED = 60
_DRAWN = 384
_LEVEL_PAIRS = 100


def draw(settings: Settings, reading: Opened, average: Average | None) -> None:
    """Draw the strengths of attributes and the weights between their levels, with intervals from samples."""
    if reading.pairs is None:
        st.info(plain(reading.no_pairs), icon=":material/block:")
        return
    if not reading.attributes.grouped:
        with st.container(border=True, key="interactions_ungrouped"):
            st.markdown(
                "In these data every feature is an attribute of its own, so that there is nothing to group."
            )
            st.button(
                "Show pairs of features",
                icon=":material/format_list_numbered:",
                key="interactions_to_pairs",
                on_click=settings.set,
                kwargs={"view": "pairs"},
            )
        return

    def make(between: Any) -> GroupStrengths:
        assert reading.pairs is not None
        return group_strengths(reading.pairs, reading.attributes, between)

    strengths = calculated(reading, "groups", make, "Adding up the weights of every two attributes.")
    if strengths is None:
        return
    st.markdown(
        "The strength of two attributes is the Frobenius norm √Σ w² of the weights between the levels of the "
        "one and those of the other. Click a cell of the picture or pick a row to see the levels."
    )
    search_row(settings)
    g, h = strengths.strongest(_LISTED, Search(settings["find"]).hits(strengths.names))
    if not g.size:
        st.caption("No two attributes interact" + (" that fit the search." if settings["find"] else "."))
        return
    shown = settings["pair"]
    if len(shown) != 2 or max(shown) >= len(strengths.names):
        shown = (int(g[0]), int(h[0]))
    left, right = st.columns(2)
    with left:
        _heatmap(settings, reading, strengths)
    with right:
        few = slice(0, EDGES)
        draw_network(
            strengths.names,
            g[few],
            h[few],
            strengths.norm[g[few], h[few]],
            key="interactions_attributes",
            alt=f"A network of attributes; the strongest pair: {strengths.names[g[0]]}, "
            f"{strengths.names[h[0]]}.",
            chosen=[strengths.names[place] for place in shown],
            signed=False,
            pick=partial(pick_node, settings),
        )
    _table(settings, reading, strengths, g, h)
    _levels(reading, strengths, average, *shown)


def _heatmap(settings: Settings, reading: Opened, strengths: GroupStrengths) -> None:
    n = len(strengths.names)
    if n > _DRAWN:
        st.caption(f"{n:,} attributes are more than are drawn here, {_DRAWN}; the table has the strongest.")
        return
    values = np.where(strengths.used > 0, np.maximum(strengths.norm, np.nextafter(0.0, 1.0)), 0.0)
    codes, scale = encode_codes(values * reading.wording.scale, grey_diagonal=True)

    def opened(cell: Cell) -> None:
        if cell.row != cell.col:
            settings.set(pair=(min(cell.row, cell.col), max(cell.row, cell.col)))

    matrix_view(
        [
            Panel(
                "Attributes",
                [CodesFrame(codes, scale, caption=f"{n} attributes")],
                row_labels=strengths.names,
                col_labels=strengths.names,
                gram_label="√Σ w²",
            )
        ],
        key="interactions_groups",
        on_cell=opened,
        clickable=True,
        signed=False,
        named=True,
        max_height=360,
    )


@st.cache_resource(max_entries=16, show_spinner=False)
def _sizes(name: str, _reading: Opened, _g: np.ndarray, _h: np.ndarray) -> np.ndarray:
    assert _reading.pairs is not None
    return typical_sizes(_reading.pairs, _reading.attributes, _g, _h)


def _table(
    settings: Settings, reading: Opened, strengths: GroupStrengths, g: np.ndarray, h: np.ndarray
) -> None:
    table = strengths.table(g, h)
    scale = reading.wording.scale
    table["strength"] *= scale
    table["typical_size"] = _sizes(f"{reading.key}:{settings['find']}", reading, g, h) * scale

    def picked() -> None:
        rows = st.session_state["interactions_strengths"]["selection"]["rows"]
        if rows and rows[0] < g.size:
            settings.set(pair=(int(g[rows[0]]), int(h[rows[0]])))

    st.dataframe(
        table,
        key="interactions_strengths",
        hide_index=True,
        on_select=picked,
        selection_mode="single-row",
        row_height=35,
        height=35 * (min(8, len(table)) + 1) + 3,
        column_config={
            "attribute_i": st.column_config.TextColumn("Attribute", width=200),
            "attribute_j": st.column_config.TextColumn("with attribute", width=200),
            "strength": st.column_config.NumberColumn("Strength √Σ w²", format="%.4g", width=130),
            "level_pairs": st.column_config.NumberColumn(
                "Used pairs of levels", format="localized", width=150
            ),
            "typical_size": st.column_config.NumberColumn(
                "Typical size",
                format="%.3g",
                width=110,
                help="The root mean square over all rows of what the two attributes add together, in "
                f"{plain(reading.wording.unit)}. Unlike the strength it does not grow with levels that "
                "hardly occur.",
            ),
        },
        alt="Pairs of attributes with the strength of their interaction.",
    )
    widgets.download(
        "Attributes (CSV)",
        lambda: table.to_csv(index=False),
        f"attributes-{reading.run.id[:6]}.csv",
        key="interactions_strengths_csv",
    )


def _levels(reading: Opened, strengths: GroupStrengths, average: Average | None, g: int, h: int) -> None:
    assert reading.pairs is not None
    first, second = strengths.names[g], strengths.names[h]
    st.subheader(plain(f"{first} with {second}"))
    if not strengths.used[g, h]:
        st.caption("No pair of their levels is used.")
        return
    rows, columns, weight, used = block_of(reading.pairs, reading.attributes, g, h, _DRAWN)
    names = np.asarray(reading.dataset.feature_names, dtype=object)
    codes, scale = encode_codes(np.where(used & (weight == 0), np.nextafter(0.0, 1.0), weight))
    sizes = [reading.attributes.members[place].size for place in (g, h)]
    caption = f"{int(strengths.used[g, h]):,} of {sizes[0] * sizes[1]:,} pairs of levels are used"
    if (rows.size, columns.size) != tuple(sizes):
        caption += f"; the {rows.size} × {columns.size} with the largest weights are drawn"
    matrix_view(
        [
            Panel(
                f"{first} × {second}",
                [CodesFrame(codes, scale, caption=caption)],
                row_labels=list(names[rows]),
                col_labels=list(names[columns]),
                gram_label="W",
            )
        ],
        key=f"interactions_levels_{g}_{h}",
        named=True,
        max_height=420,
    )
    at, to = np.nonzero(used)
    order = np.argsort(-np.abs(weight[at, to]), kind="stable")[:_LEVEL_PAIRS]
    at, to = at[order], to[order]
    table: pd.DataFrame = table_of_pairs(
        rows[at], columns[to], weight[at, to], reading.dataset, reading.wording
    )
    table = with_intervals(table, average, rows[at], columns[to])
    pairs_in_words(
        table,
        reading.wording,
        f"interactions_level_pairs_{g}_{h}",
        f"levels-{reading.run.id[:6]}.csv",
        rows=8,
    )
