"""Controls for the starting point of fits, and the strength λ that leaves no interaction."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import streamlit as st

from fmviz.lab.experiment import SPECS, Experiment
from fmviz.lab.interpretation.threshold import lambda_max
from fmviz.lab.store.table import LABELS
from fmviz.typography import typeset
from fmviz.ui.settings.state import Settings

# Buttons of some pages are called start.
STARTS = replace(next(spec for spec in SPECS if spec.name == "start"), name="starts")
"""The setting of pages whose fits all begin alike."""
START_LABELS = LABELS["start"]
_HELP = (
    r"From this $\lambda$ on $P = 0$ is a global minimum; below it, a saddle point, which an informed "
    "start leaves. It follows from the linear fit alone."
)


def follow_data(
    settings: Settings, linked: bool, names: Collection[str], load: Callable[[bool], None]
) -> None:
    """Load what suits a newly chosen data set, unless a link brought any of the settings named.

    `load` is told whether there is a link: what links leave out must stay what it was.
    """
    key = f"fmviz:{settings.page}:dataset"
    before = st.session_state.get(key)
    if before == settings["dataset"] and not linked:
        return
    st.session_state[key] = settings["dataset"]
    given = settings.brought if linked else settings.query().keys() if before is None else ()
    if set(names).isdisjoint(given):
        load(linked)


def draw_thresholds(*experiments: Experiment) -> None:
    """Draw from which λ on there is no interaction, as a line under the control of λ."""
    reasons: dict[str, list[str]] = {}
    for experiment in experiments:
        if words := _threshold(experiment):
            reasons.setdefault(words, []).append(experiment.regularizer.label)
    if len(experiments) == 1:
        lines = list(reasons)
    else:
        lines = [f"{', '.join(names)}: {words[0].lower()}{words[1:]}" for words, names in reasons.items()]
    if lines:
        st.caption(f":material/vertical_align_top: {' '.join(lines)}", help=_HELP)


def _threshold(experiment: Experiment) -> str | None:
    """Return in words from which λ on there is no interaction, or None where that cannot be said."""
    available = experiment.dataset.spec.unavailable() is None
    if not available or (bound := lambda_max(experiment)) is None:
        return None
    low, high = bound
    if experiment.model.multi_output:
        return f"No basis remains from $\\lambda = {typeset(low)}$ on."
    if high == 0.0:
        return "No interaction remains at any $\\lambda$: lower $\\lambda_p$."
    if high <= 1.001 * low:
        return f"No interaction remains from $\\lambda = {typeset(low)}$ on."
    return f"No interaction remains from a $\\lambda$ between {typeset(low)} and {typeset(high)} on."
