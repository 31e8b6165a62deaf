"""Choose which output of a model to show: a class, a label or a target."""

from __future__ import annotations

import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab.datasets import Dataset
from fmviz.ui import widgets
from fmviz.ui.settings.state import Settings

OUTPUT = ParamSpec("output", "int", 0, 0, 100_000, help="The class, label or target that is looked at.")
AGAINST = ParamSpec(
    "against", "int", -1, -1, 100_000, help="The class that the chosen one is told from; -1 for all others."
)
_WORDS = {"class": "Class", "ordinal": "At most", "several": "Label"}


def choose_output(settings: Settings, dataset: Dataset) -> int:
    """Draw the menu of the outputs, where there are several; return the number of the one that is chosen."""
    names = dataset.outputs
    if not names:
        return 0
    if settings["output"] >= len(names):
        settings.set(output=0)
    widgets.control(
        settings,
        "output",
        st.selectbox,
        _WORDS.get(dataset.task, "Target"),
        range(len(names)),
        format_func=lambda c: names[c].removeprefix("≤ "),
        help="One machine a class, label or target: this one is drawn and listed below.",
        width=320,
    )
    return int(settings["output"])


def choose_against(settings: Settings, dataset: Dataset) -> None:
    """Draw the menu of the classes that the chosen one can be told from, where there are several."""
    names, chosen = dataset.outputs, settings["output"]
    if dataset.task != "class":
        return
    others = [-1, *(c for c in range(len(names)) if c != chosen)]
    if settings["against"] not in others:
        settings.set(against=-1)
    widgets.control(
        settings,
        "against",
        st.selectbox,
        "Against",
        others,
        format_func=lambda c: "all others" if c < 0 else names[c],
        help="Another class: what is read is the difference of the two scores, which speaks for one against "
        "the other.",
        width=320,
    )
