"""Draw models of several regularizers side by side: along λ, epoch by epoch, and why a pair is zero."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from fmviz import metrics, report
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.settings import ParamSpec
from fmviz.figures.palette import regularizer_color
from fmviz.lab.background.task import Task, TaskState, TaskView
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.comparison import (
    describe_support,
    joined,
    say_where_exact,
)
from fmviz.lab.runner import load_dataset, truth_of
from fmviz.lab.search.strength_path import EPOCHS, PathPlan, learn, path_program
from fmviz.stage import FactorFrame, Mark, Panel
from fmviz.stage.pictures import Picture
from fmviz.ui import widgets
from fmviz.ui.components import matrix_view, stage
from fmviz.ui.settings.state import Settings
from fmviz.ui.train.matrices import truth_panel
from fmviz.ui.watching import failure, shared_task, watch

_LEAST_WIDTH = 140
_ALONG = {"lambda": "Along λ", "epochs": "Epoch by epoch"}
# What the pictures of all strengths, or epochs, may weigh on their way to the browser.
_MOST_BYTES = 6_000_000


def how(name: str) -> ParamSpec:
    """Declare what is watched: all strengths, or all epochs at one."""
    words = "The trained models along λ; or how they come about at this λ, epoch by epoch from one start."
    return ParamSpec(name, "choice", "lambda", choices=tuple(_ALONG), help=words)


def why(names: Sequence[str]) -> ParamSpec:
    """Declare which of some regularizers is explained."""
    words = "Whose pair is explained before a cell is clicked."
    return ParamSpec("why", "choice", "none", choices=("none", *names), help=words)


def most_frames(plan: PathPlan) -> int:
    """Return how many pictures of every regularizer the browser can be sent."""
    d, rank = _data(plan).X.shape[1], plan.base.rank
    return _MOST_BYTES // (len(plan.regularizers) * max(d * d, 4 * d * rank))


def draw(
    settings: Settings,
    plan: PathPlan,
    task: Task | None,
    names: tuple[str, str],
    height: int,
    *,
    pair: tuple[int, int] | None,
    film: str = "",
) -> None:
    """Draw models under one λ: along λ or epoch by epoch, and why they use a pair or do not.

    Parameters
    ----------
    settings : Settings
        Of the page, with `why` among them.
    plan : PathPlan
        What is fitted.
    task : Task
        That fits; its items are the fits. None with a film.
    names : (str, str)
        The settings for the strength, and for `how` it is watched.
    height : int
        The largest of a picture, in CSS pixels.
    pair : tuple of int or None
        The features that are explained where `why` names a regularizer.
    film : str
        Where the session notes that it is first shown, once, how the models come about; "" for no film. The
        page is drawn again at its end.
    """
    strength, along = names
    nearest = min(plan.lambdas, key=lambda value: abs(value - settings[strength]))
    if settings[strength] != nearest:
        settings.set(**{strength: nearest})
    left, right = st.container(key="arena_controls").columns(
        [5, 2], gap="medium", vertical_alignment="bottom"
    )
    widgets.control(
        settings,
        strength,
        st.select_slider,
        "Strength λ",
        plan.lambdas,
        format_func="{:g}".format,
        place=left,
    )
    widgets.param(settings, along, "Watch", labels=_ALONG, place=right)
    learning = f"epochs:{plan.digest}:{nearest!r}", partial(learn, plan, nearest)
    shown = shared_task(*learning) if task is None or settings[along] == "epochs" else task
    epochs = shown is not task
    asked = pair is not None and settings.shows("why", "Why")
    options: dict[str, Any] = {
        "max_height": height,
        "min_width": _LEAST_WIDTH,
        "zoom": False,
        "named": False,
        "clickable": "explained" if asked else False,
        "ask": "Click a cell: why is it zero, or what makes it?" if asked else "",
    }
    if pair is not None and settings["why"] in plan.regularizers:
        before = truth_of(_data(plan)) is not None
        options["mark"] = Mark(*pair, before + plan.regularizers.index(settings["why"]))
    if epochs:
        _draw_epochs(plan, shown, f"{settings.page}_epochs", options, film)
    else:
        driver = settings.key(strength) if settings.shows(strength) else nearest
        curves = settings.shows("curves", "Curves along λ")
        watch(
            shown,
            partial(_draw_path, plan, driver, f"{settings.page}_models", options, curves),
            partial(_words, plan.total),
            lambda view: len({fit.experiment.regularizer for fit in view.items}),
        )
    chosen = [PENALTIES[name] for name in plan.regularizers]
    if words := [f"**{penalty.label}**, {penalty.stands_for}." for penalty in chosen if penalty.stands_for]:
        st.caption(" ".join(words))
    if shown.state is TaskState.FINISHED:
        make = partial(_saved, plan, shown, nearest, epochs)
        widgets.save_page(f"{settings.page}_page", make, f"{settings.page}-models")


def _draw_path(
    plan: PathPlan, driver: str | float, key: str, options: Mapping[str, Any], curves: bool, view: TaskView
) -> None:
    """Draw the fits of a plan, as far as they are there; `driver`: the slider's key, or the strength."""
    if view.state is TaskState.FAILED:
        failure(view)
        return
    shown = plan.lambdas if isinstance(driver, str) else (driver,)
    picture = _picture(models_along(plan, view, shown), _data(plan), along=True, curves=curves)
    driven: dict[str, Any] = {"driver_key": driver, "player": False} if isinstance(driver, str) else {}
    stage(picture.payload(**driven, **options), key=key)


