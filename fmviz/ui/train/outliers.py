"""Histogram of the residuals under a capped loss with caps that can be moved, and the spectrum of Z."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from fmviz.engine.interactions.of_order import pairs_of
from fmviz.engine.models.convex import EigenModel
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.parameters import Parameters
from fmviz.engine.settings import ParamSpec
from fmviz.figures import training as figures
from fmviz.lab.background.job import JobView
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.outliers import Errors, caps_of, errors_of
from fmviz.lab.runner import Run
from fmviz.ui import navigation, widgets
from fmviz.ui.charts import chart
from fmviz.ui.settings.state import Follower, Settings

VIEW = tuple(
    Follower(**vars(ParamSpec(name, "float", 0.0, 0.0, 1e15, help=words)))
    for name, words in (
        (
            "cap_from",
            "Residuals up to ε₁ cost nothing. Moved, it becomes part of the settings of the next run.",
        ),
        (
            "cap_reach",
            "ε₂: rows further off than ε₁ + ε₂ are set aside. Moved, it becomes part of the settings.",
        ),
        (
            "cap_root",
            "√ε₃: larger eigenvalues are free. Moved, it becomes part of the settings of the next run.",
        ),
    )
)
"""The caps of the run that is shown, as they are moved in its pictures."""
_KNOWN = "fmviz:train:known_caps"
# The pictures end at so many times the reach of the caps.
_WINDOW, _STEPS = 3.0, 200
_SQUARES = 10


@dataclass(frozen=True, eq=False)
class _Seen:
    """What is shown of a fit."""

    errors: Errors
    caps: tuple[float, float]
    root: float | None
    eigenvalues: np.ndarray | None
    lambda_p: float

    @property
    def reach(self) -> float:
        """ε₂."""
        return self.caps[1] - self.caps[0]


@st.cache_data(max_entries=8, show_spinner="Looking at the residuals.")
def _seen(
    run: str, epoch: int, output: int, _experiment: Experiment, _parameters: Parameters
) -> _Seen | None:
    """Return what there is to see of a run's training rows; `_parameters` are those of all outputs."""
    del run, epoch
    prepared = Run.prepare(_experiment).of_output(output)
    problem: Any = prepared.problem
    caps = caps_of(problem.loss)
    if caps is None:
        return None
    model = problem.model
    robust = isinstance(model, RobustFM)
    return _Seen(
        errors_of(prepared, _parameters),
        caps,
        float(np.sqrt(model.cap)) if robust and model.capped else None,
        _parameters.multipliers if robust else None,
        problem.lambda_p,
    )


def draw(settings: Settings, view: JobView) -> None:
    """Draw the part for a view of one output, once nothing moves and where the loss has a tube or a cap."""
    parameters, dataset = view.parameters, view.dataset
    if view.state.active or parameters is None or dataset is None or not np.isfinite(parameters.P).all():
        return
    if view.experiment.machine.multi_output:
        return
    seen = _seen(view.id, view.epoch, view.output or 0, view.experiment, parameters)
    if seen is None:
        return
    st.markdown("**What is set aside**")
    _adopt(settings, view, seen)
    movable = (settings["loss"], settings["model"]) == (view.experiment.loss, view.experiment.model)
    left, right = st.columns(2)
    with left:
        _residuals(settings, seen, movable)
    if seen.eigenvalues is not None:
        with right:
            _spectrum(settings, seen, movable)
    if view.saved:
        output = {} if view.output is None else {"output": str(view.output)}
        navigation.page_link(
            navigation.INTERACTIONS,
            {"run": view.id, "view": "suspects", **output},
            label="Rows that look wrong",
        )


def draws_spectrum(view: JobView) -> bool:
    """Return whether `draw` draws the eigenvalues of Z, once the run rests."""
    return isinstance(view.machine, RobustFM) and caps_of(view.experiment.criterion) is not None


# ------------------------------------------------------------------------------------------- caps that move


def _adopt(settings: Settings, view: JobView, seen: _Seen) -> None:
    """Put the movable caps where those of the fit are, when another fit is shown."""
    shown = (view.id, view.epoch)
    if st.session_state.get(_KNOWN) == shown:
        return
    st.session_state[_KNOWN] = shown
    reach = seen.reach if np.isfinite(seen.reach) else 0.0
    settings.set(cap_from=seen.caps[0], cap_reach=reach, cap_root=seen.root or 0.0)


def _moved(settings: Settings, seen: _Seen) -> Callable[[], None]:
    def take() -> None:
        changes: dict[str, Any] = {"caps": "given", "loss_epsilon": settings["cap_from"]}
        if np.isfinite(seen.reach):
            changes["loss_cap"] = max(settings["cap_reach"], 1e-12)
        if seen.root is not None:
            changes |= {"model_cap": max(settings["cap_root"] ** 2, 1e-12), "lambda_p": seen.lambda_p}
        settings.set(**{name: value for name, value in changes.items() if name in settings.table})

    return take


