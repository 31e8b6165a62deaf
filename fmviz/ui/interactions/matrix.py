"""The matrix of the pairs among the strongest features."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from fmviz.engine.interactions.pairs import PairWeights, never_zero
from fmviz.lab.interpretation.reading import strongest_features
from fmviz.lab.search.averaged import Average
from fmviz.ui.components.matrix_view import (
    CodesFrame,
    Intervals,
    Panel,
    encode_codes,
    encode_view,
    matrix_view,
)
from fmviz.ui.escape import plain
from fmviz.ui.interactions.opened import Opened, calculated
from fmviz.ui.settings.state import Settings

MOST = 200
GONE = {
    "window": f"The matrix shows the {MOST} strongest used features; drag a box on it to zoom.",
    "compact": "The matrix always leaves out features that are in no used pair.",
}
_NAME = 40


def draw(settings: Settings, reading: Opened, average: Average | None) -> None:
    """Draw the part, with intervals where there are samples."""
    if reading.pairs is None:
        st.info(plain(reading.no_pairs), icon=":material/block:")
        return
    drawn = calculated(
        reading,
        f"matrix:{'' if average is None else 'sampled'}",
        partial(_drawn, reading.pairs, reading.dataset.feature_names, average),
        "Looking through all pairs for the strongest features.",
    )
    if drawn is None:
        return
    payload, n_used = drawn
    if payload is None:
        st.info("The model uses no pair: its matrix is zero.", icon=":material/grid_off:")
        return
    which = (
        f"These are the strongest {MOST} of {n_used:,} used features"
        if n_used > MOST
        else f"These are all {n_used:,} used features"
    )
    st.markdown(f"{which}, in the order of the data; features in no used pair are left out.")
    matrix_view(payload, key="interactions_matrix")
    st.caption(
        "Every cell is one pair; a feature with itself, grey, is no pair. Drag a box, double-click, or press "
        "+ and − to zoom. A feature is as strong as the weights |w| of its pairs add up to."
    )


def _drawn(
    pairs: PairWeights, names: tuple[str, ...], average: Average | None, between: Any
) -> tuple[bytes | None, int]:
    """Return what the browser is sent, and how many features are used."""
    features, n_used = strongest_features(pairs, MOST, between)
    if not features.size:
        return None, 0
    weight, used = pairs.among(features, features)
    codes, scale = encode_codes(np.where(used, never_zero(weight), 0.0), grey_diagonal=True)
    labels = [_short(names[j]) for j in features]
    n = features.size
    caption = f"{np.count_nonzero(used) // 2:,} of {n * (n - 1) // 2:,} pairs are used"
    panel = Panel(
        "Pairs",
        [CodesFrame(codes, scale, "", caption, _sampled(features, used, average))],
        row_labels=labels,
        col_labels=labels,
        gram_label="W",
    )
    return encode_view([panel], zoom=True, named=True, max_height=640), n_used


def _short(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def _sampled(features: np.ndarray, used: np.ndarray, average: Average | None) -> Intervals | None:
    """Return what samples say of the used pairs."""
    if average is None:
        return None
    rows, columns = np.nonzero(used)
    pairs, at = np.unique(np.sort([features[rows], features[columns]], axis=0), axis=1, return_inverse=True)
    found = average.intervals(*pairs).iloc[at.ravel()]
    return Intervals(rows * features.size + columns, found["lower"], found["upper"], found["probability"])
