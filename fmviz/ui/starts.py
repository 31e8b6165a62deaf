"""Controls for the starting point of fits, and λ_max, the strength that leaves no interactions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import streamlit as st

from fmviz.lab.experiment import SPECS, Experiment
from fmviz.lab.interpretation.threshold import lambda_max
from fmviz.lab.store.table import LABELS
from fmviz.typography import typeset
from fmviz.ui.settings.state import Settings

# Some pages have a button named start.
STARTS = replace(next(spec for spec in SPECS if spec.name == "start"), name="starts", default="warm")
"""The setting of pages with a common start of all fits."""
START_LABELS = LABELS["start"]
_HELP = (
    r"At and above this $\lambda$, $P = 0$ is a global minimum; below it, a saddle point, which an informed "
    "start escapes. It is computed from the linear fit."
)


def follow_data(settings: Settings, linked: bool, names: Collection[str], load: Callable[[], None]) -> None:
    """Load suggestions for a newly chosen data set, unless a link sets one of `names`."""
    key = f"fmviz:{settings.page}:dataset"
    before = st.session_state.get(key)
    if before == settings["dataset"] and not linked:
        return
    st.session_state[key] = settings["dataset"]
    given = settings.brought if linked else settings.query().keys() if before is None else ()
    if set(names).isdisjoint(given):
        load()


def draw_thresholds(*experiments: Experiment) -> None:
    """Draw the smallest λ without interactions as a line below the control of λ."""
    reasons: dict[str, list[str]] = {}
    for experiment in experiments:
        if words := _threshold(experiment):
            reasons.setdefault(words, []).append(experiment.regularizer.label)
    lines = [
        words if len(experiments) == 1 else f"{', '.join(names)}: {words[0].lower()}{words[1:]}"
        for words, names in reasons.items()
    ]
    if lines:
        st.caption(f":material/vertical_align_top: {' '.join(lines)}", help=_HELP)


def _threshold(experiment: Experiment) -> str | None:
    """Return a sentence on the smallest λ without interactions, or None if it is unknown."""
    if experiment.dataset.spec.unavailable() is not None or (bound := lambda_max(experiment)) is None:
        return None
    low, high = bound
    if experiment.model.multi_output:
        return f"No basis remains for $\\lambda \\ge {typeset(low)}$."
    if high == 0.0:
        return "No interaction remains at any $\\lambda$: lower $\\lambda_p$."
    if high <= 1.001 * low:
        return f"No interaction remains for $\\lambda \\ge {typeset(low)}$."
    return f"No interaction remains above a $\\lambda$ between {typeset(low)} and {typeset(high)}."
