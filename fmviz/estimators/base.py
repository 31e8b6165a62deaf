"""What the scikit-learn estimators share: parameters, fitting, predicting, ranking pairs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fmviz.engine.design import DTYPES, Design, augmented
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.errors import finite_number, one_of, whole_number
from fmviz.engine.models import Model
from fmviz.engine.pairs import ranked_pairs, ranked_weights
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Parameters, Reason, Snapshot

if TYPE_CHECKING:
    import pandas as pd


def with_parameters(init: Callable[..., None], **changes: Any) -> Callable[..., None]:
    """Return an ``__init__`` like `init`, with other defaults and more parameters.

    Scikit-learn reads an estimator's parameters off the signature of its ``__init__``. It is derived here, so
    that classes that share most of them need not repeat them: a name in `changes` that `init` has gets the
    new default, any other becomes a keyword and an attribute.
    """
    known = inspect.signature(init)
    added = {name: default for name, default in changes.items() if name not in known.parameters}

    @wraps(init)
    def changed(self: Any, *args: Any, **given: Any) -> None:
        bound = known.replace(parameters=listed).bind(self, *args, **given)
        bound.apply_defaults()
        own = {name: bound.arguments.pop(name) for name in added}
        init(**bound.arguments)
        for name, value in own.items():
            setattr(self, name, value)

    listed = [
        one.replace(default=changes.get(name, one.default)) for name, one in known.parameters.items()
    ] + [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=v) for name, v in added.items()]
    changed.__signature__ = known.replace(parameters=listed)  # type: ignore[attr-defined]
    return changed


class ModelEstimator(BaseEstimator):
    """An estimator of one of the engine's models.

    Subclasses name the model and say in `_problem` and `_run_settings` what their parameters mean to the
    engine, and keep what was fitted in `_keep`; `_fitted` gives it back.
    """

    _model: ClassVar[str]

    loss: str
    solver: str
    fit_linear: bool
    fit_intercept: bool
    max_iter: int
    tol: float
    warm_start: bool
    callback: Callable[[Snapshot], Any] | None
    loss_param: float | None
    lambda_w: float
    lambda_sparse: float
    # In what X is kept; for the models that make no choice of it.
    dtype: str = "float64"

    w_: np.ndarray
    intercept_: float
    _fitted_model: Model
    _fitted_dummies: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _problem(self) -> dict[str, Any]:
        """Check what is this estimator's own, and return its part of the arguments of `Problem.build`."""
        raise NotImplementedError

    def _run_settings(self) -> dict[str, Any]:
        """Return this estimator's part of the arguments of `iterate`."""
        return {}

    def _dummies(self) -> int:
        """Return the number of features, always 1, that the model has besides those of X."""
        return 0

    def _keep(self, last: Snapshot) -> None:
        """Store the end of a run as attributes."""
        self.w_ = last.parameters.w
        self.intercept_ = last.parameters.intercept
        self.used_features_ = self._used_features()
        self.n_used_interactions_ = last.used_interactions

    def _fitted(self) -> Parameters:
        """Return the parameters that were stored."""
        raise NotImplementedError

    def _used_features(self) -> np.ndarray:
        raise NotImplementedError

    def _names(self) -> np.ndarray:
        """Return the names of the features, or their indices where they have none."""
        names = getattr(self, "feature_names_in_", None)
        return np.arange(self.w_.size) if names is None else names

    def _places(self, features: Sequence[Any]) -> list[int]:
        """Return the indices of two or more distinct features, given by name or index; else ValueError."""
        names = getattr(self, "feature_names_in_", None)
        places = {} if names is None else {name: j for j, name in enumerate(names)}
        for name in features:
            if isinstance(name, str):
                one_of("feature", name, places)
        chosen = [whole_number("feature", places.get(one, one), 0, self.w_.size - 1) for one in features]
        if len(chosen) < 2:
            raise ValueError(f"features = {list(features)!r} must name at least two; w_ has single weights.")
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"features = {list(features)!r} must name at least two, and none twice.")
        return chosen

    def _check_mapping(self, name: str) -> None:
        given = getattr(self, name)
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(f"{name} = {given!r} must be a dict of parameter names and values, or None.")

    def _precision(self) -> str:
        return one_of("dtype", self.dtype, DTYPES)

    def _run(self, X: Any, y: np.ndarray, sample_weight: Any) -> None:
        own = self._problem()
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback = {self.callback!r} must be a function of a snapshot, or None.")
        for name in ("fit_linear", "fit_intercept", "warm_start"):
            if getattr(self, name) not in (True, False):
                raise ValueError(f"{name} = {getattr(self, name)!r} is neither True nor False.")
        dummies = self._dummies()
        problem = Problem.build(
            Design(augmented(X, dummies), self.dtype),
            y,
            loss=self.loss,
            lambda_w=self.lambda_w,
            lambda_sparse=self.lambda_sparse,
            fit_linear=self.fit_linear,
            fit_intercept=self.fit_intercept,
            loss_param=self.loss_param,
            sample_weight=sample_weight,
            **{"model": self._model, **own},
        )
        budget = Budget(
            epochs=whole_number("max_iter", self.max_iter, 1),
            tol=finite_number("tol", self.tol, low=0),
            certify_every=10,
        )
        records = []
        stopping = False
        snapshots = iterate(
            problem,
            self.solver,
            budget,
            lambda: stopping,
            start=self._fitted() if self.warm_start and hasattr(self, "w_") else None,
            **self._run_settings(),
        )
        for last in snapshots:
            records.append(last.record())
            if self.callback is not None and self.callback(last):
                stopping = True
        assert last.status is not None, "the last snapshot carries the status"
        if last.status.reason is Reason.DIVERGED:
            warnings.warn(last.status.message, ConvergenceWarning, stacklevel=3)
        # Predictions are those of what was fitted, whatever parameters are set later.
        self._fitted_model, self._fitted_dummies = problem.model, dummies
        self._keep(last)
        self._records = records
        self.certificate_ = last.certificate
        self.status_ = last.status
        self.n_iter_ = last.epoch

    @property
    def history_(self) -> pd.DataFrame:
        """One row of each snapshot: epoch, objective, seconds and the others of `Snapshot.record`."""
        check_is_fitted(self)
        import pandas as pd

        return pd.DataFrame.from_records(self._records)

    def _predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse=("csc", "csr"), dtype=self._precision())
        with np.errstate(over="ignore", invalid="ignore"):
            design = Design(augmented(X, self._fitted_dummies), self.dtype)
            f = self._fitted_model.predict(design, self._fitted())
        if not np.isfinite(f).all():
            raise ValueError(
                "A prediction overflows; X holds larger values than the model can take. Scale X."
            )
        return f


