"""Controls bound to settings, and the small blocks that several pages show.

Every control takes the page's `Settings` and the name of a setting, takes its help and bounds from the
setting's declaration, and returns the present value.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import streamlit as st

from fmviz.lab.spreadsheet import defused
from fmviz.ui.state import Settings, Several, Text

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def superscript(number: int) -> str:
    """Return a whole number in superscript digits."""
    return str(number).translate(_SUPERSCRIPT)


def power_label(exponent: int) -> str:
    """Return for instance "2⁻³ = 0.125"."""
    return f"2{superscript(exponent)} = {2.0**exponent:.6g}"


def title_of(name: str) -> str:
    """Return a name in words: ``"max_epochs"`` becomes "Max epochs"."""
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def param(
    settings: Settings,
    name: str,
    label: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    style: Literal["auto", "slider", "number", "select"] = "auto",
    disabled: bool = False,
    help: str | None = None,
    then: Callable[[], None] | None = None,
) -> Any:
    """Draw the control that fits the declaration of a setting.

    Parameters
    ----------
    settings, name
        Which setting.
    label : str, optional
        The caption; the name in words by default.
    labels : mapping, optional
        Words for the values of a choice.
    style : {"auto", "slider", "number", "select"}
        "auto" makes a slider of a bounded range of at most 100 whole numbers, a scale of round values of a
        logarithmic number, segments of up to four choices.
    disabled : bool
        Whether it can be changed.
    help : str, optional
        Replaces the help of the declaration.
    then : callable, optional
        Called after a change, of a control that is neither a scale nor several pills.

    Returns
    -------
    object
        The present value.
    """
    item = settings.table[name]
    if isinstance(item, Several):
        return several(settings, name, label, labels=labels, disabled=disabled)
    label = title_of(name) if label is None else label
    if isinstance(item, Text):
        st.text_input(label, help=help or item.help or None, disabled=disabled, **settings.bind(name, then))
        return settings[name]
    spec = settings.spec(name)
    common: dict[str, Any] = {"help": help or spec.help or None, "disabled": disabled}
    if spec.kind == "bool":
        st.toggle(label, **common, **settings.bind(name, then))
    elif spec.kind == "choice":
        words = dict(labels or {})

        def show(value: str) -> str:
            return words.get(value, title_of(value))

        common["format_func"] = show
        if style == "auto" and len(spec.choices) <= 4:
            st.segmented_control(label, spec.choices, required=True, **common, **settings.bind(name, then))
        else:
            st.selectbox(label, spec.choices, **common, **settings.bind(name, then))
    elif spec.kind == "int":
        low, high = (None if x is None else int(x) for x in (spec.low, spec.high))
        small = low is not None and high is not None and high - low <= 100
        if low is not None and high is not None and (style == "slider" or (style == "auto" and small)):
            st.slider(label, low, high, step=1, **common, **settings.bind(name, then))
        else:
            st.number_input(label, low, high, step=1, **common, **settings.bind(name, then))
    elif spec.log and style == "auto":
        return scale(settings, name, label, disabled=disabled, help=help)
    elif style == "slider" and spec.low is not None and spec.high is not None:
        st.slider(label, float(spec.low), float(spec.high), **common, **settings.bind(name, then))
    else:
        low_, high_ = (None if x is None else float(x) for x in (spec.low, spec.high))
        st.number_input(label, low_, high_, format="%.6g", **common, **settings.bind(name, then))
    return settings[name]


def round_values(low: float, high: float, steps: Sequence[float] = (1, 2, 5)) -> list[float]:
    """Return the values 1, 2, 5 × 10^e in [low, high], low > 0."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    values = [float(f"{m:g}e{e}") for e in range(first, last + 1) for m in steps]
    return [value for value in values if low <= value <= high]


def scale(
    settings: Settings,
    name: str,
    label: str | None = None,
    *,
    lowest: float = 1e-8,
    highest: float = 1e3,
    disabled: bool = False,
    help: str | None = None,
) -> float:
    """Draw a slider over 0 (where allowed) and round values; it takes the arrow keys.

    A value from a link that is not round is added to the scale, so nothing is rounded silently.
    """
    spec = settings.spec(name)
    low = max(spec.low or 0.0, lowest)
    high = min(spec.high or highest, highest)
    options = round_values(low, high)
    if (spec.low or 0.0) <= 0.0:
        options = [0.0, *options]
    present = float(settings[name])
    options = sorted({*options, present})
    st.select_slider(
        title_of(name) if label is None else label,
        options,
        format_func=lambda value: f"{value:g}",
        help=help or spec.help or None,
        disabled=disabled,
        **settings.bind(name),
    )
    return float(settings[name])


