"""Stochastic gradient methods: PSGD with exact sparse steps, mini-batch PSGD, and SGD.

For CS and Ω_CS a step costs no more than the sample's own features (future work (i) of [A]). The operator of
CS is that of ‖·‖₁² on the row norms ([A] Theorem 8), so the norms share one scale a and one offset T as the
entries of a column do in `coupled_entries`: ‖p_j‖ = a(κ_j − T), where κ_j stays constant while the sample
does not touch row j, whose direction does not change either. Amortised O(nnz(x)·(k + log d)) a step, with the
iterates of the operator on all of P up to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..._heap import heapify, pop, push
from ..._jit import cached_factory, jitable
from ...design import Storage
from ...errors import WhyNot
from ...losses import ScalarLoss
from ...models.columnar import ColumnModel
from ...parameters import Parameters
from ...penalties.operators.squared_norm import find_by_filter, prox_vector, threshold_of
from ...penalties.operators.thresholds import norm
from ...problem import Formulation, Problem
from ...settings import ParamSpec
from .._sweeping import relative_change
from ..base import Solver
from ..kernels.coefficients import CoefficientStep, coefficient_change
from .coupled_entries import RATIO, coupled_entries
from .dense_steps import dense_steps
from .lazy import SMALL, lazy_entries, lazy_rows
from .monotone import MONOTONE, Safeguard
from .sample import BEYOND, descend, pair_term, rescale
from .sample_gradient import COLUMNS, PAIRS, kind_of


@jitable
def write_norms(keys, kappa, a, T, hk, hi, size, strength, grow, live, work):
    """Apply the operator to the live norms, write them out with a = 1 and T = 0, and rebuild the heap.

    The heap has `size` entries; `keys`, `live` and `work` are scratch. Returns the number of live rows and
    the sum of their norms.
    """
    n = 0
    for h in range(size):
        j = hi[h]
        if kappa[j] != 0.0 and kappa[j] == hk[h]:
            keys[n] = a * (kappa[j] - T)
            live[n] = j
            n += 1
            # A second entry of the heap for j is outdated from now on.
            kappa[j] = 0.0
    if n > 0:
        prox_vector(find_by_filter, keys[:n], strength, work[:n], keys[:n])
    kept = 0
    total = 0.0
    for i in range(n):
        key = keys[i] * grow
        if key != 0.0:
            kappa[live[i]] = key
            hk[kept] = key
            hi[kept] = live[i]
            total += key
            kept += 1
    heapify(hk, hi, kept)
    return kept, total


@cached_factory(exact=True)
def coupled_rows(storage: Storage, loss: ScalarLoss):
    """Return the kernel of one epoch for CS and Ω_CS; arguments as for `coupled_entries`.

    A row is stored as of its last update, with its norm ν of that time: it is now P_j·a(κ_j − T)/ν_j.
    """
    row, value, derivative = storage.row, storage.value, loss.derivative

    def epoch(
        data, indices, indptr, y, c, order, keep_p, step_p, cut, keep_w, step_w, step_b, P, w, bias, theta,
        longest, period, grow,
    ):  # fmt: skip
        d, rank = P.shape
        R = np.empty((longest, rank))
        A = np.empty(rank)
        js = np.empty(longest, np.int64)
        xs = np.empty(longest)
        aw = 1.0
        capacity = 2 * d + longest + 64
        heap = np.empty(capacity)
        items = np.empty(capacity, np.int32)
        keys = np.empty(d)
        live = np.empty(d, np.int32)
        work = np.empty(d)
        nu = np.empty(d)
        a = 1.0
        T = 0.0
        S = 0.0
        m = 0
        age = 0
        for j in range(d):
            nu[j] = norm(P[j])
            if nu[j] > 0.0:
                heap[m] = nu[j]
                items[m] = j
                m += 1
                S += nu[j]
        kappa = nu.copy()
        heap_size = m
        top = S
        heapify(heap, items, heap_size)
        for t in range(order.size):
            n = order[t]
            values = data[indptr[n] : indptr[n + 1]]
            columns = indices[indptr[n] : indptr[n + 1]]
            count = indptr[n + 1] - indptr[n]
            f = bias
            for i in range(count):
                js[i] = row(columns, i)
                j = js[i]
                xs[i] = value(values, i)
                f += aw * w[j] * xs[i]
                scale = a * (kappa[j] - T) / nu[j] if kappa[j] != 0.0 else 0.0
                for s in range(rank):
                    R[i, s] = scale * P[j, s]
            f += pair_term(R, xs, count, A)
            g = c[n] * derivative(f, y[n], theta)
            size = abs(f) + abs(g) + descend(R, xs, count, A, keep_p[t], step_p[t] * g)
            if not size < BEYOND:
                return bias, False
            bias -= step_b[t] * g
            aw *= keep_w[t]
            if aw < SMALL:
                aw = rescale(w, aw)
            for i in range(count):
                w[js[i]] -= step_w[t] * g * xs[i] / aw
            a *= keep_p[t]
            for i in range(count):
                j = js[i]
                old = kappa[j]
                if old != 0.0:
                    S -= old - T
                    m -= 1
                total = 0.0
                for s in range(rank):
                    P[j, s] = R[i, s]
                    total += R[i, s] * R[i, s]
                nu[j] = sqrt(total)
                key = nu[j] / a + T
                if key > T:
                    S += key - T
                    m += 1
                    if key != old:
                        heap_size = push(heap, items, heap_size, key, j)
                    kappa[j] = key
                else:
                    kappa[j] = 0.0
            if m == 0:
                S = 0.0
            top = max(top, S)
            age += 1
            afresh = (
                heap_size + longest > capacity
                or a < SMALL
                or a > 1.0 / SMALL
                or top > RATIO * S
                or age >= period
            )
            if not afresh:
                delta = threshold_of(S, m, cut[t])
                while m > 1 and heap_size > 0 and heap[0] - T <= delta:
                    key = heap[0]
                    j = items[0]
                    heap_size = pop(heap, items, heap_size)
                    if kappa[j] == key:
                        kappa[j] = 0.0
                        m -= 1
                        S -= key - T
                        delta = threshold_of(S, m, cut[t])
                after = S - m * delta
                afresh = m * (T + delta) > RATIO * after
                if not afresh:
                    S = after
                    T += delta
                    a *= grow[t]
            if afresh:
                m, S = write_norms(keys, kappa, a, T, heap, items, heap_size, cut[t], grow[t], live, work)
                heap_size = m
                top = S
                age = 0
                a = 1.0
                T = 0.0
        for j in range(d):
            scale = a * (kappa[j] - T) / nu[j] if kappa[j] != 0.0 else 0.0
            for s in range(rank):
                P[j, s] = P[j, s] * scale + 0.0
        rescale(w, aw)
        return bias, True

    return epoch


SCHEDULES = ("bottou", "constant", "optimal", "inverse_scaling")

STEP_PARAMS: tuple[ParamSpec, ...] = (
    ParamSpec(
        "schedule",
        "choice",
        "bottou",
        choices=SCHEDULES,
        help="How the step size falls with the steps t taken: η₀/(1+η₀λt) (Bottou 2012, the paper's), η₀, "
        "η₀/(1+2η₀λt) (optimal for curvature 2λ), or η₀/(t+1)^power.",
    ),
    ParamSpec(
        "eta0", "float", 0.1, 1e-12, 1e6, log=True, symbol=r"\eta_0", help="The step size at the start."
    ),
    ParamSpec("power", "float", 0.5, 0, 2, help="Inverse scaling only: the exponent of t."),
)


def step_sizes(schedule: str, eta0: float, power: float, lam: float, first: int, count: int) -> np.ndarray:
    """Return η_t for t = first, ..., first + count − 1, where t counts all steps of a run from 0.

    Parameters
    ----------
    schedule : {"bottou", "constant", "optimal", "inverse_scaling"}
        η₀/(1 + η₀λt) ([A] C.2, after Bottou 2012), η₀, η₀/(1 + 2η₀λt), or η₀/(t+1)^power. The third is
        1/(2λ(t + t₀)) with the t₀ that starts it at η₀: a term λ‖·‖² without ½ has curvature 2λ. Where
        λ = 0, the first and the third are constant.
    eta0, power : float
        η₀ and the exponent.
    lam : float
        λ_p for the step on P, λ_w for the step on w and the bias.
    first, count : int
        Which steps.
    """
    t = np.arange(first, first + count, dtype=np.float64)
    if schedule == "constant":
        return np.full(count, eta0)
    if schedule == "inverse_scaling":
        return eta0 / (t + 1.0) ** power
    return eta0 / (1.0 + (2.0 if schedule == "optimal" else 1.0) * eta0 * lam * t)


class Steps(NamedTuple):
    """Step t maps p to shrink(keep_p·p − step_p·g, cut), and likewise w and the bias without a shrink."""

    keep_p: np.ndarray
    step_p: np.ndarray
    cut: np.ndarray
    keep_w: np.ndarray
    step_w: np.ndarray
    step_b: np.ndarray


def make_steps(
    problem: Problem,
    settings: dict[str, Any],
    first: int,
    count: int,
    scale: float = 1.0,
    implicit: bool = True,
) -> Steps:
    """Return the coefficients of `count` steps from step `first` on, with step sizes η times `scale`.

    Implicit decay is [A] Eq. 28: argmin_q ⟨g, q⟩ + ‖q − p‖²/(2η) + λ_p‖q‖² + λΩ(q) is
    prox_{ηλr Ω}(r(p − ηg)) with r = 1/(1 + 2ηλ_p). It is stable at any η. Explicit decay is [A] Algorithm 5:
    (1 − 2ηλ)p − ηg.
    """
    operator = problem.penalty.matrix
    assert operator is not None, "`on` asks why_not first"
    schedule = settings["schedule"], settings["eta0"], settings["power"]
    in_p = scale * step_sizes(*schedule, problem.lambda_p, first, count)
    in_w = scale * step_sizes(*schedule, problem.lambda_w, first, count)
    lam_p = problem.lambda_p + problem.lambda_sparse * operator.quad
    strength = 0.0 if operator.lazy == "decay" else operator.weight * problem.lambda_sparse
    linear, bias = float(problem.fit_linear), float(problem.fit_intercept)
    if implicit:
        keep_p, keep_w = 1.0 / (1.0 + 2.0 * in_p * lam_p), 1.0 / (1.0 + 2.0 * in_w * problem.lambda_w)
        return Steps(
            keep_p, keep_p * in_p, keep_p * in_p * strength, keep_w, linear * keep_w * in_w, bias * in_w
        )
    keep_p, keep_w = 1.0 - 2.0 * in_p * lam_p, 1.0 - 2.0 * in_w * problem.lambda_w
    return Steps(keep_p, in_p, np.zeros(count), keep_w, linear * in_w, bias * in_w)


class SampleColumns:
    """Steps along the gradient of one sample, O(nnz(x)·m) for every column of order m.

    Where the coefficients λ are fitted, each epoch begins with the exact fit of λ, and the step size of
    column s is η/|λ_s|: a step of size η on √|λ_s| p_s. λ_p Σ|λ_s|‖p_s‖² is the plain squared norm of these,
    and K is homogeneous, so all columns decay alike, as lazy updates need. A column with λ_s = 0 stays.

    Parameters
    ----------
    problem : Problem
        A problem of a columnar model.
    model : ColumnModel
        Its model.
    """

    def __init__(self, problem: Problem, model: ColumnModel) -> None:
        self._problem = problem
        kinds = [kind_of(block.kernel) for block in model.blocks(problem.rank)]
        self._kinds = np.repeat(kinds, problem.rank).astype(np.int64)
        self._fit = CoefficientStep(problem) if model.fits_coefficients else None

    def refit(self, before: Parameters) -> tuple[Parameters, float] | None:
        """Return the parameters with λ fitted, and the change of λ; None where λ is fixed."""
        if self._fit is None:
            return None
        fitted = self._fit.refit(before)
        return fitted, coefficient_change(before, fitted)

    def run(self, at: Parameters, arguments: tuple[Any, ...], trailing: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the kernel of an epoch from `at`; return P, the bias and whether all stayed finite.

        Parameters
        ----------
        at : Parameters
            The start of the epoch; w is updated in place.
        arguments, trailing : tuple
            The arguments of `lazy_entries` before P, and between w and the columns.
        """
        problem, given = self._problem, at.multipliers
        resting = given == 0.0
        root = np.sqrt(np.where(resting, 1.0, np.abs(given)))
        P = np.ascontiguousarray(at.P * root)
        columns = (self._kinds, given / root ** np.abs(self._kinds))
        kernel = lazy_entries(problem.design.storage, problem.loss.scalar, COLUMNS)
        bias, finite = kernel(*arguments, P, at.w, *trailing, columns)
        P /= root
        P[:, resting] = at.P[:, resting]
        return P, bias, finite


