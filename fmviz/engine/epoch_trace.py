"""Trace the single coordinate or proximal steps of one epoch in NumPy.

Compiled sweeps cannot halt after an entry. Here every step is recomputed from the definition: the slope, its
bound and the threshold follow from the present P, w and bias, without the caches of the kernels, so that the
iterates after an epoch are those of the kernels up to rounding. A proximal gradient step is split into its
two halves by the solver itself, and is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np

from .checkpoint import recall
from .errors import WhyNot, one_of
from .models import Model
from .parameters import Parameters
from .penalties.base import shrunk
from .problem import Problem
from .solvers import Solver, get_solver
from .solvers._flat_problem import ROUNDING
from .solvers.kernels.coefficients import NOISE
from .solvers.pcd import FIRST_SWEEPS, ORDER
from .solvers.proximal import APGD

__all__ = ["Step", "replay", "steps_of_epoch", "why_no_steps"]

SWEEPS = {"cd": "entry", "pcd": "entry", "pbcd": "row"}
"""Solvers whose epoch is a sweep over entries or rows of P."""
HALVES = ("pgd", "apgd")
"""Solvers whose epoch is a proximal gradient step."""

Kind = Literal["bias", "weight", "entry", "row", "extrapolate", "gradient", "prox", "back"]


@dataclass(frozen=True, eq=False)
class Step:
    """One step inside an epoch.

    With slope g, bend h (its Lipschitz constant), shrinkage r and threshold t, an entry and the entries of a
    row p go to the minimum of g·q + ½h‖q − p‖² + ½r‖q‖² + t·|q|, which is soft(hp − g, t)/(h + r).

    Attributes
    ----------
    kind : str
        What is updated: the bias, a weight w_j, the entry p_js, the row p_j, or all parameters:
        "extrapolate" to the point of momentum, "gradient" and "prox" for the halves of the update, "back"
        where it is repeated without momentum.
    j, s : int
        The feature and the column of P, -1 where there is none.
    before, after : ndarray
        The values: of length 1, of length k for a row, of length dk + d + 1 for all parameters (P row by
        row, w, bias).
    slope : ndarray
        The derivative of the risk in these.
    bend : float
        Its Lipschitz constant; 1/η for the halves.
    shrink : float
        2λ_w, or twice the weight of ‖P‖²_F as seen from an entry or a row.
    threshold : ndarray
        The weight of |q|, or of ‖q‖₂ where rows are shrunk by their norm (`by_norm`).
    by_norm : bool
        Whether it is the norm of the row that is shrunk.
    """

    kind: Kind
    j: int
    s: int
    before: np.ndarray
    after: np.ndarray
    slope: np.ndarray
    bend: float = 0.0
    shrink: float = 0.0
    threshold: np.ndarray = field(default_factory=lambda: np.zeros(1))
    by_norm: bool = False

    @property
    def moved(self) -> bool:
        """Whether anything has changed."""
        return not np.array_equal(self.before, self.after)


def why_no_steps(model: Model, solver: Solver) -> WhyNot | None:
    """Return why an epoch of this solver is not shown step by step, or None."""
    label, settings = solver.label, solver.settings
    if solver.name not in SWEEPS and solver.name not in HALVES:
        return WhyNot(
            "no_steps",
            f"An epoch of {label} has no steps on single entries, rows or halves of an update to show. Step "
            "by epoch, or choose PCD (entries), PBCD (rows), PGD or APGD (halves).",
        )
    if solver.name in SWEEPS and (model.columnar or model.lifted):
        return WhyNot(
            "pairs_only",
            f"Steps inside an epoch of {label} are shown for the factorization machine of order 2. Step by "
            "epoch, or choose that model.",
        )
    several = [name for name in ("active_sweeps", "anderson") if settings.get(name)]
    if several:
        words = several[0].replace("_", " ")
        sentence = f"With {words} = {settings[several[0]]} an epoch is more than one sweep. Set it to 0."
        return WhyNot("several_sweeps", sentence)
    if settings.get("revive"):
        return WhyNot(
            "saddle_escape",
            "With revive = True an epoch may end with a new column, which is no step of a sweep. Turn it "
            "off.",
        )
    return None


def steps_of_epoch(
    problem: Problem,
    solver: str | Solver,
    parameters: Parameters,
    *,
    epochs: int = 0,
    memory: Mapping[str, Any] | None = None,
) -> Iterator[Step]:
    """Yield the steps of a solver's next epoch.

    Parameters
    ----------
    problem : Problem
        The objective.
    solver : str or Solver
        Its name is a key of `SWEEPS`, or one of `HALVES`.
    parameters : Parameters
        The state before the epoch; read-only.
    epochs : int
        Epochs since the solver was started: the order of a "mixed" sweep depends on it.
    memory : mapping, optional
        The solver's state (`fmviz.engine.checkpoint.Checkpoint.memory`), which `HALVES` need: their step
        size, and momentum. Without it they start afresh.

    Raises
    ------
    ValueError
        If it is no such solver.
    """
    chosen = get_solver(solver)
    one_of("solver", chosen.name, (*SWEEPS, *HALVES))
    method: Any = chosen.on(problem)
    if chosen.name in HALVES:
        method.start(parameters, np.random.default_rng())
        if memory is not None:
            recall(method, memory)
        yield from _halves(method)
        return
    by_features = method.settings.get(ORDER.name) == "features" or (
        method.settings.get(ORDER.name) == "mixed" and epochs >= FIRST_SWEEPS
    )
    yield from _sweep(problem, SWEEPS[chosen.name], parameters, by_features)


def replay(parameters: Parameters, steps: list[Step]) -> Parameters:
    """Apply steps to a copy of the parameters."""
    P, w, bias = parameters.P.copy(), parameters.w.copy(), float(parameters.intercept)
    for step in steps:
        if step.kind == "bias":
            bias = float(step.after[0])
        elif step.kind == "weight":
            w[step.j] = step.after[0]
        elif step.kind == "entry":
            P[step.j, step.s] = step.after[0]
        elif step.kind == "row":
            P[step.j] = step.after
        else:
            P = step.after[: P.size].reshape(P.shape).copy()
            w, bias = step.after[P.size : -1].copy(), float(step.after[-1])
    return parameters.replace(P=P, w=w, intercept=bias)


# ------------------------------------------------------------------------------------------------- sweeps


class _Sums:
    """The predictions and A = XP, kept up to date."""

    def __init__(self, problem: Problem, parameters: Parameters) -> None:
        self.problem = problem
        self.c = problem.unit_weights
        f, A = problem.model.forward(problem.design, parameters)
        self.f: np.ndarray = f
        self.A: np.ndarray = np.asarray(A)
        # As in the kernels, values negligible beside these are rounding errors.
        self.tops = np.abs(self.A).max(axis=0)

    def column(self, j: int) -> tuple[Any, np.ndarray]:
        """Return the rows in which feature j is stored, and its values."""
        data, indices, indptr = self.problem.design.columns
        part = slice(indptr[j], indptr[j + 1])
        rows = indices[part].astype(np.int64) if indices.size else slice(None)
        if data.size:
            return rows, data[part].astype(np.float64)
        return rows, np.ones(indptr[j + 1] - indptr[j])

    def slope(self, rows: Any = slice(None)) -> np.ndarray:
        """Return c ℓ'(f) at some rows."""
        problem = self.problem
        return np.asarray(self.c[rows] * problem.loss.derivative(self.f[rows], problem.y[rows]))


