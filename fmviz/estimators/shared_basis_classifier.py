"""The classifier on a shared basis, for several classes or labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fmviz.engine.losses import Loss
from fmviz.engine.solvers import Solver

from .base import Callback, RandomState
from .classifier import ModelClassifier, Weights
from .fitting import keep_parameters
from .shared_basis import SharedBasisEstimator


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

    def _output_labels(self) -> list[Any]:
        return self.classes_.tolist() if self.output_weights_.shape[1] > 1 else [self.classes_[1]]

    def _probabilities(self, positive: Any) -> np.ndarray:
        return positive if positive.ndim == 2 else np.column_stack([1.0 - positive, positive])
