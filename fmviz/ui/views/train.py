"""The training page: settings, controls, and the run as it goes on."""

from __future__ import annotations

import dataclasses
import secrets
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine.compatibility import best_solver, why_not
from fmviz.engine.losses import LOSSES
from fmviz.engine.params import ParamSpec
from fmviz.engine.regularizers import REGULARIZERS
from fmviz.engine.solvers import SOLVERS
from fmviz.figures.training import METRICS
from fmviz.lab import jobs
from fmviz.lab.datasets import DATASETS
from fmviz.lab.experiment import SPECS, Experiment, suggested
from fmviz.lab.job import Job, JobState, JobView
from fmviz.ui import live, shell, widgets
from fmviz.ui.state import Settings, Text

_OWN = tuple(spec for spec in SPECS if spec.name not in ("dataset", "seed"))
_NAMES = tuple(spec.name for spec in _OWN)
_DATA = "data_"
_DATA_LABELS = {
    "n_samples": "Rows",
    "d_true": "Interacting features",
    "b": "Groups",
    "d_noise": "Noise features",
    "seed": "Seed of the data",
}
SPEEDS = {"slow": ("Slow", 3.0), "watch": ("Watch", 30.0), "full": ("Full", 0.0)}
"""Words and epochs a second, 0 without a limit."""
_VIEW = (
    ParamSpec("x", "choice", "epoch", choices=("epoch", "seconds"), help="Time spent in the solver only."),
    ParamSpec("parts", "bool", False, help="Draw the loss and the penalties beside their sum."),
    ParamSpec("metric", "choice", "rmse", choices=tuple(METRICS)),
    ParamSpec(
        "speed",
        "choice",
        "watch",
        choices=tuple(SPEEDS),
        help="Slow makes 3 epochs a second, Watch at most 30, Full as many as it can. The results are the "
        "same; you can change it during a run.",
    ),
    ParamSpec("play", "bool", False, help="A link with play=1 starts the run."),
    Text("run", help="The run that is shown; a link whose run is unknown here starts it again."),
)
_SESSION = "fmviz:train:session"
_SEEN = "fmviz:train:dataset"
_NOTE = "fmviz:train:suggested"
_LOST = "fmviz:train:lost"


# Formulae scroll in a narrow column instead of being cut off.
_STYLE = """<style>
.st-key-train_penalty .katex-display, .st-key-train_objective_box .katex-display {
  overflow-x: auto; overflow-y: hidden; padding-bottom: 2px;
}
@media (max-width: 1000px) {
  .st-key-train_penalty .katex-display, .st-key-train_objective_box .katex-display { font-size: 0.8rem; }
}
</style>"""


def render() -> None:
    """Draw the page."""
    settings = Settings("train", (*_OWN, *_data_specs(), *_VIEW))
    linked = settings.read_url()
    with shell.page("Train", shell.TRAIN.icon, settings):
        _suggest(settings, linked)
        st.title("Train")
        st.markdown(
            "Fit a factorization machine and watch the penalty choose its interactions. Every setting and "
            "the seed are in the address bar: the same link gives the same numbers."
        )
        reason = unavailable(settings)
        _autostart(settings, reason)
        st.html(_STYLE)
        left, right = st.columns([1, 2.6], gap="medium")
        with left:
            experiment = _settings_panel(settings)
        with right:
            _right(settings, experiment, reason)


# ----------------------------------------------------------------------------------------------- settings


def _data_specs() -> tuple[ParamSpec, ...]:
    """Return the data set's own parameters under the names that they have in a link."""
    # A link leaves the default out, and so does the address that this page wrote. Where there is no query at
    # all the session tells.
    given, shared = st.query_params.to_dict(), Settings("train")
    default = str(shared.table["dataset"].default)
    name = given.get("dataset", default) if given else str(shared["dataset"])
    name = name if name in DATASETS else default
    return tuple(dataclasses.replace(spec, name=_DATA + spec.name) for spec in DATASETS[name].params)


def experiment_of(settings: Settings) -> Experiment:
    """Return what the settings describe; ValueError where they contradict each other."""
    data = tuple(
        (name.removeprefix(_DATA), settings[name]) for name in settings.own if name.startswith(_DATA)
    )
    return Experiment(
        dataset=settings["dataset"],
        seed=settings["seed"],
        dataset_params=data,
        **settings.as_dict(*_NAMES),
    )


