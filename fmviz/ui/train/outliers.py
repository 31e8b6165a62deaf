"""Which rows a run sets aside, by caps that can be moved, beside what the plain machine makes of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from fmviz.engine.interactions.of_order import pairs_of
from fmviz.engine.models.convex import EigenModel
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.parameters import Parameters
from fmviz.engine.settings import ParamSpec
from fmviz.figures import outliers as figures
from fmviz.lab.background.job import JobView
from fmviz.lab.background.task import Task, TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.outliers import Errors, caps_of, errors_of, fitted, plain_run
from fmviz.lab.runner import Run
from fmviz.ui import widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain
from fmviz.ui.interactions.suspects import draw_rows
from fmviz.ui.settings.state import Follower, Settings
from fmviz.ui.watching import failure, watch

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
    plain = _plain(view, parameters)
    _adopt(settings, view, seen)
    left, right = st.columns(2)
    with left:
        _residuals(settings, seen, _can_move(settings, view))
    with right:
        _plain_residuals(seen, plain, _task(view, parameters), settings)
    if seen.eigenvalues is not None or seen.errors.wrong is not None:
        left, right = st.columns(2)
        with left:
            if seen.eigenvalues is not None:
                _spectrum(settings, seen, plain, _can_move(settings, view))
        with right if seen.eigenvalues is not None else left:
            if seen.errors.wrong is not None:
                _precision(seen, plain)
    aside = seen.errors.beyond(seen.caps[1])
    order = seen.errors.ranked()
    draw_rows(dataset, seen.errors, order[aside[order]], f"train-{view.id[:6]}", "train")


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


def _can_move(settings: Settings, view: JobView) -> bool:
    """Return whether the settings beside the run are of its loss and model, so that caps can be theirs."""
    experiment = view.experiment
    return (settings["loss"], settings["model"]) == (experiment.loss, experiment.model)


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
    st.caption("**This machine.** The dashed lines are its caps; move them to see what they would set aside.")
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


# ---------------------------------------------------------------------------------------- the plain machine


@dataclass(frozen=True, eq=False)
class _Plain:
    errors: Errors
    eigenvalues: np.ndarray


def _plain_made(
    experiment: Experiment, output: int, parameters: Parameters, should_stop: Callable[[], bool]
) -> Iterator[_Plain]:
    run = Run.prepare(experiment).of_output(output)
    plain = plain_run(run, parameters, output=output)
    found = fitted(plain, should_stop)
    yield _Plain(
        errors_of(plain, found), found.multipliers if found.coefficients is not None else np.zeros(0)
    )


def _plain(view: JobView, parameters: Parameters) -> _Plain | None:
    """Return the plain machine's fit, once it is there; it is made in the background."""
    view_of = _task(view, parameters).view()
    return view_of.items[-1] if view_of.state is TaskState.FINISHED and view_of.items else None


def _task(view: JobView, parameters: Parameters) -> Task:
    tasks, key = manager(), f"plain:{view.id}:{view.epoch}:{view.output}"
    make = partial(_plain_made, view.experiment, view.output or 0, parameters)
    return tasks.get(key) or tasks.submit(key, make, most=1)


def _waiting(view: TaskView) -> None:
    if view.state is TaskState.FAILED:
        failure(view)
    elif view.state.active:
        st.caption(f":material/hourglass_top: It is being fitted, {view.elapsed:.0f} s so far.")
    else:
        st.caption(plain(view.message))


def _plain_residuals(seen: _Seen, plain: _Plain | None, task: Task, settings: Settings) -> None:
    st.caption("**The plain machine** on the same rows: squared loss, which lets go of no row.")
    if plain is None:
        watch(task, _waiting)
        return
    wrong = plain.errors.wrong
    every = np.ones(plain.errors.y.size, dtype=bool)
    chart(
        figures.residuals(
            plain.errors.signed,
            {"kept": every} if wrong is None else {"kept": ~wrong, "wrong, kept": wrong},
            _window(seen),
            _lines(seen, settings),
            _title(seen),
            1.05 * figures.highest_bar(seen.errors.signed, _window(seen)),
        ),
        key="train_caps_plain",
        alt="Histogram of the residuals of the same machine with the squared loss.",
    )
    st.caption("The same scales and lines. The outermost bars hold whatever is further off.")


def _spectrum(settings: Settings, seen: _Seen, plain: _Plain | None, movable: bool) -> None:
    assert seen.eigenvalues is not None
    root = settings["cap_root"] if seen.root is not None else None
    st.caption(
        "**The spectrum of Z.** Eigenvalues beyond √ε₃ are free, their number is the rank that is found."
    )
    chart(
        figures.spectrum(seen.eigenvalues, root, None if plain is None else plain.eigenvalues),
        key="train_caps_spectrum",
        alt="The eigenvalues of Z, the largest first, with the cap and those of the plain machine.",
    )
    if root is None or not movable:
        return
    highest = 1.1 * float(seen.eigenvalues.max(initial=0.0)) or 1.0
    _slider(settings, "cap_root", "√ε₃: free beyond it", max(highest, root), _moved(settings, seen))


def _precision(seen: _Seen, plain: _Plain | None) -> None:
    errors = seen.errors
    assert errors.wrong is not None
    st.caption("**Which rows are wrong in truth**, of those that are furthest off.")
    aside = errors.beyond(seen.caps[1])
    both = int((aside & errors.wrong).sum())
    point = None
    if aside.any() and errors.wrong.any():
        point = (both / int(errors.wrong.sum()), both / int(aside.sum()))
    curves = {"this machine": errors.recall_and_precision()}
    if plain is not None:
        curves["plain machine"] = plain.errors.recall_and_precision()
    chart(
        figures.precision_recall(curves, point, float(errors.wrong.mean())),
        key="train_caps_precision",
        alt="Precision against recall of the rows that are wrong on purpose.",
    )
    if point is not None:
        f1 = 2.0 * both / float(aside.sum() + errors.wrong.sum())
        st.caption(f"Set aside: precision {point[1]:.3f}, recall {point[0]:.3f}, F1 {f1:.3f}.")


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
