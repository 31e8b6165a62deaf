"""Base classes of the estimators: translation of parameters to the engine, fitting, prediction."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import fields, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fmviz.choices import bound
from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.design import DTYPES, Design, augmented
from fmviz.engine.drive import Budget, chosen_solver
from fmviz.engine.errors import CollapseWarning, finite_number, one_of, whole_number
from fmviz.engine.outputs.drive import for_other_rows, iterate
from fmviz.engine.outputs.side_by_side import AnyProblem, build, certify, predict, union, why_empty
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Formulation
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.snapshot import Reason, Snapshot, Status
from fmviz.engine.solvers import SOLVERS, Solver, get_solver
from fmviz.engine.starts.informed import informed_solver
from fmviz.engine.starts.strengths import fill_strengths
from fmviz.engine.target import Target

from .fitting import (
    HeldOut,
    Memory,
    by_output,
    checked_data,
    drop_empty_features,
    restore_features,
    with_arrays,
)

Callback: TypeAlias = Callable[[Snapshot], Any]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState


class ModelEstimator(BaseEstimator):
    """A scikit-learn estimator of one of the engine's models.

    Subclasses define their `__init__`, check the parameters of their model and return its name in the
    registry and the engine's parameters in `_model_choice`, store a fit in `_store`, return the parameters
    that it was given in `_fitted_parameters` and the features that they use in `_used_features`. Their
    parameters are translated to the engine's in `_problem_arguments` alone.
    """

    # Parameters of some estimators only, with the values that the others pass to the engine.
    rank = 1
    regularizer_params = solver_params = random_state = None
    lambda_sparse: Any = 0.0
    init_scale: Any = 0.0
    dtype = "float64"

    # Parameters of the engine that are attributes, and so can be set by hand for a warm start.
    _settable: ClassVar[tuple[str, ...]] = ("P", "w", "intercept")
    _memory: Memory | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    def _shrinkage(self) -> float | None:
        """Return the engine's ``lambda_p``."""
        return self.lambda_p

    def _dummies(self) -> int:
        """Return the number of dummy features, always 1, that the model has besides the features of X."""
        return 0

    def _problem_arguments(self) -> dict[str, Any]:
        """Return the keywords of `Problem.build`, besides the data."""
        model, model_params = self._model_choice()
        values = bound(
            self.loss,
            self.regularizer,
            model,
            loss_param=self.loss_param,
            regularizer_params=self._mapping("regularizer_params"),
            model_params=model_params,
        )
        return {
            **values,
            "rank": self.rank,
            "lambda_w": self.lambda_w,
            "lambda_p": self._shrinkage(),
            "lambda_sparse": self.lambda_sparse,
            "fit_linear": self._switch("fit_linear"),
            "fit_intercept": self._switch("fit_intercept"),
        }

    def _budget(self) -> Budget:
        return Budget(
            epochs=whole_number("max_iter", self.max_iter, 1),
            tol=finite_number("tol", self.tol, low=0),
            certify_every=10,
        )

    def _switch(self, name: str) -> bool:
        value = getattr(self, name)
        if value not in (True, False):
            raise ValueError(f"{name} = {value!r} is neither True nor False.")
        return bool(value)

    def _mapping(self, name: str) -> dict[str, Any]:
        value = getattr(self, name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} = {value!r} must be a dict of parameter names and values, or None.")
        return dict(value)

    def _checked(self, X: Any, *y: Any, reset: bool = True, **checks: Any) -> Any:
        """Return X, or X and y, as arrays of finite numbers."""
        dtype = one_of("dtype", self.dtype, DTYPES)
        return checked_data(self, X, *y, reset=reset, dtype=dtype, **checks)

    def _problem(self, X: Any, target: Target, sample_weight: Any) -> AnyProblem:
        # The parameters are checked before the data.
        about = self._problem_arguments()
        design = Design(augmented(X, self._dummies()), self.dtype)
        return build(design, target, sample_weight=sample_weight, **about)

    def _drop_empty_features(self, X: Any) -> tuple[Any, np.ndarray | None]:
        about = self._problem_arguments()
        return drop_empty_features(X, about["model"], about["rank"], self._dummies())

    def _fit(self, X: Any, target: Target, sample_weight: Any, stratified: bool = False) -> None:
        """Fit to checked data; held-out rows are `stratified` by class on request."""
        warm, budget, rng = self._switch("warm_start"), self._budget(), generator(self.random_state)
        X, kept = (X, None) if warm else self._drop_empty_features(X)
        problem, size = self._completed(self._problem(X, target, sample_weight))
        held_out = None
        if self._switch("early_stopping"):
            fraction = finite_number("validation_fraction", self.validation_fraction, 0, 1)
            patience = whole_number("n_iter_no_change", self.n_iter_no_change, 1)
            problem, held_out = HeldOut.split(problem, fraction, patience, rng, stratified)
        solver = self._chosen_solver(problem)
        start, memory = self._start(problem, size, rng, warm), None
        if warm and self._memory is not None:
            memory = self._memory.at(problem, solver, start)
        final = self._run(problem, solver, budget, start, rng, memory, held_out, kept)
        self._memory = (
            Memory.of(problem, solver, self._fitted_parameters(), final) if warm and final else None
        )

    def _fit_part(self, X: Any, target: Target, sample_weight: Any) -> None:
        """Make an epoch on a checked part of the rows."""
        if self._switch("early_stopping"):
            raise ValueError(
                "early_stopping = True is for fit, which holds out some of its rows; partial_fit sees a part "
                "of the rows at a time. Set early_stopping=False, and look at the loss on rows of your own."
            )
        rng, solver = generator(self.random_state), self._part_solver()
        problem, size = self._completed(self._problem(X, target, sample_weight), self._memory is None)
        start, memory = self._start(problem, size, rng, True), None
        if self._memory is not None:
            memory = self._memory.on_other_rows(solver)
        final = self._run(problem, solver, Budget(epochs=1, tol=0.0), start, rng, memory)
        self._memory = Memory(solver.name, "", for_other_rows(solver, final)) if final else None

    def _part_solver(self) -> Solver:
        """Return the solver of `partial_fit`; ValueError where there is none."""
        about, settings = self._problem_arguments(), self._mapping("solver_params")
        solver = get_solver("psgd" if self.solver == "auto" else self.solver, settings)
        if not solver.takes_parts:
            able = ", ".join(candidate.name for candidate in SOLVERS.values() if candidate.takes_parts)
            raise ValueError(
                f"partial_fit gives a part of the rows at a time, and solver = {solver.name!r} needs all of "
                f"them at every step; choose one of {able}, or call fit."
            )
        formulation = Formulation.build(about["model"], about["penalty"], about["loss"], about["rank"])
        if (reason := solver.why_not(formulation)) is not None:
            raise ValueError(reason)
        return solver

    def _completed(self, problem: AnyProblem, refresh: bool = True) -> tuple[AnyProblem, Any]:
        """Fill in strengths that are None; return the problem and the size of the start.

        They are computed from the data, or without `refresh` those of the last fit, for each output.
        """
        return problem, finite_number("init_scale", self.init_scale, low=0)

    def _chosen_solver(self, problem: AnyProblem) -> Solver:
        return chosen_solver(problem, self.solver, self._mapping("solver_params"))

    def _cold_start(self, problem: AnyProblem, size: Any, rng: np.random.Generator) -> Parameters:
        return problem.start(size, rng)

    def _start(self, problem: AnyProblem, size: Any, rng: np.random.Generator, warm: bool) -> Parameters:
        if not warm:
            return self._cold_start(problem, size, rng)
        start = problem.start(size, rng)
        names = [name for name in self._settable if hasattr(self, f"{name}_")]
        if hasattr(self, "_fitted_model"):
            start = with_arrays(start, self._fitted_parameters(), 0)
            # The others are set already, or include terms of dummy features.
            names = [name for name in names if name == "P"]
        return with_arrays(start, {name: getattr(self, f"{name}_") for name in names}, self._dummies())

    def _run(
        self,
        problem: AnyProblem,
        solver: Solver,
        budget: Budget,
        start: Parameters,
        rng: np.random.Generator,
        memory: Mapping[str, Any] | None = None,
        held_out: HeldOut | None = None,
        kept: np.ndarray | None = None,
    ) -> dict[str, Any]:
        """Run the solver and store the result, 0 where not `kept`; return its final state, if any."""
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback = {self.callback!r} must be a function of a snapshot, or None.")
        every = (
            int(self.verbose) if isinstance(self.verbose, bool) else whole_number("verbose", self.verbose, 0)
        )
        resume = None
        if memory is not None:
            # The generator may be the user's, and the solver sets its state.
            resume, rng = Checkpoint(0, 0.0, float("nan"), memory), deepcopy(rng)
        final: dict[str, Any] = {}
        snapshots = iterate(problem, solver, budget, start=start, rng=rng, resume=resume, leave=final.update)
        records = []
        for snapshot in snapshots:
            enough = None
            if held_out is not None:
                snapshot = held_out.add_validation_loss(snapshot)
                enough = held_out.why_stop(snapshot)
            if self.callback is not None and self.callback(snapshot):
                enough = f"Stopped by the callback after {snapshot.epoch:,} epochs."
            if enough is not None and snapshot.status is None:
                snapshots.close()
                residual = certify(problem, snapshot.parameters)
                snapshot = replace(snapshot, certificate=residual, status=Status(Reason.STOPPED, enough))
            records.append(snapshot.record())
            if every and (snapshot.epoch % every == 0 or snapshot.status is not None):
                print(_line(snapshot))
            if snapshot.status is not None:
                break
        end = snapshot if held_out is None else held_out.best_of(problem, snapshot)
        assert end.status is not None, "the last snapshot carries the status"
        if every:
            print(end.status.message)
        unfinished = budget.tol > 0 and end.status.reason in (Reason.EPOCHS, Reason.STALLED)
        if unfinished or end.status.reason is Reason.DIVERGED:
            warnings.warn(end.status.message, ConvergenceWarning, stacklevel=4)
        if end.status.converged and (why := self._why_empty(problem, end.parameters)) is not None:
            warnings.warn(why, CollapseWarning, stacklevel=4)
        # For predictions: parameters may have changed since.
        self._fitted_model, self._fitted_loss = problem.model, problem.loss
        # Predictions need labels, but no values.
        self._fitted_target = replace(problem.target, values=problem.target.values[:0])
        self._fitted_dummies = self._dummies()
        self._store_outputs(restore_features(end, problem.model, kept, self.n_features_in_))
        self._records = records
        self.certificate_ = end.certificate
        self.status_ = end.status
        self.n_iter_ = snapshot.epoch
        beyond = end.epoch < snapshot.epoch or end.status.reason is Reason.DIVERGED
        return {} if beyond else final

    def _why_empty(self, problem: AnyProblem, end: Parameters) -> str | None:
        """Return why a fit ended without interactions, None where it did not."""
        return why_empty(problem, end)

    def _store_outputs(self, end: Snapshot) -> None:
        """Store the result of a run with any number of outputs, with attributes of several stacked."""
        if (m := end.parameters.n_machines) is None:
            self._store(end)
            return
        views = [self._view(replace(end, parameters=end.parameters.of_output(c))) for c in range(m)]
        used = self._view(replace(end, parameters=union(self._fitted_model, end.parameters)))
        for name in vars(used).keys() - self._unfitted().keys():
            each = [getattr(view, name) for view in views]
            setattr(self, name, getattr(used, name) if "used" in name else _stacked(each))

    def _unfitted(self) -> dict[str, Any]:
        """Return the attributes except those that `_store` sets."""
        fixed = ("classes_", "n_features_in_", "feature_names_in_")
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_") or name in fixed}
        return {name: value for name, value in kept.items() if name != "_parameters"}

    def _view(self, end: Snapshot) -> Self:
        """Return an estimator of one output, with the result of its run."""
        view = copy(self)
        view.__dict__ = self._unfitted()
        view._store(end)
        return view

    def _of_output(self, output: Any) -> Self:
        """Return the estimator of one output, by its label or number; itself for a single output."""
        check_is_fitted(self)
        parameters = self._fitted_parameters()
        if parameters.n_machines is None and output is None:
            return self
        c = self._fitted_target.output(output)
        if parameters.n_machines is None:
            return self
        selected = parameters.of_output(c)
        record = dict.fromkeys((field.name for field in fields(Snapshot)), float("nan"))
        record["used_interactions"] = self._fitted_model.used_interactions(selected)
        # No other entry of the record is used.
        return self._view(Snapshot.of_record(record, selected))

    def _table(self, table: Callable[[Self], pd.DataFrame], output: Any) -> pd.DataFrame:
        """Return a table of one output, or of all outputs, concatenated and named in a first column."""
        check_is_fitted(self)
        if output is not None or self._fitted_parameters().n_machines is None:
            return table(self._of_output(output))
        return by_output({name: table(self._of_output(name)) for name in self._fitted_target.output_names})

    def _store(self, end: Snapshot) -> None:
        """Store the result of a run with one output as attributes."""
        self.w_ = end.parameters.w
        self.intercept_ = end.parameters.intercept
        self.used_features_ = self._used_features()
        self.n_used_interactions_ = end.used_interactions

    def _predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            design = Design(augmented(X, self._fitted_dummies), self.dtype)
            f = predict(self._fitted_model, design, self._fitted_parameters())
        if not np.isfinite(f).all():
            raise ValueError(
                "A prediction overflows; X holds larger values than the model can take. Scale X."
            )
        return f

    @property
    def history_(self) -> pd.DataFrame:
        """One row per snapshot: epoch, objective and its parts, seconds, as in `Snapshot.record`."""
        check_is_fitted(self)
        return pd.DataFrame.from_records(self._records)

    def _names(self) -> np.ndarray:
        """Return the names of the features, or their indices where they have none."""
        names = getattr(self, "feature_names_in_", None)
        return np.arange(self.w_.shape[-1]) if names is None else names


