"""Greedy coordinate descent for the convex factorization machine (Blondel, Fujino and Ueda 2015)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ..design import Design
from ..errors import WhyNot
from ..linalg import conjugate_gradients
from ..linalg.lowrank import (
    PairGradient,
    eigenform,
    features_of_pairs,
    orthonormal,
)
from ..memory import in_words
from ..models.base import Model
from ..models.convex import ConvexFM
from ..models.quadratic import QuadraticRegression
from ..parameters import Parameters
from ..problem import Formulation, Problem
from ..settings import ParamSpec
from ._flat_problem import Joint
from ._sweeping import relative_change
from .base import Solver
from .quadratic_pgd import IncrementalPGD

# The maximum number of L-BFGS iterations; it ends when this many of them add less than this fraction of the
# total decrease.
_MOST, _PAUSE, _SHARE = 500, 10, 0.005
# The number of steps stored by L-BFGS, and of reductions of a step.
_MEMORY, _TRIALS = 10, 30
# The number of Newton steps, the maximum number of conjugate gradient iterations for each, and their relative
# residual.
_NEWTON, _CONJUGATE, _RESIDUAL = 3, 300, 1e-4


class SignedFactors:
    """The objective of a convex factorization machine as a smooth function of θ = (U, w, bias).

    At a minimum, λ_tr Σ‖u_s‖² equals λ_tr‖W‖_tr ([B] Theorem 2, with u_s = √|λ_s| p_s).

    Parameters
    ----------
    problem : Problem
        A problem of the model "convex_fm".
    here : Parameters
        The start; the signs of its columns are fixed, and zero columns stay 0.
    """

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
        """Run L-BFGS iterations until they stall.

        Uses the two-loop recursion of Nocedal and Wright (2006, Algorithm 7.4), with vector products only:
        scipy's version spends most of its time in products of 20 × 20 matrices or, with many threads,
        waiting.
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
                    # No decrease with the stored curvature: restart.
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
        """Return a point along a direction by an Armijo line search, or None."""
        for _ in range(_TRIALS):
            trial = self.theta + step * direction
            lower, gradient = self.value_and_gradient(trial)
            if lower <= value + 1e-4 * step * slope:
                return trial, lower, gradient
            # The minimum of the interpolating parabola, clipped.
            bend = lower - value - step * slope
            share = -0.5 * step * slope / bend if np.isfinite(bend) and bend > 0.0 else 0.1
            step *= min(0.5, max(0.1, share))
        return None, value, direction

    def polish(self) -> None:
        """Run Newton steps with conjugate gradients as long as the gradient decreases.

        Values of the objective locate a minimum only to the square root of the precision, gradients to full
        precision.
        """
        value, gradient = self.value_and_gradient(self.theta)
        for _ in range(_NEWTON):
            # The Hessian is singular along rotations of U, where the gradient is 0.
            trial = self.theta - conjugate_gradients(self._hessian(), gradient, _RESIDUAL, _CONJUGATE)
            new_value, new = self.value_and_gradient(trial)
            if not (new_value <= value * (1.0 + 1e-14) and np.linalg.norm(new) < np.linalg.norm(gradient)):
                return
            self.theta, value, gradient = trial, new_value, new

    def _hessian(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the product with the Hessian at θ as a function."""
        problem, joint, signs = self._problem, self._joint, self._signs
        model, design, theta = problem.model, problem.design, self.theta
        at = joint.unpack(theta)
        f = problem.predict(at)
        slope = problem.slope(f)
        bend = problem.unit_weights * problem.loss.second(f, problem.y) / f.size
        A, diagonal = design.dot(at.P), bool(model.settings["diagonal"])
        squares = design.power(2)

        def times(direction: np.ndarray) -> np.ndarray:
            to = joint.unpack(direction)
            df = (A * design.dot(to.P)) @ signs
            df = 2.0 * df if diagonal else df - np.asarray(squares @ ((at.P * to.P) @ signs))
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
    """Return −H·gradient, H the inverse Hessian from steps s, gradient changes y, and s·y."""
    direction = -gradient
    shares = []
    for moved, bent, curvature in reversed(pairs):
        share = float(moved @ direction) / curvature
        direction -= share * bent
        shares.append(share)
    if pairs:
        _, bent, curvature = pairs[-1]
        direction *= curvature / float(bent @ bent)
    for (moved, bent, curvature), share in zip(pairs, reversed(shares), strict=True):
        direction += (share - float(bent @ direction) / curvature) * moved
    return direction


# The maximum number of iterations of a refit before a local search.
_INNER = 20
# Newton steps follow epochs with at most this change.
_NEAR = 1e-2
_ROUNDING = 1e-15
# Accuracy of the eigenvectors: new columns are refitted immediately.
_LANCZOS = 1e-4


class _Subspace(QuadraticRegression):
    """f with W = Q S Qᵀ as a function of the small symmetric S, with the trace norm of S."""

    by_row: ClassVar[bool] = False

    def __init__(self, design: Design, Q: np.ndarray, diagonal: bool) -> None:
        self._Q, self._A, self._diagonal = Q, design.dot(Q), diagonal
        self._squares = None if diagonal else design.power(2)

    def predict(self, design: Design, parameters: Parameters) -> np.ndarray:
        S, Q, A = parameters.weights, self._Q, self._A
        f = np.einsum("nm,nm->n", A @ S, A)
        if self._squares is not None:
            f = 0.5 * (f - np.asarray(self._squares @ np.einsum("jm,jm->j", Q @ S, Q)))
        f += parameters.intercept
        return f + design.dot(parameters.w) if parameters.w.any() else f

    def gradient(
        self, design: Design, parameters: Parameters, slope: np.ndarray, sums: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        G = self._A.T @ (slope[:, None] * self._A)
        if self._squares is not None:
            G = 0.5 * (G - self._Q.T @ (np.asarray(self._squares.T @ slope)[:, None] * self._Q))
        return 0.5 * (G + G.T), design.transpose_dot(slope), float(slope.sum())


class GCD(Solver):
    r"""Greedy coordinate descent: add eigenvectors of the gradient as columns of P, and refit all of them.

    W = P diag(λ) Pᵀ is a combination of the infinitely many coordinates p pᵀ, ‖p‖ = 1. The direction of
    steepest descent is the eigenvector of the gradient with the largest |eigenvalue|, and a point is optimal
    if and only if this is at most λ_tr. An epoch

    1. runs L-BFGS iterations on the columns √|λ_s| p_s with fixed signs and the penalty λ_tr Σ‖·‖², whose
       minimum is ‖W‖_tr ([B] Theorem 2), and Newton steps near the end: the local search of Laue (2012),
       which updates all columns at once;
    2. finds the `bases` leading eigenvectors by Lanczos iterations, and keeps those beyond λ_tr;
    3. refits the symmetric matrix between all columns with its trace norm, w and the bias, by accelerated
       proximal gradient descent; weights become exactly 0, and their columns are removed;
    4. diagonalizes the result, which does not increase the trace norm.

    The greedy step determines rank and signs of the local search, and proves optimality. If `rank` is smaller
    than the rank of the optimum, the columns of smallest weight are replaced as long as the objective
    decreases; the result is then not optimal, and the duality gap bounds the distance. The objective never
    increases.
    """

    name: ClassVar[str] = "gcd"
    label: ClassVar[str] = "Greedy coordinate descent"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec("bases", "int", 5, 1, 100, help="The maximum number of new columns per epoch."),
    )

    memory: ClassVar[tuple[str, ...]] = ("_rng", "_moved", "_now", "_objective")
    # For the refits by `IncrementalPGD`.
    needs_mu: ClassVar[bool] = True

    def _why_not_model(self, model: Model) -> WhyNot | None:
        if isinstance(model, ConvexFM):
            return None
        return WhyNot(
            "convex_fm_only",
            f"{self.label} adds eigenvectors of the gradient to W = P diag(λ) Pᵀ, which are directions of "
            f"steepest descent only for the trace norm of W; the {model.label[0].lower()}"
            f'{model.label[1:]} has another penalty. Choose the model "convex_fm", or another solver.',
        )

    def cost_note(self, problem: Formulation, d: int, rank: int) -> str | None:
        return (
            f"An epoch of {self.label.lower()} is expensive: tens of Lanczos iterations of O(nnz), up to "
            f"{_MOST} of L-BFGS of O(nnz·k) and {_INNER} refits of O(N·k²) for the "
            f"k ≤ {rank:,} columns found so far. W itself, {in_words(8.0 * d * d)} for {d:,} features, is "
            f"never formed; P and its copies take up to {in_words(8.0 * problem.model.copies * d * rank)}."
        )

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        self._rng = rng
        self._moved = np.inf
        self._live = features_of_pairs(self.problem.design, self._diagonal)
        self._now = self._eigen(
            parameters.P, parameters.multipliers, parameters.w.copy(), float(parameters.intercept)
        )
        self._objective = self.problem.objective(self._now)

    @property
    def _diagonal(self) -> bool:
        return bool(self.problem.model.settings["diagonal"])

    def _eigen(self, P: np.ndarray, weights: np.ndarray, w: np.ndarray, bias: float) -> Parameters:
        Q, values = eigenform(P, weights)
        rank = self.problem.rank
        return Parameters(Q[:, :rank], w, bias, coefficients=values[:rank])

    def _take(self, new: Parameters) -> bool:
        """Move to `new` unless the objective would increase beyond rounding; return whether it moved."""
        objective = self.problem.objective(new)
        if not objective <= self._objective + _ROUNDING * abs(self._objective):
            return False
        self._now, self._objective = new, objective
        return True

    def epoch(self) -> float:
        before = self._now
        self._take(self._local_search(before))
        V = self._steepest()
        free = self.problem.rank - self._now.multipliers.size
        new = self._refitted(V)
        if V.shape[1] > free:
            # Columns were dropped; the others compensate.
            new = self._local_search(new)
        if not self._take(new) and V.shape[1] > free:
            self._take(self._refitted(V[:, :free]))
        self._moved = self._change(before)
        return self._moved

    def at_rank(self) -> bool:
        """Return whether P has `rank` columns, or d, the maximum rank of W."""
        return self._now.multipliers.size == self.problem.rank < self.problem.design.n_features

    def _steepest(self) -> np.ndarray:
        """Return the leading eigenvectors beyond λ_tr, shape (d, at most `bases`)."""
        problem = self.problem
        design = problem.design
        f = problem.predict(self._now)
        values, vectors = PairGradient(design, problem.slope(f), self._diagonal).leading(
            self.settings["bases"], self._live, self._rng.normal(size=design.n_features), _LANCZOS
        )
        return vectors[:, np.abs(values) > problem.lambda_p * (1.0 + 1e-12)]

    def _refitted(self, V: np.ndarray) -> Parameters:
        """Return the current point with the columns V, shape (d, m), added and the weights refitted."""
        problem, here = self.problem, self._now
        P = here.P
        if V.shape[1]:
            V = _orthogonal_part(P, V)
        Q = np.hstack([P, V])
        if Q.shape[1] == 0:
            return here
        small = replace(problem, model=_Subspace(problem.design, Q, self._diagonal), lambda_sparse=0.0)
        method = IncrementalPGD().within(small)
        S = np.diag(np.concatenate([here.multipliers, np.zeros(V.shape[1])]))
        method.start(Parameters.of_weights(S, here.w, here.intercept), self._rng)
        for _ in range(_INNER):
            if method.epoch() <= 1e-9:
                break
        fitted = method.parameters()
        values, vectors = np.linalg.eigh(fitted.weights)
        return self._eigen(Q @ vectors, values, fitted.w, fitted.intercept)

    def _local_search(self, here: Parameters) -> Parameters:
        """Return the result of a local search on √|λ_s| p_s, w and the bias, started at `here`."""
        search = SignedFactors(self.problem, here)
        search.descend()
        if self._moved < _NEAR:
            search.polish()
        end = search.parameters()
        return self._eigen(end.P, end.multipliers, end.w, end.intercept)

    def _change(self, before: Parameters) -> float:
        now = self._now
        apart = eigenform(
            np.hstack([now.P, before.P]), np.concatenate([now.multipliers, -before.multipliers])
        )[1]
        linear = max(float(np.abs(now.w - before.w).max()), abs(now.intercept - before.intercept))
        return relative_change(
            (float(np.abs(apart).max(initial=0.0)), now.multipliers),
            (linear, now.w, np.asarray(now.intercept)),
        )

    def parameters(self) -> Parameters:
        """Return copies, with columns of zeros up to `rank`, largest |λ_s| first."""
        return self._now.padded(self.problem.rank)


def _orthogonal_part(P: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the part of V orthogonal to the orthonormal columns of P."""
    for _ in range(2):
        V = V - P @ (P.T @ V)
    Q, R = orthonormal(V)
    return Q[:, np.abs(np.diagonal(R)) > 1e-7]