class PairEstimator(ModelEstimator):
    """An estimator whose interactions are pairs."""

    def interactions(self, top: int | None = None) -> pd.DataFrame:
        """Return the used pairs, largest weight first.

        Parameters
        ----------
        top : int, optional
            The most pairs; without it all, however many.

        Returns
        -------
        DataFrame
            Columns ``feature_i``, ``feature_j`` (names where the training data had them, else indices;
            i < j) and ``weight``, ⟨p_i, p_j⟩ or w_ij, sorted by falling |weight|.
        """
        check_is_fitted(self)
        if top is not None:
            whole_number("top", top, 1)
        found = self._fitted()
        if found.W is None:
            i, j, weight = ranked_pairs(found.P, top, found.coefficients)
        else:
            i, j, weight = ranked_weights(found.W, top)
        names = self._names()
        import pandas as pd

        return pd.DataFrame({"feature_i": names[i], "feature_j": names[j], "weight": weight})


class FactorEstimator(ModelEstimator):
    """An estimator of a model that holds factors P."""

    def __init__(
        self,
        rank: int = 10,
        *,
        loss: str = "squared",
        regularizer: str = "ti",
        solver: str = "auto",
        lambda_w: float = 1e-3,
        lambda_p: float = 1e-3,
        lambda_sparse: float = 1e-3,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        init_scale: float = 0.01,
        max_iter: int = 200,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: Any = None,
        callback: Callable[[Snapshot], Any] | None = None,
        regularizer_params: dict[str, Any] | None = None,
        loss_param: float | None = None,
        solver_params: dict[str, Any] | None = None,
        dtype: str = "float64",
    ) -> None:
        self.rank = rank
        self.loss = loss
        self.regularizer = regularizer
        self.solver = solver
        self.lambda_w = lambda_w
        self.lambda_p = lambda_p
        self.lambda_sparse = lambda_sparse
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.init_scale = init_scale
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.regularizer_params = regularizer_params
        self.loss_param = loss_param
        self.solver_params = solver_params
        self.dtype = dtype

    P_: np.ndarray

    def _problem(self) -> dict[str, Any]:
        self._check_mapping("regularizer_params")
        self._check_mapping("solver_params")
        return {
            "rank": self.rank,
            "regularizer": self.regularizer,
            "lambda_p": self.lambda_p,
            "regularizer_params": self.regularizer_params,
        }

    def _run_settings(self) -> dict[str, Any]:
        rng = generator(self.random_state)
        return {"init_scale": self.init_scale, "rng": rng, **(self.solver_params or {})}

    def _keep(self, last: Snapshot) -> None:
        self.P_ = last.parameters.P
        super()._keep(last)

    def _fitted(self) -> Parameters:
        return Parameters(self.P_, self.w_, self.intercept_)

    def _used_features(self) -> np.ndarray:
        return np.flatnonzero(self.P_.any(axis=1))


