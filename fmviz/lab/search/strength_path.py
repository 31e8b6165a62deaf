"""Fit several regularizers along a grid of strengths λ."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from fmviz.engine.compatibility import why_not
from fmviz.engine.drive import Budget, never
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Formulation
from fmviz.lab.catalog import DataChoice
from fmviz.lab.experiment import Experiment, name_of, suggested
from fmviz.lab.interpretation.threshold import emptying_strength, lambda_max
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.runs.program import experiment_source, opening
from fmviz.metrics import COLUMNS, Metric
from fmviz.paths import Order, iterate_path, iterate_selection, onwards
from fmviz.paths.path import FALL, path_solver

_Fit = TypeVar("_Fit")

METHODS = tuple(
    name
    for name, penalty in PENALTIES.items()
    if not penalty.smooth and penalty.exact_prox and why_not(Formulation.build("fm", penalty)) is None
)
"""The regularizers of a factorization machine with an exact operator; ridge makes nothing sparse."""


MOST_NUMBERS = 3_000_000
"""The entries of P, over all fits of a plan, that are kept for pictures: 24 MB."""


def strengths(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return so many strengths from `low` to `high`, evenly spaced on a log scale, to four digits.

    Raises
    ------
    ValueError
        If the ends are not in order.
    """
    if not 0.0 < low < high:
        raise ValueError(
            f"The lowest λ, {low:g}, must be above 0 and below the highest, {high:g}; move them apart."
        )
    return tuple(dict.fromkeys(float(f"{x:.4g}") for x in np.geomspace(low, high, count)))


def suggested_range(dataset: str | DataChoice) -> tuple[float, float]:
    """Return powers of ten about two decades below and above the strength suggested for a data set."""
    middle = math.log10(suggested(dataset, "fm").lambda_sparse or 1.0)
    return 10.0 ** round(middle - 2), 10.0 ** round(middle + 2)


def range_to_empty(base: Experiment, regularizers: Sequence[str]) -> tuple[float, float]:
    """Return the ends of a grid: the λ that leaves no interaction, rounded up, and a thousandth of it.

    It is the largest λ_max of the regularizers, or where they have none, what comes near it. Where nothing
    is known the ends are those of `suggested_range`.
    """
    each = [replace(base, regularizer=PENALTIES[name]) for name in regularizers]
    known = [bound[1] for variant in each if (bound := lambda_max(variant)) and bound[1]]
    known = known or [top for variant in each if (top := emptying_strength(variant))]
    if not known:
        return suggested_range(base.dataset)
    decade = 10.0 ** math.floor(math.log10(max(known)))
    digit = next(step for step in (1, 2, 3, 5, 10) if step * decade >= max(known) * (1.0 - 1e-9))
    high = float(f"{digit * decade:.1g}")
    return float(f"{high / 1_000:.1g}"), high


@dataclass(frozen=True)
class PathPlan:
    """What is to be fitted.

    Attributes
    ----------
    base : Experiment
        The settings that all fits share.
    regularizers : tuple of str
        One path each.
    lambdas : tuple of float
        The strengths λ.
    order : {"onwards", "up", "down", "cold"}
        Fits begin at that of the next smaller strength, of the next larger one, or anew. "onwards" is down
        for regularizers that let P leave 0, and up for the others.
    """

    base: Experiment
    regularizers: tuple[str, ...]
    lambdas: tuple[float, ...]
    order: Order | Literal["onwards"] = "up"

    @property
    def total(self) -> int:
        """The number of fits."""
        return len(self.regularizers) * len(self.lambdas)

    @property
    def digest(self) -> str:
        """A short name of the plan, the same in every process."""
        parts = [self.base.to_json(), self.regularizers, self.lambdas, self.order]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]

    def method(self, regularizer: str) -> Experiment:
        """Return the settings of a path, with the solver and the parameters that it takes along a path."""
        own = replace(self.base, regularizer=PENALTIES[regularizer], solver="auto")
        if (reason := own.why_not()) is not None:
            raise ValueError(reason)
        return replace(own, solver=path_solver(own.formulation, "auto"))

    def known(self, other: PathPlan, fits: Sequence[PathFit]) -> tuple[PathFit, ...]:
        """Return those fits of another plan that belong to this one, too: whole paths alone."""
        if (self.base, self.lambdas, self.order) != (other.base, other.lambdas, other.order):
            return ()
        count = Counter(fit.experiment.regularizer.name for fit in fits)
        complete = [name for name in self.regularizers if count[name] == len(self.lambdas)]
        return tuple(fit for name in complete for fit in fits if fit.experiment.regularizer.name == name)


@dataclass(frozen=True, eq=False)
class PathFit:
    """One fit of a path.

    Attributes
    ----------
    experiment : Experiment
        Its settings. With ``order="cold"`` `Run.end` of them makes the same fit.
    values : dict
        `fmviz.paths.PathPoint.record`, and the metrics of `Run.measure`.
    parameters : Parameters or None
        Where they are few enough to be kept for pictures, see `MOST_NUMBERS`.
    """

    experiment: Experiment
    values: dict[str, Any]
    parameters: Parameters | None = None


def trace(
    plan: PathPlan, should_stop: Callable[[], bool] = never, known: Sequence[PathFit] = ()
) -> Iterator[PathFit]:
    """Fit all paths of a plan, two of them at a time, and yield every fit when it is done.

    Parameters
    ----------
    plan : PathPlan
        What to fit.
    should_stop : callable
        Asked between epochs and between fits.
    known : sequence of PathFit
        Fits that need not be made again, see `PathPlan.known`; they come first.

    Raises
    ------
    ValueError
        If a regularizer does not suit the loss, or the data cannot be had.
    """
    yield from known
    there = {fit.experiment.regularizer.name for fit in known}
    kept = plan.total * plan.base.rank * load_dataset(plan.base.dataset).X.shape[1] <= MOST_NUMBERS
    names = [name for name in plan.regularizers if name not in there]
    yield from in_rounds([_path(plan, name, kept, should_stop) for name in names], should_stop)


