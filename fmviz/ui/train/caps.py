"""Caps that are set or found from the data, and rows that are made wrong on purpose to try them."""

from __future__ import annotations

import streamlit as st

from fmviz.engine.losses import LOSSES
from fmviz.lab.contamination import CONTAMINATION
from fmviz.lab.experiment import Experiment
from fmviz.ui import widgets
from fmviz.ui.state import Settings

_LABELS = {
    "dataset_gross": "Gross errors in the target",
    "dataset_flipped": "Flipped labels",
    "dataset_swapped": "Swapped targets",
    "dataset_errors_seed": "Seed of the errors",
}
WRONG_ROWS = tuple(f"dataset_{name}" for name in CONTAMINATION)
"""The settings of rows that are wrong on purpose."""


def found_caps(experiment: Experiment) -> tuple[str, ...]:
    """Return the settings that have no say, since they are found from the data."""
    if not experiment.finds_caps:
        return ()
    loss = ("loss_epsilon", "loss_cap")
    robust = any(spec.name == "cap" for spec in experiment.machine.params)
    return (*loss, "model_cap", "lambda_p") if robust else loss


def draw_caps(settings: Settings) -> None:
    """Draw whether caps are found from the data, where the loss has one."""
    if any(spec.name == "cap" for spec in LOSSES[settings["loss"]].params):
        widgets.param(settings, "caps", "Caps", labels={"given": "As set", "auto": "From the data"})


def draw_wrong_rows(settings: Settings) -> None:
    """Draw how many rows of the data are made wrong on purpose."""
    names = [name for name in WRONG_ROWS if name in settings.table]
    if not settings.shows_any(*names):
        return
    shares = [name for name in names if settings.spec(name).kind == "float"]
    made = sum(settings[name] for name in shares)
    label = f"Wrong rows on purpose: {made:.0%}" if made else "Wrong rows on purpose"
    with st.expander(label, icon=":material/bug_report:", key="train_wrong_rows", expanded=made > 0.0):
        for name in shares:
            widgets.param(settings, name, _LABELS[name], style="slider", step=0.01)
        if made:
            widgets.param(settings, "dataset_errors_seed", _LABELS["dataset_errors_seed"], style="number")
            st.caption("Which they are is known, so that what finds them can be judged.")