def unavailable(settings: Settings) -> str | None:
    """Return None, or the sentence that says why these settings cannot be run."""
    reason = DATASETS[settings["dataset"]].unavailable()
    return reason if reason is not None else experiment_of(settings).why_not()


def _suggest(settings: Settings, linked: bool) -> None:
    """Load the settings that say something on a newly chosen data set, unless a link brought settings."""
    dataset = settings["dataset"]
    before = st.session_state.get(_SEEN)
    if before == dataset and not linked:
        return
    st.session_state[_SEEN] = dataset
    given = settings.query()
    brought = any(name in given for name in (*_NAMES, "run") if name != "model")
    if (linked and brought) or (linked and before == dataset):
        st.session_state.pop(_NOTE, None)
        return
    kept = settings.as_dict(*_NAMES)
    wanted = suggested(dataset)
    new = {name: getattr(wanted, name) for name in _NAMES}
    settings.set(**new)
    st.session_state.pop(_NOTE, None)
    if before is not None and kept != new:
        st.session_state[_NOTE] = kept


def _note(settings: Settings) -> None:
    kept = st.session_state.get(_NOTE)
    if kept is None:
        return
    with st.container(border=True, key="train_suggested"):
        st.caption(
            f":material/tips_and_updates: Loaded the settings suggested for "
            f"**{DATASETS[settings['dataset']].title}**."
        )

        def back() -> None:
            settings.set(**kept)
            st.session_state.pop(_NOTE, None)

        def fine() -> None:
            st.session_state.pop(_NOTE, None)

        with st.container(horizontal=True):
            st.button("Back to mine", key="train_suggested_back", on_click=back, icon=":material/undo:")
            st.button("Keep", key="train_suggested_keep", on_click=fine, type="tertiary")


def _settings_panel(settings: Settings) -> Experiment:
    _note(settings)
    data = [name for name in settings.own if name.startswith(_DATA)]
    if data:
        with st.container(border=True):
            st.markdown("**Data**")
            for name in data:
                spec = settings.spec(name)
                own = name.removeprefix(_DATA)
                label = _DATA_LABELS.get(own, widgets.title_of(own))
                if spec.symbol:
                    label += f" ${spec.symbol}$"
                widgets.param(settings, name, label, style="number")
    with st.container(border=True, key="train_penalty"):
        st.markdown("**Penalty**")
        chosen = settings["regularizer"]
        st.selectbox(
            "Regularizer Ω",
            list(REGULARIZERS),
            format_func=lambda name: REGULARIZERS[name].label,
            help=settings.spec("regularizer").help,
            **settings.bind("regularizer"),
        )
        if any(spec.name == "axis" for spec in REGULARIZERS[chosen].params):
            widgets.param(settings, "axis", "Squared norms of", labels={"columns": "Columns", "rows": "Rows"})
        by_rows = chosen == "ti" and settings["axis"] == "rows"
        st.latex(r"\Omega(P)=\sum_{j}\|p_{j}\|_1^2" if by_rows else REGULARIZERS[chosen].formula)
        selects = "interactions only weakly: each row by itself" if by_rows else REGULARIZERS[chosen].selects
        st.caption(f"Selects {selects}.")
        widgets.scale(settings, "lambda_sparse", r"Strength $\tilde\lambda_p$ of Ω")
        widgets.scale(settings, "lambda_p", r"Strength $\lambda_p$ of $\|P\|_F^2$")
    with st.container(border=True):
        st.markdown("**Model and loss**")
        widgets.param(settings, "rank", "Rank $k$", style="number")
        _loss(settings)
        widgets.param(settings, "fit_linear", "Linear term $\\langle w, x\\rangle$")
        widgets.scale(
            settings, "lambda_w", r"Strength $\lambda_w$ of $\|w\|^2$", disabled=not settings["fit_linear"]
        )
        widgets.param(settings, "fit_intercept", "Bias")
    with st.container(border=True):
        st.markdown("**Solver**")
        _solver(settings)
        widgets.param(settings, "max_epochs", "Most epochs", style="number")
    with st.expander("More", icon=":material/tune:", key="train_more"):
        widgets.param(settings, "validation", "Validation share", style="slider")
        widgets.scale(settings, "tol", "Tolerance", highest=0.1)
        widgets.scale(settings, "init_scale", r"Scale $\sigma$ of the start", highest=10.0)
    with st.expander("The objective", icon=":material/functions:", key="train_objective_box"):
        st.latex(
            r"\tfrac1N\sum_n \ell(f(x_n),y_n)+\lambda_w\|w\|^2+\lambda_p\|P\|_F^2+\tilde\lambda_p\,\Omega(P)"
        )
        st.latex(r"f(x)=b+\langle w,x\rangle+\sum_{i<j}\langle p_i,p_j\rangle x_i x_j")
        st.latex(rf"\ell(f,y)={LOSSES[settings['loss']].formula}")
    st.button(
        "Suggested settings",
        icon=":material/tips_and_updates:",
        key="train_suggest",
        type="tertiary",
        on_click=_load_suggested,
        args=(settings,),
        help="Load the settings that say something on this data set.",
    )
    return experiment_of(settings)


