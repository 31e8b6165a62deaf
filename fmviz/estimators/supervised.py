"""Base classes of the regressors and classifiers: targets, predictions and probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.losses import get_loss
from fmviz.engine.target import Target

from .base import ModelEstimator
from .fitting import checked_data, one_column

Weights: TypeAlias = Mapping[Any, float] | str
"""Class weights by label, or "balanced"."""


class ModelRegressor(RegressorMixin, ModelEstimator):
    """Regressor for one of the engine's models, with a machine for each target."""

    def _target_of(self, y: np.ndarray) -> Target:
        return Target.of(one_column(y))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to X, shape (N, d), dense or sparse, and y, shape (N,) or (N, m).

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) or (N, m) array_like
            Finite targets: one or m per row.
        sample_weight : (N,) array_like, optional
            Weights c_n ≥ 0, rescaled to a mean of 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` epochs did not suffice, the solver stalled away from a stationary point, or it
            diverged and the last finite iterate is kept; not for ``tol=0``, which never converges.
        """
        X, y = checked_data(self, X, y, y_numeric=True, multi_output=True)
        self._fit(X, self._target_of(y), sample_weight)
        return self

    @available_if(ModelEstimator._part_solver)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Run one epoch of a stochastic solver on these rows, starting from the last call or fit.

        With ``solver="auto"``, it is "psgd". Its step sizes decrease with the total number of steps, and its
        safeguard `monotone` uses the objective of these rows only: if an epoch would increase it, a proximal
        gradient step replaces the epoch. The method is available if a stochastic solver supports the model
        and the regularizer.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n, d)
            Some rows.
        y : (n,) or (n, m) array_like
            Their targets.
        sample_weight : (n,) array_like, optional
            Weights c_n ≥ 0, rescaled to a mean of 1 over these rows.

        Returns
        -------
        self
            `history_`, `status_` and `certificate_` are those of these rows.

        Raises
        ------
        ValueError
            As in `fit`, or for ``early_stopping=True``.

        Warns
        -----
        ConvergenceWarning
            If the epoch diverged.
        """
        reset = not hasattr(self, "_fitted_model")
        X, y = checked_data(self, X, y, reset=reset, y_numeric=True, multi_output=True)
        self._fit_part(X, self._target_of(y), sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted mean of y for every row of X: f(x), or e^f(x) for a loss with a log link.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The same features as in `fit`.

        Returns
        -------
        (N,) or (N, m) ndarray, like y

        Raises
        ------
        ValueError
            If X does not match the fit, or f(x) overflows.
        """
        f = self._predict(X)
        return self._fitted_loss.mean(f)


def _gives_probabilities(estimator: ModelClassifier) -> bool:
    """Return True if the loss (before a fit, `loss`) gives probabilities, or raise ValueError."""
    loss = getattr(estimator, "_fitted_loss", None) or get_loss(estimator.loss)
    if loss.probability(np.zeros((1, 3) if loss.task == "class" else 1)) is None:
        raise ValueError(
            f"The loss {loss.name!r} gives scores, not probabilities; fit with loss='logistic', or use "
            "decision_function."
        )
    return True


class LabelClassifier(ClassifierMixin):
    """Classifier of rows with one class or several labels each."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class ModelClassifier(LabelClassifier, ModelEstimator):
    """Classifier for one of the engine's models.

    Two classes are -1 and +1 in the engine; more classes are fitted one-vs-rest, with a machine for each
    class, and several labels per row with a machine for each label.
    """

    classes_: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to X, shape (N, d), dense or sparse, and the classes or labels y.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) array_like, or (N, m) array_like of 0 and 1
            The class of every row, a number or a string; or an indicator matrix of m labels.
        sample_weight : (N,) array_like, optional
            Weights c_n ≥ 0, multiplied by the class weights and rescaled to a mean of 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` epochs did not suffice, the solver stalled away from a stationary point, or it
            diverged and the last finite iterate is kept; not for ``tol=0``, which never converges.
        """
        X, y = checked_data(self, X, y, multi_output=True)
        y = one_column(y)
        target = classes_of(y)
        labels = np.arange(target.n_outputs) if target.labels is None else target.labels
        if self.warm_start and not np.array_equal(getattr(self, "classes_", labels), labels):
            raise ValueError(
                f"y has the classes {labels.tolist()}, but the warm start continues a fit to "
                f"{self.classes_.tolist()}. Use the same classes, or start over with warm_start=False."
            )
        self.classes_ = labels
        # Rows with several labels cannot be stratified by class.
        weights = self._weighted(y, sample_weight)
        counted = np.asarray(1.0 if weights is None else weights, dtype=np.float64)
        # Weights that are all 0 or of the wrong shape are rejected when the problem is built.
        if target.labels is not None and counted.shape == y.shape and counted.any():
            for label in labels.tolist():
                if not counted[y == label].any():
                    raise ValueError(
                        f"All rows of the class {label!r} have the weight 0, but a classifier needs rows "
                        "of every class. Increase some of the weights, or remove the rows of the class."
                    )
        self._fit(X, target, weights, stratified=target.labels is not None)
        return self

    @available_if(ModelEstimator._part_solver)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Run one epoch of a stochastic solver on these rows, starting from the last call or fit.

        With ``solver="auto"``, it is "psgd". Its step sizes decrease with the total number of steps, and its
        safeguard `monotone` uses the objective of these rows only: if an epoch would increase it, a proximal
        gradient step replaces the epoch. The method is available if a stochastic solver supports the model
        and the regularizer.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n, d)
            Some rows.
        y : (n,) array_like
            Their classes; not all classes have to occur.
        classes : (C,) array_like, optional
            All classes; required in the first call.
        sample_weight : (n,) array_like, optional
            Weights c_n ≥ 0, multiplied by the class weights and rescaled to a mean of 1 over these rows.

        Returns
        -------
        self
            `history_`, `status_` and `certificate_` are those of these rows.

        Raises
        ------
        ValueError
            As in `fit`, for ``early_stopping=True`` or ``class_weight="balanced"``, or if `classes` is
            missing or changes.

        Warns
        -----
        ConvergenceWarning
            If the epoch diverged.
        """
        X, y = checked_data(self, X, y, reset=not hasattr(self, "_fitted_model"))
        self.classes_ = self._known_classes(classes)
        if unknown := set(np.unique(y).tolist()) - set(self.classes_.tolist()):
            raise ValueError(
                f"y has the labels {sorted(unknown, key=str)}, which are not among the classes "
                f"{self.classes_.tolist()}. Pass all classes in the first call of partial_fit."
            )
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight = 'balanced' needs the labels of all rows, but partial_fit sees only some. "
                "Give a dict of weights, {label: weight}, or call fit."
            )
        numbers = np.searchsorted(self.classes_, y).astype(np.float64)
        target = Target(numbers, "class", self.classes_)
        if self.classes_.size == 2:
            target = Target(2.0 * numbers - 1.0, "binary", self.classes_)
        self._fit_part(X, target, self._weighted(y, sample_weight))
        return self

    def _known_classes(self, classes: Any) -> np.ndarray:
        """Return all classes, from this call or an earlier one."""
        before = getattr(self, "classes_", None)
        if classes is None:
            if before is None:
                raise ValueError(
                    "classes = None: the first call of partial_fit must name all classes, as its rows may "
                    "not hold all of them."
                )
            return before
        named = np.unique(np.asarray(classes))
        if named.size < 2:
            raise ValueError(f"classes = {named.tolist()}: a classifier needs at least two.")
        if before is not None and not np.array_equal(before, named):
            raise ValueError(
                f"classes = {named.tolist()} differ from {before.tolist()} in earlier calls; pass the same "
                "classes, or None."
            )
        return named

    def _weighted(self, y: np.ndarray, sample_weight: Any) -> Any:
        """Return the weights of the rows, including class weights."""
        if self.class_weight is None:
            return sample_weight
        if y.ndim == 2:
            raise ValueError(
                f"class_weight = {self.class_weight!r} weights rows by class, but rows with several "
                "labels have no class. Omit it, or use sample_weight."
            )
        weights = compute_sample_weight(self.class_weight, y)
        return weights if sample_weight is None else weights * np.asarray(sample_weight, dtype=np.float64)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) for every row of X; for two classes, a single score, positive for the second.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The same features as in `fit`.

        Returns
        -------
        (N,) ndarray, or (N, m) with a score for each class or label

        Raises
        ------
        ValueError
            If X does not match the fit, or f(x) overflows.
        """
        return self._predict(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of largest score for every row of X, or the predicted labels.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            As for `decision_function`; so are the errors.

        Returns
        -------
        (N,) ndarray, or (N, m) of 0 and 1 for several labels
        """
        f = self._predict(X)
        labels = self._fitted_target.decode(f)
        return labels.astype(int) if self._fitted_target.kind == "several" else labels

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, or of several labels, for every row of X.

        For more than two classes, they are the normalized one-vs-rest probabilities. The method is available
        if the loss of the fit gives probabilities, as the logistic loss does. A `loss` set after the fit is
        ignored.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            As for `decision_function`; so are the errors.

        Returns
        -------
        (N, C) ndarray, columns in the order of `classes_`
        """
        check_is_fitted(self)
        positive: Any = self._fitted_loss.probability(self._predict(X))
        return self._fitted_target.probabilities(positive)


def classes_of(y: np.ndarray) -> Target:
    """Return the target for classes, shape (N,), or for several labels, shape (N, m) of 0 and 1.

    Raises
    ------
    ValueError
        If y has other values, or a single class.
    """
    check_classification_targets(y)
    if y.ndim == 1:
        return Target.of_labels(y)
    if not np.isin(y, (0, 1)).all():
        raise ValueError(
            f"y has shape {y.shape} and values other than 0 and 1, so it is not a label indicator matrix. "
            "Pass one class per row, or fit a classifier for each column."
        )
    return Target(np.where(y > 0, 1.0, -1.0), "several")
