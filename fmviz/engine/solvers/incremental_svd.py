"""Mini-batch solver for robust machines with many features: incremental SVD of Z (Brand 2006)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..errors import WhyNot
from ..losses.majoriser import Smoothed, smooth_part
from ..parameters import Parameters
from ..problem import Formulation
from ..settings import ParamSpec
from .reweighted import DECAY, SMOOTHING, Smoothing
from .two_stage import ConeSolver

# An eigenvalue below this fraction of the largest, or a relative increase of the objective below it, is
# rounding.
_ROUNDING = 1e-14
_POWER_ROUNDS = 12
# An epoch that would increase the objective is repeated with half the step size, up to this many times.
_HALVINGS = 8


def updated(
    P: np.ndarray, eigenvalues: np.ndarray, A: np.ndarray, weights: np.ndarray, rank: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `rank` largest positive eigenvalues of P diag(eigenvalues) Pᵀ + A diag(weights) Aᵀ.

    With [P, A] = UR and U orthonormal, the eigenvectors are those of a matrix of order r + c, rotated by U
    (Brand 2006, for a symmetric matrix): O(d(r + c)² + (r + c)³), without d × d arrays. Keeping the largest
    positive eigenvalues is the projection onto the semidefinite matrices of this rank.

    Parameters
    ----------
    P : (d, r) ndarray
        Columns, with weights `eigenvalues`, shape (r,).
    A : (d, c) ndarray
        Columns, with `weights`, shape (c,); weights may have either sign.
    rank : int
        The maximum number of eigenvalues.

    Returns
    -------
    P : (d, q) ndarray
        Orthonormal columns, q ≤ rank.
    eigenvalues : (q,) ndarray
        All positive, largest first.
    """
    U, R = np.linalg.qr(np.hstack([P, A]))
    values, vectors = np.linalg.eigh((R * np.append(eigenvalues, weights)) @ R.T)
    order = np.argsort(-values, kind="stable")[:rank]
    order = order[values[order] > _ROUNDING * np.abs(values).max(initial=0.0)]
    return U @ vectors[:, order], values[order]


def curvatures(X: Any, weights: np.ndarray) -> tuple[float, float]:
    """Return bounds on the curvature of ½ Σ_n weights_n f_n² in Z, and in (w, b) jointly.

    They are the largest eigenvalues of the matrices √(a_n a_m) (x_n·x_m)² and √(a_n a_m) |1 + x_n·x_m|, the
    latter as a bound for the signed matrix. Both are non-negative; the largest ratio of a power iteration
    from a positive start is therefore an upper bound in every iteration (Collatz and Wielandt).
    """
    products = X @ X.T
    products = products.toarray() if sp.issparse(products) else np.asarray(products)
    outer = np.sqrt(weights)[:, None] * np.sqrt(weights)
    return _largest(outer * products**2), _largest(outer * np.abs(1.0 + products))


def _largest(matrix: np.ndarray) -> float:
    """Return an upper bound on the largest eigenvalue of a symmetric non-negative matrix."""
    u, bound = np.ones(len(matrix)), 0.0
    for _ in range(_POWER_ROUNDS):
        image = matrix @ u
        bound = float((image / u).max())
        u = np.maximum(image / (image.max() or 1.0), 1e-12)
    return bound


