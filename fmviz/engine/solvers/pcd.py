"""Proximal coordinate descent ([A] Algorithm 1), and coordinate descent as its smooth case (Algorithm 4)."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._exponential import from_bits, size_bits
from .._jit import cached_factory
from ..design import Storage
from ..losses import Loss, same_residual
from ..memory import aligned_copy
from ..params import ParamSpec
from ..problem import Problem
from ..regularizers import CoordinatePenalty
from ..regularizers.l1 import soft
from ..snapshot import Parameters
from ._anderson import ANDERSON
from ._pairs import NOISE, Lanes, pair_factor_sweep
from ._sweeping import ACTIVE_SWEEPS, SweepingSolver
from .base import Solver

# For the rounding errors in the length of a path.
ROOM = 1.0 + 1e-9


def stores_slope(storage: Storage, loss: Loss) -> bool:
    """Return whether a kernel keeps the loss's derivatives in an array of their own.

    Where f is a residual it is the derivative itself. Scattered over the rows of a sparse column they
    would be computed one at a time; gathered, many at once.
    """
    return storage.name == "dense" and loss.derivative is not same_residual


class Screen(NamedTuple):
    """What lets a sweep pass over an entry that is 0 and provably stays 0.

    The slope at p_js = 0 is ⟨x_j, v⟩/N with v = c ℓ'(f) · a_s. So it moves by at most ‖x_j‖/N times the
    length of the path of v since it was last computed, and while it is below the threshold nothing else
    matters.

    Attributes
    ----------
    norms : (d,) ndarray
        ‖x_j‖.
    slopes : (k, d) ndarray
        |⟨x_j, v⟩|/N when last computed; infinite where the entry was not 0 then.
    marks : (k, d) ndarray
        `paths` of the component at that time.
    paths : (k,) ndarray
        The length of the path of v so far.
    ends : (k, N) ndarray
        v at the end of the component's last sweep.
    """

    norms: np.ndarray
    slopes: np.ndarray
    marks: np.ndarray
    paths: np.ndarray
    ends: np.ndarray


@cached_factory()
def factor_sweep(storage: Storage, loss: Loss, penalty: CoordinatePenalty, weight):
    """Return the kernel of one sweep over the entries of P, column by column.

    P has shape (k, d), A = (XP)ᵀ shape (k, N) and f, the predictions shifted as by `working_loss`, shape
    (N,). `slope` is work space for the ℓ'(f) of every row, shape (N,), kept up with f; it may be
    empty where it is not kept (`stores_slope`). `moments` holds the Σ c x_j² of
    every column and `largest` the largest |A| of every component so far: together they tell a slope from a
    rounding error. `screen` holds what tells which zeros stay, see `Screen`; sparse kernels do not touch it.
    `lam_p` contains the penalty's own quadratic part. With `live_only` the entries that are
    0 are passed over. The step for entry (j, s), with g the derivative of the risk and h its Lipschitz
    constant, is the closed minimum of g·q + ½h(q − p)² + lam_p·q² + lam·t·|q|.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative
    begin, threshold, update = penalty.begin, penalty.threshold, penalty.update
    dense = storage.name == "dense"
    stored = stores_slope(storage, loss)
    nudges = stored and loss.nudged is not None
    nudged: Any = loss.nudged or derivative
    reach = loss.nudge_reach

    def sweep(
        data,
        indices,
        indptr,
        y,
        weights,
        f,
        slope,
        P,
        A,
        moments,
        largest,
        cache,
        screen,
        mu,
        theta,
        lam_p,
        lam,
        live_only,
    ):
        rank, d = P.shape
        n_samples = y.size
        change = 0.0
        for s in range(rank):
            live = 0
            for j in range(d):
                live += P[s, j] != 0.0
            if live == 0:
                # No entry has a slope while all others of its component are 0.
                continue
            a = A[s]
            size = 0
            for n in range(n_samples):
                size = max(size, size_bits(a[n]))
            largest[s] = max(largest[s], from_bits(size))
            if stored:
                for n in range(n_samples):
                    slope[n] = derivative(f[n], y[n], theta)
            if dense:
                moved = 0.0
                for n in range(n_samples):
                    v = weight(weights, n) * (slope[n] if stored else f[n]) * a[n] - screen.ends[s, n]
                    moved += v * v
                screen.paths[s] += sqrt(moved)
            begin(P, s, cache)
            for j in range(d):
                p = P[s, j]
                t = lam * threshold(cache, j, p)
                if p == 0.0:
                    if live_only:
                        continue
                    if dense:
                        path = screen.paths[s] - screen.marks[s, j]
                        if screen.slopes[s, j] + ROOM * path * screen.norms[j] / n_samples < t:
                            continue
                column = data[indptr[j] : indptr[j + 1]]
                rows = indices[indptr[j] : indptr[j + 1]]
                count = indptr[j + 1] - indptr[j]
                g = 0.0
                h = 0.0
                size = 0
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    df = x * (a[n] - x * p)
                    c_df = weight(weights, n) * df
                    g += (slope[n] if stored else derivative(f[n], y[n], theta)) * c_df
                    h += c_df * df
                    if nudges:
                        size = max(size, size_bits(df))
                g /= n_samples
                if dense:
                    screen.slopes[s, j] = abs(g) if p == 0.0 else inf
                    screen.marks[s, j] = screen.paths[s]
                # The only live entry of a component has no slope, but for rounding errors; a step of one
                # rounding error over the square of another must not be taken.
                if h <= NOISE * largest[s] * largest[s] * moments[j]:
                    g = 0.0
                    h = 0.0
                h *= mu / n_samples
                whole = h + 2.0 * lam_p
                q = p
                if whole > 0.0:
                    q = soft(h * p - g, t) / whole
                elif t > 0.0:
                    q = 0.0
                if q != p:
                    step = q - p
                    moved = 0.0
                    # Computing df again is cheaper than writing it down and reading it back.
                    if nudges and abs(step) * from_bits(size) <= reach:
                        for i in range(count):
                            n = row(rows, i)
                            x = value(column, i)
                            was, now = a[n], a[n] + step * x
                            ahead = step * x * (was - x * p)
                            old = slope[n]
                            new = nudged(old, ahead, y[n], theta)
                            f[n] += ahead
                            a[n] = now
                            slope[n] = new
                            v = weight(weights, n) * (new * now - old * was)
                            moved += v * v
                    else:
                        for i in range(count):
                            n = row(rows, i)
                            x = value(column, i)
                            was, now = a[n], a[n] + step * x
                            old = f[n]
                            new = old + step * x * (was - x * p)
                            f[n] = new
                            a[n] = now
                            if stored:
                                old = slope[n]
                                new = derivative(new, y[n], theta)
                                slope[n] = new
                            if dense:
                                v = weight(weights, n) * (new * now - old * was)
                                moved += v * v
                    if dense:
                        screen.paths[s] += sqrt(moved)
                    P[s, j] = q
                    update(cache, j, p, q)
                    change = max(change, abs(step))
            if dense:
                for n in range(n_samples):
                    screen.ends[s, n] = weight(weights, n) * (slope[n] if stored else f[n]) * a[n]
        return change

    return sweep