def _load_suggested(settings: Settings) -> None:
    wanted = suggested(settings["dataset"])
    settings.set(**{name: getattr(wanted, name) for name in _NAMES})
    st.session_state.pop(_NOTE, None)


def _loss(settings: Settings) -> None:
    spec = DATASETS[settings["dataset"]]
    fits = [name for name, loss in LOSSES.items() if loss.task != "binary" or spec.task == "binary"]
    missing = [LOSSES[name].label for name in LOSSES if name not in fits]
    _select(settings, "loss", "Loss", fits, {name: loss.label for name, loss in LOSSES.items()})
    if missing:
        st.caption(
            f"Not available here: {', '.join(missing)}. They want two classes; this target is a number."
        )
    if LOSSES[settings["loss"]].param is not None:
        widgets.scale(settings, "huber_delta", r"$\delta$ of Huber", lowest=1e-3, highest=1e3)


def _solver(settings: Settings) -> None:
    regularizer, loss = settings["regularizer"], settings["loss"]
    given = experiment_of(settings).regularizer_params

    def reason(name: str) -> str | None:
        return why_not(regularizer, name, loss=loss, model=settings["model"], regularizer_params=given)

    reasons = {name: reason(name) for name in ("auto", *SOLVERS)}
    fits = [name for name, why in reasons.items() if why is None]
    labels = {name: solver.label for name, solver in SOLVERS.items()}
    if "auto" in fits:
        best = best_solver(regularizer, loss=loss, model=settings["model"], regularizer_params=given)
        labels["auto"] = f"Auto: {SOLVERS[best].label}"
    else:
        labels["auto"] = "Auto"
    _select(settings, "solver", "Solver", fits, labels)
    for name in SOLVERS:
        if (why := reasons[name]) is not None and name != settings["solver"]:
            st.caption(f"Not available here: **{labels[name]}**. {why}")


def _select(settings: Settings, name: str, label: str, fits: list[str], labels: dict[str, str]) -> None:
    """Draw a select box of what is possible; a present value that is not stays, and is marked."""
    present = settings[name]
    options = fits if present in fits else [*fits, present]
    st.selectbox(
        label,
        options,
        format_func=lambda value: labels[value] + ("" if value in fits else " (not possible here)"),
        help=settings.spec(name).help,
        **settings.bind(name),
    )


# ----------------------------------------------------------------------------------------------- controls


def _owner() -> str:
    return str(st.session_state.setdefault(_SESSION, secrets.token_hex(8)))


def _job(settings: Settings) -> Job | None:
    return jobs.manager().get(settings["run"] or None, owner=_owner())


def _start(settings: Settings, steps: int | None = None) -> None:
    """Start a run with the present settings and show it."""
    old = _job(settings)
    if old is not None and not old.state.ended:
        old.stop()
    pace = SPEEDS[settings["speed"]][1]
    try:
        job = jobs.manager().start(experiment_of(settings), _owner(), steps=steps, pace=pace)
    except jobs.TooManyJobsError as error:
        st.session_state[_LOST] = ("warning", str(error))
        settings.set(run="", play=False)
        return
    st.session_state.pop(_LOST, None)
    settings.set(run=job.id, play=False)


def _autostart(settings: Settings, reason: str | None) -> None:
    """Start the run of a link whose run is not here, or that says play=1."""
    run = settings["run"]
    if reason is not None or (run and _job(settings) is not None and not settings["play"]):
        return
    if run or settings["play"]:
        _start(settings)
        if run and settings["run"]:
            st.session_state[_LOST] = (
                "info",
                "The run of this link is not on this server any more. It was started again from the same "
                "settings and seed, which gives the same numbers.",
            )


