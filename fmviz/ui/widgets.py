"""Controls bound to settings, and small blocks for several pages.

Every control takes the page's `Settings` and the name of a setting, reads help and bounds from the
declaration of the setting, and returns its current value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal
from urllib.parse import urlencode

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from fmviz.engine.penalties import PENALTIES
from fmviz.engine.settings import ParamSpec
from fmviz.figures.operators import power
from fmviz.lab.background.task import Task
from fmviz.lab.datasets import Dataset
from fmviz.lab.runs.program import with_header
from fmviz.lab.values import TYPES
from fmviz.metrics import COLUMNS, METRICS, Metric
from fmviz.typography import typeset, without_markup
from fmviz.ui.escape import plain_label
from fmviz.ui.settings.state import Settings, Several, Text

LOCKED = ":material/lock: Locked by the link of this page."
MORE = "more"
"""The menu entry that reveals all choices."""
OUTPUT = ParamSpec("output", "int", 0, 0, 100_000, help="Index of the class, label or target.")
_OUTPUTS = {"class": "Class", "ordinal": "At most", "several": "Label"}
ONE_AT_A_TIME: dict[str, Any] = {"filter_mode": "contains", "select_all": False}
"""Filter mode of menus: Enter selects the first match."""
FIRST_REGULARIZERS = ("l1", "l21", "ti", "cs")
"""Regularizers listed before *More* in Simple mode."""


def power_label(exponent: int) -> str:
    """Return a power of two as text, for instance "2⁻³ = 0.125"."""
    return f"{power(exponent)} = {2.0**exponent:.6g}"


def title_of(name: str) -> str:
    """Return the label of a name: ``"max_epochs"`` becomes "Max epochs"."""
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def control(
    settings: Settings,
    name: str,
    widget: Callable[..., Any],
    label: str,
    *args: Any,
    help: str | None = None,
    disabled: bool = False,
    then: Callable[[], None] | None = None,
    place: DeltaGenerator | None = None,
    **keywords: Any,
) -> Any:
    """Draw a widget for a setting; nothing if the setting is hidden, disabled if it is locked.

    Parameters
    ----------
    settings, name
        The setting.
    widget : callable
        A Streamlit widget, for instance ``st.selectbox``.
    label : str
        The label.
    *args, **keywords
        Further arguments of the widget.
    help : str, optional
        Replaces the help of the declaration.
    disabled : bool
        Whether the widget is disabled.
    then : callable, optional
        Called after a change.
    place : container, optional
        The container to draw in.

    Returns
    -------
    object
        The current value.
    """
    # Screen readers read the label verbatim.
    label = without_markup(label)
    if not settings.shows(name, label):
        return settings[name]
    help = help or settings.table[name].help or None
    if settings.locks(name):
        label, help, disabled = f"{label} (locked)", f"{LOCKED} {help or ''}".strip(), True
    start = start_of(widget, settings[name], *args)
    with place or nullcontext():
        widget(label, *args, help=help, disabled=disabled, **keywords, **start, **settings.bind(name, then))
    return settings[name]


def start_of(widget: Callable[..., Any], value: Any, *args: Any) -> dict[str, Any]:
    """Return the initial value of a widget for a browser that misses the assignment of `Settings.bind`.

    An assigned value is sent with one run of the page, and is lost if another run overtakes it. The browser
    would then draw the widget at its default, and report that as a change.
    """
    takes = inspect.signature(widget).parameters
    if "options" not in takes:
        low, high = (*args, None, None)[:2]
        outside = (low is not None and value < low) or (high is not None and value > high)
        return {} if outside else {"value": value}
    options = list(args[0])
    if isinstance(value, tuple):
        return {"default": [item for item in value if item in options]}
    if value not in options:
        return {}
    if "index" in takes:
        return {"index": options.index(value)}
    return {"default" if "default" in takes else "value": value}


def action(
    settings: Settings,
    name: str,
    label: str,
    *,
    disabled: bool = False,
    help: str | None = None,
    **keywords: Any,
) -> bool:
    """Draw a button declared in the page's `parts`; return whether it was pressed."""
    if not settings.shows(name, label):
        return False
    locked = settings.locks(name)
    if "shortcut" in keywords:
        settings.shortcuts[keywords["shortcut"]] = label
    return st.button(
        label,
        key=f"{settings.page}_{name}",
        disabled=disabled or locked,
        help=LOCKED if locked else help,
        **keywords,
    )


def suggest(settings: Settings, load: Callable[[Settings], None], help: str) -> None:
    """Draw the button that loads the suggested settings for the data set."""
    action(
        settings,
        "suggest",
        "Suggested settings",
        icon=":material/tips_and_updates:",
        type="tertiary",
        on_click=load,
        args=(settings,),
        help=help,
    )


