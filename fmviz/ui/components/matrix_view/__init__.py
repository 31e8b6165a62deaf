"""Heatmaps of many matrices, switched in the browser while a slider is dragged.

In a page::

    frames = [FactorFrame(Q, key=label, caption=f"{n:,} interactions") for label, Q, n in path]
    st.select_slider("λ", options=[f.key for f in frames], key="lam")
    matrix_view([Panel("TI", frames)], driver_key="lam", key="view")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

import streamlit as st

from fmviz.ui.components import component, ignore
from fmviz.ui.components.matrix_view.model import (
    MAX_GRAM_FEATURES,
    NOT_AN_INTERACTION,
    Cell,
    CellClass,
    ClassesFrame,
    CodesFrame,
    FactorFrame,
    Frame,
    Mark,
    Panel,
    encode_codes,
    encode_factor,
)
from fmviz.ui.components.matrix_view.wire import ViewOptions, encode_frames, encode_view

__all__ = [
    "MAX_GRAM_FEATURES",
    "NOT_AN_INTERACTION",
    "Cell",
    "CellClass",
    "ClassesFrame",
    "CodesFrame",
    "FactorFrame",
    "Frame",
    "Mark",
    "Panel",
    "encode_codes",
    "encode_factor",
    "encode_frames",
    "encode_view",
    "matrix_view",
]


def matrix_view(
    panels: Sequence[Panel] | bytes,
    *,
    key: str,
    on_cell: Callable[[Cell], None] | None = None,
    **options: Unpack[ViewOptions],
) -> None:
    """Draw matrices side by side.

    Parameters
    ----------
    panels : sequence of Panel, or bytes
        The panels, or the payload that `encode_view` made of them.
    key : str
        The widget key.
    on_cell : callable, optional
        Called with every cell that is clicked, with ``clickable=True``, before the script runs again. It may
        be of panels shown before: check its place against the data at hand.
    **options
        The keyword arguments of `encode_view`; a payload has its own.
    """

    def clicked() -> None:
        if on_cell is not None and (cell := st.session_state[key].get("cell")) is not None:
            on_cell(Cell(**cell))

    draw = component(
        "matrix_view",
        "matrix_view/matrices.js",
        "matrix_view/matrix_view.js",
        "matrix_view/matrix_view.css",
    )
    payload = panels if isinstance(panels, bytes) else encode_view(panels, **options)
    draw(data=payload, key=key, on_cell_change=ignore if on_cell is None else clicked)
