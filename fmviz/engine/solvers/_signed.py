"""Local search on signed factors: W = Σ_s σ_s u_s u_sᵀ with σ_s = ±1 fixed, under λ_tr Σ_s‖u_s‖²."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..parameters import Parameters
from ..problem import Problem
from ._flat_problem import Joint

# The most iterations of L-BFGS; it ends where so many of them add less than this share to what it gained.
_MOST, _PAUSE, _SHARE = 500, 10, 0.005
# The steps that L-BFGS remembers, and how often it shortens one.
_MEMORY, _TRIALS = 10, 30
# Newton steps, the most conjugate gradients for each, and what they leave of the gradient.
_NEWTON, _CONJUGATE, _LEFT = 3, 300, 1e-4


class SignedFactors:
    """The objective of a convex factorization machine as a smooth function of θ = (U, w, bias).

    At a minimum λ_tr Σ‖u_s‖² is λ_tr‖W‖_tr ([B] Theorem 2, with u_s = √|λ_s| p_s).

    Parameters
    ----------
    problem : Problem
        Of the model "convex_fm".
    here : Parameters
        Where to start; its columns' signs stay, and a column of 0 stays 0.
    """

    most_iterations = _MOST

    def __init__(self, problem: Problem, here: Parameters) -> None:
        self._problem = problem
        weights = here.multipliers
        self._signs = np.sign(weights)
        self._joint = Joint(replace(problem, rank=weights.size))
        U = here.P * np.sqrt(np.abs(weights))
        self.theta = self._joint.pack(Parameters(U, here.w, here.intercept, coefficients=self._signs))

    def parameters(self) -> Parameters:
        """Return copies of U with its signs as coefficients, w and the bias."""
        return self._joint.copy(self.theta)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient."""
        problem, at = self._problem, self._joint.unpack(theta)
        risk, gradient = self._joint.risk_and_gradient(theta)
        penalty = problem.lambda_w * float(at.w @ at.w) + problem.lambda_p * float(np.square(at.P).sum())
        return risk + penalty, gradient + self._joint.quadratic_gradient(theta)

    def descend(self) -> None:
        """Make L-BFGS iterations until they stall.

        The two loops of Nocedal and Wright (2006, Algorithm 7.4), whose products are of vectors alone: that
        of scipy spends most of its time in products of 20 × 20 matrices, and many threads spend it waiting.
        """
        pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=_MEMORY)
        with np.errstate(over="ignore", invalid="ignore"):
            value, gradient = self.value_and_gradient(self.theta)
            values: list[float] = []
            for _ in range(_MOST):
                direction = _two_loops(gradient, pairs)
                slope = float(direction @ gradient)
                if slope >= 0.0:
                    break
                step = 1.0 if pairs else 1.0 / max(1.0, float(np.linalg.norm(gradient)))
                trial, new_value, new = self._lower(value, direction, slope, step)
                if trial is None and not pairs:
                    break
                if trial is None:
                    # From what was learnt no lower value is found: begin anew.
                    pairs.clear()
                    continue
                moved, bent = trial - self.theta, new - gradient
                curvature = float(moved @ bent)
                if curvature > 1e-14 * float(bent @ bent):
                    pairs.append((moved, bent, curvature))
                self.theta, value, gradient = trial, new_value, new
                values.append(value)
                if len(values) > _PAUSE and values[-_PAUSE - 1] - value <= _SHARE * (values[0] - value):
                    break

    def _lower(
        self, value: float, direction: np.ndarray, slope: float, step: float
    ) -> tuple[np.ndarray | None, float, np.ndarray]:
        """Return a point along a direction that is lower by a share of what the slope promises (Armijo)."""
        for _ in range(_TRIALS):
            trial = self.theta + step * direction
            found, gradient = self.value_and_gradient(trial)
            if found <= value + 1e-4 * step * slope:
                return trial, found, gradient
            # The minimum of the parabola through what is known, within limits.
            bend = found - value - step * slope
            share = -0.5 * step * slope / bend if np.isfinite(bend) and bend > 0.0 else 0.1
            step *= min(0.5, max(0.1, share))
        return None, value, direction

    def polish(self) -> None:
        """Make Newton steps by conjugate gradients, as long as the gradient shrinks.

        Values of the objective tell minima apart to the root of the precision only; gradients to all of it.
        """
        value, gradient = self.value_and_gradient(self.theta)
        for _ in range(_NEWTON):
            trial = self.theta - self._newton_step(gradient)
            new_value, new = self.value_and_gradient(trial)
            if not (new_value <= value * (1.0 + 1e-14) and np.linalg.norm(new) < np.linalg.norm(gradient)):
                return
            self.theta, value, gradient = trial, new_value, new

    def _newton_step(self, gradient: np.ndarray) -> np.ndarray:
        """Return about H⁻¹·gradient; H is singular in rotations of U, of which the gradient has no part."""
        step = np.zeros_like(gradient)
        rest = gradient.copy()
        direction = rest.copy()
        square = first = float(rest @ rest)
        hessian = self._hessian()
        for _ in range(_CONJUGATE):
            if square <= _LEFT**2 * first:
                break
            image = hessian(direction)
            bend = float(direction @ image)
            if bend <= 0.0:
                break
            step += square / bend * direction
            rest -= square / bend * image
            before, square = square, float(rest @ rest)
            direction = rest + square / before * direction
        return step

    def _hessian(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the map from a direction to the Hessian at θ times it."""
        problem, joint, signs = self._problem, self._joint, self._signs
        model, design, theta = problem.model, problem.design, self.theta
        at = joint.unpack(theta)
        f = problem.predict(at)
        slope = problem.slope(f)
        bend = problem.unit_weights * problem.loss.second(f, problem.y) / f.size
        A, whole = design.dot(at.P), bool(model.settings["diagonal"])
        squares = design.power(2)

        def times(direction: np.ndarray) -> np.ndarray:
            to = joint.unpack(direction)
            df = (A * design.dot(to.P)) @ signs
            df = 2.0 * df if whole else df - np.asarray(squares @ ((at.P * to.P) @ signs))
            df += (design.dot(to.w) if problem.fit_linear else 0.0) + (to.intercept * problem.fit_intercept)
            in_P, in_w, in_b = model.gradient(design, at, bend * df)
            in_P = in_P + model.gradient(design, to, slope)[0]
            image = joint.pack(Parameters(in_P, in_w, in_b, coefficients=signs))
            if not problem.fit_linear:
                image[at.P.size : -1] = 0.0
            if not problem.fit_intercept:
                image[-1] = 0.0
            return image + joint.quadratic_gradient(direction)

        return times


def _two_loops(gradient: np.ndarray, pairs: Sequence[tuple[np.ndarray, np.ndarray, float]]) -> np.ndarray:
    """Return −H·gradient, H the inverse Hessian that steps s, changes y of the gradient, and s·y tell of."""
    rest = -gradient
    shares = []
    for moved, bent, curvature in reversed(pairs):
        share = float(moved @ rest) / curvature
        rest -= share * bent
        shares.append(share)
    if pairs:
        _, bent, curvature = pairs[-1]
        rest *= curvature / float(bent @ bent)
    for (moved, bent, curvature), share in zip(pairs, reversed(shares), strict=True):
        rest += (share - float(bent @ rest) / curvature) * moved
    return rest
