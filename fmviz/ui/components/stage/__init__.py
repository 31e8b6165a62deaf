"""A training run on one screen, drawn by the browser: its matrices, its numbers, and its curves in small."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any

from fmviz.ui.components.matrix_view import Cell, read

__all__ = ["stage"]


@functools.cache
def _component() -> Any:
    import streamlit as st

    here = resources.files(__package__)

    def own(name: str) -> str:
        return here.joinpath(name).read_text(encoding="utf-8")

    return st.components.v2.component(
        "fmviz.stage",
        js=read("matrices.js") + own("stage.js"),
        css=read("matrix_view.css") + own("stage.css"),
    )


def _ignore() -> None:
    # Streamlit keeps the value `cell` only if it has a callback.
    pass


def stage(payload: bytes, key: str) -> Cell | None:
    """Draw a stage; what is new while a run goes on is handed to it by a pulse, under the name of its feed.

    Parameters
    ----------
    payload : bytes
        Of `fmviz.ui.train.live.payload`.
    key : str
        Unique on the page.

    Returns
    -------
    Cell or None
        The cell that was clicked last, if cells can be clicked.
    """
    state = _component()(data=payload, key=key, on_cell_change=_ignore)
    cell = state.get("cell")
    return None if cell is None else Cell(**cell)
