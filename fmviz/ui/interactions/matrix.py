"""The matrix of all pairs, zoomed window by window down to its entries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from fmviz.engine.interactions.pairs import PairWeights
from fmviz.engine.settings import ParamSpec
from fmviz.lab.interpretation.reading import table_of_pairs
from fmviz.lab.interpretation.windows import (
    Sight,
    Window,
    format_windows,
    look,
    parse_windows,
)
from fmviz.lab.search.averaged import Average
from fmviz.ui import widgets
from fmviz.ui.components.matrix_view import (
    NOT_AN_INTERACTION,
    Box,
    CodesFrame,
    Intervals,
    Panel,
    encode_codes,
    encode_view,
    matrix_view,
)
from fmviz.ui.escape import plain
from fmviz.ui.interactions.opened import Opened, calculated
from fmviz.ui.interactions.parts import pairs_in_words
from fmviz.ui.interactions.samples import with_intervals
from fmviz.ui.settings.state import Settings, Text

TABLE = (
    Text(
        "window",
        help="The parts of the matrix that were opened one after the other: rows, columns, half-open.",
    ),
    ParamSpec("compact", "bool", False, help="Leave out features that are in no used pair."),
)
_LISTED = 50


def draw(settings: Settings, reading: Opened, average: Average | None) -> None:
    """Draw the part, with intervals where there are samples."""
    if reading.pairs is None:
        st.info(plain(reading.no_pairs), icon=":material/block:")
        return
    if not reading.pairs.rows.size:
        st.info("The model uses no pair: its matrix is zero.", icon=":material/grid_off:")
        return
    pairs, names = reading.pairs, reading.dataset.feature_names
    features = np.arange(pairs.n_features)
    if settings["compact"]:
        features = pairs.rows
        pairs, names = pairs.compact(), tuple(names[j] for j in features)
    n = pairs.n_features
    try:
        trail = parse_windows(settings["window"], n)
    except ValueError as error:
        st.warning(f"{plain(error)} The whole matrix is shown.", icon=":material/link_off:")
        trail = []
    window = trail[-1] if trail else Window.whole(n)
    bar = st.container(horizontal=True, vertical_alignment="center", key="interactions_window")
    drawn = calculated(
        reading,
        f"matrix:{settings['compact']}:{format_windows([window])}:{'' if average is None else 'sampled'}",
        partial(_drawn, pairs, window, names, features, average),
        "Looking through all pairs for the largest of every tile.",
    )

    def opened(box: Box) -> None:
        inner = window.zoom(box.top, box.bottom, box.left, box.right, n)
        if inner != window and not settings.locks("window"):
            settings.set(window=format_windows([*trail, inner]))

    with bar:
        _bar(settings, trail, n, None if drawn is None or window.exact else partial(opened, drawn[1]))
    if drawn is None:
        return

    # A view of its own for every window: a box belongs to what was drawn.
    matrix_view(drawn[0], key=f"interactions_matrix_{window.label}_{settings['compact']}", on_box=opened)
    if window.exact:
        st.caption(
            "Every cell is one pair, exactly; a feature with itself, grey, is no pair. Click, or drag a box, "
            "to enlarge a part."
        )
        _entries(reading, pairs, window, features, average)
    else:
        st.caption(
            "Each tile has the colour of its largest interaction, and only a tile without any has the colour "
            "of zero. Click a tile to open it, or drag a box over several."
        )


def _bar(settings: Settings, trail: list[Window], n: int, largest: Callable[[], None] | None) -> None:
    st.button(
        "Back",
        icon=":material/arrow_back:",
        key="interactions_back",
        disabled=not trail or settings.locks("window"),
        on_click=settings.set,
        kwargs={"window": format_windows(trail[:-1])},
        help="To the window before.",
    )
    st.button(
        "Whole matrix",
        icon=":material/zoom_out_map:",
        key="interactions_whole",
        disabled=not trail or settings.locks("window"),
        on_click=settings.set,
        kwargs={"window": ""},
    )
    st.button(
        "Open the largest tile",
        icon=":material/zoom_in:",
        key="interactions_largest",
        disabled=largest is None or settings.locks("window"),
        on_click=largest,
        help="The one with the strongest interaction.",
    )
    # Features have other places then.
    widgets.param(settings, "compact", "Used features only", then=lambda: settings.set(window=""))
    where = " › ".join([f"all {n:,} × {n:,}", *(window.label for window in trail)])
    st.markdown(f"**Features** {where}", width="content")


def _drawn(
    pairs: PairWeights,
    window: Window,
    names: tuple[str, ...],
    features: np.ndarray,
    average: Average | None,
    between: Callable[[], None],
) -> tuple[bytes, Box]:
    """Return what the browser is sent, and the cell of the largest value."""
    sight = look(pairs, window, between)
    row, col = divmod(int(np.argmax(np.abs(sight.values))), sight.values.shape[1])
    panel = _panel(sight, names, _sampled(sight, features, average))
    payload = encode_view([panel], selectable=True, named=True, max_height=640)
    return payload, Box(0, "gram", row, row + 1, col, col + 1)


def _sampled(sight: Sight, features: np.ndarray, average: Average | None) -> Intervals | None:
    """Return what samples say of the used pairs of a window that shows entries."""
    if average is None or not sight.window.exact:
        return None
    rows, columns = np.nonzero(np.where(sight.none, 0.0, sight.values))
    if not rows.size:
        return None
    i, j = features[sight.window.top + rows], features[sight.window.left + columns]
    # Across the diagonal the window has pairs twice.
    pairs, at = np.unique(np.sort([i, j], axis=0), axis=1, return_inverse=True)
    found = average.intervals(*pairs).iloc[at.ravel()]
    cells = rows * sight.values.shape[1] + columns
    return Intervals(cells, found["lower"], found["upper"], found["probability"])


def _panel(sight: Sight, names: tuple[str, ...], intervals: Intervals | None) -> Panel:
    codes, scale = encode_codes(np.where(sight.none, 0.0, sight.values))
    codes[sight.none] = NOT_AN_INTERACTION
    rows, columns = sight.labels(names)
    shown = int(np.count_nonzero(sight.values))
    window = sight.window
    kind = "cells" if window.exact else "tiles"
    # Tiles say so by themselves.
    own: dict[str, Any] = {"gram_label": "W"} if window.exact else {}
    return Panel(
        window.label,
        [CodesFrame(codes, scale, "", f"{shown:,} of {codes.size:,} {kind} are not zero", intervals)],
        row_labels=rows,
        col_labels=columns,
        **own,
    )


def _entries(
    reading: Opened, pairs: PairWeights, window: Window, features: np.ndarray, average: Average | None
) -> None:
    """Draw the table of the strongest pairs of a window that shows entries."""
    rows, columns = np.arange(window.top, window.bottom), np.arange(window.left, window.right)
    weight, used = pairs.among(rows, columns)
    at, to = np.nonzero(used)
    i, j = features[rows[at]], features[columns[to]]
    value = weight[at, to]
    # Where the window lies across the diagonal it has pairs twice.
    first, second = np.minimum(i, j), np.maximum(i, j)
    _, kept = np.unique(first * reading.dataset.X.shape[1] + second, return_index=True)
    kept = kept[np.argsort(-np.abs(value[kept]), kind="stable")]
    if not kept.size:
        st.caption("No pair of this window is used.")
        return
    few = kept[:_LISTED]
    said = f"{kept.size:,} pairs of this window are used"
    st.markdown(f"**{said}**" if kept.size <= _LISTED else f"**{said}, the {_LISTED} of largest weight:**")
    table = table_of_pairs(first[few], second[few], value[few], reading.dataset, reading.wording)
    table = with_intervals(table, average, first[few], second[few])
    pairs_in_words(
        table, reading.wording, "interactions_window_pairs", f"window-{reading.run.id[:6]}.csv", rows=8
    )
