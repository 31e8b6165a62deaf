"""Stochastic gradient methods: PSGD with exact sparse steps, mini-batch PSGD, and SGD."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...errors import WhyNot
from ...parameters import Parameters
from ...penalties.operators.lazy import ENTRIES
from ...problem import Formulation, Problem
from ...settings import ParamSpec
from .._sweeping import relative_change
from ..base import Solver
from ..kernels.coefficients import CoefficientStep, coefficient_change
from .dense_steps import dense_steps
from .lazy import lazy_steps
from .monotone import MONOTONE, Safeguard
from .sample_gradient import COLUMNS, PAIRS, kind_of

SCHEDULES = ("bottou", "constant", "optimal", "inverse_scaling")

STEP_PARAMS: tuple[ParamSpec, ...] = (
    ParamSpec(
        "schedule",
        "choice",
        "bottou",
        choices=SCHEDULES,
        help="The step size after t steps: η₀/(1+η₀λt) (Bottou 2012, as in the paper), η₀, η₀/(1+2η₀λt) "
        "(optimal for curvature 2λ), or η₀/(t+1)^power.",
    ),
    ParamSpec("eta0", "float", 0.1, 1e-12, 1e6, log=True, symbol=r"\eta_0", help="The initial step size."),
    ParamSpec("power", "float", 0.5, 0, 2, help="The exponent of t, for inverse scaling only."),
)


def step_sizes(schedule: str, eta0: float, power: float, lam: float, first: int, count: int) -> np.ndarray:
    """Return η_t for t = first, ..., first + count − 1, where t counts all steps of a run from 0.

    Parameters
    ----------
    schedule : {"bottou", "constant", "optimal", "inverse_scaling"}
        η₀/(1 + η₀λt) ([A] C.2, after Bottou 2012), η₀, η₀/(1 + 2η₀λt), or η₀/(t+1)^power. The third is
        1/(2λ(t + t₀)) with t₀ such that it starts at η₀: a term λ‖·‖² without ½ has curvature 2λ. For λ = 0,
        the first and the third are constant.
    eta0, power : float
        η₀ and the exponent.
    lam : float
        λ_p for the step on P, λ_w for the step on w and the bias.
    first, count : int
        The first step and the number of steps.
    """
    t = np.arange(first, first + count, dtype=np.float64)
    if schedule == "constant":
        return np.full(count, eta0)
    if schedule == "inverse_scaling":
        return eta0 / (t + 1.0) ** power
    return eta0 / (1.0 + (2.0 if schedule == "optimal" else 1.0) * eta0 * lam * t)


class Steps(NamedTuple):
    """Coefficients of the steps p ↦ shrink(keep_p·p − step_p·g, cut), and likewise for w and the bias."""

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
    """Return the coefficients of `count` steps starting with step `first`, with step sizes η times `scale`.

    Implicit decay is [A] Eq. 28: argmin_q ⟨g, q⟩ + ‖q − p‖²/(2η) + λ_p‖q‖² + λΩ(q) is
    prox_{ηλr Ω}(r(p − ηg)) with r = 1/(1 + 2ηλ_p). It is stable at any η. Explicit decay is [A] Algorithm 5:
    (1 − 2ηλ)p − ηg.
    """
    operator: Any = problem.penalty.matrix
    schedule = settings["schedule"], settings["eta0"], settings["power"]
    in_p = scale * step_sizes(*schedule, problem.lambda_p, first, count)
    in_w = scale * step_sizes(*schedule, problem.lambda_w, first, count)
    lam_p = problem.lambda_p + problem.lambda_sparse * operator.quad
    strength = operator.weight * problem.lambda_sparse
    linear, bias = float(problem.fit_linear), float(problem.fit_intercept)
    if implicit:
        keep_p, keep_w = 1.0 / (1.0 + 2.0 * in_p * lam_p), 1.0 / (1.0 + 2.0 * in_w * problem.lambda_w)
        return Steps(
            keep_p, keep_p * in_p, keep_p * in_p * strength, keep_w, linear * keep_w * in_w, bias * in_w
        )
    keep_p, keep_w = 1.0 - 2.0 * in_p * lam_p, 1.0 - 2.0 * in_w * problem.lambda_w
    return Steps(keep_p, in_p, np.zeros(count), keep_w, linear * in_w, bias * in_w)


# T is reset at O(dk) at most once per this number of steps, or per d steps: O(k) per step.
_SHORTEST_PERIOD = 256

BATCH = ParamSpec(
    "batch_size",
    "int",
    0,
    0,
    2**31 - 1,
    symbol="N_b",
    help="The number of samples per step; 0 selects N·d/nnz(X), for which gradient and operator have equal "
    "cost.",
)


def batch_size(problem: Problem, wanted: int) -> int:
    """Return the number of samples in a batch: at most N, and N·d/nnz(X) for 0 ([A] C.2)."""
    design = problem.design
    n, d = design.shape
    return min(n, wanted or max(1, round(n * d / max(1, design.nnz))))


class StochasticSolver(Solver, ABC):
    """Base class of stochastic solvers: epochs of steps, and their safeguard.

    An epoch visits N samples. Each step uses one sample (or batch) and updates w, the bias and P jointly, by
    the gradients at the same point. With `monotone`, see `Safeguard`, the objective never increases; without
    it, an epoch may increase it.

    Samples are visited one after the other, in one thread; only the steps of the safeguard, and certificates,
    are computed from blocks of rows.
    """

    diverged_hint: ClassVar[str] = (
        "Decrease eta0, for example to a tenth. If that is too slow, scale down the features and the target. "
        "With monotone = True, such epochs are undone."
    )

    takes_parts: ClassVar[bool] = True
    memory: ClassVar[tuple[str, ...]] = ("_rng", "_t", "_guard")

    def prepare(self) -> None:
        problem = self.problem
        super().prepare()
        self._operator: Any = problem.penalty.matrix
        self._c = problem.unit_weights
        self._guard = Safeguard(problem) if self.settings["monotone"] else None
        self._batch = batch_size(problem, self.settings["batch_size"]) if BATCH in self.params else 1

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        model, penalty, columns = problem.model, problem.penalty, self.fits_coefficients
        if not (model.plain or (model.columnar and columns)):
            return WhyNot(
                "no_sample_steps",
                f"{self.label} uses the gradient of a single prediction, which is implemented for "
                "the second-order factorization machine"
                f"{' and for sums of kernels of columns' if columns else ''} only, not for {model.label}.",
            )
        if not model.plain and penalty.matrix is None:
            return WhyNot(
                "no_common_shrinkage",
                f"{self.label} visits only the features of a sample. Between visits, the regularizer must "
                "shrink entries of all orders by the same predictable amount, like ℓ₂² and ℓ₁; "
                f"{penalty.label} does not. Use APGD, PCD or PBCD.",
            )
        if penalty.matrix is None:
            return WhyNot(
                "no_operator",
                f"{self.label} needs the proximal operator of the penalty at every step, but "
                f"{penalty.label} has none in closed form. "
                + (
                    "Use PCD or PBCD, which need it only for an entry or a row."
                    if penalty.separable
                    else "Use nmAPGD, which checks the objective after every inexact step, or SubGD."
                ),
            )
        return None

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        self._rng = rng
        self._t = 0
        self._take(parameters)
        if self._guard is not None:
            self._guard.start(parameters, rng)

    def epoch(self) -> float:
        """Run an epoch of stochastic steps.

        The change refers to steps of full size; after an undone epoch, it is the size of the proximal
        gradient step.
        """
        guard, before, t = self._guard, self.parameters(), self._t
        # A diverging run overflows; the driver detects it from the change.
        with np.errstate(over="ignore", invalid="ignore"):
            scale = 1.0 if guard is None else guard.scale
            finite = self._advance(scale)
            now = self._here()
            if finite and (guard is None or guard.accepts(now)):
                return epoch_change(before, now.P, now.w, now.intercept) / scale
            if guard is None:
                return float("inf")
            # The steps of an undone epoch do not count.
            self._t = t
            now, change = guard.fallback(before)
            self._take(now)
            return change

    def for_other_rows(self, memory: Mapping[str, Any]) -> dict[str, Any]:
        """Return the random state, the step count and the step scale."""
        state = {name: memory[name] for name in ("_rng", "_t")}
        if self.settings["monotone"] and (guard := memory.get("_guard")) is not None:
            state["_guard"] = {"scale": guard["scale"]}
        return state

    def warm_up(self) -> None:
        self.epoch()
        if self._guard is not None:
            self._guard.fallback(self.parameters())

    @abstractmethod
    def _take(self, parameters: Parameters) -> None:
        """Continue from these parameters (copied), keeping only the step count."""

    @abstractmethod
    def _advance(self, scale: float) -> bool:
        """Run the steps of an epoch, scaled by `scale`; return whether all values are finite."""

    @abstractmethod
    def _here(self) -> Parameters:
        """Return the current parameters, which the next epoch may overwrite."""

    def parameters(self) -> Parameters:
        return self._here().copy()


def epoch_change(before: Parameters, P: np.ndarray, w: np.ndarray, bias: float) -> float:
    """Return the relative change of the parameters in an epoch; infinite if not all values are finite."""
    moved_p = float(np.abs(P - before.P).max(initial=0.0))
    moved_w = max(float(np.abs(w - before.w).max()), abs(bias - before.intercept))
    if not (np.isfinite(moved_p) and np.isfinite(moved_w)):
        return float("inf")
    return relative_change((moved_p, P), (moved_w, w, bias))


class PSGD(StochasticSolver):
    """Proximal stochastic gradient descent with single samples, each visited once per epoch.

    [A] 4.1 and 5.1 with Eq. 28; the exact sparse steps are ours.

    For a sum of kernels of columns, a step costs O(nnz(x)·m) per column of order m. If the coefficients λ are
    fitted, each epoch begins with the exact fit of λ, and the step size of column s is η/|λ_s|: a step of
    size η on √|λ_s| p_s. λ_p Σ|λ_s|‖p_s‖² is the squared norm of these, and K is homogeneous; all columns
    therefore decay equally, as lazy updates require. A column with λ_s = 0 is unchanged.
    """

    name: ClassVar[str] = "psgd"
    label: ClassVar[str] = "PSGD"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        *STEP_PARAMS,
        ParamSpec(
            "operator",
            "choice",
            "auto",
            choices=("auto", "dense", "sparse"),
            help="Whether to apply the operator to all of P at every step (dense), or only visit the "
            "features of the sample (sparse); the iterates are equal up to rounding. Auto is sparse for "
            "sparse data.",
        ),
        MONOTONE,
    )
    memory: ClassVar[tuple[str, ...]] = (*StochasticSolver.memory, "_P", "_w", "_bias", "_coefficients")
    fits_coefficients: ClassVar[bool] = True
    # Whether w and P decay by implicit steps; see `make_steps`.
    implicit: ClassVar[bool] = True
    # The value of the setting of this name if there is none.
    operator: ClassVar[str] = "sparse"

    def prepare(self) -> None:
        super().prepare()
        problem, model = self.problem, self.problem.model
        self._fit = CoefficientStep(problem) if model.fits_coefficients else None
        self._kinds: np.ndarray | None = None
        if not model.plain:
            kinds = [kind_of(kernel) for _, kernel in model.blocks(problem.rank)]
            self._kinds = np.repeat(kinds, problem.rank).astype(np.int64)
        if "operator" in self.settings:
            # Resolves "auto" to report the actual operator in the settings.
            self.settings["operator"] = self._path(self.settings["operator"])
        self._dense = self.settings.get("operator", self.operator) == "dense"

    def _path(self, wanted: str) -> str:
        """Return "dense" or "sparse"."""
        problem, operator = self.problem, self._operator
        only, reason = "", ""
        if self._kinds is not None:
            only, reason = (
                "sparse",
                f"steps of {problem.model.label} visit only the features of a sample",
            )
        elif operator.lazy is None:
            only = "dense"
            reason = (
                f"{problem.penalty.label} by rows shrinks every row by a different amount, which must be "
                "computed for all rows at every step"
            )
        elif operator.pairs and make_steps(problem, self.settings, 0, 1).cut[0] >= 1.0:
            # No schedule increases the step size; the first step has the largest strength.
            only = "dense"
            reason = (
                f"with eta0 = {self.settings['eta0']:g} and lambda_sparse = {problem.lambda_sparse:g} the "
                f"operator of {problem.penalty.label} keeps a single entry or row, and is no longer a "
                "common offset"
            )
        if only and wanted not in ("auto", only):
            raise ValueError(f"operator = {wanted!r} is not possible: {reason}. Choose 'auto' or {only!r}.")
        if wanted == "auto" and not only:
            return "dense" if problem.design.storage.name == "dense" else "sparse"
        return only or wanted

    def _take(self, parameters: Parameters) -> None:
        self._P = np.array(parameters.P, order="C")
        self._w = parameters.w.copy()
        self._bias = float(parameters.intercept)
        given = parameters.coefficients
        self._coefficients = None if given is None else given.copy()

    def _here(self) -> Parameters:
        return Parameters(self._P, self._w, self._bias, coefficients=self._coefficients)

    def epoch(self) -> float:
        if self._fit is None:
            return super().epoch()
        before = self.parameters()
        fitted = self._fit.refit(before)
        self._take(fitted)
        if self._guard is not None:
            self._guard.move(fitted)
        return max(coefficient_change(before, fitted), super().epoch())

    def _advance(self, scale: float) -> bool:
        problem, design = self.problem, self.problem.design
        n = design.n_samples
        count = -(-n // self._batch)
        order = self._rng.permutation(n).astype(np.int64)
        steps = make_steps(problem, self.settings, self._t, count, scale, self.implicit)
        self._t += count
        rows = (*design.rows, problem.y, self._c, order)
        self._bias, finite = self._run_dense(rows, steps) if self._dense else self._run_lazy(rows, steps)
        return finite

    def _run_dense(self, rows: tuple[Any, ...], steps: Steps) -> tuple[float, bool]:
        """Run the kernel that applies the operator to all of P; return the bias and whether all is finite."""
        problem, design, operator = self.problem, self.problem.design, self._operator
        M = np.ascontiguousarray(self._P.T)
        trailing = self._w, self._bias, problem.loss.theta, design.longest_row, operator.theta
        kernel = dense_steps(design.storage, problem.loss.scalar, operator)
        bias, finite = kernel(*rows, self._batch, *steps, M, *trailing)
        # Adding 0 turns −0 into 0.
        self._P = np.ascontiguousarray(M.T) + 0.0
        return bias, finite

    def _run_lazy(self, rows: tuple[Any, ...], steps: Steps) -> tuple[float, bool]:
        """Like `_run_dense`, with the kernel that visits only the features of each sample."""
        problem, design, operator = self.problem, self.problem.design, self._operator
        grow = np.ones(steps.cut.size)
        if operator.pairs:
            # The operator of Ω_TI or Ω_CS equals a scaled one of the square, see `omega_ti.prox_pairs`.
            grow = 1.0 / (1.0 - steps.cut)
            steps = steps._replace(cut=0.5 * steps.cut * grow)
        # Offsets are reset at O(dk) after this many steps; without offsets, never.
        period = max(_SHORTEST_PERIOD, design.n_features) if self.implicit else design.n_samples + 1
        trailing = self._w, self._bias, problem.loss.theta, design.longest_row, period
        kinds = design.storage, problem.loss.scalar
        if self._kinds is None:
            return lazy_steps(*kinds, PAIRS, operator.lazy)(*rows, *steps, self._P, *trailing, (), grow)
        given = self._here().multipliers
        resting = given == 0.0
        root = np.sqrt(np.where(resting, 1.0, np.abs(given)))
        P = np.ascontiguousarray(self._P * root)
        columns = (self._kinds, given / root ** np.abs(self._kinds))
        bias, finite = lazy_steps(*kinds, COLUMNS, ENTRIES)(*rows, *steps, P, *trailing, columns, grow)
        P /= root
        P[:, resting] = self._P[:, resting]
        self._P = P
        return bias, finite


class MiniBatchPSGD(PSGD):
    """Proximal stochastic gradient descent with mini-batches ([A] 4.1 and C.2)."""

    name: ClassVar[str] = "mb_psgd"
    label: ClassVar[str] = "MB-PSGD"
    params: ClassVar[tuple[ParamSpec, ...]] = (*STEP_PARAMS, BATCH, MONOTONE)
    fits_coefficients: ClassVar[bool] = False
    operator: ClassVar[str] = "dense"


class SGD(PSGD):
    """Stochastic gradient descent for the smooth objective of a canonical FM.

    [A] Algorithm 5, with lazy updates after Duchi et al. (2011).
    """

    name: ClassVar[str] = "sgd"
    label: ClassVar[str] = "SGD"
    params: ClassVar[tuple[ParamSpec, ...]] = (*STEP_PARAMS, MONOTONE)
    implicit: ClassVar[bool] = False

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        penalty = problem.penalty
        if not penalty.smooth:
            return WhyNot(
                "not_smooth",
                f"SGD follows the gradient, but {penalty.label} is not differentiable at the zeros of P: "
                "steps would jump across 0 and never stay there. Use "
                f"{'PSGD' if penalty.exact_prox else 'nmAPGD'}, which takes proximal steps.",
            )
        return super()._why_not(problem)
