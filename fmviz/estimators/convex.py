"""Convex factorization machines as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fmviz.engine.losses import Loss
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import Solver

from .base import Callback, RandomState, TraceNormStrengths
from .classifier import ModelClassifier, Weights
from .fitting import keep_parameters
from .interactions import WeightedPairEstimator
from .regressor import ModelRegressor


class _ConvexFM(TraceNormStrengths, WeightedPairEstimator):
    """Common base of the regressor and the classifier."""

    def _model_choice(self) -> tuple[str, dict[str, Any]]:
        return "convex_fm", {"diagonal": self.diagonal}

    def _store(self, end: Snapshot) -> None:
        super()._store(end)
        self.rank_ = int(np.count_nonzero(self.coefficients_))


class ConvexFMRegressor(_ConvexFM, ModelRegressor):
    """Convex factorization machine for regression: low-rank pair weights W under the trace norm.

    Minimises (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_tr‖W‖_tr over the symmetric W, w and the bias b, with
    f(x) = b + ⟨w, x⟩ + Σ_{i<j} w_ij x_i x_j, or b + ⟨w, x⟩ + xᵀWx with `diagonal` (Blondel, Fujino and Ueda
    2015). ‖W‖_tr is the sum of the |eigenvalues| of W = P diag(λ) Pᵀ, which is never formed. The losses are
    those of `FactorizationMachineRegressor`.

    Parameters
    ----------
    rank : int, default=30
        The highest rank of W. Where the optimum's is higher, the fit is not the optimum, and the duality gap
        bounds by how much it falls short.
    diagonal : bool, default=False
        Whether f depends on the diagonal of W: then w_ij and w_ji both count, so that x_i x_j has the weight
        2w_ij and x_i² the weight w_ii.
    solver : str, default="auto"
        "gcd", which is "auto".
    solver_params : dict, optional
        The parameters of the solver, for instance ``{"refit": "diagonal"}``.
    lambda_w, lambda_trace : float, optional
        λ_w and λ_tr, both ≥ 0. None derives them from the data: λ_w as for
        `FactorizationMachineRegressor`, λ_tr as 0.15 of the one from which W = 0.
    max_iter : int, default=100
        The maximum number of epochs; each refits everything.
    tol : float, default=1e-6
        The fit has converged once neither W nor a linear weight changes by more than `tol` times the largest
        eigenvalue or weight in an epoch.
    loss, loss_param, fit_linear, fit_intercept, warm_start, early_stopping, validation_fraction
        As for `FactorizationMachineRegressor`.
    n_iter_no_change, verbose, callback
        As for `FactorizationMachineRegressor`.
    random_state : int, numpy Generator or RandomState, optional
        Gives the start of the search for eigenvectors, with many features, and the held-out rows.

    Attributes
    ----------
    P_ : (d, rank) ndarray
        Orthonormal columns, and columns of zeros where the rank of W is lower.
    coefficients_ : (rank,) ndarray
        λ, largest |λ_s| first; the weight of the pair (i, j) is w_ij = Σ_s λ_s p_is p_js.
    rank_ : int
        The rank of W: the number of λ_s ≠ 0.
    w_ : (d,) ndarray
        The linear weights; zeros without a linear term.
    intercept_ : float
        The bias; 0 without one.
    used_features_ : (m,) int ndarray
        The features whose row of P is not zero.
    n_used_interactions_ : int
        The number of pairs i < j whose rows of P share a column in which both are non-zero. The trace norm
        makes W low in rank, not sparse.
    lambda_w_, lambda_trace_ : float
        λ_w and λ_tr of the fit.
    certificate_ : float
        The relative duality gap at the end, recomputed from the parameters: the objective exceeds its minimum
        by at most this share of itself; with ``lambda_trace=0``, that of any W of no larger trace norm.
    history_, status_, n_iter_, n_features_in_, feature_names_in_
        As for `FactorizationMachineRegressor`.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> fitted = fmviz.ConvexFMRegressor(lambda_trace=0.3, fit_linear=False, random_state=0).fit(X, y)
    >>> fitted.rank_  # one for each of the three planted groups
    3
    >>> fitted.certificate_ < 1e-4
    True
    """

    def __init__(
        self,
        rank: int = 30,
        *,
        diagonal: bool = False,
        loss: str | Loss = "squared",
        loss_param: float | None = None,
        solver: str | Solver = "auto",
        solver_params: Mapping[str, Any] | None = None,
        lambda_w: float | None = None,
        lambda_trace: float | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        max_iter: int = 100,
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


class ConvexFMClassifier(_ConvexFM, ModelClassifier):
    """Convex factorization machine for classes: low-rank pair weights W under the trace norm.

    Two classes are taken as -1 and +1; more are fitted one against the rest. Objective, parameters and
    attributes are those of `ConvexFMRegressor`, with these differences.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic" or "squared_hinge"; the losses for regression take the labels -1 and +1 as numbers.
    class_weight : dict or "balanced", optional
        As for `FactorizationMachineClassifier`.
    rank, diagonal, loss_param, solver, solver_params, lambda_w, lambda_trace, fit_linear, fit_intercept
        As for `ConvexFMRegressor`.
    max_iter, tol, warm_start, early_stopping, validation_fraction, n_iter_no_change, verbose
        As for `ConvexFMRegressor`.
    random_state, callback
        As for `ConvexFMRegressor`.

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
    >>> fitted = fmviz.ConvexFMClassifier(lambda_trace=0.01, random_state=0).fit(X, y)
    >>> fitted.interactions(top=1)[["feature_i", "feature_j"]].values.tolist()
    [[0, 1]]
    >>> fitted.certificate_ < 1e-4
    True
    """

    def __init__(
        self,
        rank: int = 30,
        *,
        diagonal: bool = False,
        loss: str | Loss = "logistic",
        loss_param: float | None = None,
        class_weight: Weights | None = None,
        solver: str | Solver = "auto",
        solver_params: Mapping[str, Any] | None = None,
        lambda_w: float | None = None,
        lambda_trace: float | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        max_iter: int = 100,
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