def _sweep(problem: Problem, grain: str, parameters: Parameters, by_features: bool) -> Iterator[Step]:
    P, w, bias = parameters.P.copy(), parameters.w.copy(), float(parameters.intercept)
    sums = _Sums(problem, parameters)
    yield from _linear(problem, sums, w, bias)
    d, k = P.shape
    if grain == "row":
        for j in range(d):
            yield _factor_step(problem, sums, P, j)
        return
    first, second = (range(d), range(k)) if by_features else (range(k), range(d))
    for outer, inner in product(first, second):
        yield _factor_step(problem, sums, P, *((outer, inner) if by_features else (inner, outer)))


def _linear(problem: Problem, sums: _Sums, w: np.ndarray, bias: float) -> Iterator[Step]:
    n, mu = problem.y.size, problem.mu
    if problem.fit_intercept:
        g = float(sums.slope().sum()) / n
        new = bias - g / mu
        sums.f += new - bias
        yield Step("bias", -1, -1, np.array([bias]), np.array([new]), np.array([g]), mu)
    if not problem.fit_linear:
        return
    shrink = 2.0 * problem.lambda_w
    for j in range(w.size):
        rows, x = sums.column(j)
        g = float(sums.slope(rows) @ x) / n
        h = mu * float((sums.c[rows] * x) @ x) / n
        old = w[j]
        if h + shrink > 0.0:
            w[j] = old - (g + shrink * old) / (h + shrink)
            sums.f[rows] += (w[j] - old) * x
        yield Step("weight", j, -1, np.array([old]), w[[j]], np.array([g]), h, shrink)