class FactorEstimator(ModelEstimator):
    """An estimator of a model with factors P under a regularizer."""

    def _store(self, end: Snapshot) -> None:
        self.P_ = end.parameters.P
        super()._store(end)

    def _fitted_parameters(self) -> Parameters:
        return Parameters(self.P_, self.w_, self.intercept_)

    def _used_features(self) -> np.ndarray:
        return np.flatnonzero(self.P_.any(axis=1))


def _stacked(each: Sequence[Any]) -> Any:
    """Stack an attribute of several outputs on a new first axis."""
    first = each[0]
    if isinstance(first, Parameters):
        return Parameters.stacked(each)
    if isinstance(first, dict):
        return {name: _stacked([item[name] for item in each]) for name in first}
    return np.stack(each)


def takes_parts(estimator: ModelEstimator) -> bool:
    """Return True where `partial_fit` has a solver; else raise ValueError with the reason."""
    estimator._part_solver()
    return True


def _line(snapshot: Snapshot) -> str:
    """Return the line that `verbose` prints for a snapshot."""
    parts = [
        f"Epoch {snapshot.epoch:,}: objective {snapshot.objective:.6g}",
        f"{snapshot.used_interactions:,} interactions of {snapshot.used_features:,} features",
        *(f"{name.replace('_', ' ')} {value:.6g}" for name, value in snapshot.metrics.items()),
    ]
    return ", ".join(parts)


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator from a random state as in scikit-learn, or raise ValueError."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state = {random_state!r} must be None, a whole number from 0 up, or a numpy generator."
        ) from None


