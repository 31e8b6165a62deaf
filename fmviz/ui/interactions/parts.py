"""What several parts of the page share: the table of pairs in words, and the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.figures import interactions as figures
from fmviz.lab.interpretation.network import network
from fmviz.lab.interpretation.wording import Wording
from fmviz.ui import widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain

# A sentence that is longer than its column wraps, in rows that are tall enough for the browser to do so.
_LONG, _LINE, _TALL = 72, 35, 66
_COLUMNS = {
    "sentence": "In words",
    "weight": "Weight",
    "rows_with_both": "Rows with both",
    "spread": "Typical size",
    "feature_i": "Feature",
    "feature_j": "with feature",
}


_SAMPLED = {
    "mean": (
        "Mean",
        "%.4g",
        "The weight of the pair, averaged over the samples. What all levels of an attribute have in "
        "common, which linear weights can take over, is that of this fit.",
    ),
    "lower": ("95 % from", "%.4g", "The lower end of the interval that holds 95 % of the samples."),
    "upper": ("to", "%.4g", "Its upper end."),
    "probability": ("Same sign", "%.3f", "The share of the samples whose weight has the sign of the mean."),
}


def pairs_in_words(table: pd.DataFrame, wording: Wording, key: str, file: str, rows: int = 12) -> None:
    """Draw the table of `fmviz.lab.interpretation.reading.table_of_pairs`, to sort, and to take away.

    Parameters
    ----------
    table : DataFrame
        The pairs; with columns of `fmviz.lab.search.averaged.Average.intervals` where there are samples.
    wording : Wording
        Of the run.
    key : str
        Unique on the page.
    file : str
        What the download is called.
    rows : int
        So many are seen at once.
    """
    first = ("sentence", "weight")
    sampled = [name for name in _SAMPLED if name in table]
    weights = [name for name in ("weight", "mean", "lower", "upper") if name in table]
    table = table.assign(**{name: table[name] * wording.scale for name in weights})
    unit = plain(wording.unit)
    row = _TALL if table["sentence"].str.len().max() > _LONG else _LINE
    st.dataframe(
        table[["sentence", "weight", *sampled, *[name for name in _COLUMNS if name not in first]]],
        key=key,
        hide_index=True,
        row_height=row,
        height=row * min(rows, len(table)) + 38,
        column_config={
            "feature_i": st.column_config.TextColumn(_COLUMNS["feature_i"], width=140),
            "feature_j": st.column_config.TextColumn(_COLUMNS["feature_j"], width=140),
            "weight": st.column_config.NumberColumn(
                _COLUMNS["weight"], format="%.4g", width=80, help=f"What x_i·x_j is multiplied by, in {unit}."
            ),
            "rows_with_both": st.column_config.NumberColumn(
                _COLUMNS["rows_with_both"],
                format="localized",
                width=110,
                help="The rows of the data in which both features are not zero.",
            ),
            "spread": st.column_config.NumberColumn(
                _COLUMNS["spread"],
                format="%.3g",
                width=95,
                help=f"The root mean square of the pair's term over all rows, in {unit}: large "
                "for pairs that weigh much and occur often.",
            ),
            "sentence": st.column_config.TextColumn(_COLUMNS["sentence"], width=520),
            **{
                name: st.column_config.NumberColumn(label, format=digits, width=90, help=words)
                for name, (label, digits, words) in _SAMPLED.items()
            },
        },
        alt="Pairs of features with their weight, how often they occur together, and what they do in words.",
    )
    widgets.download(
        "Pairs (CSV)",
        lambda: table.to_csv(index=False),
        file,
        key=f"{key}_csv",
        help="What is listed, in full precision.",
    )


def draw_network(
    names: Sequence[str],
    i: np.ndarray,
    j: np.ndarray,
    weight: np.ndarray,
    *,
    key: str,
    alt: str,
    chosen: Sequence[str] = (),
    signed: bool = True,
    pick: Callable[[str], None],
) -> None:
    """Draw the network of some pairs; `pick` is called with the name of a node that is clicked."""
    found = network(i, j, weight)
    labels = [names[node] for node in found.nodes]
    marked = [at for at, name in enumerate(labels) if name in chosen]

    def picked() -> None:
        event: Any = st.session_state.get(f"{key}_chart")
        points = event["selection"]["points"] if event else []
        places = [point["customdata"] for point in points if point.get("customdata") is not None]
        if places:
            place = places[0][0] if isinstance(places[0], list) else places[0]
            pick(labels[int(place)])

    chart(
        figures.network(
            labels, found.position, found.strength, found.degree, found.edges, found.weight, marked, signed
        ),
        key=key,
        alt=alt,
        on_select=picked,
        selection_mode="points",
    )