def stop(
    settings: Settings,
    task: Task | None,
    help: str | None = None,
    *,
    name: str = "stop",
    shortcut: str | None = "X",
) -> None:
    """Draw the button that stops an active task."""
    action(
        settings,
        name,
        "Stop",
        icon=":material/stop:",
        disabled=task is None or not task.state.active,
        on_click=None if task is None else task.stop,
        help=help,
        **({} if shortcut is None else {"shortcut": shortcut}),
    )


def choose_metric(
    settings: Settings,
    name: str,
    label: str,
    offered: Sequence[str],
    widget: Any = st.selectbox,
    **keywords: Any,
) -> Metric:
    """Draw the choice of an available metric; return the chosen one."""
    if settings[name] not in offered:
        settings.set(**{name: offered[0]})
    words = {**METRICS, **COLUMNS}
    control(settings, name, widget, label, offered, format_func=lambda key: words[key].label, **keywords)
    return words[settings[name]]


def choose_output(settings: Settings, dataset: Dataset) -> int:
    """Draw the menu of outputs if there are several; return the index of the chosen one."""
    names = dataset.outputs
    if not names:
        return 0
    if settings["output"] >= len(names):
        settings.set(output=0)
    control(
        settings,
        "output",
        st.selectbox,
        _OUTPUTS.get(dataset.task, "Target"),
        range(len(names)),
        format_func=lambda c: names[c].removeprefix("≤ "),
        help="Each class, label or target has one machine; this one is shown below.",
        width=320,
    )
    return int(settings["output"])


def param(
    settings: Settings,
    name: str,
    label: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    style: Literal["auto", "slider", "number", "select"] = "auto",
    most: int | None = None,
    **common: Any,
) -> Any:
    """Draw the control that matches the declaration of a setting.

    Parameters
    ----------
    settings, name
        The setting.
    label : str, optional
        The label, by default derived from the name.
    labels : mapping, optional
        Labels of the values of a choice.
    style : {"auto", "slider", "number", "select"}
        "auto" makes a slider of a bounded range of at most 100 whole numbers, a scale of round values of a
        logarithmic number, segments of up to four choices.
    most : int, optional
        The largest integer on offer, if smaller than the declared bound. Links may exceed it.
    **common
        ``disabled``, ``help``, ``place`` and, except for pills, ``then``, see `control`; ``width`` of a
        Streamlit widget; ``step`` of the arrow keys on a slider of real numbers.

    Returns
    -------
    object
        The current value.
    """
    item = settings.table[name]
    if isinstance(item, Several):
        return several(settings, name, label, labels=labels, **common)
    label = title_of(name) if label is None else label
    if isinstance(item, Text):
        return control(settings, name, st.text_input, label, **common)
    spec = settings.spec(name)
    if spec.kind == "bool":
        return control(settings, name, st.toggle, label, **common)
    if spec.kind == "list":
        # Lists come from links and programs. Without a key, the text follows the value.
        if settings[name] and settings.shows(name, label):
            text = TYPES[spec.kind].to_text(settings[name])
            st.text_input(plain_label(without_markup(label)), text, help=spec.help, disabled=True)
        return settings[name]
    if spec.kind == "choice":
        common["format_func"] = lambda value: (labels or {}).get(value, title_of(value))
        if style == "auto" and len(spec.choices) <= 4:
            return control(settings, name, st.segmented_control, label, spec.choices, required=True, **common)
        return control(settings, name, st.selectbox, label, spec.choices, **common)
    if spec.kind == "int":
        ends = (spec.low, spec.high if most is None else max(most, settings[name]))
        low, high = (None if x is None else int(x) for x in ends)
        small = low is not None and high is not None and high - low <= 100
        slider = low is not None and high is not None and (style == "slider" or (style == "auto" and small))
        widget = st.slider if slider else st.number_input
        return control(settings, name, widget, label, low, high, step=1, **common)
    if spec.log and style == "auto":
        return scale(settings, name, label, **common)
    low_, high_ = (None if x is None else float(x) for x in (spec.low, spec.high))
    if style == "slider" and low_ is not None and high_ is not None:
        return control(settings, name, st.slider, label, low_, high_, **common)
    return control(settings, name, st.number_input, label, low_, high_, format="%.6g", **common)


def scale(
    settings: Settings,
    name: str,
    label: str,
    *,
    lowest: float = 1e-8,
    highest: float = 1e3,
    steps: Sequence[float] = (1, 2, 5),
    **common: Any,
) -> float:
    """Draw a slider over 0 (if allowed) and round values.

    Other values from links are added to the scale instead of being rounded. `steps` are the round values
    within a decade. Other arguments are as in `control`.
    """
    spec = settings.spec(name)
    low = max(spec.low or 0.0, lowest)
    high = min(spec.high or highest, highest)
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    options: set[Any] = {x for e in decades for step in steps if low <= (x := float(f"{step:g}e{e}")) <= high}
    if (spec.low or 0.0) <= 0.0:
        options.add(0.0)
    options.add(settings[name])
    common["format_func"] = partial(typeset, form="g")
    return float(control(settings, name, st.select_slider, label, sorted(options), **common))


