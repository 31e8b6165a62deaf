"""Mini-batch solver of robust machines with many features: incremental SVD of Z (Brand 2006)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..parameters import Parameters
from ..settings import ParamSpec
from ._sweeping import relative_change
from .reweighted import DECAY, SMOOTHING, Smoothing
from .two_stage import ConeSolver

# An eigenvalue below this share of the largest one is rounding.
_ROUNDING = 1e-14
_POWER_ROUNDS = 12
# Where a column adds less than this share of the largest addition, it is orthogonalised once more.
_NOTHING_NEW = 1e-3


def updated(
    P: np.ndarray, eigenvalues: np.ndarray, A: np.ndarray, weights: np.ndarray, rank: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `rank` largest positive eigenvalues of P diag(eigenvalues) Pᵀ + A diag(weights) Aᵀ.

    [P, A] = [P, U]·[[I, PᵀA], [0, R]] with an orthonormal U, so that the eigenvectors are those of a matrix
    of order r + c, rotated by [P, U] (Brand 2006, for a symmetric matrix): O(d(r + c)² + (r + c)³), no d × d
    array. Keeping the largest positive eigenvalues is the projection on the semidefinite matrices of such a
    rank.

    Parameters
    ----------
    P : (d, r) ndarray
        Orthonormal columns.
    eigenvalues : (r,) ndarray
        Theirs.
    A : (d, c) ndarray
        Any columns.
    weights : (c,) ndarray
        Theirs, of either sign.
    rank : int
        The most that are kept.

    Returns
    -------
    P : (d, q) ndarray
        Orthonormal columns, q ≤ rank.
    eigenvalues : (q,) ndarray
        All positive, largest first.
    """
    r = eigenvalues.size
    inside = P.T @ A
    residual = A - P @ inside
    # Twice is enough (Kahan): the remaining part in P is rounding of the residual, not of A.
    again = P.T @ residual
    residual -= P @ again
    U, R = np.linalg.qr(residual)
    sizes = np.abs(np.diagonal(R))
    if sizes.size and sizes.min() < _NOTHING_NEW * sizes.max():
        # Where the residual is rounding alone, U may have parts in P.
        U -= P @ (P.T @ U)
        U, turn = np.linalg.qr(U)
        R = turn @ R
    beside = np.vstack([inside + again, R])
    K = (beside * weights) @ beside.T
    K[np.arange(r), np.arange(r)] += eigenvalues
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    order = np.argsort(-values, kind="stable")[:rank]
    order = order[values[order] > _ROUNDING * np.abs(values).max(initial=0.0)]
    return P @ vectors[:r, order] + U @ vectors[r:, order], values[order]


