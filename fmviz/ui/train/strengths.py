"""Strengths changed while a run goes on: their controls, and the changes as part of the settings."""

from __future__ import annotations

import streamlit as st

from fmviz.engine.models import Model
from fmviz.engine.models.convex import EigenModel
from fmviz.engine.schedule import STRENGTHS
from fmviz.lab.background.job import Job
from fmviz.lab.experiment import SPECS, Experiment
from fmviz.lab.runs.changes import change_words
from fmviz.ui import widgets
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Changes, Follower, Settings

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


def acts_now(job: Job) -> bool:
    """Return whether strengths that are moved act on a run from now on: it has begun, and has not ended."""
    return not job.state.ended and (job.state.active or job.view().epoch > 0)


def draw_now(settings: Settings, job: Job, name: str) -> None:
    """Draw a strength of a run that goes on, to be changed at once."""
    if not settings.shows(f"now_{name}"):
        return
    present = job.strengths[name]
    if settings[f"now_{name}"] != present:
        settings.set(**{f"now_{name}": present})
    symbols = {
        "lambda_sparse": job.experiment.machine.notation.lambda_sparse,
        "lambda_p": job.experiment.machine.notation.lambda_p,
        "lambda_w": r"\lambda_w",
    }

    def change() -> None:
        job.change(**{name: settings[f"now_{name}"]})
        adopt(settings, job)

    widgets.scale(settings, f"now_{name}", f"${symbols[name]}$ from now on", then=change)


def draw_schedule(settings: Settings, experiment: Experiment) -> None:
    """Draw the changes that the settings declare, and a way to drop them."""
    if not experiment.changes:
        return
    with st.container(key="train_schedule", gap="xsmall"):
        words = change_words(experiment, experiment.changes[-1].epoch)
        said = " · ".join(f"after epoch {epoch:,}: {plain(text)}" for epoch, text in words.items())
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
    if isinstance(model, EigenModel):
        return f"No strength of Ω: {model.shrunk} is the regularizer, and a sparse one would not be convex."
    return ""
