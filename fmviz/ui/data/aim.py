"""What is to be predicted: the target, whether it is a number or classes, and what is predicted with it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fmviz.lab.tables.column_types import Column
from fmviz.lab.tables.target import ascending
from fmviz.lab.uploads.library import Profile
from fmviz.ui import widgets
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings

__all__ = ["draw_aim"]

# More values are hardly levels.
_FEW = 12


def draw_aim(settings: Settings, profile: Profile) -> None:
    """Draw the target, the task and the class to tell from the others."""
    columns = {one.name: one for one in profile.columns}
    with st.container(border=True, key="data_aim"):
        left, middle, right = st.columns([2, 2, 2])
        with left:
            names = list(columns) or [settings["target"]]
            if settings["target"] not in names:
                names = ["", *names]
            widgets.control(
                settings,
                "target",
                st.selectbox,
                "Target",
                names,
                format_func=lambda name: name or "choose a column",
                disabled=not columns,
                then=lambda: settings.set(positive="", task="auto", order="", logarithm=False),
            )
        with middle:
            labels = {
                "auto": "Auto",
                "regression": "A number",
                "binary": "One class against the rest",
                "class": "Classes",
                "ordinal": "Classes in an order",
            }
            widgets.param(settings, "task", "What it is", labels=labels, style="select")
        with right:
            target = columns.get(settings["target"])
            levels = list(target.levels) if target is not None else _classes(profile)
            named = len(levels) == 2 or (target and target.kind == "word" and settings["task"] == "auto")
            if settings["task"] == "ordinal" and len(levels) > 2:
                widgets.control(
                    settings, "order", st.text_input, "In ascending order", placeholder=", ".join(levels[:12])
                )
            elif levels and not settings["also"] and (settings["task"] == "binary" or named):
                given = settings["positive"]
                widgets.control(
                    settings,
                    "positive",
                    st.selectbox,
                    "The class that is +1",
                    ["", *levels] if given in ("", *levels) else ["", given, *levels],
                    format_func=lambda level: (
                        level
                        or (
                            "the later of two"
                            if len(levels) == 2
                            else "each for itself"
                            if settings["task"] == "auto"
                            else "choose a class"
                        )
                    ),
                )
        if target is not None and not settings["also"]:
            _ask_for_order(settings, target)
        if settings["logarithm"] or _positive(settings, profile):
            widgets.param(settings, "logarithm", "Its logarithm")
        if len(columns) > 2 and not settings["positive"]:
            _also(settings, [name for name in columns if name != settings["target"]])


def _ask_for_order(settings: Settings, target: Column) -> None:
    """Ask what a target of a few values is, until somebody has said it."""
    few = 3 <= target.different <= _FEW and target.kind in ("word", "number")
    if settings["task"] != "auto" or settings["positive"] or not few or settings.locks("task"):
        return
    numbers = target.kind == "number"
    levels = ascending(target.levels)
    told = ", ".join(levels or (sorted(target.levels, key=_size) if numbers else target.levels))

    def take(task: str, order: str = "") -> None:
        settings.set(task=task, order=order)

    with st.container(border=True, horizontal=True, vertical_alignment="center", key="data_order"):
        st.markdown(
            f":material/help: **{plain(target.name)}** has {target.different:,} values: {plain(told)}. Are "
            "they classes, or is there an order in them?",
            width="stretch",
        )
        st.button("Classes", key="data_order_none", on_click=take, args=("class",))
        st.button(
            "In this order" if levels or numbers else "In an order",
            key="data_order_yes",
            on_click=take,
            args=("ordinal", ", ".join(levels)),
        )
        if numbers:
            st.button("Numbers", key="data_order_numbers", on_click=take, args=("regression",))


def _size(word: str) -> float:
    try:
        return float(word.replace(",", "."))
    except ValueError:
        return float("inf")


def _positive(settings: Settings, profile: Profile) -> bool:
    """Return whether the target is a number that is positive in all rows."""
    if settings["positive"] or settings["task"] not in ("auto", "regression"):
        return False
    if (y := profile.source.y) is not None:
        return bool(y.min() > 0.0) and np.unique(y).size > 2
    return any(one.positive for one in profile.columns if one.name == settings["target"])


def _also(settings: Settings, names: list[str]) -> None:
    """Draw the menu of further targets."""
    if not settings.shows("also", "Further targets"):
        return
    key = f"data_also_{settings['file'][:8]}_{settings['target']}"
    chosen = [name for name in settings["also"].split("\t") if name in names]

    def take() -> None:
        settings.set(also="\t".join(st.session_state[key]))

    st.multiselect(
        "Predict other columns with it",
        names,
        default=chosen,
        key=key,
        placeholder="none",
        disabled=settings.locks("also"),
        on_change=take,
        help="All of them numbers, or all of them yes and no. They are no features then.",
    )


def _classes(profile: Profile) -> list[str]:
    """Return the classes of a libsvm file, unless they are many."""
    y = profile.source.y
    if y is None:
        return []
    found = sorted(set(y.tolist()))
    return [f"{value:.15g}" for value in found] if len(found) <= 50 else []
