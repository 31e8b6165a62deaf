"""Problems and solvers from names and their parameters as keywords: what tests that range over names need."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

from fmviz.engine import compatibility
from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.fit import Budget, Fit, chosen_solver, never
from fmviz.engine.losses import LOSSES
from fmviz.engine.models import get_model
from fmviz.engine.penalties import get_penalty
from fmviz.engine.problem import Formulation, Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import Solver, get_solver

SMOOTH = {name: loss for name, loss in LOSSES.items() if loss.smooth}
"""The losses that solvers minimise as they are; those with kinks are reweighted."""
LIPSCHITZ = {name: loss for name, loss in SMOOTH.items() if loss.mu() is not None}
"""Those whose derivative has a Lipschitz constant, which solvers of convex models need."""


def build_problem(X: Any, y: Any, **keywords: Any) -> Problem:
    """Return the problem; `keywords` are those of `Problem.build`, and names with their parameters."""
    return Problem.build(X, y, **values_of(**keywords))


def values_of(
    *, regularizer: Any = "ti", model: Any = "fm", regularizer_params=None, model_params=None, **others: Any
) -> dict[str, Any]:
    """Return the keywords of `Problem.build` for names with their parameters."""
    return {
        "penalty": get_penalty(regularizer, regularizer_params),
        "model": get_model(model, model_params),
        **others,
    }


def make_solver(name: str, problem: Problem, **settings: Any) -> Any:
    """Return the solver prepared for the problem."""
    return get_solver(name, settings).on(problem)


def best_solver(regularizer: str, **keywords: Any) -> str:
    """Return what "auto" stands for; `keywords` are those of `values_of`, and the loss."""
    return compatibility.best_solver(Formulation.build(**values_of(regularizer=regularizer, **keywords)))


def iterate(
    problem: Problem,
    solver: str | Solver = "auto",
    budget: Budget | None = None,
    should_stop: Any = never,
    *,
    resume: Checkpoint | None = None,
    **keywords: Any,
) -> Iterator[Snapshot]:
    """Run a fit; `keywords` are those of `Fit.of` and `Fit.epochs`, and the solver's own settings."""
    of_fit, of_run = (
        {name: keywords.pop(name) for name in signature(function).parameters if name in keywords}
        for function in (Fit.of, Fit.epochs)
    )
    chosen = get_solver(chosen_solver(problem, solver).name, keywords) if keywords else solver
    return Fit.of(problem, chosen, budget, **of_fit).resume(resume).epochs(should_stop, **of_run)