def _right(settings: Settings, experiment: Experiment, reason: str | None) -> None:
    job = _job(settings)
    stale = job is not None and job.experiment != experiment
    _controls(settings, job, stale, reason)
    if reason is not None:
        _impossible(settings, reason)
    if (said := st.session_state.get(_LOST)) is not None:
        kind, sentence = said
        (st.warning if kind == "warning" else st.info)(sentence, icon=":material/info:")
    if job is None:
        _empty(settings, reason)
        return
    live.show(job, settings, stale=_stale_words(job, experiment) if stale else None)
    if not job.state.active:
        _exports(job.view())


def _controls(settings: Settings, job: Job | None, stale: bool, reason: str | None) -> None:
    state = job.state if job is not None else None
    active = state is not None and state.active
    paused = state is JobState.PAUSED
    possible = reason is None
    ended = state is not None and state.ended

    def play() -> None:
        if job is not None and paused and not stale:
            job.play()
        else:
            _start(settings)

    def step() -> None:
        if job is not None and paused and not stale:
            job.step()
        else:
            _start(settings, steps=1)

    def reseed() -> None:
        high = int(settings.spec("seed").high or 0)
        settings.set(seed=(settings["seed"] + 1) % (high + 1))
        _start(settings, steps=0)

    def set_speed() -> None:
        if job is not None:
            job.set_pace(SPEEDS[settings["speed"]][1])

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="train_controls"):
        st.button(
            "Play",
            icon=":material/play_arrow:",
            key="train_play",
            type="primary",
            shortcut="P",
            disabled=not possible or (active and not stale),
            on_click=play,
            help="Go on, or start with the settings on the left.",
        )
        st.button(
            "Pause",
            icon=":material/pause:",
            key="train_pause",
            shortcut="H",
            disabled=not active,
            on_click=job.pause if job is not None else None,
            help="Halt after the present epoch.",
        )
        st.button(
            "Step",
            icon=":material/skip_next:",
            key="train_step",
            shortcut="S",
            disabled=not possible or active or (ended and not stale),
            on_click=step,
            help="One epoch.",
        )
        st.button(
            "Stop",
            icon=":material/stop:",
            key="train_stop",
            shortcut="X",
            disabled=not (active or paused),
            on_click=job.stop if job is not None else None,
            help="End the run for good.",
        )
        st.button(
            "Reset",
            icon=":material/restart_alt:",
            key="train_reset",
            shortcut="0",
            disabled=not possible or job is None,
            on_click=_start,
            args=(settings, 0),
            help="Back to epoch 0 with the settings on the left and the same seed.",
        )
        st.button(
            "Reseed",
            icon=":material/casino:",
            key="train_reseed",
            shortcut="N",
            disabled=not possible,
            on_click=reseed,
            help="The next seed: another start and another split. Back to epoch 0.",
        )
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="train_speed_row"):
        st.caption("Speed", width="content")
        st.segmented_control(
            "Speed",
            list(SPEEDS),
            format_func=lambda name: SPEEDS[name][0],
            required=True,
            help=settings.spec("speed").help,
            label_visibility="collapsed",
            **settings.bind("speed", then=set_speed),
        )


def _impossible(settings: Settings, reason: str) -> None:
    st.error(reason, icon=":material/block:")
    if DATASETS[settings["dataset"]].unavailable() is not None:
        st.button(
            "Take the planted interactions instead",
            key="train_other_data",
            icon=":material/dataset:",
            on_click=lambda: settings.set(dataset="planted_interactions"),
        )
    else:
        experiment = experiment_of(settings)
        fixes: dict[str, Any] = {}
        if dataclasses.replace(experiment, solver="auto").why_not() is None:
            fixes = {"solver": "auto"}
        elif dataclasses.replace(experiment, loss="squared", solver="auto").why_not() is None:
            fixes = {"loss": "squared", "solver": "auto"}
        if fixes:
            words = "the squared loss" if "loss" in fixes else "the solver that fits"
            st.button(
                f"Take {words}",
                key="train_fix",
                icon=":material/build:",
                on_click=lambda: settings.set(**fixes),
            )