def _factor_step(problem: Problem, sums: _Sums, P: np.ndarray, j: int, s: int = -1) -> Step:
    """Move the entry p_js, or without s the row p_j, to its minimum."""
    columns = slice(None) if s < 0 else slice(s, s + 1)
    n, p = problem.y.size, P[j, columns].copy()
    rows, x = sums.column(j)
    A = sums.A[rows, columns]
    df = x[:, None] * (A - x[:, None] * p)
    c = sums.c[rows]
    h = float((c @ np.square(df)).sum())
    g = sums.slope(rows) @ df / n
    if h <= NOISE * sums.tops[columns].max() ** 2 * float((c * x) @ x):
        g, h = np.zeros_like(g), 0.0
    h *= problem.mu / n
    t = (problem.lambda_sparse * problem.penalty.thresholds(P))[j, columns]
    shrink = 2.0 * (problem.lambda_p + problem.lambda_sparse * problem.penalty.quad)
    by_norm = problem.penalty.row_wise
    q = p.copy()
    if h + shrink > 0.0:
        q = shrunk((h * p - g)[None], t, by_norm)[0] / (h + shrink) + 0.0  # A zero has no sign.
    elif (t > 0.0).any():
        q = np.where(np.broadcast_to(t, p.shape) > 0.0, 0.0, p)
    if not np.array_equal(p, q):
        step = q - p
        sums.f[rows] += x * (A @ step) - np.square(x) * float(p @ step)
        sums.A[rows, columns] += x[:, None] * step
        P[j, columns] = q
    return Step("row" if s < 0 else "entry", j, s, p, q, g, h, shrink, t, by_norm)


# ------------------------------------------------------------------------------------------------- halves


def _halves(method: Any) -> Iterator[Step]:
    """Yield the halves of a step of PGD or APGD, computed by the solver's own line search."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not isinstance(method, APGD):
            yield from _half_steps(method, method._x, method._longer())[0]
            return
        joint, here = method._joint, method._x
        y = here + method._momentum * (here - method._previous)
        steps, x, risk = _half_steps(method, y, method._longer())
        if method._momentum:
            yield Step("extrapolate", -1, -1, here, y, np.zeros(1), method._momentum)
        yield from steps
        value = risk + joint.penalty(x)
        if method._momentum and not value <= method._value + ROUNDING * abs(method._value):
            yield Step("back", -1, -1, x, here, np.zeros(1))
            yield from _half_steps(method, here, method._eta)[0]


def _half_steps(method: Any, y: np.ndarray, eta: float) -> tuple[list[Step], np.ndarray, float]:
    x, risk = method._step(y, eta)
    gradient = method._joint.risk_and_gradient(y)[1]
    eta = method._eta
    half = y - eta * gradient
    if not np.array_equal(method._joint.prox(half, eta), x):
        # No step was short enough: nothing moves.
        return [Step("gradient", -1, -1, y, y, gradient, 1.0 / eta)], x, risk
    steps = [
        Step("gradient", -1, -1, y, half, gradient, 1.0 / eta),
        Step("prox", -1, -1, half, x, np.zeros(1), 1.0 / eta),
    ]
    return steps, x, risk
