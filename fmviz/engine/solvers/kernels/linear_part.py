"""Coordinate steps on the linear term and the bias ([A] Algorithm 4, lines 4–9)."""

from __future__ import annotations

import numpy as np

from ..._jit import cached_factory
from ...design import Storage
from ...losses import ScalarLoss
from ...problem import Problem
from ..base import second_moments, working_loss
from .sample_weights import sample_weight, unit_weight


@cached_factory()
def linear_sweep(storage: Storage, loss: ScalarLoss, weight):
    """Return the kernel of one sweep over the bias and w.

    ``(data, indices, indptr, y, weights, f, w, curvature, bias_curvature, theta, lam, bias, sizes)`` updates
    f and w in place, with `curvature` the μ/N Σ c x_j² of every column (0 skips all columns), and returns the
    new bias and the largest change, where that of w_j counts times sizes_j.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative

    def sweep(data, indices, indptr, y, weights, f, w, curvature, bias_curvature, theta, lam, bias, sizes):
        n_samples = y.size
        change = 0.0
        if bias_curvature > 0.0:
            total = 0.0
            for n in range(n_samples):
                total += weight(weights, n) * derivative(f[n], y[n], theta)
            step = total / n_samples / bias_curvature
            if step != 0.0:
                for n in range(n_samples):
                    f[n] -= step
                change = abs(step)
                bias -= step
        for j in range(curvature.size):
            whole = curvature[j] + 2.0 * lam
            if whole > 0.0:
                column = data[indptr[j] : indptr[j + 1]]
                rows = indices[indptr[j] : indptr[j + 1]]
                count = indptr[j + 1] - indptr[j]
                total = 0.0
                for i in range(count):
                    n = row(rows, i)
                    total += weight(weights, n) * derivative(f[n], y[n], theta) * value(column, i)
                step = (total / n_samples + 2.0 * lam * w[j]) / whole
                if step != 0.0:
                    for i in range(count):
                        f[row(rows, i)] -= step * value(column, i)
                    w[j] -= step
                    change = max(change, abs(step) * sizes[j])
        return bias, change

    return sweep


class LinearPart:
    """The linear term and the bias of a problem, and the sweep that optimises them.

    Attributes
    ----------
    sizes : (d,) ndarray
        The root mean square of every feature where it is to be `unit_free`, else 1.
    """

    def __init__(self, problem: Problem, unit_free: bool = False) -> None:
        self._problem = problem
        design, mu = problem.design, problem.mu
        weight = unit_weight if problem.sample_weight is None else sample_weight
        self._sweep = linear_sweep(design.storage, working_loss(problem)[0], weight)
        self._curvature, self.sizes = np.empty(0), np.ones(design.n_features)
        self._unit_free = unit_free
        if problem.fit_linear:
            moments = second_moments(problem)
            self._curvature = moments * (mu / design.n_samples)
            if unit_free:
                self.sizes = np.sqrt(moments / design.n_samples)

    @property
    def moves(self) -> bool:
        """Whether there is anything to sweep over."""
        return self._problem.fit_linear or self._problem.fit_intercept

    def sized(self, w: np.ndarray) -> np.ndarray:
        """Return linear weights, or steps of them, times `sizes`."""
        return w * self.sizes if self._unit_free else w

    def step(self, f: np.ndarray, w: np.ndarray, bias: float) -> tuple[float, float]:
        """Sweep once: update f (shifted as by `working_loss`) and w; return the bias and the largest change.

        A change of w_j counts times `sizes`.
        """
        problem = self._problem
        if not self.moves:
            return bias, 0.0
        bias, change = self._sweep(
            *problem.design.columns,
            problem.y,
            problem.weights,
            f,
            w,
            self._curvature,
            problem.mu if problem.fit_intercept else 0.0,
            problem.loss.theta,
            problem.lambda_w,
            bias,
            self.sizes,
        )
        return float(bias), float(change)
