"""Regularization paths: fits at every strength λ of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Literal

import numpy as np
import pandas as pd

from fmviz.choices import bound
from fmviz.engine.design import Design
from fmviz.engine.drive import Budget, chosen_solver, iterate
from fmviz.engine.errors import finite_number, one_of, whole_number
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import Solver, get_solver

Order = Literal["cold", "down", "up"]
ORDERS = ("cold", "down", "up")
# Sweeps over the live entries between two over all, where a solver takes them: a warm start has most of its
# support already.
ACTIVE_SWEEPS = 10
# Sweeps to an extrapolation, where a solver takes them.
ANDERSON = 5
# Of `Problem.build`: what is given in another way.
_GIVEN = ("X", "y", "lambda_sparse", "loss", "penalty", "model")


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One fit of a path.

    Attributes
    ----------
    order : {"cold", "down", "up"}
        Started anew, from the fit at the next larger λ, or from the one at the next smaller.
    lambda_sparse : float
        λ.
    snapshot : Snapshot
        The end of the fit, with its status.
    validation : float
        The mean loss on the validation rows; NaN without any.
    """

    order: Order
    lambda_sparse: float
    snapshot: Snapshot
    validation: float

    def record(self) -> dict[str, Any]:
        """Return the scalars, flat: one row of a path."""
        end = self.snapshot
        assert end.status is not None, "a path point holds the end of a fit"
        return {
            "order": self.order,
            "lambda_sparse": self.lambda_sparse,
            "objective": end.objective,
            "loss": end.loss,
            "used_features": end.used_features,
            "used_interactions": end.used_interactions,
            "validation_loss": self.validation,
            "epochs": end.epoch,
            "seconds": end.seconds,
            "certificate": end.certificate,
            "status": str(end.status.reason),
        }


def iterate_path(
    problem: Problem,
    lambdas: Sequence[float],
    *,
    orders: Sequence[Order] = ("down",),
    solver: str | Solver = "auto",
    budget: Budget | None = None,
    init_scale: float = 0.01,
    random_state: Any = None,
    validation: tuple[Any, Any] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    **solver_params: Any,
) -> Iterator[PathPoint]:
    """Fit at every λ and yield each fit when it is done; see `regularization_path`.

    A solver that is named makes 10 `active_sweeps` and extrapolates every 5 sweeps (`anderson`), where it can
    and `solver_params` do not say otherwise.

    Examples
    --------
    >>> import fmviz
    >>> from fmviz.engine.problem import Problem
    >>> from fmviz.paths import iterate_path
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> problem = Problem.build(X, y, lambda_p=0.1, fit_linear=False)
    >>> for point in iterate_path(problem, [0.1, 0.5], orders=["up"], random_state=0):
    ...     print(point.lambda_sparse, point.snapshot.used_interactions)
    0.1 18
    0.5 18
    """
    strengths = sorted(checked_strengths("lambdas", lambdas))
    if isinstance(orders, str) or not isinstance(orders, Iterable):
        raise ValueError(
            f"orders = {orders!r} must be a sequence of {', '.join(ORDERS)}: write [{orders!r}]."
        )
    for order in orders:
        one_of("orders", order, ORDERS)
    held_out = None
    if validation is not None:
        held_out = (Design(validation[0]), np.array(validation[1], dtype=np.float64))
        if held_out[0].n_features != problem.design.n_features:
            raise ValueError(
                f"The validation rows have {held_out[0].n_features} features, the training rows "
                f"{problem.design.n_features}; they must agree."
            )
        if held_out[1].shape != (held_out[0].n_samples,):
            raise ValueError(
                f"The validation target has shape {held_out[1].shape}; it needs one value a row."
            )
    rng = np.random.default_rng(random_state)
    # Every cold fit, and the first of every warm path, begins at the same point.
    start = problem.start(finite_number("init_scale", init_scale, low=0), rng)
    if not isinstance(solver, Solver):
        solver = chosen_solver(problem, solver).name
        solver_params = path_params(solver, solver_params)
    method = get_solver(solver, solver_params)
    return _path(problem, strengths, orders, method, budget, start, rng, held_out, should_stop)