def in_rounds(streams: Sequence[Iterator[_Fit]], should_stop: Callable[[], bool]) -> Iterator[_Fit]:
    """Yield what several iterators yield, in rounds of one item each; `should_stop` is asked after each."""
    for fits in zip_longest(*streams):
        if should_stop():
            return
        yield from (fit for fit in fits if fit is not None)


def _path(plan: PathPlan, regularizer: str, kept: bool, should_stop: Callable[[], bool]) -> Iterator[PathFit]:
    experiment = plan.method(regularizer)
    run = Run.prepare(experiment)
    along = _along(plan, run) | {"should_stop": should_stop}
    for point in iterate_path(run.problem, plan.lambdas, random_state=[experiment.seed, 1], **along):
        record = point.record()
        del record["validation_loss"], record["order"]
        yield PathFit(
            replace(experiment, lambda_sparse=point.lambda_sparse),
            record | run.measure(point.snapshot.parameters),
            point.snapshot.parameters if kept else None,
        )


def _along(plan: PathPlan, run: Run) -> dict[str, Any]:
    """Return the keywords of a path of a plan."""
    experiment = run.experiment
    return {
        "orders": (onwards(run.problem) if plan.order == "onwards" else plan.order,),
        "start": experiment.start,
        "solver": experiment.solver,
        "budget": Budget(experiment.max_epochs, tol=experiment.tol),
        "init_scale": experiment.init_scale,
    }


def selections(
    plan: PathPlan, regularizer: str, should_stop: Callable[[], bool] = never
) -> Iterator[np.ndarray]:
    """Yield which pairs the paths of a regularizer use on halves of the rows; see `iterate_selection`."""
    run = Run.prepare(plan.method(regularizer))
    along = _along(plan, run)
    along |= {"budget": replace(along["budget"], fall=FALL), "should_stop": should_stop}
    yield from iterate_selection(run.problem, plan.lambdas, random_state=[plan.base.seed, 2], **along)


def fit_words(fit: Any) -> str:
    """Say what a fit of a path, or of a search, uses."""
    used = fit.values["used_interactions"] if isinstance(fit, PathFit) else fit.used_interactions
    own = fit.experiment
    return f"{own.regularizer.label} at λ = {own.lambda_sparse:.4g} uses {used:,} interactions."


def path_table(fits: Sequence[PathFit]) -> pd.DataFrame:
    """Return one row a fit: ``regularizer``, ``label``, ``lambda_sparse``, then what the fit reached."""
    penalties = [fit.experiment.regularizer for fit in fits]
    rows = [
        {"regularizer": p.name, "label": p.label, **f.values} for p, f in zip(penalties, fits, strict=True)
    ]
    return pd.DataFrame(
        sorted(rows, key=lambda row: (METHODS.index(row["regularizer"]), row["lambda_sparse"]))
    )


def metrics_in(table: pd.DataFrame) -> dict[str, Metric]:
    """Return the metrics that a table has, the most telling first."""
    known = {name: metric for name, metric in COLUMNS.items() if metric.function and name in table}
    return {name: metric for name, metric in known.items() if table[name].notna().any()}


def path_program(plan: PathPlan) -> str:
    """Return a program that makes the paths of a plan and prints their figures."""
    return (
        opening(
            [plan.base.dataset.name],
            "from fmviz.lab.experiment import Experiment",
            "from fmviz.lab.search.strength_path import PathPlan, path_table, trace",
        )
        + f"base = {experiment_source(plan.base)}\n"
        f"plan = PathPlan(\n    base,\n    regularizers={plan.regularizers!r},\n"
        f"    lambdas={plan.lambdas!r},\n    order={plan.order!r},\n)\n"
        "table = path_table(list(trace(plan)))\n"
        'print(table[["regularizer", "lambda_sparse", "used_interactions", "used_features", "objective"]]'
        ".to_string(index=False))\n"
    )


EPOCHS = tuple(sorted({0, 1, *(round(1.16**n) for n in range(5, 47))}))
"""After which epochs there is a frame: every one at first, then ever fewer."""


def learn(
    plan: PathPlan, strength: float, should_stop: Callable[[], bool] = never
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Fit at one strength from the random start that the seed draws, once for every regularizer of a plan.

    Parameters
    ----------
    plan : PathPlan
        Its settings and regularizers; its own strengths have no say.
    strength : float
        λ.
    should_stop : callable
        Asked between epochs.

    Yields
    ------
    (str, list of (d, rank) ndarray)
        The regularizer, and P after every one of `EPOCHS`, up to the first after which the fit has ended.

    Raises
    ------
    ValueError
        If a regularizer does not suit the loss, or the data cannot be had.
    """
    for name in plan.regularizers:
        fit = plan.method(name)
        changes: dict[str, Any] = {
            "solver": name_of(fit.solver),
            "max_epochs": min(fit.max_epochs, EPOCHS[-1]),
        }
        fit = replace(fit, lambda_sparse=strength, start="random", **changes)
        # The end stands for the next frame, if there is none of its epoch.
        factors = [
            snapshot.parameters.P
            for snapshot in Run.prepare(fit).snapshots(should_stop)
            if snapshot.epoch in EPOCHS or snapshot.status is not None
        ]
        if should_stop():
            return
        yield name, factors
