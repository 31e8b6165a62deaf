"""Models of several regularizers side by side: along λ, epoch by epoch, and why a pair is zero."""

from __future__ import annotations

import math
import re
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
from fmviz.lab.search.arena import SEEDS, Starts
from fmviz.lab.search.strength_path import EPOCHS, PathPlan, learn, path_program
from fmviz.stage import FactorFrame, Mark, Panel, View
from fmviz.stage.pictures import ASK, Picture
from fmviz.ui import widgets
from fmviz.ui.components import matrix_view, stage
from fmviz.ui.settings.state import Settings
from fmviz.ui.train.matrices import truth_panel
from fmviz.ui.watching import failure, shared_task, watch

STORY = (
    "A **factorization machine** predicts from pairs of features; each pair's weight is one cell of **PPᵀ**. "
    "A **regularizer** of strength **λ** sets weights to exactly zero and leaves few pairs to interpret.",
    "**Four regularizers, trained on the same data**: pairs within a group are true, pairs across groups or "
    "with noise features are not. Drag λ: which regularizer recovers the groups?",
)
"""The introduction to the shipped models, in Markdown."""
_LEAST_WIDTH = 140
_ALONG = {"lambda": "Along λ", "epochs": "Epoch by epoch"}
# Maximum payload of the frames sent to the browser, in bytes.
_MOST_BYTES = 6_000_000


def how(name: str) -> ParamSpec:
    """Declare the setting for the slider's axis: strengths, or epochs at a fixed strength."""
    return ParamSpec(
        name,
        "choice",
        "lambda",
        choices=tuple(_ALONG),
        help="Trained models along λ, or training at this λ, epoch by epoch from one start.",
    )


def most_frames(plan: PathPlan) -> int:
    """Return the maximum number of frames per regularizer."""
    d, rank = _data(plan).X.shape[1], plan.base.rank
    return _MOST_BYTES // (len(plan.regularizers) * max(d * d, 4 * d * rank))


def draw(
    settings: Settings,
    plan: PathPlan,
    task: Task,
    names: tuple[str, str],
    height: int,
    *,
    starts: Starts | None = None,
) -> None:
    """Draw models under one λ: along λ or epoch by epoch, with explanations of weights.

    Parameters
    ----------
    settings : Settings
        The settings of the page.
    plan : PathPlan
        The fits.
    task : Task
        The task that computes the fits; its items are the fits.
    names : (str, str)
        Names of the settings for the strength and for the slider's axis.
    height : int
        Maximum height of a matrix, in CSS pixels.
    starts : Starts, optional
        Results of several starts; the plan fits the median one. Its pair is explained for the regularizer in
        the setting `why`.
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
    epochs, shown = settings[along] == "epochs", task
    if epochs:
        making = partial(starts.learn if starts else learn, plan, nearest)
        shown = shared_task(f"epochs:{plan.digest}:{nearest!r}", making)
    asked = starts is None or settings.shows("why", "Why")
    options: dict[str, Any] = {
        "max_height": height,
        "min_width": _LEAST_WIDTH,
        "zoom": False,
        "named": False,
        "clickable": "explained" if asked else False,
        "ask": ASK if asked else "",
    }
    if starts is not None and settings["why"] in plan.regularizers:
        panel = (truth_of(_data(plan)) is not None) + plan.regularizers.index(settings["why"])
        options["mark"] = Mark(*starts.pair, panel)
    if epochs:
        _draw_epochs(plan, shown, f"{settings.page}_epochs", options, starts)
    else:
        driver = settings.key(strength) if settings.shows(strength) else nearest
        key, curves = f"{settings.page}_models", settings.shows("curves", "Curves along λ")
        watch(
            shown,
            partial(_draw_path, plan, driver, key, options, curves, starts),
            partial(_words, plan.total),
            lambda view: len({fit.experiment.regularizer for fit in view.items}),
        )
    if words := [
        f"**{penalty.label}**, {penalty.stands_for}."
        for penalty in map(PENALTIES.__getitem__, plan.regularizers)
        if penalty.stands_for
    ]:
        with st.expander("What the regularizers penalize", icon=":material/functions:"):
            st.markdown(" ".join(words))
    if shown.state is TaskState.FINISHED:
        widgets.save_page(
            f"{settings.page}_page",
            partial(_saved, plan, shown, nearest, epochs, starts),
            f"{settings.page}-models",
        )


def _draw_path(
    plan: PathPlan,
    driver: str | float,
    key: str,
    options: Mapping[str, Any],
    curves: bool,
    starts: Starts | None,
    view: TaskView,
) -> None:
    """Draw the finished fits of a plan; `driver` is the slider's key, or the strength."""
    if view.state is TaskState.FAILED:
        failure(view)
        return
    panels = models_along(plan, view, plan.lambdas if isinstance(driver, str) else (driver,))
    picture = _picture(panels, _data(plan), along=True, curves=curves, starts=starts)
    driven: dict[str, Any] = {"driver_key": driver, "player": False} if isinstance(driver, str) else {}
    stage(picture.payload(**driven, **options), key=key)


