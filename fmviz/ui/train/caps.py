"""Caps that are set or found from the data, and rows that are made wrong on purpose to try them."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from fmviz.engine.losses import LOSSES
from fmviz.lab.contamination import CONTAMINATION
from fmviz.lab.experiment import Experiment
from fmviz.lab.runs.found_caps import numbers
from fmviz.ui import widgets
from fmviz.ui.settings.state import Settings
from fmviz.ui.train.settings import experiment_of

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
        labels = {"given": "As set", "auto": "From the data"}
        widgets.param(settings, "caps", "Caps", labels=labels, then=_taken_over(settings))


def _taken_over(settings: Settings) -> Callable[[], None]:
    """Return what sets the caps to those that were found before, once they are to be set by hand."""
    before = experiment_of(settings)

    def take() -> None:
        caps = numbers(before) if before.finds_caps else None
        if caps is None or settings["caps"] != "given":
            return
        told = {
            "loss_epsilon": caps.epsilon,
            "loss_cap": caps.cap,
            "model_cap": caps.spectrum,
            "lambda_p": caps.lambda_p,
        }
        settings.set(**{name: x for name, x in told.items() if x is not None and name in settings.table})

    return take


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