class IncrementalSVD(ConeSolver):
    r"""Projected stochastic gradient steps on Z of bounded rank, by updates of its decomposition.

    For every mini-batch, in a new random order every epoch, the loss is majorized by the weighted squares
    Σ e_n u_n² of Algorithm 1 with e_n = 1/(2 max{u_n, δ}) for u_n ≤ ε₂, and 0 beyond, and the norm as in
    `TwoStage`; then w and the bias take a gradient step, and

        Z ← Π(Z − η(X_Iᵀ diag(g) X_I + λ_p(QZ + ZQ))),

    where Π keeps the `rank` largest positive eigenvalues, with Q for the current Z: an update of the
    decomposition by the columns X_Iᵀ in O(d(r + c)²). The columns have the signs of g; the update is
    therefore A S Aᵀ, not AAᵀ. The step size is `step` times the largest allowed by the curvature of the
    mini-batch. δ is lowered when steps are small.

    An epoch that would increase the objective with ℓ_δ is repeated with half the step size: it never
    increases.
    """

    name: ClassVar[str] = "incremental_svd"
    label: ClassVar[str] = "Mini-batches with incremental SVD"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec("batch_size", "int", 64, 1, 2_048, help="The number of rows per mini-batch."),
        ParamSpec(
            "step",
            "float",
            1.0,
            1e-6,
            1.0,
            log=True,
            symbol=r"\eta",
            help="The step size as a fraction of the largest allowed by the curvature of the mini-batch.",
        ),
        ParamSpec(
            "uncapped", "int", 2, 0, 1000, help="The number of initial epochs without the cap of the loss."
        ),
        SMOOTHING,
        DECAY,
    )
    memory: ClassVar[tuple[str, ...]] = ("_now", "_smoothing", "_share", "_rng")

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        return smooth_part(problem.loss).why_no_mu(self.label)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        super().start(parameters, rng)
        self._rng, self._share = rng, float(self.settings["step"])
        self._smoothing = Smoothing(self.problem, self.settings["smoothing"], self.settings["decay"])
        if self._kinks and np.isfinite(self._kinks.cap) and not self._now.multipliers.size:
            self._kinks = replace(self._kinks, cap=np.inf)
            for _ in range(self.settings["uncapped"]):
                before = self._now
                self._pass()
                self._smoothing.after(self._relative(before))
            self._kinks = self.problem.loss.majoriser

    def epoch(self) -> float:
        before, problem = self._now, self.problem
        if self._kinks:
            problem = replace(problem, loss=Smoothed(problem.loss, self._smoothing.delta))
        objective = problem.objective(before)
        for _ in range(_HALVINGS):
            self._pass()
            if problem.objective(self._now) <= objective * (1.0 + _ROUNDING):
                break
            self._share *= 0.5
            self._now = before
        return self._smoothing.after(self._relative(before))

    def _relative(self, before: Parameters) -> float:
        # Short steps do not indicate convergence.
        return min(1.0, self._change(before) / self._share)

    def _pass(self) -> None:
        problem, half, model = self.problem, self._half, self._model
        n, size, strength, mu = (
            len(problem.y),
            self.settings["batch_size"],
            problem.lambda_p,
            half.mu() or 1.0,
        )
        order = np.arange(n) if size >= n else self._rng.permutation(n)
        for begin in range(0, n, size):
            rows, now = order[begin : begin + size], self._now
            X, y, w, bias = problem.design.take(rows), problem.y[rows], now.w, now.intercept
            f = np.square(X @ now.P) @ now.multipliers + X @ w + bias
            weights = problem.unit_weights[rows] / rows.size
            if self._kinks:
                weights = weights * self._kinks.weights(f, y, self._smoothing.delta)
            in_Z, in_w = curvatures(X, weights)
            slope = weights * half.derivative(f, y)
            length = self._share / (mu * in_w + 2.0 * problem.lambda_w or 1.0)
            if problem.fit_linear:
                w = w - length * (X.T @ slope + 2.0 * problem.lambda_w * w)
            if problem.fit_intercept:
                bias -= length * float(slope.sum())
            slope = weights * half.derivative(f + X @ (w - now.w) + bias - now.intercept, y)
            bend = 0.0 if model.traced else 2.0 * strength
            step = self._share / (mu * in_Z + bend or 1.0)
            values = now.multipliers * np.where(model.free(now.multipliers), 1.0, 1.0 - step * bend)
            A = X[slope != 0.0].T
            A = A.toarray() if sp.issparse(A) else A
            P, values = updated(now.P, values, A, -step * slope[slope != 0.0], problem.rank)
            if model.traced:
                kept = values > step * strength
                P, values = P[:, kept], values[kept] - step * strength
            self._now = now.replace(P=P, coefficients=values, w=w, intercept=bias)
