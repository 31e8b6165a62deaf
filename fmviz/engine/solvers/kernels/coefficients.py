"""Coordinate descent for the column weights λ in Σ_s λ_s K(p_s, x), with P fixed ([B] Section 4 and 7)."""

from __future__ import annotations

import numpy as np

from ..._jit import cached_factory
from ...losses import ScalarLoss
from ...parameters import Parameters
from ...penalties.operators.thresholds import soft
from ...problem import Problem
from ..base import working_loss
from .sweeps import sample_weight, unit_weight

# The squared relative rounding error, with a margin for long sums.
NOISE = 1e-28
# The strength of the row operator if the smooth part is flat: larger than any entry, but finite.
BEYOND = 1e300


@cached_factory()
def coefficient_sweeps(loss: ScalarLoss, weight):
    """Return the kernel of coordinate descent on (1/N) Σ c ℓ(f) + Σ_s lam[s]|λ_s|, f linear in λ.

    Z has shape (k, N): the kernel of every column on every row. Sweeps end when no λ_s changes by more than
    `tol` times the largest one, or after `most` sweeps; f and λ are updated in place.
    """
    derivative = loss.derivative

    def sweeps(Z, y, weights, f, coefficients, lam, mu, theta, tol, most):
        k, n_samples = Z.shape
        curvature = np.zeros(k)
        for s in range(k):
            for n in range(n_samples):
                curvature[s] += weight(weights, n) * Z[s, n] * Z[s, n]
            curvature[s] *= mu / n_samples
        change = np.inf
        done = 0
        first = 0.0
        largest = 0.0
        while done < most and change > tol * largest:
            change = 0.0
            largest = 0.0
            for s in range(k):
                old = coefficients[s]
                new = old
                if curvature[s] > 0.0:
                    g = 0.0
                    for n in range(n_samples):
                        g += weight(weights, n) * derivative(f[n], y[n], theta) * Z[s, n]
                    new = soft(curvature[s] * old - g / n_samples, lam[s]) / curvature[s]
                elif lam[s] > 0.0:
                    new = 0.0
                if new != old:
                    step = new - old
                    for n in range(n_samples):
                        f[n] += step * Z[s, n]
                    coefficients[s] = new
                    change = max(change, abs(step))
                largest = max(largest, abs(coefficients[s]))
            done += 1
            if done == 1:
                first = change
        return first

    return sweeps


class CoefficientStep:
    """The exact minimum over λ: an ℓ1-regularized convex problem, since λ_p multiplies Σ_s |λ_s|‖p_s‖^m.

    A column whose λ_s becomes 0 keeps its p_s, and may return after the others have changed.
    """

    # Precise enough to keep the objective monotone; the next epoch continues from the result.
    tol = 1e-8
    most = 100

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._loss, self._shift = working_loss(problem)
        self._weight = unit_weight if problem.sample_weight is None else sample_weight

    def step(self, f: np.ndarray, P: np.ndarray, coefficients: np.ndarray) -> float:
        """Fit λ and update f, shifted as in `working_loss`, in place; return the change of λ."""
        problem = self._problem
        values = [kernel.values(problem.design, P[:, b]) for b, kernel in problem.model.parts(P.shape[1])]
        return coefficient_sweeps(self._loss, self._weight)(
            np.ascontiguousarray(np.concatenate(values, axis=1).T),
            problem.y,
            problem.weights,
            f,
            coefficients,
            problem.lambda_p * np.square(P).sum(axis=0) ** (0.5 * problem.model.shrinkage_power),
            problem.mu,
            problem.loss.theta,
            self.tol,
            self.most,
        )

    def refit(self, parameters: Parameters) -> Parameters:
        """Return the parameters with λ fitted."""
        coefficients = parameters.multipliers.copy()
        self.step(self._problem.predict(parameters) - self._shift, parameters.P, coefficients)
        return parameters.replace(coefficients=coefficients)


def coefficient_change(before: Parameters, after: Parameters) -> float:
    """Return the largest change of a coefficient relative to the largest coefficient."""
    moved = float(np.abs(after.multipliers - before.multipliers).max(initial=0.0))
    size = max(float(np.abs(after.multipliers).max(initial=0.0)), moved)
    return moved / size if size else 0.0
