r"""The output layer: a convex fit of V, the linear weights and the biases over fixed activations.

With Z = [Φ, X, 1] and Θ stacking V, wᵀ and the biases, shape (q, m), it minimises

    (1/N) Σ_n c_n ℓ(z_n Θ, y_n) + λ_w‖w‖² + λ Ω(V),   or the same without λ under Ω(V) ≤ τ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from .._jit import cached_factory
from ..losses import Separate, VectorLoss
from ..penalties import Penalty
from ..problem import Problem

# Past steps that Anderson's acceleration combines.
_PAST = 8
_SWEEPS = 100
# Accuracy of the sweeps relative to the decrease predicted for the last step; steps before a smaller L is
# tried.
_ROUGH, _KEPT = 1e-3, 12
# The sufficient share of a step's predicted decrease.
_SHARE = 0.1
# The least curvature of a row as a share of the mean, the most steps in one metric, and its regularisation.
_FLOOR, _AGE, _JITTER = 0.1, 20, 1e-10
_ROUNDING = 1e-13
# X is wide beyond this many columns, or entries.
_WIDE, _LARGE = 300, 20_000_000
_TINY = 1e-300


def vector_loss(problem: Problem) -> VectorLoss:
    """Return the loss as one of vectors, also of a single output."""
    loss = problem.loss
    return loss if isinstance(loss, VectorLoss) else Separate(loss)


@dataclass
class Risk:
    """The empirical risk as a function of predictions, always of shape (N, m)."""

    problem: Problem

    @cached_property
    def _loss(self) -> VectorLoss:
        return vector_loss(self.problem)

    def value_and_slopes(self, F: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the risk and its derivatives in the predictions, shape (N, m)."""
        values, slopes = self._loss.value_and_gradient(F, self.problem.y)
        c = self.problem.sample_weight
        if c is not None:
            slopes *= c[:, None]
        slopes /= len(values)
        return self.problem.mean(values), slopes


def is_wide(problem: Problem) -> bool:
    """Return whether there are linear weights, and X is too large to be columns of Z."""
    n, d = problem.design.shape
    return problem.fit_linear and (d > _WIDE or n * d > _LARGE)


def project(penalty: Penalty, V: np.ndarray, radius: float) -> np.ndarray:
    """Return the point of Ω ≤ radius nearest to V: the operator of θΩ with the θ that attains it."""
    if penalty.value(V) <= radius:
        return V
    if radius <= 0.0:
        return np.zeros_like(V)
    low, high, projection = 0.0, float(np.abs(V).sum()), V
    # Ω of the operator is piecewise linear in θ (for the sums of norms here convex): secants that bisect.
    at_low, at_high = penalty.value(V), 0.0
    for _ in range(200):
        theta = low + (at_low - radius) / (at_low - at_high) * (high - low)
        if not low < theta < high or _ % 3 == 2:
            theta = 0.5 * (low + high)
        projection = penalty.prox(V, theta)
        value = penalty.value(projection)
        if abs(value - radius) <= 1e-15 * radius or not low < theta < high:
            break
        if value > radius:
            low, at_low = theta, value
        else:
            high, at_high = theta, value
    return projection * min(1.0, radius / max(penalty.value(projection), _TINY))


