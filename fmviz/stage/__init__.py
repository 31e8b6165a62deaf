"""The stage: matrices, numbers and curves by one ES module, for Streamlit, notebooks and saved pages."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2.utils import htmlsafe_json_dumps

from fmviz.stage.matrices import (
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
    View,
    encode_codes,
    encode_factor,
    encode_frames,
)

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
    "View",
    "encode_codes",
    "encode_factor",
    "encode_frames",
    "module",
    "read",
]

_SCRIPTS = ("channel.js", "matrices.js", "curves.js", "stage.js")


def read(name: str) -> str:
    """Return a file of this folder."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@cache
def module() -> str:
    """Return the self-contained ES module with its styles.

    Its default export draws a Streamlit component; called without one, it returns an anywidget. In a saved
    page it draws every JSON payload.
    """
    return f"const STYLE = {htmlsafe_json_dumps(read('stage.css'))};\n\n{''.join(map(read, _SCRIPTS))}"
