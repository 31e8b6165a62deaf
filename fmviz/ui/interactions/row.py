"""Decomposition of a single prediction, recomputed with changed values and for every output."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.figures import interactions as figures
from fmviz.lab.interpretation.attributes import NONE, Attribute
from fmviz.lab.interpretation.decomposition import KINDS, Decomposition, decompose, words_of
from fmviz.lab.runner import split
from fmviz.typography import typeset
from fmviz.ui import widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain, plain_label
from fmviz.ui.interactions.opened import Opened
from fmviz.ui.settings.state import Settings, Text

# Side by side on wide screens.
_STYLE = """<style>
.st-key-interactions_one_row:has(> :nth-child(2)) {
  display: grid; align-items: start; gap: 1rem; grid-template-columns: minmax(0, 1fr) minmax(0, 2.4fr)
}
@media (max-width: 1000px) {
  .st-key-interactions_one_row:has(> :nth-child(2)) {grid-template-columns: minmax(0, 1fr)}
  .st-key-interactions_one_row > :first-child:not(:last-child) {order: 1}
}
</style>"""
_BARS = 14
_CONTROLS = 12
TABLE = (
    ParamSpec(
        "part",
        "choice",
        "training",
        choices=("training", "validation"),
        help="Training rows or held-out rows.",
    ),
    ParamSpec("row", "int", 1, 1, 1_000_000_000, help="Number of the row within this set, from 1."),
    Text("change", limit=400, help="Changed attributes, as number=value."),
    Text("seek", limit=100, help="Shows attributes whose names contain this text."),
)


def draw(settings: Settings, reading: Opened) -> None:
    """Draw the view."""
    place = _pick(settings, reading)
    x = reading.attributes.row(place)
    changes = _changes(settings, reading)
    changed = x.copy()
    for at, value in changes.items():
        reading.attributes.all[at].encode_into(changed, value)
    model, parameters = reading.model, reading.parameters
    before = decompose(model, parameters, x)
    now = decompose(model, parameters, changed) if changes else before
    if not math.isfinite(now.predicted):
        st.warning(
            "With these values the prediction overflows. Revert some of them.",
            icon=":material/trending_up:",
        )
        now, changed = before, x
    st.html(_STYLE)
    box = st.container(key="interactions_one_row")
    if settings.shows("change", "What if"):
        with box.container():
            _controls(settings, reading, x, changes, now)
    with box.container():
        _numbers(reading, place, before, now if changes else None)
        names = reading.dataset.feature_names
        by_columns = now
        if reading.dataset.columns:
            names = tuple(f"{a.name} = {a.words_for(a.value(changed))}" for a in reading.attributes.all)
            by_columns = now.of_columns(reading.attributes.of_column)
        _bars(reading, by_columns, names)


def _pick(settings: Settings, reading: Opened) -> int:
    """Draw the choice of a row; return its index in the data."""
    experiment = reading.experiment
    n, seed = reading.dataset.y.size, experiment.seed if experiment.validation else 0
    train, held_out = split(n, experiment.validation, seed, reading.dataset.row_groups)
    if not held_out.size and settings["part"] == "validation":
        settings.set(part="training")

    with st.container(horizontal=True, vertical_alignment="bottom", key="interactions_pick_row"):
        if held_out.size:
            widgets.param(settings, "part", "Rows", then=lambda: settings.set(row=1, change=""))
        rows = held_out if settings["part"] == "validation" else train
        if settings["row"] > rows.size:
            settings.set(row=int(rows.size))
        widgets.control(
            settings,
            "row",
            st.number_input,
            f"Row, of {rows.size:,}",
            1,
            int(rows.size),
            step=1,
            width=180,
            then=lambda: settings.set(change=""),
        )
        place = int(rows[settings["row"] - 1])
        words = f"Row {place + 1:,} of the data."
        if not held_out.size:
            words += " This run has no held-out rows."
        st.caption(words, width="content")
    return place


# ------------------------------------------------------------------------------------------------ what-if


def _changes(settings: Settings, reading: Opened) -> dict[int, float]:
    """Return the valid changed values of attributes, by number."""
    changes: dict[int, float] = {}
    lost = []
    probe = np.zeros(reading.attributes.of_column.size)
    for part in filter(None, settings["change"].split(",")):
        name, _, text = part.partition("=")
        try:
            at, value = int(name), float(text)
            if not 0 <= at < len(reading.attributes.all):
                raise ValueError(f"{at} is not an attribute.")
            reading.attributes.all[at].encode_into(probe, value)
        except ValueError:
            lost.append(part)
            continue
        changes[at] = value
    if lost:
        st.warning(
            f"From the link: {plain(', '.join(lost))} does not fit these data and was left out.",
            icon=":material/link_off:",
        )
    return changes


def _controls(
    settings: Settings, reading: Opened, x: np.ndarray, changes: dict[int, float], now: Decomposition
) -> None:
    with st.container(border=True, key="interactions_what_if"):
        st.markdown("**What if …**")
        every = reading.attributes.all
        if len(every) > _CONTROLS:
            widgets.control(
                settings,
                "seek",
                st.text_input,
                "Find an attribute",
                placeholder="largest terms of this row",
                icon=":material/search:",
            )
        shown = _shown(settings["seek"], reading, now)
        kept = [at for at in sorted(changes) if at not in shown]
        for at in (*kept, *shown):
            _control(settings, every[at], at, changes, every[at].value(x))
        if len(shown) < len(every):
            st.caption(f"{len(shown) + len(kept):,} of {len(every):,} attributes.")
        st.button(
            "Restore the row's values",
            icon=":material/undo:",
            key="interactions_unchange",
            disabled=not changes or settings.locks("change"),
            on_click=settings.set,
            kwargs={"change": ""},
        )


def _shown(words: str, reading: Opened, now: Decomposition) -> list[int]:
    """Return the attributes with a control: matches of the search, or those of the largest terms."""
    every = reading.attributes.all
    if len(every) <= _CONTROLS:
        return list(range(len(every)))
    if words.strip():
        named = [at for at, attribute in enumerate(every) if words.strip().lower() in attribute.name.lower()]
        return named[:_CONTROLS]
    size = np.zeros(len(every))
    for term in now.terms:
        for j in term.features:
            size[reading.attributes.of_column[j]] += abs(term.value)
    return sorted(np.argsort(-size, kind="stable")[:_CONTROLS].tolist())


def _control(
    settings: Settings, attribute: Attribute, at: int, changes: dict[int, float], was: float
) -> None:
    value = changes.get(at, was)
    key = f"interactions_value_{at}"
    label = plain_label(attribute.name) + (" (changed)" if at in changes else "")
    help_text = f"In the row: {attribute.words_for(was)}."

    def store() -> None:
        """Set the changed value; drop the change if it equals the row's value."""
        if (new := st.session_state[key]) is not None:
            wanted = {place: x for place, x in {**changes, at: float(new)}.items() if place != at or x != was}
            settings.set(change=",".join(f"{place}={x!r}" for place, x in sorted(wanted.items())))

    # The setting `change` holds all changed values.
    if st.session_state.get(key) != value:
        st.session_state[key] = int(value) if attribute.kind != "number" else value
    common: dict[str, Any] = {"key": key, "on_change": store, "help": plain(help_text)}
    common["disabled"] = settings.locks("change")
    if attribute.kind == "number":
        # A power of ten, at most the scale of the number.
        scale = 1.0 if attribute.scaling is None else attribute.scaling.scale
        step = float(f"{10 ** math.floor(math.log10(scale)):g}") if scale > 0 else 1.0
        st.number_input(label, format="%.6g", step=step, **common)
    elif attribute.kind == "flag":
        st.segmented_control(
            label, (0, 1), format_func=lambda v: "yes" if v else "no", required=True, **common
        )
    else:
        places = list(range(len(attribute.words)))
        if attribute.can_lack or was == NONE:
            places = [NONE, *places]
        st.selectbox(label, places, format_func=lambda place: attribute.words_for(float(place)), **common)


