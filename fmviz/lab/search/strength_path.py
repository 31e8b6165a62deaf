"""Regularization paths of several regularizers over a grid of λ."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from fmviz.engine.compatibility import why_not
from fmviz.engine.fit import Budget, never
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Formulation
from fmviz.lab.background.workers import carry_out
from fmviz.lab.catalog import DataChoice
from fmviz.lab.experiment import Experiment, name_of, suggested
from fmviz.lab.interpretation.threshold import emptying_strength, lambda_max
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.runs.program import experiment_source, opening
from fmviz.metrics import COLUMNS, Metric
from fmviz.paths import Order, iterate_path, iterate_selection, onwards, walk
from fmviz.paths.path import FALL, path_solver

METHODS = tuple(
    name
    for name, penalty in PENALTIES.items()
    if not penalty.smooth and penalty.exact_prox and why_not(Formulation.build("fm", penalty)) is None
)
"""The sparse regularizers of a factorization machine with an exact operator."""


MOST_NUMBERS = 3_000_000
"""Maximum number of entries of P over all fits of a plan kept for pictures: 24 MB."""


def strengths(low: float, high: float, count: int) -> tuple[float, ...]:
    """Return `count` strengths from `low` to `high`, evenly spaced on a log scale, with four digits.

    Raises
    ------
    ValueError
        If `low` is not below `high`.
    """
    if not 0.0 < low < high:
        raise ValueError(f"The lowest λ, {low:g}, must be positive and below the highest, {high:g}.")
    return tuple(dict.fromkeys(float(f"{x:.4g}") for x in np.geomspace(low, high, count)))


def suggested_range(dataset: str | DataChoice) -> tuple[float, float]:
    """Return powers of ten about two decades below and above the suggested strength of a data set."""
    middle = math.log10(suggested(dataset, "fm").lambda_sparse or 1.0)
    return 10.0 ** round(middle - 2), 10.0 ** round(middle + 2)


def range_to_empty(base: Experiment, regularizers: Sequence[str]) -> tuple[float, float]:
    """Return the ends of a grid: λ_max, rounded up, and a thousandth of it.

    λ_max is the largest of the regularizers, or a reference strength if there is none. If neither is known,
    the ends are those of `suggested_range`.
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


def range_of_walks(base: Experiment, regularizers: Sequence[str]) -> tuple[float, float]:
    """Return the ends of a grid on which every regularizer has the strengths of `range_to_empty`."""
    each = [range_to_empty(base, [name]) for name in regularizers] or [suggested_range(base.dataset)]
    return min(low for low, _ in each), max(high for _, high in each)


@dataclass(frozen=True)
class PathPlan:
    """A plan of regularization paths.

    Attributes
    ----------
    base : Experiment
        The settings common to all fits.
    regularizers : tuple of str
        One path per regularizer.
    lambdas : tuple of float
        The strengths λ.
    order : {"onwards", "up", "down", "cold"}
        "up": each fit starts at the solution of the next smaller strength; "down": of the next larger one;
        "cold": at the start of the seed. "onwards" is "down" for regularizers under which P can leave 0, and
        "up" for the others. Ignored by the warm starts of `fmviz.find_lambda`.
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
        """Return the settings of a path, with the solver for paths and its parameters."""
        own = replace(self.base, regularizer=PENALTIES[regularizer], solver="auto")
        if (reason := own.why_not()) is not None:
            raise ValueError(reason)
        return replace(own, solver=path_solver(own.formulation, "auto"))

    def known(self, other: PathPlan, fits: Sequence[PathFit]) -> tuple[PathFit, ...]:
        """Return the fits of another plan that also belong to this one, by complete paths."""
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
        The settings. With ``order="cold"``, `Run.end` reproduces the fit.
    values : dict
        `fmviz.paths.PathPoint.record`, and the metrics of `Run.measure`.
    parameters : Parameters or None
        Kept for pictures within the limit `MOST_NUMBERS`.
    """

    experiment: Experiment
    values: dict[str, Any]
    parameters: Parameters | None = None


def trace(
    plan: PathPlan, should_stop: Callable[[], bool] = never, known: Sequence[PathFit] = ()
) -> Iterator[PathFit]:
    """Fit all paths of a plan, in this process and its workers, and yield every fit on completion.

    Parameters
    ----------
    plan : PathPlan
        The plan.
    should_stop : callable
        Polled between epochs and between fits.
    known : sequence of PathFit
        Available fits, see `PathPlan.known`; they come first.

    Raises
    ------
    ValueError
        If a regularizer is incompatible with the loss, or the data are unavailable.
    """
    yield from known
    there = {fit.experiment.regularizer.name for fit in known}
    kept = plan.total * plan.base.rank * load_dataset(plan.base.dataset).X.shape[1] <= MOST_NUMBERS
    names = [name for name in plan.regularizers if name not in there]
    for _, fit in carry_out([partial(_path, plan, name, kept) for name in names], should_stop):
        yield fit


