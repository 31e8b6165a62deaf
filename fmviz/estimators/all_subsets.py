"""All-subsets models as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fmviz.engine.losses import Loss
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import Penalty
from fmviz.engine.solvers import Solver

from .base import Callback, RandomState
from .classifier import ModelClassifier, Weights
from .fitting import keep_parameters
from .kernel_sums import KernelSumEstimator
from .regressor import ModelRegressor


class _AllSubsets(KernelSumEstimator):
    """Common base of the regressor and the classifier; products of every order have the same factors."""

    def _model_choice(self) -> tuple[str, dict[str, Any]]:
        return "all_subsets", {}

    def _split(self, parameters: Parameters) -> None:
        self.P_, self.w_, self.intercept_ = parameters.P, parameters.w, parameters.intercept

    def _orders(self) -> tuple[int, ...]:
        return (2, 3)

    def _has_order(self, order: int) -> bool:
        return True

    def _of_order(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        return self.P_, np.ones(self.P_.shape[1])


class AllSubsetsRegressor(_AllSubsets, ModelRegressor):
    """All-subsets model for regression: interactions of every order from one P.

    Minimises (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p‖P‖²_F + λ Ω(P) over P, w and the bias b, with
    f(x) = b + ⟨w, x⟩ + Σ_s Π_j (1 + p_js x_j): the product of the features of any subset S is multiplied by
    Σ_s Π_{j∈S} p_js (atarashi2021, Section 6.2). This includes the empty subset and those of one feature: a
    constant equal to the rank and linear weights Σ_s p_js besides b and w. The losses are those of
    `FactorizationMachineRegressor`.

    The products grow exponentially with the number of large features: where a fit diverges, scale the
    features or choose a smaller `init_scale`.

    Fits depend on the units of X and y, above all of y: multiples of the model are not in the model
    class, as factors that make pairs a thousand times as large make triples 30,000 times as large. Nor is
    there a λ that suits Ω, a sum over products of all orders, in all units of X. Bring the features and the
    target to unit variance, for instance with scikit-learn's StandardScaler and TransformedTargetRegressor.

    Parameters
    ----------
    rank : int, default=10
        The number of columns of P.
    regularizer : str or Penalty, default="omega_ti"
        Ω, a name from `fmviz.list_regularizers` or a value such as ``TI(axis="rows")``;
        `fmviz.why_not(regularizer, model="all_subsets")` tells which suit.
    lambda_w, lambda_p, lambda_sparse : float, optional
        λ_w, λ_p and λ, all ≥ 0. By default they are derived from the data: λ_w as for
        `FactorizationMachineRegressor`, λ_p and λ are 0.02 of the value that outweighs the gain of the best
        single column.
    init_scale : float, optional
        The standard deviation of the normal distribution from which the entries of P start; by default
        0.02 of the size of those of the best single column.
    loss, loss_param, regularizer_params, solver, solver_params, fit_linear, fit_intercept, max_iter, tol
        As for `FactorizationMachineRegressor`.
    warm_start, early_stopping, validation_fraction, n_iter_no_change, verbose, random_state, callback, dtype
        As for `FactorizationMachineRegressor`.

    Attributes
    ----------
    P_ : (d, rank) ndarray
        The factors.
    w_ : (d,) ndarray
        The linear weights w.
    intercept_ : float
        The bias b.
    used_features_ : (m,) int ndarray
        The features whose row of P is not zero.
    used_interactions_ : dict of int to int
        The number of pairs and of triples of features that share a column in which all their factors are
        non-zero.
    n_used_interactions_ : int
        The sum of these numbers.
    lambda_w_, lambda_p_, lambda_sparse_ : float
        The strengths of the fit.
    history_, certificate_, status_, n_iter_, n_features_in_, feature_names_in_
        As for `FactorizationMachineRegressor`.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 6))
    >>> y = (1 + X[:, 0]) * (1 - X[:, 1]) * (1 + X[:, 2])
    >>> fitted = fmviz.AllSubsetsRegressor(rank=3, random_state=0).fit(X, y)
    >>> round(fitted.interaction_weight([0, 1, 2]), 1)
    -1.0
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        loss: str | Loss = "squared",
        loss_param: float | None = None,
        regularizer: str | Penalty = "omega_ti",
        regularizer_params: Mapping[str, Any] | None = None,
        solver: str | Solver = "auto",
        solver_params: Mapping[str, Any] | None = None,
        lambda_w: float | None = None,
        lambda_p: float | None = None,
        lambda_sparse: float | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        init_scale: float | None = None,
        max_iter: int = 200,
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


class AllSubsetsClassifier(_AllSubsets, ModelClassifier):
    """All-subsets model for classes.

    Two classes are taken as -1 and +1; more are fitted one against the rest. Objective, parameters and
    attributes are those of `AllSubsetsRegressor`, with these differences.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic" or "squared_hinge"; the losses for regression take the labels -1 and +1 as numbers.
    class_weight : dict or "balanced", optional
        As for `FactorizationMachineClassifier`.
    rank, loss_param, regularizer, regularizer_params, solver, solver_params, lambda_w, lambda_p
        As for `AllSubsetsRegressor`.
    lambda_sparse, fit_linear, fit_intercept, init_scale, max_iter, tol, warm_start, early_stopping
        As for `AllSubsetsRegressor`.
    validation_fraction, n_iter_no_change, verbose, random_state, callback, dtype
        As for `AllSubsetsRegressor`.

    Attributes
    ----------
    classes_ : (C,) ndarray
        The labels, sorted; of two classes the second is the positive one. With more, or with several labels a
        row, there is a machine for each, and parameters and coefficients have a first axis for them.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 6))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> fitted = fmviz.AllSubsetsClassifier(rank=3, init_scale=0.3, max_iter=2000, random_state=0).fit(X, y)
    >>> fitted.interactions(top=1, order=2).iloc[0, :2].astype(int).tolist()
    [0, 1]
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        loss: str | Loss = "logistic",
        loss_param: float | None = None,
        class_weight: Weights | None = None,
        regularizer: str | Penalty = "omega_ti",
        regularizer_params: Mapping[str, Any] | None = None,
        solver: str | Solver = "auto",
        solver_params: Mapping[str, Any] | None = None,
        lambda_w: float | None = None,
        lambda_p: float | None = None,
        lambda_sparse: float | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        init_scale: float | None = None,
        max_iter: int = 200,
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
