"""Compile kernels, or load them from the cache, before timing or page use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .compatibility import best_solver
from .counting import used_interactions
from .penalties import PENALTIES
from .problem import Problem
from .solvers import SOLVERS, Solver, get_solver

# The size of a sample; 128 columns hold all entries of 64 pairs.
_ROWS, _COLUMNS = 64, 128
# The number of rows from which those of a sample are chosen by their targets.
_DRAWN = 10_000


def warm_operators() -> None:
    """Compile the kernels of the operators page."""
    P = np.arange(-3.0, 3.0).reshape(3, 2)
    for penalty in PENALTIES.values():
        penalty.prox(P, 0.1)
    used_interactions(P)


def sample_of(problem: Problem, rng: np.random.Generator) -> Problem:
    """Return a problem that needs the same kernels: a few rows, some of the features in them, and rank 2.

    The rows cover the range of the target, or its classes. Strengths are those with which no step is skipped.
    """
    n, model, penalty = problem.design.n_samples, problem.model, problem.penalty.chosen
    drawn = rng.choice(n, min(n, _DRAWN), replace=False)
    different = np.unique(problem.y[drawn].reshape(drawn.size, -1)[:, 0], return_index=True)[1]
    different = different[np.linspace(0, different.size - 1, _ROWS // 2).astype(int)]
    rows = np.unique(np.concatenate([drawn[: _ROWS // 2], drawn[different]]))
    features = np.unique(problem.design.take(rows).nonzero()[1])[:_COLUMNS]
    if features.size < model.least_features:
        features = np.union1d(features, np.arange(model.least_features))
    return replace(
        problem,
        design=problem.design.part(rows, features),
        target=replace(problem.target, values=problem.y[rows]),
        penalty=model.bind(penalty.of_features(features), 2),
        rank=2,
        lambda_w=0.1,
        lambda_p=0.0 if model.multi_output else 0.1,
        lambda_sparse=0.0 if penalty.smooth or model.radius else 0.1,
        sample_weight=None if problem.sample_weight is None else np.arange(1.0, rows.size + 1.0),
    )


_ready: set[tuple[Any, ...]] = set()


def make_ready(problem: Problem, method: Solver) -> None:
    """Compile or load the kernels for a run of `problem` with `method`, on a few of its rows.

    This keeps compile time out of solver time. The kernels depend on the choices and switches of the solver,
    and on all settings of model, loss and penalty except floats and lists.
    """
    deciding = [spec.name for spec in method.params if spec.kind in ("choice", "bool")]
    choices = {name: method.settings[name] for name in deciding}
    weighted = problem.sample_weight is not None
    layout, dtype, penalty = problem.design.layout, problem.design.dtype, problem.penalty.chosen
    bound = (problem.loss, penalty, problem.model)
    kernels = (
        (each.name, *(each.settings[spec.name] for spec in each.params if spec.kind not in ("float", "list")))
        for each in bound
    )
    key = (layout, *kernels, weighted, dtype, method.name, *choices.values())
    if key not in _ready:
        rng = np.random.default_rng(0)
        sample = sample_of(problem.reference, rng)
        trial = get_solver(method.name, choices).on(sample)
        start = sample.start(0.1, rng)
        trial.start(start, rng)
        trial.warm_up()
        trial.close()
        sample.objective(start)
        sample.model.used_interactions(start)
        _ready.add(key)


def warm_training(problems: Iterable[Problem]) -> Iterator[str]:
    """Compile the kernels of the training page for such problems, with every penalty.

    Yields a description of each combination before it is compiled.
    """
    for problem in problems:
        for penalty in PENALTIES.values():
            each = replace(problem, penalty=problem.model.bind(penalty, problem.rank))
            solver = SOLVERS[best_solver(each)]
            loss, layout = f"{problem.loss.name} loss", f"{problem.design.layout} data"
            yield " · ".join((solver.label, penalty.label, loss, layout))
            make_ready(each, solver.on(each))
