"""Base class of coordinate solvers: incremental predictions, the linear part, epochs of sweeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from .._jit import cached_factory, jitable
from ..design import DENSE, Storage, line
from ..losses import ScalarLoss
from ..memory import aligned_copy
from ..parameters import Parameters
from ..problem import Problem
from ..settings import ParamSpec
from ._anderson import ANDERSON, Extrapolation
from ._saddle_escape import ESCAPE, SaddleEscape
from .base import Solver, second_moments, working_loss
from .kernels.coefficients import CoefficientStep, coefficient_change
from .kernels.matrix_factorization import predict_pairs
from .kernels.sweeps import sample_weight, searched_minimum, unit_weight


@jitable
def smooth_minimum(unused, j, p, g, h, lam_p, lam):
    """Return the q that minimizes g(q − p) + ½h(q − p)² + lam_p·q²."""
    return (h * p - g) / (h + 2.0 * lam_p)


@cached_factory()
def linear_sweep(storage: Storage, loss: ScalarLoss, weight, search: bool = False):  # noqa: C901 (as `sweep`)
    """Return the kernel of one sweep over the bias and w.

    ``(data, indices, indptr, y, weights, f, w, curvature, bias_curvature, theta, lam, bias, sizes)`` updates
    f and w in place, with the `curvature` μ/N Σ c x_j² of every column (0 skips all columns), and returns the
    new bias and the largest change, where the change of w_j is multiplied by sizes_j. With `search`, the
    curvatures are those of `searched_minimum`.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative
    searched = searched_minimum(loss, weight, smooth_minimum)

    def sweep(  # noqa: C901, PLR0913 (a compiled loop)
        data, indices, indptr, y, weights, f, w, curvature, bias_curvature, theta, lam, bias, sizes
    ):
        n_samples = y.size
        change = 0.0
        places = np.arange(n_samples if search else 0)
        slopes = np.ones(places.size)
        if bias_curvature > 0.0:
            total = 0.0
            for n in range(n_samples):
                total += weight(weights, n) * derivative(f[n], y[n], theta)
            if search:
                step = -searched(
                    slopes, 0, 0.0, total / n_samples, 0.0, 0.0, places, slopes, f, y, weights, theta
                )
            else:
                step = total / n_samples / bias_curvature
            if step != 0.0:
                for n in range(n_samples):
                    f[n] -= step
                change = abs(step)
                bias -= step
        for j in range(curvature.size):
            bend = curvature[j] + 2.0 * lam
            if bend > 0.0:
                column, rows, count = line(data, indices, indptr, j)
                total = 0.0
                for i in range(count):
                    n = row(rows, i)
                    total += weight(weights, n) * derivative(f[n], y[n], theta) * value(column, i)
                if search:
                    for i in range(count):
                        places[i] = row(rows, i)
                        slopes[i] = value(column, i)
                    step = w[j] - searched(
                        slopes,
                        j,
                        w[j],
                        total / n_samples,
                        lam,
                        0.0,
                        places[:count],
                        slopes[:count],
                        f,
                        y,
                        weights,
                        theta,
                    )
                else:
                    step = (total / n_samples + 2.0 * lam * w[j]) / bend
                if step != 0.0:
                    for i in range(count):
                        f[row(rows, i)] -= step * value(column, i)
                    w[j] -= step
                    change = max(change, abs(step) * sizes[j])
        return bias, change

    return sweep


# The minimum number of rows, and of entries of a field, for which threads save time in a sweep; the number of
# ranges per thread, which balances ranges of different cost.
_MANY_ROWS, _RANGES = 500_000, 4


