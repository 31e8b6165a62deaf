"""Check whether a solver supports a problem, and choose the best one that does."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

from .errors import WhyNot
from .losses import Loss
from .models import Model
from .penalties import Penalty
from .problem import Formulation, Problem
from .solvers import SOLVERS, Solver, get_solver

# In order of recommendation.
_PREFERRED = ("cd", "pcd", "pbcd", "reweighted")


def why_not(problem: Formulation, solver: str | Solver = "auto") -> WhyNot | None:
    """Return why a solver does not support a problem, or None.

    Parameters
    ----------
    problem : Problem or Formulation
        The objective; the data do not matter.
    solver : str or Solver
        A name from the registry or a solver instance; "auto" stands for any supporting solver.

    Returns
    -------
    WhyNot or None
        None if it is supported, else the mathematical reason in a sentence, with a code.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if solver == "auto":
        reasons = [method.why_not(problem) for method in SOLVERS.values()]
        # Other data would suffice.
        nearest = (reason for reason in reasons if reason is not None and reason.code == "not_in_memory")
        return None if None in reasons else next(nearest, reasons[0])
    return get_solver(solver).why_not(problem)


@lru_cache(4_096)
def why_not_together(
    model: Model, penalty: Penalty, loss: Loss, solver: str | Solver = "auto"
) -> WhyNot | None:
    """Return why model, penalty, loss and solver are incompatible, or None; cached."""
    if (reason := model.why_not(penalty)) is not None:
        return reason
    return why_not(Formulation.build(model, penalty, loss), solver)


def best_solver(problem: Formulation, d: int = 0) -> str:
    """Return the name of the solver selected by "auto", preferring one suited to d features.

    Raises
    ------
    ValueError
        If no solver supports the problem, with the reason.
    """
    others = [name for name in SOLVERS if name not in _PREFERRED]
    penalty = problem.penalty.chosen
    # For the group lasso, which has no row steps, nmAPGD takes many times as many epochs as APGD.
    first = "pbcd" if penalty.row or penalty.power else "apgd"
    preferred: tuple[str, ...] = _PREFERRED
    if isinstance(problem, Problem) and not problem.design.in_memory:
        preferred = ("lbfgs", "apgd", *_PREFERRED)
    order = dict.fromkeys((*([first] if penalty.row_wise else []), *preferred, *others))
    able = (name for name in order if why_not(problem, name) is None)
    if (best := next(able, None)) is None:
        raise ValueError(why_not(problem))
    return next((name for name in chain([best], able) if d <= SOLVERS[name].most_features), best)


def cost_note(problem: Formulation, d: int, rank: int, solver: str | Solver = "auto") -> str | None:
    """Return a warning before an unusually expensive run on d features.

    Parameters
    ----------
    problem : Problem or Formulation
        The objective.
    d, rank : int
        The number of features, and of columns of P.
    solver : str or Solver
        A name from the registry or a solver instance.

    Returns
    -------
    str or None
        A sentence if an epoch costs more than expected from the size of the data and of P, else None.

    Raises
    ------
    ValueError
        If a name is unknown, or no solver supports the problem.
    """
    return get_solver(best_solver(problem, d) if solver == "auto" else solver).cost_note(problem, d, rank)
