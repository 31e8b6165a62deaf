"""Comparison of regularizers at equal sparsity, each at the λ with a given number of interactions."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from fmviz.engine.fit import Budget, never
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.solvers._flat_problem import Joint
from fmviz.lab.background.workers import carry_out
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.runner import Run, truth_of
from fmviz.metrics import SUPPORT_F1, Metric
from fmviz.paths import accepted_range, choose, search_lambda

_MOST_STEPS = 500
REFITTED = "refitted_"
"""Prefix of metrics of refitted parameters."""


@dataclass(frozen=True, eq=False)
class SearchFit:
    """A fit in the search for one regularizer.

    Attributes
    ----------
    experiment : Experiment
        The settings with its λ; `Run.end` of them makes the same fit.
    used_interactions, used_features : int
        The counts of interactions and features used by the fit.
    status, message, tried, span
        See `fmviz.paths.Probe`.
    metrics : dict of str to float
        See `fmviz.lab.runner.Run.measure`; empty while the search goes on. Those of `refitted` on validation
        rows begin with `REFITTED`.
    start, parameters : Parameters or None
        The start and the end of the chosen fit.
    """

    experiment: Experiment
    used_interactions: int
    used_features: int
    status: Literal["searching", "found", "nearest"]
    message: str
    tried: Sequence[Sequence[float]]
    span: Sequence[float]
    metrics: dict[str, float]
    start: Parameters | None = None
    parameters: Parameters | None = None


def refitted(problem: Problem, parameters: Parameters, should_stop: Callable[[], bool] = never) -> Parameters:
    """Minimise the objective of a machine by L-BFGS from given parameters; zeros of P stay zero.

    With λ = 0 the selected pairs stay and are not shrunk by Ω.
    """
    joint = Joint(problem)
    start = joint.pack(parameters)
    free = np.pad(parameters.P.ravel() != 0.0, (0, start.size - parameters.P.size), constant_values=True)

    def masked(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = joint.smooth_value_and_gradient(theta)
        # Ends without a gradient.
        return value, gradient * (free & (not should_stop()))

    end = minimize(masked, start, jac=True, method="L-BFGS-B", options={"maxiter": _MOST_STEPS})
    return joint.copy(end.x)


def suggested_target(dataset: Dataset) -> int:
    """Return the default number of interactions of a comparison: the number of true ones, if known.

    Otherwise a tenth of all pairs, at most one per ten rows.
    """
    truth = truth_of(dataset)
    if truth is not None and (true := int(np.triu(truth != 0, 1).sum())):
        return true
    rows, d = dataset.X.shape
    return max(1, min(d * (d - 1) // 2, rows) // 10)


def at_equal_sparsity(
    experiment: Experiment,
    regularizers: Sequence[str],
    target: int,
    should_stop: Callable[[], bool] = never,
    *,
    accept: tuple[int, int] | None = None,
    seeds: int = 1,
) -> Iterator[SearchFit]:
    """Find for every regularizer the weakest λ that leaves about `target` interactions, and measure it there.

    The searches, in the order of the seeds, run in this process and its workers.

    Parameters
    ----------
    experiment : Experiment
        The common settings.
    regularizers : sequence of str
        Names of regularizers.
    target : int
        The number of interactions.
    should_stop : callable
        Polled between epochs.
    accept : (int, int), optional
        The accepted range around the target. By default, the range between the adjacent binomial
        coefficients, the only counts that a selection of features can reach, see `fmviz.find_lambda`.
    seeds : int
        The number of seeds, starting at that of the experiment; each has its own start and validation rows.

    Yields
    ------
    SearchFit
        For every fit, and last of a regularizer and seed the chosen one.

    Raises
    ------
    ValueError
        If a regularizer is incompatible with model and loss.
    """
    searches = [
        replace(experiment, seed=seed, solver="auto", regularizer=PENALTIES[name])
        for seed in range(experiment.seed, experiment.seed + seeds)
        for name in regularizers
    ]
    for _, fit in carry_out([partial(_compared, own, target, accept) for own in searches], should_stop):
        yield fit


def _compared(
    experiment: Experiment, target: int, accept: tuple[int, int] | None, should_stop: Callable[[], bool]
) -> Iterator[SearchFit]:
    run = Run.prepare(experiment)
    for fit in at_number(run, target, accept, should_stop):
        if fit.parameters is not None:
            free = run.problem.at(lambda_sparse=0.0)
            each = free.by_machine(partial(refitted, should_stop=should_stop), fit.parameters)
            again = run.measure(free.joined(each))
            extra = {REFITTED + name: again[name] for name in again if name.startswith("validation_")}
            fit = replace(fit, metrics=fit.metrics | extra)
        yield fit


def ends_table(
    fits: Sequence[SearchFit], regularizers: Sequence[str], accept: tuple[int, int], metric: Metric
) -> pd.DataFrame:
    """Return the results of the searches of `at_equal_sparsity`.

    Returns
    -------
    DataFrame
        One row for each regularizer and seed, restricted to seeds available for all regularizers, if any:
        ``fit``, ``regularizer``, ``label``, ``seed``, the chosen ``λ`` and the ``strongest`` with an
        accepted number, ``interactions``, ``Features``, the metric as ``value`` and ``refitted``, ``F1`` of
        the pairs, ``Fits``; ``nearest``, whether the number was not reached, and ``instead``, the numbers
        around it.
    """
    rows = []
    for fit in (fit for fit in fits if fit.parameters is not None):
        own, counts = fit.experiment, sorted(int(used) for _, used in fit.tried)
        around = [n for n in counts if n < accept[0]][-1:] + [n for n in counts if n > accept[1]][:1]
        rows.append(
            {
                "fit": fit,
                "regularizer": own.regularizer.name,
                "label": own.regularizer.label,
                "seed": own.seed,
                "λ": own.lambda_sparse,
                "strongest": max(fit.span, default=math.nan),
                "interactions": fit.used_interactions,
                "Features": fit.used_features,
                "value": fit.metrics.get(metric.name, math.nan),
                "refitted": fit.metrics.get(REFITTED + metric.name, math.nan),
                "F1": fit.metrics.get(SUPPORT_F1.name, math.nan),
                "Fits": len(counts),
                "nearest": fit.status == "nearest",
                "instead": " or ".join(f"{n:,}" for n in around),
            }
        )
    rows.sort(key=lambda row: (regularizers.index(row["regularizer"]), row["seed"]))
    table = pd.DataFrame(rows)
    complete = table.groupby("seed")["label"].transform("size") == len(regularizers)
    return table[complete] if complete.any() else table


def matched(table: pd.DataFrame, by: Sequence[str], target: int, metric: str) -> pd.DataFrame:
    """Apply the rule of `fmviz.find_lambda` to fits along λ, and return the chosen ones.

    Parameters
    ----------
    table : DataFrame
        One row per fit: ``lambda_sparse``, ``used_interactions``, `metric` and the columns in `by`.
    by : sequence of str
        The columns that identify a path.
    target : int
        The number of interactions.
    metric : str
        The column that becomes ``value``.

    Returns
    -------
    DataFrame
        The chosen rows, with the columns of `ends_table`: ``λ``, ``strongest``, ``interactions``, ``value``,
        ``F1`` and ``nearest``.
    """
    rows = []
    for _, path in table.groupby(list(by), sort=False):
        path = path.sort_values("lambda_sparse")
        place, inside = choose(path["used_interactions"].astype(int).tolist(), target, accepted_range(target))
        row, last = path.iloc[place], path.iloc[inside[-1] if inside else place]
        rows.append(
            {
                **row,
                "λ": row["lambda_sparse"],
                "strongest": last["lambda_sparse"],
                "interactions": int(row["used_interactions"]),
                "value": row[metric],
                "F1": row.get(SUPPORT_F1.name, math.nan),
                "nearest": not inside,
            }
        )
    return pd.DataFrame(rows)


def at_number(
    run: Run, target: int, accept: tuple[int, int] | None = None, should_stop: Callable[[], bool] = never
) -> Iterator[SearchFit]:
    """Search for the λ at which a run uses a number of interactions, like `fmviz.find_lambda`."""
    experiment = replace(run.experiment, start="warm")
    for probe in search_lambda(
        run.problem,
        target,
        accept,
        solver=experiment.solver,
        budget=Budget(experiment.max_epochs, None, experiment.tol, report_every=None),
        init_scale=experiment.init_scale,
        random_state=[experiment.seed, 1],
        should_stop=should_stop,
    ):
        end, final = probe.snapshot, probe.status != "searching"
        yield SearchFit(
            replace(experiment, lambda_sparse=probe.lambda_sparse),
            probe.used_interactions,
            end.used_features,
            probe.status,
            probe.message,
            probe.tried,
            probe.span,
            run.measure(end.parameters) if final else {},
            *((probe.start, end.parameters) if final else ()),
        )


# -------------------------------------------------------------------------------- shipped with fmviz


REGULARIZERS, TARGET, SEEDS = ("l1", "l21", "ti", "cs"), 360, 3
"""The default comparison, on the first data set; `make results` writes its fits."""
SHIPPED = Path(__file__).parent / "equal_sparsity.json.gz"


def comparison_base(dataset: str, seed: int) -> Experiment:
    """Return the settings that all fits of a comparison share: those suggested for the data."""
    given = suggested(dataset).to_dict()
    shared = {name: value for name, value in given.items() if not name.startswith(("model_", "regularizer_"))}
    own = {"seed": seed, "model": "fm", "regularizer": "ti", "solver": "auto", "start": "warm"}
    return Experiment.from_dict({**shared, **own, "validation": given["validation"] or 0.2})


def shipped(experiment: Experiment, regularizers: Sequence[str], target: int, seeds: int) -> list[SearchFit]:
    """Return the fits of a comparison if all of them are shipped with fmviz, else none."""
    if target != TARGET:
        return []
    fits: dict[Experiment, Any] = {}
    for record in json.loads(gzip.decompress(SHIPPED.read_bytes())):
        own, P = Experiment.from_json(record["experiment"]), np.array(record["parameters"])
        fits[replace(own, lambda_sparse=0.0)] = SearchFit(
            **{**record, "experiment": own, "parameters": Parameters(P, np.zeros(len(P)), 0.0)}
        )
    base = replace(experiment, lambda_sparse=0.0)
    each = [
        replace(base, seed=seed, regularizer=PENALTIES[name])
        for seed in range(base.seed, base.seed + seeds)
        for name in regularizers
    ]
    return [fits[own] for own in each] if fits.keys() >= set(each) else []
