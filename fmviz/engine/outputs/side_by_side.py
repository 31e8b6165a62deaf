"""Problems with several outputs: a single-output problem for each, over a common design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ..certificates.stationarity import certify as certify_one
from ..design import Design
from ..models import ConvexFM, Model, get_model
from ..parameters import Parameters
from ..problem import Formulation, Problem
from ..starts import informed, zero_threshold
from ..starts.strengths import References
from ..starts.zero_threshold import ZeroThreshold
from ..target import Target


@dataclass(frozen=True, eq=False)
class SideBySide(Formulation):
    """A problem for every output of a target: classes against the rest, levels, labels or numbers.

    The objective is the mean of those of the outputs. Parameters are stacked: every array has a first axis of
    m, see `fmviz.engine.parameters.Parameters.stacked`; predictions have shape (N, m).

    Attributes
    ----------
    model, penalty, loss
        See `Formulation`.
    target : Target
        All m outputs.
    machines : tuple of Problem
        One for each output, with the same design, weights and settings. Their strengths may differ.
    """

    target: Target
    machines: tuple[Problem, ...]

    @property
    def n_machines(self) -> int:
        """The number m of outputs."""
        return len(self.machines)

    def with_machines(self, each: Sequence[Problem]) -> SideBySide:
        return replace(self, machines=tuple(each))

    def split(self, parameters: Parameters) -> tuple[Parameters, ...]:
        return tuple(parameters.of_output(c) for c in range(self.n_machines))

    def stacked(self, each: Sequence[Parameters]) -> Parameters:
        return Parameters.stacked(each)

    def joined(self, values: Sequence[Any]) -> Any:
        return np.array(values)

    @property
    def design(self) -> Design:
        """X, shape (N, d)."""
        return self.machines[0].design

    @property
    def rank(self) -> int:
        """Columns of every P."""
        return self.machines[0].rank

    @property
    def fit_linear(self) -> bool:
        """Whether there is w."""
        return self.machines[0].fit_linear

    @property
    def fit_intercept(self) -> bool:
        """Whether there is a bias."""
        return self.machines[0].fit_intercept

    @property
    def y(self) -> np.ndarray:
        """The values of the target, shape (N,) or (N, m)."""
        return self.target.values

    @property
    def lambda_w(self) -> Any:
        """λ_w, a number, or one for each output, shape (m,)."""
        return self._strength("lambda_w")

    @property
    def lambda_p(self) -> Any:
        """λ_p, a number, or one for each output, shape (m,)."""
        return self._strength("lambda_p")

    @property
    def lambda_sparse(self) -> Any:
        """λ, a number, or one for each output, shape (m,)."""
        return self._strength("lambda_sparse")

    def _strength(self, name: str) -> Any:
        values = [getattr(problem, name) for problem in self.machines]
        return values[0] if len(set(values)) == 1 else self.joined(values)

    def at(self, **strengths: Any) -> SideBySide:
        """Return the problems with other strengths: one number for all outputs, or one for each."""
        each = {
            name: np.broadcast_to(value, (self.n_machines,)).tolist() for name, value in strengths.items()
        }
        return self.with_machines(
            [
                problem.at(**{name: values[c] for name, values in each.items()})
                for c, problem in enumerate(self.machines)
            ]
        )

    def of_rows(self, rows: np.ndarray) -> SideBySide:
        """Return the problems of some rows, given by their indices."""
        first = self.machines[0].of_rows(rows)
        problems = (
            replace(
                problem,
                design=first.design,
                sample_weight=first.sample_weight,
                target=replace(problem.target, values=problem.target.values[rows]),
            )
            for problem in self.machines
        )
        target = replace(self.target, values=self.target.values[rows])
        return replace(self, target=target, machines=tuple(problems))

    def start(self, init_scale: float | Sequence[float], rng: np.random.Generator) -> Parameters:
        """Return starting points of a common size, or of a size for each output."""
        sizes = np.broadcast_to(init_scale, (self.n_machines,)).tolist()
        return self.stacked(
            [problem.start(size, rng) for problem, size in zip(self.machines, sizes, strict=True)]
        )

    def predict(self, parameters: Parameters) -> np.ndarray:
        """Return all outputs for the training rows, shape (N, m)."""
        return predict(self.model, self.design, parameters)

    def empirical_risk(self, f: np.ndarray) -> float:
        """Return the mean of the empirical risks of the outputs; f has shape (N, m)."""
        return float(np.mean([problem.empirical_risk(f[:, c]) for c, problem in enumerate(self.machines)]))

    def risk(self, parameters: Parameters) -> float:
        """Return the empirical risk at the parameters; infinity where a prediction overflows."""
        each = zip(self.machines, self.split(parameters), strict=True)
        return float(np.mean([problem.risk(part) for problem, part in each]))

    def on_rows(self, X: Any, y: Any) -> SideBySide:
        """Return the problems of other rows, all of weight 1; y has values like those of the target."""
        design = X if isinstance(X, Design) else Design(X)
        target = replace(self.target, values=np.array(y, dtype=np.float64))
        each = zip(self.machines, target.outputs(), strict=True)
        problems = tuple(problem.on_rows(design, output.values) for problem, output in each)
        return replace(self, target=target, machines=problems)


AnyProblem: TypeAlias = Problem | SideBySide


def build(X: Any, y: Any, **about: Any) -> AnyProblem:
    """Return the problem of a target, or of each of its outputs where the model has a single output.

    Parameters
    ----------
    X : (N, d) array_like, sparse matrix or Design
        The features; prepared once.
    y : (N,) or (N, m) array_like or Target
        The target.
    **about
        The other keywords of `Problem.build`.

    Raises
    ------
    ValueError
        As `Problem.build` does.
    """
    target = Target.of(y)
    single = target.values.ndim == 1 and target.n_outputs == 1
    if single or get_model(about.get("model", "fm")).multi_output:
        return Problem.build(X, target, **about)
    design = X if isinstance(X, Design) else Design(X)
    if len(target.values) != design.n_samples:
        raise ValueError(
            f"y has shape {target.values.shape}; X has {design.n_samples} rows, so y must have as many."
        )
    first, *others = target.outputs()
    problem = Problem.build(design, first, **about)
    problems = (problem, *(replace(problem, target=output) for output in others))
    return SideBySide(problem.model, problem.penalty, problem.loss, target, problems)


def predict(model: Model, design: Design, parameters: Parameters) -> np.ndarray:
    """Return f for every row, shape (N,), of stacked parameters for every output, shape (N, m)."""
    if parameters.n_machines is None:
        return model.predict(design, parameters)
    each = [model.predict(design, parameters.of_output(c)) for c in range(parameters.n_machines)]
    return np.column_stack(each)


def union(model: Model, parameters: Parameters) -> Parameters:
    """Return parameters of one output that use a feature or an interaction where some output uses it.

    The columns of all machines are concatenated; matrices W are summed in absolute value.
    """
    if (m := parameters.n_machines) is None:
        return parameters
    _, d, columns = parameters.P.shape
    # Columns for products of different orders, and the factors of a tensor, come in blocks.
    blocks = max(1, model.shapes(1, 1)["P"][1])
    P = parameters.P.reshape(m, d, blocks, columns // blocks).transpose(1, 2, 0, 3).reshape(d, m * columns)
    others = {name: np.abs(parameters[name]).sum(axis=0) for name in ("w", "intercept")}
    if parameters.W is not None:
        others["W"] = np.abs(parameters.W).sum(axis=0)
    if parameters.coefficients is not None:
        others["coefficients"] = parameters.coefficients.ravel()
    return Parameters(P, **others)


def certify(problem: AnyProblem, parameters: Parameters, thorough: bool = True) -> float:
    """Return the largest of the certificates of the outputs; see `certify` in `certificates.stationarity`."""
    each = zip(problem.machines, problem.split(parameters), strict=True)
    return max(certify_one(part, own, thorough) for part, own in each)


def outputs_in_words(target: Target, which: Sequence[int], most: int = 3) -> str:
    """Return the names of some outputs of a target: "Output 'a'", "Outputs 'a', 'b' and 3 more"."""
    names = target.output_names
    quoted = ", ".join(repr(names[c]) for c in which[:most])
    more = f" and {len(which) - most} more" if len(which) > most else ""
    return f"Output{'s' if len(which) > 1 else ''} {quoted}{more}"


def contrast(model: Model, parameters: Parameters, output: int, baseline: int) -> tuple[Model, Parameters]:
    """Return f_output − f_baseline as a machine with a single output.

    Parameters
    ----------
    model : Model
        A model of second order.
    parameters : Parameters
        Parameters of several outputs.
    output, baseline : int
        The numbers of the two outputs.

    Raises
    ------
    ValueError
        If the model has products of other orders.
    """
    (first, left), (_, right) = (model.of_output(parameters, c) for c in (output, baseline))
    linear, bias = left.w - right.w, left.intercept - right.intercept
    if left.W is not None:
        return first, Parameters.of_weights(left.W - right.weights, linear, bias)
    if not (first.plain or isinstance(first, ConvexFM)):
        raise ValueError(
            f"Differences of outputs are read for machines of pairs; this one is a "
            f"{model.label[0].lower()}{model.label[1:]}. Read one output at a time."
        )
    single = first if isinstance(first, ConvexFM) else ConvexFM(diagonal=False)
    if left.P is right.P:
        # A common basis: equal weights of pairs cancel.
        return single, Parameters(left.P, linear, bias, coefficients=left.multipliers - right.multipliers)
    P = np.hstack([left.P, right.P])
    return single, Parameters(
        P, linear, bias, coefficients=np.concatenate([left.multipliers, -right.multipliers])
    )


def informed_start(
    problem: AnyProblem, init_scale: Any, rng: np.random.Generator, shrunk: bool = False
) -> Parameters:
    """Return `fmviz.engine.starts.informed.informed_start` of each output, of a common size or its own."""
    sizes = np.broadcast_to(init_scale, (len(problem.machines),)).tolist()
    each = zip(problem.machines, sizes, strict=True)
    return problem.stacked([informed.informed_start(part, size, rng, shrunk) for part, size in each])


def linear_fit(problem: AnyProblem, rough: bool = False, start: Parameters | None = None) -> Parameters:
    """Return `fmviz.engine.starts.zero_threshold.linear_fit` of every output."""
    near = (None,) * len(problem.machines) if start is None else problem.split(start)
    each = zip(problem.machines, near, strict=True)
    return problem.stacked([zero_threshold.linear_fit(part, rough, at) for part, at in each])


def references(problem: AnyProblem) -> References:
    """Return the largest reference strengths of the outputs."""
    return References(*problem.machines)


def thresholds(problem: AnyProblem) -> list[ZeroThreshold]:
    """Return the interval that contains λ_max for every output, for several by quick bounds."""
    tight = len(problem.machines) == 1
    return [zero_threshold.zero_threshold(part, tight=tight) for part in problem.machines]


def why_empty(problem: AnyProblem, end: Parameters) -> str | None:
    """Return why a fit of a model with interactions ended with P = 0 in some output, or None.

    Constant targets need no interactions. See `fmviz.engine.starts.informed.why_empty`.
    """
    each = zip(problem.machines, problem.split(end), strict=True)
    reasons = [
        None if part.at_constant else informed.why_empty(part, parameters) for part, parameters in each
    ]
    if problem.n_machines is None:
        return reasons[0]
    empty = [c for c, why in enumerate(reasons) if why is not None]
    return f"{outputs_in_words(problem.target, empty)}: {reasons[empty[0]]}" if empty else None
