"""The page Train: settings, buttons, and the training run."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.job import Job, JobView
from fmviz.lab.background.task import TaskState
from fmviz.lab.background.tasks import TooManyJobsError, manager
from fmviz.lab.experiment import Experiment
from fmviz.lab.runs.changes import with_strengths
from fmviz.lab.runs.program import program
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.store import AtWorkError, StoreError
from fmviz.lab.store.packing import pack_parameters
from fmviz.lab.store.table import name_of, title_of_settings
from fmviz.metrics import METRICS
from fmviz.report import Outcome, html
from fmviz.ui import navigation, session_uploads, shell, widgets
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Setting, Settings, Text
from fmviz.ui.train import interactions, live, panels
from fmviz.ui.train.drawer import main_settings
from fmviz.ui.train.settings import (
    EXPERT,
    NOW,
    OWN,
    adopt,
    draw_schedule,
    experiment_of,
    load_suggested,
    own_specs,
    suggest,
    unavailable,
)
from fmviz.ui.watching import connected

SPEEDS = {"slow": ("Slow", 3.0), "watch": ("Normal", 30.0), "full": ("Full speed", 0.0)}
"""Labels and epochs per second; 0 means no limit."""


def draw_controls(
    settings: Settings,
    job: Job | None,
    state: TaskState | None,
    stale: bool,
    possible: bool,
    start: Callable[..., None],
    *,
    others: bool = False,
) -> None:
    """Draw the buttons of a run: play, pause, step, stop, reset, reseed, speed.

    Parameters
    ----------
    settings : Settings
        The settings of the page, with `VIEW`.
    job : Job or None
        The run on the page.
    state : TaskState or None
        The state of the run for which the page is drawn.
    stale : bool
        Whether the settings have changed since the run.
    possible : bool
        Whether the settings can be run.
    start : callable
        ``start(settings, steps, **changes)`` starts a run.
    others : bool
        Whether another session started the run, which then cannot be paused from here.
    """
    active = state is not None and state.active
    paused = state is TaskState.PAUSED
    ended = state is not None and state.ended
    going_on = job if paused and not stale else None
    next_seed = (settings["seed"] + 1) % (int(settings.spec("seed").high or 0) + 1)

    def set_speed() -> None:
        if job is not None and not others:
            job.pace = SPEEDS[settings["speed"]][1]

    # A resumable run is played, paused and stepped in place; otherwise a new one starts.
    play = partial(start, settings) if going_on is None else going_on.play
    step = partial(start, settings, 1) if going_on is None else going_on.step
    halt, end = (None, None) if job is None else (job.pause, job.stop)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="train_controls"):
        for label, icon, key, idle, press, words in [
            (
                "Play",
                "play_arrow",
                "P",
                (active or others) and not stale,
                play,
                "Resume, or start with the current settings.",
            ),
            ("Pause", "pause", "H", not active or others, halt, "Pause after the current epoch."),
            ("Step", "skip_next", "S", active or ((ended or others) and not stale), step, "One epoch."),
            ("Stop", "stop", "X", not (active or paused) or others, end, "End the run."),
            (
                "Reset",
                "restart_alt",
                "0",
                job is None,
                partial(start, settings, 0),
                "Return to epoch 0 with the current settings and the same seed.",
            ),
            (
                "Reseed",
                "casino",
                "N",
                False,
                partial(start, settings, 0, seed=next_seed),
                "Return to epoch 0 with the next seed: another start and split.",
            ),
        ]:
            widgets.action(
                settings,
                label.lower(),
                label,
                icon=f":material/{icon}:",
                type="primary" if label == "Play" else "secondary",
                shortcut=key,
                disabled=idle or (not possible and label not in ("Pause", "Stop")),
                on_click=press,
                help=words,
            )
        widgets.control(
            settings,
            "speed",
            st.segmented_control,
            "Speed",
            list(SPEEDS),
            format_func=lambda name: SPEEDS[name][0],
            required=True,
            label_visibility="collapsed",
            then=set_speed,
        )


_VIEW: tuple[Setting, ...] = (
    ParamSpec("x", "choice", "epoch", choices=("epoch", "seconds"), help="Seconds count solver time only."),
    ParamSpec(
        "against",
        "choice",
        "used_bases",
        choices=("used_bases", "epoch", "seconds"),
        help="Horizontal axis for machines on a shared basis.",
    ),
    ParamSpec(
        "metric",
        "choice",
        "rmse",
        choices=tuple(name for name, metric in METRICS.items() if metric.on_rows),
        help="Metric of predictions.",
    ),
    ParamSpec(
        "speed",
        "choice",
        "watch",
        choices=tuple(SPEEDS),
        help="Epochs per second: Slow 3, Normal up to 30, Full speed unlimited. Results do not depend on "
        "it; it can be changed during a run.",
    ),
    *NOW,
    *interactions.VIEW,
    ParamSpec("play", "bool", False, help="A link with play=1 starts the run."),
    Text("run", help="Id of the run on the page; a link to an unknown run starts it again."),
)


# ----------------------------------------------------------------------------------------------------- page


_SESSION = "fmviz:train:session"
_LOST = "fmviz:train:lost"


# On phones, buttons show icons only and λ comes first: Play, λ and a matrix fit on one screen.
# In narrow columns formulae use smaller type and break before relations and sums; wider ones scroll.
_STYLE = """<style>
BOX [data-testid="stMarkdown"]:has(.katex-display) {
  container-type: inline-size; width: 100%;
}
BOX .katex-display {
  overflow-x: auto; overflow-y: hidden; padding: 2px 5px 2px 0; font-size: clamp(0.68rem, 6.5cqi, 1rem);
}
.st-key-train_main > :has(> .st-key-train_strength) {flex: 1 1 14rem; min-width: 11rem}
[data-testid="stPopoverBody"]:has(.st-key-train_penalty) {width: min(27rem, 92vw)}
@media (max-width: 560px) {
  .st-key-train_controls, .st-key-train_main {gap: 0.4rem}
  .st-key-train_controls kbd {display: none}
  .st-key-train_controls .stButton button {padding-inline: 0.4rem}
  .st-key-train_controls .stButton button p {font-size: 0.8rem}
  .st-key-train_controls .stButton span:has(> [data-testid="stIconMaterial"]) {display: none}
  .st-key-train_speed button {padding-inline: 0.5rem}
  .st-key-train_speed button p {font-size: 0.8rem}
  .st-key-train_main > :has(> .st-key-train_strength) {order: -1; flex-basis: 100%}
  .st-key-train_regularizer {max-width: 12rem}
}
</style>""".replace(
    "BOX", ":is(.st-key-train_penalty, .st-key-train_objective_box, .st-key-train_inside_box)"
)


def render() -> None:
    """Draw the page."""
    own = own_specs()
    # All parameters of choices except those of the data and of the model.
    expert = [spec.name for spec in own if not spec.name.startswith(("dataset_", "model_"))]
    settings = Settings(
        "train",
        (*OWN, *own, *_VIEW),
        parts=(
            *("settings", *panels.PARTS, "exports"),
            *("play", "pause", "step", "stop", "reset", "reseed", "suggest", "forget", "rival"),
        ),
        expert=(*EXPERT, *expert),
    )
    given = Settings.arriving("train")
    linked = settings.read_url()
    _follow(settings, given)
    with shell.page("Train", settings):
        suggest(settings, linked)
        if any(spec.name not in settings.own for spec in own_specs()):
            st.rerun()  # The suggestion has parameters that this table lacks.
        shell.heading(
            settings,
            "Train",
            "Fit a factorization machine of order 2 or higher, a related model, or convex quadratic "
            "regression, and watch the regularizer select interactions. The address bar contains all "
            "settings and the seed; the same link gives the same numbers.",
            folded=True,
        )
        experiment = experiment_of(settings)
        reason = unavailable(experiment)
        _autostart(settings, reason)
        st.html(_STYLE)
        with st.container(gap="xsmall"):
            _body(settings, experiment, reason)


def _owner() -> str:
    return str(st.session_state.setdefault(_SESSION, secrets.token_hex(8)))


def _steers(job: Job) -> bool:
    """Return whether this browser started a run; runs of other browsers can only be watched."""
    return job.browser in ("", session_uploads.owner())


def _job(settings: Settings) -> Job | None:
    job = manager().job(settings["run"])
    return job if job is None or not _steers(job) else manager().job(job.id, owner=_owner())


def _start(settings: Settings, steps: int | None = None, **changes: Any) -> None:
    """Start and show a run with the current settings and some changes."""
    old = _job(settings)
    if old is not None and _steers(old):
        old.stop()
    pace = SPEEDS[settings["speed"]][1]
    experiment = experiment_of(settings, **changes)
    try:
        job = manager().start(experiment, _owner(), steps=steps, pace=pace, browser=session_uploads.owner())
    except TooManyJobsError as error:
        st.session_state[_LOST] = ("warning", str(error))
        settings.set(run="", play=False)
        return
    st.session_state.pop(_LOST, None)
    # One call: a concurrent click must not see half of the changes.
    settings.set(run=job.id, play=False, **changes)


def _follow(settings: Settings, given: dict[str, str] | None) -> None:
    """Load the run's data and seed on arrival; all of its settings if a link contains only the run."""
    run = settings["run"]
    if given is None or not set(given) <= {"run", "level"}:
        return
    if run and _job(settings) is None:
        _open_from_store(run, SPEEDS[settings["speed"]][1])
    if (job := _job(settings)) is not None:
        shown = {"dataset": job.experiment.dataset.name, "seed": job.experiment.seed}
        if "run" in given:
            Settings.move(settings.link(**shown) | job.experiment.to_query() | {"run": run})
            st.rerun()
        settings.set(**shown)