# ------------------------------------------------------------------------------------------------ results


def _numbers(reading: Opened, place: int, before: Decomposition, now: Decomposition | None) -> None:
    wording, dataset = reading.wording, reading.dataset
    shown = before if now is None else now
    y = float(dataset.y[place])
    cells: list[tuple[str, str, str | None, str]] = []

    def delta(new: float, old: float) -> str | None:
        return None if now is None else f"{new - old:+.4g}"

    if wording.binary:
        label = (dataset.class_labels or ("-1", "+1"))[int(y > 0)]
        if reading.full_dataset.task in ("class", "ordinal"):
            label = (reading.full_dataset.class_labels or ())[int(reading.full_dataset.y[place])]
        cells.append(
            (
                wording.what[:1].upper() + wording.what[1:],
                typeset(shown.predicted, ".4g"),
                delta(shown.predicted, before.predicted),
                "f(x). Above 0, this class is predicted.",
            )
        )
        chance, was = wording.probability(shown.predicted), wording.probability(before.predicted)
        if chance is not None and was is not None:
            cells.append(
                (
                    f"Probability of “{wording.positive}”",
                    f"{chance:.1%}",
                    None if now is None else f"{100 * (chance - was):+.1f} points",
                    "1/(1 + e^(−f)).",
                )
            )
        cells.append(("In the data", label, None, f"The row's {dataset.target_name}."))
    else:
        value, was = wording.prediction(shown.predicted), wording.prediction(before.predicted)
        truth, words = wording.decoded(y), "Prediction minus target."
        cells = [
            ("Prediction", typeset(value, ".5g"), delta(value, was), dataset.target_name),
            ("In the data", typeset(truth, ".5g"), None, dataset.target_name),
            *([("Error", typeset(value - truth, "+.4g"), None, words)] if now is None else []),
        ]
    with st.container(horizontal=True, gap="medium", key="interactions_prediction"):
        for what, text, change, words in cells:
            st.metric(plain(what), text, delta=change, delta_color="off", help=plain(words), width="content")
    if wording.binary and not wording.log_odds:
        st.caption(wording.why_no_probability())


def _bars(reading: Opened, now: Decomposition, names: tuple[str, ...]) -> None:
    wording = reading.wording
    labels, values = [], []
    for kind, term in now.largest(_BARS):
        if kind:
            others = "the other " + (KINDS[kind] if kind != "linear" else "linear terms")
            labels.append(f"{others} ({term.order:,})")
        else:
            labels.append(words_of(term, names))
        values.append(wording.added(term.value) if term.kind == "bias" else term.value * wording.scale)
    total = wording.added(now.total)
    largest = sorted(now.terms, key=lambda term: -abs(term.value))[:3]
    said = "; ".join(f"{words_of(term, names)} {term.value * wording.scale:+.3g}" for term in largest)
    chart(
        figures.waterfall(labels, values, total, "prediction", f"in {wording.unit}"),
        key="interactions_waterfall",
        alt=f"Waterfall of the terms that sum to {total:.5g}. Largest: {said}.",
    )