class PCD(SweepingSolver):
    """Minimise over one entry of P at a time, in closed form."""

    name: ClassVar[str] = "pcd"
    label: ClassVar[str] = "PCD"
    source: ClassVar[str] = "atarashi2021, Algorithm 1"
    about: ClassVar[str] = (
        "Proximal coordinate descent: each entry of P in turn jumps to the minimum of its own "
        "one-dimensional problem. No step size to tune, and the objective never rises. Dense sweeps pass "
        "over entries that provably stay 0."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (ACTIVE_SWEEPS, ANDERSON)

    def __init__(self, problem: Problem, **params: Any) -> None:
        penalty = problem.regularizer.coordinate(**problem.regularizer_params)
        super().__init__(problem, penalty, **params)
        stored = stores_slope(problem.design.storage, self._loss)
        self._slope = aligned_copy(np.zeros(problem.design.n_samples if stored else 0))
        if self._partners is not None:
            self._lanes = Lanes.of(problem.design, self._partners, problem.y, problem.weights)

    @classmethod
    def why_not(
        cls, model: Any, regularizer: Any, loss: Any, regularizer_params: dict[str, Any]
    ) -> str | None:
        """See `Solver.why_not`."""
        if not model.multilinear:
            return not_linear(cls.label, model)
        if regularizer.coordinate(**regularizer_params) is None:
            return regularizer.why_no_coordinate or (
                f"{regularizer.label} binds the entries of a row by their norm, which has no slope at 0: "
                "steps on single entries can get stuck where no entry alone improves. "
                "Use PBCD, which moves whole rows."
            )
        return None

    @classmethod
    def for_model(cls, model: Any) -> type[Solver]:
        """See `Solver.for_model`."""
        from .columns import ColumnPCD
        from .lifted import LiftedPCD

        if model.lifted:
            return LiftedPCD
        return ColumnPCD if model.columnar else cls

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """See `Solver.start`."""
        design, rank = self.problem.design, self.problem.rank
        dense = design.storage.name == "dense"
        shape = (rank, design.n_features) if dense else (0, 0)
        self._screen = Screen(
            np.sqrt(design.power(2).T @ np.ones(design.n_samples)),
            np.full(shape, np.inf),
            np.zeros(shape),
            np.zeros(rank),
            aligned_copy(np.zeros((rank, design.n_samples) if dense else (0, 0))),
        )
        super().start(parameters, rng)

    def _lay(self, P: np.ndarray) -> np.ndarray:
        return aligned_copy(P.T)

    def _n_largest(self) -> int:
        return self.problem.rank

    def _kernel(self) -> Any:
        if self._partners is not None:
            return pair_factor_sweep(self._loss, self._penalty, self._weight)
        return factor_sweep(self.problem.design.storage, self._loss, self._penalty, self._weight)

    def _sweep_factors(self) -> float:
        problem = self.problem
        if self._partners is not None:
            return self._compiled(
                *self._lanes,
                self._f,
                self._P,
                self._moments,
                self._cache,
                problem.loss.mu,
                problem.loss_param,
                self._lambda_p,
                problem.lambda_sparse,
                self._live_only,
            )
        return self._compiled(
            *problem.design.columns,
            problem.y,
            problem.weights,
            self._f,
            self._slope,
            self._P,
            self._A,
            self._moments,
            self._largest,
            self._cache,
            self._screen,
            problem.loss.mu,
            problem.loss_param,
            self._lambda_p,
            problem.lambda_sparse,
            self._live_only,
        )


def not_linear(label: str, model: Any) -> str:
    """Return why closed steps on entries or rows do not exist where f is not linear in them."""
    if model.lifted:
        return (
            f"{label} moves a row of P at once, and a row here holds entries of all of U¹, …, U^m, which f "
            f"multiplies with each other in general: {model.label} is linear in each U^t alone. Use CD or "
            "PCD, which move one entry, or APGD."
        )
    return (
        f"{label} minimises along an entry or a row in closed form, but powers of ⟨p, x⟩ make f a polynomial "
        "of degree m in every entry of P, and the objective is not convex along it (blondel2016, Section 5). "
        "Use CD, which searches along the entry, or L-BFGS."
    )


class CD(PCD):
    """Coordinate descent for the smooth objective of a canonical FM."""

    name: ClassVar[str] = "cd"
    label: ClassVar[str] = "CD"
    source: ClassVar[str] = "atarashi2021, Algorithm 4; blondel2016, Algorithms 1 and 2"
    about: ClassVar[str] = (
        "Coordinate descent, also called alternating least squares: each entry of P in turn jumps to the "
        "minimum of its own one-dimensional problem. For the smooth penalty ℓ₂² only."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = ()

    fits_coefficients: ClassVar[bool] = True
    takes_powers: ClassVar[bool] = True

    @classmethod
    def for_model(cls, model: Any) -> type[Solver]:
        """See `Solver.for_model`."""
        from .columns import ColumnCD
        from .lifted import LiftedCD

        if model.lifted:
            return LiftedCD
        return ColumnCD if model.columnar else cls

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