def _path(plan: PathPlan, regularizer: str, kept: bool, should_stop: Callable[[], bool]) -> Iterator[PathFit]:
    experiment = plan.method(regularizer)
    run = Run.prepare(experiment)
    fits = _along(run) | {"random_state": [experiment.seed, 1], "should_stop": should_stop}
    points = (
        (point for _, point in walk(run.problem, plan.lambdas, **fits))
        if experiment.start == "warm"
        else iterate_path(
            run.problem, plan.lambdas, orders=(_order(plan, run),), start=experiment.start, **fits
        )
    )
    for point in points:
        record = point.record()
        del record["validation_loss"], record["order"]
        yield PathFit(
            replace(experiment, lambda_sparse=point.lambda_sparse),
            record | run.measure(point.snapshot.parameters),
            point.snapshot.parameters if kept else None,
        )


def _along(run: Run) -> dict[str, Any]:
    """Return the keywords common to all paths of a plan."""
    experiment = run.experiment
    return {
        "solver": experiment.solver,
        "budget": Budget(experiment.max_epochs, tol=experiment.tol, report_every=None),
        "init_scale": experiment.init_scale,
    }


def _order(plan: PathPlan, run: Run) -> Order:
    return onwards(run.problem) if plan.order == "onwards" else plan.order


def selections(
    plan: PathPlan, regularizer: str, should_stop: Callable[[], bool] = never
) -> Iterator[np.ndarray]:
    """Yield the pairs used by paths of a regularizer on halves of the rows; see `iterate_selection`."""
    run = Run.prepare(plan.method(regularizer))
    fits = _along(run)
    # Warm fits follow the grid upwards from an informed start.
    warm = run.experiment.start == "warm"
    yield from iterate_selection(
        run.problem,
        plan.lambdas,
        random_state=[plan.base.seed, 2],
        should_stop=should_stop,
        **fits | {"budget": replace(fits["budget"], fall=FALL)},
        orders=("up" if warm else _order(plan, run),),
        start="informed" if warm else run.experiment.start,
    )


def fit_words(fit: Any) -> str:
    """Return a sentence on the interactions of a fit of a path or search."""
    used = fit.values["used_interactions"] if isinstance(fit, PathFit) else fit.used_interactions
    own = fit.experiment
    return f"{own.regularizer.label} at λ = {own.lambda_sparse:.4g} uses {used:,} interactions."


def path_table(fits: Sequence[PathFit]) -> pd.DataFrame:
    """Return one row per fit: ``regularizer``, ``label``, ``lambda_sparse``, and the results."""
    rows = [
        {"regularizer": penalty.name, "label": penalty.label, **fit.values}
        for fit in fits
        for penalty in [fit.experiment.regularizer]
    ]
    return pd.DataFrame(
        sorted(rows, key=lambda row: (METHODS.index(row["regularizer"]), row["lambda_sparse"]))
    )


def metrics_in(table: pd.DataFrame) -> dict[str, Metric]:
    """Return the metrics in a table, the primary one first."""
    return {
        name: metric
        for name, metric in COLUMNS.items()
        if metric.function and name in table and table[name].notna().any()
    }


def path_program(plan: PathPlan, seeds: Sequence[int] = ()) -> str:
    """Return a program that makes the paths of a plan, or from several starts, and prints their figures."""
    columns = ["regularizer", "lambda_sparse", "used_interactions", "used_features", "objective"]
    paths = (
        f"plan = PathPlan(\n    base,\n    regularizers={plan.regularizers!r},\n"
        f"    lambdas={plan.lambdas!r},\n    order={plan.order!r},\n)\n"
    )
    fits = "table = path_table(list(trace(plan)))\n"
    if seeds:
        columns += ["support_f1"]
        fits = (
            f"for seed in {tuple(seeds)!r}:\n"
            "    start = replace(plan, base=replace(base, seed=seed))\n"
            "    table = path_table(list(trace(start))).assign(seed=seed)\n"
        )
    show = f"print(table[{json.dumps(['seed'] * bool(seeds) + columns)}].to_string(index=False))\n"
    return (
        opening(
            [plan.base.dataset.name],
            *["from dataclasses import replace"] * bool(seeds),
            "from fmviz.lab.experiment import Experiment",
            "from fmviz.lab.search.strength_path import PathPlan, path_table, trace",
        )
        + f"base = {experiment_source(plan.base)}\n{paths}{fits}{'    ' * bool(seeds)}{show}"
    )


EPOCHS = tuple(sorted({0, 1, *(round(1.16**n) for n in range(5, 47))}))
"""Epochs with a frame: initially every epoch, then increasingly few."""


def learn(
    plan: PathPlan, strength: float, should_stop: Callable[[], bool] = never
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Fit at one strength from the random start of the seed, for every regularizer of a plan.

    Parameters
    ----------
    plan : PathPlan
        Settings and regularizers; its strengths are ignored.
    strength : float
        λ.
    should_stop : callable
        Polled between epochs.

    Yields
    ------
    (str, list of (d, rank) ndarray)
        The regularizer, and P after each of `EPOCHS`, up to the end of the fit.

    Raises
    ------
    ValueError
        If a regularizer is incompatible with the loss, or the data are unavailable.
    """
    for name in plan.regularizers:
        fit = plan.method(name)
        fit = replace(
            fit,
            lambda_sparse=strength,
            start="random",
            solver=name_of(fit.solver),
            max_epochs=min(fit.max_epochs, EPOCHS[-1]),
        )
        # The end replaces the next frame if its epoch has none.
        factors = [
            snapshot.parameters.P
            for snapshot in Run.prepare(fit).snapshots(should_stop)
            if snapshot.epoch in EPOCHS or snapshot.status is not None
        ]
        if should_stop():
            return
        yield name, factors