def column_ranges(problem: Problem) -> list[list[slice]]:
    """Return lists of ranges of columns to sweep one after the other, no lists if threads save no time.

    The ranges of a list are parts of a field: they touch disjoint rows and can be swept in parallel, with the
    same result.
    """
    design, n_threads = problem.design, problem.mapper.n_jobs
    if design.storage is DENSE or n_threads < 2 or design.n_samples < _MANY_ROWS:
        return []
    starts, lists = design.columns.indptr, [[slice(0, 0)]]
    for begin, end in pairwise(design.fields):
        first, last = starts[begin], starts[end]
        if last - first >= _MANY_ROWS:
            shares = np.linspace(first, last, _RANGES * n_threads + 1)
            edges = begin + np.searchsorted(starts[begin : end + 1], shares)
            # Columns without entries may follow the last entry.
            edges[-1] = end
            lists.append([slice(*ends) for ends in pairwise(np.unique(edges).tolist())])
        elif len(lists[-1]) == 1:
            lists[-1] = [slice(lists[-1][0].start, end)]
        else:
            lists.append([slice(begin, end)])
    return lists if any(len(ranges) > 1 for ranges in lists) else []


class LinearPart:
    """The linear term and the bias of a problem, and their sweep.

    Attributes
    ----------
    ranges : list of list of slice
        The `column_ranges`.
    sizes : (d,) ndarray
        The root mean square of every feature if `unit_free`, else 1.
    """

    def __init__(self, problem: Problem, unit_free: bool = False) -> None:
        self._problem = problem
        design, mu = problem.design, problem.mu
        weight = unit_weight if problem.sample_weight is None else sample_weight
        search = problem.loss.mu() is None
        self._sweep = linear_sweep(design.storage, working_loss(problem)[0], weight, search)
        self._curvature, self.sizes = np.empty(0), np.ones(design.n_features)
        if problem.fit_linear:
            moments = second_moments(problem)
            self._curvature = moments * (mu / design.n_samples)
            if unit_free:
                self.sizes = np.sqrt(moments / design.n_samples)
        self.ranges = column_ranges(problem)

    @property
    def moves(self) -> bool:
        """Whether there is anything to sweep over."""
        return self._problem.fit_linear or self._problem.fit_intercept

    def step(self, f: np.ndarray, w: np.ndarray, bias: float) -> tuple[float, float]:
        """Sweep once: update f (shifted as in `working_loss`) and w; return the bias and the largest change.

        Changes of w are multiplied by `sizes`.
        """
        problem = self._problem
        if not self.moves:
            return bias, 0.0
        bend = problem.mu if problem.fit_intercept else 0.0
        if not self.ranges:
            return self._over(f, w, bias, bend, slice(0, w.size))
        bias, change = self._over(f, w, bias, bend, slice(0, 0))
        for ranges in self.ranges:
            changes = problem.mapper(partial(self._over, f, w, bias, 0.0), ranges)
            change = max(change, *(largest for _, largest in changes))
        return bias, change

    def _over(
        self, f: np.ndarray, w: np.ndarray, bias: float, bend: float, columns: slice
    ) -> tuple[float, float]:
        """Sweep over some columns, after the bias if its curvature `bend` is positive."""
        problem = self._problem
        data, indices, indptr = problem.design.columns
        bias, change = self._sweep(
            data,
            indices,
            indptr[columns.start : columns.stop + 1],
            problem.y,
            problem.weights,
            f,
            w[columns],
            self._curvature[columns],
            bend,
            problem.loss.theta,
            problem.lambda_w,
            bias,
            self.sizes[columns],
        )
        return float(bias), float(change)


# The smallest relative decrease of the objective that exceeds rounding.
VISIBLE = 1e-13
# Predictions below this fraction of the target count as 0.
_TRACE = 1e-30

ACTIVE_SWEEPS = ParamSpec(
    "active_sweeps",
    "int",
    0,
    low=0,
    high=1_000,
    help="The maximum number of sweeps over only the non-zero entries after a full sweep that changes few "
    "zeros. The next full sweep certifies the zeros. 0: the paper's epochs.",
)