# T is reset at O(dk) at most every so many steps, or every d steps: O(k) a step.
_SHORTEST_PERIOD = 256

BATCH = ParamSpec(
    "batch_size",
    "int",
    0,
    0,
    2**31 - 1,
    symbol="N_b",
    help="Samples in a step; 0 takes N·d/nnz(X), where a step's gradient costs as much as its operator.",
)


class StochasticSolver(Solver):
    """Base class of stochastic solvers: epochs of steps, and the safeguard around them.

    An epoch visits N samples. Each step takes one sample (or batch) and moves w, the bias and P at once, by
    the gradients at the same point. With `monotone`, see `Safeguard`, the objective never rises; without
    it, an epoch may raise it.
    """

    diverged_hint: ClassVar[str] = (
        "Lower eta0: a tenth of it is a good next try. If that is too slow, scale the features and the "
        "target down. With monotone = True, such epochs are undone."
    )

    takes_parts: ClassVar[bool] = True
    memory: ClassVar[tuple[str, ...]] = ("_rng", "_t", "_guard")

    def prepare(self) -> None:
        problem = self.problem
        super().prepare()
        operator = problem.penalty.matrix
        assert operator is not None, "`on` asks why_not first"
        self._operator = operator
        self._c = problem.unit_weights
        self._guard = Safeguard(problem, self._c) if self.settings["monotone"] else None

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        return no_stochastic_steps(self.label, problem)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        self._rng = rng
        self._t = 0
        self._take(parameters)
        if self._guard is not None:
            self._guard.start(parameters, rng)

    def epoch(self) -> float:
        """Make an epoch of stochastic steps.

        The change is that of steps of full size; after an epoch that was undone it is the length of the
        proximal gradient step.
        """
        guard, before, t = self._guard, self.parameters(), self._t
        # A diverging run overflows; the driver notices it by the change.
        with np.errstate(over="ignore", invalid="ignore"):
            scale = 1.0 if guard is None else guard.scale
            finite = self._advance(scale)
            now = self._here()
            if finite and (guard is None or guard.accepts(now)):
                return epoch_change(before, now.P, now.w, now.intercept) / scale
            if guard is None:
                return float("inf")
            # The steps of an epoch that was undone do not count.
            self._t = t
            now, change = guard.fallback(before)
            self._take(now)
            return change

    def for_other_rows(self, memory: Mapping[str, Any]) -> dict[str, Any]:
        """Return the random state, the count of steps and their scale."""
        state = {name: memory[name] for name in ("_rng", "_t")}
        if self.settings["monotone"] and (guard := memory.get("_guard")) is not None:
            state["_guard"] = {"scale": guard["scale"]}
        return state

    def warm_up(self) -> None:
        self.epoch()
        if self._guard is not None:
            self._guard.fallback(self.parameters())

    def _take(self, parameters: Parameters) -> None:
        """Continue from these parameters (copied), keeping only the count of steps."""
        raise NotImplementedError

    def _advance(self, scale: float) -> bool:
        """Make the steps of an epoch, their sizes multiplied by `scale`; return whether all stayed finite."""
        raise NotImplementedError

    def _here(self) -> Parameters:
        """Return the present parameters, which the next epoch may overwrite."""
        raise NotImplementedError

    def parameters(self) -> Parameters:
        at = self._here()
        return at.copy()


