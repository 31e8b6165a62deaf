"""What the estimators share: their parameters in the engine's terms, fitting and prediction."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fmviz.choices import bound
from fmviz.engine.design import DTYPES, Design, augmented
from fmviz.engine.drive import Budget, chosen_solver, iterate
from fmviz.engine.errors import finite_number, one_of, whole_number
from fmviz.engine.losses import Loss
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import Penalty
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Reason, Snapshot
from fmviz.engine.solvers import Solver
from fmviz.engine.target import Target

if TYPE_CHECKING:
    import pandas as pd

Callback: TypeAlias = Callable[[Snapshot], Any]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState


class ModelEstimator(BaseEstimator):
    """A scikit-learn estimator of one of the engine's models.

    Subclasses write their `__init__` out, name their model in `_model_choice`, keep a fit in `_store` and
    give its parameters back in `_fitted_parameters`. What their own parameters are to the engine is said in
    `_problem_arguments` and `_run_arguments` alone.
    """

    loss: str | Loss
    loss_param: float | None
    solver: str | Solver
    lambda_w: float
    lambda_p: float
    fit_linear: bool
    fit_intercept: bool
    max_iter: int
    tol: float
    warm_start: bool
    callback: Callback | None

    # Parameters of some estimators only, with what the others pass to the engine.
    rank: int = 1
    regularizer: str | Penalty
    regularizer_params: Mapping[str, Any] | None = None
    solver_params: Mapping[str, Any] | None = None
    lambda_sparse: float = 0.0
    init_scale: float = 0.0
    random_state: RandomState | None = None
    dtype: str = "float64"

    w_: np.ndarray
    intercept_: float
    # Of the last fit, for predictions: parameters may have been set anew since.
    _fitted_model: Model
    _fitted_loss: Loss
    _fitted_target: Target
    _fitted_dummies: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _model_choice(self) -> tuple[str, dict[str, Any]]:
        """Check the parameters of the model; return its name in the registry and the engine's parameters."""
        raise NotImplementedError

    def _shrinkage(self) -> float:
        """Return what the engine calls ``lambda_p``."""
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

    def _run_arguments(self) -> dict[str, Any]:
        """Return the keywords of `iterate`, besides the problem and when to stop."""
        return {
            "budget": Budget(
                epochs=whole_number("max_iter", self.max_iter, 1),
                tol=finite_number("tol", self.tol, low=0),
                certify_every=10,
            ),
            "start": self._fitted_parameters()
            if self._switch("warm_start") and hasattr(self, "w_")
            else None,
            "init_scale": self.init_scale,
            "rng": _generator(self.random_state),
        }

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

    def _precision(self) -> str:
        return one_of("dtype", self.dtype, DTYPES)

    def _run(self, X: Any, target: Target, sample_weight: Any) -> None:
        about_problem, about_run, dummies = self._problem_arguments(), self._run_arguments(), self._dummies()
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback = {self.callback!r} must be a function of a snapshot, or None.")
        design = Design(augmented(X, dummies), self.dtype)
        problem = Problem.build(design, target, sample_weight=sample_weight, **about_problem)
        solver = chosen_solver(problem, self.solver, self._mapping("solver_params"))
        records = []
        stopping = False
        snapshots = iterate(problem, solver, should_stop=lambda: stopping, **about_run)
        for snapshot in snapshots:
            records.append(snapshot.record())
            if self.callback is not None and self.callback(snapshot):
                stopping = True
        assert snapshot.status is not None, "the last snapshot carries the status"
        if snapshot.status.reason is Reason.DIVERGED:
            warnings.warn(snapshot.status.message, ConvergenceWarning, stacklevel=3)
        self._fitted_model, self._fitted_loss = problem.model, problem.loss
        self._fitted_target, self._fitted_dummies = target, dummies
        self._store(snapshot)
        self._records = records
        self.certificate_ = snapshot.certificate
        self.status_ = snapshot.status
        self.n_iter_ = snapshot.epoch

    def _store(self, end: Snapshot) -> None:
        """Store the end of a run as attributes."""
        self.w_ = end.parameters.w
        self.intercept_ = end.parameters.intercept
        self.used_features_ = self._used_features()
        self.n_used_interactions_ = end.used_interactions

    def _fitted_parameters(self) -> Parameters:
        """Return the parameters that `_store` was given."""
        raise NotImplementedError

    def _used_features(self) -> np.ndarray:
        raise NotImplementedError

    def _predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse=("csc", "csr"), dtype=self._precision())
        with np.errstate(over="ignore", invalid="ignore"):
            design = Design(augmented(X, self._fitted_dummies), self.dtype)
            f = self._fitted_model.predict(design, self._fitted_parameters())
        if not np.isfinite(f).all():
            raise ValueError(
                "A prediction overflows; X holds larger values than the model can take. Scale X."
            )
        return f

    @property
    def history_(self) -> pd.DataFrame:
        """One row per snapshot: epoch, objective and its parts, seconds, as in `Snapshot.record`."""
        check_is_fitted(self)
        import pandas as pd

        return pd.DataFrame.from_records(self._records)

    def _names(self) -> np.ndarray:
        """Return the names of the features, or their indices where they have none."""
        names = getattr(self, "feature_names_in_", None)
        return np.arange(self.w_.size) if names is None else names