@dataclass
class Rounds:
    """Arguments and results of kernels of `repeated` sweeps, over all blocks of P.

    Attributes
    ----------
    most : int
        The maximum number of sweeps.
    enough : float
        The relative change that ends them.
    outcomes : (most, size) ndarray
        P in the layout of the solver after each sweep; no rows if not needed.
    count : int
        The number of sweeps.
    largest, last : float
        The largest and the last relative change.
    """

    most: int
    enough: float
    outcomes: np.ndarray
    count: int = 0
    largest: float = 0.0
    last: float = 0.0

    def take(self, result: tuple[int, float, float]) -> None:
        """Add the result of a kernel for its block, or the change of other parameters."""
        self.count, largest, last = result
        self.largest, self.last = max(self.largest, largest), max(self.last, last)


class SweepingSolver(Solver, ABC):
    """Sweeps over λ (if fitted), the linear part, and P, with incrementally updated predictions and sums.

    If a solver has `ACTIVE_SWEEPS`, an epoch is a full sweep; if this changed few zeros, it is followed by
    sweeps over non-zero entries until their change is small. The kernel respects `_live_only`.

    With `ANDERSON`, sweeps that do not change the zeros are extrapolated periodically.

    Subclasses convert P to and from the layout of their kernels (`_to_layout`, `_from_layout`), compute the
    sums per sample (`_set_sums`), and sweep over the blocks of P (`_sweep_factors`).
    """

    # Whether there is a kernel for designs whose rows are pairs, which needs no XP.
    takes_pairs: ClassVar[bool] = True
    # Incremental predictions slowly lose digits and are recomputed after this number of epochs.
    refresh_every: ClassVar[int] = 10
    # The views of each block of P; subclasses choose those along entries or rows.
    _views: Sequence[Any]
    memory: ClassVar[tuple[str, ...]] = (
        *("_P", "_w", "_bias", "_epochs", "_extrapolation", "_live", "_coefficients", "_revival"),
    )
    # Sweeps over live entries end when their change is below this fraction of the full sweep's change.
    enough: ClassVar[float] = 0.1
    # They start if a full sweep changes at most this fraction of the live entries from or to 0.
    settled: ClassVar[float] = 0.01

    def prepare(self) -> None:
        problem = self.problem
        model = problem.model
        self._weight = unit_weight if problem.sample_weight is None else sample_weight
        self._loss, self._shift = working_loss(problem)
        # Without a Lipschitz constant of the derivative, every step searches for its curvature.
        self._search = problem.loss.mu() is None
        self._linear = LinearPart(problem, self.unit_free)
        self._moments = second_moments(problem)
        self._live_only = False
        if self.settings.get(ESCAPE.name) and not model.plain:
            raise ValueError(
                f"{ESCAPE.name} = True is for second-order machines, in which zero columns may be saddle "
                f"points; omit it for the model {model.name!r}."
            )
        self._partners = (
            None if self._search or not (model.plain and self.takes_pairs) else problem.design.partners
        )
        self._coefficient_step = CoefficientStep(problem) if model.fits_coefficients else None

    @abstractmethod
    def _to_layout(self, P: np.ndarray) -> np.ndarray:
        """Return a (d, columns) matrix as a new array in the layout of the kernels."""

    @abstractmethod
    def _from_layout(self) -> np.ndarray:
        """Return P as a new (d, columns) matrix."""

    @abstractmethod
    def _set_sums(self, sums: np.ndarray | None) -> None:
        """Compute the sums per sample of the kernels; `sums` is XP if known."""

    @abstractmethod
    def _sweep_factors(self, rounds: Rounds) -> None:
        """Sweep over every block of P, and add the results to `rounds`."""

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        self._P = self._to_layout(parameters.P)
        self._w = parameters.w.copy()
        self._bias = parameters.intercept
        self._coefficients = parameters.multipliers.copy()
        self._given = parameters.coefficients is not None
        self._epochs = 0
        self._extrapolation = None
        self._live = np.empty(0, dtype=bool)
        self._revival = None
        if self.settings.get(ESCAPE.name) and self.problem.penalty.saddles:
            self._revival = SaddleEscape(self.problem, rng, thorough=self.unit_free)
        if depth := self.settings.get(ANDERSON.name, 0):
            self._extrapolation = self._extrapolated(depth, parameters)
            self._live = self._P != 0.0
        self._refresh()

    def _refresh(self) -> None:
        self._take(*self._forward(self.parameters()))

    def _take(self, f: np.ndarray, sums: np.ndarray | None) -> None:
        """Set recomputed predictions and XP."""
        self._f = aligned_copy(f - self._shift)
        self._set_sums(sums)

    def _forward(self, parameters: Parameters) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the predictions, and XP if the model computes it and the kernel needs it."""
        design = self.problem.design
        if self._partners is None:
            return self.problem.model.forward(design, parameters)
        f = predict_pairs(design, self._partners, parameters.P, parameters.w, parameters.intercept)
        return f, None

    def can_checkpoint(self) -> bool:
        """Return whether the next epoch recomputes predictions and sums."""
        return self._epochs % self.refresh_every == 0

    def epoch(self) -> float:
        if self._epochs and self._epochs % self.refresh_every == 0:
            self._drop_traces()
            self._refresh()
        self._epochs += 1
        change = self._sweeps()
        if self._revival is None or not self._revival.due(change):
            return change
        P = self._from_layout()
        moved = self._revival.leave(P, self._f + self._shift, change)
        if moved is None:
            return change
        self._P = self._to_layout(moved)
        self._refresh()
        return max(change, relative_change((float(np.abs(moved - P).max()), moved)))

    def _drop_traces(self) -> None:
        """Set entries of P to 0 that are too small to change any digit of a prediction.

        Steps that shrink P by a factor never reach 0, and a line search on the objective cannot resolve them.
        """
        largest = float(np.abs(self._P).max(initial=0.0))
        size = float(np.abs(self.problem.y).max()) * self.problem.design.n_samples
        if 0.0 < largest**2 * float(self._moments.max(initial=0.0)) <= _TRACE * size:
            self._P[...] = 0.0

    def warm_up(self) -> None:
        self.epoch()
        if self._revival is not None:
            self._revival.leave(0.0 * self._from_layout(), self._f + self._shift, 0.0)

    def _sweeps(self) -> float:
        """Run a full sweep, then `ACTIVE_SWEEPS` sweeps over live entries; return the relative change."""
        most = self.settings.get(ACTIVE_SWEEPS.name, 0)
        before = self._P != 0.0 if most else None
        first = largest = self._sweep().largest
        if before is None:
            return largest
        live = self._P != 0.0
        # The live entries determine the stationary point and are therefore chosen by full sweeps.
        if np.count_nonzero(live != before) <= self.settled * np.count_nonzero(live):
            self._live_only = True
            change = first
            while most > 0 and change > self.enough * first:
                rounds = self._sweep(most, self.enough * first)
                most -= rounds.count
                largest, change = max(largest, rounds.largest), rounds.last
            self._live_only = False
        return largest

    def _sweep(self, most: int = 1, enough: float = 0.0) -> Rounds:
        """Sweep once, or up to `most` times if only one block of P moves.

        Sweeping ends when the relative change of P is at most `enough`, or the iterates are full.
        """
        other = 0.0
        if self._coefficient_step is not None:
            before = self.parameters()
            self._coefficient_step.step(self._f, before.P, self._coefficients)
            other = coefficient_change(before, before.replace(coefficients=self._coefficients))
        self._bias, linear_change = self._linear.step(self._f, self._w, self._bias)
        other = max(other, relative_change((linear_change, self._w * self._linear.sizes, self._bias)))
        alone = self._coefficient_step is None and not self._linear.moves and len(self._views) == 1
        noting = self._extrapolation
        most = most if alone else 1
        if noting is not None:
            most = min(most, noting.room)
        written = most if noting is not None and most > 1 else 0
        rounds = Rounds(most, enough, np.empty((written, self._P.size)))
        self._sweep_factors(rounds)
        if noting is not None:
            outcomes = rounds.outcomes[: rounds.count] if written else self._P.reshape(1, -1)
            noting.note(outcomes, self._w, self._bias, self._live.reshape(-1))
            if noting.full:
                other = max(other, self._extrapolate(noting))
        rounds.take((rounds.count, other, other))
        return rounds

    def _strengths(self, quad: float) -> tuple[Any, ...]:
        """Return the last arguments of kernels, for a penalty with this coefficient of ‖P‖²_F."""
        problem = self.problem
        return (
            problem.mu,
            problem.loss.theta,
            problem.lambda_p + problem.lambda_sparse * quad,
            problem.lambda_sparse,
            self._live_only,
        )

    def _round_arguments(self, rounds: Rounds) -> tuple[int, float, np.ndarray, np.ndarray]:
        """Return the common arguments of all kernels of `repeated` sweeps."""
        return rounds.most, rounds.enough, self._P.reshape(-1), rounds.outcomes

    def _extrapolated(self, depth: int, parameters: Parameters) -> Extrapolation:
        """Return the extrapolation for P in the layout of this solver."""
        P, w = parameters.P, parameters.w
        # Entries are numbered from 1, and padding is 0.
        numbers = self._to_layout(np.arange(1.0, P.size + 1.0).reshape(P.shape)).reshape(-1)
        laid = np.flatnonzero(numbers)
        places = np.empty(P.size, dtype=np.int64)
        places[numbers[laid].astype(np.int64) - 1] = laid
        sizes = np.empty(0)
        if self.unit_free:
            own = self._linear.sizes
            sizes = np.concatenate([np.repeat(own, P.shape[1]), own, [1.0]])
        return Extrapolation(depth, places, w.size, sizes)

    def _extrapolate(self, extrapolation: Extrapolation) -> float:
        """Move to the extrapolated point if it lowers the objective; return the relative change."""
        here, problem, point = self.parameters(), self.problem, extrapolation.point()
        if point is None:
            return 0.0
        P, w, bias = np.split(point, (here.P.size, -1))
        there = here.replace(P=P.reshape(here.P.shape), w=w.copy(), intercept=float(bias[0]))
        f, sums = self._forward(there)
        now, then = (sum(problem.parts(*at).values()) for at in ((here, self._f + self._shift), (there, f)))
        # Accepting decreases within rounding would keep a run from converging.
        if not now - then > VISIBLE * abs(now):
            return 0.0
        self._P, self._w, self._bias = self._to_layout(there.P), there.w, there.intercept
        self._take(f, sums)
        sizes = self._linear.sizes
        steps = (w - here.w) * sizes
        return relative_change(
            (float(np.abs(there.P - here.P).max(initial=0.0)), there.P),
            (max(np.abs(steps).max(initial=0.0), abs(there.intercept - here.intercept)), w * sizes, bias),
        )

    def objective(self) -> float:
        return sum(self.problem.parts(self.parameters(), self._f + self._shift).values())

    def parameters(self) -> Parameters:
        coefficients = self._coefficients.copy() if self._given else None
        return Parameters(self._from_layout(), self._w.copy(), self._bias, coefficients=coefficients)


def relative_change(*blocks: Any) -> float:
    """Return the largest change relative to the largest parameter of its block, (change, *arrays)."""
    worst = 0.0
    for change, *arrays in blocks:
        if change != 0.0:
            size = max(largest_entry(a) for a in arrays)
            worst = max(worst, change / max(size, change)) if np.isfinite(change) else float("inf")
    return worst


def largest_entry(a: Any) -> float:
    """Return the largest absolute value, 0 for an empty array."""
    if np.ndim(a) == 0:
        return abs(float(a))
    return max(float(a.max(initial=0.0)), -float(a.min(initial=0.0)))
