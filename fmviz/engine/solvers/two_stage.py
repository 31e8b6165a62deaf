"""Majorise-minimise solver of the robust factorization machine (robust_fm, Algorithm 1).

Each convex problem in a semidefinite Z, w and a bias is solved to rounding: minimise Σ_n g_n(f_n) + λ_w‖w‖² +
λ_p·T(Z) over Z ⪰ 0, w and b, with f_n = b + ⟨w, x_n⟩ + x_nᵀZx_n, T(Z) = ‖QZ‖²_F for the projector Q on all
but some directions that are free, or tr Z, and g_n = ω_n·u(f_n) or ω_n·½u(f_n)² of an excess u whose ½u² is
smooth with slope f − t, t the nearest prediction that costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg.lapack import dpotrs

from ..errors import WhyNot
from ..losses.huber import Huber
from ..losses.majoriser import smooth_part, typical_size
from ..losses.squared import Squared
from ..models import Model
from ..models.robust import RobustFM
from ..parameters import Parameters
from ..problem import Formulation
from ..settings import ParamSpec
from ._sweeping import relative_change
from .base import Solver, second_moments

# Over-relaxation, and the interval of updates of the splitting's penalty parameter.
_RELAXATION, _LOOK = 1.6, 50
# The interval of convergence checks.
_ASK = 5
# The most features: for d(d + 1)/2 + d + 1 coordinates of Z, w and b normal equations are factorised.
_MOST_FEATURES = 61
# The accuracy of a solution, as a share of the last epoch's move.
_OF_MOVE = 1e-3


def quadratic_forms(X: Any, Z: np.ndarray) -> np.ndarray:
    """Return x_nᵀZx_n for every row of X, shape (n,)."""
    right = np.asarray(X @ Z)
    if sp.issparse(X):
        return np.asarray(X.multiply(right).sum(axis=1)).ravel()
    return np.einsum("nj,nj->n", X, right)


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
    r"""Majorise loss and norm at the present point, and minimise (robust_fm, Algorithm 1).

    An epoch takes the tangents of both caps, which majorise the objective and touch it at the present
    point: R(Z) becomes ‖QZ‖²_F + const, Q being the projector on the eigenvectors that are not free, and the
    loss Σ u_n over the rows with u_n ≤ ε₂, as min{u, ε₂} is concave in u. That touches more closely than the
    weighted squares of Algorithm 1, Σ e_n u_n², keeps the kinks, and needs no smoothing. Squared losses and
    Huber's stay as they are.

    What remains is convex, and solved to rounding, by splitting with a factorised system of d(d + 1)/2 + d +
    1 equations. An extrapolated point is tried, too, and taken where it is lower: the tangent of the norm
    keeps free eigenvectors from rotating. A point above the present one is not taken, so that the objective
    never rises. Where the rank is bounded the projection keeps the largest eigenvalues.

    From Z = 0 it starts with the minimum without caps, which is convex: least absolute deviations. The
    squared loss (all weights 1), zeros and random starts end in poor minima.
    """

    name: ClassVar[str] = "two_stage"
    label: ClassVar[str] = "Two-stage majorisation"
    source: ClassVar[str] = "robust_fm, Algorithm 1; Zhang 2010; Boyd et al. 2011"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec(
            "accuracy",
            "float",
            1e-9,
            1e-14,
            1.0,
            log=True,
            help="The relative tolerance between the iterates of the convex problem.",
        ),
        ParamSpec("rounds", "int", 2_000, 10, 100_000, help="Rounds on a convex problem, at most."),
    )
    most_features: ClassVar[float] = _MOST_FEATURES
    memory: ClassVar[tuple[str, ...]] = ("_state", "_slope", "_moved")
    _now: Point

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        loss = problem.loss
        if loss.majoriser is None and not isinstance(loss, Squared | Huber):
            return WhyNot(
                "no_excess",
                f"{self.label} takes proximal steps of an excess or its square, which the "
                f"{loss.label.lower()} loss is no function of. Use incremental_svd, or another loss.",
            )
        return super()._why_not(problem)

    def prepare(self) -> None:
        super().prepare()
        problem, X = self.problem, self.problem.design.matrix
        if (d := problem.design.n_features) > _MOST_FEATURES:
            raise ValueError(
                f"{self.label} solves d(d + 1)/2 + d + 1 equations, for at most {_MOST_FEATURES} features; "
                f"these are {d:,}. Choose incremental_svd, or 'auto'."
            )
        self._X = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        self._kinks: Any = problem.loss.majoriser
        # The largest slope of a square.
        self._steepest = problem.loss.delta if isinstance(problem.loss, Huber) else np.inf
        if np.isfinite(self._steepest):
            self._half = Squared()
        self._unit = 1.0 if problem.loss.task == "binary" else typical_size(problem.y)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        self._state = parameters
        # Slopes of the loss after the last epoch: at kinks predictions do not determine them.
        self._slope = np.zeros(self._now.f.size)
        self._moved = 0.0
        if not self._now.values.size:
            counted = self.problem.unit_weights > 0.0
            # A capped norm has no strength without its cap.
            strength = 0.0 if self._model.capped else self.problem.lambda_p
            self._now = self._solved(self._now, counted, 0, strength)

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

    def _objective(self, at: Point) -> float:
        return self._penalised(self.problem.empirical_risk(at.f), at.w, at.values)

    def epoch(self) -> float:
        problem, before = self.problem, self._now
        counted = problem.unit_weights > 0.0
        if self._kinks is not None:
            counted &= self._kinks.excess(before.f, problem.y) <= self._kinks.cap
        free = int(self._model.free(before.values).sum())
        tolerance = self._tolerance
        new = self._solved(before, counted, free, problem.lambda_p)
        if not np.isfinite(new.f).all():
            return float("inf")
        objective = self._objective(new)
        if objective <= self._objective(before):
            self._now = now = self._extrapolate(new, before, objective)
            moved = max(float(np.abs(self._sizes * (now.w - before.w)).max()), abs(now.bias - before.bias))
            self._moved = relative_change(
                (float(np.abs(now.Z - before.Z).max()), now.Z), (moved, self._sizes * now.w, now.bias)
            )
        else:
            self._moved = 0.0
        # A rough solution may move less than the exact one.
        return max(self._moved, tolerance if tolerance > self.settings["accuracy"] else 0.0)

    def _extrapolate(self, new: Point, before: Point, objective: float) -> Point:
        """Extrapolate a step to the lowest point found, as tangents keep free eigenvectors from rotating.

        The number of free eigenvalues stays. Each costs λ_p·ε₃, more than it gains in the loss where λ_p
        empties all others: a jump to a point with fewer would not be a step of a local search.
        """
        ahead, free = 1.0, self._model.free(new.values).sum()
        while True:
            trial = self._point(
                new.Z + ahead * (new.Z - before.Z),
                new.w + ahead * (new.w - before.w),
                new.bias + ahead * (new.bias - before.bias),
            )
            reached = self._objective(trial)
            if self._model.free(trial.values).sum() < free or not reached < objective:
                return new
            new, objective, ahead = trial, reached, 2.0 * ahead

    @property
    def _tolerance(self) -> float:
        """The tolerance of the next solution."""
        return max(self.settings["accuracy"], _OF_MOVE * min(self._moved, 1.0))

    def _solved(self, here: Point, kept: np.ndarray, free: int, strength: float) -> Point:
        """Return the minimum of the convex problem; without a row that counts, the present point.

        See the module: the sum is over the rows that are kept, g_n is ω_n·½u² for the squared loss, else
        ω_n·u, and the first `free` eigenvectors are free. By the alternating direction method of multipliers:
        the splitting has copies v of the predictions, where the loss acts, and S of Z, which is projected on
        the cone (Boyd et al. 2011), both in coordinates of an orthonormal basis in which T is diagonal. The
        steps on (Z, w, b) are exact, by a Cholesky factor of the normal equations.
        """
        problem, trace, squared = self.problem, self._model.traced, self._kinks is None
        if not kept.any():
            return here
        d = problem.design.n_features
        # The eigenvectors, completed to a basis.
        B = np.linalg.qr(np.hstack([here.vectors, np.eye(d)]))[0] if here.values.size else np.eye(d)
        X, y, slope = self._X[kept], problem.y[kept], self._slope[kept]
        weights = (problem.unit_weights / problem.design.n_samples)[kept]
        X = X.toarray() if sp.issparse(X) else X
        # A typical excess.
        unit = float(np.abs(self._half.derivative(here.f[kept], y)).mean())
        unit = max(unit, 1e-3 * self._unit)
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
                move, reach = move / (1.0 + rho), self._steepest / rho
            else:
                reach = unit / rho
            return v - np.minimum(np.maximum(move, -reach), reach)

        def norm(v: np.ndarray, z: np.ndarray) -> float:
            return float(np.sqrt(weight @ np.square(v) + size * (z @ z)))

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
            apart = norm(fitted - v, theta[:m] - s)
            moved = norm(v - v_before, s - s_before)
            scale = norm(v, s) or 1.0
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

    @property
    def _state(self) -> Parameters:
        """The present point, for a checkpoint."""
        return self.parameters()

    @_state.setter
    def _state(self, state: Parameters) -> None:
        Z = (state.P * np.maximum(state.multipliers, 0.0)) @ state.P.T
        self._now = self._point(Z, state.w.copy(), state.intercept)

    def parameters(self) -> Parameters:
        """Return copies, with columns of zeros up to `rank`, largest λ_s first."""
        now = self._now
        return Parameters(now.vectors, now.w, now.bias, coefficients=now.values).padded(self.problem.rank)