def models_along(plan: PathPlan, view: TaskView, shown: Sequence[float]) -> dict[str, list[FactorFrame]]:
    """Return the pictures of every regularizer at some strengths, as far as the fits are there."""
    dataset = _data(plan)
    matrices: dict[str, dict[float, np.ndarray]] = {name: {} for name in plan.regularizers}
    for fit in view.items:
        if fit.parameters is not None:
            matrices[fit.experiment.regularizer.name][fit.experiment.lambda_sparse] = fit.parameters.P

    def frame(name: str, strength: float) -> FactorFrame:
        key, strengths = f"{strength:g}", matrices[name]
        if not strengths:
            return _waiting(dataset, plan.base.rank, key)
        nearest = min(strengths, key=lambda value: abs(math.log(value / strength)))
        picture = fitted(strengths[nearest], key, dataset)
        notice = "" if nearest == strength else f"So far at λ = {nearest:g}"
        return replace(picture, notice=notice)

    return {name: [frame(name, strength) for strength in shown] for name in plan.regularizers}


def _draw_epochs(plan: PathPlan, task: Task, key: str, options: Mapping[str, Any], film: str) -> None:
    """Draw how the models of a task come about, from one random start."""

    def body(view: TaskView) -> None:
        if view.state is TaskState.FAILED:
            failure(view)
            return
        if view.state.active:
            waiting = [_waiting(_data(plan), plan.base.rank, "")]
            picture = _picture(dict.fromkeys(plan.regularizers, waiting), _data(plan))
            stage(picture.payload(**options), key=key)
            return
        picture = _picture(_epochs(plan, view), _data(plan))
        stage(picture.payload(player=True, phase="film" if film else "", **options), key=key)
        st.caption("From one random start. Along λ, a model begins where that of the λ before has ended.")
        if film:
            st.session_state[film] = False

    watch(task, body, partial(_words, len(plan.regularizers)))


def _saved(plan: PathPlan, task: Task, strength: float, epochs: bool) -> str:
    if epochs:
        return page(f"Epoch by epoch at λ = {strength:g}", plan.base, _epochs(plan, task.view()))
    start, panels = plan.lambdas.index(strength), models_along(plan, task.view(), plan.lambdas)
    return page("Regularizers under one λ", plan.base, panels, start=start, program=path_program(plan))


def page(
    title: str,
    base: Experiment,
    panels: Mapping[str, Sequence[FactorFrame]],
    *,
    start: int | None = None,
    charts: Sequence[Any] = (),
    notes: Sequence[str] = (),
    more: Sequence[tuple[str, Picture]] = (),
    program: str = "",
) -> str:
    """Return models of several regularizers as a page, with a slider for λ, or for epochs without a start.

    `more` pictures, each with its heading, stand below.
    """
    dataset = load_dataset(base.dataset)
    if start is not None:
        panels = {
            name: [replace(frame, key=f"λ = {frame.key}") for frame in frames]
            for name, frames in panels.items()
        }
    own = _picture(panels, dataset, along=start is not None) if panels else Picture()
    picture = replace(own, charts=charts or own.charts, start=start)
    chosen = [PENALTIES[name] for name in panels]
    messages = [
        f"On {dataset.title}, every cell is the weight of a pair of features.",
        *notes,
        " ".join(f"{each.label}, {each.stands_for}." for each in chosen if each.stands_for).replace("*", ""),
    ]
    settings = report.listed_settings(
        {
            **{n: value for n, value in base.to_dict().items() if n not in ("lambda_sparse", "solver")},
            "regularizer": ", ".join(each.label for each in chosen),
        }
    )
    return report.page(title, messages, [("", picture), *more], settings=settings, program=program)


