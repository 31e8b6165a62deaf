"""Settings of a training run: suggestions for a data set, and strengths changed during the run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st

from fmviz.engine.models import Model
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.job import Job
from fmviz.lab.background.tasks import manager
from fmviz.lab.experiment import OWNERS, SPECS, Experiment, specs_of, suggested
from fmviz.lab.interpretation.threshold import following_data, under_loss
from fmviz.lab.runner import too_large
from fmviz.lab.runs.changes import change_words
from fmviz.lab.store import AtWorkError
from fmviz.lab.values import to_query
from fmviz.ui import session_uploads, widgets
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Changes, Follower, Settings

NOW = tuple(
    Follower(
        **vars(spec)
        | {
            "name": f"now_{spec.name}",
            "help": "Takes effect in the next epoch, even after the end of the run: the solver continues "
            "from the current P. Every curve marks the change, and the run's link, program and record "
            "include it.",
        }
    )
    for spec in SPECS
    if spec.name in STRENGTHS
)
"""The strengths of the run on the page."""
_KNOWN = "fmviz:train:known_changes"


def adopt(settings: Settings, job: Job) -> bool:
    """Copy changed strengths and epoch budget of the run into the settings; return whether any changed."""
    new = {name: getattr(job.experiment, name) for name in ("changes", "max_epochs")}
    run, old = st.session_state.get(_KNOWN, ("", {}))
    st.session_state[_KNOWN] = job.id, new
    # Keep settings that already differed from the run.
    if run != job.id or old == new or settings.as_dict(*old) != old:
        return False
    settings.set(**new)
    return True


def draw_now(settings: Settings, job: Job, name: str) -> None:
    """Draw the slider of a strength of the current run."""
    if not (settings.shows(f"now_{name}") and settings.shows(name)):
        return
    present = job.strengths[name]
    if settings[f"now_{name}"] != present:
        settings.set(**{f"now_{name}": present})
    symbols = {
        "lambda_sparse": job.experiment.model.notation.lambda_sparse,
        "lambda_p": job.experiment.model.notation.lambda_p,
        "lambda_w": r"\lambda_w",
    }

    def change() -> None:
        # A stored run belongs to the first session that resumes it.
        job.browser = job.browser or session_uploads.owner()
        try:
            job.change(**{name: settings[f"now_{name}"]})
        except AtWorkError as error:
            # The page reopens it.
            manager().forget(job.id)
            st.toast(plain(str(error)), icon=":material/sync_problem:")
        else:
            adopt(settings, job)

    widgets.scale(
        settings, f"now_{name}", f"${symbols[name]}$ from now on", disabled=settings.locks(name), then=change
    )


def _forget(settings: Settings, job: Job | None) -> None:
    """Drop the changes and the epochs they added to the budget."""
    raised = job is not None and settings["max_epochs"] == job.experiment.max_epochs
    settings.set(changes=(), max_epochs=job.budget if job and raised else settings["max_epochs"])


def draw_schedule(settings: Settings, experiment: Experiment, job: Job | None) -> None:
    """Draw the scheduled changes of strengths and a button that drops them."""
    if not experiment.changes:
        return
    with st.container(key="train_schedule", gap="xsmall"):
        st.caption(
            ":material/timeline: Changes during the run: "
            + " · ".join(
                f"after epoch {epoch:,}: {plain(text)}"
                for epoch, text in change_words(experiment, experiment.changes[-1].epoch).items()
            )
            + ". The objective of each epoch uses the strengths of that epoch."
        )
        widgets.action(
            settings,
            "forget",
            "Discard these changes",
            icon=":material/timeline:",
            type="tertiary",
            on_click=_forget,
            args=(settings, job),
            help="The next run uses constant strengths.",
        )


def takes_no_penalty(model: Model) -> str:
    """Return why a model has no strength of Ω, or ""."""
    if model.fits_coefficients:
        return (
            "No strength of Ω: with fitted λₛ the scale of each column is free, and a penalty on P alone "
            "has no effect. $\\lambda_p$ penalizes both."
        )
    if model.shrunk:
        return f"No strength of Ω: {model.shrunk} is the regularizer, and a sparse one would not be convex."
    return ""


OWN: tuple[ParamSpec | Changes, ...] = (
    *(spec for spec in SPECS if spec.name not in ("dataset", "seed")),
    Changes("changes", help="Changes of strengths during the run: epoch:name:value, separated by commas."),
)
NAMES = tuple(spec.name for spec in OWN)
LINEAR = ("fit_linear", "lambda_w", "fit_intercept")
MORE = ("validation", "tol", "start", "init_scale")
EXPERT = (
    "now_lambda_p",
    "now_lambda_w",
    "model",
    "lambda_p",
    "loss",
    "caps",
    *LINEAR,
    "solver",
    "max_epochs",
    *MORE,
    *("step", "stop", "reseed", "suggest"),
)
"""Controls hidden in Simple; rank, regularizer, strength, Play, Pause and Reset remain."""
# Default share of validation rows, unless the data set suggests one.
_HELD_OUT = 0.1
_SEEN = "fmviz:train:dataset"
# Settings that depend on the model.
_OF_MODEL = (
    "regularizer",
    "solver",
    "max_epochs",
    "tol",
    "lambda_p",
    "lambda_sparse",
    "init_scale",
    "fit_intercept",
    "changes",
)


def own_specs() -> tuple[ParamSpec, ...]:
    """Return the parameters of the chosen model, loss, solver and so on, with their names in links."""
    # Links omit defaults. Without a link, or with only the level, the values are in the session.
    given, present = Settings.arriving("train") or {}, Settings("train", OWN)
    given.pop("level", None)
    specs: list[ParamSpec] = []
    for owner, bound in OWNERS.items():
        spec = present.spec(owner)
        name = given.get(owner, str(spec.default)) if given else str(present[owner])
        try:
            specs += _named(owner, bound(spec.check(name)))
        except ValueError:
            specs += _named(owner, bound(str(spec.default)))
    return tuple(specs)


def _named(owner: str, value: Any) -> list[ParamSpec]:
    """Return the parameters of a choice, such as a model, with their names in links."""
    return [dataclasses.replace(spec, name=f"{owner}_{spec.name}") for spec in specs_of(value)]


def own_names(settings: Settings, owner: str, now: Experiment | None = None) -> list[str]:
    """Return the parameters of a choice in the table of settings, by name."""
    value = OWNERS[owner](settings[owner]) if now is None else getattr(now, owner)
    wanted = {spec.name for spec in _named(owner, value)}
    return [name for name in settings.own if name in wanted]


def experiment_of(settings: Settings, **changes: Any) -> Experiment:
    """Return the experiment of the settings with some changes; ValueError for contradictions."""
    own = [name for owner in OWNERS for name in own_names(settings, owner)]
    return Experiment.from_dict(settings.as_dict("dataset", "seed", *NAMES, *own) | changes)


def unavailable(experiment: Experiment) -> str | None:
    """Return why an experiment cannot run, or None."""
    return experiment.dataset.spec.unavailable() or experiment.why_not() or too_large(experiment)


def train_query(experiment: Experiment) -> dict[str, str]:
    """Return the query of a link that opens and starts exactly this run on the page Train."""
    # Defaults are included: suggestions do not replace settings in a link.
    return experiment.to_query() | to_query(
        {
            "regularizer": experiment.regularizer.name,
            "lambda_sparse": experiment.lambda_sparse,
            "play": True,
        }
    )


def suggest(settings: Settings, linked: bool) -> None:
    """Load the suggested settings of a newly chosen data set, unless a link set any."""
    dataset = settings["dataset"]
    before = st.session_state.get(_SEEN)
    if before == dataset and not linked:
        return
    st.session_state[_SEEN] = dataset
    # The URL omits defaults, even those set by the link.
    given = settings.brought if linked else settings.query().keys()
    made_for = suggested(dataset).model.name
    model = settings["model"] if "model" in given or made_for == Experiment.model else made_for
    # Invalid values were replaced by defaults, with a notice: keep those.
    brought = bool(settings.notices) or any(n in given for n in (*NAMES, "run") if n != "model")
    if linked and (brought or before == dataset):
        return
    own = experiment_of(settings).model if model == settings["model"] else model
    _take(settings, _suggested(dataset, own))


def _take(settings: Settings, wanted: Experiment, names: Iterable[str] = NAMES) -> None:
    """Copy some settings from an experiment, with the parameters of its model and solver."""
    owned: dict[str, Any] = {"model": wanted.model, "solver": wanted.solver}
    for owner, value in owned.items():
        # The current table of settings may lack them.
        table = _named(owner, value)
        given = {spec.name: value.settings[spec.name.removeprefix(f"{owner}_")] for spec in table}
        Settings("train", table).set(**given)
    values = {**wanted.to_dict(), "changes": wanted.changes}
    settings.set(**{name: values[name] for name in names})


def _suggested(dataset: str, model: str | Model) -> Experiment:
    """Return the suggested experiment, with an informed start and rows for validation."""
    wanted = suggested(dataset, model)
    share = wanted.validation or _HELD_OUT
    return following_data(dataclasses.replace(wanted, start="informed", validation=share))


def suited(settings: Settings, before: Experiment) -> Callable[[], None]:
    """Return a callback that adapts the other settings to a changed model."""

    def suit() -> None:
        now = experiment_of(settings)
        same = now.model.name == before.model.name
        freed = before.model.fits_coefficients and not now.model.fits_coefficients
        if same and not freed and now.why_not() is None:
            return
        together = now.model.multi_output or before.model.multi_output
        # A model with its own loss changes the loss. Rank and loss also change between models that fit all
        # outputs jointly and models that fit one machine per output.
        own_loss = ("loss", "caps") if before.model.suited_loss or now.model.suited_loss else ()
        names = (*_OF_MODEL, *(("rank", "loss") if together else own_loss))
        _take(settings, _suggested(settings["dataset"], now.model if same else now.model.name), names)

    return suit


def loss_suited(settings: Settings, before: Experiment) -> Callable[[], None]:
    """Return a callback that adapts caps and strengths to a changed loss."""

    def suit() -> None:
        wanted = under_loss(before, settings["loss"])
        settings.set(caps=wanted.caps, **{name: getattr(wanted, name) for name in STRENGTHS})

    return suit


def load_suggested(settings: Settings) -> None:
    """Load the suggested settings of the chosen data set, for the chosen model if it fits these data."""
    model = experiment_of(settings).model
    wanted = (_suggested(settings["dataset"], choice) for choice in (model, model.name, Experiment.model))
    _take(settings, next(fit for fit in wanted if fit.model.name == Experiment.model or not unavailable(fit)))
    st.session_state[_SEEN] = settings["dataset"]
