r"""Katyusha: accelerated proximal steps along variance-reduced gradients (Allen-Zhu 2017, Algorithm 1).

With the snapshot S, its full gradient ∇F(S) and a batch B of samples, an inner step is

    X = τZ + ½S + (½ − τ)Y
    g = ∇F(S) + ∇F_B(X) − ∇F_B(S)
    Z' = argmin_Q ⟨g, Q⟩ + ‖Q − Z‖²/(2α) + λ_p‖Q‖² + λΩ(Q),   α = η₀/τ
    Y' = X + τ(Z' − Z)                                          (Option II)

and the next snapshot is the mean of the Y' (his weights for no strong convexity, σ = 0). η₀ stands for his
1/(3L), kept constant as in [A] C.2, and his τ₂ is ½. The theory is for convex problems; for FMs it is a
heuristic.

A mean of sparse points is not sparse. A run therefore reports one proximal step of size η₀ from the
snapshot along its full gradient, which the next epoch needs anyway; the iteration itself continues from the
snapshot.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..._jit import cached_factory
from ...design import Storage
from ...errors import WhyNot
from ...losses import ScalarLoss
from ...parameters import Parameters
from ...penalties import MatrixView
from ...problem import Formulation
from ...settings import ParamSpec
from .dense_steps import add_gradient, score
from .monotone import MONOTONE
from .psgd import BATCH, StochasticSolver
from .sample_gradient import BEYOND


@cached_factory(exact=True)
def katyusha_steps(storage: Storage, loss: ScalarLoss, operator: MatrixView):
    """Return the kernel of the inner steps between two snapshots.

    S, Z and Y are (k, d), the transposes of P's, and `full` is ∇F(S); vw, zw, yw and fw are those for w,
    and ``biases`` holds those of S, Z, Y and ∇F(S). Z, Y and their biases are updated in place, and S is
    replaced by the next snapshot; ``own`` are the operator's parameters. Returns whether all stayed finite.
    The operator takes all of P at every step: O(dk).
    """
    row, value, derivative, shrink = storage.row, storage.value, loss.derivative, operator.shrink

    def steps(
        data, indices, indptr, y, c, order, batch, S, Z, Y, full, vw, zw, yw, fw, biases, alpha, tau, lam_w,
        lam_p, lam, own, linear, intercept, theta, longest,
    ):  # fmt: skip
        rank, d = S.shape
        X = np.empty((rank, d))
        xw = np.empty(d)
        G = np.zeros((rank, d))
        gw = np.zeros(d)
        mean = np.zeros((rank, d))
        mean_w = np.zeros(d)
        mean_b = 0.0
        old = np.empty((rank, d))
        A = np.empty(rank)
        js = np.empty(longest, np.int64)
        xs = np.empty(longest)
        work = np.empty((3, max(d, rank)))
        keep = 1.0 / (1.0 + 2.0 * alpha * lam_p)
        keep_w = 1.0 / (1.0 + 2.0 * alpha * lam_w)
        third = 0.5 - tau
        count_steps = (order.size + batch - 1) // batch
        for t in range(count_steps):
            begin = t * batch
            end = min(begin + batch, order.size)
            for s in range(rank):
                for j in range(d):
                    X[s, j] = tau * Z[s, j] + 0.5 * S[s, j] + third * Y[s, j]
            for j in range(d):
                xw[j] = tau * zw[j] + 0.5 * vw[j] + third * yw[j]
            xb = tau * biases[1] + 0.5 * biases[0] + third * biases[2]
            gb = 0.0
            size = 0.0
            for m in range(begin, end):
                n = order[m]
                values = data[indptr[n] : indptr[n + 1]]
                columns = indices[indptr[n] : indptr[n + 1]]
                count = indptr[n + 1] - indptr[n]
                for i in range(count):
                    js[i] = row(columns, i)
                    xs[i] = value(values, i)
                share = c[n] / (end - begin)
                f = score(X, xw, xb, js, xs, count, A)
                here = share * derivative(f, y[n], theta)
                size += abs(f) + abs(here) + add_gradient(G, X, js, xs, count, A, here)
                f = score(S, vw, biases[0], js, xs, count, A)
                there = share * derivative(f, y[n], theta)
                size += abs(f) + abs(there) + add_gradient(G, S, js, xs, count, A, -there)
                gb += here - there
                for i in range(count):
                    gw[js[i]] += (here - there) * xs[i]
            if not size * max(alpha, 1.0) < BEYOND:
                return False
            if intercept:
                before = biases[1]
                biases[1] -= alpha * (biases[3] + gb)
                biases[2] = xb + tau * (biases[1] - before)
                mean_b += biases[2]
            for j in range(d):
                if linear:
                    before = zw[j]
                    zw[j] = keep_w * (zw[j] - alpha * (fw[j] + gw[j]))
                    yw[j] = xw[j] + tau * (zw[j] - before)
                    mean_w[j] += yw[j]
                gw[j] = 0.0
            for s in range(rank):
                for j in range(d):
                    old[s, j] = Z[s, j]
                    Z[s, j] = keep * (Z[s, j] - alpha * (full[s, j] + G[s, j]))
                    G[s, j] = 0.0
            shrink(Z, alpha * lam * keep, own, work)
            for s in range(rank):
                for j in range(d):
                    Y[s, j] = X[s, j] + tau * (Z[s, j] - old[s, j])
                    mean[s, j] += Y[s, j]
        for s in range(rank):
            for j in range(d):
                S[s, j] = mean[s, j] / count_steps
        for j in range(d):
            vw[j] = mean_w[j] / count_steps
        biases[0] = mean_b / count_steps
        return True

    return steps


class Katyusha(StochasticSolver):
    """Variance-reduced proximal steps with momentum; an epoch is N inner samples and one full gradient.

    The inner samples are drawn with replacement, as the theory requires. Each costs two gradients of a
    sample, at the point and at the snapshot.
    """

    name: ClassVar[str] = "katyusha"
    label: ClassVar[str] = "Katyusha"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec("eta0", "float", 0.1, 1e-12, 1e6, log=True, symbol=r"\eta_0", help="The step size."),
        ParamSpec(
            "tau", "float", 0.5, 1e-3, 0.5, symbol=r"\tau_1", help="The share of the newest point in a mix."
        ),
        MONOTONE,
    )
    memory: ClassVar[tuple[str, ...]] = (
        *StochasticSolver.memory,
        *("_snapshot", "_reported", "_Z", "_Y", "_zw", "_yw", "_zb", "_yb", "_full"),
    )

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        penalty = problem.penalty
        if not penalty.convex and penalty.exact_prox:
            return WhyNot(
                "not_convex",
                f"{self.label} goes on from a mean of its iterates, and {penalty.label} is not convex: it "
                "can be larger at a mean than at every point that enters it. Use PSGD, which takes no means.",
            )
        return super()._why_not(problem)

    def _take(self, parameters: Parameters) -> None:
        """Start from these parameters without momentum."""
        self._snapshot = parameters
        self._reported = parameters
        transposed = np.ascontiguousarray(parameters.P.T)
        self._Z, self._Y = transposed.copy(), transposed.copy()
        self._zw, self._yw = parameters.w.copy(), parameters.w.copy()
        self._zb = self._yb = float(parameters.intercept)
        with np.errstate(over="ignore", invalid="ignore"):
            self._full = self._gradient()

    def _gradient(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the gradient of the risk at the snapshot."""
        problem = self.problem
        f, sums = problem.model.forward(problem.design, self._snapshot)
        return problem.model.gradient(problem.design, self._snapshot, problem.slope(f), sums)

    def _advance(self, scale: float) -> bool:
        eta = scale * self.settings["eta0"]
        if not self._inner(eta):
            return False
        self._full = self._gradient()
        if not all(np.isfinite(part).all() for part in self._full):
            return False
        self._reported = self._proximal_step(eta)
        return True

    def _here(self) -> Parameters:
        return self._reported

    def _inner(self, eta: float) -> bool:
        problem, design = self.problem, self.problem.design
        n = design.n_samples
        order = self._rng.integers(0, n, n).astype(np.int64)
        S = np.ascontiguousarray(self._snapshot.P.T)
        vw = self._snapshot.w.copy()
        in_p, in_w, in_b = self._full
        biases = np.array([self._snapshot.intercept, self._zb, self._yb, in_b], dtype=np.float64)
        kernel = katyusha_steps(design.storage, problem.loss.scalar, self._operator)
        finite = kernel(
            *design.rows,
            problem.y,
            self._c,
            order,
            self._batch,
            S,
            self._Z,
            self._Y,
            np.ascontiguousarray(in_p.T),
            vw,
            self._zw,
            self._yw,
            in_w,
            biases,
            eta / self.settings["tau"],
            self.settings["tau"],
            problem.lambda_w,
            problem.lambda_p + problem.lambda_sparse * self._operator.quad,
            self._operator.weight * problem.lambda_sparse,
            self._operator.theta,
            problem.fit_linear,
            problem.fit_intercept,
            problem.loss.theta,
            design.longest_row,
        )
        self._snapshot = Parameters(np.ascontiguousarray(S.T), vw, float(biases[0]))
        self._zb, self._yb = float(biases[1]), float(biases[2])
        return bool(finite)

    def _proximal_step(self, eta: float) -> Parameters:
        """Return the proximal step of size η from the snapshot."""
        problem, at = self.problem, self._snapshot
        in_p, in_w, in_b = self._full
        keep = 1.0 / (1.0 + 2.0 * eta * problem.lambda_p)
        P = problem.penalty.prox(
            np.ascontiguousarray(keep * (at.P - eta * in_p)),
            eta * problem.lambda_sparse * keep,
        )
        w, bias = at.w, at.intercept
        if problem.fit_linear:
            w = (w - eta * in_w) / (1.0 + 2.0 * eta * problem.lambda_w)
        if problem.fit_intercept:
            bias = bias - eta * in_b
        return Parameters(P, w, float(bias))


class MiniBatchKatyusha(Katyusha):
    """Katyusha whose inner steps take a batch of samples each."""

    name: ClassVar[str] = "mb_katyusha"
    label: ClassVar[str] = "MB-Katyusha"
    params: ClassVar[tuple[ParamSpec, ...]] = (*Katyusha.params, BATCH)