class ShuffledSolver(StochasticSolver):
    """Base class of SGD, PSGD and mini-batch PSGD: every sample once an epoch, and a count of all steps."""

    params: ClassVar[tuple[ParamSpec, ...]] = (*STEP_PARAMS, MONOTONE)
    memory: ClassVar[tuple[str, ...]] = (*StochasticSolver.memory, "_P", "_w", "_bias", "_coefficients")

    def prepare(self) -> None:
        super().prepare()
        model = self.problem.model
        self._columns = SampleColumns(self.problem, model) if isinstance(model, ColumnModel) else None

    def _take(self, parameters: Parameters) -> None:
        self._P = np.array(parameters.P, order="C")
        self._w = parameters.w.copy()
        self._bias = float(parameters.intercept)
        given = parameters.coefficients
        self._coefficients = None if given is None else given.copy()

    def _here(self) -> Parameters:
        return Parameters(self._P, self._w, self._bias, coefficients=self._coefficients)

    def epoch(self) -> float:
        refitted = None if self._columns is None else self._columns.refit(self.parameters())
        if refitted is None:
            return super().epoch()
        fitted, moved = refitted
        self._take(fitted)
        if self._guard is not None:
            self._guard.move(fitted)
        return max(moved, super().epoch())

    def _advance(self, scale: float) -> bool:
        n = self.problem.design.n_samples
        order = self._rng.permutation(n).astype(np.int64)
        batch = self._batch()
        count = -(-n // batch)
        steps = make_steps(self.problem, self.settings, self._t, count, scale, self.implicit)
        self._t += count
        self._bias, finite = self._run(order, batch, steps)
        return finite

    # Whether w and P decay by implicit steps, see `make_steps`.
    implicit: ClassVar[bool] = True

    def _batch(self) -> int:
        return 1

    def _period(self) -> int:
        """Return the number of steps after which offsets are reset."""
        return max(_SHORTEST_PERIOD, self.problem.design.n_features)

    def _run(self, order: np.ndarray, batch: int, steps: Steps) -> tuple[float, bool]:
        """Run the kernel on w and P; return the bias and whether all stayed finite."""
        raise NotImplementedError

    def _common(self, order: np.ndarray) -> tuple[Any, ...]:
        problem = self.problem
        return (*problem.design.rows, problem.y, self._c, order)

    def _settled(self) -> tuple[Any, ...]:
        """Return the arguments of lazy kernels after w."""
        return self._bias, self.problem.loss.theta, self.problem.design.longest_row, self._period()

    def _run_columns(self, columns: SampleColumns, order: np.ndarray, steps: Steps) -> tuple[float, bool]:
        """Run an epoch of a model that is a sum of kernels of the columns."""
        arguments = (*self._common(order), *steps)
        self._P, bias, finite = columns.run(self._here(), arguments, self._settled())
        return bias, finite


def no_stochastic_steps(label: str, problem: Formulation, columns: bool = False) -> WhyNot | None:
    """Return why the stochastic kernels do not apply to a model or a penalty, or None.

    With `columns` there are kernels for columnar models, too.
    """
    model, penalty = problem.model, problem.penalty
    if (model.columnar and not columns) or model.lifted:
        return WhyNot(
            "no_sample_steps",
            f"{label} steps along the gradient of one sample's prediction, which is implemented for the "
            f"second-order factorization machine{' and for sums of kernels of columns' if columns else ''} "
            f"only, not for {model.label}.",
        )
    if model.columnar and penalty.matrix is None:
        return WhyNot(
            "no_common_shrinkage",
            f"{label} visits the features of one sample only, so between two visits a regularizer must "
            f"shrink entries of all orders by one amount, known in advance, as ℓ₂² and ℓ₁ do; "
            f"{penalty.label} does not. Use APGD, PCD or PBCD.",
        )
    if penalty.matrix is None:
        return WhyNot(
            "no_operator",
            f"{label} needs the proximal operator of the whole penalty at every step, and "
            f"{penalty.label} has none in closed form. "
            + (
                "Use PCD or PBCD, which need it for one entry or row."
                if penalty.separable
                else "Use nmAPGD, which checks the objective after every inexact step, or SubGD."
            ),
        )
    return None


def epoch_change(before: Parameters, P: np.ndarray, w: np.ndarray, bias: float) -> float:
    """Return the change of the parameters in an epoch, relative to the largest; inf where not finite."""
    moved_p = float(np.abs(P - before.P).max(initial=0.0))
    moved_w = max(float(np.abs(w - before.w).max()), abs(bias - before.intercept))
    if not (np.isfinite(moved_p) and np.isfinite(moved_w)):
        return float("inf")
    return relative_change((moved_p, P), (moved_w, w, bias))


class PSGD(ShuffledSolver):
    """Take a proximal step along the gradient of one sample at a time."""

    name: ClassVar[str] = "psgd"
    label: ClassVar[str] = "PSGD"
    source: ClassVar[str] = "atarashi2021, 4.1 and 5.1 with Eq. 28; exact sparse steps are ours"
    about: ClassVar[str] = (
        "Proximal stochastic gradient descent: a step along the gradient of one random sample, then the "
        "proximal operator of the regularizer. On sparse data a step visits the sample's own features only."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (
        *STEP_PARAMS,
        ParamSpec(
            "operator",
            "choice",
            "auto",
            choices=("auto", "dense", "sparse"),
            help="Apply the operator to all of P at every step (dense), or visit only the features of the "
            "sample (sparse): the same iterates up to rounding. Auto is sparse for sparse data.",
        ),
        MONOTONE,
    )

    fits_coefficients: ClassVar[bool] = True

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        return no_stochastic_steps(self.label, problem, columns=True)

    def prepare(self) -> None:
        super().prepare()
        # Resolves "auto", so that the settings name the actual operator.
        self.settings["operator"] = self._path(self.settings["operator"])

    def _path(self, wanted: str) -> str:
        """Return "dense" or "sparse"."""
        problem, operator = self.problem, self._operator
        if self._columns is not None:
            if wanted == "dense":
                raise ValueError(
                    f"operator = 'dense' is not possible for {problem.model.label}: steps are made for the "
                    "features of the sample only. Choose 'auto' or 'sparse', which are the same here."
                )
            return "sparse"
        reason = None
        if operator.lazy is None:
            reason = (
                f"{problem.penalty.label} by rows shrinks every row at a pace of its own, which must be "
                "computed for all rows at every step"
            )
        elif operator.pairs and make_steps(problem, self.settings, 0, 1).cut[0] >= 1.0:
            # No schedule raises the step size, so the first step has the largest strength.
            reason = (
                f"with eta0 = {self.settings['eta0']:g} and lambda_sparse = {problem.lambda_sparse:g} the "
                f"operator of {problem.penalty.label} keeps one entry or row only, and is no longer a "
                "common offset"
            )
        if reason is None:
            if wanted == "auto":
                return "dense" if problem.design.storage.name == "dense" else "sparse"
            return wanted
        if wanted == "sparse":
            raise ValueError(f"operator = 'sparse' is not possible: {reason}. Choose 'auto' or 'dense'.")
        return "dense"

    def _run(self, order: np.ndarray, batch: int, steps: Steps) -> tuple[float, bool]:
        if self._columns is not None:
            return self._run_columns(self._columns, order, steps)
        if self.settings["operator"] == "dense":
            return dense_epoch(self, order, batch, steps)
        problem = self.problem
        kinds = problem.design.storage, problem.loss.scalar
        state = (self._P, self._w, *self._settled())
        return lazy_epoch(kinds, self._operator, self._common(order), steps, state)


def lazy_epoch(kinds: Any, operator: Any, data: Any, steps: Steps, state: Any) -> tuple[float, bool]:
    """Run one epoch of the lazy kernel for the operator's action on entries or rows outside a sample."""
    if operator.lazy in ("decay", "entries", "rows"):
        if operator.lazy == "rows":
            return lazy_rows(*kinds)(*data, *steps, *state)
        return lazy_entries(*kinds, PAIRS)(*data, *steps, *state, ())
    kernel = coupled_entries(*kinds) if operator.lazy == "coupled_entries" else coupled_rows(*kinds)
    grow = np.ones(steps.cut.size)
    if operator.pairs:
        # The operator of Ω_TI or Ω_CS equals a scaled one of the square, see `omega_ti.prox_pairs`.
        grow = 1.0 / (1.0 - steps.cut)
        steps = steps._replace(cut=0.5 * steps.cut * grow)
    return kernel(*data, *steps, *state, grow)


def dense_epoch(solver: ShuffledSolver, order: np.ndarray, batch: int, steps: Steps) -> tuple[float, bool]:
    """Run one epoch of the kernel that applies the operator to all of P, and write P back."""
    problem, design = solver.problem, solver.problem.design
    M = np.ascontiguousarray(solver._P.T)
    kernel = dense_steps(design.storage, problem.loss.scalar, solver._operator)
    trailing = solver._w, solver._bias, problem.loss.theta, design.longest_row, solver._operator.theta
    bias, finite = kernel(*solver._common(order), batch, *steps, M, *trailing)
    # Adding 0 turns −0 into 0.
    solver._P = np.ascontiguousarray(M.T) + 0.0
    return bias, finite


class MiniBatchPSGD(ShuffledSolver):
    """Take a proximal step along the mean gradient of a batch of samples at a time."""

    name: ClassVar[str] = "mb_psgd"
    label: ClassVar[str] = "MB-PSGD"
    source: ClassVar[str] = "atarashi2021, 4.1 and C.2"
    about: ClassVar[str] = (
        "Mini-batch proximal stochastic gradient descent: as PSGD, with batches so large that the operator "
        "on all of P costs no more than the gradient."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (*STEP_PARAMS, BATCH, MONOTONE)

    def _batch(self) -> int:
        return batch_size(self.problem, self.settings["batch_size"])

    def _run(self, order: np.ndarray, batch: int, steps: Steps) -> tuple[float, bool]:
        return dense_epoch(self, order, batch, steps)


def batch_size(problem: Problem, wanted: int) -> int:
    """Return the samples in a batch: at most N, and N·d/nnz(X) for 0 ([A] C.2)."""
    design = problem.design
    n, d = design.shape
    return min(n, wanted or max(1, round(n * d / max(1, design.nnz))))


class SGD(ShuffledSolver):
    """Take a gradient step on one sample at a time, for the smooth objective of a canonical FM."""

    name: ClassVar[str] = "sgd"
    label: ClassVar[str] = "SGD"
    source: ClassVar[str] = "atarashi2021, Algorithm 5; lazy updates after Duchi et al. 2011"
    about: ClassVar[str] = (
        "Stochastic gradient descent: a step along the gradient of one random sample, at the cost of its own "
        "features. For the smooth penalty ℓ₂² only."
    )
    implicit: ClassVar[bool] = False
    fits_coefficients: ClassVar[bool] = True

    def _period(self) -> int:
        """Return more than the steps of an epoch: there are no offsets."""
        return self.problem.design.n_samples + 1

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        penalty = problem.penalty
        if not penalty.smooth:
            return WhyNot(
                "not_smooth",
                f"SGD follows the gradient, and {penalty.label} has none at 0, just where it makes P "
                "sparse: steps would jump across 0 and never stay there. Use "
                f"{'PSGD' if penalty.exact_prox else 'nmAPGD'}, which takes proximal steps.",
            )
        return no_stochastic_steps(self.label, problem, columns=True)

    def _run(self, order: np.ndarray, batch: int, steps: Steps) -> tuple[float, bool]:
        if self._columns is not None:
            return self._run_columns(self._columns, order, steps)
        problem = self.problem
        kernel = lazy_entries(problem.design.storage, problem.loss.scalar, PAIRS)
        return kernel(*self._common(order), *steps, self._P, self._w, *self._settled(), ())
