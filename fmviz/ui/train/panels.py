"""Panels of the page Train: what they are, and those of curves and classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine.interactions.weights import orders_of
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.figures import training as figures
from fmviz.figures.palette import regularizer_color
from fmviz.lab.background.job import JobView
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, truth_of
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.store.lowest import Lowest, lowest
from fmviz.metrics import RMSE, USED_BASES, Metric
from fmviz.stage import Mark
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.train.matrices import Look, order_name, true_counts

PARTS = {"pairs": "The strongest interactions", "quality": "Prediction and recovery", "curves": "Curves"}
"""The parts of the page by which links hide panels, and their words."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The state that the page shows.

    Attributes
    ----------
    experiment : Experiment
        What runs, or would.
    run : JobView or None
        The run; None before there is one.
    view : JobView or None
        The run, of one output.
    dataset : Dataset or None
        The data of that output, once they are loaded.
    words : str
        What is to be said where there is no run.
    look : Look or None
        The order that is looked at.
    compared : bool
        Whether the support is compared with the true one, pair by pair.
    x : str
        The axis of the curves.
    metric : Metric
        How predictions are measured.
    parts : bool
        Whether the parts of the objective are drawn.
    mark : Mark or None
        The cell that is explained.
    clickable : bool
        Whether a click on a cell is taken.
    """

    experiment: Experiment
    run: JobView | None
    view: JobView | None
    dataset: Dataset | None
    words: str = ""
    look: Look | None = None
    compared: bool = False
    x: str = "epoch"
    metric: Metric = RMSE
    parts: bool = False
    mark: Mark | None = None
    clickable: bool = False

    @cached_property
    def drawn(self) -> bool:
        """Whether the run has parameters that can be drawn."""
        view = self.view
        return (
            view is not None
            and self.dataset is not None
            and view.thinned is not None
            and bool(np.isfinite(view.thinned.values).all())
        )

    @property
    def fit(self) -> JobView:
        """The run, of one output, once there is one."""
        assert self.view is not None, "there is a run"
        return self.view

    @property
    def data(self) -> Dataset:
        """The data of that output, once they are loaded."""
        assert self.dataset is not None, "the data are loaded"
        return self.dataset

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """The records of the run, none before it has begun."""
        return () if self.view is None else self.view.history

    @cached_property
    def lowest(self) -> list[Lowest]:
        """The lowest objectives known for the problems of the run."""
        run = self.run
        data = "" if run is None or run.dataset is None else data_hash(run.dataset)
        return lowest(self.experiment, self.history, data, "" if run is None else run.id)

    @property
    def machine(self) -> Model:
        """The model, with the parameters that the run estimated."""
        return self.experiment.model if self.view is None else self.view.machine


@dataclass(frozen=True)
class Panel:
    """A panel of the page Train, below its settings.

    Attributes
    ----------
    name : str
        Names its elements.
    title : str or callable
        Stands above it; may depend on the `Scene`.
    part : str
        A key of `PARTS` by which links hide it, or "".
    applies : callable
        Whether a `Scene` has what it shows.
    plots : callable, optional
        Its curves: small on the stage, also while the run goes on, and large below.
    draw : callable, optional
        Draws a `Scene` with the page's settings below the stage, once the run does not go on.
    """

    name: str
    title: str | Callable[[Scene], str]
    part: str
    applies: Callable[[Scene], bool] = lambda scene: True
    plots: Callable[[Scene], list[figures.Plot]] | None = None
    draw: Callable[[Scene, Settings], None] | None = None

    def heading(self, scene: Scene) -> str:
        """Return the title of a scene."""
        words = self.title
        return words if isinstance(words, str) else words(scene)

    def shown(self, scene: Scene, settings: Settings) -> bool:
        """Return whether it applies and no link hides it."""
        return (not self.part or settings.shows(self.part, PARTS[self.part])) and self.applies(scene)


# ------------------------------------------------------------------------------------------------- curves


def _objective(scene: Scene) -> list[figures.Plot]:
    color = regularizer_color(scene.experiment.regularizer.name)
    if not scene.parts:
        return figures.convergence(color, [(each.after, each.value) for each in scene.lowest])
    notation = scene.machine.notation
    return figures.objective(
        color,
        pd.DataFrame(scene.history),
        penalty_p=notation.shrinkage_term,
        penalty_sparse=notation.penalty_term,
    )


def _uses(scene: Scene) -> list[figures.Plot]:
    names = set(scene.history[-1]) if scene.history else set()
    if "used_bases" in names:
        # They join all features; they are what is chosen.
        return [figures.Plot(USED_BASES, (figures.Curve("used_bases", "bases", figures.ORANGE),), zero=True)]
    orders = {f"used_interactions_{m}": order_name(m) for m in orders_of(scene.machine)}
    counts = {column: words for column, words in orders.items() if column in names}
    return figures.uses(counts, **true_counts(scene.machine, scene.dataset, bool(counts)))


def _recovery(scene: Scene) -> list[figures.Plot]:
    if scene.history:
        return figures.recovery(scene.history[-1])
    known = scene.dataset is not None and truth_of(scene.dataset) is not None
    return figures.recovery(("support_f1",) if known else ())


OBJECTIVE = Panel(
    "objective",
    lambda scene: "Objective" if scene.parts else "Convergence",
    "curves",
    plots=_objective,
)
USES = Panel("sparsity", "What the model uses", "curves", plots=_uses)
PREDICTION = Panel(
    "prediction",
    lambda scene: scene.metric.label,
    "quality",
    plots=lambda scene: figures.prediction(scene.metric, scene.experiment.validation > 0),
)
RECOVERY = Panel("recovery", "Recovery of the truth", "quality", plots=_recovery)


# ------------------------------------------------------------------------------------------------ classes


def _draw_confusion(scene: Scene, settings: Settings) -> None:
    run: Any = scene.run
    counts, rows = _confused(run.id, run.epoch, scene.experiment, run.parameters)
    chart(
        figures.confusion(counts, run.dataset.class_labels or ()),
        key="train_confusion",
        alt=f"Confusion matrix of {len(counts)} classes: true classes against predicted ones.",
    )
    st.caption(f"On the {plain(rows)} rows.")


@st.cache_resource(max_entries=16, show_spinner=False)
def _confused(run: str, epoch: int, _experiment: Experiment, _parameters: Parameters) -> Any:
    return Run.prepare(_experiment).confusion(_parameters)


CONFUSION = Panel(
    "confusion",
    "Which classes are confused",
    "quality",
    lambda scene: scene.drawn and scene.run.dataset.task in ("class", "ordinal"),  # type: ignore[union-attr]
    draw=_draw_confusion,
)