class OutputLayer:
    """The problem above for given activations.

    Parameters
    ----------
    problem : Problem
        Gives the target, the loss, the penalty and the strengths.
    activations : (N, k) ndarray
        Φ.
    offset : (N, m) ndarray, optional
        An offset of the predictions: those of the linear weights, where X is wide, which are then not part
        of Θ.
    """

    def __init__(self, problem: Problem, activations: np.ndarray, offset: np.ndarray | None = None) -> None:
        self._offset = offset
        self.problem, self.k = problem, activations.shape[1]
        self.risk = Risk(problem)
        self.strength, self.radius = problem.lambda_sparse, problem.model.radius
        self.penalty: Penalty = problem.penalty
        parts = [activations]
        d = problem.design.n_features if problem.fit_linear and not is_wide(problem) else 0
        if d:
            X = problem.design.matrix
            parts.append(X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64))
        if problem.fit_intercept:
            parts.append(np.ones((len(activations), 1)))
        self.Z = np.ascontiguousarray(np.hstack(parts)) if len(parts) > 1 else activations
        self._ends = self.k, self.k + d
        self.ridge = np.zeros(self.Z.shape[1])
        self.ridge[self.k : self.k + d] = problem.lambda_w
        if self.penalty.smooth:
            # ‖V‖² is a ridge, too.
            self.ridge[: self.k] = self.strength * self.penalty.quad
            self.strength = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of Θ."""
        return self.Z.shape[1], self.problem.target.n_outputs

    def predict(self, T: np.ndarray) -> np.ndarray:
        """Return the predictions, shape (N, m)."""
        return self.Z @ T if self._offset is None else self.Z @ T + self._offset

    def penalties(self, T: np.ndarray) -> float:
        """Return λ_w‖w‖² + λΩ(V)."""
        ridge = float(self.ridge @ np.square(T).sum(axis=1))
        return ridge + (self.strength * self.penalty.value(T[: self.k]) if self.strength else 0.0)

    def smooth(self, T: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the risk plus λ_w‖w‖², and the gradient, shape (q, m)."""
        risk, slopes = self.risk.value_and_slopes(self.predict(T))
        ridge = float(self.ridge @ np.square(T).sum(axis=1))
        return risk + ridge, self.Z.T @ slopes + 2.0 * self.ridge[:, None] * T

    def at(self, T: np.ndarray) -> _Point:
        """Evaluate Θ for a step from there."""
        risk, slopes = self.risk.value_and_slopes(self.predict(T))
        return _Point(T, risk, self.Z.T @ slopes, self.penalties(T))

    def metric(self, T: np.ndarray) -> tuple[np.ndarray, _Anderson]:
        """Return ZᵀCSZ/N, S the curvatures of the loss at Θ, shape (q, q), and an acceleration in it."""
        loss, problem, Z = vector_loss(self.problem), self.problem, self.Z
        curvature = loss.curvature(np.ascontiguousarray(self.predict(T)), problem.y)
        # A row that is flat now need not stay flat.
        weights = (curvature + _FLOOR * problem.mean(curvature)) * problem.unit_weights / len(Z)
        K = Z.T @ (Z * weights[:, None])
        # Rounding of a singular K would keep sweeps from converging.
        K[np.diag_indices_from(K)] *= 1.0 + _JITTER
        # Each block has its own units: squares of X, X, and 1.
        sizes = [
            np.full(block.shape, block.mean()) for block in np.split(np.diagonal(K), self._ends) if block.size
        ]
        K[np.diag_indices_from(K)] += _JITTER * np.concatenate(sizes) + _TINY
        return K, _Anderson(cho_factor(K, check_finite=False))

    def prox(self, T: np.ndarray, eta: float) -> np.ndarray:
        """Return the operator of η times the non-smooth part."""
        if not self.k or not (self.strength or self.radius):
            return T
        out, k = T.copy(), self.k
        out[:k] = (
            project(self.penalty, T[:k], self.radius)
            if self.radius
            else self.penalty.prox(np.ascontiguousarray(T[:k]), eta * self.strength)
        )
        return out

    def objective(self, T: np.ndarray) -> float:
        """Return the value of the objective."""
        return self.risk.value_and_slopes(self.predict(T))[0] + self.penalties(T)


def fista(layer: OutputLayer, T: np.ndarray, tol: float, most: int) -> np.ndarray:
    """Return Θ after accelerated proximal gradient steps; see `fista_of_blocks`."""

    def smooth(T: np.ndarray) -> tuple[float, tuple[np.ndarray]]:
        value, gradient = layer.smooth(T)
        return value, (gradient,)

    return fista_of_blocks(smooth, lambda eta, T: (layer.prox(T, eta),), (T,), tol, most)[0]


def fista_of_blocks(
    smooth: Callable[..., tuple[float, Sequence[np.ndarray]]],
    prox: Callable[..., Sequence[np.ndarray]],
    blocks: Sequence[np.ndarray],
    tol: float,
    most: int,
) -> Sequence[np.ndarray]:
    """Make accelerated proximal gradient steps with restarts and a line search ([C] Appendix D).

    They end once no entry moves by more than `tol` of the largest one of its block.

    Parameters
    ----------
    smooth : callable
        ``smooth(*blocks)``: the smooth part of the objective, and its gradient in every block.
    prox : callable
        ``prox(eta, *blocks)``: the operator of eta times the other part.
    blocks : sequence of ndarray
        The start.
    tol : float
    most : int
        The most steps.
    """
    mixed, t, L = blocks, 1.0, 1.0
    for _ in range(most):
        value, gradients = smooth(*mixed)
        while True:
            new = prox(1.0 / L, *(x - g / L for x, g in zip(mixed, gradients, strict=True)))
            steps = [x - y for x, y in zip(new, mixed, strict=True)]
            bound = value + _inner(gradients, steps) + 0.5 * L * _inner(steps, steps)
            if smooth(*new)[0] <= bound + 1e-14 * abs(value) or L > 1e18:
                break
            L *= 2.0
        apart = [x - y for x, y in zip(new, blocks, strict=True)]
        if _inner(steps, apart) < 0.0:
            # Past the minimum along the path: restart.
            t = 1.0
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        mixed = [x + (t - 1.0) / faster * step for x, step in zip(new, apart, strict=True)]
        blocks, t = new, faster
        L *= 0.95
        moved = (np.abs(step).max(initial=0.0) for step in apart)
        if all(size <= tol * np.abs(x).max(initial=_TINY) for size, x in zip(moved, blocks, strict=True)):
            break
    return blocks


