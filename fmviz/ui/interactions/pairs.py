"""The strongest pairs as a table and a matrix, with sentences."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine.interactions.weights import PairWeights, Ranking, never_zero
from fmviz.lab.interpretation.reading import name_matches, ranking_words, strongest_features, table_of_pairs
from fmviz.lab.interpretation.wording import Wording
from fmviz.stage import CodesFrame, Panel, View, encode_codes
from fmviz.tables.cells import shortened
from fmviz.ui import widgets
from fmviz.ui.components import matrix_view
from fmviz.ui.escape import plain
from fmviz.ui.interactions.opened import Opened, calculated
from fmviz.ui.settings.state import Settings, Text

MOST = 500
TABLE = (
    Text(
        "find",
        limit=200,
        help="Parts of feature or column names. Separate several by semicolons; a pair must match "
        'all of them. "Quoted" names match exactly.',
    ),
)


def draw(settings: Settings, reading: Opened) -> None:
    """Draw the view."""
    if reading.pairs is None:
        st.info(plain(reading.no_pairs), icon=":material/block:")
        return
    widgets.control(
        settings,
        "find",
        st.text_input,
        "Search features and columns",
        placeholder="month; carrier",
        icon=":material/search:",
        width=360,
    )
    dataset = reading.dataset

    def make(between: Any) -> Ranking:
        assert reading.pairs is not None
        hits = name_matches(settings["find"], dataset.feature_names, dataset.groups)
        # Levels of the same column, or parts of the same curve, do not interact with each other.
        return reading.pairs.ranked(MOST, reading.attributes.of_column, hits, between)

    name = f"pairs:{settings['find']}"
    ranking = calculated(reading, name, make, "Ranking all pairs of features.")
    if ranking is None:
        return
    if not ranking.total:
        fits = (
            "No used pair matches the search." if settings["find"] else ranking_words(ranking, higher=False)
        )
        st.info(plain(fits), icon=":material/grid_off:")
        return
    table = _table(f"{reading.key}:{name}", reading, ranking)
    st.markdown(f"**The strongest pair.** {plain(''.join(table['sentence'].head(1)))}")
    st.caption(plain(ranking_words(ranking, higher=len(reading.model.orders) > 1)))
    st.caption("Regularization shrinks weights: their order and sign are more reliable than their size.")
    _in_words(table, reading.wording)
    if len(table) < len(ranking.weight):
        st.caption("Pairs whose features never occur together in these data are omitted.")


@st.cache_resource(max_entries=16, show_spinner="Counting co-occurrences.")
def _table(name: str, _reading: Opened, _ranking: Ranking) -> pd.DataFrame:
    return table_of_pairs(_ranking.sets, _ranking.weight, _reading.dataset, _reading.wording)


# --------------------------------------------------------------------------------------------------- table


# Tall rows let long sentences wrap.
_LINE, _TALL = 35, 88
_COLUMNS = {
    "sentence": "In words",
    "weight": "Weight",
    "rows_with_both": "Rows with both",
    "spread": "Typical size",
    "feature_i": "Feature",
    "feature_j": "with feature",
}


def _in_words(table: pd.DataFrame, wording: Wording) -> None:
    """Draw the table of `table_of_pairs`."""
    table = table.assign(weight=table["weight"] * wording.scale)
    unit = plain(wording.unit)
    row = _TALL if table["sentence"].str.len().max() > 48 else _LINE
    st.dataframe(
        table[[*_COLUMNS]],
        key="interactions_pairs",
        hide_index=True,
        row_height=row,
        height=min(row * len(table), 700) + 38,
        column_config={
            "feature_i": st.column_config.TextColumn(_COLUMNS["feature_i"], width=140),
            "feature_j": st.column_config.TextColumn(_COLUMNS["feature_j"], width=140),
            "weight": st.column_config.NumberColumn(
                _COLUMNS["weight"], format="%.4g", width=80, help=f"Coefficient of x_i·x_j, in {unit}."
            ),
            "rows_with_both": st.column_config.NumberColumn(
                _COLUMNS["rows_with_both"],
                format="localized",
                width=110,
                help="Rows in which both features are non-zero.",
            ),
            "spread": st.column_config.NumberColumn(
                _COLUMNS["spread"],
                format="%.3g",
                width=95,
                help=f"Root mean square of the pair's term over all rows, in {unit}: large "
                "for pairs with large weights that occur often.",
            ),
            "sentence": st.column_config.TextColumn(_COLUMNS["sentence"], width=340),
        },
        alt="Pairs of features with weight, co-occurrence count and a sentence on the effect.",
    )


# -------------------------------------------------------------------------------------------------- matrix


MOST_FEATURES = 200
_LABEL = 40


def draw_matrix(reading: Opened) -> None:
    """Draw the matrix of the strongest features."""
    if reading.pairs is None:
        st.info(plain(reading.no_pairs), icon=":material/block:")
        return
    drawn = calculated(
        reading,
        "matrix",
        partial(_encoded, reading.pairs, reading.dataset.feature_names),
        "Searching all pairs for the strongest features.",
    )
    if drawn is None:
        return
    payload, n_used = drawn
    if payload is None:
        st.info("The model uses no pairs; the matrix is zero.", icon=":material/grid_off:")
        return
    which = (
        f"The {MOST_FEATURES} strongest of {n_used:,} used features"
        if n_used > MOST_FEATURES
        else f"All {n_used:,} used features"
    )
    st.markdown(f"{which}, in the order of the data. Features without a used pair are omitted.")
    matrix_view(payload, key="interactions_matrix")
    st.caption(
        "Each cell is one pair; the grey diagonal is not. Drag a box, double-click, or press + and − to "
        "zoom. The strength of a feature is the sum of |w| over its pairs."
    )


def _encoded(pairs: PairWeights, names: tuple[str, ...], between: Any) -> tuple[bytes | None, int]:
    """Return the payload of the matrix, and the number of used features."""
    features, n_used = strongest_features([pairs], MOST_FEATURES, between)
    if not features.size:
        return None, 0
    weight, used = pairs.among(features, features)
    codes, scale = encode_codes(np.where(used, never_zero(weight), 0.0), grey_diagonal=True)
    labels = [shortened(names[j], _LABEL) for j in features]
    n = features.size
    caption = f"{np.count_nonzero(used) // 2:,} of {n * (n - 1) // 2:,} pairs used"
    panel = Panel(
        "Pairs",
        [CodesFrame(codes, scale, "", caption)],
        row_labels=labels,
        col_labels=labels,
        gram_label="W",
    )
    return View([panel], zoom=True, named=True, max_height=640).encode(), n_used