def _empty(settings: Settings, reason: str | None) -> None:
    with st.container(border=True, key="train_empty"):
        first = "Press **Play** to train with the settings given, or take this example:"
        st.markdown(
            f"Nothing has been trained yet. {first if reason is None else 'Take this example:'} TI finds the "
            "360 planted interactions among 4,950 pairs."
        )

        def example() -> None:
            wanted = suggested("planted_interactions")
            settings.set(dataset="planted_interactions", **{name: getattr(wanted, name) for name in _NAMES})
            st.session_state[_SEEN] = "planted_interactions"
            st.session_state.pop(_NOTE, None)
            _start(settings)

        st.button("Train the example", key="train_example", icon=":material/play_circle:", on_click=example)


def _stale_words(job: Job, experiment: Experiment) -> str:
    old, new = job.experiment.to_dict(), experiment.to_dict()
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    shown = ", ".join(f"`{name}`" for name in changed[:4]) + (" …" if len(changed) > 4 else "")
    return f"Settings changed since this run: {shown}. Press **Play** or **Reset** to take them over."


# ------------------------------------------------------------------------------------------------ exports


def _exports(view: JobView) -> None:
    if view.parameters is None or view.dataset is None:
        return
    dataset, parameters = view.dataset, view.parameters
    name = f"{view.experiment.dataset}-{view.experiment.regularizer}-seed{view.experiment.seed}"
    st.markdown("**Take it with you**")
    with st.container(horizontal=True, key="train_exports"):
        widgets.download(
            "Curves (CSV)",
            lambda: pd.DataFrame(view.history).to_csv(index=False),
            f"curves-{name}.csv",
            key="train_curves_csv",
            help="One row an epoch, all figures." if view.stride == 1 else f"Every {view.stride}th epoch.",
        )
        widgets.download(
            "P (CSV)",
            lambda: factors_csv(dataset.feature_names, parameters.P),
            f"P-{name}.csv",
            key="train_p_csv",
            help="One row a feature, with its name; in full precision.",
        )
        widgets.download(
            "Model (npz)",
            lambda: widgets.npz_of(
                {
                    "P": parameters.P,
                    "w": parameters.w,
                    "intercept": np.array(parameters.intercept),
                    "feature_names": np.array(dataset.feature_names),
                    "experiment": np.array(view.experiment.to_json()),
                }
            ),
            f"model-{name}.npz",
            key="train_npz",
            help="P, w, the bias, the feature names and the settings: numpy.load opens it.",
        )
    last = view.last
    widgets.python_block(
        script(view),
        note=f"Repeats this run and prints: objective {last['objective']:.10g}, used features "
        f"{last['used_features']}, used interactions {last['used_interactions']}.",
    )


def factors_csv(names: tuple[str, ...], P: np.ndarray) -> str:
    """Return P as CSV text with the feature names in front, exact zeros as 0."""
    columns: dict[str, Any] = {"feature": list(names)}
    for s in range(P.shape[1]):
        columns[f"p{s + 1}"] = [0 if x == 0 else x for x in P[:, s].tolist()]
    return widgets.csv_of(columns)


def script(view: JobView) -> str:
    """Return a program that repeats the run as far as it went and prints its figures."""
    experiment = view.experiment
    given = {
        field.name: getattr(experiment, field.name)
        for field in dataclasses.fields(experiment)
        if getattr(experiment, field.name) != field.default
    }
    given = {"dataset": experiment.dataset, "seed": experiment.seed, **given}
    arguments = "\n".join(f"    {name}={widgets.python_value(value)}," for name, value in given.items())
    halt = ""
    if view.state in (JobState.PAUSED, JobState.STOPPED):
        halt = f"    if snapshot.epoch == {view.epoch}:\n        break  # where this run was {view.state}\n"
    return (
        "from fmviz.lab.experiment import Experiment\n"
        "from fmviz.lab.runner import Run\n\n"
        f"experiment = Experiment(\n{arguments}\n)\n"
        "for snapshot in Run.prepare(experiment).snapshots():\n"
        + (halt or "    pass\n")
        + '\nprint(f"epoch {snapshot.epoch}")\n'
        'print(f"objective {snapshot.objective:.10g}")\n'
        'print(f"used features {snapshot.used_features}")\n'
        'print(f"used interactions {snapshot.used_interactions}")\n'
        "# P, w and the bias: snapshot.parameters\n"
    )
