"""Quadratic regression, sparse and of low rank, as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fmviz.engine.losses import Loss
from fmviz.engine.parameters import Parameters
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import Solver
from fmviz.metrics import used_pairs

from .base import Callback, RandomState, TraceNormStrengths
from .classifier import ModelClassifier, Weights
from .fitting import keep_parameters
from .interactions import PairEstimator
from .regressor import ModelRegressor


class _Quadratic(TraceNormStrengths, PairEstimator):
    """Common base of the regressor and the classifier."""

    regularizer = "l1"
    _settable = ("W", "w", "intercept")
    _strengths: ClassVar[Mapping[str, str]] = {
        **TraceNormStrengths._strengths,
        "lambda_sparse": "lambda_sparse",
    }

    def _model_choice(self) -> tuple[str, dict[str, Any]]:
        return "qr", {}

    def _store(self, end: Snapshot) -> None:
        self.W_ = end.parameters.weights
        super()._store(end)

    def _fitted_parameters(self) -> Parameters:
        return Parameters.of_weights(self.W_, self.w_, self.intercept_)

    def _used_features(self) -> np.ndarray:
        return np.flatnonzero(used_pairs(Parameters.of_weights(self.W_)).any(axis=1))


class QuadraticRegressor(_Quadratic, ModelRegressor):
    """Quadratic regression with a weight for every pair of features, sparse and of low rank.

    Minimises the convex (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_tr‖W‖_tr + λ‖W‖₁ over the symmetric W,
    w and the bias b, with f(x) = b + ⟨w, x⟩ + Σ_{i<j} w_ij x_i x_j (atarashi2021, Eq. 3 and 58). ‖W‖_tr is
    the sum of the |eigenvalues| and ‖W‖₁ that of the |w_ij| over all d² entries. λ_tr = 0 gives the QR with
    ℓ₁ of Eq. 22, both strengths together the sparse and low-rank QR (SLQR). The losses are those of
    `FactorizationMachineRegressor`.

    W takes O(d²) memory; an iteration takes O(nnz·d) time for the data and, unless λ_tr = 0, O(d³) for each
    of its eigendecompositions.

    Parameters
    ----------
    solver : str, default="auto"
        "exact_pgd", which is "auto", or "incremental_pgd", which with both penalties ends near the optimum.
    lambda_w, lambda_sparse : float, optional
        λ_w and λ, both ≥ 0. None derives them from the data: λ_w as for `FactorizationMachineRegressor`, λ as
        0.15 of the one from which W = 0 where λ_tr = 0.
    lambda_trace : float or None, default=0.0
        λ_tr ≥ 0. None is 0.15 of the one from which W = 0 where λ = 0.
    max_iter : int, default=2000
        The maximum number of iterations.
    tol : float, default=1e-6
        The fit has converged once no parameter changes by more than `tol` times the largest one in an
        iteration.
    loss, loss_param, fit_linear, fit_intercept, warm_start, early_stopping, validation_fraction
        As for `FactorizationMachineRegressor`.
    n_iter_no_change, verbose, callback
        As for `FactorizationMachineRegressor`.
    random_state : int, numpy Generator or RandomState, optional
        Selects the held-out rows.

    Attributes
    ----------
    W_ : (d, d) ndarray
        The symmetric weights of the pairs. The diagonal is no interaction: f does not depend on it, but a W
        of low rank needs one.
    w_ : (d,) ndarray
        The linear weights; zeros without a linear term.
    intercept_ : float
        The bias; 0 without one.
    used_features_ : (m,) int ndarray
        The features in a pair whose weight is not 0.
    n_used_interactions_ : int
        The number of pairs i < j with w_ij ≠ 0, without a tolerance.
    lambda_w_, lambda_trace_, lambda_sparse_ : float
        λ_w, λ_tr and λ of the fit.
    certificate_ : float
        The relative duality gap at the end, recomputed from the parameters: the objective exceeds its minimum
        by at most this share of itself.
    history_, status_, n_iter_, n_features_in_, feature_names_in_
        As for `FactorizationMachineRegressor`.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> fitted = fmviz.QuadraticRegressor(lambda_trace=0.1, lambda_sparse=0.2, fit_linear=False).fit(X, y)
    >>> fitted.n_used_interactions_  # 18 of 190 pairs were planted
    20
    >>> fitted.certificate_ < 1e-4
    True
    """

    def __init__(
        self,
        *,
        loss: str | Loss = "squared",
        loss_param: float | None = None,
        solver: str | Solver = "auto",
        lambda_w: float | None = None,
        lambda_trace: float | None = 0.0,
        lambda_sparse: float | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        max_iter: int = 2000,
        tol: float = 1e-6,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        verbose: int = 0,
        random_state: RandomState | None = None,
        callback: Callback | None = None,
    ) -> None:
        keep_parameters(self, locals())


class QuadraticClassifier(_Quadratic, ModelClassifier):
    """Quadratic model with a weight for every pair of features, sparse and of low rank, for classes.

    Two classes are taken as -1 and +1; more are fitted one against the rest. Objective, parameters and
    attributes are those of `QuadraticRegressor`, with these differences.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic" or "squared_hinge"; the losses for regression take the labels -1 and +1 as numbers.
    class_weight : dict or "balanced", optional
        As for `FactorizationMachineClassifier`.
    loss_param, solver, lambda_w, lambda_trace, lambda_sparse, fit_linear, fit_intercept, max_iter, tol
        As for `QuadraticRegressor`.
    warm_start, early_stopping, validation_fraction, n_iter_no_change, verbose, random_state, callback
        As for `QuadraticRegressor`.

    Attributes
    ----------
    classes_ : (C,) ndarray
        The labels, sorted; of two classes the second is the positive one. With more, or with several labels a
        row, there is a machine for each, and parameters and coefficients have a first axis for them.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> fitted = fmviz.QuadraticClassifier(lambda_sparse=0.02).fit(X, y)
    >>> fitted.interactions()[["feature_i", "feature_j"]].values.tolist()
    [[0, 1]]
    """

    def __init__(
        self,
        *,
        loss: str | Loss = "logistic",
        loss_param: float | None = None,
        class_weight: Weights | None = None,
        solver: str | Solver = "auto",
        lambda_w: float | None = None,
        lambda_trace: float | None = 0.0,
        lambda_sparse: float | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        max_iter: int = 2000,
        tol: float = 1e-6,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        verbose: int = 0,
        random_state: RandomState | None = None,
        callback: Callback | None = None,
    ) -> None:
        keep_parameters(self, locals())
