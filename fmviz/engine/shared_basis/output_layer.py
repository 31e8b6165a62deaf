r"""The two layers: a convex fit of V, the linear weights and the biases over fixed bases, and joint steps.

With Z = [Φ, X, 1] and Θ stacking V, wᵀ and the biases, shape (q, m), the output layer minimizes

    (1/N) Σ_n c_n ℓ(z_n Θ, y_n) + λ_w‖w‖² + λ Ω(V),   or the same without λ under Ω(V) ≤ τ.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._jit import cached_factory
from ..blas import one_thread
from ..losses import Separate, VectorLoss
from ..penalties import Penalty
from ..problem import Problem
from .gradients import DUAL_ORDER, BasisGradient, activations, dual_vectors
from .selection import select

# The number of past steps in Anderson acceleration.
_PAST = 8
# The maximum number of sweeps, their accuracy relative to the predicted decrease of the last step, and the
# number of steps before a smaller L is tried.
_SWEEPS, _ROUGH, _KEPT = 100, 1e-3, 12
# The sufficient fraction of the predicted decrease of a step.
_SHARE = 0.1
# The limits of the fit with V = 0.
_LARGEST_ACCURACY = 1e-9
# The maximum number of steps, and of steps in one metric; the minimum curvature of a row as a fraction of the
# mean, and the regularization.
_STEPS, _AGE, _FLOOR, _JITTER = 500, 20, 0.1, 1e-10
_ROUNDING, _TINY = 1e-13, 1e-300
# X is wide beyond this many columns, or entries.
_WIDE, _LARGE = 300, 20_000_000
# The maximum number of rounds of a refit for a wide X, and of iterations on the linear weights in each.
_ROUNDS, _LINEAR_STEPS = 20, 100
MOST_STEPS = 1000
"""The maximum number of steps of a refit of both layers."""


def vector_loss(problem: Problem) -> VectorLoss:
    """Return the loss as a vector-valued loss, even for a single output."""
    return problem.loss if isinstance(problem.loss, VectorLoss) else Separate(problem.loss)


def risk_and_slopes(problem: Problem, F: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the risk and its derivatives at predictions of shape (N, m), also for a single output."""
    values, slopes = vector_loss(problem).value_and_gradient(F, problem.y)
    slopes *= problem.unit_weights[:, None] / len(values)
    return problem.mean(values), slopes


def is_wide(problem: Problem) -> bool:
    """Return whether there are linear weights and X is too large for columns of Z."""
    return problem.fit_linear and (problem.design.n_features > _WIDE or prod(problem.design.shape) > _LARGE)


def project(penalty: Penalty, V: np.ndarray, radius: float) -> np.ndarray:
    """Project V onto Ω ≤ radius: the operator of θΩ with the θ that attains the radius."""
    from scipy.optimize import brentq

    if penalty.value(V) <= radius:
        return V
    most = float(np.abs(V).sum())
    theta = brentq(lambda theta: penalty.value(penalty.prox(V, theta)) - radius, 0.0, most, xtol=_TINY)
    projection = penalty.prox(V, theta)
    return projection * min(1.0, radius / max(penalty.value(projection), _TINY))


_Point = namedtuple("_Point", ["T", "risk", "slope", "penalties", "objective"])
"""Θ with the risk, its gradient, the remaining parts of the objective and the objective."""