def orthonormalised(P: np.ndarray, eigenvalues: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same decomposition with columns that are orthonormal to rounding; they drift over time."""
    Q, R = np.linalg.qr(P)
    small = (R * eigenvalues) @ R.T
    values, vectors = np.linalg.eigh(0.5 * (small + small.T))
    return Q @ vectors[:, ::-1], values[::-1]


def curvatures(X: Any, weights: np.ndarray) -> tuple[float, float]:
    """Return bounds of the curvature of ½ Σ_n weights_n f_n² in Z, and in (w, b) together.

    They are the largest eigenvalues of the matrices √(a_n a_m) (x_n·x_m)² and, bounded by that of its
    absolute entries, √(a_n a_m) (1 + x_n·x_m). Both have entries of at least 0, so that the largest ratio of
    a power iteration from a positive start is an upper bound in every round (Collatz and Wielandt).
    """
    products = X @ X.T
    products = products.toarray() if sp.issparse(products) else np.asarray(products)
    outer = np.sqrt(weights)[:, None] * np.sqrt(weights)
    return _largest(outer * products**2), _largest(outer * np.abs(1.0 + products))


def _largest(matrix: np.ndarray) -> float:
    """Return an upper bound of the largest eigenvalue of a symmetric matrix of entries ≥ 0."""
    u = np.ones(len(matrix))
    bound = 0.0
    for _ in range(_POWER_ROUNDS):
        image = matrix @ u
        bound = float((image / u).max(initial=0.0))
        top = float(image.max(initial=0.0))
        if top == 0.0:
            return 0.0
        u = np.maximum(image / top, 1e-12)
    return bound


# Updates after which the columns of P are made orthonormal to rounding again.
_DRIFT = 1_000
# An epoch that would raise the objective is repeated with half the step, at most so often.
_HALVINGS = 8


class IncrementalSVD(ConeSolver):
    r"""Projected stochastic gradient steps on Z of bounded rank, by updates of its decomposition.

    For every mini-batch, in a new random order every epoch, the loss is majorised by the weighted squares
    Σ e_n u_n² of Algorithm 1 with e_n = 1/(2 max{u_n, δ}) for u_n ≤ ε₂, and 0 beyond, and the norm as in
    `TwoStage`; then a gradient step on w and the bias is made, and

        Z ← Π(Z − η(X_Iᵀ diag(g) X_I + λ_p(QZ + ZQ))),

    Π keeping the `rank` largest positive eigenvalues, Q as it is for the present Z: an update of the
    decomposition by the columns X_Iᵀ in O(d(r + c)²). Their signs are those of g, so that the update is A S
    Aᵀ, not AAᵀ. Steps are as long as the curvature of the mini-batch allows, times `step`. δ is lowered once
    steps are small.

    An epoch that would raise the objective with ℓ_δ is repeated with half the step: it never rises.
    """

    name: ClassVar[str] = "incremental_svd"
    label: ClassVar[str] = "Mini-batches with incremental SVD"
    source: ClassVar[str] = "robust_fm, stochastic version; Brand 2006"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec("batch_size", "int", 64, 1, 2_048, help="The rows of a mini-batch."),
        ParamSpec(
            "step",
            "float",
            1.0,
            1e-6,
            1.0,
            log=True,
            symbol=r"\eta",
            help="The length of a step as a share of what the curvature of its mini-batch allows.",
        ),
        ParamSpec(
            "uncapped", "int", 2, 0, 1000, help="Epochs without the cap of the loss before the first one."
        ),
        SMOOTHING,
        DECAY,
    )
    memory: ClassVar[tuple[str, ...]] = ("_now", "_smoothing", "_share", "_rng", "_steps")

    def prepare(self) -> None:
        super().prepare()
        self._kinks = self.problem.loss.majoriser
        X = self.problem.design.matrix
        self._rows = X.tocsr() if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        kept = parameters.multipliers > 0.0
        P, values = orthonormalised(parameters.P[:, kept], parameters.multipliers[kept])
        self._now = Parameters(P, parameters.w.copy(), parameters.intercept, coefficients=values)
        self._rng = rng
        self._smoothing = Smoothing(self.problem, self.settings["smoothing"], self.settings["decay"])
        self._share, self._steps = float(self.settings["step"]), 0
        if self._kinks is not None and np.isfinite(self._kinks.cap) and not values.size:
            self._kinks = replace(self._kinks, cap=np.inf)
            for _ in range(self.settings["uncapped"]):
                before = self._now
                self._pass()
                self._smoothing.after(self._change(before))
            self._kinks = self.problem.loss.majoriser

    def parameters(self) -> Parameters:
        """Return copies, with columns of zeros up to `rank`, largest λ_s first."""
        return self._now.padded(self.problem.rank)

    def _objective(self, delta: float) -> float:
        problem, here, kinks = self.problem, self._now, self._kinks
        f = problem.predict(here)
        values = problem.loss.value(f, problem.y) if kinks is None else kinks.value(f, problem.y, delta)
        return self._penalised(problem.mean(values), here.w, here.multipliers)

    def epoch(self) -> float:
        before, delta = self._now, self._smoothing.delta
        objective = self._objective(delta)
        for _ in range(_HALVINGS):
            self._pass()
            if not self._now.finite():
                return float("inf")
            if self._objective(delta) <= objective:
                break
            self._share *= 0.5
            self._now = before
        return self._smoothing.after(self._change(before))

    def _change(self, before: Parameters) -> float:
        # ‖Z − Z₋‖ through the products of the columns: no d × d array.
        now = self._now
        inner = now.P.T @ before.P
        squares = now.multipliers @ now.multipliers + before.multipliers @ before.multipliers
        squares -= 2.0 * now.multipliers @ np.square(inner) @ before.multipliers
        sizes = self._sizes
        linear = max(float(np.abs(sizes * (now.w - before.w)).max()), abs(now.intercept - before.intercept))
        change = relative_change(
            (float(np.sqrt(max(squares, 0.0))), now.multipliers), (linear, sizes * now.w, now.intercept)
        )
        # Short steps are no sign of convergence.
        return min(1.0, change / self._share)

    def _pass(self) -> None:
        n, size = self.problem.design.n_samples, self.settings["batch_size"]
        order = np.arange(n) if size >= n else self._rng.permutation(n)
        for begin in range(0, n, size):
            self._update(order[begin : begin + size])

    def _update(self, rows: np.ndarray) -> None:
        problem, X, half = self.problem, self._rows[rows], self._half
        y, strength = problem.y[rows], problem.lambda_p
        w, bias = self._now.w, self._now.intercept
        in_pairs = np.square(np.asarray(X @ self._now.P)) @ self._now.multipliers
        f = np.asarray(X @ w) + bias + in_pairs
        weights = problem.unit_weights[rows] / rows.size
        if self._kinks is not None:
            weights = weights * self._kinks.weights(f, y, self._smoothing.delta)
        mu = half.mu() or 1.0
        in_Z, in_w = curvatures(X, weights)
        trace = self._model.traced
        step = self._share / (mu * in_Z + (0.0 if trace else 2.0 * strength) or 1.0)
        slope = weights * half.derivative(f, y)
        length = self._share / (mu * in_w + 2.0 * problem.lambda_w or 1.0)
        if problem.fit_linear:
            w = w - length * (np.asarray(X.T @ slope) + 2.0 * problem.lambda_w * w)
        if problem.fit_intercept:
            bias = bias - length * float(slope.sum())
        f = np.asarray(X @ w) + bias + in_pairs
        slope = weights * half.derivative(f, y)
        live = slope != 0.0
        values = self._now.multipliers
        if not trace:
            values = values * np.where(self._model.free(values), 1.0, 1.0 - 2.0 * step * strength)
        A = X[live].T
        A = A.toarray() if sp.issparse(A) else A
        P, values = updated(self._now.P, values, A, -step * slope[live], problem.rank)
        if trace:
            kept = values > step * strength
            P, values = P[:, kept], values[kept] - step * strength
        self._steps += 1
        if self._steps % _DRIFT == 0:
            P, values = orthonormalised(P, values)
        self._now = Parameters(P, w, bias, coefficients=values)
