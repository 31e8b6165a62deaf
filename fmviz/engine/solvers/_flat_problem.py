"""A problem as a function of a vector θ = (P, w, b), for solvers that update all parameters jointly."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..parameters import Parameters, slices_of
from ..problem import Problem
from ._sweeping import relative_change
from .base import Solver

# Relative differences of objectives below this are rounding errors.
ROUNDING = 1e-15


class Joint:
    """The objective risk(θ) + penalty(θ) with θ = (P row by row, w, bias), a vector of length dk + d + 1.

    The risk (1/N) Σ c_n ℓ is smooth; the penalty λ_w‖w‖² + λ_p‖P‖²_F + λΩ(P) has a proximal operator. Without
    a linear term (bias) the gradient in w (bias) is 0 and the operator does not change it.
    """

    memory = ("_coefficients",)

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        shapes = problem.shapes
        # Coefficients are fitted separately and fixed here.
        self._shapes = {name: shape for name, shape in shapes.items() if name != "coefficients"}
        self._slices = slices_of(self._shapes)
        self._d, self._k = shapes["P"]
        self._coefficients: np.ndarray | None = None
        self._fixed_weights: np.ndarray | None = None

    def pack(self, parameters: Parameters) -> np.ndarray:
        """Return θ as a new vector; coefficients, if any, stay fixed."""
        self._coefficients = parameters.coefficients
        return parameters.pack(self._shapes)

    def unpack(self, theta: np.ndarray) -> Parameters:
        """Return the parameters as views into θ."""
        return Parameters.from_views(theta, self._slices, coefficients=self._coefficients)

    def copy(self, theta: np.ndarray) -> Parameters:
        """Return the parameters as copies."""
        return self.unpack(theta.copy())

    def risk(self, theta: np.ndarray) -> float:
        """Return the empirical risk."""
        return self.problem.evaluated(self.unpack(theta)).risk

    def risk_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the empirical risk and its gradient in θ."""
        problem = self.problem
        risk, in_each = problem.evaluated(self.unpack(theta)).totals("risk", "gradient")
        gradient = Parameters(*in_each).pack(self._shapes)
        if not problem.fit_linear:
            gradient[self._d * self._k : -1] = 0.0
        if not problem.fit_intercept:
            gradient[-1] = 0.0
        return risk, gradient

    def penalty(self, theta: np.ndarray) -> float:
        """Return λ_w‖w‖² + λ_p‖P‖²_F + λΩ(P)."""
        return sum(self.problem.penalties(self.unpack(theta)).values())

    def objective(self, theta: np.ndarray) -> float:
        """Return risk + penalty."""
        return self.risk(theta) + self.penalty(theta)

    def quadratic_gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return the gradient of λ_w‖w‖² + λ_p‖P‖²_F."""
        dk = self._d * self._k
        gradient = np.zeros_like(theta)
        gradient[:dk] = (2.0 * self.problem.lambda_p * self._weights(theta) * self.unpack(theta).P).ravel()
        if self.problem.fit_linear:
            gradient[dk:-1] = 2.0 * self.problem.lambda_w * theta[dk:-1]
        return gradient

    def smooth_value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient, for a smooth penalty."""
        risk, gradient = self.risk_and_subgradient(theta)
        return risk + self.penalty(theta), gradient

    def risk_and_subgradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the empirical risk, and a subgradient of the objective in θ."""
        problem = self.problem
        risk, gradient = self.risk_and_gradient(theta)
        gradient += self.quadratic_gradient(theta)
        if problem.lambda_sparse > 0.0:
            inner = problem.penalty.subgradient(self.unpack(theta).P)
            gradient[: self._d * self._k] += problem.lambda_sparse * inner.ravel()
        return risk, gradient

    def prox(self, theta: np.ndarray, eta: float) -> np.ndarray:
        """Return the operator of η·penalty.

        By [A] Eq. 28 the operator of η(λ_p‖·‖² + λΩ) at P is that of ηλ/(1 + 2ηλ_p)·Ω at P/(1 + 2ηλ_p).
        """
        problem, dk = self.problem, self._d * self._k
        out = theta.copy()
        shrink = 1.0 + 2.0 * eta * problem.lambda_p * self._weights(theta)
        P = out[:dk].reshape(self._d, self._k)
        P /= shrink
        if P.size and problem.lambda_sparse > 0.0:
            out[:dk] = problem.penalty.prox(P, eta * problem.lambda_sparse / shrink[0]).ravel()
        if problem.fit_linear:
            out[dk:-1] /= 1.0 + 2.0 * eta * problem.lambda_w
        return out

    def _weights(self, theta: np.ndarray) -> np.ndarray:
        if self._coefficients is not None:
            return self.problem.model.column_weights(self.unpack(theta))
        # Without coefficients, column weights do not depend on θ.
        if self._fixed_weights is None:
            self._fixed_weights = self.problem.model.column_weights(self.unpack(theta))
        return self._fixed_weights

    def change(self, theta: np.ndarray, *steps: np.ndarray) -> float:
        """Return the largest step entry relative to the largest parameter of its kind in θ."""
        dk = self._d * self._k
        in_P = max(float(np.abs(step[:dk]).max(initial=0.0)) for step in steps)
        linear = max(float(np.abs(step[dk:]).max()) for step in steps)
        if not np.isfinite(in_P + linear):
            return float("inf")
        return relative_change((in_P, theta[:dk]), (linear, theta[dk:]))


class JointSolver(Solver):
    """Base class of solvers that iterate on the vector θ of all parameters."""

    by_sums: ClassVar[bool] = True

    def prepare(self) -> None:
        self._joint = Joint(self.problem)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        self._x = self._joint.pack(parameters)

    def epoch(self) -> float:
        # A diverging run overflows; the driver detects it from the change.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._move()

    def _move(self) -> float:
        """Run the steps of an epoch; return the change."""
        raise NotImplementedError

    def _objective(self) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._joint.objective(self._x)

    def parameters(self) -> Parameters:
        return self._joint.copy(self._x)