class StrengthsOfData(ModelEstimator):
    """An estimator whose strengths and init_scale, where None, are derived from the data."""

    _strengths: ClassVar[Mapping[str, str]] = {name: name for name in STRENGTHS}
    """The estimator's names of the engine's strengths."""

    def _problem_arguments(self) -> dict[str, Any]:
        about = super()._problem_arguments()
        return {name: 0.0 if value is None else value for name, value in about.items()}

    def _completed(self, problem: AnyProblem, refresh: bool = True) -> tuple[AnyProblem, Any]:
        given = dict.fromkeys(STRENGTHS, 0.0) | {
            name: getattr(self, own) for name, own in self._strengths.items()
        }
        if not refresh:
            given |= {
                name: getattr(self, f"{own}_")
                for name, own in self._strengths.items()
                if hasattr(self, f"{own}_")
            }
        size = None if self.init_scale is None else finite_number("init_scale", self.init_scale, low=0)
        values = {
            name: np.broadcast_to(np.array(value, dtype=object), len(problem.machines))
            for name, value in {**given, "init_scale": size}.items()
        }
        filled = [
            fill_strengths(machine, {name: value[c] for name, value in values.items()})
            for c, machine in enumerate(problem.machines)
        ]
        problem = problem.with_machines([machine for machine, _ in filled])
        for name, own in self._strengths.items():
            setattr(self, f"{own}_", getattr(problem, name))
        return problem, problem.joined([size for _, size in filled])

    def _chosen_solver(self, problem: AnyProblem) -> Solver:
        return informed_solver(super()._chosen_solver(problem), problem)


class TraceNormStrengths(StrengthsOfData):
    """An estimator whose λ_p is the strength of the trace norm of W."""

    _strengths: ClassVar[Mapping[str, str]] = {"lambda_w": "lambda_w", "lambda_p": "lambda_trace"}

    def _shrinkage(self) -> float:
        return 0.0 if self.lambda_trace is None else finite_number("lambda_trace", self.lambda_trace, low=0)