def several(
    settings: Settings,
    name: str,
    label: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    menu: bool = False,
    first: Sequence[str] = (),
    **keywords: Any,
) -> tuple[str, ...]:
    """Draw pills, or a menu, for a `Several` setting; return the chosen names in order.

    With `first` choices, Simple folds the others, see `folded`. Other arguments are as in `control`.
    """
    choices = settings.table[name].choices  # type: ignore[union-attr]
    words = dict(labels or {})
    keywords["format_func"] = lambda value: words.get(value, title_of(value))
    label = title_of(name) if label is None else label
    if menu:
        keywords |= ONE_AT_A_TIME | {"placeholder": "all"}
        return tuple(control(settings, name, st.multiselect, label, choices, **keywords))
    options, words, then = folded(settings, name, choices, words, first)
    return tuple(
        control(settings, name, st.pills, label, options, selection_mode="multi", then=then, **keywords)
    )


def regularizers(settings: Settings, name: str, place: DeltaGenerator | None = None) -> tuple[str, ...]:
    """Draw pills for a `Several` setting of regularizers; return the chosen names in order."""
    labels = {name: penalty.label for name, penalty in PENALTIES.items()}
    return several(settings, name, "Regularizers Ω", labels=labels, first=FIRST_REGULARIZERS, place=place)


def labels_of(names: Sequence[str]) -> str:
    """Return the labels of regularizers, for the summary of folded settings."""
    return ", ".join(PENALTIES[name].label for name in names)


def folded(
    settings: Settings,
    name: str,
    choices: Sequence[str],
    words: Mapping[str, str],
    first: Sequence[str],
) -> tuple[list[str], dict[str, str], Callable[[], None] | None]:
    """Return the choices listed by a widget, their labels, and a callback for changes.

    Expert mode, or *More*, lists all; Simple mode lists the `first`, the chosen ones, and *More*.
    """
    opened = f"fmviz:more:{settings.key(name)}"
    present = settings[name]
    kept = {*first, *(present if isinstance(present, tuple) else (present,))}
    shown = [choice for choice in choices if choice in kept]
    if not first or settings.is_expert or st.session_state.get(opened) or len(shown) == len(choices):
        return list(choices), dict(words), None

    def look() -> None:
        value = st.session_state.get(settings.key(name))
        if value == MORE or (isinstance(value, list) and MORE in value):
            st.session_state[opened] = True

    return [*shown, MORE], {**words, MORE: "More …"}, look


# --------------------------------------------------------------------------------------------- downloads


def download(
    label: str,
    make: Callable[[], str | bytes],
    file_name: str,
    *,
    key: str | None = None,
    help: str | None = None,
) -> None:
    """Draw a download button; pressing it calls `make` and does not rerun the page."""
    kinds = {
        "csv": "text/csv",
        "html": "text/html",
        "npz": "application/octet-stream",
        "json": "application/json",
    }
    st.download_button(
        label,
        data=make,
        file_name=file_name,
        mime=kinds.get(file_name.rsplit(".", 1)[-1], "text/plain"),
        key=key,
        help=help,
        on_click="ignore",
        icon=":material/download:",
    )


def confirm_delete(key: str, sentence: str, delete: Callable[[], None]) -> None:
    """Draw *Delete*: the button opens `sentence` with a second button that deletes."""
    with st.popover("Delete", icon=":material/delete:", key=f"{key}_ask"):
        st.markdown(f"{sentence} This cannot be undone.")
        st.button("Delete", type="primary", key=key, on_click=delete)


def save_page(key: str, make: Callable[[], str], name: str) -> None:
    """Draw the download of the results as an HTML page, generated when the button is pressed."""
    download(
        "Save as a page",
        make,
        f"{name}.html",
        key=key,
        help="Interactive pictures, text and settings in one HTML file that works offline.",
    )


def linked(script: str, result: str, **about: Any) -> str:
    """Return a program with the link to this page in its header, see `with_header`."""
    address = (st.context.url or "").partition("?")[0]
    query = urlencode(Settings.drawn().query())
    return with_header(script, result, link=f"{address}?{query}" if query else address, **about)


def python_block(code: str, note: str = "") -> None:
    """Draw a folded code block with Streamlit's copy button."""
    with st.expander("Copy as Python", icon=":material/code:"):
        if note:
            st.caption(note)
        st.code(code.strip() + "\n", language="python", wrap_lines=False)


# ---------------------------------------------------------------------------------------------- verdicts


def certificate_badge(value: float, good: float = 1e-10) -> None:
    """Draw a certificate as a badge: green up to `good`, red above."""
    fine = bool(value <= good)  # False for NaN.
    st.badge(
        f"certificate {typeset(value, '.1e') if value else 0}",
        icon=":material/verified:" if fine else ":material/error:",
        color="green" if fine else "red",
        help="Violation of the optimality condition, recomputed independently and relative to the largest "
        f"entry. Green up to {typeset(good, 'g')}.",
    )