def path_params(solver: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a solver has along a path: those given, and what warm starts call for."""
    taken = {spec.name for spec in get_solver(solver).params}
    wanted = {"active_sweeps": ACTIVE_SWEEPS, "anderson": ANDERSON}
    return {name: value for name, value in wanted.items() if name in taken} | dict(given)


def _path(
    problem: Problem,
    strengths: list[float],
    orders: Sequence[Order],
    solver: Solver,
    budget: Budget | None,
    first: Parameters,
    rng: np.random.Generator,
    held_out: tuple[Design, np.ndarray] | None,
    should_stop: Callable[[], bool],
) -> Iterator[PathPoint]:
    # One report at the end of each fit is all that is read.
    budget = replace(budget or Budget(epochs=1_000), report_every=None)
    for order in orders:
        start = first
        for strength in reversed(strengths) if order == "down" else strengths:
            if should_stop():
                return
            one = replace(problem, lambda_sparse=strength)
            *_, end = iterate(one, solver, budget, should_stop, start=start, rng=rng)
            if order != "cold":
                start = end.parameters
            yield PathPoint(order, strength, end, _validation_loss(one, held_out, end.parameters))


def regularization_path(
    X: Any,
    y: Any,
    lambdas: Sequence[float] | None = None,
    *,
    orders: Sequence[Order] = ("down",),
    validation: tuple[Any, Any] | None = None,
    solver: str | Solver = "auto",
    max_iter: int = 1_000,
    tol: float = 1e-4,
    init_scale: float = 0.01,
    random_state: Any = None,
    **problem: Any,
) -> pd.DataFrame:
    """Fit a factorization machine at every strength λ of a grid.

    Parameters
    ----------
    X : (N, d) array_like or sparse matrix
        The features.
    y : (N,) array_like
        The target; -1 and +1 for a binary loss.
    lambdas : sequence of float, optional
        The strengths λ ≥ 0; by default 16 of them, 10 for each factor of 1,000, from 1 down to 3e-5.
    orders : sequence of {"cold", "down", "up"}
        How fits begin: anew, from the fit at the next larger strength, or at the next smaller. All matter:
        P = 0 is stationary, so a path that comes down from a strength that empties P stays empty, a cold
        start may collapse where a far better point exists, and one that goes up does not.
    validation : (X, y), optional
        Rows kept out, for the column ``validation_loss``.
    solver, max_iter, tol, init_scale, random_state
        As for `fmviz.FactorizationMachineRegressor`; by name or "auto", PCD makes up to 10 `active_sweeps`
        in each epoch and extrapolates every 5 sweeps (`anderson`).
    **problem
        What else describes the objective: ``loss``, ``regularizer`` and ``model``, names or values such as
        ``TI(axis="rows")``, the parameters of those that are named (``loss_param``, ``regularizer_params``,
        ``model_params``), ``rank``, ``lambda_w``, ``lambda_p``, ``fit_linear``, ``fit_intercept`` and
        ``sample_weight``.

    Returns
    -------
    DataFrame
        One row a fit: ``order``, ``lambda_sparse``, ``objective``, ``loss``, ``used_features``,
        ``used_interactions``, ``validation_loss``, ``epochs``, ``seconds``, ``certificate``, ``status``.

    Raises
    ------
    ValueError
        If anything is out of range or does not fit together.

    Examples
    --------
    From cold starts P collapses where, with the same λ, a path that goes up keeps all 18 planted pairs:

    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> settings = {"lambda_p": 0.1, "fit_linear": False, "random_state": 0}
    >>> path = fmviz.regularization_path(X, y, [0.02, 0.1, 0.5], orders=["cold", "up"], **settings)
    >>> print(path[["order", "lambda_sparse", "used_interactions"]])
      order  lambda_sparse  used_interactions
    0  cold           0.02                 46
    1  cold           0.10                 18
    2  cold           0.50                  0
    3    up           0.02                 46
    4    up           0.10                 18
    5    up           0.50                 18
    """
    if lambdas is None:
        lambdas = [10.0 ** (-0.3 * i) for i in range(16)]
    budget = Budget(epochs=whole_number("max_iter", max_iter, 1), tol=finite_number("tol", tol, low=0))
    points = iterate_path(
        problem_of(X, y, problem),
        lambdas,
        orders=orders,
        solver=solver,
        budget=budget,
        init_scale=init_scale,
        random_state=random_state,
        validation=validation,
    )
    return pd.DataFrame.from_records([point.record() for point in points])


def checked_strengths(name: str, given: Any) -> set[float]:
    """Return the different strengths, or raise ValueError."""
    if isinstance(given, str) or np.ndim(given) != 1:
        raise ValueError(f"{name} = {given!r} must be a sequence of strengths, for instance [0.1, 0.01].")
    found = {finite_number(name, value, low=0) for value in given}
    if not found:
        raise ValueError(f"{name} is empty; give at least one strength.")
    return found


def problem_of(X: Any, y: Any, problem: dict[str, Any]) -> Problem:
    """Return the problem that keywords describe; ValueError where one describes nothing of an objective."""
    named = list(signature(bound).parameters)
    known = [*named, *(name for name in signature(Problem.build).parameters if name not in _GIVEN)]
    if "lambda_sparse" in problem:
        raise ValueError(
            f"lambda_sparse = {problem['lambda_sparse']!r} is what changes along a path: name the strengths "
            "in lambdas or grid."
        )
    for name in problem:
        one_of("keyword", name, known)
    given = dict(problem)
    return Problem.build(X, y, **bound(**{name: given.pop(name) for name in named if name in given}), **given)


def _validation_loss(
    problem: Problem, held_out: tuple[Design, np.ndarray] | None, parameters: Parameters
) -> float:
    if held_out is None:
        return float("nan")
    f = problem.model.predict(held_out[0], parameters)
    return float(np.mean(problem.loss.value(f, held_out[1])))
