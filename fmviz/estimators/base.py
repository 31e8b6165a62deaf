"""Base class of the estimators: settings of the engine, fits, predictions, interactions."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.certificates.stationarity import certify
from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.design import Design, augmented
from fmviz.engine.errors import CollapseWarning, finite_number, whole_number
from fmviz.engine.fit import Budget, Fit
from fmviz.engine.interactions.weights import PairWeights
from fmviz.engine.losses import get_loss
from fmviz.engine.models import ConvexFM, Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.parts import Parts
from fmviz.engine.penalties import get_penalty
from fmviz.engine.problem import Formulation, Problem, predictions
from fmviz.engine.schedule import STRENGTHS, strengths_in_words
from fmviz.engine.snapshot import Reason, Snapshot, Status
from fmviz.engine.solvers import SOLVERS, Solver, get_solver
from fmviz.engine.starts.informed import why_empty
from fmviz.engine.stopping import HeldOut
from fmviz.engine.target import Target
from fmviz.engine.threads import Threads
from fmviz.paths.scaling import Scale

from .fitting import (
    Memory,
    SparseInput,
    by_output,
    checked_data,
    drop_empty_features,
    held_out_rows,
    key_of,
    merged_rows,
    restore_features,
    with_arrays,
)
from .interactions import PRODUCTS, OutputFit, attributes, indices_of, products_of, ranked

Callback: TypeAlias = Callable[[Snapshot], Any]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState


class ModelEstimator(SparseInput, ABC):
    """Scikit-learn estimator of one of the engine's models.

    Subclasses define `__init__` and `_model`, which returns the model with its settings. `_setting` alone
    translates their other settings to those of the engine.
    """

    # Settings that only some estimators have, with the values that the others pass to the engine.
    random_state = None
    lambda_p: Any = 0.0
    lambda_sparse: Any = 0.0
    init_scale: Any = 0.0
    dtype = "float64"
    n_jobs: int | None = None

    _memory: Memory | None = None
    _stored: Collection[str] = ()
    # The interval of certificates in epochs.
    _certify_every = 10
    # Whether to merge equal rows, for solvers whose result depends on rounding.
    _merges_rows = False

    @abstractmethod
    def _model(self) -> Model:
        """Return the model defined by the settings."""

    def _setting(self, name: str) -> Any:
        """Return a setting by its name in the engine; None for a strength that is derived from the data."""
        return getattr(self, name)

    def _dummies(self) -> int:
        """Return the number of dummy features (constant 1) that the model adds to those of X."""
        return 0

    def _problem_arguments(self) -> dict[str, Any]:
        """Return the keywords of `Problem.build`, besides the data."""
        strengths = {name: self._setting(name) for name in STRENGTHS}
        return {
            "loss": get_loss(self.loss),
            "penalty": get_penalty(self._setting("regularizer")),
            "model": self._model(),
            "rank": self._setting("rank"),
            **{name: 0.0 if value is None else value for name, value in strengths.items()},
            "fit_linear": self._switch("fit_linear"),
            "fit_intercept": self._switch("fit_intercept"),
            "mapper": self._mapper(),
        }

    def _mapper(self) -> Threads:
        """Return the threads over blocks of rows."""
        return Threads.of(self.n_jobs)

    def _budget(self) -> Budget:
        return Budget(
            epochs=whole_number("max_iter", self._setting("max_iter"), 1),
            tol=finite_number("tol", self._setting("tol"), low=0),
            certify_every=self._certify_every,
        )

    def _switch(self, name: str) -> bool:
        value = getattr(self, name)
        if value not in (True, False):
            raise ValueError(f"{name} = {value!r} is neither True nor False.")
        return bool(value)

    def _problem(
        self, X: Any, target: Target, sample_weight: Any, all_features: bool = True, centred: bool = True
    ) -> tuple[Problem, np.ndarray | None]:
        """Return the problem and the indices of its features in X, None for `all_features`.

        The columns are scaled by this data, or with `all_features`, which continued fits use, by the existing
        scale. With `centred`, the mean of the target is subtracted.
        """
        # The settings are checked before the data.
        about, n_dummies, kept = self._problem_arguments(), self._dummies(), None
        d, omega = X.shape[1], about["penalty"]
        if omega.settings.get("groups"):
            about["penalty"] = omega.for_features(range(d)).of_features(np.arange(d + n_dummies))
        elif not all_features:
            # Groups are weighted by their sizes, empty features included.
            X, kept = drop_empty_features(X, about["model"], about["rank"], n_dummies)
        if self._merges_rows and not isinstance(X, Parts):
            X, target, sample_weight = merged_rows(X, target, sample_weight)
        design = X
        if not isinstance(X, Parts):
            design = Design(augmented(X, n_dummies), self.dtype)
        elif n_dummies:
            raise ValueError(f"augment = True adds features to X, which is in parts; add {n_dummies} of 1.")
        elif X.mapper is not None:
            about["mapper"] = X.mapper
        problem = Problem.build(design, target, sample_weight=sample_weight, **about)
        if centred and self.standardize:
            problem = problem.centred()
        goes_on = all_features and hasattr(self, "center_")
        scale = self._scale if goes_on else Scale.of_problem(problem, self.standardize, n_dummies)
        if not goes_on:
            self._scale = scale if kept is None else scale.spread(kept, self.n_features_in_)
        return scale.apply_to(problem, n_dummies), kept

    def _fit(self, X: Any, target: Target, sample_weight: Any, stratified: bool = False) -> None:
        """Fit to checked data; held-out rows can be `stratified` by class."""
        warm, budget, rng = self._switch("warm_start"), self._budget(), generator(self.random_state)
        problem, kept = self._problem(X, target, sample_weight, all_features=warm)
        completed, begin = self._completed(problem.reference)
        strengths = {name: getattr(completed, name) for name in STRENGTHS}
        problem = completed if problem.design.in_memory else problem.at(**strengths)
        held_out = None
        if self._switch("early_stopping"):
            fraction = finite_number("validation_fraction", self.validation_fraction, 0, 1)
            patience = whole_number("n_iter_no_change", self.n_iter_no_change, 1)
            held_out = held_out_rows(problem, fraction, patience, rng, stratified)
            problem = held_out.training
        names = "_fitted_model", *(f"{name}_" for name in problem.shapes)
        has_start = warm and any(hasattr(self, name) for name in names)
        fit = self._begin(problem, begin, budget, rng, has_start)
        if warm and self._memory is not None and self._memory.key == key_of(fit):
            fit = fit.resume(self._memory.state)
        final = self._run(fit, held_out, kept)
        self._memory = None
        if warm and final:
            end = self._fitted_parameters().shifted(-problem.target.center)
            self._memory = Memory(fit.solver.name, key_of(replace(fit, start=end)), final)

    def _fit_part(self, X: Any, target: Target, sample_weight: Any) -> None:
        """Run an epoch on a checked part of the rows."""
        if self._switch("early_stopping"):
            raise ValueError(
                "early_stopping = True is for fit, which holds out some of its rows; partial_fit sees a part "
                "of the rows at a time. Set early_stopping=False, and look at the loss on rows of your own."
            )
        rng, solver = generator(self.random_state), self._part_solver()
        if not hasattr(self, "center_"):
            # The mean and deviation of a part are not those of all rows.
            self._scale = Scale(np.zeros(X.shape[1]), np.ones(X.shape[1]))
        # Nor is the mean of its target.
        problem, _ = self._problem(X, target, sample_weight, centred=False)
        problem, begin = self._completed(problem, self._memory is None)
        start, m = self._warm_start(problem, problem.start(begin, rng)), problem.n_machines
        fit = Fit.of(problem, solver, Budget(epochs=1, tol=0.0), start=start, rng=rng)
        if self._memory is not None and self._memory.solver == solver.name and self._memory.state:
            fit = fit.resume(self._memory.state.for_other_rows(solver, m))
        final = self._run(fit)
        state = None if final is None else final.for_other_rows(solver, m)
        self._memory = None if final is None else Memory(solver.name, "", state)

    def _part_solver(self) -> Solver:
        """Return the solver of `partial_fit`; raise ValueError if there is none."""
        solver = get_solver("psgd" if self.solver == "auto" else self.solver)
        if not solver.takes_parts:
            able = ", ".join(candidate.name for candidate in SOLVERS.values() if candidate.takes_parts)
            raise ValueError(
                f"partial_fit processes part of the rows at a time, but solver = {solver.name!r} needs all "
                f"rows at every step; choose one of {able}, or call fit."
            )
        about = self._problem_arguments()
        formulation = Formulation.build(about["model"], about["penalty"], about["loss"], about["rank"])
        if (reason := solver.why_not(formulation)) is not None:
            raise ValueError(reason)
        return solver

    @abstractmethod
    def _completed(self, problem: Problem, refresh: bool = True) -> tuple[Problem, Any]:
        """Fill in strengths that are None; return the problem and its start, or the scale of a random one.

        They are computed from the data for each output or, without `refresh`, taken from the last fit.
        """

    def _begin(
        self, problem: Problem, begin: Any, budget: Budget, rng: np.random.Generator, warm: bool
    ) -> Fit:
        """Return the fit from the last one if `warm`, otherwise from the start of `_completed`."""
        start = begin if isinstance(begin, Parameters) else problem.start(begin, rng)
        if warm:
            start = self._warm_start(problem, start)
        return Fit.of(problem, self.solver, budget, start=start, rng=rng)

    def _warm_start(self, problem: Problem, start: Parameters) -> Parameters:
        """Return the start with the arrays of the last fit, or those set by hand."""
        start = start.shifted(problem.target.center)
        names = [*start]
        if hasattr(self, "_fitted_model"):
            if self._fitted_model.name != problem.model.name:
                raise ValueError(
                    f"A warm start of the model {problem.model.name!r} from a fit of "
                    f"{self._fitted_model.name!r} is not possible: set warm_start=False, or fit a clone."
                )
            start = with_arrays(start, self._fitted_parameters(), 0)
            # The others are set already, or include terms of dummy features.
            names = ["P"]
        by_hand = {name: self._array(name) for name in names if hasattr(self, f"{name}_")}
        return with_arrays(start, by_hand, self._dummies()).shifted(-problem.target.center)

    def _run(
        self, fit: Fit, held_out: HeldOut | None = None, kept: np.ndarray | None = None
    ) -> Checkpoint | None:
        """Run a fit and store the result, 0 for features not `kept`; return its final state, if any."""
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback = {self.callback!r} must be a function of a snapshot, or None.")
        every = (
            int(self.verbose) if isinstance(self.verbose, bool) else whole_number("verbose", self.verbose, 0)
        )
        if fit.checkpoint is not None:
            # A resuming solver sets the state of the generator, which may be the user's.
            fit = replace(fit, rng=deepcopy(fit.rng))
        problem, records = fit.problem, []
        final: list[Checkpoint] = []
        snapshots = fit.epochs(leave=lambda now, _: final.append(now))
        for snapshot in snapshots:
            enough = None
            if held_out is not None:
                snapshot, enough = held_out.after(snapshot)
            if self.callback is not None and self.callback(_uncentred(problem, snapshot)):
                enough = f"Stopped by the callback after {snapshot.epoch:,} epochs."
            if enough is not None and snapshot.status is None:
                residual = certify(problem, snapshot.parameters)
                snapshot = replace(snapshot, certificate=residual, status=Status(Reason.STOPPED, enough))
            records.append(snapshot.record())
            if every and (snapshot.epoch % every == 0 or snapshot.status is not None):
                print(_line(snapshot))
            if snapshot.status is not None:
                break
        snapshots.close()
        end = snapshot if held_out is None else held_out.best_of(problem, snapshot)
        assert end.status is not None, "the last snapshot carries the status"
        if every:
            print(end.status.message)
        unfinished = fit.budget.tol > 0 and end.status.reason in (Reason.EPOCHS, Reason.STALLED)
        if unfinished or end.status.reason is Reason.DIVERGED:
            warnings.warn(end.status.message, ConvergenceWarning, stacklevel=4)
        if end.status.converged and (why := self._why_empty(problem, end.parameters)) is not None:
            warnings.warn(why, CollapseWarning, stacklevel=4)
        self._records = records
        total = restore_features(_uncentred(problem, end), problem.model, kept, self.n_features_in_)
        self._store(problem, total)
        strengths = strengths_in_words({name: getattr(problem, name) for name in STRENGTHS})
        self._described = {
            "Model": f"{problem.model.label}, rank {problem.rank}",
            "Regularizer": f"{problem.penalty.label}; {strengths}",
            "Solver": fit.solver.label,
            **end.described(),
        }
        self.certificate_ = end.certificate
        self.status_ = end.status
        self.n_iter_ = snapshot.epoch
        beyond = end.epoch < snapshot.epoch or end.status.reason is Reason.DIVERGED
        return None if beyond or not final[0].memory else final[0]

    def _why_empty(self, problem: Problem, end: Parameters) -> str | None:
        """Return why a fit ended without interactions, or None if it has some."""
        return why_empty(problem, end)

    def _store(self, problem: Problem, end: Snapshot) -> None:
        """Store the result of a run as attributes; several outputs get a first axis."""
        self._keep(problem, end.parameters)
        total, m = problem.model.union(end.parameters), end.parameters.n_machines
        result = {"n_used_interactions": end.used_interactions, **self._attributes(total)}
        if m is not None:
            each = [self._attributes(end.parameters.of_output(c)) for c in range(m)]
            own = [name for name in result if "used" not in name]
            result |= {name: _stacked([item[name] for item in each]) for name in own}
        for name in {*self._stored} - result.keys():
            delattr(self, f"{name}_")
        self._stored = (*result,)
        self.__dict__ |= {f"{name}_": value for name, value in result.items()}

    def _keep(self, problem: Problem, parameters: Parameters) -> None:
        """Store the state for predictions, since settings may change: target labels, but no values."""
        self._fitted_model, self._fitted_loss = problem.model, problem.loss
        self._fitted_penalty = problem.penalty
        self._fitted_target = replace(problem.target, values=problem.target.values[:0])
        self._fitted_dummies, self._parameters = self._dummies(), parameters

    def _attributes(self, parameters: Parameters) -> dict[str, Any]:
        """Return the attributes of a fit with one output, without the last underscore."""
        return attributes(self._fitted_model, parameters, self._fitted_dummies)

    def _fitted_parameters(self) -> Parameters:
        """Return the parameters of the fit, including later manual changes if there are no dummy features."""
        if self._fitted_dummies:
            return self._parameters
        own = (name for name in self._parameters if hasattr(self, f"{name}_"))
        return self._parameters.replace(**{name: self._array(name) for name in own})

    def _array(self, name: str) -> Any:
        """Return a parameter array from its attribute; for coefficients by order, those of the degree."""
        value = getattr(self, f"{name}_")
        return value[max(value)] if isinstance(value, dict) else value

    def fit_of(self, output: Any) -> OutputFit:
        """Return the fit of one output, by label or number; None selects a single output."""
        check_is_fitted(self)
        model, parameters = self._fitted_model, self._fitted_parameters()
        alone = output is None and model.n_outputs_of(parameters) == 1
        c = 0 if alone else self._fitted_target.output(output)
        return (*model.of_output(parameters, c), self._fitted_dummies, isinstance(model, ConvexFM))

    def interactions(
        self, top: int | None = None, order: int | None = None, output: Any = None
    ) -> pd.DataFrame:
        """Return the used products of features, largest |weight| first.

        The strengths λ and λ_p shrink weights towards 0, especially if there are few rows. Weights refer to
        the scaled columns and are therefore comparable: the contribution of a product to f when each of its
        features is one standard deviation above its mean.

        Parameters
        ----------
        top : int, optional
            The number of products to return; by default all used ones.
        order : int, optional
            The number of features in a product; by default the highest order of the model, 3 for all subsets.
        output : label or int, optional
            One of several outputs, by class or number; by default all are concatenated.

        Returns
        -------
        DataFrame
            For second-order models, columns ``feature_i`` and ``feature_j``, i < j, otherwise ``feature_1``,
            …, ``feature_m``, in feature order; by name if the training data had names, else by index. Then
            ``weight``: ⟨p_i, p_j⟩ or w_ij of a pair, otherwise the weight of the product in f; and, for
            products of the highest order (such as all pairs of second-order models), ``weight_in_units``, the
            weight of the product of the unscaled columns of X. At lower orders it depends on the larger
            products and is missing if columns are centred. Models with powers of features (polynomial
            networks and lifted models with the kernel "polynomial") also list products with repeated
            features. With several outputs, ``output`` is the first column.

        Raises
        ------
        ValueError
            If `top` is not a positive integer, the model has no such order or output, the search takes too
            long or its result needs too much memory; see `fmviz.Interactions.ranked`.
        """
        check_is_fitted(self)
        if output is None and self._fitted_model.n_outputs_of(self._parameters) > 1:
            names = self._fitted_target.output_names
            return by_output({name: self.interactions(top, order, name) for name in names})
        return ranked(self.fit_of(output), self.names(), top, order, self._scale)

    def interaction_weight(self, features: Sequence[Any], output: Any = None) -> float:
        """Return the weight of a product of distinct features, as ``weight`` in `interactions`.

        Parameters
        ----------
        features : sequence
            Two or more features, by name if the training data had names, or by index.
        output : label or int, optional
            One of several outputs, by class or number.

        Returns
        -------
        float
            0 if the model has no products of this order.

        Raises
        ------
        ValueError
            If there are fewer than two features, a feature is unknown or repeated, or the output does not
            exist.
        """
        fit, chosen = self.fit_of(output), indices_of(self.names(), features)
        if (products := products_of(fit, len(chosen)).get(len(chosen))) is None:
            return 0.0
        if isinstance(fit[0], PRODUCTS):
            return products.entry(chosen)
        return float(products.among(*np.array(chosen)[:, None])[0].item())

    @property
    def unit(self) -> str:
        """The unit of f: "log-odds" if the loss gives probabilities, "log mean" with a log link."""
        if self._fitted_loss.log_link:
            return "log mean"
        return "f" if self._fitted_loss.probability(np.zeros(1)) is None else "log-odds"

    def pair_weights(self, output: Any = None) -> PairWeights:
        """Return the weights of all pairs of features of one output; raise ValueError if f has no pairs."""
        orders = products_of(self.fit_of(output), 2)
        if 2 not in orders:
            raise ValueError(
                f"This model has no pairs: its products have {', '.join(map(str, orders))} features. "
                "interactions() lists them."
            )
        return orders[2]

    def _predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._scores(checked_data(self, X, reset=False))

    def _scores(self, X: Any) -> np.ndarray:
        """Return f of checked rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            design, mapper = self._scale.apply(X), self._mapper()
            if isinstance(X, Parts):
                mapper = X.mapper or mapper
            else:
                design = Design(augmented(design, self._fitted_dummies), self.dtype)
            f = predictions(self._fitted_model, design, self._fitted_parameters(), mapper)
        if not np.isfinite(f).all():
            raise ValueError("A prediction overflows because X has very large values. Scale X.")
        return f

    @property
    def history_(self) -> pd.DataFrame:
        """One row per snapshot: epoch, objective and its parts, seconds, as in `Snapshot.record`."""
        check_is_fitted(self)
        history = pd.DataFrame.from_records(self._records)
        history.attrs["regularizer"] = self._fitted_penalty.name
        return history


def _stacked(each: Sequence[Any]) -> Any:
    """Stack an attribute of several outputs on a new first axis."""
    if isinstance(each[0], dict):
        return {name: _stacked([item[name] for item in each]) for name in each[0]}
    return np.stack(each)


def _uncentred(problem: Problem, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with the mean of the target in the bias again."""
    return replace(snapshot, parameters=snapshot.parameters.shifted(problem.target.center))


def _line(snapshot: Snapshot) -> str:
    """Return the line printed by `verbose` for a snapshot."""
    parts = [
        f"Epoch {snapshot.epoch:,}: objective {snapshot.objective:.6g}",
        f"{snapshot.used_interactions:,} interactions of {snapshot.used_features:,} features",
        *(f"{name.replace('_', ' ')} {value:.6g}" for name, value in snapshot.metrics.items()),
    ]
    return ", ".join(parts)


def generator(random_state: Any) -> np.random.Generator:
    """Return the generator of a random state as in scikit-learn, or raise ValueError."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state = {random_state!r} must be None, a whole number from 0 up, or a numpy generator."
        ) from None