def _inner(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    return float(sum((x * y).sum() for x, y in zip(a, b, strict=True)))


@cached_factory()
def _sweeps(view):
    shrink = view.shrink

    def sweeps(S, K, L, T, ridge, strength, k, most, tol, cache, u):
        """Minimise ⟨S, Δ⟩ + ½L tr(ΔᵀKΔ) + ridge + strength·Ω over Θ + Δ by rows, and update S."""
        q, m = T.shape
        for _ in range(most):
            largest = 0.0
            for r in range(q):
                h = L * K[r, r] + 2.0 * ridge[r]
                if h <= 0.0:
                    continue
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


class _Anderson:
    """Anderson acceleration of a fixed-point map (Walker and Ni 2011).

    For proximal steps the points before the operator are combined (Mai and Johansson 2020): they move
    smoothly where an entry of the result becomes 0, and zeros stay exact.

    Parameters
    ----------
    factor : tuple
        The Cholesky factorisation of K, whose inverse is the metric of the points.
    """

    def __init__(self, factor: tuple[np.ndarray, bool]) -> None:
        self._factor = factor
        self.clear()

    def clear(self) -> None:
        """Clear the stored steps."""
        self._images: list[np.ndarray] = []
        self._steps: list[np.ndarray] = []

    def next(self, point: np.ndarray | None, image: np.ndarray) -> np.ndarray | None:
        """Add a point and its image, and return the combination; None with a single point."""
        if point is None:
            return None
        self._images.append(image)
        self._steps.append(image - point)
        del self._images[: -_PAST - 1], self._steps[: -_PAST - 1]
        if len(self._steps) < 2:
            return None
        apart = [later - earlier for earlier, later in pairwise(self._steps)]
        weighed = [cho_solve(self._factor, step, check_finite=False) for step in apart]
        gram = np.array([[float((a * b).sum()) for b in weighed] for a in apart])
        rhs = np.array([float((self._steps[-1] * b).sum()) for b in weighed])
        gram[np.diag_indices_from(gram)] *= 1.0 + 1e-10
        shares = np.linalg.lstsq(gram, rhs, rcond=1e-14)[0]
        out = image.copy()
        for share, (earlier, later) in zip(shares, pairwise(self._images), strict=True):
            out -= share * (later - earlier)
        return out


def whitened(layer: OutputLayer, T: np.ndarray, tol: float, most: int = 500, part: float = 0.0) -> np.ndarray:
    """Return Θ after accelerated proximal steps in the metric of ZᵀZ.

    A step minimises the linearised risk plus ½L tr(Δᵀ(ZᵀCZ/N)Δ) and the penalties, by sweeps over the rows of
    Θ, each in closed form. So correlated features, as squares of sums are, cost more sweeps, but no
    more steps. L follows the curvature of the loss by a line search. The steps end once the
    predicted decrease is at most `tol` of the objective, or `part` of the total decrease.
    """
    # The penalties of an output layer have closed steps along rows.
    view: Any = layer.penalty.row
    kernel, cache = _sweeps(view), view.cache(*T.shape)
    here = layer.at(np.ascontiguousarray(T))
    first = here.objective
    K, anderson = layer.metric(here.T)
    work, L, steps = np.zeros(T.shape[1]), 1.0, 1
    promised, kept, age, point = np.inf, 0, 0, None

    def operator(image: np.ndarray) -> np.ndarray:
        """Return argmin ½L tr(ΘᵀKΘ) − L⟨image, Θ⟩ + penalties, approximately."""
        new = here.T.copy()
        S = L * (K @ new - image)
        rough = max(0.01 * tol * abs(here.objective), min(_ROUGH * promised, 1e-3 * abs(here.objective)))
        kernel(S, K, L, new, layer.ridge, layer.strength, layer.k, _SWEEPS, rough, cache, work)
        return new

    while True:
        image = K @ here.T - here.slope / L
        new = operator(image)
        step, fixed = new - here.T, layer.penalties(new)
        linear = float((here.slope * step).sum())
        square = 0.5 * L * float((step * (K @ step)).sum())
        promised = here.penalties - fixed - linear - square
        enough = max(tol * abs(here.objective), part * (first - here.objective))
        if promised <= enough or steps >= most:
            return new
        age += 1
        if age == _AGE:
            K, anderson = layer.metric(here.T)
            L, kept, age, point = 1.0, 0, 0, None
            continue
        jump = anderson.next(point, image)
        if jump is not None:
            steps += 1
            there = layer.at(operator(jump))
            if there.objective <= here.objective - _SHARE * promised:
                here, point = there, jump
                continue
            anderson.clear()
        steps += 1
        there = layer.at(new)
        if there.risk > here.risk + linear + square + _ROUNDING * abs(here.objective):
            L, kept = 2.0 * L, 0
            anderson.clear()
            if there.objective > here.objective:
                point = None
                continue
        here, point, kept = there, image, kept + 1
        if kept == _KEPT:
            L, kept, point = 0.5 * L, 0, None
            anderson.clear()


class _Point:
    """Θ with the risk, its gradient, the other parts of the objective and the objective."""

    def __init__(self, T: np.ndarray, risk: float, slope: np.ndarray, penalties: float) -> None:
        self.T, self.risk, self.slope, self.penalties = T, risk, slope, penalties
        self.objective = risk + penalties
