"""Controls of a training run: the main settings in a row, all others in a popover."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import streamlit as st

from fmviz.engine.compatibility import best_solver, why_not_together
from fmviz.engine.losses import LOSSES
from fmviz.engine.models import MODELS, Model
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.penalties import ALL_PENALTIES, PENALTIES, Penalty
from fmviz.engine.solvers import SOLVERS
from fmviz.lab.background.job import Job
from fmviz.lab.datasets.drawn import CONTAMINATION
from fmviz.lab.experiment import OWNERS, Experiment
from fmviz.lab.runner import cost_note, too_large
from fmviz.lab.store.table import LABELS
from fmviz.ui import widgets
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.starts import START_LABELS, draw_thresholds
from fmviz.ui.train.settings import (
    LINEAR,
    MORE,
    draw_now,
    load_suggested,
    loss_suited,
    own_names,
    suited,
    takes_no_penalty,
)

_LABELS = {
    "dataset_n_samples": "Rows",
    "dataset_d_true": "Interacting features",
    "dataset_b": "Groups",
    "dataset_d_noise": "Noise features",
    "dataset_seed": "Seed of the data",
    "dataset_gross": "Gross errors in the target",
    "dataset_flipped": "Flipped labels",
    "dataset_swapped": "Swapped targets",
    "dataset_errors_seed": "Seed of the errors",
    "regularizer_axis": "Squared norms of",
}


def main_settings(settings: Settings, job: Job | None, now: Experiment) -> None:
    """Draw the main settings in one row, and a popover with all others.

    Parameters
    ----------
    settings : Settings
        The settings of the page.
    job : Job or None
        The run with these settings; λ changes it from now on if it `goes_on`.
    now : Experiment
        The experiment of these settings.
    """
    model = now.model
    if not settings.shows("settings", "All settings"):
        if job is not None and job.goes_on and not takes_no_penalty(model):
            draw_now(settings, job, "lambda_sparse")
        return
    with st.container(key="train_main", horizontal=True, vertical_alignment="bottom", gap="medium"):
        if _has_regularizers(settings, model):
            first = widgets.FIRST_REGULARIZERS
            _select(settings, "regularizer", "Regularizer Ω", *_regularizers(now), first=first, width=220)
        match _first_strength(settings, now):
            case "lambda_sparse":
                with st.container(key="train_strength"):
                    _strength(settings, job, model, "lambda_sparse")
            case "caps":
                draw_caps(settings, now)
                if settings["caps"] == "given":
                    _own(settings, "loss", now, only="loss_cap")
            case "lambda_p":
                _strength(settings, job, model, "lambda_p")
        with st.popover("Settings", icon=":material/tune:", key="train_settings"):
            _drawer(settings, job, now)


def _first_strength(settings: Settings, now: Experiment) -> str:
    """Return the strength shown in the main row: λ; without Ω, the cap of the loss, or λ_p."""
    if now.lambda_sparse != 0 or not takes_no_penalty(now.model):
        return "lambda_sparse"
    return "caps" if now.loss.cap is not None else "lambda_p"


def _has_regularizers(settings: Settings, model: Model) -> bool:
    """Return whether regularizers can be chosen; not if the trace norm of W is the regularizer."""
    return not (model.shrunk and ALL_PENALTIES[settings["regularizer"]].smooth)


def _strength(settings: Settings, job: Job | None, model: Model, name: str) -> None:
    """Draw the slider of a strength, which changes an active run; nothing if its term is absent."""
    notation = model.notation
    symbol, term, of = {
        "lambda_sparse": (notation.lambda_sparse, notation.penalty_term, "Ω" if model.factorised else ""),
        "lambda_p": (notation.lambda_p, notation.shrinkage_term, ""),
    }[name]
    if term and job is not None and job.goes_on:
        draw_now(settings, job, name)
    elif term:
        first = ", initial" * any(change.name == name for change in settings["changes"])
        widgets.scale(
            settings,
            name,
            f"Strength ${symbol}$ of {of or term.partition(' ')[2]}{first}",
            help=f"The objective contains {term}, without a factor ½.",
        )


def _drawer(settings: Settings, job: Job | None, now: Experiment) -> None:
    """Draw the remaining settings of a run."""
    own = {owner: own_names(settings, owner, now) for owner in OWNERS}
    if settings.shows_any(*own["dataset"]):
        with st.container(border=True):
            st.markdown("**Data**")
            _own(settings, "dataset", now)
            draw_wrong_rows(settings)
    model, notation = now.model, now.model.notation
    if settings.shows_any("model", *("rank",) * model.factorised, *own["model"]):
        with st.container(border=True, key="train_model_box"):
            widgets.control(
                settings,
                "model",
                st.selectbox,
                "Model",
                list(MODELS),
                format_func=lambda name: MODELS[name].label,
                then=suited(settings, now),
            )
            _own(settings, "model", now, then=suited(settings, now))
            if model.factorised:
                widgets.param(settings, "rank", f"{notation.rank} $k$", style="number")
            if now.dataset.spec.unavailable() is None and (note := cost_note(now)) is not None:
                st.caption(f":material/timer: {plain(note)}")
    if settings.shows_any("regularizer", "lambda_p", *own["regularizer"]):
        with st.container(border=True, key="train_penalty"):
            _regularization(settings, job, now)
    if settings.shows_any("loss", *LINEAR, *own["loss"]):
        with st.container(border=True):
            st.markdown("**Loss and linear term**")
            _loss(settings, now)
            widgets.param(settings, "fit_linear", "Linear term ⟨w, x⟩")
            if job is not None and job.goes_on and job.experiment.fit_linear:
                draw_now(settings, job, "lambda_w")
            else:
                widgets.scale(
                    settings,
                    "lambda_w",
                    r"Strength $\lambda_w$ of $\|w\|^2$",
                    disabled=not settings["fit_linear"],
                )
            widgets.param(settings, "fit_intercept", "Bias $b$")
    if settings.shows_any("solver", "max_epochs", *own["solver"]):
        with st.container(border=True):
            st.markdown("**Solver**")
            _solver(settings, now)
            widgets.param(settings, "max_epochs", "Maximum epochs", style="number")
    if settings.shows_any(*MORE):
        with st.expander("More", icon=":material/tune:", key="train_more"):
            widgets.param(settings, "validation", "Validation share", style="slider")
            widgets.scale(settings, "tol", "Tolerance", highest=0.1)
            if model.factorised and not model.multi_output:
                widgets.param(settings, "start", "Start", labels=START_LABELS)
                widgets.scale(settings, "init_scale", r"Scale $\sigma$ of the start", highest=10.0)
    with st.expander("The objective", icon=":material/functions:", key="train_objective_box"):
        st.latex(notation.objective)
        st.latex(model.formula)
        st.latex(rf"\ell(f,y)={now.loss.formula}")
    widgets.suggest(settings, load_suggested, "Load the suggested settings for this data set.")


def _regularization(settings: Settings, job: Job | None, now: Experiment) -> None:
    st.markdown("**Regularization**")
    if _has_regularizers(settings, now.model):
        _missing(settings, "regularizer", *_regularizers(now), key="train_why_not_penalty")
    _own(settings, "regularizer", now)
    _formulas(now)
    if now.lambda_sparse == 0 and (locked := takes_no_penalty(now.model)):
        st.caption(f":material/lock: {locked}")
    elif too_large(now) is None:
        draw_thresholds(now)
    if "lambda_p" in found_caps(now):
        st.caption(f":material/auto_fix: ${now.model.notation.lambda_p}$ is estimated from the data.")
    elif _first_strength(settings, now) != "lambda_p":
        _strength(settings, job, now.model, "lambda_p")


def _formulas(now: Experiment) -> None:
    """Draw the formula of the regularizer for the columns of each order, and its kind of selection."""
    model, penalty = now.model, now.regularizer
    if now.lambda_sparse == 0 and takes_no_penalty(model):
        st.latex(model.notation.shrinkage)
        return
    forms = penalty_forms(model, penalty)
    formula, selects = model.penalty_words(penalty)
    if len({text for _, text, _ in forms}) > 1:
        for order, text, _ in forms:
            st.caption(f"Of the columns of order {order}:")
            st.latex(text)
    else:
        if forms:
            _, formula, selects = forms[0]
        st.latex(formula)
    st.caption(f"Selects {selects}.")


def penalty_forms(model: Model, penalty: Penalty) -> list[tuple[int | None, str, str]]:
    """Return the order, the LaTeX and the kind of selection for every block of columns of a model."""
    return [(order, *form.words()[::2]) for order, form in model.forms(penalty)]


def _regularizers(now: Experiment) -> tuple[Mapping[str, str | None], dict[str, str]]:
    """Return why each regularizer is unavailable, or None, and the label of each."""
    known = ALL_PENALTIES if now.model.multi_output else PENALTIES
    reasons = {name: why_not_together(now.model, penalty, now.loss) for name, penalty in known.items()}
    return reasons, {name: penalty.label for name, penalty in ALL_PENALTIES.items()}


def _loss(settings: Settings, now: Experiment) -> None:
    classes = now.dataset.spec.task != "regression"
    reasons = {name: loss.why_not_task(classes, "") for name, loss in LOSSES.items()}
    labels = {name: loss.label for name, loss in LOSSES.items()}
    _select(settings, "loss", "Loss", reasons, labels, then=loss_suited(settings, now))
    if _first_strength(settings, now) == "caps":
        _own(settings, "loss", now, apart=("loss_cap",))
    else:
        draw_caps(settings, now)
        _own(settings, "loss", now)


def _own(
    settings: Settings,
    owner: str,
    now: Experiment,
    then: Callable[[], None] | None = None,
    *,
    only: str = "",
    apart: tuple[str, ...] = (),
) -> None:
    """Draw the parameters of a model, loss, solver or other choice; call `then` after a change.

    With `only`, draw only that parameter; skip those in `apart`.
    """
    elsewhere = (*WRONG_ROWS, *found_caps(now), *apart)
    names = own_names(settings, owner, now)
    for name in (name for name in names if name not in elsewhere and only in ("", name)):
        spec = settings.spec(name)
        label = _LABELS.get(name, widgets.title_of(name.removeprefix(f"{owner}_")))
        label += f" ${spec.symbol}$" if spec.symbol else ""
        if spec.log and spec.kind == "float":
            low, high = max(spec.low or 1e-8, 1e-12), min(spec.high or 1e3, 1e12)
            widgets.scale(settings, name, label, lowest=low, highest=high)
        else:
            labels = {choice: choice.capitalize().replace("_", " ") for choice in spec.choices}
            style: Literal["auto", "number"] = "number" if spec.kind in ("int", "float") else "auto"
            widgets.param(settings, name, label, style=style, labels=labels or None, then=then)


def _solver(settings: Settings, now: Experiment) -> None:
    parts = now.model, now.regularizer, now.loss
    solvers: dict[str, Any] = {"auto": "auto", **SOLVERS}
    reasons = {name: why_not_together(*parts, solver) for name, solver in solvers.items()}
    best = f": {SOLVERS[best_solver(now.formulation)].label}" if reasons["auto"] is None else ""
    labels = {"auto": f"Auto{best}", **{name: solver.label for name, solver in SOLVERS.items()}}
    _select(settings, "solver", "Solver", reasons, labels)
    _own(settings, "solver", now)
    _missing(settings, "solver", reasons, labels, key="train_why_not")


def _missing(
    settings: Settings, name: str, reasons: Mapping[str, str | None], labels: dict[str, str], key: str
) -> None:
    """List the unavailable choices with reasons, except the current choice."""
    missing = {choice: why for choice, why in reasons.items() if why is not None and choice != settings[name]}
    if missing and settings.shows(name):
        heading = f"Not available here: {', '.join(labels[choice] for choice in missing)}"
        with st.expander(heading, icon=":material/block:", key=key):
            groups: dict[str, list[str]] = {}
            for choice, why in missing.items():
                groups.setdefault(why.removeprefix(labels[choice]), []).append(labels[choice])
            for reason, who in groups.items():
                st.caption(f"**{plain(', '.join(who))}**: {plain(reason)}")


def _select(
    settings: Settings,
    name: str,
    label: str,
    reasons: Mapping[str, str | None],
    labels: dict[str, str],
    *,
    first: Sequence[str] = (),
    **layout: Any,
) -> None:
    """Draw a select box of the available values; an unavailable current value stays, marked as such."""
    fits = [choice for choice, why in reasons.items() if why is None]
    options = list(dict.fromkeys([*fits, settings[name]]))
    options, labels, more = widgets.folded(settings, name, options, labels, first)
    if more is not None:
        layout["then"] = more
    widgets.control(
        settings,
        name,
        st.selectbox,
        label,
        options,
        format_func=lambda value: (
            labels[value] + ("" if value in (*fits, widgets.MORE) else " (not available here)")
        ),
        **layout,
    )


# ------------------------------------------------------------------------------------ caps and corrupted rows


WRONG_ROWS = tuple(f"dataset_{name}" for name in CONTAMINATION)
"""The settings for synthetic errors."""


def found_caps(experiment: Experiment) -> tuple[str, ...]:
    """Return the settings ignored because the caps are estimated from the data."""
    if not experiment.finds_caps:
        return ()
    loss = ("loss_epsilon", "loss_cap")
    return (*loss, "model_cap", "lambda_p") if isinstance(experiment.model, RobustFM) else loss


def draw_caps(settings: Settings, now: Experiment) -> None:
    """Draw the switch for caps estimated from the data if the loss has a cap."""
    if now.loss.cap is not None:
        widgets.param(settings, "caps", "Caps", labels=LABELS["caps"])


def draw_wrong_rows(settings: Settings) -> None:
    """Draw the shares of rows with synthetic errors."""
    names = [name for name in WRONG_ROWS if name in settings.table]
    if not settings.shows_any(*names):
        return
    shares = [name for name in names if settings.spec(name).kind == "float"]
    total = sum(settings[name] for name in shares)
    label = f"Synthetic errors: {total:.0%} of rows" if total else "Synthetic errors"
    with st.expander(label, icon=":material/bug_report:", key="train_wrong_rows", expanded=total > 0.0):
        for name in shares:
            widgets.param(settings, name, _LABELS[name], style="slider", step=0.01)
        if total:
            widgets.param(settings, (seed := "dataset_errors_seed"), _LABELS[seed], style="number")
            st.caption("Corrupted rows are known, which allows scoring their detection.")
