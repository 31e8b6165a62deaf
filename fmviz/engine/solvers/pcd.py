"""Proximal coordinate descent ([A] Algorithm 1), and coordinate descent as its smooth case (Algorithm 4)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._jit import cached_factory
from ..design import Storage
from ..losses import Loss
from ..problem import Problem
from ..regularizers import CoordinatePenalty
from ..regularizers.l1 import soft
from ..snapshot import Parameters
from ._linear import LinearPart
from ._weights import sample_weight, unit_weight
from .base import Solver, second_moments, working_loss

# The square of a relative rounding error, with room for sums of many.
NOISE = 1e-28


@cached_factory()
def factor_sweep(storage: Storage, loss: Loss, penalty: CoordinatePenalty, weight):
    """Return the kernel of one sweep over all entries of P, column by column.

    P has shape (k, d), A = (XP)ᵀ shape (k, N) and f, the predictions shifted as by `working_loss`, shape
    (N,). `moments` holds the Σ c x_j² of every column and `largest` the largest |A| of every component so
    far: together they tell a slope from a rounding error. `lam_p` contains the penalty's own quadratic
    part. The step for entry (j, s), with g the derivative of the risk and h its Lipschitz constant, is the
    closed minimum of g·q + ½h(q − p)² + lam_p·q² + lam·t·|q|.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative
    begin, threshold, update = penalty.begin, penalty.threshold, penalty.update

    def sweep(data, indices, indptr, y, weights, f, P, A, moments, largest, cache, mu, theta, lam_p, lam):
        rank, d = P.shape
        n_samples = y.size
        change = 0.0
        for s in range(rank):
            a = A[s]
            for n in range(n_samples):
                largest[s] = max(largest[s], abs(a[n]))
            begin(P, s, cache)
            for j in range(d):
                p = P[s, j]
                column = data[indptr[j] : indptr[j + 1]]
                rows = indices[indptr[j] : indptr[j + 1]]
                count = indptr[j + 1] - indptr[j]
                g = 0.0
                h = 0.0
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    df = x * (a[n] - x * p)
                    c = weight(weights, n)
                    g += c * derivative(f[n], y[n], theta) * df
                    h += c * df * df
                # The only live entry of a component has no slope, but for rounding errors; a step of one
                # rounding error over the square of another must not be taken.
                if h <= NOISE * largest[s] * largest[s] * moments[j]:
                    g = 0.0
                    h = 0.0
                g /= n_samples
                h *= mu / n_samples
                t = lam * threshold(cache, j, p)
                whole = h + 2.0 * lam_p
                q = p
                if whole > 0.0:
                    q = soft(h * p - g, t) / whole
                elif t > 0.0:
                    q = 0.0
                if q != p:
                    step = q - p
                    for i in range(count):
                        n = row(rows, i)
                        x = value(column, i)
                        # Computing the slope again is cheaper than writing it down and reading it back.
                        f[n] += step * x * (a[n] - x * p)
                        a[n] += step * x
                    P[s, j] = q
                    update(cache, j, p, q)
                    change = max(change, abs(step))
        return change

    return sweep


class PCD(Solver):
    """Minimise over one entry of P at a time, in closed form."""

    name: ClassVar[str] = "pcd"
    label: ClassVar[str] = "PCD"
    source: ClassVar[str] = "atarashi2021, Algorithm 1"
    about: ClassVar[str] = (
        "Proximal coordinate descent: each entry of P in turn jumps to the minimum of its own "
        "one-dimensional problem. No step size to tune, and the objective never rises."
    )
    # Incremental predictions lose digits slowly; they are recomputed every so many epochs.
    refresh_every = 10

    def __init__(self, problem: Problem, **params: Any) -> None:
        super().__init__(problem, **params)
        penalty = problem.regularizer.coordinate(**problem.regularizer_params)
        assert penalty is not None, "the driver asks why_not first"
        design = problem.design
        weight = unit_weight if problem.sample_weight is None else sample_weight
        loss, self._shift = working_loss(problem)
        self._sweep = factor_sweep(design.storage, loss, penalty, weight)
        self._linear = LinearPart(problem)
        self._lambda_p = problem.lambda_p + problem.lambda_sparse * penalty.quad
        self._moments = second_moments(problem)
        self._cache = np.zeros(max(1, penalty.cache_size(design.n_features, problem.rank)))

    @classmethod
    def why_not(
        cls, model: Any, regularizer: Any, loss: Any, regularizer_params: dict[str, Any]
    ) -> str | None:
        """See `Solver.why_not`."""
        if regularizer.coordinate(**regularizer_params) is None:
            return regularizer.why_no_coordinate or (
                f"{regularizer.label} binds the entries of a row by their norm, which has no slope at 0: "
                "steps on single entries can get stuck where no entry alone improves. "
                "Use PBCD, which moves whole rows."
            )
        return None

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """See `Solver.start`."""
        self._P = np.array(parameters.P.T, order="C")
        self._w = parameters.w.copy()
        self._bias = float(parameters.intercept)
        self._epochs = 0
        self._refresh()

    def _refresh(self) -> None:
        self._f = self.problem.predict(self.parameters()) - self._shift
        self._A = np.ascontiguousarray(self.problem.design.dot(self._P.T).T)
        self._largest = np.zeros(self._A.shape[0])

    def epoch(self) -> float:
        """See `Solver.epoch`."""
        problem = self.problem
        if self._epochs and self._epochs % self.refresh_every == 0:
            self._refresh()
        self._epochs += 1
        self._bias, linear_change = self._linear.step(self._f, self._w, self._bias)
        change = self._sweep(
            *problem.design.columns,
            problem.y,
            problem.weights,
            self._f,
            self._P,
            self._A,
            self._moments,
            self._largest,
            self._cache,
            problem.loss.mu,
            problem.loss_param,
            self._lambda_p,
            problem.lambda_sparse,
        )
        return relative_change((change, self._P), (linear_change, self._w, self._bias))

    def parameters(self) -> Parameters:
        """See `Solver.parameters`."""
        return Parameters(np.array(self._P.T, order="C"), self._w.copy(), self._bias)


def relative_change(*blocks: Any) -> float:
    """Return the largest change over its block's largest parameter; each block is (change, *arrays)."""
    worst = 0.0
    for change, *arrays in blocks:
        if change != 0.0:
            size = max(float(np.abs(a).max(initial=0.0)) for a in arrays)
            worst = max(worst, change / max(size, change)) if np.isfinite(change) else float("inf")
    return worst


class CD(PCD):
    """Coordinate descent for the smooth objective of a canonical FM."""

    name: ClassVar[str] = "cd"
    label: ClassVar[str] = "CD"
    source: ClassVar[str] = "atarashi2021, Algorithm 4; blondel2016, Algorithm 1"
    about: ClassVar[str] = (
        "Coordinate descent, also called alternating least squares: each entry of P in turn jumps to the "
        "minimum of its own one-dimensional problem. For the smooth penalty ℓ₂² only."
    )

    @classmethod
    def why_not(
        cls, model: Any, regularizer: Any, loss: Any, regularizer_params: dict[str, Any]
    ) -> str | None:
        """See `Solver.why_not`."""
        if regularizer.name != "l2":
            return (
                f"CD takes plain gradient steps, and {regularizer.label} has no gradient at 0, "
                "just where it makes P sparse. Use "
                + ("PCD or PBCD, which take" if regularizer.separable else "nmAPGD, which takes")
                + " proximal steps."
            )
        return None
