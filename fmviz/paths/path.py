"""Regularization paths: fits at every strength λ of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from fmviz.engine.design import Design
from fmviz.engine.errors import finite_number, one_of, whole_number
from fmviz.engine.fit import Budget, Fit, chosen_solver
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Formulation, Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.informed import QUICK, fit_from, lower_start
from fmviz.engine.starts.strengths import References
from fmviz.engine.starts.zero_threshold import ZeroThreshold, zero_threshold

from .scaling import Scale

Order = Literal["cold", "down", "up"]
ORDERS = ("cold", "down", "up")
FALL = 1e-5
"""The default `fall` of a path with an informed start; see `Budget`."""
# The standard deviation of a random start that is not derived from the data.
_INIT_SCALE = 0.01
# The number of sweeps between extrapolations, for solvers that extrapolate.
_ANDERSON = 5
# Parameters of `Problem.build` that are not passed by keyword.
_GIVEN = ("X", "y", "lambda_sparse", "penalty")


@dataclass(frozen=True, eq=False)
class PathPoint:
    """A fit on a path.

    Attributes
    ----------
    order : {"cold", "down", "up"}
        Cold start, warm start from the fit at the next larger λ, or from the fit at the next smaller λ.
    lambda_sparse : float
        The strength λ.
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
        """Return the scalars as a flat record: a row of the path."""
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
    """Table of a path with one row per fit, plus the fits, their model, and feature names and scale."""

    _metadata: ClassVar[list[str]] = ["points", "model", "names", "scaling"]

    def copy(self, deep: bool = True) -> Path:
        """Return a copy that includes the fits."""
        return Path(super().copy(deep)).__finalize__(self)


