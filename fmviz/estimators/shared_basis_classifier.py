"""The classifier on a shared basis, for several classes or labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from fmviz.engine.losses import Loss, get_loss
from fmviz.engine.solvers import Solver
from fmviz.engine.target import Target

from .base import Callback, RandomState
from .classifier import ModelClassifier, Weights
from .fitting import keep_parameters
from .shared_basis import SharedBasisEstimator


def _gives_probabilities(estimator: SharedBasisClassifier) -> bool:
    """Return whether the fitted loss, or before a fit `loss`, gives probabilities."""
    loss = getattr(estimator, "_fitted_loss", None) or get_loss(estimator.loss)
    shape = (1, 3) if loss.task == "class" else (1,)
    return loss.probability(np.zeros(shape)) is not None


class SharedBasisClassifier(SharedBasisEstimator, ModelClassifier):
    """Polynomial network or factorization machine of several classes on one shared basis.

    Every class has a score f_c(x) = b_c + ⟨w_c, x⟩ + Σ_r v_rc σ(h_r, x), and all scores are fitted together
    (blondel2017): the objective is that of `SharedBasisRegressor` with a loss of all scores of a row. Two
    classes have one score, positive for the second one; with several labels a row, y of shape (N, m) and of 0
    and 1, each label has a score.

    Parameters
    ----------
    loss : {"logistic", "smoothed_hinge", "squared_hinge"}, default="logistic"
        The multi-class form of the loss; for two classes and for labels "logistic" or "squared_hinge".
    class_weight : dict or "balanced", optional
        As for `FactorizationMachineClassifier`; not for several labels.
    rank, kernel, augment, penalty, refit, solver, solver_params, lambda_w, lambda_sparse, radius
        As for `SharedBasisRegressor`.
    fit_linear, fit_intercept, max_iter, tol, warm_start, early_stopping, validation_fraction
        As for `SharedBasisRegressor`.
    n_iter_no_change, verbose, random_state, callback, dtype
        As for `SharedBasisRegressor`.

    Attributes
    ----------
    classes_ : (m,) ndarray
        The labels, sorted; for several labels a row their numbers.
    bases_, offsets_, output_weights_, w_, intercept_, used_features_, n_used_interactions_, certificate_
        As for `SharedBasisRegressor`; two classes have one output.
    history_, status_, n_iter_, n_features_in_, feature_names_in_
        As for `SharedBasisRegressor`.

    Examples
    --------
    >>> import fmviz
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_wine(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> machine = fmviz.SharedBasisClassifier(random_state=0).fit(X, y)
    >>> machine.score(X, y) > 0.99
    True
    >>> machine.output_weights_.shape[1]
    3
    """

    def __init__(
        self,
        rank: int = 50,
        *,
        kernel: str = "polynomial",
        augment: bool = False,
        penalty: str = "l1_l2",
        refit: str = "output",
        loss: str | Loss = "logistic",
        class_weight: Weights | None = None,
        solver: str | Solver = "auto",
        solver_params: Mapping[str, Any] | None = None,
        lambda_w: float | None = None,
        lambda_sparse: float | None = None,
        radius: float | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        verbose: int = 0,
        random_state: RandomState | None = None,
        callback: Callback | None = None,
        dtype: str = "float64",
    ) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to X, shape (N, d), dense or sparse, and y, shape (N,), or (N, m) of 0 and 1.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) or (N, m) array_like
            Labels of two or more classes, numbers or strings; or for every row which of m labels apply.
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
            If `max_iter` epochs were not enough.
        """
        X, y = self._checked(X, y, multi_output=True)
        check_classification_targets(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if y.ndim == 2:
            target = self._labels(y)
        else:
            target = Target.of_labels(y)
            sample_weight = self._weighted(y, sample_weight)
        assert target.labels is not None, "classes have labels"
        if self.warm_start and not np.array_equal(getattr(self, "classes_", target.labels), target.labels):
            raise ValueError(
                f"y has the classes {target.labels.tolist()}, and a warm start goes on from a fit of "
                f"{self.classes_.tolist()}. Give the same classes, or start anew with warm_start=False."
            )
        self.classes_ = target.labels
        self._fit(X, target, sample_weight, stratified=y.ndim == 1)
        return self

    def _labels(self, y: np.ndarray) -> Target:
        """Return the target of several labels a row."""
        if type_of_target(y) != "multilabel-indicator":
            raise ValueError(
                f"y has the shape {y.shape} and is no table of 0 and 1; give one column of classes, or for "
                "every row and label whether it applies."
            )
        if self.class_weight is not None:
            raise ValueError("class_weight is for classes; several labels a row have none. Leave it None.")
        return Target(np.where(y > 0, 1.0, -1.0), "several", np.arange(y.shape[1]))

    def _output_labels(self) -> list[Any]:
        return self.classes_.tolist() if self.output_weights_.shape[1] > 1 else [self.classes_[1]]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of every row of X.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The features that `fit` saw.

        Returns
        -------
        (N, m) ndarray, columns in the order of `classes_`; (N,) for two classes, positive for the second

        Raises
        ------
        ValueError
            If X does not suit the fit, or a score overflows.
        """
        return self._predict(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of every row of X, or for every label 0 or 1.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            As for `decision_function`, and so the errors.

        Returns
        -------
        (N,) ndarray, or (N, m) int ndarray of several labels
        """
        f = self._predict(X)
        labels = self._fitted_target.decode(f)
        return labels.astype(np.int64) if self._fitted_target.kind == "several" else labels

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of every row of X.

        The method exists where the loss of the fit gives probabilities, as the logistic loss does.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            As for `decision_function`, and so the errors.

        Returns
        -------
        (N, m) ndarray
            Columns in the order of `classes_`; rows sum to 1, except for several labels.
        """
        check_is_fitted(self)
        p = self._fitted_loss.probability(self._predict(X))
        assert p is not None, "the method exists"
        return np.column_stack([1.0 - p, p]) if p.ndim == 1 else p
