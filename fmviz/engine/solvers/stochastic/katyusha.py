r"""Katyusha: accelerated proximal steps along variance-reduced gradients (Allen-Zhu 2017, Algorithm 1).

With the snapshot S, its full gradient ∇F(S) and a batch B of samples, an inner step is

    X = τZ + ½S + (½ − τ)Y
    g = ∇F(S) + ∇F_B(X) − ∇F_B(S)
    Z' = argmin_Q ⟨g, Q⟩ + ‖Q − Z‖²/(2α) + λ_p‖Q‖² + λΩ(Q),   α = η₀/τ
    Y' = X + τ(Z' − Z)                                          (Option II)

and the next snapshot is the mean of the Y' (the paper's weights without strong convexity, σ = 0). η₀ is the
paper's 1/(3L), constant as in [A] C.2, and τ₂ is ½. The theory is for convex problems; for FMs the method is
a heuristic.

A mean of sparse points is not sparse. A run therefore reports a proximal step of size η₀ from the snapshot
along its full gradient, which the next epoch needs anyway; the iteration continues from the snapshot.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..._jit import cached_factory
from ...design import Storage, line
from ...errors import WhyNot
from ...losses import ScalarLoss
from ...parameters import Parameters
from ...penalties import MatrixView
from ...problem import Formulation
from ...settings import ParamSpec
from .._flat_problem import Joint
from .dense_steps import add_gradient, score
from .monotone import MONOTONE
from .psgd import BATCH, StochasticSolver
from .sample_gradient import BEYOND


@cached_factory(exact=True)
def katyusha_steps(storage: Storage, loss: ScalarLoss, operator: MatrixView):
    """Return the kernel of the inner steps between two snapshots.

    S, Z, Y and ∇F(S), `full`, are vectors (P, w, b), with P column by column, of `rank` columns. Z and Y are
    updated in place, and S is replaced by the next snapshot; ``own`` are the parameters of the operator.
    Returns whether all values are finite. The operator is applied to all of P at every step: O(dk).
    """
    row, value, derivative, shrink = storage.row, storage.value, loss.derivative, operator.shrink

    def steps(
        data, indices, indptr, y, c, order, batch, rank, S, Z, Y, full, alpha, tau, lam_w, lam_p, lam, own,
        linear, intercept, theta, longest,
    ):  # fmt: skip
        d = (S.size - 1) // (rank + 1)
        end_p, end_w = rank * d, rank * d + d
        X, old = np.empty(S.size), np.empty(S.size)
        G, mean = np.zeros(S.size), np.zeros(S.size)
        SP, ZP = S[:end_p].reshape((rank, d)), Z[:end_p].reshape((rank, d))
        XP, GP = X[:end_p].reshape((rank, d)), G[:end_p].reshape((rank, d))
        sw, xw, gw = S[end_p:end_w], X[end_p:end_w], G[end_p:end_w]
        A = np.empty(rank)
        js = np.empty(longest, np.int64)
        xs = np.empty(longest)
        work = np.empty((3, max(d, rank)))
        keep = 1.0 / (1.0 + 2.0 * alpha * lam_p)
        keep_w = 1.0 / (1.0 + 2.0 * alpha * lam_w)
        parts = (
            (0, end_p, keep, alpha),
            (end_p, end_w, keep_w, alpha * linear),
            (end_w, S.size, 1.0, alpha * intercept),
        )
        third = 0.5 - tau
        count_steps = (order.size + batch - 1) // batch
        for t in range(count_steps):
            begin = t * batch
            end = min(begin + batch, order.size)
            for i in range(S.size):
                X[i] = tau * Z[i] + 0.5 * S[i] + third * Y[i]
            size = 0.0
            for m in range(begin, end):
                n = order[m]
                values, columns, count = line(data, indices, indptr, n)
                for i in range(count):
                    js[i] = row(columns, i)
                    xs[i] = value(values, i)
                share = c[n] / (end - begin)
                f = score(XP, xw, X[end_w], js, xs, count, A)
                here = share * derivative(f, y[n], theta)
                size += abs(f) + abs(here) + add_gradient(GP, XP, js, xs, count, A, here)
                f = score(SP, sw, S[end_w], js, xs, count, A)
                there = share * derivative(f, y[n], theta)
                size += abs(f) + abs(there) + add_gradient(GP, SP, js, xs, count, A, -there)
                G[end_w] += here - there
                for i in range(count):
                    gw[js[i]] += (here - there) * xs[i]
            if not size * max(alpha, 1.0) < BEYOND:
                return False
            for first, last, factor, length in parts:
                # Slices, since loops from 0 are vectorized.
                z, before, u, v = Z[first:last], old[first:last], full[first:last], G[first:last]
                for i in range(z.size):
                    before[i] = z[i]
                    z[i] = factor * (z[i] - length * (u[i] + v[i]))
                    v[i] = 0.0
            shrink(ZP, alpha * lam * keep, own, work)
            for i in range(S.size):
                Y[i] = X[i] + tau * (Z[i] - old[i])
                mean[i] += Y[i]
        for i in range(S.size):
            S[i] = mean[i] / count_steps
        return True

    return steps


def _vector(at: Parameters) -> np.ndarray:
    """Return (P, w, b) as a vector, with P column by column."""
    return np.concatenate([at.P.T.ravel(), at.w, [at.intercept]])


class Katyusha(StochasticSolver):
    """Variance-reduced proximal steps with momentum; an epoch is N inner samples and a full gradient.

    The inner samples are drawn with replacement, as the theory requires. Each requires two sample gradients,
    at the current point and at the snapshot.
    """

    name: ClassVar[str] = "katyusha"
    label: ClassVar[str] = "Katyusha"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec("eta0", "float", 0.1, 1e-12, 1e6, log=True, symbol=r"\eta_0", help="The step size."),
        ParamSpec(
            "tau",
            "float",
            0.5,
            1e-3,
            0.5,
            symbol=r"\tau_1",
            help="The weight of the newest point in the momentum.",
        ),
        MONOTONE,
    )
    memory: ClassVar[tuple[str, ...]] = (
        *StochasticSolver.memory,
        *("_snapshot", "_reported", "_Z", "_Y", "_full"),
    )

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        penalty = problem.penalty
        if not penalty.convex and penalty.exact_prox:
            return WhyNot(
                "not_convex",
                f"{self.label} continues from a mean of its iterates, but {penalty.label} is not convex: it "
                "can be larger at the mean than at every iterate. Use PSGD, which takes no means.",
            )
        return super()._why_not(problem)

    def prepare(self) -> None:
        super().prepare()
        self._joint = Joint(self.problem)

    def _take(self, parameters: Parameters) -> None:
        """Start from these parameters without momentum."""
        self._snapshot = parameters
        self._reported = parameters
        self._Z = _vector(parameters)
        self._Y = self._Z.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            self._full = self._gradient()

    def _gradient(self) -> np.ndarray:
        """Return the gradient of the risk at the snapshot."""
        return self._joint.risk_and_gradient(self._joint.pack(self._snapshot))[1]

    def _advance(self, scale: float) -> bool:
        eta = scale * self.settings["eta0"]
        if not self._inner(eta):
            return False
        self._full = self._gradient()
        if not np.isfinite(self._full).all():
            return False
        step = self._joint.pack(self._snapshot) - eta * self._full
        self._reported = self._joint.unpack(self._joint.prox(step, eta))
        return True

    def _here(self) -> Parameters:
        return self._reported

    def _inner(self, eta: float) -> bool:
        problem, design = self.problem, self.problem.design
        n = design.n_samples
        order = self._rng.integers(0, n, n).astype(np.int64)
        d, rank = self._snapshot.P.shape
        S = _vector(self._snapshot)
        finite = katyusha_steps(design.storage, problem.loss.scalar, self._operator)(
            *design.rows,
            problem.y,
            self._c,
            order,
            self._batch,
            rank,
            S,
            self._Z,
            self._Y,
            _vector(self._joint.unpack(self._full)),
            eta / self.settings["tau"],
            self.settings["tau"],
            problem.lambda_w,
            problem.lambda_p + problem.lambda_sparse * self._operator.quad,
            self._operator.weight * problem.lambda_sparse,
            self._operator.theta,
            float(problem.fit_linear),
            float(problem.fit_intercept),
            problem.loss.theta,
            design.longest_row,
        )
        P = np.ascontiguousarray(S[: rank * d].reshape(rank, d).T)
        self._snapshot = Parameters(P, S[rank * d : -1], float(S[-1]))
        return bool(finite)


class MiniBatchKatyusha(Katyusha):
    """Katyusha with a batch of samples per inner step."""

    name: ClassVar[str] = "mb_katyusha"
    label: ClassVar[str] = "MB-Katyusha"
    params: ClassVar[tuple[ParamSpec, ...]] = (*Katyusha.params, BATCH)
