"""What the scikit-learn estimators share: fitting a model of pairs, predicting, ranking its pairs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fmviz.engine.design import Design
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.errors import finite_number, whole_number
from fmviz.engine.models import get_model
from fmviz.engine.pairs import ranked_pairs, ranked_weights
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Parameters, Reason, Snapshot


class PairEstimator(BaseEstimator):
    """An estimator of a second-order model.

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

    w_: np.ndarray
    intercept_: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _problem(self) -> dict[str, Any]:
        """Check what is this estimator's own, and return its part of the arguments of `Problem.build`."""
        raise NotImplementedError

    def _model_params(self) -> dict[str, Any]:
        """Return the model's own parameters."""
        return {}

    def _run_settings(self) -> dict[str, Any]:
        """Return this estimator's part of the arguments of `iterate`."""
        return {}

    def _keep(self, parameters: Parameters) -> None:
        """Store the parameters as attributes."""
        self.w_ = parameters.w
        self.intercept_ = parameters.intercept

    def _fitted(self) -> Parameters:
        """Return the parameters that were stored."""
        raise NotImplementedError

    def _used_features(self) -> np.ndarray:
        raise NotImplementedError

    def _check_mapping(self, name: str) -> None:
        given = getattr(self, name)
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(f"{name} = {given!r} must be a dict of parameter names and values, or None.")

    def _run(self, X: Any, y: np.ndarray, sample_weight: Any) -> None:
        own = self._problem()
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback = {self.callback!r} must be a function of a snapshot, or None.")
        for name in ("fit_linear", "fit_intercept", "warm_start"):
            if getattr(self, name) not in (True, False):
                raise ValueError(f"{name} = {getattr(self, name)!r} is neither True nor False.")
        problem = Problem.build(
            X,
            y,
            loss=self.loss,
            model=self._model,
            model_params=self._model_params(),
            lambda_w=self.lambda_w,
            lambda_sparse=self.lambda_sparse,
            fit_linear=self.fit_linear,
            fit_intercept=self.fit_intercept,
            loss_param=self.loss_param,
            sample_weight=sample_weight,
            **own,
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
        self._keep(last.parameters)
        self.history_ = pd.DataFrame.from_records(records)
        self.used_features_ = self._used_features()
        self.n_used_interactions_ = last.used_interactions
        self.certificate_ = last.certificate
        self.status_ = last.status
        self.n_iter_ = last.epoch

    def _predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse=("csc", "csr"), dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            f = get_model(self._model, **self._model_params()).predict(Design(X), self._fitted())
        if not np.isfinite(f).all():
            raise ValueError(
                "A prediction overflows; X holds larger values than the model can take. Scale X."
            )
        return f

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
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = np.arange(found.w.size)
        return pd.DataFrame({"feature_i": names[i], "feature_j": names[j], "weight": weight})


class PairRegressor(RegressorMixin, PairEstimator):
    """Regression by a second-order model."""

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
        X, y = validate_data(self, X, y, accept_sparse=("csc", "csr"), dtype=np.float64, y_numeric=True)
        self._run(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) for every row of X, shape (N,)."""
        return self._predict(X)


class PairClassifier(ClassifierMixin, PairEstimator):
    """Two classes by a second-order model, the labels taken as -1 and +1."""

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
        X, y = validate_data(self, X, y, accept_sparse=("csc", "csr"), dtype=np.float64)
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
