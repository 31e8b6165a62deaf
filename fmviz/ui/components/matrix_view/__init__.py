"""Matrices as heatmaps with many frames, switched in the browser while a slider is dragged.

The data types import without Streamlit; Streamlit is imported when a view is drawn.

In a page::

    frames = [FactorFrame(Q, key=label, caption=f"{n:,} interactions") for label, Q, n in path]
    st.select_slider("λ", options=[f.key for f in frames], key="lam")
    matrix_view([Panel("TI", frames)], driver_key="lam", key="view")
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, Unpack

from fmviz.ui.components.matrix_view.model import (
    MAX_GRAM_FEATURES,
    NOT_AN_INTERACTION,
    Cell,
    CellClass,
    ClassesFrame,
    CodesFrame,
    FactorFrame,
    Frame,
    Intervals,
    Mark,
    Panel,
    encode_codes,
    encode_factor,
)
from fmviz.ui.components.matrix_view.wire import ViewOptions, encode_view

__all__ = [
    "MAX_GRAM_FEATURES",
    "NOT_AN_INTERACTION",
    "Cell",
    "CellClass",
    "ClassesFrame",
    "CodesFrame",
    "FactorFrame",
    "Frame",
    "Intervals",
    "Mark",
    "Panel",
    "encode_codes",
    "encode_factor",
    "encode_view",
    "matrix_view",
    "read",
]


@functools.cache
def _component() -> Any:
    # Once a process, not once a session: registering again would only repeat the same definition, and the
    # returned callable puts the definition back by itself where a new runtime (AppTest) lacks it.
    import streamlit as st

    return st.components.v2.component(
        "fmviz.matrix_view", js=read("matrices.js") + read("matrix_view.js"), css=read("matrix_view.css")
    )


def read(name: str) -> str:
    """Return a file of this folder; `matrices.js` and the styles serve other components, too."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def matrix_view(
    panels: Sequence[Panel] | bytes,
    *,
    key: str | None = None,
    on_cell: Callable[[Cell], None] | None = None,
    **options: Unpack[ViewOptions],
) -> Cell | None:
    """Draw matrices side by side.

    Parameters
    ----------
    panels : sequence of Panel, or bytes
        The panels, or the payload that `encode_view` made of them.
    key : str, optional
        The widget key. Give one whenever the data is replaced while the view stays on the page; without it
        new data makes a new view.
    on_cell : callable, optional
        Called with every cell that is clicked, with ``clickable=True``, before the script runs again; needs a
        key.
    **options
        The keyword arguments of `encode_view`; they are already part of a payload.

    Returns
    -------
    Cell or None
        The cell that was clicked last, with ``clickable=True``. It may be of panels shown before: check its
        place against the data at hand.
    """
    if isinstance(panels, bytes):
        if options:
            raise TypeError(
                f"{', '.join(options)}: a payload already carries its options; give them to encode_view."
            )
        payload = panels
    else:
        payload = encode_view(panels, **options)

    # Streamlit keeps the value `cell` only if it has a callback.
    def clicked() -> None:
        import streamlit as st

        if (
            on_cell is not None
            and key is not None
            and (cell := st.session_state[key].get("cell")) is not None
        ):
            on_cell(Cell(**cell))

    state = _component()(data=payload, key=key, on_cell_change=clicked)
    cell = state.get("cell")
    return None if cell is None else Cell(**cell)
