"""Compile, or load from the cache, the kernels that pages need first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .compatibility import best_solver, why_not
from .counting import used_interactions
from .design import STORAGES
from .losses import LOSSES
from .operators import prox
from .problem import Problem
from .regularizers import REGULARIZERS
from .solvers import SOLVERS, get_solver

# The storages and losses of the data sets that every installation has.
_DESIGNS = (("dense", "squared"), ("dense", "logistic"), ("sparse", "logistic"))


def warm_operators() -> None:
    """Ready the kernels of the operators page."""
    P = np.arange(-3.0, 3.0).reshape(3, 2)
    for name in REGULARIZERS:
        prox(name, P, 0.1)
    used_interactions(P)


def tiny_problem(
    storage: str, loss: str, regularizer: str, weighted: bool = False, model: str = "fm", **params: Any
) -> Problem:
    """Return a problem of a few rows in the given storage: dense, sparse or binary."""
    rng = np.random.default_rng(0)
    mask = rng.random((6, 3)) < 0.7
    X = np.where(mask, 1.0 if storage == "binary" else rng.normal(size=(6, 3)), 0.0)
    y = np.where(np.arange(6) % 2 == 0, 1.0, -1.0)
    return Problem.build(
        X if storage == "dense" else sp.csr_array(X),
        y,
        loss=loss,
        regularizer=regularizer,
        model=model,
        rank=2,
        lambda_w=0.1,
        lambda_p=0.1,
        lambda_sparse=0.1,
        regularizer_params=params,
        sample_weight=np.arange(1.0, 7.0) if weighted else None,
    )


_ready: set[tuple[Any, ...]] = set()


def make_ready(problem: Problem, solver: str) -> None:
    """Ready the kernels that a run of `problem` will call, on a problem of a few rows.

    Compiling, or loading what was compiled, so never counts as the solver's time.
    """
    params = tuple(sorted(problem.regularizer_params.items()))
    weighted = problem.sample_weight is not None
    model = problem.model.name
    names = (problem.design.storage.name, problem.loss.name, problem.regularizer.name)
    key = (*names, params, weighted, model, solver)
    if key not in _ready:
        rng = np.random.default_rng(0)
        tiny = tiny_problem(*names, weighted, model, **dict(params))
        method = get_solver(solver)(tiny)
        start = tiny.start(0.1, rng)
        method.start(start, rng)
        method.epoch()
        tiny.objective(start)
        tiny.model.used_interactions(start)
        _ready.add(key)


def warm_training() -> Iterator[str]:
    """Ready the kernels of the training page; yields a word on each before it is compiled."""
    for storage, loss in _DESIGNS:
        for regularizer in REGULARIZERS:
            solver = best_solver(regularizer, loss=loss)
            words = (
                SOLVERS[solver].label,
                REGULARIZERS[regularizer].label,
                f"{loss} loss",
                f"{storage} data",
            )
            yield " · ".join(words)
            make_ready(tiny_problem(storage, loss, regularizer), solver)


def warm_everything() -> Iterator[str]:
    """Ready every kernel there is: all storages, losses, regularizers and solvers."""
    warm_operators()
    for storage in STORAGES:
        for loss in LOSSES:
            for regularizer in REGULARIZERS:
                for solver in SOLVERS:
                    if why_not(regularizer, solver, loss=loss) is None:
                        yield f"{solver} · {regularizer} · {loss} · {storage}"
                        make_ready(tiny_problem(storage, loss, regularizer), solver)
