"""The settings of a training run: their controls, and what is suggested for a data set."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import streamlit as st

from fmviz.engine.compatibility import best_solver, why_not
from fmviz.engine.losses import LOSSES
from fmviz.engine.models import MODELS
from fmviz.engine.params import ParamSpec
from fmviz.engine.regularizers import REGULARIZERS
from fmviz.engine.solvers import SOLVERS
from fmviz.lab.datasets import DATASETS
from fmviz.lab.experiment import OWNERS, SPECS, Experiment, suggested
from fmviz.lab.runner import load_dataset
from fmviz.ui import widgets
from fmviz.ui.state import Settings

OWN = tuple(spec for spec in SPECS if spec.name not in ("dataset", "seed"))
NAMES = tuple(spec.name for spec in OWN)
_LABELS = {
    "dataset_n_samples": "Rows",
    "dataset_d_true": "Interacting features",
    "dataset_b": "Groups",
    "dataset_d_noise": "Noise features",
    "dataset_seed": "Seed of the data",
    "regularizer_axis": "Squared norms of",
}
_SEEN = "fmviz:train:dataset"
_NOTE = "fmviz:train:suggested"


def own_specs() -> tuple[ParamSpec, ...]:
    """Return the own parameters of what is chosen, under the names that they have in a link."""
    # A link leaves defaults out, and so does the address that this page wrote. Where there is no query at
    # all the session tells.
    given, present = st.query_params.to_dict(), Settings("train", OWN)
    found: list[ParamSpec] = []
    for owner, specs_of in OWNERS.items():
        spec = present.spec(owner)
        name = given.get(owner, str(spec.default)) if given else str(present[owner])
        specs = specs_of(name if name in spec.choices else str(spec.default))
        found += [dataclasses.replace(one, name=f"{owner}_{one.name}") for one in specs]
    return tuple(found)


def _own_names(settings: Settings, owner: str) -> list[str]:
    """Return the names of the own parameters of a choice, as far as this run of the page knows them."""
    wanted = {f"{owner}_{spec.name}" for spec in OWNERS[owner](settings[owner])}
    return [name for name in settings.own if name in wanted]


def experiment_of(settings: Settings) -> Experiment:
    """Return what the settings describe; ValueError where they contradict each other."""
    own: dict[str, Any] = {
        f"{owner}_params": tuple(
            (name.removeprefix(f"{owner}_"), settings[name]) for name in _own_names(settings, owner)
        )
        for owner in OWNERS
    }
    return Experiment(dataset=settings["dataset"], seed=settings["seed"], **settings.as_dict(*NAMES), **own)


def unavailable(settings: Settings) -> str | None:
    """Return None, or the sentence that says why these settings cannot be run."""
    reason = DATASETS[settings["dataset"]].unavailable()
    if reason is None and settings["model"] != "fm":
        model = MODELS[settings["model"]].label
        reason = f"This page draws factors P, which the model “{model}” has not: fit it from Python."
    return reason if reason is not None else experiment_of(settings).why_not()


def suggest(settings: Settings, linked: bool) -> None:
    """Load the settings that say something on a newly chosen data set, unless a link brought settings."""
    dataset = settings["dataset"]
    before = st.session_state.get(_SEEN)
    if before == dataset and not linked:
        return
    st.session_state[_SEEN] = dataset
    given = settings.query()
    # A value that could not be taken was replaced by its default, and the notice says so: leave that be.
    brought = bool(settings.notices) or any(n in given for n in (*NAMES, "run") if n != "model")
    if (linked and brought) or (linked and before == dataset):
        st.session_state.pop(_NOTE, None)
        return
    kept = settings.as_dict(*NAMES)
    wanted = suggested(dataset)
    new = {name: getattr(wanted, name) for name in NAMES}
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


def settings_panel(settings: Settings) -> Experiment:
    """Draw all settings of a run; return what they describe."""
    _note(settings)
    if _own_names(settings, "dataset"):
        with st.container(border=True):
            st.markdown("**Data**")
            _own(settings, "dataset")
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
        _own(settings, "regularizer")
        params = dict(experiment_of(settings).regularizer_params)
        formula, _, selects = REGULARIZERS[chosen].words(**params)
        st.latex(formula)
        st.caption(f"Selects {selects}.")
        if (note := _cost(settings)) is not None:
            st.caption(f":material/timer: {note}")
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
        on_click=load_suggested,
        args=(settings,),
        help="Load the settings that say something on this data set.",
    )
    return experiment_of(settings)


def _cost(settings: Settings) -> str | None:
    """Return what is expensive about the chosen penalty on the chosen data, or None."""
    regularizer = REGULARIZERS[settings["regularizer"]]
    if regularizer.exact_prox or DATASETS[settings["dataset"]].unavailable() is not None:
        return None
    experiment = experiment_of(settings)
    try:
        dataset = load_dataset(experiment.dataset, **dict(experiment.dataset_params))
    except ValueError:
        return None  # Said where the run is started.
    return regularizer.cost_note(dataset.X.shape[1], experiment.rank, **dict(experiment.regularizer_params))


def load_suggested(settings: Settings) -> None:
    """Load the settings that say something on the chosen data set."""
    wanted = suggested(settings["dataset"])
    settings.set(**{name: getattr(wanted, name) for name in NAMES})
    st.session_state[_SEEN] = settings["dataset"]
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
    _own(settings, "loss")


def _own(settings: Settings, owner: str) -> None:
    """Draw the own parameters of a choice from what they declare."""
    for name in _own_names(settings, owner):
        spec = settings.spec(name)
        label = _LABELS.get(name, widgets.title_of(name.removeprefix(f"{owner}_")))
        if spec.symbol:
            label += f" ${spec.symbol}$"
        if spec.log and spec.kind == "float":
            widgets.scale(settings, name, label, lowest=spec.low or 1e-8, highest=spec.high or 1e3)
        else:
            labels = {choice: choice.capitalize().replace("_", " ") for choice in spec.choices}
            style: Literal["auto", "number"] = "number" if spec.kind in ("int", "float") else "auto"
            widgets.param(settings, name, label, style=style, labels=labels or None)


def _solver(settings: Settings) -> None:
    regularizer, loss = settings["regularizer"], settings["loss"]
    given = dict(experiment_of(settings).regularizer_params)

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
    _own(settings, "solver")
    missing = {name: why for name, why in reasons.items() if why is not None and name != settings["solver"]}
    if missing:
        names = ", ".join(labels[name] for name in missing)
        with st.expander(f"Not available here: {names}", icon=":material/block:", key="train_why_not"):
            for name, why in missing.items():
                st.caption(f"**{labels[name]}**. {why}")


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
