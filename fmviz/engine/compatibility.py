"""Which solver takes which problem, and why not."""

from __future__ import annotations

from .errors import WhyNot
from .problem import Formulation
from .solvers import SOLVERS, Solver, get_solver

# From the most to the least recommended.
_PREFERRED = ("cd", "pcd", "pbcd", "reweighted")


def why_not(problem: Formulation, solver: str | Solver = "auto") -> WhyNot | None:
    """Tell whether a problem can be solved by a method.

    Parameters
    ----------
    problem : Problem or Formulation
        What is to be minimised; the data have no say.
    solver : str or Solver
        A name from the registry or a solver with its settings; "auto" always finds one where one exists.

    Returns
    -------
    WhyNot or None
        None where it can, else the mathematical reason in a sentence, with a code.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if solver == "auto":
        reasons = [method.why_not(problem) for method in SOLVERS.values()]
        return None if None in reasons else reasons[0]
    return get_solver(solver).why_not(problem)


def best_solver(problem: Formulation, d: int = 0) -> str:
    """Return the name of the solver that "auto" stands for, of one that is made for d features if there is.

    Raises
    ------
    ValueError
        If no solver takes the problem, with the reason.
    """
    others = [name for name in SOLVERS if name not in _PREFERRED]
    order = ("pbcd", *_PREFERRED, *others) if problem.penalty.row_wise else (*_PREFERRED, *others)
    able = (name for name in order if why_not(problem, name) is None)
    first = ""
    for name in able:
        if d <= SOLVERS[name].most_features:
            return name
        first = first or name
    if not first:
        raise ValueError(why_not(problem))
    return first


def cost_note(problem: Formulation, d: int, rank: int, solver: str | Solver = "auto") -> str | None:
    """Tell what is expensive about a run on d features, before it starts.

    Parameters
    ----------
    problem : Problem or Formulation
        What is to be minimised.
    d, rank : int
        The number of features, and of columns of P.
    solver : str or Solver
        A name from the registry or a solver with its settings.

    Returns
    -------
    str or None
        A sentence where an epoch costs more than the size of the data and of P explains, else None.

    Raises
    ------
    ValueError
        If a name is unknown, or no solver takes the problem.
    """
    method = get_solver(best_solver(problem, d) if solver == "auto" else solver)
    return method.cost_note(problem, d, rank)
