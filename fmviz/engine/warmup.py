"""Compile, or load from the cache, the kernels that pages need first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from .compatibility import best_solver, why_not
from .counting import used_interactions
from .design import LAYOUTS, PAIRS, Design
from .losses import LOSSES
from .models import MODELS, get_model
from .operators import prox
from .problem import Problem
from .regularizers import REGULARIZERS
from .solvers import SOLVERS, Solver, make_solver

# The layouts and losses of the data sets that every installation has.
_DESIGNS = (("dense", "squared"), ("dense", "logistic"), ("sparse", "logistic"))


def warm_operators() -> None:
    """Ready the kernels of the operators page."""
    P = np.arange(-3.0, 3.0).reshape(3, 2)
    for name in REGULARIZERS:
        prox(name, P, 0.1)
    used_interactions(P)


def tiny_problem(
    layout: str,
    loss: str,
    regularizer: str,
    weighted: bool = False,
    model: str = "fm",
    model_params: Mapping[str, Any] | None = None,
    dtype: str = "float64",
    **params: Any,
) -> Problem:
    """Return a problem of a few rows in the given layout: dense, sparse, binary or pairs."""
    rng = np.random.default_rng(0)
    shape = (6, max(3, get_model(model, **dict(model_params or {})).least_features))
    mask = rng.random(shape) < 0.7
    if layout == PAIRS:
        mask = np.zeros(shape, dtype=bool)
        for n in range(6):
            mask[n, [n % shape[1], (n + 1) % shape[1]]] = True
    X = np.where(mask, 1.0 if layout in ("binary", PAIRS) else rng.normal(size=shape), 0.0)
    y = np.where(np.arange(6) % 2 == 0, 1.0, -1.0)
    return Problem.build(
        Design(X if layout == "dense" else sp.csr_array(X), dtype),
        y,
        loss=loss,
        regularizer=regularizer,
        model=model,
        rank=2,
        lambda_w=0.1,
        lambda_p=0.1,
        lambda_sparse=0.0 if regularizer == "l2" else 0.1,
        regularizer_params=params,
        model_params=model_params,
        sample_weight=np.arange(1.0, 7.0) if weighted else None,
    )


_ready: set[tuple[Any, ...]] = set()


def make_ready(problem: Problem, method: Solver) -> None:
    """Ready the kernels that a run of `problem` by `method` will call, on a problem of a few rows.

    Compiling, or loading what was compiled, so never counts as the solver's time. Of the solver's settings
    its choices and switches alone decide which kernels it calls.
    """
    solver = method.name
    deciding = [spec.name for spec in method.params if spec.kind in ("choice", "bool")]
    choices = {name: method.settings[name] for name in deciding}
    params = tuple(sorted(problem.regularizer_params.items()))
    weighted = problem.sample_weight is not None
    model, own, dtype = problem.model.name, problem.model.settings, problem.design.dtype
    what = (problem.design.layout, problem.loss.name, problem.regularizer.name)
    key = (*what, params, weighted, model, *own.values(), dtype, solver, *choices.values())
    if key not in _ready:
        rng = np.random.default_rng(0)
        tiny = tiny_problem(*what, weighted, model, own, dtype, **dict(params))
        trial = make_solver(solver, tiny, **choices)
        start = tiny.start(0.1, rng)
        trial.start(start, rng)
        trial.rehearse()
        trial.close()
        tiny.objective(start)
        tiny.model.used_interactions(start)
        _ready.add(key)


def warm_training() -> Iterator[str]:
    """Ready the kernels of the training page; yields a word on each before it is compiled."""
    for layout, loss in _DESIGNS:
        for regularizer in REGULARIZERS:
            solver = best_solver(regularizer, loss=loss)
            words = (
                SOLVERS[solver].label,
                REGULARIZERS[regularizer].label,
                f"{loss} loss",
                f"{layout} data",
            )
            yield " · ".join(words)
            _make_ready(layout, loss, regularizer, solver)


def _make_ready(layout: str, loss: str, regularizer: str, solver: str, model: str = "fm", **own: Any) -> None:
    problem = tiny_problem(layout, loss, regularizer, model=model, model_params=own)
    make_ready(problem, make_solver(solver, problem))


def warm_everything() -> Iterator[str]:
    """Ready every kernel there is: all models, layouts, losses, regularizers and solvers.

    Of a model's own parameters all choices are taken, and numbers as they are by default: a kernel of another
    degree is compiled when it is first asked for.
    """
    # Imported here: a run needs neither.
    from .matchings import ranked_matchings
    from .tensors import ranked_subsets

    warm_operators()
    yield "rankings"
    ranked_subsets(np.ones((3, 1)), 3, top=1)
    ranked_matchings(np.ones((2, 3, 1)), 1)
    for model, layout, loss, regularizer, solver in product(MODELS, LAYOUTS, LOSSES, REGULARIZERS, SOLVERS):
        for own in _variants(model):
            given: dict[str, Any] = {"loss": loss, "model": model, "model_params": own}
            if why_not(regularizer, solver, **given) is None:
                named = [*own.values(), solver, regularizer, loss, layout]
                yield " · ".join(map(str, [model, *named]))
                _make_ready(layout, loss, regularizer, solver, model, **own)


def _variants(model: str) -> Iterator[dict[str, Any]]:
    """Return every choice of a model's own parameters."""
    chosen = {
        spec.name: spec.choices if spec.kind == "choice" else (False, True)
        for spec in MODELS[model].params
        if spec.kind in ("choice", "bool")
    }
    for values in product(*chosen.values()):
        yield dict(zip(chosen, values, strict=True))
