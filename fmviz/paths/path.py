"""Regularization paths: fits at every strength λ of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from fmviz.choices import bound
from fmviz.engine.design import Design
from fmviz.engine.drive import Budget, chosen_solver, iterate
from fmviz.engine.errors import finite_number, one_of, whole_number
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Formulation, Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import Solver, get_solver
from fmviz.engine.starts.informed import STARTS, informed_solver, lower_start, path_start, quick_settings
from fmviz.engine.starts.strengths import References
from fmviz.engine.starts.zero_threshold import ZeroThreshold, zero_threshold

from .scaling import Scale

Order = Literal["cold", "down", "up"]
ORDERS = ("cold", "down", "up")
FALL = 1e-5
"""The default `fall` of a path with an informed start; see `Budget`."""
# The size of a random start that is not derived from the data.
_INIT_SCALE = 0.01
# Sweeps between extrapolations, where a solver has them.
_ANDERSON = 5
# Parameters of `Problem.build` that are not passed by keyword.
_GIVEN = ("X", "y", "lambda_sparse", "loss", "penalty", "model")


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One fit of a path.

    Attributes
    ----------
    order : {"cold", "down", "up"}
        Started from scratch, from the fit at the next larger λ, or from the one at the next smaller.
    lambda_sparse : float
        λ.
    snapshot : Snapshot
        The final snapshot of the fit, with its status.
    validation : float
        The mean loss on the validation rows; NaN without such rows.
    """

    order: Order
    lambda_sparse: float
    snapshot: Snapshot
    validation: float

    def record(self) -> dict[str, Any]:
        """Return the scalars, flat: one row of a path."""
        end: Any = self.snapshot
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


class Path(pd.DataFrame):
    """The table of a path, one row a fit, with the fits, their model, and names and scale of features."""

    _metadata: ClassVar[list[str]] = ["points", "model", "names", "scaling"]

    def copy(self, deep: bool = True) -> Path:
        """Return a copy that has the fits, too."""
        return Path(super().copy(deep)).__finalize__(self)