class OutputLayer:
    """The problem above for given bases.

    Parameters
    ----------
    problem : Problem
        The source of target, loss, penalty and strengths.
    H : (d, k) ndarray
        The bases as columns.
    w : (d, m) ndarray
        The linear weights for a wide X: an offset of the predictions, not part of Θ.
    """

    def __init__(self, problem: Problem, H: np.ndarray, w: np.ndarray) -> None:
        self.problem, self.k, self.penalty = problem, H.shape[1], problem.penalty
        self.diagonal = problem.model.repeats
        wide, d = is_wide(problem), problem.design.n_features
        self.offset = problem.design.dot(w) if wide else 0.0
        parts = [
            activations(problem.design, H, self.diagonal),
            problem.design.dense(slice(d if problem.fit_linear and not wide else 0)),
            np.ones((len(problem.y), int(problem.fit_intercept))),
        ]
        self._widths = [part.shape[1] for part in parts]
        self.Z = np.ascontiguousarray(np.hstack(parts))
        # ‖V‖² is also a ridge penalty.
        self.strength = 0.0 if self.penalty.smooth else problem.lambda_sparse
        ridges = problem.lambda_sparse * self.penalty.quad, problem.lambda_w, 0.0
        self.ridge = np.repeat(ridges, self._widths)

    def penalties(self, T: np.ndarray) -> float:
        """Return λ_w‖w‖² + λΩ(V)."""
        ridge = float(self.ridge @ np.square(T).sum(axis=1))
        return ridge + (self.strength * self.penalty.value(T[: self.k]) if self.strength else 0.0)

    def at(self, T: np.ndarray) -> _Point:
        """Evaluate Θ."""
        risk, slopes = risk_and_slopes(self.problem, self.Z @ T + self.offset)
        penalties = self.penalties(T)
        return _Point(T, risk, self.Z.T @ slopes, penalties, risk + penalties)

    def smooth(self, T: np.ndarray, H: np.ndarray | None = None) -> tuple[float, list[np.ndarray]]:
        """Return the risk plus λ_w‖w‖² and the gradient in Θ and, if given, in new bases H."""
        design = self.problem.design
        if H is not None:
            products = design.dot(H)
            self.Z[:, : self.k] = activations(design, H, self.diagonal, products)
        risk, slopes = risk_and_slopes(self.problem, self.Z @ T + self.offset)
        ridge = self.ridge[:, None] * T
        gradients = [self.Z.T @ slopes + 2.0 * ridge]
        if H is not None:
            gradient = BasisGradient(design, slopes, self.diagonal)
            gradients.append(2.0 * gradient.images(H, T[: self.k], products))
        return risk + float((ridge * T).sum()), gradients

    def prox(self, eta: float, T: np.ndarray, *bases: np.ndarray) -> list[np.ndarray]:
        """Return the operator of η times the non-smooth part; bases are projected onto the unit ball."""
        V, radius = np.ascontiguousarray(T[: self.k]), self.problem.model.radius
        V = project(self.penalty, V, radius) if radius else self.penalty.prox(V, eta * self.strength)
        return [np.vstack([V, T[self.k :]]), *(H / np.maximum(np.linalg.norm(H, axis=0), 1.0) for H in bases)]

    def metric(self, T: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, bool]]:
        """Return ZᵀCSZ/N, shape (q, q), with the curvatures S of the loss at Θ, and its Cholesky factor."""
        problem, Z = self.problem, self.Z
        curvature = vector_loss(problem).curvature(Z @ T + self.offset, problem.y)
        # A flat row need not stay flat.
        weights = (curvature + _FLOOR * problem.mean(curvature)) * problem.unit_weights / len(Z)
        K = Z.T @ (Z * weights[:, None])
        # Rounding of a singular K would prevent convergence of sweeps. The blocks have different units:
        # squares of X, X, and 1.
        diagonal = np.diagonal(K) * (1.0 + _JITTER)
        blocks = np.split(diagonal, np.cumsum(self._widths)[:-1])
        sizes = np.concatenate([np.full_like(block, block.mean()) for block in blocks if block.size])
        np.fill_diagonal(K, diagonal + (_JITTER * sizes + _TINY))
        return K, cho_factor(K, check_finite=False)


def fista(
    layer: OutputLayer, blocks: Sequence[np.ndarray], tol: float, most: int = MOST_STEPS
) -> Sequence[np.ndarray]:
    """Return Θ, or Θ and H, after accelerated proximal gradient steps with restarts ([C] Appendix D).

    Steps have a line search and end when no entry changes by more than `tol` times the largest of its block.
    """
    mixed, t, L = blocks, 1.0, 1.0
    for _ in range(most):
        value, gradients = layer.smooth(*mixed)
        while True:
            new = layer.prox(1.0 / L, *(x - g / L for x, g in zip(mixed, gradients, strict=True)))
            steps = [x - y for x, y in zip(new, mixed, strict=True)]
            bound = value + _inner(gradients, steps) + 0.5 * L * _inner(steps, steps)
            if layer.smooth(*new)[0] <= bound + 1e-14 * abs(value) or L > 1e18:
                break
            L *= 2.0
        apart = [x - y for x, y in zip(new, blocks, strict=True)]
        if _inner(steps, apart) < 0.0:
            # Past the minimum along the path: restart.
            t = 1.0
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        mixed = [x + (t - 1.0) / faster * step for x, step in zip(new, apart, strict=True)]
        blocks, t, L = new, faster, 0.95 * L
        each = zip(apart, blocks, strict=True)
        if all(np.abs(step).max(initial=0.0) <= tol * np.abs(x).max(initial=_TINY) for step, x in each):
            break
    return blocks


