"""Rows that a fit does not go along with: how far off, which are set aside, and which are wrong in truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from fmviz.engine.drive import Budget, never
from fmviz.engine.losses import LOSSES, Loss
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.wording import Wording
from fmviz.lab.runner import Run, split
from fmviz.lab.runs import found_caps

__all__ = [
    "Errors",
    "Suspicion",
    "caps_of",
    "compared_losses",
    "comparison",
    "errors_of",
    "fitted",
    "plain_run",
    "rows_table",
    "suspicions",
]

LISTED = 50
"""Rows of a list of suspicious ones."""
# A precision that is lower by so little is no difference.
_AS_WELL = 0.02
# What the deviation of a normal law is of the median of its sizes, and Huber's δ of the deviation.
_DEVIATION, _HUBER = 1.4826, 1.345
# Strengths of the plain robust machine, as a share of the typical square of a product: they hardly shrink.
_HARDLY = 1e-4


@dataclass(frozen=True, eq=False)
class Errors:
    """How far the predictions of a run are off.

    Attributes
    ----------
    rows : (n,) int ndarray
        Their places in the data.
    y, f : (n,) ndarray
        Their targets and predictions, encoded.
    binary : bool
        Whether y is ±1 and f a score.
    wrong : (n,) bool ndarray or None
        Which are wrong on purpose; None where none were made so.
    """

    rows: np.ndarray
    y: np.ndarray
    f: np.ndarray
    binary: bool
    wrong: np.ndarray | None = None

    @property
    def signed(self) -> np.ndarray:
        """The residual f − y, or of classes what is missing to a margin of 1, 1 − yf."""
        return 1.0 - self.y * self.f if self.binary else self.f - self.y

    @property
    def size(self) -> np.ndarray:
        """What rows are ranked by: |f − y|, or 1 − yf."""
        return self.signed if self.binary else np.abs(self.signed)

    def beyond(self, reach: float) -> np.ndarray:
        """Return which rows are further off than that."""
        return self.size > reach

    def ranked(self) -> np.ndarray:
        """Return the places among these rows, the furthest off first."""
        return np.argsort(-self.size, kind="stable")

    def recall_and_precision(self) -> tuple[np.ndarray, np.ndarray]:
        """Return both for every length of the list of rows that are furthest off."""
        assert self.wrong is not None, "the truth is known"
        hits = np.cumsum(self.wrong[self.ranked()])
        return hits / max(1, int(self.wrong.sum())), hits / np.arange(1, hits.size + 1)

    def precision(self, most: int = LISTED) -> float:
        """Return the share of the first rows of that list that are wrong in truth."""
        assert self.wrong is not None, "the truth is known"
        return float(self.wrong[self.ranked()[:most]].mean())


def errors_of(run: Run, parameters: Parameters, every: bool = False) -> Errors:
    """Return how far a run of one output is off in its training rows, with `every` in those kept out, too."""
    problem: Any = run.problem
    experiment, dataset = run.experiment, run.dataset
    share = experiment.validation
    rows, held_out = split(len(dataset.y), share, experiment.seed if share else 0)
    y, f, wrong = problem.y, problem.predict(parameters), dataset.wrong
    marked = None if wrong is None else wrong[rows]
    if every and run.validation is not None:
        design, others = run.validation
        rows, y = np.concatenate([rows, held_out]), np.concatenate([y, others])
        f = np.concatenate([f, problem.model.predict(design, parameters)])
        # Rows that are kept out have their true targets.
        marked = None if marked is None else np.concatenate([marked, np.zeros(held_out.size, dtype=bool)])
    return Errors(rows, y, f, problem.target.kind == "binary", marked)


def caps_of(loss: Loss) -> tuple[float, float] | None:
    """Return ε₁ and ε₁ + ε₂ of a loss with a tube or a cap, infinity for no cap; None for other losses."""
    if loss.majoriser is None:
        return None
    epsilon = float(loss.settings.get("epsilon", 0.0))
    return epsilon, epsilon + loss.majoriser.cap


# ---------------------------------------------------------------------------------------- the plain machine


def plain_run(run: Run, parameters: Parameters, loss: str = "squared", output: int = 0) -> Run:
    """Return the run with a loss that does not let go, and strengths that weigh as much beside it.

    Half the squared residual grows with the residual, a loss with a cap does not: where the latter has the
    strength λ, the former has λ times a typical residual of the rows that are kept. Of the robust machine it
    has ‖Z‖²_F, hardly shrunk.

    Parameters
    ----------
    run : Run
        Of one output.
    parameters : Parameters
        What it has come to: its residuals tell Huber's δ and the strengths.
    loss : {"squared", "huber", "logistic"}
        Which.
    output : int
        Which output the run is of, where its data have several.
    """
    problem: Any = run.problem
    typical = _typical(errors_of(run, parameters))
    kink = 1.0 if typical == 0.0 else _HUBER * typical
    params = tuple((one.name, kink) for one in LOSSES[loss].params if one.name == "delta")
    factor = typical if problem.loss.majoriser is not None else 1.0
    changes: dict[str, Any] = {}
    if isinstance(problem.model, RobustFM):
        squares = problem.design.power(2)
        size = float(np.square(problem.mean(squares @ np.ones(squares.shape[1])) / squares.shape[1]))
        changes = {"lambda_p": _HARDLY * size, "model_params": (("spectrum", "squared"),)}
    else:
        changes = {name: getattr(run.experiment, name) * factor for name in ("lambda_p", "lambda_sparse")}
    changes["lambda_w"] = run.experiment.lambda_w * factor
    return _with(run, output, loss, loss_params=params, **changes)


def _typical(errors: Errors) -> float:
    """Return the typical size of a residual, which outliers do not tell; of classes 1."""
    return 1.0 if errors.binary else _DEVIATION * float(np.median(errors.size)) or float(errors.size.mean())


def _with(run: Run, output: int, loss: str, **changes: Any) -> Run:
    anew: dict[str, Any] = {"loss_params": (), "caps": "given", "solver": "auto", "solver_params": ()}
    experiment = replace(run.experiment, loss=loss, changes=(), **(anew | changes))
    return Run.prepare(experiment.applicable()).of_output(output)


# ------------------------------------------------------------------------------------------ suspicious rows


@dataclass(frozen=True, eq=False)
class Suspicion:
    """The rows that look wrong under a loss.

    Attributes
    ----------
    loss, label : str
        Its name, and that for people.
    errors : Errors
        How far off all rows are when it is fitted, those that are kept out among them.
    aside : (n,) bool ndarray
        Which of these rows are set aside, or would be.
    ranked_by : str
        The label of the loss whose fit to the rows that are kept ranks all; empty where this one does.
    """

    loss: str
    label: str
    errors: Errors
    aside: np.ndarray
    ranked_by: str = ""

    @property
    def message(self) -> str:
        """How many rows are set aside, and what ranks them."""
        n, aside = self.aside.size, int(self.aside.sum())
        if not aside:
            return f"{self.label}: no row of {n:,} is set aside."
        told = f"{self.label}: {aside:,} of {n:,} rows are set aside."
        if not self.ranked_by:
            return told
        return (
            f"{told} A {self.ranked_by.lower()} fit to the others ranks the rows: a hinge leaves open how "
            "far beyond its margin a prediction lies."
        )

    @property
    def listed(self) -> np.ndarray:
        """The places in the data of the rows that look most wrong, the most suspicious first."""
        return self.errors.rows[self.errors.ranked()[:LISTED]]


def comparison(found: Sequence[Suspicion]) -> str:
    """Return in a sentence or two how lists compare: by the truth where it is known, else by what they share.

    `found` are what `suspicions` yields, the first that of the cap.
    """
    first, *others = found
    if not others:
        return ""
    if first.errors.wrong is not None:
        most = min(LISTED, max(1, int(first.errors.wrong.sum())))
        shares = {one.label: one.errors.precision(most) for one in found}
        told = ", ".join(f"{share:.2f} ({label})" for label, share in shares.items())
        words = f"Of the first {most} rows of each list, these shares are wrong in truth: {told}."
        ahead = max(shares[one.label] for one in others) - shares[first.label]
        if ahead >= -_AS_WELL:
            how = "better" if ahead > _AS_WELL else "as well"
            return f"{words} A loss without a cap ranks the rows {how} here."
        return f"{words} The cap ranks them better here."
    own = set(first.listed.tolist())
    told = ", ".join(f"{len(own.intersection(one.listed.tolist()))} ({one.label})" for one in others)
    return (
        f"Of its first {len(own)} rows, so many are also among the first {LISTED} without a cap: {told}. "
        "The fewer, the more the cap changes."
    )


def compared_losses(*, binary: bool) -> tuple[str, ...]:
    """Return the losses without a cap whose lists stand beside that of the cap."""
    return ("logistic", "huber", "squared") if binary else ("huber", "squared")


def suspicions(
    experiment: Experiment, parameters: Parameters, output: int = 0, should_stop: Callable[[], bool] = never
) -> Iterator[Suspicion]:
    """Fit a run anew with a cap, and with losses that have none; say which rows look wrong.

    Those without are Huber's and the squared one, and of classes the logistic one, too. A robust run, or one
    with a capped loss, is taken as it is in place of the first.

    Parameters
    ----------
    experiment, parameters
        Of a run, and of one of its outputs.
    output : int
        Which.
    should_stop : callable
        Asked between fits and epochs.

    Yields
    ------
    Suspicion
        First that of the cap, then those of the losses that it is compared with.
    """
    run = Run.prepare(experiment).of_output(output)
    problem: Any = run.problem
    own = problem.loss.majoriser
    if own is not None and np.isfinite(own.cap):
        capped, found = run, parameters
    else:
        capped = _capped(run, parameters, output, should_stop)
        found = fitted(capped, should_stop)
    yield _suspicion(capped, found, _fit_to_kept(capped, found, output, should_stop))
    for loss in compared_losses(binary=problem.target.kind == "binary"):
        if should_stop():
            return
        if run.experiment.loss == loss:
            yield _suspicion(run, parameters)
            continue
        plain = plain_run(capped, found, loss, output)
        yield _suspicion(plain, fitted(plain, should_stop))


def _capped(run: Run, parameters: Parameters, output: int, should_stop: Callable[[], bool]) -> Run:
    """Return a run with a cap in place of its loss, and strengths that weigh as much beside it."""
    errors = errors_of(run, parameters)
    factor = 1.0 / (_typical(errors) or 1.0)
    names = ("lambda_w", "lambda_p", "lambda_sparse")
    changes = {name: getattr(run.experiment, name) * factor for name in names}
    capped = _with(run, output, "capped_hinge" if errors.binary else "capped", **changes)
    if errors.binary or not isinstance(capped.problem, Problem):
        return capped
    asked = replace(capped, experiment=replace(capped.experiment, caps="auto"))
    return asked.with_caps(should_stop, found_caps.find)


def fitted(run: Run, should_stop: Callable[[], bool]) -> Parameters:
    """Return what a run comes to."""
    experiment = run.experiment
    budget = Budget(experiment.max_epochs, None, experiment.tol, report_every=None)
    *_, end = run.stream(budget, should_stop)
    return end.parameters


def _suspicion(run: Run, parameters: Parameters, ranking: tuple[Run, Parameters] | None = None) -> Suspicion:
    loss = cast(Problem, run.problem).loss
    errors = errors_of(run, parameters, every=True)
    aside = errors.beyond(_reach(run))
    if ranking is None:
        return Suspicion(loss.name, loss.label, errors, aside)
    by = cast(Problem, ranking[0].problem).loss.label
    return Suspicion(loss.name, loss.label, errors_of(*ranking, every=True), aside, by)


def _reach(run: Run) -> float:
    """Return how far off a row is from which on it is set aside; infinity where none is."""
    caps = caps_of(cast(Problem, run.problem).loss)
    return np.inf if caps is None else caps[1]


def _fit_to_kept(
    run: Run, parameters: Parameters, output: int, should_stop: Callable[[], bool]
) -> tuple[Run, Parameters] | None:
    """Return a logistic run of the rows that a capped hinge keeps; None for values, or without both classes.

    The hinge is 0 wherever y·f ≥ 1: how large f is there, and so how far off a row with the other label, is
    left open.
    """
    errors = errors_of(run, parameters)
    kept = np.flatnonzero(~errors.beyond(_reach(run)))
    if not errors.binary or np.unique(errors.y[kept]).size < 2:
        return None
    smooth = plain_run(run, parameters, "logistic", output)
    fitted_to = replace(smooth, problem=smooth.problem.of_rows(kept))
    return smooth, fitted(fitted_to, should_stop)


def rows_table(dataset: Dataset, errors: Errors, places: np.ndarray, most: int | None = None) -> pd.DataFrame:
    """Return rows with their values, the target and the prediction, in the units that people tell them in.

    Parameters
    ----------
    dataset : Dataset
        Of one output.
    errors : Errors
        Of the fit.
    places : int ndarray
        Which of its rows, by their place among them.
    most : int, optional
        At most so many attributes; all by default.

    Returns
    -------
    DataFrame
        ``row``, counted from 1, ``target``, ``prediction``, ``off by``, and with a known truth ``wrong in
        truth``; then the attributes.
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
        told = np.array([[wording.prediction(a), wording.prediction(b)] for a, b in zip(y, f, strict=True)])
        told = told.reshape(-1, 2)
        table["target"], table["prediction"] = told.T
        table["off by"] = told[:, 1] - told[:, 0]
    if errors.wrong is not None:
        table["wrong in truth"] = errors.wrong[places]
    every = attributes.all[:most]
    held = [attributes.row(int(row)) for row in rows]
    columns = {
        one.name: [one.value(x) if one.kind == "number" else one.words_for(one.value(x)) for x in held]
        for one in every
    }
    return pd.concat([table, pd.DataFrame(columns, index=table.index)], axis=1)