def power_of_two(
    settings: Settings,
    name: str,
    label: str,
    *,
    label_of: Callable[[int], str] = power_label,
    help: str | None = None,
) -> int:
    """Draw a slider over the exponents of 2 that an int setting allows; return the exponent."""
    spec = settings.spec(name)
    if spec.low is None or spec.high is None:
        raise ValueError(f"setting {name!r} needs bounds to be drawn as powers of two")
    st.select_slider(
        label,
        range(int(spec.low), int(spec.high) + 1),
        format_func=label_of,
        help=help or spec.help or None,
        **settings.bind(name),
    )
    return int(settings[name])


def several(
    settings: Settings,
    name: str,
    label: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    disabled: bool = False,
    menu: bool = False,
) -> tuple[str, ...]:
    """Draw pills, or a menu, for a `Several` setting; return the chosen names in order."""
    item = settings.table[name]
    if not isinstance(item, Several):
        raise TypeError(f"setting {name!r} holds one value; use param")
    words = dict(labels or {})
    keywords: dict[str, Any] = {
        "format_func": lambda value: words.get(value, title_of(value)),
        "help": item.help or None,
        "disabled": disabled,
        **settings.bind(name),
    }
    label = title_of(name) if label is None else label
    if menu:
        st.multiselect(label, item.choices, placeholder="all", **keywords)
    else:
        st.pills(label, item.choices, selection_mode="multi", **keywords)
    return tuple(settings[name])


# --------------------------------------------------------------------------------------------- downloads


def csv_of(columns: Mapping[str, Sequence[Any] | np.ndarray]) -> str:
    """Return columns of equal length as CSV text; floats are written so that they read back exactly.

    Words that a spreadsheet would execute are defused.
    """
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(map(defused, columns))
    rows = zip(*(c.tolist() if isinstance(c, np.ndarray) else c for c in columns.values()), strict=True)
    writer.writerows(map(defused, row) for row in rows)
    return sink.getvalue()


def csv_of_matrix(matrix: np.ndarray) -> str:
    """Return a matrix as CSV text without a heading, exact zeros as 0."""
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows(
        [0 if x == 0 else x for x in row] for row in np.asarray(matrix).tolist()
    )
    return sink.getvalue()


def npz_of(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays as a compressed .npz file."""
    sink = io.BytesIO()
    np.savez_compressed(sink, **dict(arrays))  # type: ignore[arg-type]
    return sink.getvalue()


def download(
    label: str,
    make: Callable[[], str | bytes],
    file_name: str,
    *,
    key: str | None = None,
    help: str | None = None,
    disabled: bool = False,
) -> None:
    """Draw a download button; `make` runs when it is pressed, and the page does not rerun."""
    kinds = {"csv": "text/csv", "npz": "application/octet-stream", "json": "application/json"}
    st.download_button(
        label,
        data=make,
        file_name=file_name,
        mime=kinds.get(file_name.rsplit(".", 1)[-1], "text/plain"),
        key=key,
        help=help,
        on_click="ignore",
        icon=":material/download:",
        disabled=disabled,
    )


def python_block(code: str, label: str = "Copy as Python", *, note: str = "") -> None:
    """Draw a folded code block with Streamlit's copy button."""
    with st.expander(label, icon=":material/code:"):
        if note:
            st.caption(note)
        st.code(code.strip() + "\n", language="python", wrap_lines=False)


# ---------------------------------------------------------------------------------------------- verdicts


def certificate_badge(value: float, good: float = 1e-10, name: str = "certificate") -> None:
    """Draw a certificate as a badge: green up to `good`, red above."""
    fine = bool(value <= good)  # NaN is not fine
    st.badge(
        f"{name} {value:.1e}" if value else f"{name} 0",
        icon=":material/verified:" if fine else ":material/error:",
        color="green" if fine else "red",
        help="How far the result is from the optimality condition, recomputed independently and relative to "
        f"the largest entry. Green up to {good:g}.",
    )
