r"""The duality gap of the tangent problem of the robust machine, as a certificate of stationarity.

The tangents of both caps are taken at the parameters: rows beyond the cap of the loss have a constant cost,
the others their uncapped u, including kinks; R(Z) becomes λ_p‖QZ‖²_F + const, and its limits are unchanged.
The resulting problem in Z ⪰ 0, w and the bias is convex, touches the objective at the parameters and
majorizes it. The parameters are a stationary point of the capped objective, in the sense of its
subdifferential, if and only if they minimize this problem. The relative gap bounds the decrease by another
exact step; without caps, it proves optimality.

The slopes α_n of the dual are free in [−1, 1] at kinks. They are computed only from the parameters, by least
squares on the gradients that vanish at the minimum: in w, in the bias, and in the range of Z. The result is
made feasible; the gap is therefore an upper bound. The dual is over all Z with at most twice the current
trace, which includes a neighbourhood.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..design import Design
from ..linalg.lowrank import PairGradient, eigenform, pair_gradient
from ..losses.majoriser import smooth_part, typical_size
from ..parameters import Parameters
from ..problem import Problem
from .duality import balance

# Excesses up to these fractions of a typical target are treated as kinks, or smoothed; which of them proves
# stationarity depends on the accuracy of the solver.
_AT_KINK = (1e-6, 1e-4, 1e-3)
_SMOOTHINGS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
# The maximum size of a least-squares problem, and the maximum number of features for which Z is used as a
# matrix.
_ENTRIES, _FEATURES = 4_000_000, 600
_SCALES = (1.0, 1.0 - 1e-12, 1.0 - 1e-9, 1.0 - 1e-6, 1.0 - 1e-3, 0.9, 0.5)


def tangent_gap(problem: Problem, parameters: Parameters) -> float:
    """Return (F − D)/F, from 0 if no tangent step decreases the objective F, to 1; D is a lower bound."""
    objective = problem.objective(parameters)
    if not np.isfinite(objective):
        return float("inf")
    if objective <= 0.0:
        return 0.0
    return float(np.clip((objective - _bound(problem, parameters)) / objective, 0.0, 1.0))


def _bound(problem: Problem, parameters: Parameters) -> float:
    """Return the best lower bound found on the tangent problem at the parameters."""
    model, kinks, half = problem.model, problem.loss.majoriser, smooth_part(problem.loss)
    P, values = eigenform(parameters.P, parameters.multipliers)
    free: Any = model.free(values)  # type: ignore[attr-defined]
    f, y, c = problem.predict(parameters), problem.y, problem.unit_weights / problem.design.n_samples
    kept = c > 0.0
    constant = problem.lambda_p * float(free.sum()) * model.cap  # type: ignore[attr-defined]
    if kinks:
        kept &= kinks.excess(f, y) <= kinks.cap
        constant += min(kinks.cap, 1e300) * float(c[~kept].sum())
    if not kept.any():
        return constant
    design = Design(problem.design.take(np.flatnonzero(kept)), problem.design.dtype)
    f, y, c = f[kept], y[kept], c[kept]

    def dual(slope: np.ndarray) -> float:
        alpha, linear = balance(problem, design, c * slope), 0.0
        if kinks:
            alpha = alpha / max(1.0, float(np.abs(alpha / c).max()))
        if problem.fit_linear and problem.lambda_w > 0.0:
            linear = float(np.square(design.transpose_dot(alpha)).sum()) / (4.0 * problem.lambda_w)
        on_Z = _on_weights(problem, design, alpha, P[:, free], 2.0 * float(values.sum()))
        best = -np.inf
        for s in _SCALES:
            a = s * alpha / c
            if (conjugate := half.conjugate(a, y)) is None:
                break
            # ℓ = u is below √(2·½u²): its conjugate lacks the ½a² of that of ½u².
            lack = 0.5 * a * a if kinks else 0.0
            best = max(best, -float(c @ (conjugate - lack)) - s * s * linear - on_Z(s))
        return best

    step = half.derivative(f, y)
    if not kinks:
        return max(0.0, dual(step)) + constant
    unit = 1.0 if half.task == "binary" else typical_size(problem.y)
    slopes = [step / np.maximum(np.abs(step), share * unit) for share in _SMOOTHINGS]
    if len(f) * (1 + P.shape[0] * (1 + P.shape[1])) <= _ENTRIES:
        # The gradients in the bias, in w and in the range of Z, with those of the penalties, vanish.
        dense = design.dense()
        pull = problem.lambda_p * np.where(free, 0.0, 1.0 if model.traced else 2.0 * values)  # type: ignore
        bias, in_w = np.full((len(f), 1), float(problem.fit_intercept)), dense * float(problem.fit_linear)
        G = c[:, None] * np.hstack([bias, in_w, *(dense * (dense @ p)[:, None] for p in P.T)])
        right = np.concatenate([[0.0], 2.0 * problem.lambda_w * parameters.w, (P * pull).T.ravel()])
        for share in _AT_KINK:
            low, high = (np.sign(half.derivative(f + 2.0 * side * share * unit, y)) for side in (-1, 1))
            at = (np.abs(step) <= share * unit) & (low != high)
            slope = np.sign(step) * ~at
            slope[at] = np.linalg.lstsq(G[at].T, -(G.T @ slope) - right, rcond=1e-12)[0]
            slopes.append(np.clip(slope, np.minimum(low, high), np.maximum(low, high)))
    return max(0.0, *map(dual, slopes)) + constant


def _on_weights(
    problem: Problem, design: Design, alpha: np.ndarray, free: np.ndarray, radius: float
) -> Callable[[float], float]:
    """Return a bound on the conjugate of the penalty on Z at −s·A*α, as a function of s."""
    strength = problem.lambda_p
    top = PairGradient(design, alpha, True).lowest(1e-6)
    if problem.model.traced:  # type: ignore[attr-defined]
        return lambda s: radius * max(0.0, s * top - strength)
    if not strength or design.n_features > _FEATURES:
        return lambda s: radius * s * top
    H, Q = -pair_gradient(design, alpha, diagonal=True), np.eye(len(free)) - free @ free.T
    positive = np.maximum(np.linalg.eigvalsh(Q @ H @ Q), 0.0)
    squares = float(np.square(Q @ H @ free).sum() + 0.25 * positive @ positive) / strength
    inner = radius * float(np.linalg.eigvalsh(free.T @ H @ free).max(initial=0.0))
    return lambda s: min(radius * s * top, s * inner + s * s * squares)
