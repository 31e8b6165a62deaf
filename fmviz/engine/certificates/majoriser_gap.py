r"""The duality gap of the tangent problem of the robust machine, as a certificate of stationarity.

The tangents of both caps are taken at the parameters: rows beyond the cap of the loss have a constant cost,
the others their uncapped u, kinks included; R(Z) becomes λ_p‖QZ‖²_F + const, and its limits stay as they are.
The resulting problem in Z ⪰ 0, w and the bias is convex, touches the objective there and majorises it. The
parameters are a stationary point of the capped objective, in the sense of its subdifferential, just where
they minimise it. The relative gap bounds by how much one more exact step could lower the objective; without
caps it proves the optimum.

The slopes α_n of the dual are free in [−1, 1] at kinks. They are computed from the parameters alone, by least
squares on the gradients that vanish at the minimum: in w, in the bias, and in the range of Z. The result is
made feasible, so that the gap is an upper bound. The dual is over all Z of at most twice the trace of the
present one, which includes a neighbourhood of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg.lowrank import PairGradient, eigenform, pair_gradient
from ..losses import Loss
from ..losses.majoriser import typical_size
from ..parameters import Parameters
from ..problem import Problem
from .duality import balance

# Excesses up to these shares of a typical target are treated as kinks, or smoothed: which one proves a point
# stationary depends on the accuracy of its solver.
_AT_KINK = (1e-6, 1e-4, 1e-3)
_SMOOTHINGS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
# The largest least-squares problem, in entries, and the most features for which Z is used as a matrix.
_ENTRIES, _FEATURES = 4_000_000, 600
_SCALES = (1.0, 1.0 - 1e-12, 1.0 - 1e-9, 1.0 - 1e-6, 1.0 - 1e-3, 0.9, 0.5)


def tangent_gap(problem: Problem, parameters: Parameters, thorough: bool = True) -> float:
    """Return (F − D)/F, from 0 where no tangent step lowers the objective F, to 1; D bounds all of them."""
    objective = problem.objective(parameters)
    if not np.isfinite(objective):
        return float("inf")
    if objective <= 0.0:
        return 0.0
    return float(np.clip((objective - _Tangent(problem, parameters).bound()) / objective, 0.0, 1.0))


class _Tangent:
    """The tangent problem at some parameters, and bounds of it from below."""

    def __init__(self, problem: Problem, parameters: Parameters) -> None:
        self._problem, self._w = problem, parameters.w
        model: Any = problem.model
        self._trace = model.traced
        self._P, self._values = eigenform(parameters.P, parameters.multipliers)
        free = model.free(self._values)
        self._free = self._P[:, free]
        # The gradient of λ_p‖QZ‖²_F, or of λ_p tr Z, at the eigenvectors of Z.
        self._pull = np.where(free, 0.0, problem.lambda_p * (1.0 if self._trace else 2.0 * self._values))
        f = problem.predict(parameters)
        c = problem.unit_weights / problem.design.n_samples
        kinks = problem.loss.majoriser
        if kinks is None:
            kept, self._half = c > 0.0, None
            self._loss: Loss = problem.loss
            outside = 0.0
        else:
            u = kinks.excess(f, problem.y)
            kept = (u <= kinks.cap) & (c > 0.0)
            outside = kinks.cap * float(c[~kept].sum()) if np.isfinite(kinks.cap) else 0.0
            self._half = self._loss = kinks.half_square
        self._kept, self._c = kept, c[kept]
        self._f, self._y = f[kept], problem.y[kept]
        self._X = problem.design.matrix[np.flatnonzero(kept)]
        cap = problem.lambda_p * model.cap * int(free.sum()) if free.any() else 0.0
        self._constant = outside + cap

    def bound(self) -> float:
        """Return the best bound found of the tangent problem from below."""
        if not self._kept.any():
            return self._constant
        bounds = [self._dual(slope) for slope in self._slopes()]
        return max(0.0, *bounds) + self._constant

    def _slopes(self) -> list[np.ndarray]:
        if self._half is None:
            return [self._loss.derivative(self._f, self._y)]
        step = self._half.derivative(self._f, self._y)
        size = np.abs(step)
        unit = 1.0 if self._half.task == "binary" else typical_size(self._problem.y)
        slopes = [step / np.maximum(size, share * unit) for share in _SMOOTHINGS]
        for share in _AT_KINK:
            low, high = (
                np.sign(self._half.derivative(self._f + 2.0 * side * share * unit, self._y))
                for side in (-1, 1)
            )
            kinks = (size <= share * unit) & (low != high)
            refined = self._refined(np.sign(step) * ~kinks, np.flatnonzero(kinks))
            if refined is not None:
                slopes.append(np.clip(refined, np.minimum(low, high), np.maximum(low, high)))
        return slopes

    def _refined(self, slope: np.ndarray, kinks: np.ndarray) -> np.ndarray | None:
        """Return the slopes with those at kinks such that the gradients vanish, by least squares."""
        problem, P, X, c = self._problem, self._P, self._X, self._c
        if not kinks.size or (1 + X.shape[1] * (1 + P.shape[1])) * kinks.size > _ENTRIES:
            return None
        at_kinks = X[kinks].toarray() if hasattr(X, "toarray") else np.asarray(X[kinks])
        equations, right = [], []
        if problem.fit_intercept:
            equations.append(c[kinks][None, :])
            right.append(np.array([-float(c @ slope)]))
        if problem.fit_linear:
            equations.append((c[kinks, None] * at_kinks).T)
            right.append(-np.asarray(X.T @ (c * slope)) - 2.0 * problem.lambda_w * self._w)
        for p, pull in zip(P.T, self._pull, strict=True):
            along = c * np.asarray(X @ p)
            equations.append((along[kinks, None] * at_kinks).T)
            right.append(-np.asarray(X.T @ (along * slope)) - pull * p)
        if not equations:
            return None
        refined = slope.copy()
        refined[kinks] = np.linalg.lstsq(np.vstack(equations), np.concatenate(right), rcond=1e-12)[0]
        return refined

    def _dual(self, slope: np.ndarray) -> float:
        problem = self._problem
        alpha = balance(problem, self._X, self._c * slope)
        bounded = self._half is not None
        if bounded:
            alpha = alpha / max(1.0, float(np.abs(alpha / self._c).max()))
        linear = 0.0
        if problem.fit_linear and problem.lambda_w > 0.0:
            linear = float(np.square(np.asarray(self._X.T @ alpha)).sum()) / (4.0 * problem.lambda_w)
        on_Z = self._on_weights(alpha)
        best = -np.inf
        for s in _SCALES:
            a = s * alpha / self._c
            conjugate = self._loss.conjugate(a, self._y)
            if conjugate is None:
                return -np.inf
            if bounded:
                # ℓ = u is below √(2·½u²): its conjugate lacks the ½a² of that of ½u².
                conjugate = conjugate - 0.5 * a * a
            best = max(best, -float(self._c @ conjugate) - s * s * linear - on_Z(s))
        return best

    def _on_weights(self, alpha: np.ndarray) -> Any:
        """Return a bound, as a function of s, of the conjugate of the penalty on Z at −s·A*α."""
        strength = self._problem.lambda_p
        radius = 2.0 * float(self._values.sum())
        if self._X.shape[1] > _FEATURES:
            slope = np.zeros(self._kept.size)
            slope[self._kept] = alpha
            top = PairGradient(self._problem.design, slope, True).lowest(1e-6)
            return lambda s: radius * max(0.0, s * top - (strength if self._trace else 0.0))
        H = -pair_gradient(self._X, alpha, diagonal=True)
        top = float(np.linalg.eigvalsh(H)[-1])
        if self._trace:
            return lambda s: radius * max(0.0, s * top - strength)
        ball = radius * max(0.0, top)
        if strength == 0.0:
            return lambda s: s * ball
        P = self._free
        inner = P.T @ H @ P
        beside = H @ P - P @ inner
        remainder = H - P @ (P.T @ H)
        remainder = remainder - (remainder @ P) @ P.T
        positive = np.maximum(np.linalg.eigvalsh(0.5 * (remainder + remainder.T)), 0.0)
        squares = float(np.square(beside).sum()) / strength + float(positive @ positive) / (4.0 * strength)
        free = radius * max(0.0, float(np.linalg.eigvalsh(inner)[-1])) if P.shape[1] else 0.0
        return lambda s: min(s * ball, s * free + s * s * squares)