def iterate_path(  # noqa: PLR0913 (keywords as those of the estimators)
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
) -> Iterator[PathPoint]:
    """Yield the fit at every λ; see `regularization_path`.

    A solver given by name runs 10 `active_sweeps` and extrapolates every 5 sweeps (`anderson`) if supported;
    an instance, such as ``PCD(anderson=0)``, keeps its settings. `start` may be the parameters from which
    cold fits, and the first fit of every warm path, start; the solver is then unchanged.

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
    kind, first = ("random", start) if isinstance(start, Parameters) else (start, None)
    fit = fit_from(
        kind,
        problem,
        path_solver(problem, solver),
        finite_number("init_scale", init_scale, low=0),
        np.random.default_rng(random_state),
        start=first,
        at_any_strength=True,
    )
    fit = replace(fit, budget=replace(budget or Budget(epochs=1_000), report_every=None))
    return _path(fit, strengths, orders, kind == "informed", held_out, should_stop)


def onwards(problem: Formulation) -> Order:
    """Return the order of a warm-started path: down if solvers can escape P = 0, else up."""
    return "up" if problem.penalty.saddles is None else "down"


def path_solver(problem: Formulation, solver: str | Solver) -> Solver:
    """Return a solver unchanged, or create it by name with settings that suit warm starts."""
    if isinstance(solver, Solver):
        return solver
    return chosen_solver(problem, solver).having(**QUICK, anderson=_ANDERSON)


def _path(
    fit: Fit,
    strengths: list[float],
    orders: Sequence[Order],
    informed: bool,
    held_out: Problem | None,
    should_stop: Callable[[], bool],
) -> Iterator[PathPoint]:
    """Yield the fits; every cold fit, and the first fit of every warm path, has the start of `fit`."""
    for order in orders:
        start = fit.start
        for strength in reversed(strengths) if order == "down" else strengths:
            current = fit.problem.at(lambda_sparse=strength)
            if order == "cold" and informed:
                # The fit can be reproduced alone.
                start = lower_start(current, fit.start)
            end = replace(fit, problem=current, start=start).end(should_stop)
            if order != "cold":
                start = end.parameters
            loss = float("nan") if held_out is None else held_out.risk(end.parameters)
            yield PathPoint(order, strength, end, loss)
            if should_stop():
                return


def regularization_path(  # noqa: PLR0913 (keywords as those of the estimators)
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
        The strengths λ ≥ 0; by default 25, from about the λ at which P = 0 (see `lambda_max`) down to a
        thousandth of it.
    orders : sequence of {"cold", "down", "up"}, optional
        How fits start: cold, or warm from the fit at the next larger ("down") or smaller ("up") strength. By
        default "down" if solvers can escape P = 0 with the regularizer, and otherwise "up".
    start : {"informed", "random"}, optional
        With "random", fits start from a small random P and do not escape saddle points, as in the papers.
        They never leave P = 0: a downward path stays empty, and a cold start may collapse although a far
        better point exists; an upward path avoids this. With "informed", the default without `orders`, fits
        with TI, CS, Ω_TI, Ω_CS and ℓ2² escape P = 0 if it is a saddle point, and fits with ℓ1 and ℓ2,1 start
        from a solution with ℓ2²; cold fits with CS are compared with a fit started from TI.
    validation : (X, y), optional
        Held-out rows, for the column ``validation_loss``.
    init_scale : float, optional
        The standard deviation of the random start; by default 0.01, or derived from the data with an informed
        start.
    fall : float, optional
        A fit also counts as converged if an epoch lowers its objective by a smaller fraction than this: 1e-5
        with an informed start; 0, which disables the criterion, with a random one. On planted groups and
        diabetes, 1e-5 makes paths up to 8 times cheaper than 0; the median objective of a path is at most
        0.1 % higher, the worst one 14 % (CS, planted, where features are about to be dropped).
    solver, max_iter, tol, random_state
        As for `fmviz.FactorizationMachineRegressor`; given by name or "auto", PCD runs up to 10
        `active_sweeps` per epoch and extrapolates every 5 sweeps (`anderson`).
    standardize : {"auto", True, False}
        As for `fmviz.FactorizationMachineRegressor`: strengths refer to the scaled columns.
    **problem
        The other parameters of the objective: ``loss``, ``regularizer`` and ``model`` (names or instances
        such as ``TI(axis="rows")``), ``rank``, ``lambda_w``, ``lambda_p``, ``fit_linear``, ``fit_intercept``
        and ``sample_weight``.

    Returns
    -------
    DataFrame
        One row per fit: ``order``, ``lambda_sparse``, ``objective``, ``loss``, ``used_features``,
        ``used_interactions``, ``validation_loss``, ``epochs``, ``seconds``, ``certificate``, ``status``. The
        attribute ``points`` has the fits as `fmviz.paths.PathPoint`, which `fmviz.show` displays. Their
        parameters refer to ``scaling.apply(X)``; ``scaling`` is another attribute.

    Raises
    ------
    ValueError
        If a parameter is out of range, or parameters are incompatible.

    Examples
    --------
    A downward path recovers exactly the 18 planted pairs:

    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> path = fmviz.regularization_path(X, y, [0.2, 0.1, 0.05], lambda_p=0.1, random_state=0)
    >>> path["used_interactions"].tolist()
    [18, 18, 18]

    From cold random starts, P collapses at a λ at which an upward path keeps the pairs:

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
    known = References(described)  # Computed on access.
    lambdas = known.grid() if lambdas is None else lambdas
    if init_scale is None:
        init_scale = known.init_scale if start == "informed" else _INIT_SCALE
    if fall is None:
        fall = FALL if start == "informed" else 0.0
    fits = [
        *iterate_path(
            described,
            lambdas,
            orders=(onwards(described),) if orders is None else orders,
            start=start,
            solver=solver,
            budget=Budget(
                epochs=whole_number("max_iter", max_iter, 1),
                tol=finite_number("tol", tol, low=0),
                fall=finite_number("fall", fall, low=0),
            ),
            init_scale=init_scale,
            random_state=random_state,
            validation=validation,
        )
    ]
    table = Path(pd.DataFrame.from_records([point.record() for point in fits]))
    table.points, table.model, table.scaling = fits, described.model, scale
    table.names = getattr(X, "columns", None)
    return table


def lambda_max(X: Any, y: Any, *, standardize: bool | str = "auto", **problem: Any) -> ZeroThreshold:
    """Return an interval for λ_max, the strength above which a factorization machine has no interactions.

    Above it, P = 0 is a minimum (global for a convex loss); below it, P = 0 is a saddle point. It depends on
    the data through G, the gradient of the risk with respect to the pair weights at the linear fit: for TI
    and CS it lies between (max|G_ij| − 2λ_p)/4 and max|G_ij|/2, for Ω_TI, Ω_CS and Ω_* between
    max|G_ij| − 2λ_p and max|G_ij|; for ℓ2² and TI by rows it is −λ_min(G)/2 − λ_p; and it is 0 if λ_p is at
    least −λ_min(G)/2. For up to 100 features, the interval is tightened by a search for the best descent
    direction at P = 0, and by a semidefinite program that proves that there is none.

    Parameters
    ----------
    X : (N, d) array_like or sparse matrix
        The features.
    y : (N,) array_like
        The target; -1 and +1 for a binary loss.
    standardize : {"auto", True, False}
        As for `fmviz.FactorizationMachineRegressor`: the strength refers to the scaled columns.
    **problem
        The parameters of the objective, as for `regularization_path`.

    Returns
    -------
    ZeroThreshold
        With ``lower``, ``upper``, the descent ``direction`` at P = 0 just below ``lower``, the matrix
        ``dual`` that proves ``upper``, and the flag ``loose``.

    Raises
    ------
    ValueError
        If the model or the regularizer has no such strength (ℓ1, for example; the message suggests an
        alternative), or a parameter is out of range.

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
        raise ValueError(f"{name} = {given!r} must be a sequence of strengths, such as [0.1, 0.01].")
    if not (strengths := {finite_number(name, value, low=0) for value in given}):
        raise ValueError(f"{name} is empty; give at least one strength.")
    return strengths


def problem_of(X: Any, y: Any, standardize: Any, problem: dict[str, Any]) -> tuple[Problem, Scale]:
    """Build a problem and its scale from keywords; raise ValueError for unknown ones."""
    known = ["regularizer", *(name for name in signature(Problem.build).parameters if name not in _GIVEN)]
    if "lambda_sparse" in problem:
        raise ValueError(
            f"lambda_sparse = {problem['lambda_sparse']!r} varies along a path: pass the strengths as "
            "lambdas or grid."
        )
    for name in problem:
        one_of("keyword", name, known)
    built = Problem.build(
        X, y, **{"penalty" if name == "regularizer" else name: value for name, value in problem.items()}
    )
    scale = Scale.of_problem(built, standardize)
    return scale.apply_to(built), scale
