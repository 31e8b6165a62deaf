"""The objective: regularized empirical risk, with a common scaling convention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import iadd
from typing import Any

import numpy as np

from .blas import one_thread
from .design import Design
from .errors import WhyNot, finite_number, whole_number
from .losses import Loss, get_loss, loss_of_outputs
from .losses.vector import Separate, VectorLoss
from .models import Model, get_model
from .parameters import Parameters
from .penalties import Penalty, get_penalty
from .schedule import STRENGTHS
from .target import Target
from .threads import IN_TURN, Threads


@dataclass(frozen=True)
class Formulation:
    """A model with its penalty and loss, without data.

    Attributes
    ----------
    model : Model
        The function f.
    penalty : Penalty
        The penalty Ω, bound to the columns of P of the model.
    loss : Loss
        The loss ℓ.
    """

    model: Model
    penalty: Penalty
    loss: Loss

    @classmethod
    def build(
        cls,
        model: str | Model = "fm",
        penalty: str | Penalty = "ti",
        loss: str | Loss = "squared",
        rank: int = 1,
    ) -> Formulation:
        """Build a formulation from names or instances.

        Raises
        ------
        ValueError
            If a name is unknown, or the model does not support the penalty.
        """
        chosen, omega = get_model(model), get_penalty(penalty)
        if (reason := chosen.why_not(omega)) is not None:
            raise ValueError(reason)
        return cls(chosen, chosen.bind(omega, rank), get_loss(loss))

    def why_not(self) -> WhyNot | None:
        """Return why the model cannot be fitted with this loss, or None."""
        return self.loss.why_no_gap() if self.model.certificate == "gap" else None


@dataclass(frozen=True, eq=False)
class Problem(Formulation):
    r"""Regularized empirical risk minimization for a model ([A] Eq. 2).

    (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p‖P‖²_F + λ Ω(P)

    For quadratic regression, model "qr", the last two terms are λ_p‖W‖_tr + λ‖W‖₁ ([A] Eq. 58): λ_p is
    λ_tr, and the only penalty is "l1"; see `models.quadratic`. For the convex factorization machine, model
    "convex_fm", they are λ_p‖W‖_tr with W = P diag(λ) Pᵀ; see `models.convex`.

    c_n = 1, or c_n = N·weight_n / Σ weight with sample weights. The λ have no factor ½, and the bias is not
    penalized.

    A target with m outputs (one-vs-rest classes, levels, labels or numbers) has a machine for each unless the
    model has joint outputs: parameters have a first axis of length m, predictions have shape (N, m), and the
    objective is the mean over the `machines`.

    Parameters
    ----------
    model, penalty, loss
        See `Formulation`.
    design : Design
        The features X, shape (N, d).
    target : Target
        The target y, shape (N,) or (N, m).
    rank : int
        The number of columns of P per order; 0 gives the linear model. Ignored if the model has no factors.
    lambda_w, lambda_p, lambda_sparse : float or (m,) ndarray
        λ_w, λ_p and λ, all ≥ 0; common, or one for each machine.
    fit_linear, fit_intercept : bool
        Whether to fit w and a bias.
    sample_weight : (N,) array_like, optional
        Weights ≥ 0, not all 0.
    mapper : Threads
        Applies functions to the blocks of rows over which risk, gradient and curvature are summed. The blocks
        depend on X only and are added in their order: the mapper does not change any result.
    n_all : int, optional
        The N of the factor 1/N for a block of rows; None for the number of rows.
    """

    design: Design
    target: Target
    rank: int
    lambda_w: Any
    lambda_p: Any
    lambda_sparse: Any
    fit_linear: bool
    fit_intercept: bool
    sample_weight: np.ndarray | None = None
    mapper: Threads = IN_TURN
    n_all: int | None = None

    @classmethod
    def build(  # type: ignore[override]  # noqa: PLR0913 (every part of the objective is a keyword)
        cls,
        X: Any,
        y: Any,
        *,
        loss: str | Loss = "squared",
        penalty: str | Penalty = "ti",
        model: str | Model = "fm",
        rank: int = 10,
        lambda_w: float = 0.0,
        lambda_p: float = 0.0,
        lambda_sparse: float = 0.0,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        sample_weight: Any = None,
        mapper: Threads = IN_TURN,
    ) -> Problem:
        """Validate everything and return the problem.

        Parameters
        ----------
        X : (N, d) array_like, sparse matrix or Design
            The features.
        y : (N,) or (N, m) array_like or Target
            The target; -1 and +1 for a binary loss.
        loss, penalty, model : str or Loss, Penalty, Model
            A name from the registry, or an instance.
        rank, lambda_w, lambda_p, lambda_sparse, fit_linear, fit_intercept, sample_weight, mapper
            See the class.

        Raises
        ------
        ValueError
            If a value is out of range, or arguments are incompatible.
        """
        design = X if isinstance(X, Design) else Design(X)
        rank = whole_number("rank", rank, 0, 10_000)
        omega = get_penalty(penalty).for_features(range(design.n_features))
        formulation = Formulation.build(model, omega, loss, rank)
        chosen, criterion = formulation.model, formulation.loss
        target = _target(y, design.n_samples, criterion, chosen)
        design.check_size()
        target.check_size()
        if chosen.multi_output:
            chosen, criterion = chosen.for_outputs(target.n_outputs), loss_of_outputs(criterion, target)
        chosen.check_size(design.n_features, rank)
        chosen.check_strengths(lambda_p, lambda_sparse)
        return cls(
            chosen,
            formulation.penalty,
            criterion,
            design,
            target,
            rank,
            finite_number("lambda_w", lambda_w, low=0),
            finite_number("lambda_p", lambda_p, low=0),
            finite_number("lambda_sparse", lambda_sparse, low=0),
            bool(fit_linear),
            bool(fit_intercept),
            None if sample_weight is None else _weights(sample_weight, design.n_samples),
            mapper,
        )

    @property
    def row_blocks(self) -> tuple[Problem, ...]:
        """The problems of blocks of rows, whose empirical risks add up to that of all rows."""
        several = len(self.design.row_blocks) > 1 or not self.design.in_memory
        return self._row_blocks if self.model.by_row and several else (self,)

    @cached_property
    def _row_blocks(self) -> tuple[Problem, ...]:
        blocks, begin, n = [], 0, self.design.n_samples
        for design in self.design.row_blocks:
            rows = slice(begin, begin := begin + design.n_samples)
            target = replace(self.target, values=self.target.values[rows])
            weights = None if self.sample_weight is None else self.sample_weight[rows]
            blocks.append(replace(self, design=design, target=target, sample_weight=weights, n_all=n))
        return tuple(blocks)

    def total(self, function: Callable[[Any], Any], blocks: Sequence[Any]) -> Any:
        """Return the sum of a function over blocks of rows, which may use the memory of the first term."""
        if len(blocks) == 1 and self.design.in_memory:
            return function(blocks[0])
        with one_thread():
            return reduce(_added, self.mapper(function, blocks))

    def loaded(self) -> Problem:
        """Return the problem with its rows in memory."""
        return self if (design := self.design.loaded()) is self.design else replace(self, design=design)

    @cached_property
    def reference(self) -> Problem:
        """The problem itself or, if its rows are not in memory, that of the first block of them."""
        if self.design.in_memory:
            return self
        design, block = Design(self.design.collected(slice(1)), self.design.dtype), self.row_blocks[0]
        weights = None if block.sample_weight is None else _weights(block.sample_weight, design.n_samples)
        return replace(block, design=design, sample_weight=weights, mapper=IN_TURN, n_all=None)

    @property
    def n_rows(self) -> int:
        """The N of the factor 1/N."""
        return self.n_all or self.design.n_samples

    @cached_property
    def n_machines(self) -> int | None:
        """The number m of machines, the first axis of parameters; None without such an axis."""
        single = self.model.multi_output or (self.y.ndim == 1 and self.target.n_outputs == 1)
        return None if single else self.target.n_outputs

    @cached_property
    def machines(self) -> tuple[Problem, ...]:
        """The problem of every machine, with its output and strengths; m may be 1."""
        targets = [self.target] if self.n_machines is None else self.target.outputs
        each = zip(targets, *(self.split(getattr(self, name)) for name in STRENGTHS), strict=True)
        return tuple(
            replace(self, target=target, **dict(zip(STRENGTHS, own, strict=True))) for target, *own in each
        )

    def split(self, value: Any) -> list[Any]:
        """Split parameters, or a value that is common or one per machine, by machine."""
        if (m := self.n_machines) is None:
            return [value]
        if isinstance(value, Parameters):
            return [value.of_output(c) for c in range(m)]
        return np.broadcast_to(value, (m,)).tolist()

    def by_machine(self, function: Callable[..., Any], *values: Any) -> list[Any]:
        """Apply a function to every machine and its part of the values."""
        return [function(*own) for own in zip(self.machines, *map(self.split, values), strict=True)]

    def joined(self, values: Sequence[Any]) -> Any:
        """Join the parts of all machines to parameters or an array of numbers."""
        if self.n_machines is None:
            return values[0]
        return Parameters.stacked(values) if isinstance(values[0], Parameters) else np.array(values)

    def at(self, **strengths: Any) -> Problem:
        """Return the problem with other λ_w, λ_p or λ, as numbers or one for each machine.

        Raises
        ------
        ValueError
            If a strength is out of range or not supported by the model.
        """
        new: dict[str, Any] = {}
        for name, value in strengths.items():
            each = [finite_number(name, x, low=0) for x in self.split(value)]
            new[name] = each[0] if len(set(each)) == 1 else np.array(each)
        problem = replace(self, **new) if new else self
        self.model.check_strengths(float(np.max(problem.lambda_p)), float(np.max(problem.lambda_sparse)))
        return problem

    def of_rows(self, rows: np.ndarray) -> Problem:
        """Return the problem of a subset of rows, given by index, with weights rescaled to a mean of 1."""
        weights = self.sample_weight
        return replace(
            self,
            design=self.design.of_rows(rows),
            target=replace(self.target, values=self.target.values[rows]),
            sample_weight=None if weights is None else _weights(weights[rows], rows.size),
        )

    def on_rows(self, X: Any, y: Any) -> Problem:
        """Return the problem of other rows, all of weight 1, such as validation rows.

        Raises
        ------
        ValueError
            If their features or targets do not match.
        """
        design = X if isinstance(X, Design) else Design(X)
        if design.n_features != self.design.n_features:
            raise ValueError(
                f"The validation rows have {design.n_features} features, the training rows "
                f"{self.design.n_features}; they must agree."
            )
        values = np.array(y, dtype=np.float64)
        if values.shape != (design.n_samples, *self.y.shape[1:]):
            wanted = f"{self.y.shape[1]} values" if self.y.ndim == 2 else "one value"
            raise ValueError(f"The validation target has shape {values.shape}; it needs {wanted} per row.")
        target = replace(self.target, values=values)
        if not self.model.multi_output and self.n_machines is None:
            target = _target(values, values.size, self.loss, self.model)
        return replace(self, design=design, target=target, sample_weight=None)

    @property
    def y(self) -> np.ndarray:
        """The values of the target, shape (N,) or (N, m)."""
        return self.target.values

    @property
    def mu(self) -> float:
        """The Lipschitz constant of the loss derivative; 1, as a scale, if it has none.

        With a log link, it is the mean curvature of the best constant instead, again as a scale.
        """
        mu = self.loss.mu()
        if mu is None and self.loss.log_link and self.y.ndim == 1:
            mu = self.mean(self.loss.second(np.full(self.y.shape, self.constant), self.y))
        return 1.0 if mu is None else mu

    @cached_property
    def weights(self) -> np.ndarray:
        """The weights c_n for kernels: an array of length N, or an empty one if all are 1."""
        return np.empty(0) if self.sample_weight is None else self.sample_weight

    def bends(self, f: np.ndarray) -> tuple[np.ndarray, float]:
        """Return c_n, shape (N,), and μ; or c_n ℓ''(f_n, y_n) and 1 if the loss has no μ."""
        if self.loss.mu() is not None:
            return self.unit_weights, self.mu
        return self.unit_weights * self.loss.second(f, self.y), 1.0

    @property
    def unit_weights(self) -> np.ndarray:
        """The weights c_n as an array of length N."""
        return np.ones(self.design.n_samples) if self.sample_weight is None else self.sample_weight

    def mean(self, values: np.ndarray) -> float:
        """Return (1/N) Σ c_n values_n."""
        counted = values if self.sample_weight is None else self.weights * values
        return float(counted.sum() / self.n_rows)

    def start(self, init_scale: Any, rng: np.random.Generator) -> Parameters:
        """Return the starting point of the model: random P ~ N(0, init_scale²) (or W = 0), w = 0, bias 0.

        For a constant target with a fitted bias, it is the minimum: P = 0, and f is the constant. With a log
        link, the bias starts at the logarithm of the mean target. There may be one scale per machine.
        """
        if self.n_machines is not None:
            return self.joined(self.by_machine(Problem.start, init_scale, rng))
        start = self.model.start(self.design.n_features, self.rank, init_scale, rng)
        if self.loss.log_link and self.fit_intercept and self.y.ndim == 1:
            return start.replace(intercept=self.constant)
        if not self.at_constant:
            return start
        start = start.replace(P=np.zeros_like(start.P))
        return start.replace(intercept=self.y[0] - self.predict(start)[0])

    @property
    def constant(self) -> float:
        """The f whose prediction is the mean target."""
        return self.loss.score(self.mean(self.y))

    @property
    def at_constant(self) -> bool:
        """Whether the target is constant and the bias fitted: the minimum then has P = 0."""
        return self._bias_follows and bool((self.y == self.y[0]).all())

    @property
    def _bias_follows(self) -> bool:
        """Whether adding a constant to the target only changes the bias of a minimum."""
        loss = self.loss.loss if isinstance(self.loss, Separate) else self.loss
        of_residual = not isinstance(loss, VectorLoss) and loss.scalar.of_residual is not None
        return self.fit_intercept and of_residual

    def centred(self) -> Problem:
        """Return the problem with a centred target, or itself if centring changes more than the bias."""
        return replace(self, target=self.target.centred(self.sample_weight)) if self._bias_follows else self

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all parameter arrays, by name."""
        axis = () if self.n_machines is None else (self.n_machines,)
        each = self.model.shapes(self.design.n_features, self.rank)
        return {name: axis + shape for name, shape in each.items()}

    def predict(self, parameters: Parameters) -> np.ndarray:
        """Return f(x_n) for the training rows, recomputed from the parameters."""
        return predictions(self.model, self.design, parameters, self.mapper)

    def slope(self, f: np.ndarray) -> np.ndarray:
        """Return the derivative of the empirical risk in every prediction, (1/N) c_n ℓ'(f_n, y_n).

        Shape (N,), or (N, m) for several outputs, like f.
        """
        slope = self.loss.derivative(f, self.y) / self.n_rows
        if self.sample_weight is None:
            return slope
        return slope * (self.sample_weight if f.ndim == 1 else self.sample_weight[:, None])

    def empirical_risk(self, f: np.ndarray) -> float:
        """Return (1/N) Σ c_n ℓ(f_n, y_n), averaged over the machines."""
        if self.n_machines is not None:
            each = zip(self.machines, f.T, strict=True)
            return float(np.mean([machine.empirical_risk(column) for machine, column in each]))
        return self.mean(self.loss.value(f, self.y))

    def evaluated(self, parameters: Parameters) -> Evaluation:
        """Return the sums over the rows at the parameters; see `Evaluation`."""
        return Evaluation(self, parameters)

    def risk(self, parameters: Parameters) -> float:
        """Return the empirical risk at the parameters; infinity if a prediction overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            risk = self.total(partial(_risk, parameters), self.row_blocks)
        return risk if np.isfinite(risk) else float("inf")

    def parts(self, parameters: Parameters, f: np.ndarray | None = None) -> dict[str, float]:
        """Return the four parts of the objective: loss, penalty_w, penalty_p, penalty_sparse."""
        at = partial(_risk, parameters)
        loss = self.total(at, self.row_blocks) if f is None else self.empirical_risk(f)
        return {"loss": loss, **self.penalties(parameters)}

    def penalties(self, parameters: Parameters) -> dict[str, float]:
        """Return the parts of the objective without the loss: penalty_w, penalty_p, penalty_sparse."""
        return {
            "penalty_w": self.lambda_w * float(np.square(parameters.w).sum()),
            "penalty_p": self.lambda_p * self.model.shrinkage(parameters) if self.lambda_p else 0.0,
            "penalty_sparse": self.lambda_sparse * self.penalty.value(self.model.penalised(parameters))
            if self.lambda_sparse
            else 0.0,
        }

    def objective(self, parameters: Parameters) -> float:
        """Return the value of the objective."""
        return sum(self.parts(parameters).values())


class Evaluation:
    """The sums over all rows, at some parameters, that solvers and certificates need.

    They are added over the `Problem.row_blocks`. Each is computed when it is needed, all from one forward
    pass.

    Parameters
    ----------
    problem : Problem
        The problem.
    parameters : Parameters
        Those of a single machine.
    """

    def __init__(self, problem: Problem, parameters: Parameters) -> None:
        self.problem, self.parameters = problem, parameters
        self._each: list[Any] = [
            _RowSums(block, parameters) if problem.design.in_memory else block for block in problem.row_blocks
        ]
        self._totals: dict[str, Any] = {}

    def totals(self, *names: str) -> list[Any]:
        """Return several of the values below by name, computed in one pass over the rows."""
        if missing := [name for name in names if name not in self._totals]:
            values = self.problem.total(partial(_values, missing, self.parameters), self._each)
            self._totals |= zip(missing, values, strict=True)
        return [self._totals[name] for name in names]

    def under(self, loss: Loss) -> Evaluation:
        """Return the evaluation with another loss, with the same predictions."""
        other = Evaluation(replace(self.problem, loss=loss), self.parameters)
        if self.problem.design.in_memory:
            self.totals("risk")
            for new, old in zip(other._each, self._each, strict=True):
                new.forward = old.forward
        return other

    @property
    def risk(self) -> float:
        """The empirical risk."""
        return self.totals("risk")[0]

    @property
    def gradient(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The gradient of the risk in P, shape (d, k), in w, shape (d,), and in the bias."""
        return self.totals("gradient")[0]

    @property
    def curvature(self) -> np.ndarray:
        """The Lipschitz constant of the derivative of the risk in every entry of P, shape (d, k).

        It is μ/N Σ_n c_n (∂f(x_n)/∂p_js)². If the loss has no μ, its second derivative at f_n replaces it,
        and if f is not linear in the entry (homogeneous polynomials), this is the Gauss–Newton curvature:
        both scale the step without bounding it.
        """
        return self.totals("curvature")[0]

    @property
    def linear_curvature(self) -> tuple[np.ndarray, float]:
        """The same for the entries of w, shape (d,), and the bias."""
        return self.totals("linear_curvature")[0]


class _RowSums:
    """The terms of an `Evaluation` for a block of rows."""

    def __init__(self, problem: Problem, parameters: Parameters) -> None:
        self._problem, self._parameters = problem, parameters
        # Set on first use; a cached property of Python 3.11 has a lock, which threads would wait for.
        self.forward: tuple[np.ndarray, np.ndarray | None] | None = None

    def _pass(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the predictions, and the intermediate results of the model."""
        if self.forward is None:
            problem = self._problem
            self.forward = problem.model.forward(problem.design, self._parameters, keep=False)
        return self.forward

    @property
    def risk(self) -> float:
        return self._problem.empirical_risk(self._pass()[0])

    @property
    def gradient(self) -> tuple[np.ndarray, np.ndarray, float]:
        (f, sums), problem = self._pass(), self._problem
        return problem.model.gradient(problem.design, self._parameters, problem.slope(f), sums)

    @property
    def curvature(self) -> np.ndarray:
        (f, sums), problem = self._pass(), self._problem
        weights, mu = problem.bends(f)
        total = problem.model.curvature(problem.design, self._parameters, weights, sums)
        total *= mu / problem.n_rows
        return total

    @property
    def linear_curvature(self) -> tuple[np.ndarray, float]:
        problem = self._problem
        weights, mu = problem.bends(self._pass()[0])
        h = problem.design.transpose_dot(weights, 2) * (mu / problem.n_rows)
        # The mean weight of all rows is 1.
        total = problem.design.n_samples if problem.loss.mu() is not None else float(weights.sum())
        return h, mu * (total / problem.n_rows)


def predictions(
    model: Model, design: Design, parameters: Parameters, mapper: Threads = IN_TURN
) -> np.ndarray:
    """Return f for every row of a design, shape (N,) or (N, m), computed by its blocks of rows."""
    if not model.by_row or (design.in_memory and len(design.row_blocks) == 1):
        return model.scores(design, parameters)
    with one_thread():
        return np.concatenate([*mapper(partial(_scores, model, parameters), design.row_blocks)])


def _scores(model: Model, parameters: Parameters, design: Design) -> np.ndarray:
    return model.scores(design.loaded(), parameters)


def _risk(parameters: Parameters, block: Problem) -> float:
    return block.empirical_risk(block.model.scores(block.design.loaded(), parameters))


def _values(names: Sequence[str], parameters: Parameters, block: Problem | _RowSums) -> list[Any]:
    sums = _RowSums(block.loaded(), parameters) if isinstance(block, Problem) else block
    return [getattr(sums, name) for name in names]


def _added(total: Any, term: Any) -> Any:
    """Add numbers, arrays (in place), or the parts of lists and tuples."""
    if isinstance(total, list | tuple):
        return type(total)(map(_added, total, term))
    return iadd(total, term)


def _target(y: Any, n_samples: int, loss: Loss, model: Model) -> Target:
    target = Target.of(y)
    shape = target.values.shape
    if shape[0] != n_samples:
        raise ValueError(f"y has shape {shape}, but X has {n_samples} rows; the numbers must agree.")
    if model.multi_output and shape[1:] == (1,):
        target = replace(target, values=target.values[:, 0])
    # Several classes are labels -1 and +1 of every machine.
    values = np.array([-1.0, 1.0]) if target.kind in ("class", "ordinal") else target.values
    if (reason := loss.why_not_target(values)) is not None:
        raise ValueError(reason)
    return target


def _weights(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    weights = np.array(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weights.shape}; X has {n_samples} rows.")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight must contain finite, non-negative weights that are not all zero.")
    if (weights == weights[0]).all():
        return None
    return weights * (n_samples / weights.sum())