def _autostart(settings: Settings, reason: str | None) -> None:
    """Start the run of a link with play=1, or with a run that is not in the store."""
    run = settings["run"]
    # If parts of the link are invalid, the reader decides.
    if (
        settings.notices
        or reason is not None
        or (run and _job(settings) is not None and not settings["play"])
    ):
        return
    if run and not settings["play"] and _open_from_store(run, SPEEDS[settings["speed"]][1]):
        return
    if run or settings["play"]:
        _start(settings)
        if run and settings["run"]:
            st.session_state[_LOST] = (
                "info",
                "The run of this link is not on this server. It was started again with the same settings and "
                "seed, and gives the same numbers.",
            )


def _open_from_store(run: str, pace: float) -> bool:
    """Open the run of a link from the store, resumable at some pace; return whether it exists."""
    try:
        job = manager().open(run, _owner(), session_uploads.owner())
    except AtWorkError:
        st.session_state[_LOST] = (
            "info",
            "Another program is computing this run. The Runs page shows its progress.",
        )
        return True
    except TooManyJobsError as error:
        st.session_state[_LOST] = ("warning", str(error))
        return False
    except (ValueError, StoreError):
        return False
    if job is not None:
        job.pace = pace
        restored = (
            "This run was interrupted and restored from its last save, at epoch "
            f"{job.view().epoch:,}. Press Play to resume."
        )
        st.session_state[_LOST] = None if job.state.ended else ("info", restored)
    return job is not None