def iterate_path(
    problem: Problem,
    lambdas: Sequence[float],
    *,
    orders: Sequence[Order] = ("down",),
    start: str | Parameters = "random",
    solver: str | Solver = "auto",
    budget: Budget | None = None,
    init_scale: float = _INIT_SCALE,
    random_state: Any = None,
    validation: tuple[Any, Any] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    **solver_params: Any,
) -> Iterator[PathPoint]:
    """Yield the fit at every λ; see `regularization_path`.

    A solver given by name makes 10 `active_sweeps` and extrapolates every 5 sweeps (`anderson`), if it can,
    unless `solver_params` override this. `start` may be the parameters of which cold fits, and the first of
    every warm path, start; the solver is then taken as it is.

    Examples
    --------
    >>> import fmviz
    >>> from fmviz.engine.problem import Formulation, Problem
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
    held_out = None if validation is None else problem.on_rows(*validation)
    rng = np.random.default_rng(random_state)
    method = path_solver(problem, solver, solver_params)
    # Every cold fit, and the first of every warm path, begins from it.
    first, method = start_and_solver(problem, start, init_scale, rng, method)
    return _path(problem, strengths, orders, method, budget, first, start, rng, held_out, should_stop)


def cold_start(problem: Problem, first: Parameters, start: str | Parameters) -> Parameters:
    """Return the start of a fit that can be repeated alone, given the one of fits at any λ."""
    return lower_start(problem, first) if isinstance(start, str) and start == "informed" else first


def start_and_solver(
    problem: Problem,
    start: str | Parameters,
    init_scale: float,
    rng: np.random.Generator,
    solver: Solver,
) -> tuple[Parameters, Solver]:
    """Return the start of fits at any λ, and the solver; an informed one escapes saddle points at P = 0."""
    if isinstance(start, Parameters):
        return start, solver
    finite_number("init_scale", init_scale, low=0)
    if one_of("start", start, STARTS) == "random":
        return problem.start(init_scale, rng), solver
    return path_start(problem, init_scale, rng), informed_solver(solver, problem)


def onwards(problem: Formulation) -> Order:
    """Return the order of a warm-started path: down where solvers can escape P = 0, else up."""
    return "up" if problem.penalty.saddles is None else "down"


def path_solver(problem: Formulation, solver: str | Solver, given: Mapping[str, Any] | None = None) -> Solver:
    """Return a given solver unchanged, or the one of that name with settings that suit warm starts."""
    if isinstance(solver, Solver):
        return get_solver(solver, given)
    name = chosen_solver(problem, solver).name
    return get_solver(name, quick_settings(name, anderson=_ANDERSON) | dict(given or {}))


def _path(
    problem: Problem,
    strengths: list[float],
    orders: Sequence[Order],
    solver: Solver,
    budget: Budget | None,
    first: Parameters,
    how: str | Parameters,
    rng: np.random.Generator,
    held_out: Problem | None,
    should_stop: Callable[[], bool],
) -> Iterator[PathPoint]:
    # Only the final snapshot of each fit is read.
    budget = replace(budget or Budget(epochs=1_000), report_every=None)
    for order in orders:
        start = first
        for strength in reversed(strengths) if order == "down" else strengths:
            current = problem.at(lambda_sparse=strength)
            if order == "cold":
                start = cold_start(current, first, how)
            *_, end = iterate(current, solver, budget, should_stop, start=start, rng=rng)
            if order != "cold":
                start = end.parameters
            loss = float("nan") if held_out is None else held_out.risk(end.parameters)
            yield PathPoint(order, strength, end, loss)
            if should_stop():
                return


def regularization_path(
    X: Any,
    y: Any,
    lambdas: Sequence[float] | None = None,
    *,
    orders: Sequence[Order] | None = None,
    start: str | None = None,
    validation: tuple[Any, Any] | None = None,
    solver: str | Solver = "auto",
    max_iter: int = 1_000,
    tol: float = 1e-4,
    fall: float | None = None,
    init_scale: float | None = None,
    random_state: Any = None,
    standardize: bool | str = "auto",
    **problem: Any,
) -> pd.DataFrame:
    """Fit a factorization machine at every strength λ of a grid.

    Parameters
    ----------
    X : (N, d) array_like or sparse matrix
        The features.
    y : (N,) or (N, m) array_like
        The target; -1 and +1 for a binary loss. Several outputs have the same strengths.
    lambdas : sequence of float, optional
        The strengths λ ≥ 0; by default 25, from about the one at which P = 0, see `lambda_max`, down to a
        thousandth of it.
    orders : sequence of {"cold", "down", "up"}, optional
        How fits start: from scratch, from the fit at the next larger strength, or at the next smaller. By
        default down where solvers can escape P = 0 under the regularizer, and else up.
    start : {"informed", "random"}, optional
        With "random" fits are those of the papers: from a small random start, and without the escape from
        saddle points. Then fits never leave P = 0: a path downwards stays empty, a cold start may collapse
        where a far better point exists, and a path upwards does not. With "informed", the default where no
        `orders` are given, fits with TI, CS, Ω_TI, Ω_CS and ℓ2² escape P = 0 where it is a saddle point, and
        those with ℓ1 and ℓ2,1 start from a solution with ℓ2² instead; cold ones with CS are compared with
        one from TI.
    validation : (X, y), optional
        Held-out rows, for the column ``validation_loss``.
    init_scale : float, optional
        The standard deviation of the random start; 0.01, or with an informed start derived from the data.
    fall : float, optional
        A fit has also converged once an epoch lowers its objective by less than this share: 1e-5 with an
        informed start, and 0, that is never, with a random one. On planted groups and diabetes 1e-5 makes
        paths up to 8 times cheaper than 0; the middle objective of a path is at most 0.1 % higher, the
        worst one 14 % (CS, planted, where features are about to be dropped).
    solver, max_iter, tol, random_state
        As for `fmviz.FactorizationMachineRegressor`; by name or "auto", PCD makes up to 10 `active_sweeps`
        in each epoch and extrapolates every 5 sweeps (`anderson`).
    standardize : {"auto", True, False}
        As for `fmviz.FactorizationMachineRegressor`: strengths are those of the scaled columns.
    **problem
        The other parameters of the objective: ``loss``, ``regularizer`` and ``model``, names or values such
        as ``TI(axis="rows")``, the parameters of those that are named (``loss_param``,
        ``regularizer_params``, ``model_params``), ``rank``, ``lambda_w``, ``lambda_p``, ``fit_linear``,
        ``fit_intercept`` and ``sample_weight``.

    Returns
    -------
    DataFrame
        One row a fit: ``order``, ``lambda_sparse``, ``objective``, ``loss``, ``used_features``,
        ``used_interactions``, ``validation_loss``, ``epochs``, ``seconds``, ``certificate``, ``status``. The
        fits, of class `fmviz.paths.PathPoint`, are in its attribute ``points``, which `fmviz.show` draws.
        Their parameters are those of ``scaling.apply(X)``, ``scaling`` another attribute.

    Raises
    ------
    ValueError
        If anything is out of range or does not fit together.

    Examples
    --------
    A path downwards recovers exactly the 18 planted pairs:

    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> path = fmviz.regularization_path(X, y, [0.2, 0.1, 0.05], lambda_p=0.1, random_state=0)
    >>> path["used_interactions"].tolist()
    [18, 18, 18]

    From cold random starts P collapses at a λ where a path upwards keeps them:

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
    described, scale = problem_of(X, y, standardize, problem)
    if validation is not None:
        validation = (scale.apply(Design(validation[0]).matrix), validation[1])
    start = ("informed" if orders is None else "random") if start is None else start
    if lambdas is None or init_scale is None:
        known = References(described)
        lambdas = known.grid() if lambdas is None else lambdas
        if init_scale is None:
            init_scale = known.init_scale if start == "informed" else _INIT_SCALE
    if fall is None:
        fall = FALL if start == "informed" else 0.0
    budget = Budget(
        epochs=whole_number("max_iter", max_iter, 1),
        tol=finite_number("tol", tol, low=0),
        fall=finite_number("fall", fall, low=0),
    )
    points = iterate_path(
        described,
        lambdas,
        orders=(onwards(described),) if orders is None else orders,
        start=start,
        solver=solver,
        budget=budget,
        init_scale=init_scale,
        random_state=random_state,
        validation=validation,
    )
    fits = [*points]
    table = Path(pd.DataFrame.from_records([point.record() for point in fits]))
    table.points, table.model, table.scaling = fits, described.model, scale
    table.names = getattr(X, "columns", None)
    return table


