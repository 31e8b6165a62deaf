"""What the classifiers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.losses import get_loss
from fmviz.engine.target import Target

from .base import ModelEstimator, takes_parts

Weights: TypeAlias = Mapping[Any, float] | str
"""What each class counts: by its label, or "balanced"."""


def _gives_probabilities(estimator: ModelClassifier) -> bool:
    """Return True if the loss of the fit, before one that of the parameters, gives any; else ValueError."""
    loss = getattr(estimator, "_fitted_loss", None) or get_loss(estimator.loss)
    if loss.probability(np.zeros(1)) is None:
        raise ValueError(
            f"The loss {loss.name!r} gives scores, not probabilities; fit with loss='logistic', or use "
            "decision_function."
        )
    return True


class ModelClassifier(ClassifierMixin, ModelEstimator):
    """A classifier of one of the engine's models: two classes, -1 and +1 to the engine."""

    class_weight: Weights | None

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
            Weights c_n ≥ 0, multiplied by those of the classes and rescaled to a mean of 1.

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
            If `max_iter` epochs were not enough, the solver stalled away from a stationary point, or it
            diverged, where the last finite iterate is kept; not for ``tol=0``, which never converges.
        """
        X, y = self._checked(X, y)
        check_classification_targets(y)
        target = Target.of_labels(y)
        assert target.labels is not None, "classes have labels"
        _check_two(target.labels)
        if self.warm_start and not np.array_equal(getattr(self, "classes_", target.labels), target.labels):
            raise ValueError(
                f"y has the classes {target.labels.tolist()}, and a warm start goes on from a fit of "
                f"{self.classes_.tolist()}. Give the same classes, or start anew with warm_start=False."
            )
        self.classes_ = target.labels
        self._fit(X, target, self._weighted(y, sample_weight), stratified=True)
        return self

    @available_if(takes_parts)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one epoch of a stochastic solver on these rows, from where the last call or fit ended.

        With ``solver="auto"`` that is "psgd". Its step sizes fall with all the steps made so far, and its
        safeguard `monotone` looks at the objective of these rows alone: where the epoch would raise it, a
        proximal gradient step takes its place. The method exists where a stochastic solver takes the model
        and the regularizer.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n, d)
            Some rows.
        y : (n,) array_like
            Their labels, of one class or both.
        classes : (2,) array_like, optional
            Both labels; needed in the first call.
        sample_weight : (n,) array_like, optional
            Weights c_n ≥ 0, multiplied by those of the classes and rescaled to a mean of 1 over these rows.

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
        X, y = self._checked(X, y, reset=not hasattr(self, "_fitted_model"))
        self.classes_ = self._known_classes(classes)
        if unknown := set(np.unique(y).tolist()) - set(self.classes_.tolist()):
            raise ValueError(
                f"y has the labels {sorted(unknown, key=str)}, which are not among the classes "
                f"{self.classes_.tolist()}. Name both classes in the first call of partial_fit."
            )
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight = 'balanced' needs the labels of all rows, and partial_fit sees some of them. "
                "Give a dict of weights, {label: weight}, or call fit."
            )
        target = Target(np.where(y == self.classes_[1], 1.0, -1.0), "binary", self.classes_)
        self._fit_part(X, target, self._weighted(y, sample_weight))
        return self

    def _known_classes(self, classes: Any) -> np.ndarray:
        """Return both labels, of an earlier call or named in this one."""
        before = getattr(self, "classes_", None)
        if classes is None:
            if before is None:
                raise ValueError(
                    "classes = None: the first call of partial_fit must name both classes, as its rows may "
                    "hold one only."
                )
            return before
        named = np.unique(np.asarray(classes))
        _check_two(named)
        if before is not None and not np.array_equal(before, named):
            raise ValueError(
                f"classes = {named.tolist()} are not the {before.tolist()} of the calls before; name those, "
                "or none."
            )
        return named

    def _weighted(self, y: np.ndarray, sample_weight: Any) -> Any:
        """Return the weights of the rows, those of their classes included."""
        if self.class_weight is None:
            return sample_weight
        weights = compute_sample_weight(self.class_weight, y)
        return weights if sample_weight is None else weights * np.asarray(sample_weight, dtype=np.float64)

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
            As for `decision_function`, and so the errors.

        Returns
        -------
        (N,) ndarray
        """
        f = self._predict(X)
        return self._fitted_target.decode(f)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of every row of X.

        The method exists where the loss of the fit gives probabilities: the logistic loss does. What `loss`
        is set to after the fit has no say.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            As for `decision_function`, and so the errors.

        Returns
        -------
        (N, 2) ndarray, columns in the order of `classes_`
        """
        check_is_fitted(self)
        positive = self._fitted_loss.probability(self._predict(X))
        assert positive is not None, "the method exists"
        return np.column_stack([1.0 - positive, positive])


def _check_two(labels: np.ndarray) -> None:
    if labels.size != 2:
        raise ValueError(
            f"Only binary classification is supported. y has {labels.size} classes; wrap the classifier in "
            "sklearn.multiclass.OneVsRestClassifier."
        )