class ModelRegressor(RegressorMixin, ModelEstimator):
    """Regression by one of the models."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to X, shape (N, d), dense or sparse, and y, shape (N,).

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
        """
        X, y = validate_data(
            self, X, y, accept_sparse=("csc", "csr"), dtype=self._precision(), y_numeric=True
        )
        self._run(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) for every row of X, shape (N,)."""
        return self._predict(X)


class ModelClassifier(ClassifierMixin, ModelEstimator):
    """Two classes by one of the models, the labels taken as -1 and +1."""

    classes_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to X, shape (N, d), dense or sparse, and labels y, shape (N,), of two classes.

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
        """
        X, y = validate_data(self, X, y, accept_sparse=("csc", "csr"), dtype=self._precision())
        check_classification_targets(y)
        classes = np.unique(y)
        if classes.size == 1:
            raise ValueError(
                f"y has one class only, {classes.tolist()[0]!r}; a classifier needs rows of two. "
                "Add rows of the other class."
            )
        if classes.size > 2:
            raise ValueError(
                f"Only binary classification is supported. y has {classes.size} classes; wrap the "
                "classifier in sklearn.multiclass.OneVsRestClassifier."
            )
        self.classes_ = classes
        self._run(X, np.where(y == classes[1], 1.0, -1.0), sample_weight)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) for every row of X, shape (N,); positive for the second class."""
        return self._predict(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return a label for every row of X, shape (N,)."""
        positive = self._predict(X) > 0
        return self.classes_[positive.astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, shape (N, 2), in the order of `classes_`; logistic loss only.

        Raises
        ------
        ValueError
            If the loss is another: its scores are not probabilities.
        """
        if self.loss != "logistic":
            raise ValueError(
                f"The loss {self.loss!r} gives scores, not probabilities; fit with loss='logistic', or use "
                "decision_function."
            )
        f = self._predict(X)
        # 1/(1 + e^-f) without overflow.
        e = np.exp(-np.abs(f))
        positive = np.where(f >= 0, 1.0, e) / (1.0 + e)
        return np.column_stack([1.0 - positive, positive])


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator made of what scikit-learn calls a random state, or raise ValueError."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state = {random_state!r} must be None, a whole number from 0 up, or a numpy generator."
        ) from None
