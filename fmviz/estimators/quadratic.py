"""Quadratic regression, sparse and of low rank, as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fmviz.engine.errors import finite_number
from fmviz.engine.snapshot import Parameters, Snapshot
from fmviz.metrics import used_pairs

from .base import ModelClassifier, ModelRegressor, PairEstimator, with_parameters


class _Quadratic(PairEstimator):
    """What regression and classification share."""

    _model = "qr"

    def __init__(
        self,
        *,
        loss: str = "squared",
        solver: str = "auto",
        lambda_w: float = 1e-3,
        lambda_trace: float = 1e-3,
        lambda_sparse: float = 1e-3,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        max_iter: int = 2000,
        tol: float = 1e-6,
        warm_start: bool = False,
        callback: Callable[[Snapshot], Any] | None = None,
        loss_param: float | None = None,
    ) -> None:
        self.loss = loss
        self.solver = solver
        self.lambda_w = lambda_w
        self.lambda_trace = lambda_trace
        self.lambda_sparse = lambda_sparse
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.callback = callback
        self.loss_param = loss_param

    W_: np.ndarray

    def _problem(self) -> dict[str, Any]:
        return {"regularizer": "l1", "lambda_p": finite_number("lambda_trace", self.lambda_trace, low=0)}

    def _keep(self, last: Snapshot) -> None:
        self.W_ = last.parameters.weights
        super()._keep(last)

    def _fitted(self) -> Parameters:
        return Parameters.of_weights(self.W_, self.w_, self.intercept_)

    def _used_features(self) -> np.ndarray:
        return np.flatnonzero(used_pairs(Parameters.of_weights(self.W_)).any(axis=1))


class QuadraticRegressor(_Quadratic, ModelRegressor):
    """Quadratic regression with a weight for every pair of features, sparse and of low rank.

    Minimises the convex (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_tr‖W‖_tr + λ̃‖W‖₁ over the symmetric W,
    w and the bias, with f(x) = b + ⟨w, x⟩ + Σ_{i<j} w_ij x_i x_j (atarashi2021, Eq. 3 and 58). ‖W‖_tr is the
    sum of the |eigenvalues| and ‖W‖₁ that of the |w_ij| over all d² entries. λ_tr = 0 gives the QR with ℓ₁ of
    Eq. 22, both strengths together the sparse and low-rank QR (SLQR). The losses are those of
    `fmviz.FactorizationMachineRegressor`.

    W takes O(d²) memory; an iteration O(nnz·d) time for the data and, unless λ_tr = 0, O(d³) for each of its
    eigendecompositions.

    Parameters
    ----------
    loss : str, default="squared"
        "squared" or "huber".
    solver : str, default="auto"
        "exact_pgd", which is "auto", or "incremental_pgd", which with both penalties ends near the optimum.
    lambda_w, lambda_trace, lambda_sparse : float, default=1e-3
        λ_w, λ_tr and λ̃, all ≥ 0.
    fit_linear, fit_intercept : bool, default=True
        Whether there are w and an unpenalised bias.
    max_iter : int, default=2000
        The most iterations.
    tol : float, default=1e-6
        Converged when no parameter changes by more than `tol` times the largest one in an iteration.
    warm_start : bool, default=False
        Whether `fit` starts from the parameters of the previous call, instead of 0.
    callback : callable, optional
        Called with every `fmviz.engine.snapshot.Snapshot`; a true return value stops the run.
    loss_param : float, optional
        The loss's own parameter: Huber's δ.

    Attributes
    ----------
    W_ : (d, d) ndarray
        The symmetric weights of the pairs. The diagonal is no interaction: f does not see it, but a W of low
        rank needs one.
    w_ : (d,) ndarray
        The linear weights; zeros without a linear term.
    intercept_ : float
        The bias; 0 without one.
    history_ : DataFrame
        One row an iteration: objective and its parts, used features and interactions, certificate (every
        tenth iteration and the last), solver seconds.
    used_features_ : (m,) int ndarray
        The features in a pair whose weight is not 0.
    n_used_interactions_ : int
        Pairs i < j with w_ij ≠ 0, without a tolerance.
    certificate_ : float
        The relative duality gap at the end, recomputed from the parameters: the objective is at most this
        part of itself above the least possible.
    status_ : fmviz.engine.snapshot.Status
        How the run ended, with a sentence in ``status_.message``.
    n_iter_ : int
        Iterations made.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(random_state=0)
    >>> fitted = fmviz.QuadraticRegressor(
    ...     lambda_trace=1.0, lambda_sparse=0.3, fit_linear=False, fit_intercept=False
    ... ).fit(X, y)
    >>> fitted.certificate_ < 1e-3
    True
    """


class QuadraticClassifier(_Quadratic, ModelClassifier):
    """Quadratic classification of two classes, sparse and of low rank.

    Objective, parameters and attributes are those of `QuadraticRegressor`, with the labels taken as -1 and
    +1, and these differences.

    Parameters
    ----------
    loss : str, default="logistic"
        "logistic" or "squared_hinge", or a regression loss on the labels -1 and +1.

    Attributes
    ----------
    classes_ : (2,) ndarray
        The labels; the second is the positive one.
    """

    __init__ = with_parameters(_Quadratic.__init__, loss="logistic")
