"""Polynomial networks as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fmviz.engine.losses import Loss
from fmviz.engine.penalties import Penalty
from fmviz.engine.solvers import Solver

from .base import Callback, RandomState
from .classifier import ModelClassifier, Weights
from .fitting import keep_parameters
from .kernel_sums import KernelSumEstimator
from .regressor import ModelRegressor


class _PolynomialNetwork(KernelSumEstimator):
    """Common base of the regressor and the classifier."""

    _repeated = True

    def _model_choice(self) -> tuple[str, dict[str, Any]]:
        self._switch("augment")
        return "expansion", {
            "kernel": "polynomial",
            "degree": self.degree,
            "coefficients": self.coefficients,
        }

    def _dummies(self) -> int:
        return int(self.augment)


class PolynomialNetworkRegressor(_PolynomialNetwork, ModelRegressor):
    """Polynomial network for regression.

    Minimises (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p Σ_s |λ_s|‖p_s‖² + λ Ω(P) over P, the coefficients
    λ_s, w and the bias b, with f(x) = b + ⟨w, x⟩ + Σ_s λ_s⟨p_s, x⟩^m (blondel2016, Eq. 1 and 13). With fitted
    coefficients and m > 2 the shrinkage is λ_p Σ_s |λ_s|‖p_s‖^m: with the square it could be made 0 at
    the same f by moving the scale of p_s into λ_s, while this one does not depend on the scale; for m = 2 the
    two are equal. With `augment` a dummy feature that is always 1 turns ⟨p_s, x⟩^m into (γ_s + ⟨p_s,
    x⟩)^m, products of all degrees up to m, with γ_s learned and penalised as all other factors are (Section
    8). The losses are those of `FactorizationMachineRegressor`.

    Parameters
    ----------
    rank : int, default=10
        The number of columns of P.
    degree : int, default=2
        m, from 2 to 10.
    coefficients : {"fitted", "ones", "signs"}, default="fitted"
        λ_s is fitted, 1, or a random sign. For odd m all three give the same functions.
    augment : bool, default=False
        Whether to add the dummy feature.
    regularizer : str or Penalty, default="l2"
        Ω, a name from `fmviz.list_regularizers`. With fitted λ_s it must be "l2" with ``lambda_sparse=0``:
        then λ_p bounds both P and λ.
    lambda_w, lambda_p : float, optional
        λ_w and λ_p, both ≥ 0. By default they are derived from the data: λ_w as for
        `FactorizationMachineRegressor`, λ_p is 0.02 of the value that outweighs the gain of the best single
        column.
    lambda_sparse : float, default=0.0
        λ ≥ 0.
    init_scale : float, optional
        The standard deviation of the normal distribution from which the entries of P start; by default
        0.1 of the size of those of the best single column.
    loss, loss_param, regularizer_params, solver, solver_params, fit_linear, fit_intercept, max_iter, tol
        As for `FactorizationMachineRegressor`.
    warm_start, early_stopping, validation_fraction, n_iter_no_change, verbose, random_state, callback, dtype
        As for `FactorizationMachineRegressor`.

    Attributes
    ----------
    P_ : (d, rank) ndarray
        The factors.
    factors_ : dict of int to (d, rank) ndarray
        The factors of each order: of the degree, and with `augment` of all lower ones from 2 up.
    coefficients_ : dict of int to (rank,) ndarray
        The weights of the columns' powers of each order:
        f(x) = b + ⟨w, x⟩ + Σ_m Σ_s coefficients_[m]_s ⟨factors_[m]_:,s, x⟩^m.
    w_ : (d,) ndarray
        The linear weights, those due to the dummy feature included.
    intercept_ : float
        The constant, that due to the dummy feature included.
    used_features_ : (m,) int ndarray
        The features whose row of P is not zero in a column with a coefficient other than 0.
    used_interactions_ : dict of int to int
        The number of sets of distinct features that share a column in which all their factors are non-zero,
        by size. Products in which a feature is repeated are not counted; `interactions` lists them, too.
    n_used_interactions_ : int
        The sum of these numbers.
    lambda_w_, lambda_p_, lambda_sparse_ : float
        The strengths of the fit.
    history_ : DataFrame
        As for `FactorizationMachineRegressor`; counts are those with the dummy features, if any.
    certificate_, status_, n_iter_, n_features_in_, feature_names_in_
        As for `FactorizationMachineRegressor`.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y = X[:, 0] ** 2 - X[:, 1] ** 2
    >>> network = fmviz.PolynomialNetworkRegressor(rank=4, max_iter=2000, random_state=0).fit(X, y)
    >>> network.score(X, y) > 0.99
    True
    >>> network.interactions(top=2).round(1)
       feature_1  feature_2  weight
    0          0          0     1.0
    1          1          1    -1.0
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        degree: int = 2,
        coefficients: str = "fitted",
        augment: bool = False,
        loss: str | Loss = "squared",
        loss_param: float | None = None,
        regularizer: str | Penalty = "l2",
        regularizer_params: Mapping[str, Any] | None = None,
        solver: str | Solver = "auto",
        solver_params: Mapping[str, Any] | None = None,
        lambda_w: float | None = None,
        lambda_p: float | None = None,
        lambda_sparse: float = 0.0,
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


class PolynomialNetworkClassifier(_PolynomialNetwork, ModelClassifier):
    """Polynomial network for classes.

    Two classes are taken as -1 and +1; more are fitted one against the rest. Objective, parameters and
    attributes are those of `PolynomialNetworkRegressor`, with these differences.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic" or "squared_hinge"; the losses for regression take the labels -1 and +1 as numbers.
    class_weight : dict or "balanced", optional
        As for `FactorizationMachineClassifier`.
    rank, degree, coefficients, augment, loss_param, regularizer, regularizer_params, solver
        As for `PolynomialNetworkRegressor`.
    solver_params, lambda_w, lambda_p, lambda_sparse, fit_linear, fit_intercept, init_scale, max_iter
        As for `PolynomialNetworkRegressor`.
    tol, warm_start, early_stopping, validation_fraction, n_iter_no_change, verbose, random_state
        As for `PolynomialNetworkRegressor`.
    callback, dtype
        As for `PolynomialNetworkRegressor`.

    Attributes
    ----------
    classes_ : (C,) ndarray
        The labels, sorted; of two classes the second is the positive one. With more, or with several labels a
        row, there is a machine for each, and parameters and coefficients have a first axis for them.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> labels = np.where((X**2).sum(axis=1) < 1, "inside", "outside")
    >>> network = fmviz.PolynomialNetworkClassifier(rank=3, max_iter=2000, random_state=0).fit(X, labels)
    >>> network.predict([[0.5, 0.5], [1.0, 1.0]]).tolist()
    ['inside', 'outside']
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        degree: int = 2,
        coefficients: str = "fitted",
        augment: bool = False,
        loss: str | Loss = "logistic",
        loss_param: float | None = None,
        class_weight: Weights | None = None,
        regularizer: str | Penalty = "l2",
        regularizer_params: Mapping[str, Any] | None = None,
        solver: str | Solver = "auto",
        solver_params: Mapping[str, Any] | None = None,
        lambda_w: float | None = None,
        lambda_p: float | None = None,
        lambda_sparse: float = 0.0,
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