def _inner(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    return float(sum((x * y).sum() for x, y in zip(a, b, strict=True)))


@cached_factory()
def _sweeps(view):
    shrink = view.shrink

    def sweeps(S, K, L, T, ridge, strength, k, most, tol, cache, u):  # noqa: PLR0913 (a compiled loop)
        """Minimize ⟨S, Δ⟩ + ½L tr(ΔᵀKΔ) + ridge + strength·Ω over Θ + Δ by rows, and update S."""
        q, m = T.shape
        for _ in range(most):
            largest = 0.0
            for r in range(q):
                h = L * K[r, r] + 2.0 * ridge[r]
                for c in range(m):
                    u[c] = T[r, c] - (S[r, c] + 2.0 * ridge[r] * T[r, c]) / h
                if r < k and strength > 0.0:
                    shrink(u, strength / h, r, T, cache)
                moved = 0.0
                for c in range(m):
                    u[c] -= T[r, c]
                    moved += u[c] * u[c]
                if moved == 0.0:
                    continue
                for c in range(m):
                    T[r, c] += u[c]
                for j in range(q):
                    weight = L * K[j, r]
                    for c in range(m):
                        S[j, c] += weight * u[c]
                largest = max(largest, moved * h)
            if largest <= tol:
                break

    return sweeps


def _combination(
    past: Sequence[tuple[np.ndarray, np.ndarray]], factor: tuple[np.ndarray, bool]
) -> np.ndarray:
    """Return the Anderson combination of points and images of a fixed-point map (Walker and Ni 2011).

    For proximal steps, the points before the operator are combined (Mai and Johansson 2020): they change
    smoothly when an entry of the result becomes 0, and zeros stay exact. The metric is the inverse of K,
    given by its Cholesky decomposition. At least two points are needed.
    """
    steps = [image - point for point, image in past]
    apart = np.diff(steps, axis=0)
    weighed = [cho_solve(factor, step, check_finite=False) for step in apart]
    gram = np.array([[float((a * b).sum()) for b in weighed] for a in apart])
    rhs = np.array([float((steps[-1] * b).sum()) for b in weighed])
    gram[np.diag_indices_from(gram)] *= 1.0 + 1e-10
    shares = np.linalg.lstsq(gram, rhs, rcond=1e-14)[0]
    return np.asarray(past[-1][1] - np.tensordot(shares, np.diff([i for _, i in past], axis=0), axes=1))


def whitened(layer: OutputLayer, T: np.ndarray, tol: float, part: float = 0.0) -> np.ndarray:
    """Return Θ after accelerated proximal steps in the metric of ZᵀZ.

    A step minimizes the linearized risk plus ½L tr(Δᵀ(ZᵀCZ/N)Δ) and the penalties, by sweeps over the rows of
    Θ, each in closed form. Correlated features, such as squares of sums, therefore need more sweeps, but not
    more steps. L adapts to the curvature of the loss by a line search. The steps end when the predicted
    decrease is at most `tol` times the objective, or `part` times the total decrease.
    """
    # The penalties of an output layer have closed-form steps along rows.
    view: Any = layer.penalty.row
    kernel, cache, work = _sweeps(view), view.cache(*T.shape), np.zeros(T.shape[1])
    here = layer.at(np.ascontiguousarray(T))
    first, promised = here.objective, np.inf
    (K, factor), L, kept, point = layer.metric(here.T), 1.0, 0, None
    past: list[tuple[np.ndarray, np.ndarray]] = []

    def operator(image: np.ndarray) -> np.ndarray:
        """Return argmin ½L tr(ΘᵀKΘ) − L⟨image, Θ⟩ + penalties, approximately."""
        new = here.T.copy()
        S = L * (K @ new - image)
        rough = max(0.01 * tol * abs(here.objective), min(_ROUGH * promised, 1e-3 * abs(here.objective)))
        kernel(S, K, L, new, layer.ridge, layer.strength, layer.k, _SWEEPS, rough, cache, work)
        return new

    for number in range(1, _STEPS + 1):
        image = K @ here.T - here.slope / L
        new = operator(image)
        step = new - here.T
        linear = float((here.slope * step).sum())
        square = 0.5 * L * float((step * (K @ step)).sum())
        promised = here.penalties - layer.penalties(new) - linear - square
        if promised <= max(tol * abs(here.objective), part * (first - here.objective)):
            break
        if number % _AGE == 0:
            (K, factor), L, kept, point, past = layer.metric(here.T), 1.0, 0, None, []
            continue
        if point is not None:
            past = [*past[-_PAST:], (point, image)]
        if len(past) > 1:
            jump = _combination(past, factor)
            there = layer.at(operator(jump))
            if there.objective <= here.objective - _SHARE * promised:
                here, point = there, jump
                continue
            past = []
        there = layer.at(new)
        if there.risk > here.risk + linear + square + _ROUNDING * abs(here.objective):
            L, kept, past = 2.0 * L, 0, []
            if there.objective > here.objective:
                point = None
                continue
        here, point, kept = there, image, kept + 1
        if kept == _KEPT:
            L, kept, point, past = 0.5 * L, 0, None, []
    return new


def descend(
    layer: OutputLayer, blocks: Sequence[np.ndarray], tol: float, most: int = MOST_STEPS
) -> Sequence[np.ndarray]:
    """Return Θ and H with unit columns after L-BFGS iterations on both, and a refit of the output layer.

    For ℓ1/ℓ2, which is smooth on non-zero rows: the iterations ignore the kink at 0, and the refit makes rows
    of V exactly 0. The objective never increases.
    """
    from scipy.optimize import minimize

    T, H = blocks
    before, strength, k = layer.at(T).objective, layer.strength, layer.k

    def parts(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        U = x[T.size :].reshape(H.shape)
        size = np.maximum(np.linalg.norm(U, axis=0), _TINY)
        return x[: T.size].reshape(T.shape), U / size, size

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        T, H, size = parts(x)
        value, (in_T, in_H) = layer.smooth(T, H)
        in_T[:k] += strength * dual_vectors(T[:k], 2.0)
        in_U = (in_H - H * (in_H * H).sum(axis=0)) / size
        return value + strength * layer.penalty.value(T[:k]), np.append(in_T, in_U)

    options = {"maxiter": most, "maxfun": 2 * most, "maxcor": 20, "ftol": 0.1 * tol, "gtol": 0.0}
    x = minimize(objective, np.append(T, H), jac=True, method="L-BFGS-B", options=options).x
    new_T, new_H, _ = parts(x)
    layer.smooth(new_T, new_H)
    new_T = whitened(layer, new_T, tol)
    return (new_T, new_H) if layer.at(new_T).objective <= before else (T, H)


def fit_linear_part(problem: Problem, F: np.ndarray, w: np.ndarray, tol: float) -> np.ndarray:
    """Return the best linear weights, shape (d, m), for an offset F of predictions, by L-BFGS from w."""
    from scipy.optimize import minimize

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        W = x.reshape(w.shape)
        value, slopes = risk_and_slopes(problem, F + problem.design.dot(W))
        gradient = problem.design.transpose_dot(slopes) + 2.0 * problem.lambda_w * W
        return value + problem.lambda_w * float(x @ x), gradient.ravel()

    options = {"maxiter": _LINEAR_STEPS, "ftol": 0.1 * tol, "gtol": 0.0}
    x = minimize(objective, w.ravel(), jac=True, method="L-BFGS-B", options=options).x
    return np.asarray(x).reshape(w.shape)


def refit_output_layer(
    layer: OutputLayer,
    T: np.ndarray,
    w: np.ndarray,
    refit: Callable[[OutputLayer, np.ndarray], np.ndarray],
    tol: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Alternate refits of Θ and of the linear weights of a wide X, shape (d, m).

    Parameters
    ----------
    layer : OutputLayer
        The problem on its bases, with the linear weights `w`.
    T : (q, m) ndarray
        The initial Θ; without rows for a wide X.
    w : (d, m) ndarray
        The initial weights of a wide X; returned unchanged if X is not wide.
    refit : callable
        ``refit(layer, T)`` returns the refitted Θ.
    tol : float
        The relative decrease of the objective per round at which refits end.
    """
    before, problem = np.inf, layer.problem
    for _ in range(_ROUNDS):
        T = refit(layer, T) if T.size else T
        if not is_wide(problem):
            break
        w = fit_linear_part(problem, layer.Z @ T, w, tol)
        layer.offset = problem.design.dot(w)
        now = layer.at(T).objective + problem.lambda_w * float(np.square(w).sum())
        if before - now <= tol * abs(now):
            break
        before = now
    return T, w


@one_thread()
def largest_strength(problem: Problem) -> float:
    """Return λ_max: the largest ‖g_h‖ found at the fit with V = 0.

    For larger λ, V = 0 is optimal: exactly for ℓ1, and up to the search for h for ℓ1/ℓ2 and ℓ1/ℓ∞.

    Parameters
    ----------
    problem : Problem
        A problem of the model "shared_basis", with a penalty that sets rows of V to zero; its λ is ignored.
    """
    w = np.zeros((problem.design.n_features, problem.target.n_outputs))
    layer = OutputLayer(problem, w[:, :0], w)
    start = np.zeros((layer.Z.shape[1], w.shape[1]))
    T, _ = refit_output_layer(layer, start, w, partial(whitened, tol=_LARGEST_ACCURACY), _LARGEST_ACCURACY)
    slopes = risk_and_slopes(problem, layer.Z @ T + layer.offset)[1]
    gradient = BasisGradient(problem.design, slopes, layer.diagonal)
    norms = select(gradient, DUAL_ORDER[problem.penalty.row_norm], "eigen", 1, np.random.default_rng(0))[1]
    return float(norms.max(initial=0.0))
