"""The settings of a training run: their controls, and the suggestions of a data set."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import streamlit as st

from fmviz.choices import why_not
from fmviz.engine.compatibility import best_solver
from fmviz.engine.losses import LOSSES
from fmviz.engine.models import MODELS, Model
from fmviz.engine.penalties import ALL_PENALTIES, PENALTIES, Penalty
from fmviz.engine.settings import ParamSpec
from fmviz.engine.solvers import SOLVERS
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.experiment import EXPERIMENT_MODELS, EXPERIMENT_SOLVERS, OWNERS, SPECS, Experiment, suggested
from fmviz.lab.interpretation.threshold import following_data
from fmviz.lab.runner import cost_note, too_large
from fmviz.lab.values import to_query
from fmviz.ui import widgets
from fmviz.ui.escape import plain
from fmviz.ui.setting_types import Changes
from fmviz.ui.starts import START_LABELS, draw_thresholds
from fmviz.ui.state import Settings
from fmviz.ui.train.strengths import CHANGES, draw_schedule, takes_no_penalty

OWN: tuple[ParamSpec | Changes, ...] = (
    *(spec for spec in SPECS if spec.name not in ("dataset", "seed")),
    CHANGES,
)
NAMES = tuple(spec.name for spec in OWN)
_LINEAR = ("fit_linear", "lambda_w", "fit_intercept")
_MORE = ("validation", "tol", "start", "init_scale")
EXPERT = (
    "now_lambda_p",
    "now_lambda_w",
    "model",
    "lambda_p",
    "loss",
    *_LINEAR,
    "solver",
    "max_epochs",
    *_MORE,
    "suggest",
)
"""What Simple leaves out; it keeps the rank, the regularizer and its strength."""
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
_LEFT = "fmviz:train:left"
# What cannot stay when the model changes.
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
# Nor where one model has all outputs together and the other a machine for each.
_OF_OUTPUTS = ("rank", "loss")


def own_specs() -> tuple[ParamSpec, ...]:
    """Return the own parameters of what is chosen, under the names that they have in a link."""
    # A link leaves defaults out, and so does the address that this page wrote. Where there is no query at
    # all the session tells.
    given, present = st.query_params.to_dict(), Settings("train", OWN)
    found: list[ParamSpec] = []
    for owner, specs_of in OWNERS.items():
        spec = present.spec(owner)
        name = given.get(owner, str(spec.default)) if given else str(present[owner])
        try:
            specs = specs_of(spec.check(name))
        except ValueError:
            specs = specs_of(str(spec.default))
        found += [dataclasses.replace(one, name=f"{owner}_{one.name}") for one in specs]
    return tuple(found)


def expert_own(specs: Iterable[ParamSpec]) -> list[str]:
    """Return which of the own parameters Simple leaves out: all but those of the data and of the model."""
    return [spec.name for spec in specs if not spec.name.startswith(("dataset_", "model_"))]


def _own_names(settings: Settings, owner: str) -> list[str]:
    """Return the names of the own parameters of a choice, as far as this run of the page knows them."""
    wanted = {f"{owner}_{spec.name}" for spec in OWNERS[owner](settings[owner])}
    return [name for name in settings.own if name in wanted]


def experiment_of(settings: Settings, **changes: Any) -> Experiment:
    """Return what the settings describe with some changed; ValueError where they contradict each other."""
    own: dict[str, Any] = {
        f"{owner}_params": tuple(
            (name.removeprefix(f"{owner}_"), settings[name]) for name in _own_names(settings, owner)
        )
        for owner in OWNERS
    }
    return Experiment(**settings.as_dict("dataset", "seed", *NAMES) | own | changes)


def unavailable(settings: Settings) -> str | None:
    """Return None, or the sentence that says why these settings cannot be run."""
    experiment = experiment_of(settings)
    return dataset_spec(settings["dataset"]).unavailable() or experiment.why_not() or too_large(experiment)


def train_query(experiment: Experiment) -> dict[str, str]:
    """Return the query parameters of a link that opens exactly this run on the page Train, and starts it."""
    # Named also where they are the defaults: what a link names is not replaced by suggestions.
    named = {"regularizer": experiment.regularizer, "lambda_sparse": experiment.lambda_sparse, "play": True}
    return experiment.to_query() | to_query(named)


def suggest(settings: Settings, linked: bool) -> None:
    """Load the settings that say something on a newly chosen data set, unless a link brought settings."""
    dataset = settings["dataset"]
    before = st.session_state.get(_SEEN)
    if before == dataset and not linked:
        return
    st.session_state[_SEEN] = dataset
    st.session_state.pop(_LEFT, None)
    # A value that is the default is left out of the address bar, but the link has set it all the same.
    given = settings.brought if linked else settings.query().keys()
    made_for = suggested(dataset).model
    model = settings["model"] if "model" in given or made_for == Experiment.model else made_for
    # A value that could not be taken was replaced by its default, and the notice says so: leave that be.
    brought = bool(settings.notices) or any(n in given for n in (*NAMES, "run") if n != "model")
    if (linked and brought) or (linked and before == dataset):
        st.session_state.pop(_NOTE, None)
        return
    kept = settings.as_dict(*NAMES)
    own = _model_params(settings) if model == settings["model"] else ()
    # A link that names no start means the one that there was before there were others.
    fresh = _suggested if not (linked and given) or MODELS[model].multi_output else suggested
    wanted = fresh(dataset, model, own)
    new = {name: getattr(wanted, name) for name in NAMES}
    _take(settings, wanted)
    st.session_state.pop(_NOTE, None)
    if before is not None and kept != new:
        st.session_state[_NOTE] = kept


def _take(settings: Settings, wanted: Experiment, names: Iterable[str] = NAMES) -> None:
    """Set what an experiment has under these names, and the own parameters of its model and solver."""
    for owner in ("model", "solver"):
        given = dict(getattr(wanted, f"{owner}_params"))
        specs = OWNERS[owner](getattr(wanted, owner))
        # The table of this run of the page may not have them yet.
        table = [dataclasses.replace(spec, name=f"{owner}_{spec.name}") for spec in specs]
        values = {f"{owner}_{spec.name}": given.get(spec.name, spec.default) for spec in specs}
        Settings("train", table).hold(**values)
    settings.set(**{name: getattr(wanted, name) for name in names})


def _suggested(dataset: str, model: str, own: tuple[tuple[str, Any], ...]) -> Experiment:
    """Return what is suggested, with a start that does not collapse where it need not."""
    return following_data(dataclasses.replace(suggested(dataset, model, own), start="informed"))


def _note(settings: Settings) -> None:
    kept = st.session_state.get(_NOTE)
    if kept is None:
        return
    with st.container(border=True, key="train_suggested"):
        st.caption(
            f":material/tips_and_updates: Loaded the settings suggested for "
            f"**{dataset_spec(settings['dataset']).title}**."
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
    if settings.shows_any(*_own_names(settings, "dataset")):
        with st.container(border=True):
            st.markdown("**Data**")
            _own(settings, "dataset")
    model = experiment_of(settings).machine
    notation = model.notation
    if settings.shows_any("model", "rank", *_own_names(settings, "model")):
        with st.container(border=True, key="train_model_box"):
            _model(settings)
            _own(settings, "model", then=_suited(settings))
            if model.factorised:
                widgets.param(settings, "rank", "Rank $k$", style="number")
            if (note := _cost(settings)) is not None:
                st.caption(f":material/timer: {note}")
    with st.container(border=True, key="train_penalty"):
        st.markdown("**Regularization**")
        if not (takes_no_penalty(model) and ALL_PENALTIES[settings["regularizer"]].smooth):
            _regularizer(settings)
        _own(settings, "regularizer")
        _formulas(settings, model)
        omega = "Ω" if model.factorised else f"${notation.penalty}$"
        for name, symbol, of, term in (
            ("lambda_sparse", notation.lambda_sparse, omega, notation.penalty_term),
            ("lambda_p", notation.lambda_p, f"${notation.shrinkage}$", notation.shrinkage_term),
        ):
            if not term:
                continue
            words = f"The objective holds {term}, without a ½ in front."
            if name == "lambda_sparse" and settings[name] == 0 and (reason := takes_no_penalty(model)):
                st.caption(f":material/lock: {reason}")
                continue
            widgets.scale(settings, name, f"Strength ${symbol}$ of {of}", help=words)
            if name == "lambda_sparse" and too_large(now := experiment_of(settings)) is None:
                draw_thresholds(now)
        draw_schedule(settings, experiment_of(settings))
    if settings.shows_any("loss", *_LINEAR, *_own_names(settings, "loss")):
        with st.container(border=True):
            st.markdown("**Loss and linear term**")
            _loss(settings)
            widgets.param(settings, "fit_linear", "Linear term $\\langle w, x\\rangle$")
            widgets.scale(
                settings,
                "lambda_w",
                r"Strength $\lambda_w$ of $\|w\|^2$",
                disabled=not settings["fit_linear"],
            )
            widgets.param(settings, "fit_intercept", "Bias $b$")
    if settings.shows_any("solver", "max_epochs", *_own_names(settings, "solver")):
        with st.container(border=True):
            st.markdown("**Solver**")
            _solver(settings)
            widgets.param(settings, "max_epochs", "Most epochs", style="number")
    if settings.shows_any(*_MORE):
        with st.expander("More", icon=":material/tune:", key="train_more"):
            widgets.param(settings, "validation", "Validation share", style="slider")
            widgets.scale(settings, "tol", "Tolerance", highest=0.1)
            if model.factorised and not model.multi_output:
                widgets.param(settings, "start", "Start", labels=START_LABELS)
                widgets.scale(settings, "init_scale", r"Scale $\sigma$ of the start", highest=10.0)
    with st.expander("The objective", icon=":material/functions:", key="train_objective_box"):
        st.latex(notation.objective)
        st.latex(model.formula)
        st.latex(rf"\ell(f,y)={LOSSES[settings['loss']].formula}")
    widgets.suggest(settings, load_suggested, "Load the settings that say something on this data set.")
    return experiment_of(settings)


def _cost(settings: Settings) -> str | None:
    """Return what is expensive about the run that is set, or None."""
    if dataset_spec(settings["dataset"]).unavailable() is not None:
        return None
    return cost_note(experiment_of(settings))


def _model_params(settings: Settings) -> tuple[tuple[str, Any], ...]:
    return experiment_of(settings).model_params


def _suited(settings: Settings) -> Callable[[], None]:
    """Return what makes the other settings suit a model that was changed."""
    before = experiment_of(settings)

    def suit() -> None:
        """Take up what was set under the model before, or else what suits it."""
        left = st.session_state.setdefault(_LEFT, {})
        left[before.model, before.model_params] = before
        model = settings["model"]
        own = _model_params(settings) if model == before.model else _remembered(model)
        wanted = left.get((model, own)) or _suggested(settings["dataset"], model, own)
        now = experiment_of(settings)
        freed = before.machine.fits_coefficients and not now.machine.fits_coefficients
        if model == before.model and not freed and now.why_not() is None:
            return
        together = now.machine.multi_output or before.machine.multi_output
        _take(settings, wanted, (*_OF_MODEL, *(_OF_OUTPUTS if together else ())))

    return suit


def _remembered(model: str) -> tuple[tuple[str, Any], ...]:
    """Return the own parameters that a model had when it was set on this page last, defaults left out."""
    specs = MODELS[model].params
    present = Settings("train", [dataclasses.replace(s, name=f"model_{s.name}") for s in specs])
    found = ((s.name, present[f"model_{s.name}"], s.default) for s in specs)
    return tuple(sorted((name, value) for name, value, default in found if value != default))


def _formulas(settings: Settings, model: Model) -> None:
    """Draw the regularizer as it acts on the columns of each order, and what it selects."""
    if settings["lambda_sparse"] == 0 and takes_no_penalty(model):
        st.latex(model.notation.shrinkage)
        return
    penalty = experiment_of(settings).penalty
    formula, selects = model.penalty_words(penalty)
    forms = penalty_forms(model, penalty)
    if len({text for _, text, _ in forms}) == 1:
        (_, formula, selects), *_ = forms
    if len({text for _, text, _ in forms}) <= 1:
        st.latex(formula)
    else:
        for order, text, _ in forms:
            st.caption(f"Of the columns of order {order}:")
            st.latex(text)
    st.caption(f"Selects {selects}.")


def penalty_forms(model: Model, penalty: Penalty) -> list[tuple[int | None, str, str]]:
    """Return the order, the LaTeX and what is selected, for every block of columns of a model."""
    found = []
    for order, form in model.forms(penalty):
        formula, _, selects = form.words()
        found.append((order, formula, selects))
    return found


def _model(settings: Settings) -> None:
    widgets.control(
        settings,
        "model",
        st.selectbox,
        "**Model**",
        list(EXPERIMENT_MODELS),
        format_func=lambda name: MODELS[name].label,
        then=_suited(settings),
    )


def _regularizer(settings: Settings) -> None:
    now = experiment_of(settings)
    known = ALL_PENALTIES if now.machine.multi_output else PENALTIES
    reasons = {name: why_not(name, loss=now.criterion, model=now.machine) for name in known}
    labels = {name: penalty.label for name, penalty in ALL_PENALTIES.items()}
    fits = [name for name, why in reasons.items() if why is None]
    _select(settings, "regularizer", "Regularizer Ω", fits, labels)
    _missing(settings, "regularizer", reasons, labels, key="train_why_not_penalty")


def load_suggested(settings: Settings) -> None:
    """Load the settings that say something on the chosen data set."""
    _take(settings, _suggested(settings["dataset"], settings["model"], _model_params(settings)))
    st.session_state[_SEEN] = settings["dataset"]
    st.session_state.pop(_NOTE, None)


def _loss(settings: Settings) -> None:
    spec = dataset_spec(settings["dataset"])
    fits = [name for name, loss in LOSSES.items() if loss.task != "binary" or spec.task != "regression"]
    missing = [LOSSES[name].label for name in LOSSES if name not in fits]
    _select(settings, "loss", "Loss", fits, {name: loss.label for name, loss in LOSSES.items()})
    if missing and settings.shows("loss"):
        st.caption(f"Not available here: {', '.join(missing)}. They need classes; this target is a number.")
    _own(settings, "loss")


def _own(settings: Settings, owner: str, then: Callable[[], None] | None = None) -> None:
    """Draw the own parameters of a choice from what they declare; `then` is called after a change."""
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
            widgets.param(settings, name, label, style=style, labels=labels or None, then=then)


def _solver(settings: Settings) -> None:
    now = experiment_of(settings)

    def reason(name: str) -> str | None:
        return why_not(now.penalty, name, loss=now.criterion, model=now.machine)

    reasons = {name: reason(name) for name in ("auto", *EXPERIMENT_SOLVERS)}
    fits = [name for name, why in reasons.items() if why is None]
    labels = {name: SOLVERS[name].label for name in EXPERIMENT_SOLVERS}
    if "auto" in fits:
        best = best_solver(now.formulation)
        labels["auto"] = f"Auto: {SOLVERS[best].label}"
    else:
        labels["auto"] = "Auto"
    _select(settings, "solver", "Solver", fits, labels)
    _own(settings, "solver")
    _missing(settings, "solver", reasons, labels, key="train_why_not")


def _missing(
    settings: Settings, name: str, reasons: Mapping[str, str | None], labels: dict[str, str], key: str
) -> None:
    """Draw what cannot be chosen, each with its reason; what is chosen has its reason elsewhere."""
    missing = {choice: why for choice, why in reasons.items() if why is not None and choice != settings[name]}
    if missing and settings.shows(name):
        names = ", ".join(labels[choice] for choice in missing)
        with st.expander(f"Not available here: {names}", icon=":material/block:", key=key):
            for who, why in _together({labels[choice]: why for choice, why in missing.items()}):
                st.caption(f"**{who}**. {why}")


def _together(reasons: dict[str, str]) -> list[tuple[str, str]]:
    """Return names and their reasons as Markdown, the names that have one reason in common together."""
    groups: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        groups.setdefault(reason.removeprefix(name), []).append(name)
    shown = []
    for rest, names in groups.items():
        alone = rest == reasons[names[0]]
        reason = rest if alone else f"Each{rest}" if len(names) > 1 else names[0] + rest
        shown.append((plain(", ".join(names)), plain(reason)))
    return shown


def _select(settings: Settings, name: str, label: str, fits: list[str], labels: dict[str, str]) -> None:
    """Draw a select box of what is possible; a present value that is not stays, and is marked."""
    present = settings[name]
    options = fits if present in fits else [*fits, present]
    widgets.control(
        settings,
        name,
        st.selectbox,
        label,
        options,
        format_func=lambda value: labels[value] + ("" if value in fits else " (not possible here)"),
    )