def _body(settings: Settings, experiment: Experiment, reason: str | None) -> None:
    job = _job(settings)
    if job is not None and adopt(settings, job):
        st.rerun()
    others = job is not None and not job.state.ended and not _steers(job)
    stale = job is not None and job.experiment != experiment
    # Read once: buttons and stage must show one state. The stage receives later changes.
    view = None
    if job is not None:
        job.attended = connected()
        view = job.view()
    draw_controls(
        settings, job, None if view is None else view.state, stale, reason is None, _start, others=others
    )
    live_job = job if job is not None and _steers(job) and not stale and reason is None else None
    main_settings(settings, live_job, experiment)
    # Always one element: a fragment loses clicks if its position changes.
    with st.container(key="train_above", gap="small"):
        if reason is not None:
            _impossible(settings, reason, experiment)
        if (said := st.session_state.get(_LOST)) is not None:
            kind, sentence = said
            (st.warning if kind == "warning" else st.info)(sentence, icon=":material/info:")
        if others:
            st.info(
                "This run belongs to another session. **Reset** starts a copy that you can stop and change.",
                icon=":material/visibility:",
            )
    started = view is not None and (view.state.active or bool(view.epoch))
    words = _stale_words(settings, job, experiment) if stale and started and job is not None else None
    live.show(view, experiment, settings, stale=words)
    # Below the stage, which must not move when this changes.
    draw_schedule(settings, experiment, job)
    if view is not None and not view.state.active and settings.shows("exports", "Downloads and code"):
        if view.state.ended and view.saved and view.parameters is not None:
            navigation.page_link(
                navigation.INTERACTIONS,
                {"run": view.id},
                label="Interactions explained",
                help="Columns and pairs as sentences, curves and a matrix, and the decomposition of a "
                "prediction.",
            )
        _draw_exports(view)