def models_along(plan: PathPlan, view: TaskView, shown: Sequence[float]) -> dict[str, list[FactorFrame]]:
    """Return the frames of every regularizer at some strengths, for finished fits."""
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
        notice = "" if nearest == strength else f"Nearest finished: λ = {nearest:g}"
        return replace(picture, notice=notice)

    return {name: [frame(name, strength) for strength in shown] for name in plan.regularizers}


def _draw_epochs(
    plan: PathPlan, task: Task, key: str, options: Mapping[str, Any], starts: Starts | None
) -> None:
    """Draw the training of a task's models from one random start."""

    def body(view: TaskView) -> None:
        if view.state is TaskState.FAILED:
            failure(view)
            return
        if view.state.active:
            waiting = [_waiting(_data(plan), plan.base.rank, "")]
            picture = _picture(dict.fromkeys(plan.regularizers, waiting), _data(plan))
            stage(picture.payload(**options), key=key)
            return
        picture = _picture(_epochs(plan, view), _data(plan), starts=starts)
        stage(picture.payload(player=True, **options), key=key)
        st.caption("From one random start. Along λ, each fit is warm-started at the previous one.")

    watch(task, body, partial(_words, len(plan.regularizers)))


def _saved(plan: PathPlan, task: Task, strength: float, epochs: bool, starts: Starts | None) -> str:
    if epochs:
        return page(
            f"epoch by epoch at λ = {strength:g}",
            plan.base,
            _epochs(plan, task.view()),
            along="epochs",
            starts=starts,
        )
    return page_along(plan, task.view(), strength, starts)


def page_along(plan: PathPlan, view: Any, strength: float, starts: Starts | None = None) -> str:
    """Return the fits among the items of a view as a page, with the program that makes them."""
    start, panels = plan.lambdas.index(strength), models_along(plan, view, plan.lambdas)
    program = path_program(plan, SEEDS if starts else ())
    return page("along λ", plan.base, panels, start=start, starts=starts, program=program)


def page(
    ending: str,
    base: Experiment,
    panels: Mapping[str, Sequence[FactorFrame]],
    *,
    start: int | None = None,
    charts: Sequence[Any] = (),
    notes: Sequence[str] = (),
    along: str = "values of λ",
    starts: Starts | None = None,
    **sections: Any,
) -> str:
    """Return models of several regularizers as a page, with a slider for λ, or for epochs without a start.

    The heading consists of data, regularizers and `ending`. Below are the `sections` of `fmviz.report.page`.
    """
    dataset = load_dataset(base.dataset)
    if start is not None:
        panels = {
            name: [replace(frame, key=f"λ = {frame.key}") for frame in frames]
            for name, frames in panels.items()
        }
    own = (
        _picture(panels, dataset, along=start is not None, curves=along != "seeds", starts=starts)
        if any(panels.values())
        else Picture()
    )
    picture = replace(own, charts=charts or own.charts, start=start, along=along)
    chosen = [PENALTIES[name] for name in panels]
    data = "Planted interactions" if starts else dataset.title
    story = () if starts is None else STORY[: 1 if start is None else 2]
    return report.page(
        f"{data}: {joined(each.label for each in chosen)} {ending}",
        [*(text.replace("*", "") for text in story), *notes],
        [("", picture)],
        penalties=[f"{each.label}, {each.stands_for}." for each in chosen if each.stands_for],
        settings=report.listed_settings(
            {
                **{n: value for n, value in base.to_dict().items() if n not in ("lambda_sparse", "solver")},
                "regularizer": ", ".join(each.label for each in chosen),
            }
        ),
        **sections,
    )


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
    return f"{len(view.items)} of {total} models trained in {view.elapsed:.0f} s.", len(view.items) / total


def _data(plan: PathPlan) -> Dataset:
    return load_dataset(plan.base.dataset)


def draw_empty(names: Sequence[str], dataset: Dataset, key: str, height: int, notice: str) -> None:
    """Draw empty matrices for some regularizers, beside the truth."""
    draw_panels({name: [_waiting(dataset, 1, "", notice)] for name in names}, dataset, key, height)


def _waiting(dataset: Dataset, rank: int, key: str, notice: str = "Training …") -> FactorFrame:
    return FactorFrame(np.zeros((dataset.X.shape[1], rank)), key, notice=notice)