def _slider(settings: Settings, name: str, label: str, highest: float, then: Callable[[], None]) -> None:
    widgets.control(
        settings,
        name,
        st.slider,
        label,
        0.0,
        max(highest, settings[name]),
        step=highest / _STEPS,
        format="%.3g",
        then=then,
    )


def _window(seen: _Seen) -> tuple[float, float]:
    """Return from where to where residuals are drawn: the same for all machines."""
    far = _WINDOW * seen.caps[1]
    if not np.isfinite(far) or far == 0.0:
        far = float(np.quantile(np.abs(seen.errors.signed), 0.995)) or 1.0
    return (-far, far)


def _lines(seen: _Seen, settings: Settings) -> list[tuple[float, str]]:
    near = settings["cap_from"]
    places = [(near, "ε₁")] if near > 0.0 or not seen.errors.binary else []
    if np.isfinite(seen.reach):
        places.append((near + settings["cap_reach"], "ε₁ + ε₂"))
    if seen.errors.binary:
        return places
    return [*places, *((-place, "") for place, _ in places)]


def _title(seen: _Seen) -> str:
    return "1 − y·f: above 1 on the wrong side" if seen.errors.binary else "residual f − y"


def _residuals(settings: Settings, seen: _Seen, movable: bool) -> None:
    st.caption("The dashed lines are its caps; move them to see what they would set aside.")
    reach = settings["cap_from"] + (settings["cap_reach"] if np.isfinite(seen.reach) else np.inf)
    aside = seen.errors.beyond(reach)
    window = _window(seen)
    chart(
        figures.residuals(
            seen.errors.signed,
            _groups(aside, seen.errors.wrong),
            window,
            _lines(seen, settings),
            _title(seen),
        ),
        key="train_caps_residuals",
        alt=f"Histogram of the residuals; {int(aside.sum()):,} of {aside.size:,} rows are beyond the caps.",
    )
    if not movable:
        return
    then = _moved(settings, seen)
    highest = 1.0 if seen.errors.binary else window[1]
    _slider(settings, "cap_from", "ε₁: no cost up to here", highest, then)
    if np.isfinite(seen.reach):
        _slider(settings, "cap_reach", "ε₂: the most that a row costs", window[1], then)
    before = int(seen.errors.beyond(seen.caps[1]).sum())
    now = int(aside.sum())
    words = f"{now:,} of {aside.size:,} rows are beyond ε₁ + ε₂."
    if (settings["cap_from"], settings["cap_reach"]) != (seen.caps[0], seen.reach) and now != before:
        words += f" The fit set {before:,} aside; press **Play** to fit with these caps."
    st.caption(words)


def _groups(aside: np.ndarray, wrong: np.ndarray | None) -> dict[str, np.ndarray]:
    if wrong is None:
        found = {"kept": ~aside, "set aside": aside}
    else:
        found = {
            "kept": ~aside & ~wrong,
            "set aside": aside & ~wrong,
            "wrong, kept": ~aside & wrong,
            "wrong, set aside": aside & wrong,
        }
    return {name: mask for name, mask in found.items() if mask.any()}


def _spectrum(settings: Settings, seen: _Seen, movable: bool) -> None:
    assert seen.eigenvalues is not None
    root = settings["cap_root"] if seen.root is not None else None
    st.caption(
        "**The spectrum of Z.** Eigenvalues beyond √ε₃ are free, their number is the rank that is found."
    )
    chart(
        figures.spectrum(seen.eigenvalues, root),
        key="train_caps_spectrum",
        alt="The eigenvalues of Z, the largest first, with the cap.",
    )
    if root is None or not movable:
        return
    highest = 1.1 * float(seen.eigenvalues.max(initial=0.0)) or 1.0
    _slider(settings, "cap_root", "√ε₃: free beyond it", max(highest, root), _moved(settings, seen))


# ------------------------------------------------------------------------------------------------- squares


def draw_squares(view: JobView, dataset: Dataset) -> None:
    """Draw the weights of squares of features, which some models have apart from those of pairs."""
    model = view.experiment.machine
    if view.parameters is None or view.state.active or not isinstance(model, EigenModel):
        return
    pairs = pairs_of(model, view.parameters)
    squares = pairs.squares()
    if squares is None or not squares.any():
        return
    order = np.argsort(-np.abs(squares), kind="stable")[:_SQUARES]
    names = np.asarray(dataset.feature_names, dtype=object)[pairs.rows[order]]
    st.markdown("**The strongest squares**")
    st.dataframe(
        {"Feature": names, "Weight": squares[order]},
        key="train_squares",
        hide_index=True,
        column_config={
            "Weight": st.column_config.NumberColumn(
                format="%.4g", help="zⱼⱼ: what xⱼ² adds to the prediction, per unit."
            )
        },
        alt="The features whose squares have the largest weights.",
    )
