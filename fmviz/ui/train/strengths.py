"""Strengths changed while a run goes on: their controls, and the changes as part of the settings."""

from __future__ import annotations

import streamlit as st

from fmviz.engine.models import Model
from fmviz.engine.schedule import STRENGTHS
from fmviz.lab.background.job import Job
from fmviz.lab.experiment import SPECS, Experiment
from fmviz.lab.runs.changes import change_words
from fmviz.ui import widgets
from fmviz.ui.setting_types import Changes, Follower
from fmviz.ui.state import Settings

CHANGES = Changes("changes", help="Strengths that change on the way: epoch:name:value, separated by commas.")
"""The setting of a run's declared changes."""
_HELP = (
    "Takes effect with the next epoch: the solver goes on from the present P, and the change is marked on "
    "every curve. It becomes part of the run: its link, its program and its record repeat it."
)
NOW = tuple(
    Follower(**vars(spec) | {"name": f"now_{spec.name}", "help": _HELP})
    for spec in SPECS
    if spec.name in STRENGTHS
)
"""The strengths of the run that is shown."""
_KNOWN = "fmviz:train:known_changes"


def adopt(settings: Settings, job: Job) -> bool:
    """Take over what was changed on the way into the settings; return whether anything was."""
    new = job.experiment.changes
    run, old = st.session_state.get(_KNOWN, ("", ()))
    st.session_state[_KNOWN] = (job.id, new)
    # Settings that were others than the run's stay.
    if run != job.id or old == new or settings["changes"] != old:
        return False
    settings.set(changes=new)
    return True


def draw_now(settings: Settings, job: Job) -> None:
    """Draw the strengths of a run that has not ended, to be changed at once."""
    experiment, present = job.experiment, job.strengths
    model = experiment.machine
    drawn = [
        name
        for name in STRENGTHS
        if (name != "lambda_sparse" or not takes_no_penalty(model))
        and (name != "lambda_w" or experiment.fit_linear)
        and (name != "lambda_p" or model.notation.shrinkage)
        and settings.shows(f"now_{name}")
    ]
    if not drawn:
        return
    moved = {f"now_{name}": present[name] for name in drawn if settings[f"now_{name}"] != present[name]}
    if moved:
        settings.set(**moved)
    symbols = {
        "lambda_sparse": model.notation.lambda_sparse,
        "lambda_p": model.notation.lambda_p,
        "lambda_w": r"\lambda_w",
    }
    with st.container(key="train_now", border=True):
        for place, name in zip(st.columns(len(drawn)), drawn, strict=True):
            with place:
                _slider(settings, job, name, f"${symbols[name]}$ from now on")


def _slider(settings: Settings, job: Job, name: str, label: str) -> None:
    def change() -> None:
        job.change(**{name: settings[f"now_{name}"]})
        adopt(settings, job)

    widgets.scale(settings, f"now_{name}", label, then=change)


def draw_schedule(settings: Settings, experiment: Experiment) -> None:
    """Draw the changes that the settings declare, and a way to drop them."""
    if not experiment.changes:
        return
    with st.container(key="train_schedule", gap="xsmall"):
        words = change_words(experiment, experiment.changes[-1].epoch)
        said = " · ".join(f"after epoch {epoch:,}: {text}" for epoch, text in words.items())
        st.caption(f":material/timeline: Changes on the way: {said}.")
        widgets.action(
            settings,
            "forget",
            "Forget these changes",
            icon=":material/timeline:",
            type="tertiary",
            on_click=settings.reset,
            args=("changes",),
            help="The next run keeps its strengths from beginning to end.",
        )


def takes_no_penalty(model: Model) -> str:
    """Return why a model has no strength of Ω, or nothing where it has one."""
    if model.fits_coefficients:
        return (
            "No strength of Ω: with fitted λₛ the scale of a column is free, so that a penalty on P alone "
            "binds nothing. $\\lambda_p$ binds both."
        )
    if model.convex and model.factorised and not model.multi_output:
        return (
            "No strength of Ω: the trace norm of W is the regularizer, and a sparse one would not be convex "
            "in W."
        )
    return ""


def changed_words(experiment: Experiment, epoch: int) -> str:
    """Return the changes up to an epoch in a sentence, or "" where there are none."""
    made = change_words(experiment, epoch)
    if not made:
        return ""
    said = "; ".join(f"{text} after epoch {when:,}" for when, text in made.items())
    return f"Changed on the way: {said}. The objective of an epoch belongs to the strengths of that epoch."