def fitted(P: np.ndarray, key: str, dataset: Dataset) -> FactorFrame:
    """Return the frame of factors, shape (d, rank)."""
    return FactorFrame(P, key, describe_support(metrics.used_pairs(P), truth_of(dataset)))


def draw_panels(panels: Mapping[str, Sequence[FactorFrame]], dataset: Dataset, key: str, height: int) -> None:
    """Draw the frames that `fitted` returns, see `panels_of`."""
    drawn = panels_of(panels, dataset)
    view = View(
        drawn,
        show="gram",
        columns=len(drawn),
        min_width=_LEAST_WIDTH,
        gram_scale=_scale(dataset),
        max_height=height,
        feature_names=dataset.feature_names,
    )
    matrix_view(view, key=key)


def _picture(
    panels: Mapping[str, Sequence[FactorFrame]],
    dataset: Dataset,
    *,
    along: bool = False,
    curves: bool = True,
    starts: Starts | None = None,
) -> Picture:
    """Return models side by side, `along` λ or epochs, and `curves` of their F1 of pairs."""
    picture = Picture(
        panels_of(panels, dataset),
        dataset.feature_names,
        scale=_scale(dataset),
        along="values of λ" if along else "epochs",
    )
    frames, truth = next(iter(panels.values())), truth_of(dataset)
    if truth is None or len(frames) == 1 or not curves:
        return picture
    # Unfinished fits have no value.
    f1 = (
        starts.f1
        if starts and along
        else {
            name: np.array([[np.nan if f.notice else metrics.support_f1(truth, f.values) for f in frames]])
            for name, frames in panels.items()
        }
    )
    strengths = [float(frame.key.removeprefix("λ = ")) for frame in frames] if along else []
    series: list[dict[str, Any]] = [
        {
            "name": PENALTIES[name].label,
            "color": regularizer_color(name),
            "x": strengths or list(range(len(values))),
            # Rounded down: 1 means exact.
            "y": [None if math.isnan(value) else math.floor(100.0 * value) / 100.0 for value in values],
            "thin": thin,
        }
        for thin in (True, False)
        for name, each in f1.items()
        # Of two middle ones the lower: a line between two clusters of starts would be true of none.
        for values in (each if thin else [np.quantile(each, 0.5, axis=0, method="lower")])
        if len(each) > 1 or not thin
    ]
    chart = {
        "title": "F1 of pairs (1: exactly the true pairs)"
        + f"; thin: {len(SEEDS)} starts, bold: their median" * bool(starts and along),
        "rows": [{"series": series, "zero": True, "log": False, "top": 1.0}],
        **{"strip": True, "xlog": along, "x": "λ, log scale" * along},
    }
    lost = [PENALTIES[name].label for name, each in f1.items() if each[0, -1] == 0.0 and not along]
    sentence = f"At this λ, {joined(lost)} selects none of the true pairs." if lost else ""
    if starts or (along and not np.isnan([*f1.values()]).any()):
        given, at = (starts.f1, starts.plan.lambdas) if starts else (f1, strengths)
        words = say_where_exact({PENALTIES[name].label: each == 1.0 for name, each in given.items()}, at)
        sentence = f"{sentence} Along λ, {words}".strip()
    if starts and along:
        sentence += f" Matrices: the start of median F1, seed {starts.seed} of {SEEDS[0]} to {SEEDS[-1]}."
    return replace(picture, charts=[chart], state=("", "", sentence))


def _scale(dataset: Dataset) -> float | None:
    # Weights overshoot in the first epochs; on that scale, all later epochs would look alike.
    return None if dataset.truth is None else 2.0 * float(np.abs(dataset.truth).max())


def _notes(name: str) -> tuple[str, str]:
    """Return the mechanism of a regularizer as a note on a pair at zero, and on another pair."""
    every = PENALTIES[name].mechanism
    law = re.split(r"(?<=[.:]) ", every)[0].removesuffix(":").removesuffix(".") + "." * bool(every)
    return (every, law) if PENALTIES[name].parts_pairs else (law, every)


def panels_of(panels: Mapping[str, Sequence[FactorFrame]], dataset: Dataset) -> list[Panel]:
    """Return a panel for each regularizer and, for weights, one of the true weights."""
    truth = truth_of(dataset)
    drawn = [
        Panel(
            PENALTIES[name].label,
            frames,
            color=regularizer_color(name),
            gram_label="PPᵀ",
            notes=_notes(name),
        )
        for name, frames in panels.items()
    ]
    if truth is not None:
        drawn.insert(0, truth_panel(dataset, truth, dataset.truth is not None, None))
    return drawn
