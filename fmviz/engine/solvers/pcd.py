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
from ._sweeping import SweepingSolver

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


class PCD(SweepingSolver):
    """Minimise over one entry of P at a time, in closed form."""

    name: ClassVar[str] = "pcd"
    label: ClassVar[str] = "PCD"
    source: ClassVar[str] = "atarashi2021, Algorithm 1"
    about: ClassVar[str] = (
        "Proximal coordinate descent: each entry of P in turn jumps to the minimum of its own "
        "one-dimensional problem. No step size to tune, and the objective never rises."
    )

    def __init__(self, problem: Problem, **params: Any) -> None:
        penalty = problem.regularizer.coordinate(**problem.regularizer_params)
        super().__init__(problem, penalty, **params)

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

    def _lay(self, P: np.ndarray) -> np.ndarray:
        return np.array(P.T, order="C")

    def _n_largest(self) -> int:
        return self.problem.rank

    def _kernel(self) -> Any:
        return factor_sweep(self.problem.design.storage, self._loss, self._penalty, self._weight)


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
