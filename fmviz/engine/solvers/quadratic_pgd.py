"""Accelerated proximal gradient descent for quadratic regression ([A] Eq. 58, 59)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import WhyNot
from ..linalg.spectral import (
    prox_trace,
    prox_trace_l1,
    soft_threshold,
)
from ..models import Model
from ..parameters import Parameters
from ..problem import Formulation, Problem
from ._sweeping import relative_change
from .base import Solver

# The maximum number of halvings of a step, beyond which its decrease would be rounding.
_HALVINGS = 40
# The maximum number of eigendecompositions of the first attempt at an exact operator.
_INNER = 100
# The initial error of an operator as a fraction of the step, later divided by the iteration number. Momentum
# accumulates errors, which must therefore decrease (Schmidt, Le Roux and Bach 2011); with a constant 0.1,
# long fits to weighted and to repeated rows would diverge from each other.
_ACCURACY = 0.1
_LATER = 4.0


@dataclass
class Point:
    """W, w and bias with their predictions f, shape (N,)."""

    W: np.ndarray
    w: np.ndarray
    bias: float
    f: np.ndarray

    def extrapolated(self, before: Point, beta: float) -> Point:
        """Return self + beta·(self − before); f is linear in the parameters."""
        return Point(
            self.W + beta * (self.W - before.W),
            self.w + beta * (self.w - before.w),
            self.bias + beta * (self.bias - before.bias),
            self.f + beta * (self.f - before.f),
        )

    def parameters(self) -> Parameters:
        """Return copies."""
        return Parameters.of_weights(self.W.copy(), self.w.copy(), self.bias)


class QuadraticPGD(Solver, ABC):
    """Base class of both solvers: FISTA on (W, w, b) with line search, restart and guaranteed descent.

    An epoch is one iteration: a gradient step on all parameters from the extrapolated point, with step size η
    for W and fixed multiples of it for w and the bias (the ratios of the Lipschitz constants of the blocks),
    then the operators of the penalties on W and of λ_w‖w‖². η is halved until the loss lies below its
    quadratic model at the new point. The momentum is reset if it points against the step (O'Donoghue and
    Candès 2015; Giselsson and Boyd 2014) or if the objective would increase; an iteration without momentum
    that would still increase it is repeated by `_retry` and never accepted: the objective does not increase.
    """

    factorised: ClassVar[bool] = False
    needs_mu: ClassVar[bool] = True
    memory: ClassVar[tuple[str, ...]] = ("_now", "_before", "_momentum", "_dual", "_eta", "_objective")

    def _why_not_model(self, model: Model) -> WhyNot | None:
        reason = super()._why_not_model(model)
        if reason is not None or not model.factorised:
            return reason
        return WhyNot(
            "factors",
            f"{self.label} minimizes convex functions of the pair weights W, but in this model W is a "
            "product of factors P: its objective is not convex in P, and the operators of the trace norm "
            'and of ‖W‖₁ do not preserve the product. Choose a solver for P, or the model "qr".',
        )

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        problem = self.problem
        W = 0.5 * (parameters.weights + parameters.weights.T)
        self._now = self._point(W, parameters.w.copy(), float(parameters.intercept))
        self._before = self._now
        self._momentum = 1.0
        self._dual: np.ndarray | None = None
        n = problem.design.n_samples
        self._c = problem.unit_weights
        largest_W, largest_w = self._norms()
        curvature = problem.mu / n
        self._eta = 1.0 / (curvature * largest_W)
        self._kappa_w = largest_W / largest_w
        self._kappa_b = largest_W / float(self._c.sum())
        self._objective = problem.objective(self._now.parameters())

    def _point(self, W: np.ndarray, w: np.ndarray, bias: float) -> Point:
        return Point(W, w, bias, self.problem.predict(Parameters.of_weights(W, w, bias)))

    def _norms(self, rounds: int = 8) -> tuple[float, float]:
        """Return lower estimates of the squared norms of W ↦ √c·f and of w ↦ √c·f.

        They use the norm of √c·u, in which a row of weight 2 counts as two rows.
        """
        model, design, c = self.problem.model, self.problem.design, self._c
        root = np.sqrt(c)
        squares = np.asarray(design.power(2) @ np.ones(design.n_features))

        def in_pairs(u: np.ndarray) -> np.ndarray:
            gradient, _, _ = model.gradient(design, self._now.parameters(), c * u)
            return model.predict(design, Parameters.of_weights(gradient))

        norms = []
        for start, gram in (
            (squares, in_pairs),
            (np.sqrt(squares), lambda u: design.dot(design.transpose_dot(c * u))),
        ):
            u, size = start, 0.0
            for _ in range(rounds):
                norm = float(np.linalg.norm(root * u))
                if not 0.0 < norm < np.inf:
                    break
                u = gram(u / norm)
                size = float(np.linalg.norm(root * u))
            norms.append(size if 0.0 < size < np.inf else 1.0)
        return norms[0], norms[1]

    @abstractmethod
    def _operator(self, V: np.ndarray, eta: float, origin: np.ndarray) -> np.ndarray:
        """Return the operator of the penalties at V; `origin` is the start of the step."""

    @abstractmethod
    def _retry(self, attempt: int) -> bool:
        """Prepare another attempt after a step without descent; return whether there is one."""

    def _step(self, origin: Point) -> Point:
        """Take a proximal gradient step from `origin`, halving η as needed."""
        problem = self.problem
        n, mu = problem.design.n_samples, problem.mu
        slope = self._c * problem.loss.derivative(origin.f, problem.y) / n
        in_W, in_w, in_b = problem.model.gradient(problem.design, origin.parameters(), slope)
        risk = problem.empirical_risk(origin.f)
        for _ in range(_HALVINGS):
            eta = self._eta
            W = self._operator(origin.W - eta * in_W, eta, origin.W)
            w, bias = origin.w, origin.bias
            if problem.fit_linear:
                eta_w = eta * self._kappa_w
                w = (origin.w - eta_w * in_w) / (1.0 + 2.0 * eta_w * problem.lambda_w)
            if problem.fit_intercept:
                bias = origin.bias - eta * self._kappa_b * in_b
            new = self._point(W, w, bias)
            if not np.isfinite(new.f).all():
                return new
            model = 0.5 / eta * self._inner(new, origin, new, origin)
            df = new.f - origin.f
            # μ/2N ‖√c Δf‖² bounds the increase over the tangent without cancellation; the increase itself
            # allows longer steps if the loss is flatter than μ.
            if 0.5 * mu / n * float((self._c * df * df).sum()) <= model:
                return new
            if problem.empirical_risk(new.f) - risk - float(slope @ df) <= model - 1e-12 * abs(risk):
                return new
            self._eta *= 0.5
        return new

    def _inner(self, a: Point, b: Point, c: Point, d: Point) -> float:
        """Return ⟨a − b, c − d⟩ in the metric of the steps."""
        total = float(np.vdot(a.W - b.W, c.W - d.W))
        total += float((a.w - b.w) @ (c.w - d.w)) / self._kappa_w
        return total + (a.bias - b.bias) * (c.bias - d.bias) / self._kappa_b

    def epoch(self) -> float:
        now, t = self._now, self._momentum
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        attempt = 0
        beta = (t - 1.0) / t_next
        while True:
            origin = now.extrapolated(self._before, beta) if beta > 0.0 else now
            new = self._step(origin)
            if not np.isfinite(new.f).all():
                return float("inf")
            objective = self.problem.objective(Parameters.of_weights(new.W, new.w, new.bias))
            if objective <= self._objective:
                break
            t_next = 1.0
            if beta > 0.0:
                beta = 0.0
                continue
            attempt += 1
            # An increase in the last digits is rounding of the objective or the operator: one more attempt.
            rounding = objective - self._objective <= 1e-12 * abs(self._objective)
            if (rounding and attempt > 1) or not self._retry(attempt):
                return 0.0
        if self._inner(origin, new, new, now) > 0.0:
            t_next = 1.0
        self._before, self._now = now, new
        self._momentum, self._objective = t_next, objective
        change_W = float(np.abs(new.W - now.W).max())
        change_w = max(float(np.abs(new.w - now.w).max()), abs(new.bias - now.bias))
        return relative_change((change_W, new.W), (change_w, new.w, np.asarray(new.bias)))

    def parameters(self) -> Parameters:
        return self._now.parameters()


def _one_norm(problem: Problem, V: np.ndarray, eta: float) -> np.ndarray:
    """Apply the operators of trace norm and ℓ1 in sequence: exact if one of the strengths is 0."""
    if problem.lambda_p > 0.0:
        V = prox_trace(V, eta * problem.lambda_p)
    return soft_threshold(V, eta * problem.lambda_sparse) if problem.lambda_sparse > 0.0 else V


class IncrementalPGD(QuadraticPGD):
    """W ← prox_ηλ‖·‖₁(prox_ηλ_tr‖·‖_tr(W − η∇L)) ([A] Eq. 59; Richard et al. 2012).

    Applied in sequence, the operators are not the operator of the sum unless one strength is 0: with both,
    the fixed points depend on η and are not optimal. If a step no longer descends, η is halved, since the
    error vanishes with η; the certificate bounds the distance to the optimum, which `ExactPGD` reaches.
    """

    name: ClassVar[str] = "incremental_pgd"
    label: ClassVar[str] = "Incremental PGD"

    def _operator(self, V: np.ndarray, eta: float, origin: np.ndarray) -> np.ndarray:
        return _one_norm(self.problem, V, eta)

    def _retry(self, attempt: int) -> bool:
        self._eta *= 0.5
        both = self.problem.lambda_p > 0.0 and self.problem.lambda_sparse > 0.0
        return attempt < (16 if both else 2)


class ExactPGD(QuadraticPGD):
    """Proximal gradient descent with the exact operator of λ_tr‖·‖_tr + λ‖·‖₁, by a warm-started inner loop.

    The inner loop (`linalg.spectral.prox_trace_l1`) ends when its error is a small fraction of the step,
    which increases the accuracy as steps shrink; if a step does not descend, a ten times smaller fraction is
    required. Converges to the optimum of the convex problem.
    """

    name: ClassVar[str] = "exact_pgd"
    label: ClassVar[str] = "Exact PGD"

    memory: ClassVar[tuple[str, ...]] = (*QuadraticPGD.memory, "_accuracy", "_most", "_epochs")

    def cost_note(self, problem: Formulation, d: int, rank: int) -> str | None:
        note = super().cost_note(problem, d, rank)
        return (
            f"{note} With both penalties, {self.label} needs up to {_INNER} of them per iteration, or more."
        )

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        super().start(parameters, rng)
        self._accuracy, self._most = _ACCURACY, _INNER
        self._epochs = 0

    def _operator(self, V: np.ndarray, eta: float, origin: np.ndarray) -> np.ndarray:
        trace, entries = eta * self.problem.lambda_p, eta * self.problem.lambda_sparse
        if trace == 0.0 or entries == 0.0:
            return _one_norm(self.problem, V, eta)
        warm = None if self._dual is None else eta * self._dual
        split = prox_trace_l1(V, trace, entries, warm, rtol=self._accuracy, origin=origin, most=self._most)
        self._dual = split.S / eta
        return split.W

    def _retry(self, attempt: int) -> bool:
        self._accuracy = max(0.1 * self._accuracy, 1e-6)
        self._most = min(3 * self._most, 3000)
        return attempt < 5

    def epoch(self) -> float:
        self._most = _INNER
        self._epochs += 1
        self._accuracy = min(self._accuracy, _LATER / self._epochs)
        return super().epoch()
