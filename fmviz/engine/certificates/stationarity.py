"""The stationarity residual of a fit, recomputed only from P, w, b, X and y.

It shares no code with the coordinate and row solvers: plain matrix products, no caches, and no kernels except
those of the losses.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from ..blas import one_thread
from ..losses.majoriser import Smoothed, typical_size
from ..parameters import Parameters
from ..penalties import Penalty
from ..penalties.base import shrunk
from ..penalties.blockwise import parts_of
from ..problem import Evaluation, Problem
from .duality import relative_gaps
from .majoriser_gap import tangent_gap

# Smoothings of kinks, as fractions of a typical target; which of them proves stationarity depends on the
# accuracy of the solver.
_SMOOTHINGS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)

# The number of rows of P whose steps are computed at a time.
_ROWS = 10_000


def certify(problem: Problem, parameters: Parameters, thorough: bool = True) -> float:
    """Return the certificate declared by the model: `stationarity`, `relative_gaps` or `tangent_gap`.

    For several machines, it is the maximum.
    """
    return max(residual for residual, _ in problem.by_machine(certificates, parameters, thorough))


@one_thread()
def certificates(
    problem: Problem, parameters: Parameters, thorough: bool = True, here: Evaluation | None = None
) -> tuple[float, float | None]:
    """Return `certify`, and the value that the best possible bounds would give; None if it is exact.

    Without `thorough`, the gap is a looser but cheaper bound. `here` is the evaluation at the
    parameters, if available.

    For losses with kinks, the residual is the minimum over losses smoothed by a δ of at most 1e-4 of a
    typical target. At a stationary point of a smoothed objective, 0 is in the subdifferential of the original
    one with targets shifted by δ.
    """
    if problem.model.certificate == "majoriser":
        return tangent_gap(problem, parameters), None
    if not problem.loss.smooth:
        unit = 1.0 if problem.loss.task == "binary" else typical_size(problem.y)
        here = problem.evaluated(parameters) if here is None else here
        near = (here.under(Smoothed(problem.loss, share * unit)) for share in _SMOOTHINGS)
        return min((certificates(at.problem, parameters, thorough, at) for at in near), key=itemgetter(0))
    if problem.model.certificate == "gap":
        return relative_gaps(problem, parameters, thorough)
    return stationarity(problem, parameters, here), None


def stationarity(problem: Problem, parameters: Parameters, here: Evaluation | None = None) -> float:
    """Return the largest step of a coordinate or row minimization from the parameters.

    For every entry of P (or row, if the penalty acts on rows), the objective is majorized by a quadratic with
    the Lipschitz constant of the entry (the sum over the row), plus the penalty, and minimized in closed
    form; likewise for w and the bias. If the loss has no Lipschitz constant, its current curvature replaces
    it, which makes the steps those of Newton's method along a coordinate. The result is the largest distance
    to these minima, relative to the largest |P|, or for w and the bias to the largest of them: 0 at a
    stationary point. For TI, CS, ℓ1 and ℓ2,1, stationarity in every coordinate (row) implies stationarity of
    the objective, since ∂Ω is a product of the subdifferentials of the coordinates (rows).

    If Ω is not separable along entries or rows (Ω_*), the step of an entry is the smallest subgradient found
    by the penalty divided by the Lipschitz constant: an upper bound, 0 only at a stationary point of the
    objective.
    """
    here = problem.evaluated(parameters) if here is None else here
    steps = _factor_step(here), _linear_step(here)
    return float(max(steps)) if np.isfinite(steps).all() else float("inf")


def _factor_step(here: Evaluation) -> float:
    problem, P = here.problem, here.parameters.P
    if P.size == 0:
        # Rank 0: the linear model.
        return 0.0
    gradient, h = here.gradient[0], here.curvature
    shrink = 2.0 * problem.lambda_p * np.broadcast_to(problem.model.column_weights(here.parameters), P.shape)
    step = 0.0
    for columns, penalty in parts_of(problem.penalty):
        size = (_closed_step if penalty.separable else _least_subgradient_step)(
            problem.lambda_sparse,
            penalty,
            P[:, columns],
            gradient[:, columns],
            h[:, columns],
            shrink[:, columns],
        )
        step = max(step, size) if np.isfinite(size) else float("inf")
    return _relative(step, float(np.abs(P).max()))


def _closed_step(
    strength: float,
    penalty: Penalty,
    P: np.ndarray,
    gradient: np.ndarray,
    h: np.ndarray,
    shrink: np.ndarray,
) -> float:
    t = strength * penalty.thresholds(P)
    if penalty.row_wise:
        h = h.sum(axis=1, keepdims=True)
    step = 0.0
    # In blocks of rows, since for many features the arrays are large.
    for begin in range(0, len(P), _ROWS):
        some = slice(begin, begin + _ROWS)
        own, at = P[some], t[some] if np.ndim(t) and len(t) == len(P) else t
        u = np.where(h[some] > 0, h[some] * own - gradient[some], 0.0)
        bend = np.broadcast_to(h[some] + shrink[some] + 2.0 * strength * penalty.quad, own.shape)
        # Without curvature and penalty, an entry has no effect and stays; with only a threshold, it becomes
        # 0.
        Q = np.where(np.broadcast_to(at, own.shape) > 0, 0.0, own)
        Q = np.divide(shrunk(u, at, penalty.row_wise), bend, out=Q, where=bend > 0)
        step = max(step, float(np.abs(own - Q).max()))
    return step


def _least_subgradient_step(
    strength: float,
    penalty: Penalty,
    P: np.ndarray,
    gradient: np.ndarray,
    h: np.ndarray,
    shrink: np.ndarray,
) -> float:
    residual = penalty.residual(-gradient - shrink * P, P, strength)
    bend = h + shrink
    largest = float(bend.max()) or strength or 1.0
    # Without curvature, rounding errors would become steps.
    return float((np.abs(residual) / np.maximum(bend, 1e-6 * largest)).max())


def _linear_step(here: Evaluation) -> float:
    problem, parameters = here.problem, here.parameters
    if not (problem.fit_linear or problem.fit_intercept):
        return 0.0
    (_, in_w, in_bias), (h, bend_of_bias) = here.gradient, here.linear_curvature
    size = max(float(np.abs(parameters.w).max()), abs(parameters.intercept))
    step = 0.0
    if problem.fit_linear:
        bend = h + 2.0 * problem.lambda_w
        gradient = in_w + 2.0 * problem.lambda_w * parameters.w
        step = float(np.abs(np.divide(gradient, bend, out=np.zeros_like(h), where=bend > 0)).max())
    if problem.fit_intercept:
        step = max(step, abs(in_bias) / bend_of_bias if bend_of_bias > 0.0 else 0.0)
    return _relative(step, size)


def _relative(step: float, size: float) -> float:
    return step / max(size, step) if step > 0 else step
