"""Outliers: rows ranked by their residuals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.fit import Budget, never
from fmviz.engine.losses import LOSSES, Loss
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.parameters import Parameters
from fmviz.engine.schedule import STRENGTHS
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.wording import Wording
from fmviz.lab.runner import Run
from fmviz.lab.runs import found_caps

LISTED = 50
"""Maximum number of listed outliers."""


@dataclass(frozen=True, eq=False)
class Errors:
    """Targets and predictions of a run, and their residuals.

    Attributes
    ----------
    rows : (n,) int ndarray
        Indices in the data.
    y, f : (n,) ndarray
        Encoded targets and predictions.
    binary : bool
        Whether y is ±1 and f a score.
    wrong : (n,) bool ndarray or None
        Mask of rows with synthetic errors; None without such rows.
    """

    rows: np.ndarray
    y: np.ndarray
    f: np.ndarray
    binary: bool
    wrong: np.ndarray | None = None

    @property
    def signed(self) -> np.ndarray:
        """The residual f − y, or the margin violation 1 − yf of classes."""
        return 1.0 - self.y * self.f if self.binary else self.f - self.y

    @property
    def size(self) -> np.ndarray:
        """The ranking criterion: |f − y|, or 1 − yf."""
        return self.signed if self.binary else np.abs(self.signed)

    def beyond(self, reach: float) -> np.ndarray:
        """Return a mask of the rows with a larger error."""
        return self.size > reach


def errors_of(run: Run, parameters: Parameters, every: bool = False) -> Errors:
    """Return the errors of a single-output run on its training rows, or with `every` on all rows."""
    problem: Any = run.problem
    rows, held_out = run.rows
    y, f, wrong = problem.y, problem.predict(parameters), run.dataset.wrong
    marked = None if wrong is None else wrong[rows]
    if every and run.validation is not None:
        design, others = run.validation
        rows, y = np.concatenate([rows, held_out]), np.concatenate([y, others])
        f = np.concatenate([f, problem.model.predict(design, parameters)])
        # Validation rows have their true targets.
        marked = None if marked is None else np.concatenate([marked, np.zeros(held_out.size, dtype=bool)])
    f = problem.loss.mean(f)
    return Errors(rows, y, f, problem.target.kind == "binary", marked)


def caps_of(loss: Loss) -> tuple[float, float] | None:
    """Return ε₁ and ε₁ + ε₂ of a loss with a tube or cap (infinite without cap); None for other losses."""
    if loss.majoriser is None:
        return None
    epsilon = float(loss.settings.get("epsilon", 0.0))
    return epsilon, epsilon + loss.majoriser.cap


@dataclass(frozen=True, eq=False)
class Suspicion:
    """Outliers by a fit with a capped loss.

    Attributes
    ----------
    label : str
        The label of the loss.
    errors : Errors
        The errors of all rows, including held-out rows.
    aside : (n,) bool ndarray
        Mask of the rows set aside.
    dataset : Dataset
        The data, with the target as in the errors.
    logistic : bool
        Whether rows are ranked by a logistic fit to the remaining rows.
    """

    label: str
    errors: Errors
    aside: np.ndarray
    dataset: Dataset
    logistic: bool = False

    @property
    def message(self) -> str:
        """A sentence on the number of outliers and the ranking of rows."""
        n, aside = self.aside.size, int(self.aside.sum())
        if not aside:
            return f"{self.label}: none of {n:,} rows is set aside."
        message = f"{self.label}: {aside:,} of {n:,} rows are set aside."
        if not self.logistic:
            return message
        return (
            f"{message} Rows are ranked by a logistic fit to the others, because the hinge loss does not "
            "determine scores beyond the margin."
        )

    @property
    def listed(self) -> np.ndarray:
        """The indices of the rows with the largest errors, in descending order."""
        return np.argsort(-self.errors.size, kind="stable")[: max(LISTED, int(self.aside.sum()))]


def suspicious_rows(
    experiment: Experiment, parameters: Parameters, output: int = 0, should_stop: Callable[[], bool] = never
) -> Suspicion:
    """Return the outliers of a run, from a new fit with a capped loss if the run has none.

    Parameters
    ----------
    experiment, parameters
        The settings of a run, and the parameters of one of its outputs.
    output : int
        The index of the output.
    should_stop : callable
        Polled between epochs.
    """
    run = Run.prepare(experiment).of_output(output)
    problem: Any = run.problem
    if problem.loss.majoriser is None or not np.isfinite(problem.loss.majoriser.cap):
        run = _capped(run, parameters, output, should_stop)
        parameters = _fitted(run, should_stop)
    loss = run.problem.loss
    caps, errors = caps_of(loss), errors_of(run, parameters, every=True)
    aside = errors.beyond(np.inf if caps is None else caps[1])
    training = errors_of(run, parameters)
    kept = np.flatnonzero(~training.beyond(np.inf if caps is None else caps[1]))
    if not errors.binary or np.unique(training.y[kept]).size < 2:
        return Suspicion(loss.label, errors, aside, run.dataset)
    # The hinge loss is 0 for y·f ≥ 1: there it determines neither f nor the error of a flipped row.
    smooth = _logistic(run, output)
    smooth_fit = _fitted(replace(smooth, problem=smooth.problem.of_rows(kept)), should_stop)
    return Suspicion(loss.label, errors_of(smooth, smooth_fit, every=True), aside, run.dataset, logistic=True)


def _capped(run: Run, parameters: Parameters, output: int, should_stop: Callable[[], bool]) -> Run:
    """Return a run with a capped loss and strengths rescaled to it.

    The gradient of half the squared residual is the residual, that of a capped loss is at most 1. The
    equivalent of the strength λ is therefore λ divided by a robust estimate of the typical residual.
    """
    errors, typical = errors_of(run, parameters), 1.0
    if not errors.binary:
        # Standard deviation of a normal distribution over its median absolute deviation.
        typical = 1.4826 * float(np.median(errors.size)) or float(errors.size.mean()) or 1.0
    changes = {name: getattr(run.experiment, name) / typical for name in STRENGTHS}
    capped = _with(run, output, "capped_hinge" if errors.binary else "capped", **changes)
    if errors.binary:
        return capped
    asked = replace(capped, experiment=replace(capped.experiment, caps="auto"))
    return asked.with_caps(should_stop, found_caps.find)


def _logistic(run: Run, output: int) -> Run:
    """Return a run of classes with the logistic loss; for the robust machine, with a weak ‖Z‖²_F."""
    problem: Any = run.problem
    if not isinstance(problem.model, RobustFM):
        return _with(run, output, "logistic")
    squares = problem.design.power(2)
    size = float(np.square(problem.mean(squares @ np.ones(squares.shape[1])) / squares.shape[1]))
    # A small fraction of the typical squared product causes little shrinkage.
    return _with(run, output, "logistic", lambda_p=1e-4 * size, model=RobustFM("squared"))


def _with(run: Run, output: int, loss: str, **changes: Any) -> Run:
    own = replace(run.experiment, loss=LOSSES[loss], caps="given", solver="auto", changes=(), **changes)
    return Run.prepare(own.applicable()).of_output(output)


def _fitted(run: Run, should_stop: Callable[[], bool]) -> Parameters:
    experiment = run.experiment
    *_, end = run.stream(Budget(experiment.max_epochs, None, experiment.tol, report_every=None), should_stop)
    return end.parameters


def rows_table(dataset: Dataset, errors: Errors, places: np.ndarray, most: int | None = None) -> pd.DataFrame:
    """Return a table of rows with target, prediction and attributes in original units.

    Parameters
    ----------
    dataset : Dataset
        The data with a single output.
    errors : Errors
        The errors of the fit.
    places : int ndarray
        Indices of rows in `errors`.
    most : int, optional
        Maximum number of attributes, by default all.

    Returns
    -------
    DataFrame
        ``row``, counted from 1, ``target``, ``prediction``, ``off by``, with known errors ``wrong in truth``,
        and the attributes.
    """
    attributes = Attributes(dataset)
    wording = Wording(attributes, "squared")
    labels = dataset.class_labels or ("-1", "+1")
    rows, y, f = errors.rows[places], errors.y[places], errors.f[places]
    table = pd.DataFrame({"row": rows + 1})
    if errors.binary:
        table["target"] = [labels[int(value > 0)] for value in y]
        table["prediction"] = [labels[int(value >= 0)] for value in f]
        table["off by"] = errors.size[places]
    else:
        decoded = [np.array([wording.prediction(value) for value in part]) for part in (y, f)]
        table["target"], table["prediction"] = decoded
        table["off by"] = decoded[1] - decoded[0]
    if errors.wrong is not None:
        table["wrong in truth"] = errors.wrong[places]
    values = [attributes.row(int(row)) for row in rows]
    columns = {
        attribute.name: [
            attribute.value(x) if attribute.kind == "number" else attribute.words_for(attribute.value(x))
            for x in values
        ]
        for attribute in attributes.all[:most]
    }
    return pd.concat([table, pd.DataFrame(columns, index=table.index)], axis=1)
