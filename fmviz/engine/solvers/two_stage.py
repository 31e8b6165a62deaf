"""Majorise-minimise solver of the robust factorization machine (robust_fm, Algorithm 1).

For few features each convex problem in a semidefinite Z, w and a bias is solved to rounding: minimise Σ_n
g_n(f_n) + λ_w‖w‖² + λ_p·T(Z) over Z ⪰ 0, w and b, with f_n = b + ⟨w, x_n⟩ + x_nᵀZx_n, T(Z) = ‖QZ‖²_F for the
projector Q on all but some directions that are free, or tr Z, and g_n = ω_n·u(f_n) or ω_n·½u(f_n)² of an
excess u whose ½u² is smooth with slope f − t, t the nearest prediction that costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpotrs

from ..errors import WhyNot
from ..linalg.lowrank import pair_gradient
from ..models import Model
from ..models.robust import RobustFM
from ..parameters import Parameters
from ..problem import Formulation
from ..settings import ParamSpec
from ._cone_steps import (
    curvatures,
    linear_gradient,
    quadratic_forms,
    smooth_part,
    smoothed_risk,
    tangent_weights,
)
from ._sweeping import relative_change
from .base import Solver, second_moments
from .reweighted import DECAY, SMOOTHING, Smoothing

# Over-relaxation, and the interval of updates of the splitting's penalty parameter.
_RELAXATION, _LOOK = 1.6, 50
# The interval of convergence checks.
_ASK = 5
MOST_COORDINATES = 2_000
"""The most coordinates of Z, w and b for which the normal equations are factorised."""


def coordinates(d: int) -> int:
    """Return the number of coordinates of Z, w and b."""
    return d * (d + 1) // 2 + d + 1


def _norm(weight: np.ndarray, v: np.ndarray, size: float, z: np.ndarray) -> float:
    return float(np.sqrt(weight @ np.square(v) + size * (z @ z)))


# Without caps, by gradient steps: so many times `steps`, with δ falling in between.
_UNCAPPED = 10
# The accuracy of a solution, as a share of the last epoch's move.
_OF_MOVE = 1e-3


class ConeSolver(Solver):
    """Base class of solvers of the robust factorization machine."""

    monotone: ClassVar[bool] = False
    takes_kinks: ClassVar[bool] = True
    short_steps: ClassVar[bool] = True

    def _why_not_model(self, model: Model) -> WhyNot | None:
        if isinstance(model, RobustFM):
            return None
        return WhyNot(
            "robust_only",
            f"{self.label} projects Z on the positive semidefinite matrices and shrinks its small "
            f"eigenvalues; the {model.label[0].lower()}{model.label[1:]} has no such Z. "
            'Choose the model "robust", or another solver.',
        )

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        """Return why there is no Lipschitz constant of the smooth part, which gradient steps need."""
        return smooth_part(problem.loss).why_no_mu(self.label)

    def prepare(self) -> None:
        self._model = cast(RobustFM, self.problem.model)
        # Weights are measured by their contribution to predictions, so that units of X do not matter.
        self._sizes = np.sqrt(second_moments(self.problem) / self.problem.design.n_samples)
        self._half = smooth_part(self.problem.loss)

    def _penalised(self, risk: float, w: np.ndarray, eigenvalues: np.ndarray) -> float:
        """Return the objective, given the risk."""
        problem = self.problem
        shrunk = self._model.spectral.value(eigenvalues)
        return risk + problem.lambda_w * float(w @ w) + problem.lambda_p * shrunk


@dataclass
class Point:
    """Z with its eigenvalues, largest first, and eigenvectors; w, the bias, and the predictions f."""

    Z: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    w: np.ndarray
    bias: float
    f: np.ndarray


class TwoStage(ConeSolver):
    r"""Weights, then w, then Z: majorise loss and norm at the present point, and minimise (robust_fm).

    An epoch takes the tangents of both caps, which majorise the objective and touch it at the present
    point: R(Z) becomes ‖QZ‖²_F + const, Q being the projector on the eigenvectors that are not free,
    and the loss, by `scheme`,

    - "quadratic": Σ e_n u_n² with e_n = 1/(2 max{u_n, δ}) for u_n ≤ ε₂, and 0 beyond, which are the weights
      of Algorithm 1; δ is lowered once steps are small;
    - "linear": Σ u_n over the rows with u_n ≤ ε₂, as min{u, ε₂} is concave in u, too. It keeps the kinks,
      touches more closely, and needs no δ.

    What remains is convex. `inner` "exact" solves it to rounding, by splitting with a factorised system of
    d(d + 1)/2 + d + 1 equations; "gradient" makes `steps` rounds of a ridge step on w and the bias and an
    (accelerated) projected gradient step on Z. With `acceleration` an extrapolated point is tried, too, and
    taken where it is lower: the tangent of the norm keeps free eigenvectors from rotating. "auto" is
    "exact" for few features. A point above the present one is not taken, so that the objective, with ℓ_δ
    where the scheme is quadratic, never rises. Where the rank is bounded the projection keeps the largest
    eigenvalues.

    From Z = 0 it starts with the minimum without caps, which is convex: least absolute deviations. The
    squared loss (all weights 1), zeros and random starts end in poor minima.
    """

    name: ClassVar[str] = "two_stage"
    label: ClassVar[str] = "Two-stage majorisation"
    source: ClassVar[str] = "robust_fm, Algorithm 1; Zhang 2010; Boyd et al. 2011"
    about: ClassVar[str] = (
        "Sets rows beyond the cap of the loss aside and large eigenvalues free, solves the remaining convex "
        "problem, and repeats. The objective never rises."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec(
            "scheme",
            "choice",
            "linear",
            choices=("linear", "quadratic"),
            help="The majoriser of a loss with kinks: its tangent in u, or in u².",
        ),
        ParamSpec(
            "inner",
            "choice",
            "auto",
            choices=("auto", "exact", "gradient"),
            help="How the convex problem of an epoch is solved.",
        ),
        ParamSpec(
            "accuracy",
            "float",
            1e-9,
            1e-14,
            1.0,
            log=True,
            help="The relative tolerance between the iterates of an exact solution.",
        ),
        ParamSpec("rounds", "int", 2_000, 10, 100_000, help="Rounds of an exact solution, at most."),
        ParamSpec("steps", "int", 50, 1, 10_000, help="Gradient steps on Z in an epoch."),
        ParamSpec("acceleration", "bool", True, help="Whether steps, and epochs, are extrapolated."),
        ParamSpec(
            "linear",
            "choice",
            "ridge",
            choices=("ridge", "gradient"),
            help="The step on w between them: a ridge regression, or a gradient step.",
        ),
        SMOOTHING,
        DECAY,
    )
    # Z is stored as a d × d matrix.
    most_features: ClassVar[float] = 500
    memory: ClassVar[tuple[str, ...]] = ("_state", "_smoothing", "_slope", "_moved")

    def cost_note(self, problem: Formulation, d: int, rank: int) -> str | None:
        size = coordinates(d)
        if size <= MOST_COORDINATES:
            return None
        return (
            f"{self.label} forms Z, {d:,} × {d:,}, and decomposes it in each of its {self.settings['steps']} "
            "steps an epoch. With many features choose incremental_svd, which never does."
        )

    def prepare(self) -> None:
        super().prepare()
        problem, X = self.problem, self.problem.design.matrix
        self._X = X if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
        self._kinks: Any = problem.loss.majoriser
        small = coordinates(problem.design.n_features) <= MOST_COORDINATES
        # The splitting takes proximal steps of ½u², for squares and excesses.
        residual = problem.loss.scalar.of_residual if self._kinks is None else None
        able = small and (self._kinks is not None or (residual is not None and residual.is_residual))
        self._exact = {"auto": able, "exact": True, "gradient": False}[self.settings["inner"]]
        self._linear = self._exact and self._kinks is not None and self.settings["scheme"] == "linear"
        if self.settings["inner"] == "exact" and not able:
            raise ValueError(
                f"inner = 'exact' solves at most {MOST_COORDINATES:,} equations, with the squared loss "
                f"or one that has kinks; these are {coordinates(problem.design.n_features):,}, with "
                f"the {problem.loss.label.lower()} loss. Choose inner='gradient'."
            )

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        multipliers = np.maximum(parameters.multipliers, 0.0)
        Z = (parameters.P * multipliers) @ parameters.P.T
        self._now = self._point(Z, parameters.w.copy(), parameters.intercept)
        self._smoothing = Smoothing(self.problem, self.settings["smoothing"], self.settings["decay"])
        # Slopes of the loss after the last epoch: at kinks predictions do not determine them.
        self._slope = np.zeros(self._now.f.size)
        self._moved = 0.0
        if not self._now.values.size:
            self._now = self._uncapped(self._now)

    def _point(self, Z: np.ndarray, w: np.ndarray, bias: float) -> Point:
        """Return a point with the semidefinite matrix of the allowed rank that is nearest to Z."""
        values, vectors = np.linalg.eigh(Z)
        rank = min(self.problem.rank, values.size)
        values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
        kept = values > 1e-14 * max(float(np.abs(values).max(initial=0.0)), 1e-300)
        values, vectors = values[kept], vectors[:, kept]
        Z = (vectors * values) @ vectors.T
        f = quadratic_forms(self._X, Z) + bias
        if w.any():
            f += self.problem.design.dot(w)
        return Point(Z, values, vectors, w, bias, f)

    def _objective(self, at: Point, delta: float) -> float:
        problem = self.problem
        risk = problem.empirical_risk(at.f) if self._linear else smoothed_risk(problem, at.f, delta)
        return self._penalised(risk, at.w, at.values)

    def epoch(self) -> float:
        before, delta = self._now, self._smoothing.delta
        new = self._step(before, delta)
        if not np.isfinite(new.f).all():
            return float("inf")
        objective = self._objective(new, delta)
        if objective <= self._objective(before, delta):
            self._now = (
                self._extrapolate(new, before, objective, delta) if self.settings["acceleration"] else new
            )
        # A rough solution may move less than the exact one.
        rough = self._tolerance if self._exact else 0.0
        self._moved = self._change(before)
        moved = max(self._moved, rough if rough > self.settings["accuracy"] else 0.0)
        return moved if self._linear or self._kinks is None else self._smoothing.after(moved)

    def _extrapolate(self, new: Point, before: Point, objective: float, delta: float) -> Point:
        """Extrapolate a step to the lowest point found, as tangents keep free eigenvectors from rotating.

        The number of free eigenvalues stays. Each costs λ_p·ε₃, more than it gains in the loss where λ_p
        empties all others: a jump to a point with fewer would not be a step of a local search.
        """
        ahead, free = 1.0, self._model.free(new.values).sum()
        while True:
            trial = _extrapolated(new, before, ahead)
            trial = self._point(trial.Z, trial.w, trial.bias)
            if self._model.free(trial.values).sum() < free:
                return new
            if not (reached := self._objective(trial, delta)) < objective:
                return new
            new, objective, ahead = trial, reached, 2.0 * ahead

    def _change(self, before: Point) -> float:
        now = self._now
        linear = max(float(np.abs(self._sizes * (now.w - before.w)).max()), abs(now.bias - before.bias))
        return relative_change(
            (float(np.abs(now.Z - before.Z).max()), now.Z), (linear, self._sizes * now.w, now.bias)
        )

    def _uncapped(self, here: Point) -> Point:
        """Return the minimum without caps, a convex problem; a capped norm has no strength there."""
        problem = self.problem
        strength = 0.0 if self._model.capped else problem.lambda_p
        weights = problem.unit_weights / problem.design.n_samples
        if self._exact:
            return self._solved(here, weights, weights > 0.0, 0, self._kinks is None, strength)
        delta = self._smoothing.delta
        for _ in range(_UNCAPPED):
            tangent = weights
            if self._kinks is not None:
                uncapped = replace(self._kinks, cap=np.inf)
                tangent = weights * uncapped.weights(here.f, problem.y, delta)
            here = self._descended(here, tangent, np.zeros(0, dtype=bool), strength)
            delta *= self.settings["decay"]
        return here

    def _step(self, here: Point, delta: float) -> Point:
        problem = self.problem
        n = problem.design.n_samples
        free = self._model.free(here.values)
        if self._linear:
            weights = problem.unit_weights / n
            kept = (self._kinks.excess(here.f, problem.y) <= self._kinks.cap) & (weights > 0.0)
            return self._solved(here, weights, kept, int(free.sum()), False, problem.lambda_p)
        weights = tangent_weights(problem, here.f, slice(None), delta) / n
        if self._exact:
            return self._solved(here, weights, weights > 0.0, int(free.sum()), True, problem.lambda_p)
        return self._descended(here, weights, free, problem.lambda_p)

    @property
    def _tolerance(self) -> float:
        """The tolerance of the next exact solution."""
        return max(self.settings["accuracy"], _OF_MOVE * min(self._moved, 1.0))

    def _solved(
        self, here: Point, weights: np.ndarray, kept: np.ndarray, free: int, squared: bool, strength: float
    ) -> Point:
        """Return the minimum of the convex problem; without a row that counts, the present point.

        See the module: g_n is ω_n·½u² if `squared`, else ω_n·u, and the first `free` eigenvectors are free.
        By the alternating direction method of multipliers. The splitting has copies v of the predictions,
        where the loss acts, and S of Z, which is projected on the cone (Boyd et al. 2011); both in
        coordinates of an orthonormal basis in which T is diagonal. The steps on (Z, w, b) are exact, by a
        Cholesky factor of the normal equations.
        """
        problem, trace = self.problem, self._model.traced
        if not kept.any():
            return here
        d = problem.design.n_features
        # The eigenvectors, completed to a basis.
        B = np.linalg.qr(np.hstack([here.vectors, np.eye(d)]))[0] if here.values.size else np.eye(d)
        X, y, weights, slope = self._X[kept], problem.y[kept], weights[kept], self._slope[kept]
        X = X.toarray() if hasattr(X, "toarray") else X
        # A typical excess.
        unit = float(np.abs(self._half.derivative(here.f[kept], y)).mean())
        unit = max(unit, 1e-3 * self._smoothing.unit)
        tol, most = self._tolerance, self.settings["rounds"]
        first, second = np.triu_indices(d)
        double = np.where(first == second, 1.0, np.sqrt(2.0))
        rows = X @ B
        A = np.hstack(
            [
                rows[:, first] * rows[:, second] * double,
                *([rows] if problem.fit_linear else []),
                *([np.ones((len(rows), 1))] if problem.fit_intercept else []),
            ]
        )
        m = first.size
        penalised = (np.arange(d) >= free).astype(float)
        smooth = np.zeros(A.shape[1])
        if not trace:
            smooth[:m] = strength * (penalised[first] + penalised[second])
        if problem.fit_linear:
            smooth[m : m + d] = 2.0 * problem.lambda_w
        # A step of the loss moves an excess by a unit, or by half of itself.
        weight = weights * (1.0 if squared else 1.0 / unit)
        gram = (A * weight[:, None]).T @ A
        size = float(np.diagonal(gram)[:m].mean()) or 1.0
        coupling = np.zeros(A.shape[1])
        coupling[:m] = size
        # Z, w and the bias have different units.
        ridge = np.concatenate(
            [
                1e-12 * np.full(block.shape, block.max())
                for block in np.split(np.diagonal(gram), [m, m + d])
                if block.size
            ]
        )

        upper, lower = first * d + second, second * d + first

        def unpacked(z: np.ndarray) -> np.ndarray:
            M = np.zeros(d * d)
            M[upper] = M[lower] = z / double
            return M.reshape(d, d)

        def on_cone(z: np.ndarray, shift: float) -> np.ndarray:
            values, vectors = np.linalg.eigh(unpacked(z))
            values = np.maximum(values - shift, 0.0)
            return ((vectors * values) @ vectors.T).ravel()[upper] * double

        def loss_step(v: np.ndarray, rho: float) -> np.ndarray:
            move = self._half.derivative(v, y)
            if squared:
                return v - move / (1.0 + rho)
            reach = unit / rho
            return v - np.minimum(np.maximum(move, -reach), reach)

        theta = np.concatenate(
            [
                (B.T @ here.Z @ B)[first, second] * double,
                *([B.T @ here.w] if problem.fit_linear else []),
                *([[here.bias]] if problem.fit_intercept else []),
            ]
        )
        v, s = A @ theta, theta[:m].copy()
        # The multipliers that correspond to the slopes where (Z, w, b) is stationary.
        mu = slope / weight
        nu = -(smooth[:m] * theta[:m] + A[:, :m].T @ slope) / size
        rho, factor = 1.0, None
        for turn in range(most):
            if factor is None:
                H = rho * gram
                H[np.diag_indices_from(H)] += smooth + rho * coupling + ridge
                factor = scipy.linalg.cholesky(H.T, lower=True, overwrite_a=True, check_finite=False)
            right = rho * (A.T @ (weight * (v - mu)))
            right[:m] += rho * size * (s - nu)
            theta = dpotrs(factor, right, lower=1)[0]
            fitted = A @ theta
            v_before, s_before = v, s
            f = _RELAXATION * fitted + (1.0 - _RELAXATION) * v
            z = _RELAXATION * theta[:m] + (1.0 - _RELAXATION) * s
            v = loss_step(f + mu, rho)
            s = on_cone(z + nu, strength / (rho * size) if trace else 0.0)
            mu += f - v
            nu += z - s
            if (turn + 1) % _ASK:
                continue
            apart = _norm(weight, fitted - v, size, theta[:m] - s)
            moved = _norm(weight, v - v_before, size, s - s_before)
            scale = _norm(weight, v, size, s) or 1.0
            if max(apart, moved) <= tol * scale:
                break
            ratio = apart / max(moved, 1e-300)
            if turn % _LOOK == _LOOK - 1 and turn < 0.6 * most and not 0.2 < ratio < 5.0:
                change = float(np.clip(np.sqrt(ratio), 0.1, 10.0))
                rho *= change
                mu, nu, factor = mu / change, nu / change, None
        symmetric = B @ unpacked(s) @ B.T
        w = B @ theta[m : m + d] if problem.fit_linear else here.w
        bias = float(theta[-1]) if problem.fit_intercept else here.bias
        self._slope = np.zeros(kept.size)
        self._slope[kept] = rho * weight * mu
        return self._point(0.5 * (symmetric + symmetric.T), w, bias)

    def _descended(self, here: Point, weights: np.ndarray, free: np.ndarray, strength: float) -> Point:
        """Make `steps` rounds of a step on w and one on Z, on the tangent at `here`."""
        problem, X, half = self.problem, self._X, self._half
        mu = half.mu() or 1.0
        in_Z, in_w = curvatures(X, weights)
        P = here.vectors[:, : free.size][:, free]
        trace = self._model.traced
        step = 1.0 / (mu * in_Z + (0.0 if trace else 2.0 * strength) or 1.0)
        linear = self._linear_step(weights, mu, mu * in_w)

        def value(at: Point) -> float:
            residual = at.Z - P @ (P.T @ at.Z)
            shrunk = float(at.values.sum()) if trace else float(np.square(residual).sum())
            total = float(weights @ half.value(at.f, problem.y)) + problem.lambda_w * float(at.w @ at.w)
            return total + strength * shrunk

        def projected(origin: Point) -> Point:
            slope = weights * half.derivative(origin.f, problem.y)
            G = pair_gradient(X, slope, diagonal=True)
            if trace:
                G[np.diag_indices_from(G)] += strength
            elif strength:
                residual = origin.Z - P @ (P.T @ origin.Z)
                G += strength * (residual + residual.T)
            return self._point(origin.Z - step * G, origin.w, origin.bias)

        now, t, best = here, 1.0, value(here)
        behind = here
        for _ in range(self.settings["steps"]):
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            ahead = (t - 1.0) / following if self.settings["acceleration"] else 0.0
            new = projected(linear(_extrapolated(now, behind, ahead)))
            reached = value(new)
            if ahead and not reached <= best:
                t, behind = 1.0, now
                continue
            behind, now, best, t = now, new, reached, following
        return now

    def _linear_step(self, weights: np.ndarray, mu: float, curvature: float) -> Callable[[Point], Point]:
        """Return the step on w and the bias: the minimum of a quadratic majoriser of the tangent."""
        problem, X = self.problem, self._X
        if not (problem.fit_linear or problem.fit_intercept):
            return lambda at: at
        d = problem.design.n_features
        factor = None
        if self.settings["linear"] == "ridge":
            A = np.hstack([X.toarray() if hasattr(X, "toarray") else X, np.ones((len(weights), 1))])
            H = mu * (A * weights[:, None]).T @ A
            H[np.arange(d), np.arange(d)] += 2.0 * problem.lambda_w
            fitted = np.repeat([problem.fit_linear, problem.fit_intercept], [d, 1])
            H[~fitted], H[:, ~fitted] = 0.0, 0.0
            H[np.diag_indices_from(H)] += 1e-12 * float(np.diagonal(H).max()) + 1e-300 + ~fitted
            factor = scipy.linalg.cho_factor(H)
        length = 1.0 / (curvature + 2.0 * problem.lambda_w or 1.0)

        def step(at: Point) -> Point:
            slope = weights * self._half.derivative(at.f, problem.y)
            gradient = np.append(*linear_gradient(problem, X, slope, at.w))
            move = length * gradient if factor is None else scipy.linalg.cho_solve(factor, gradient)
            f = at.f - problem.design.dot(move[:d]) - move[d]
            return Point(at.Z, at.values, at.vectors, at.w - move[:d], at.bias - float(move[d]), f)

        return step

    @property
    def _state(self) -> Parameters:
        """The present point, for a checkpoint."""
        return self.parameters()

    @_state.setter
    def _state(self, state: Parameters) -> None:
        Z = (state.P * state.multipliers) @ state.P.T
        self._now = self._point(Z, state.w.copy(), state.intercept)

    def parameters(self) -> Parameters:
        """Return copies, with columns of zeros up to `rank`, largest λ_s first."""
        now = self._now
        return Parameters(now.vectors, now.w, now.bias, coefficients=now.values).padded(self.problem.rank)


def _extrapolated(now: Point, behind: Point, ahead: float) -> Point:
    """Return now + ahead·(now − behind), which need not be semidefinite; f is linear in the parameters."""
    if ahead == 0.0:
        return now
    return Point(
        now.Z + ahead * (now.Z - behind.Z),
        now.values,
        now.vectors,
        now.w + ahead * (now.w - behind.w),
        now.bias + ahead * (now.bias - behind.bias),
        now.f + ahead * (now.f - behind.f),
    )