def lambda_max(X: Any, y: Any, *, standardize: bool | str = "auto", **problem: Any) -> ZeroThreshold:
    """Return λ_max, the strength from which a factorization machine has no interactions, as an interval.

    Above it P = 0 is a minimum, for a convex loss a global one; below it P = 0 is a saddle point. The data
    determine it through G, the gradient of the risk in the pair weights at the linear fit: for TI and CS it
    is at least (max|G_ij| − 2λ_p)/4 and at most max|G_ij|/2, for Ω_TI, Ω_CS and Ω_* between
    max|G_ij| − 2λ_p and max|G_ij|, for ℓ2² and TI by rows −λ_min(G)/2 − λ_p, and 0 where λ_p is at least
    −λ_min(G)/2. For up to 100 features the interval is tightened by a search for the best descent
    direction at P = 0, and by a semidefinite program that proves that there is none.

    Parameters
    ----------
    X : (N, d) array_like or sparse matrix
        The features.
    y : (N,) array_like
        The target; -1 and +1 for a binary loss.
    standardize : {"auto", True, False}
        As for `fmviz.FactorizationMachineRegressor`: the strength is that of the scaled columns.
    **problem
        The parameters of the objective, as for `regularization_path`.

    Returns
    -------
    ZeroThreshold
        With ``lower``, ``upper``, the descent ``direction`` at P = 0 just below ``lower``, the matrix
        ``dual`` that proves ``upper``, and whether the interval is ``loose``.

    Raises
    ------
    ValueError
        If the model or the regularizer has no such strength, as ℓ1 has none, with an alternative; or if
        anything is out of range.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> threshold = fmviz.lambda_max(X, y, lambda_w=0.01)
    >>> print(f"{threshold.lower:.4f} {threshold.upper:.4f}")
    0.6795 0.6798
    """
    return zero_threshold(problem_of(X, y, standardize, problem)[0])


def checked_strengths(name: str, given: Any) -> set[float]:
    """Return the distinct strengths, or raise ValueError."""
    if isinstance(given, str) or np.ndim(given) != 1:
        raise ValueError(f"{name} = {given!r} must be a sequence of strengths, for instance [0.1, 0.01].")
    strengths = {finite_number(name, value, low=0) for value in given}
    if not strengths:
        raise ValueError(f"{name} is empty; give at least one strength.")
    return strengths


def problem_of(X: Any, y: Any, standardize: Any, problem: dict[str, Any]) -> tuple[Problem, Scale]:
    """Build a problem from keywords, and its scale; ValueError where one is no parameter of the objective."""
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
    built = Problem.build(
        X, y, **bound(**{name: given.pop(name) for name in named if name in given}), **given
    )
    scale = Scale.of_problem(built, standardize)
    return scale.apply_to(built), scale
