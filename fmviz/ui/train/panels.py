"""Panels of the page Train: their definition, and the panels of curves and classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import streamlit as st

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
"""The parts of the page by which links hide panels, with their labels."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The state of the page.

    Attributes
    ----------
    experiment : Experiment
        The experiment of the run, or of the settings.
    run : JobView or None
        The run, if any.
    view : JobView or None
        The run of a single output.
    dataset : Dataset or None
        The data of that output, if loaded.
    words : str
        Message in place of a run.
    look : Look or None
        The displayed order.
    compared : bool
        Whether the support is compared with the truth, pair by pair.
    x : str
        The axis of the curves.
    metric : Metric
        Metric of predictions.
    mark : Mark or None
        The explained cell.
    clickable : bool
        Whether cells respond to clicks.
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
    mark: Mark | None = None
    clickable: bool = False

    @cached_property
    def drawn(self) -> bool:
        """Whether the run has parameters to draw."""
        view = self.view
        return (
            view is not None
            and self.dataset is not None
            and view.thinned is not None
            and bool(np.isfinite(view.thinned.values).all())
        )

    @property
    def fit(self) -> JobView:
        """The run of a single output; requires a run."""
        assert self.view is not None, "there is a run"
        return self.view

    @property
    def data(self) -> Dataset:
        """The data of that output; requires loaded data."""
        assert self.dataset is not None, "the data are loaded"
        return self.dataset

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """The records of the run, empty before its start."""
        return () if self.view is None else self.view.history

    @cached_property
    def lowest(self) -> list[Lowest]:
        """The lowest objectives known for the problems of the run."""
        run = self.run
        data = "" if run is None or run.dataset is None else data_hash(run.dataset)
        return lowest(self.experiment, self.history, data, "" if run is None else run.id)

    @property
    def machine(self) -> Model:
        """The model, with parameters estimated by the run."""
        return self.experiment.model if self.view is None else self.view.machine


@dataclass(frozen=True)
class TrainPanel:
    """A panel of the page Train, below its settings.

    Attributes
    ----------
    name : str
        Prefix of the keys of its elements.
    title : str or callable
        Heading; may depend on the `Scene`.
    part : str
        The key of `PARTS` by which links hide the panel, or "".
    applies : callable
        Whether the panel applies to a `Scene`.
    plots : callable, optional
        Curves of the panel: small on the stage, also during a run, and large below.
    draw : callable, optional
        Draws a `Scene` with the page's settings below the stage, when the run is inactive.
    """

    name: str
    title: str | Callable[[Scene], str]
    part: str
    applies: Callable[[Scene], bool] = lambda scene: True
    plots: Callable[[Scene], list[figures.Plot]] | None = None
    draw: Callable[[Scene, Settings], None] | None = None

    def heading(self, scene: Scene) -> str:
        """Return the heading for a scene."""
        words = self.title
        return words if isinstance(words, str) else words(scene)

    def shown(self, scene: Scene, settings: Settings) -> bool:
        """Return whether the panel applies and no link hides it."""
        return (not self.part or settings.shows(self.part, PARTS[self.part])) and self.applies(scene)


# ------------------------------------------------------------------------------------------------- curves


def _convergence(scene: Scene) -> list[figures.Plot]:
    color = regularizer_color(scene.experiment.regularizer.name)
    return figures.convergence(color, [(each.after, each.value) for each in scene.lowest])


def _uses(scene: Scene) -> list[figures.Plot]:
    names = set(scene.history[-1]) if scene.history else set()
    if "used_bases" in names:
        # Bases involve all features; the bases themselves are selected.
        return [figures.Plot(USED_BASES, (figures.Curve("used_bases", "bases", figures.ORANGE),), zero=True)]
    orders = {f"used_interactions_{m}": order_name(m) for m in scene.machine.orders}
    counts = {column: words for column, words in orders.items() if column in names}
    return figures.uses(counts, **true_counts(scene.machine, scene.dataset, bool(counts)))


def _recovery(scene: Scene) -> list[figures.Plot]:
    if scene.history:
        return figures.recovery(scene.history[-1])
    known = scene.dataset is not None and truth_of(scene.dataset) is not None
    return figures.recovery(("support_f1",) if known else ())


OBJECTIVE = TrainPanel(
    "objective",
    "Convergence, log scale",
    "curves",
    plots=_convergence,
)
USES = TrainPanel("sparsity", "Used features and interactions", "curves", plots=_uses)
PREDICTION = TrainPanel(
    "prediction",
    lambda scene: scene.metric.label,
    "quality",
    plots=lambda scene: figures.prediction(scene.metric, scene.experiment.validation > 0),
)
RECOVERY = TrainPanel("recovery", "Recovery of the truth", "quality", plots=_recovery)


# ------------------------------------------------------------------------------------------------ classes


def _draw_confusion(scene: Scene, settings: Settings) -> None:
    run: Any = scene.run
    counts, rows = _confused(run.id, run.epoch, scene.experiment, run.parameters)
    chart(
        figures.confusion(counts, run.dataset.class_labels or ()),
        key="train_confusion",
        alt=f"Confusion matrix of {len(counts)} classes, true against predicted.",
    )
    st.caption(f"On the {plain(rows)} rows.")


@st.cache_resource(max_entries=16, show_spinner=False)
def _confused(run: str, epoch: int, _experiment: Experiment, _parameters: Parameters) -> Any:
    return Run.prepare(_experiment).confusion(_parameters)


CONFUSION = TrainPanel(
    "confusion",
    "Confusion matrix",
    "quality",
    lambda scene: scene.drawn and scene.run.dataset.task in ("class", "ordinal"),  # type: ignore[union-attr]
    draw=_draw_confusion,
)
