"""Majorization–minimization solver for the robust factorization machine (robust_fm, Algorithm 1)."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg.lapack import dpotrs

from ..errors import WhyNot
from ..linalg.lowrank import eigenform, eigenform_of_weights
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

# Over-relaxation; the intervals of convergence checks, and of updates of the ADMM penalty parameter.
_RELAXATION, _ASK, _LOOK = 1.6, 5, 50
# The maximum number of features: the normal equations for d(d + 1)/2 + d + 1 coordinates of Z, w and b are
# factorized.
_MOST_FEATURES = 61
# The accuracy of a solution, as a fraction of the change in the last epoch.
_OF_CHANGE = 1e-3


class ConeSolver(Solver):
    """Base class of solvers for the robust factorization machine; the columns of P are eigenvectors of Z."""

    monotone: ClassVar[bool] = False
    takes_kinks: ClassVar[bool] = True

    def _why_not_model(self, model: Model) -> WhyNot | None:
        if isinstance(model, RobustFM):
            return None
        return WhyNot(
            "robust_only",
            f"{self.label} projects Z onto the positive semidefinite matrices and shrinks its small "
            f"eigenvalues; the {model.label[0].lower()}{model.label[1:]} has no such Z. "
            'Choose the model "robust", or another solver.',
        )

    def prepare(self) -> None:
        self._model = cast(RobustFM, self.problem.model)
        self._kinks: Any = self.problem.loss.majoriser
        self._half = smooth_part(self.problem.loss)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        P, values = eigenform(parameters.P, np.maximum(parameters.multipliers, 0.0))
        self._now = parameters.replace(P=P, coefficients=values)

    def parameters(self) -> Parameters:
        """Return copies, with columns of zeros up to `rank`, largest λ_s first."""
        return self._now.padded(self.problem.rank)

    def _change(self, before: Parameters) -> float:
        now = self._now
        # Weights are scaled by their contribution to predictions, independently of the units of X.
        sizes = np.sqrt(second_moments(self.problem) / self.problem.design.n_samples)
        linear = np.append(sizes * (now.w - before.w), now.intercept - before.intercept)
        return relative_change(
            self._moved(before), (float(np.abs(linear).max()), sizes * now.w, now.intercept)
        )

    def _moved(self, before: Parameters) -> tuple[float, np.ndarray]:
        """Return the norm of the change of Z, and its eigenvalues, without a d × d array."""
        of_Z = np.append(self._now.multipliers, -before.multipliers)
        moved = eigenform(np.hstack([self._now.P, before.P]), of_Z)[1]
        return float(np.linalg.norm(moved)), self._now.multipliers


class TwoStage(ConeSolver):
    r"""Majorize loss and norm at the current point, and minimize (robust_fm, Algorithm 1; Zhang 2010).

    An epoch uses the tangents of both caps, which majorize the objective and touch it at the current point:
    R(Z) becomes ‖QZ‖²_F + const, where Q projects onto the eigenvectors that are not free, and the loss
    becomes Σ u_n over the rows with u_n ≤ ε₂, since min{u, ε₂} is concave in u. This majorizer is tighter
    than the weighted squares of Algorithm 1, Σ e_n u_n², keeps the kinks, and needs no smoothing. Squared and
    Huber losses are unchanged.

    The remaining problem is convex and solved to rounding by the alternating direction method of multipliers
    (Boyd et al. 2011), with copies v of the predictions, to which the loss applies, and S of Z, which is
    projected onto the cone. The steps on (Z, w, b) are exact, by a Cholesky factor of d(d + 1)/2 + d + 1
    normal equations. An extrapolated point is also tried and accepted if it is lower. Points above the
    current one are rejected: the objective never increases. With bounded rank, the projection keeps the
    largest eigenvalues.

    From Z = 0, it starts with the minimum without caps, which is convex: least absolute deviations. The
    squared loss (all weights 1), zeros and random starts end in poor minima.
    """

    name: ClassVar[str] = "two_stage"
    label: ClassVar[str] = "Two-stage majorization"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec(
            "accuracy",
            "float",
            1e-9,
            1e-14,
            1.0,
            log=True,
            help="The relative tolerance of iterates of the convex problem.",
        ),
        ParamSpec(
            "rounds", "int", 2_000, 10, 100_000, help="The maximum number of iterations on a convex problem."
        ),
    )
    most_features: ClassVar[float] = _MOST_FEATURES
    memory: ClassVar[tuple[str, ...]] = ("_now", "_slope", "_tolerance")

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        loss = problem.loss
        if loss.majoriser is not None or isinstance(loss, Squared | Huber):
            return None
        return WhyNot(
            "no_excess",
            f"{self.label} takes proximal steps on an excess or its square, but the {loss.label.lower()} "
            "loss is not a function of an excess. Use incremental_svd, or another loss.",
        )

    def prepare(self) -> None:
        super().prepare()
        problem = self.problem
        if (d := problem.design.n_features) > _MOST_FEATURES:
            raise ValueError(
                f"{self.label} solves d(d + 1)/2 + d + 1 equations, for at most {_MOST_FEATURES} features; "
                f"there are {d:,}. Choose incremental_svd, or 'auto'."
            )
        # The slope of the linear part of the loss: beyond δ for Huber, at every excess, or nowhere.
        self._steepest = 1.0 if self._kinks else np.inf
        if isinstance(problem.loss, Huber):
            self._steepest, self._half = problem.loss.delta, Squared()
        X = problem.design.dense()
        i, j = np.triu_indices(d)
        # The rows form an orthonormal basis of the symmetric matrices.
        size, places = np.where(i == j, 0.5, np.sqrt(0.5)), np.tile(np.arange(i.size), 2)
        basis = sp.csr_array((np.tile(size, 2), (places, np.append(i * d + j, j * d + i))))
        self._basis = basis, basis.T.tocsr()
        linear, bias = X[:, : d * problem.fit_linear], np.ones((len(X), int(problem.fit_intercept)))
        self._columns = np.hstack([2.0 * size * X[:, i] * X[:, j], linear, bias])

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        super().start(parameters, rng)
        # Slopes of the loss after the last epoch, which predictions do not determine at kinks.
        self._slope, self._tolerance = np.zeros(len(self.problem.y)), self.settings["accuracy"]
        if not self._now.multipliers.size:
            # A capped norm has no strength without its cap.
            strength = 0.0 if self._model.capped else self.problem.lambda_p
            self._now = self._solved(np.ones(len(self._slope)), self._now.P, strength)

    def epoch(self) -> float:
        problem, before = self.problem, self._now
        kept = np.ones(len(problem.y))
        if self._kinks:
            kept[self._kinks.excess(problem.predict(before), problem.y) > self._kinks.cap] = 0.0
        if not kept.any():
            return 0.0
        free = before.P[:, self._model.free(before.multipliers)]
        new, rough = self._solved(kept, free, problem.lambda_p), self._tolerance > self.settings["accuracy"]
        if problem.objective(new) <= problem.objective(before):
            self._now = self._extrapolated(new, before)
        change = self._change(before)
        self._tolerance = max(self.settings["accuracy"], _OF_CHANGE * min(change, 1.0))
        # A rough solution may bring no decrease although an exact one does.
        return max(change, self._tolerance) if rough else change

    def _extrapolated(self, new: Parameters, before: Parameters) -> Parameters:
        """Return the lowest point found beyond a step, since tangents slow the rotation of free eigenvectors.

        The number of free eigenvalues is unchanged. Each costs λ_p·ε₃, more than its gain in the loss if λ_p
        sets all others to 0: a jump to a point with fewer would not be a step of a local search.
        """
        problem, ahead, free = self.problem, 1.0, self._model.free(new.multipliers).sum()
        while True:
            of_Z = np.append((1.0 + ahead) * new.multipliers, -ahead * before.multipliers)
            P, values = eigenform(np.hstack([new.P, before.P]), of_Z)
            up = np.flatnonzero(values > 0.0)[: problem.rank]
            w, bias = (
                (1.0 + ahead) * a - ahead * b
                for a, b in ((new.w, before.w), (new.intercept, before.intercept))
            )
            trial = new.replace(P=P[:, up], coefficients=values[up], w=w, intercept=bias)
            fewer = self._model.free(trial.multipliers).sum() < free
            if fewer or not problem.objective(trial) < problem.objective(new):
                return new
            new, ahead = trial, 2.0 * ahead

    def _moved(self, before: Parameters) -> tuple[float, np.ndarray]:
        now, then = ((at.P * at.multipliers) @ at.P.T for at in (self._now, before))
        return float(np.abs(now - then).max()), now

    def _solved(self, kept: np.ndarray, free: np.ndarray, strength: float) -> Parameters:
        """Return the minimum of the convex problem over the included rows, with free columns."""
        problem, now, A, y, (U, U_T) = self.problem, self._now, self._columns, self.problem.y, self._basis
        m, d = U.shape[0], problem.design.n_features
        traced, bend = self._model.traced, 0.0 if self._kinks else 1.0
        weight = kept * problem.unit_weights / len(y)
        gram = (A * weight[:, None]).T @ A
        size = float(np.diagonal(gram)[:m].mean()) or 1.0
        smooth = np.diag(np.repeat([0.0, 2.0 * problem.lambda_w], [m, len(gram) - m]))
        if problem.fit_intercept:
            smooth[-1, -1] = 0.0
        if not traced:
            projector = sp.kron(np.eye(d) - free @ free.T, np.eye(d))
            smooth[:m, :m] = 2.0 * strength * (U @ projector @ U_T).toarray()
        gram[np.diag_indices_from(gram)] *= 1.0 + 1e-12
        gram[np.diag_indices(m)] += size
        # Features that are 0 in all rows have the weight 0.
        gram[np.diag_indices_from(gram)] += np.diagonal(gram + smooth) == 0.0
        v, s, factor = problem.predict(now), U @ ((now.P * now.multipliers) @ now.P.T).ravel(), None
        # A step of the loss changes an excess by a typical excess, or by half of itself.
        excess = float(np.average(np.abs(self._half.derivative(v, y)), weights=weight))
        rho = 1.0 / max(excess, 1e-3 * typical_size(y)) if self._kinks else 1.0
        # The multipliers that correspond to the slopes at a stationary (Z, w, b).
        mu = self._slope / rho
        nu = -(smooth[:m, :m] @ s + A[:, :m].T @ (weight * self._slope)) / (rho * size)
        for turn in range(1, self.settings["rounds"] + 1):
            if factor is None:
                factor = scipy.linalg.cholesky(rho * gram + smooth, lower=True, check_finite=False)
            right = A.T @ (weight * (v - mu))
            right[:m] += size * (s - nu)
            theta = dpotrs(factor, rho * right, lower=1)[0]
            fitted, v_before, s_before = A @ theta, v, s
            mu = mu + _RELAXATION * fitted + (1.0 - _RELAXATION) * v
            nu = nu + _RELAXATION * theta[:m] + (1.0 - _RELAXATION) * s
            step = self._half.derivative(mu, y) / (1.0 + bend * rho)
            v = mu - np.clip(step, -self._steepest / rho, self._steepest / rho)
            values, vectors = np.linalg.eigh((U_T @ nu).reshape(d, d))
            values = np.maximum(values - (strength / (rho * size) if traced else 0.0), 0.0)
            s = U @ ((vectors * values) @ vectors.T).ravel()
            mu, nu = mu - v, nu - s
            if turn % _ASK:
                continue
            apart, moved, scale = (
                float(np.sqrt(weight @ np.square(a) + size * (b @ b)))
                for a, b in ((fitted - v, theta[:m] - s), (v - v_before, s - s_before), (v, s))
            )
            if max(apart, moved) <= self._tolerance * scale:
                break
            ratio = apart / max(moved, 1e-300)
            if turn % _LOOK == 0 and turn <= 0.6 * self.settings["rounds"] and not 0.2 < ratio < 5.0:
                change = float(np.clip(np.sqrt(ratio), 0.1, 10.0))
                rho, mu, nu, factor = rho * change, mu / change, nu / change, None
        self._slope = rho * kept * mu
        P, values = eigenform_of_weights((U_T @ s).reshape(d, d), problem.rank)
        linear = {"w": theta[m : m + d]} if problem.fit_linear else {}
        bias = {"intercept": theta[-1]} if problem.fit_intercept else {}
        return now.replace(P=P, coefficients=values, **linear, **bias)