def _epochs(plan: PathPlan, view: TaskView) -> dict[str, list[FactorFrame]]:
    last = max(len(factors) for _, factors in view.items)
    shown = sorted({*range(0, last, -(-last // max(1, most_frames(plan)))), last - 1})
    return {
        name: [
            fitted(factors[min(at, len(factors) - 1)], f"Epoch {EPOCHS[at]:,}", _data(plan)) for at in shown
        ]
        for name, factors in view.items
    }


def _words(total: int, view: TaskView) -> tuple[str, float | None]:
    trained = f"{len(view.items)} of {total} models trained in {view.elapsed:.0f} s."
    return trained, len(view.items) / total


def _data(plan: PathPlan) -> Dataset:
    return load_dataset(plan.base.dataset)


def draw_empty(names: Sequence[str], dataset: Dataset, key: str, height: int, notice: str) -> None:
    """Draw where the pictures of some regularizers will be, beside the truth."""
    draw_panels({name: [_waiting(dataset, 1, "", notice)] for name in names}, dataset, key, height)


def _waiting(dataset: Dataset, rank: int, key: str, notice: str = "Being trained") -> FactorFrame:
    return FactorFrame(np.zeros((dataset.X.shape[1], rank)), key, notice=notice)


def fitted(P: np.ndarray, key: str, dataset: Dataset) -> FactorFrame:
    """Return the picture of factors, of shape (d, rank)."""
    return FactorFrame(P, key, describe_support(metrics.used_pairs(P), truth_of(dataset)))


def draw_panels(panels: Mapping[str, Sequence[FactorFrame]], dataset: Dataset, key: str, height: int) -> None:
    """Draw the pictures that `fitted` makes, see `panels_of`."""
    drawn = panels_of(panels, dataset)
    matrix_view(
        drawn,
        key=key,
        show="gram",
        columns=len(drawn),
        min_width=_LEAST_WIDTH,
        gram_scale=_scale(dataset),
        max_height=height,
        feature_names=dataset.feature_names,
    )


def _picture(
    panels: Mapping[str, Sequence[FactorFrame]], dataset: Dataset, *, along: bool = False, curves: bool = True
) -> Picture:
    """Return models side by side, `along` λ or epochs, and `curves` of how well each has the true pairs."""
    picture = Picture(
        panels_of(panels, dataset),
        dataset.feature_names,
        scale=_scale(dataset),
        along="values of λ" if along else "epochs",
    )
    frames, truth = next(iter(panels.values())), truth_of(dataset)
    if truth is None or len(frames) == 1 or not curves:
        return picture
    # A model that is not there yet has none.
    f1 = {
        name: [None if frame.notice else metrics.support_f1(truth, frame.values) for frame in frames]
        for name, frames in panels.items()
    }
    strengths = [float(frame.key.removeprefix("λ = ")) for frame in frames] if along else []
    series = [
        {
            "name": PENALTIES[name].label,
            "color": regularizer_color(name),
            "x": strengths or list(range(len(values))),
            # Rounded down: only what is exact is 1.
            "y": [None if value is None else math.floor(100.0 * value) / 100.0 for value in values],
        }
        for name, values in f1.items()
    ]
    chart = {
        "title": "F1 of pairs: 1 is exactly the true ones",
        "rows": [{"series": series, "zero": True, "log": False, "top": 1.0}],
        **{"strip": True, "xlog": along, "x": "λ, in logs" * along},
    }
    lost = [PENALTIES[name].label for name, each in f1.items() if each[-1] == 0.0 and not along]
    sentence = f"At this λ, none of the true pairs is left in {joined(lost)}." if lost else ""
    if along and all(value is not None for values in f1.values() for value in values):
        exact = {PENALTIES[name].label: [value == 1.0 for value in values] for name, values in f1.items()}
        sentence = say_where_exact(exact, strengths)
    return replace(picture, charts=[chart], state=("", "", sentence))


def _scale(dataset: Dataset) -> float | None:
    # Weights overshoot in the first epochs; on their scale, all later ones would look alike.
    return None if dataset.truth is None else 2.0 * float(np.abs(dataset.truth).max())


def panels_of(panels: Mapping[str, Sequence[FactorFrame]], dataset: Dataset) -> list[Panel]:
    """Return a panel for each regularizer; beside weights, those in truth."""
    truth = truth_of(dataset)
    drawn = [
        Panel(
            PENALTIES[name].label,
            frames,
            color=regularizer_color(name),
            gram_label="PPᵀ",
            note=PENALTIES[name].mechanism,
        )
        for name, frames in panels.items()
    ]
    if truth is not None:
        drawn.insert(0, truth_panel(dataset, truth, dataset.truth is not None, None))
    return drawn