class FactorEstimator(ModelEstimator):
    """An estimator of a model with factors P under a regularizer."""

    P_: np.ndarray

    def _store(self, end: Snapshot) -> None:
        self.P_ = end.parameters.P
        super()._store(end)

    def _fitted_parameters(self) -> Parameters:
        return Parameters(self.P_, self.w_, self.intercept_)

    def _used_features(self) -> np.ndarray:
        return np.flatnonzero(self.P_.any(axis=1))


class ModelRegressor(RegressorMixin, ModelEstimator):
    """A regressor of one of the engine's models."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to X, shape (N, d), dense or sparse, and y, shape (N,).

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) array_like
            Finite targets.
        sample_weight : (N,) array_like, optional
            Weights c_n ≥ 0, rescaled to a mean of 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed, with the reason.

        Warns
        -----
        ConvergenceWarning
            If the solver diverged; the last finite iterate is kept.
        """
        X, y = validate_data(
            self, X, y, accept_sparse=("csc", "csr"), dtype=self._precision(), y_numeric=True
        )
        self._run(X, Target.of(y), sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) for every row of X.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The features that `fit` saw.

        Returns
        -------
        (N,) ndarray

        Raises
        ------
        ValueError
            If X does not suit the fit, or f(x) overflows.
        """
        return self._predict(X)


class ModelClassifier(ClassifierMixin, ModelEstimator):
    """A classifier of one of the engine's models: two classes, -1 and +1 to the engine."""

    classes_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to X, shape (N, d), dense or sparse, and y, shape (N,), of two classes.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) array_like
            Labels of two classes, numbers or strings.
        sample_weight : (N,) array_like, optional
            Weights c_n ≥ 0, rescaled to a mean of 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed, with the reason.

        Warns
        -----
        ConvergenceWarning
            If the solver diverged; the last finite iterate is kept.
        """
        X, y = validate_data(self, X, y, accept_sparse=("csc", "csr"), dtype=self._precision())
        check_classification_targets(y)
        target = Target.of_labels(y)
        if target.kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. y has {target.n_outputs} classes; wrap the "
                "classifier in sklearn.multiclass.OneVsRestClassifier."
            )
        assert target.labels is not None, "classes have labels"
        self.classes_ = target.labels
        self._run(X, target, sample_weight)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) for every row of X, positive for the second class.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The features that `fit` saw.

        Returns
        -------
        (N,) ndarray

        Raises
        ------
        ValueError
            If X does not suit the fit, or f(x) overflows.
        """
        return self._predict(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of every row of X.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The features that `fit` saw.

        Returns
        -------
        (N,) ndarray

        Raises
        ------
        ValueError
            If X does not suit the fit, or f(x) overflows.
        """
        f = self._predict(X)
        return self._fitted_target.decode(f)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of every row of X, for a fit with the logistic loss.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The features that `fit` saw.

        Returns
        -------
        (N, 2) ndarray, columns in the order of `classes_`

        Raises
        ------
        ValueError
            If X does not suit the fit, f(x) overflows, or the loss of the fit is another, whose scores are no
            probabilities.
        """
        check_is_fitted(self)
        positive = self._fitted_loss.probability(self._predict(X))
        if positive is None:
            raise ValueError(
                f"The loss {self._fitted_loss.name!r} gives scores, not probabilities; fit with "
                "loss='logistic', or use decision_function."
            )
        return np.column_stack([1.0 - positive, positive])


def _generator(random_state: Any) -> np.random.Generator:
    """Return a generator made of what scikit-learn calls a random state, or raise ValueError."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state = {random_state!r} must be None, a whole number from 0 up, or a numpy generator."
        ) from None
