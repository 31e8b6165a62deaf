"""Compile kernels, or load them from the cache, before timing or page use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .compatibility import best_solver
from .counting import used_interactions
from .design import PAIRS, Design
from .losses import Loss, VectorLoss, get_loss
from .models import Model, get_model
from .penalties import PENALTIES, Penalty, get_penalty
from .problem import Formulation, Problem
from .solvers import SOLVERS, Solver, get_solver
from .target import Target

# The layouts and losses of the data sets in every installation.
_DESIGNS = (("dense", "squared"), ("dense", "logistic"), ("sparse", "squared"), ("sparse", "logistic"))


def warm_operators() -> None:
    """Compile the kernels of the operators page."""
    P = np.arange(-3.0, 3.0).reshape(3, 2)
    for penalty in PENALTIES.values():
        penalty.prox(P, 0.1)
    used_interactions(P)


def tiny_problem(
    layout: str,
    loss: str | Loss,
    penalty: str | Penalty,
    weighted: bool = False,
    model: str | Model = "fm",
    dtype: str = "float64",
) -> Problem:
    """Return a problem with a few rows in a layout: dense, sparse, binary or pairs."""
    rng = np.random.default_rng(0)
    chosen, omega = get_model(model), get_penalty(penalty)
    shape = (6, max(3, chosen.least_features))
    mask = rng.random(shape) < 0.7
    if layout == PAIRS:
        mask = np.zeros(shape, dtype=bool)
        for n in range(6):
            mask[n, [n % shape[1], (n + 1) % shape[1]]] = True
    X = np.where(mask, 1.0 if layout in ("binary", PAIRS) else rng.normal(size=shape), 0.0)
    return Problem.build(
        Design(X if layout == "dense" else sp.csr_array(X), dtype),
        _tiny_target(get_loss(loss)),
        loss=loss,
        penalty=omega,
        model=chosen,
        rank=2,
        lambda_w=0.1,
        lambda_p=0.0 if chosen.multi_output else 0.1,
        lambda_sparse=0.0 if omega.smooth or chosen.radius else 0.1,
        sample_weight=np.arange(1.0, 7.0) if weighted else None,
    )


def _tiny_target(loss: Loss) -> Target:
    kinds = loss.kinds if isinstance(loss, VectorLoss) else ()
    if "class" in kinds or "ordinal" in kinds:
        return Target.of_labels(np.arange(6) % 3, ordered="ordinal" in kinds)
    signs = np.where(np.arange(6) % 2 == 0, 1.0, -1.0)
    return Target.of(np.column_stack([signs, -signs]) if isinstance(loss, VectorLoss) else signs)


_ready: set[tuple[Any, ...]] = set()


def make_ready(problem: Problem, method: Solver) -> None:
    """Compile or load the kernels for a run of `problem` with `method`, on a problem with a few rows.

    This keeps compile time out of solver time. The kernels depend on the choices and switches of the solver,
    and on all settings of model, loss and penalty except floats.
    """
    deciding = [spec.name for spec in method.params if spec.kind in ("choice", "bool")]
    choices = {name: method.settings[name] for name in deciding}
    weighted = problem.sample_weight is not None
    layout, dtype, penalty = problem.design.layout, problem.design.dtype, problem.penalty.chosen
    bound = (problem.loss, penalty, problem.model)
    kernels = (
        (each.name, *(each.settings[spec.name] for spec in each.params if spec.kind != "float"))
        for each in bound
    )
    key = (layout, *kernels, weighted, dtype, method.name, *choices.values())
    if key not in _ready:
        rng = np.random.default_rng(0)
        tiny = tiny_problem(layout, problem.loss, penalty, weighted, problem.model, dtype)
        trial = get_solver(method.name, choices).on(tiny)
        start = tiny.start(0.1, rng)
        trial.start(start, rng)
        trial.warm_up()
        trial.close()
        tiny.objective(start)
        tiny.model.used_interactions(start)
        _ready.add(key)


def warm_training() -> Iterator[str]:
    """Compile the kernels of the training page; yield a description of each before it is compiled."""
    for layout, loss in _DESIGNS:
        for penalty in PENALTIES.values():
            solver = best_solver(Formulation.build("fm", penalty, loss))
            yield " · ".join((SOLVERS[solver].label, penalty.label, f"{loss} loss", f"{layout} data"))
            problem = tiny_problem(layout, loss, penalty)
            make_ready(problem, SOLVERS[solver].on(problem))
