"""Ordinal regression for levels such as ratings, with a multilabel classifier."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, RegressorMixin, clone
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.errors import whole_number
from fmviz.engine.target import Target

from .factorization_machine import FactorizationMachineClassifier
from .fitting import Shown, checked_data, keep_parameters


class OrdinalRegressor(RegressorMixin, MetaEstimatorMixin, Shown):
    """Ordinal regression by cumulative probabilities p(y ≤ level) (McRank).

    For levels y_1 < … < y_m, a classifier of m − 1 labels learns p(y ≤ y_c | x) for c < m. The prediction is
    the expected relevance y_m − Σ_{c<m} (y_{c+1} − y_c) p(y ≤ y_c | x); for levels 1, …, m, this is
    m − Σ_{c<m} p(y ≤ c | x) (Li, Burges and Wu 2007; blondel2017, Section 6.5).

    Parameters
    ----------
    estimator : classifier, optional
        A classifier with `predict_proba`. Multilabel classifiers, such as those of fmviz, fit all labels at
        once; otherwise a clone is fitted to each label. By default
        `FactorizationMachineClassifier(random_state=0)`. Columns are scaled only by this classifier.
    max_levels : int, default=20
        A y with more distinct values is binned into this many levels with about equal numbers of rows, each
        represented by the mean of its rows.

    Attributes
    ----------
    classes_ : (m,) ndarray
        The levels, ascending.
    estimator_ : classifier
        The fitted classifier; its labels are `classes_` without the last one.
    feature_importances_ : (d,) ndarray
        The importances of the classifier, if it has any.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> y = 1 + (X[:, 0] * X[:, 1] > -0.5) + (X[:, 0] * X[:, 1] > 0.5)
    >>> ratings = fmviz.OrdinalRegressor().fit(X, y)
    >>> ratings.classes_.tolist(), ratings.predict_proba(X).shape
    ([1.0, 2.0, 3.0], (300, 3))
    >>> bool(fmviz.metrics.rmse(y, ratings.predict(X)) < 0.3)
    True
    """

    def __init__(self, estimator: Any = None, *, max_levels: int = 20) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._chosen()).input_tags.sparse
        return tags

    def _chosen(self) -> Any:
        return FactorizationMachineClassifier(random_state=0) if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit the classifier to X, shape (N, d), dense or sparse, and levels y, shape (N,).

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) array_like
            Finite numbers with at least two distinct values.
        **fit_params
            Passed to the classifier's `fit`, such as ``sample_weight``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are invalid, or the classifier has no probabilities.
        """
        _, numbers = checked_data(self, X, y, y_numeric=True)
        levels, place = _levels(numbers, int(whole_number("max_levels", self.max_levels, 2)))
        chosen = clone(self._chosen())
        if not get_tags(chosen).classifier_tags.multi_label:
            chosen = OneVsRestClassifier(chosen)
        # Two levels give a single label, without a second axis.
        at_most = place[:, None] <= np.arange(levels.size - 1)
        self.estimator_ = chosen.fit(X, np.squeeze(at_most.astype(int)), **fit_params)
        self.classes_ = levels
        self._target = Target(numbers[:0], "ordinal", levels)
        if not hasattr(self.estimator_, "predict_proba"):
            raise ValueError(
                f"{type(chosen).__name__} has no probabilities, which ordinal regression needs. "
                "Choose a classifier with predict_proba, such as one with loss='logistic'."
            )
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every level for every row of X.

        They are differences of the sorted p(y ≤ y_c | x): the labels are learned separately, and their
        probabilities need not be monotone.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The same features as in `fit`.

        Returns
        -------
        (N, m) ndarray, columns in the order of `classes_`
        """
        check_is_fitted(self)
        checked_data(self, X, reset=False)
        at_most = self.estimator_.predict_proba(X)
        # For a single label the classifier has two classes, and the second means that the label applies.
        return self._target.probabilities(at_most[:, 1:] if self.classes_.size == 2 else at_most)

    @property
    def feature_importances_(self) -> np.ndarray:
        """The importances of the classifier, shape (d,)."""
        check_is_fitted(self)
        return self.estimator_.feature_importances_

    def predict(self, X: Any) -> np.ndarray:
        """Return the expected level of every row of X.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The same features as in `fit`.

        Returns
        -------
        (N,) ndarray
        """
        return self.predict_proba(X) @ self.classes_


def _levels(y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels, ascending, and the level number of every row."""
    levels, place = np.unique(y, return_inverse=True)
    if levels.size < 2:
        raise ValueError(
            f"y has one class only, {levels[0]:g}; ordinal regression needs at least two levels."
        )
    if levels.size > most:
        edges = np.quantile(y, np.arange(1, most) / most)
        place = np.unique(np.searchsorted(edges, y, side="right"), return_inverse=True)[1]
        levels = np.bincount(place, y) / np.bincount(place)
    return levels.astype(np.float64), place