def _impossible(settings: Settings, reason: str, experiment: Experiment) -> None:
    st.error(plain(reason), icon=":material/block:")
    if experiment.dataset.spec.unavailable() is not None:
        shell.offer_other_data(settings)
    else:
        st.button(
            "Suggested settings",
            key="train_fix",
            icon=":material/build:",
            on_click=load_suggested,
            args=(settings,),
            help="Loads the settings suggested for this data set and model.",
        )


def _stale_words(settings: Settings, job: Job, experiment: Experiment) -> str:
    old, new = job.experiment.to_dict(), experiment.to_dict()
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    shown = [plain(name_of(name)) for name in changed if name in settings.table and settings.shows(name)][:4]
    words = ", ".join(shown + ["…"] * (len(changed) > len(shown)))
    return f"Settings changed since this run: {words}. Press **Play** or **Reset** to apply them."


# ------------------------------------------------------------------------------------------------ downloads


def _draw_exports(view: JobView) -> None:
    """Draw the downloads of an ended or paused run, and its program."""
    if view.parameters is None or view.dataset is None:
        return
    dataset, parameters, experiment, last = view.dataset, view.parameters, view.experiment, view.last
    kind = f"{experiment.model.name}-{experiment.regularizer.name}".removeprefix("fm-")
    name = f"{experiment.dataset}-{kind}-seed{experiment.seed}"
    st.markdown("**Downloads**")
    with st.container(horizontal=True, key="train_exports"):
        widgets.save_page("train_page", partial(_page, view), f"run-{name}")
        widgets.download(
            "Curves (CSV)",
            lambda: with_strengths(pd.DataFrame(view.history), experiment).to_csv(index=False),
            f"curves-{name}.csv",
            key="train_curves_csv",
            help=("One row per epoch" if view.stride == 1 else f"Every {view.stride:,}th epoch")
            + ", with all metrics and strengths.",
        )
        widgets.download(
            "Model (npz)",
            lambda: pack_parameters(
                {
                    **{part: array for part, array in parameters.items() if array.size},
                    "feature_names": np.array(dataset.feature_names),
                    "outputs": np.array(dataset.outputs),
                    "experiment": np.array(experiment.to_json()),
                }
            ),
            f"model-{name}.npz",
            key="train_npz",
            help="All parameters (P or W, w, bias, …), names of features and outputs, and settings, for "
            "numpy.load.",
        )
    widgets.python_block(
        widgets.linked(
            program_of(view),
            f"{title_of_settings(experiment.to_dict(), view.epoch)}, {view.epoch:,} epochs: objective "
            f"{last['objective']:.10g}",
            data={experiment.dataset.name: data_hash(dataset)},
        ),
        f"Repeats this run and prints: objective {last['objective']:.10g}, used features "
        f"{last['used_features']:.0f}, used interactions {last['used_interactions']:.0f}.",
    )


def _page(view: JobView) -> str:
    """Return the run as a page with the matrices of its epochs."""
    return html(
        Outcome(
            title_of_settings(view.experiment.to_dict(), view.epoch, heading=True),
            view.experiment,
            view.machine,
            view.message,
            view.history,
            view.parameters,
            view.dataset,
            program=program_of(view),
            frames=view.frames,
        )
    )


def program_of(view: JobView) -> str:
    """Return a program that repeats the run up to its last epoch and prints the results."""
    return program(
        view.experiment, view.epoch if view.state in (TaskState.PAUSED, TaskState.STOPPED) else None
    )
