"""Lifted kernel expansions as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np

from fmviz.engine.counting import features_in_products
from fmviz.engine.interactions.weights import Interactions
from fmviz.engine.losses import Loss
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import Penalty
from fmviz.engine.solvers import Solver

from .base import Callback, RandomState, StrengthsOfData
from .classifier import ModelClassifier, Weights
from .fitting import keep_parameters
from .interactions import ProductEstimator
from .regressor import ModelRegressor


class _Lifted(StrengthsOfData, ProductEstimator):
    """Common base of the regressor and the classifier."""

    def _model_choice(self) -> tuple[str, dict[str, Any]]:
        self._switch("augment")
        return "lifted", {"kernel": self.kernel, "degree": self.degree}

    def _dummies(self) -> int:
        return int(self.augment)

    @property
    def _distinct(self) -> bool:
        """Whether the features of a product are distinct: the kernel of the last fit is "anova"."""
        model: Any = self._fitted_model
        return model.distinct

    def _split(self, parameters: Parameters) -> None:
        model: Any = self._fitted_model
        d = parameters.w.size - self._fitted_dummies
        self.P_ = parameters.P[:d]
        self.w_ = parameters.w[:d].copy()
        self.intercept_ = parameters.intercept + float(parameters.w[d:].sum())
        augmented = model.factors(parameters.P)
        self.U_ = augmented[:, :d]
        # Without squares every product is summed over both orders of its features.
        share = 0.5 if self._distinct else 1.0
        self.factors_, self.coefficients_ = {}, {}
        for order in range(model.degree, -1 if self._fitted_dummies else model.degree - 1, -1):
            U, coefficients = _beside_dummy(augmented, order)
            if order >= 2:
                self.factors_[order], self.coefficients_[order] = U[:, :d], share * coefficients
            elif order == 1:
                self.w_ += share * (U[0, :d] @ coefficients)
            elif not self._distinct:
                self.intercept_ += float(coefficients.sum())

    def _interactions(self, order: int) -> Interactions:
        U, d = self.factors_[order], self.w_.size
        # Coefficients of products of distinct features have the share of `_split`, as do entries of W.
        coefficients = self.coefficients_[order] * (2.0 if self._distinct else 1.0)
        times = 1 if self._distinct else factorial(order)
        return Interactions(np.arange(d), d, order, U, coefficients, not self._distinct, times)

    def _used_features(self) -> np.ndarray:
        every = [self._interactions(order) for order in self.factors_]
        used = [it.rows[features_in_products(it.factors, self._distinct)] for it in every]
        return np.unique(np.concatenate(used))


def _beside_dummy(factors: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors and coefficients of the products of `order` features beside a last one, always 1.

    Every choice of factors for the dummy feature gives this many columns; none has it where the order is the
    degree.
    """
    m = factors.shape[0]
    parts, weights = [], []
    for taken in combinations(range(m), order):
        others = [t for t in range(m) if t not in taken]
        parts.append(factors[list(taken)])
        weights.append(factors[others, -1].prod(axis=0) if others else np.ones(factors.shape[2]))
    return np.concatenate(parts, axis=2), np.concatenate(weights)


class LiftedRegressor(_Lifted, ModelRegressor):
    """Lifted kernel expansion for regression: the factors of a symmetrised tensor.

    Minimises (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + (λ_p/m) Σ_t‖U^t‖²_F + λ Ω([U¹ … U^m]) over
    U¹, …, U^m, w and the bias b, with f(x) = b + ⟨w, x⟩ + Σ_s Π_t ⟨u_s^t, x⟩, or with the kernel "anova"
    f(x) = b + ⟨w, x⟩ + Σ_{i<j} ½(UVᵀ + VUᵀ)_ij x_i x_j (blondel2016, Sections 5 and 7, D.3). f is linear
    in every single U^t, so that `cd` and `pcd` apply to powers, too. For m = 2 the minimum is that of the
    polynomial network or the machine with fitted λ at the same λ_p, and of λ_p times the trace norm of W;
    with enough columns every local minimum is a global one (Theorem 2). The losses are those of
    `FactorizationMachineRegressor`.

    Parameters
    ----------
    rank : int, default=10
        The number of columns of each U^t.
    kernel : {"polynomial", "anova"}, default="polynomial"
        Whether products may repeat features or, for degree 2 only, may not.
    degree : int, default=2
        m, from 2 to 10.
    augment : bool, default=False
        Whether to add a dummy feature that is always 1, which adds products of all lower degrees.
    regularizer : str or Penalty, default="l2"
        Ω, a name from `fmviz.list_regularizers` or a value such as ``TI(axis="rows")``;
        `fmviz.why_not(regularizer, model="lifted")` tells which suit.
    lambda_w, lambda_p : float, optional
        λ_w and λ_p, both ≥ 0. By default they are derived from the data: λ_w as for
        `FactorizationMachineRegressor`, λ_p is 0.02 of the value that outweighs the gain of the best single
        column.
    lambda_sparse : float, default=0.0
        λ ≥ 0.
    init_scale : float, optional
        The standard deviation of the normal distribution from which the entries of the U^t start; by default
        0.1 of the size of those of the best single column.
    loss, loss_param, regularizer_params, solver, solver_params, fit_linear, fit_intercept, max_iter, tol
        As for `FactorizationMachineRegressor`.
    warm_start, early_stopping, validation_fraction, n_iter_no_change, verbose, random_state, callback, dtype
        As for `FactorizationMachineRegressor`.

    Attributes
    ----------
    U_ : (m, d, rank) ndarray
        U¹, …, U^m, without the rows of the dummy feature.
    P_ : (d, m·rank) ndarray
        The same, concatenated.
    factors_ : dict of int to (order, d, columns) ndarray
        The factors of each order: of the degree, and with `augment` of all lower ones from 2 up.
    coefficients_ : dict of int to (columns,) ndarray
        The weights of the columns of each order: f(x) = b + ⟨w, x⟩ +
        Σ_m Σ_s coefficients_[m]_s Π_t ⟨factors_[m][t]_:,s, x⟩, without squares with the kernel "anova".
    w_ : (d,) ndarray
        The linear weights, those due to the dummy feature included.
    intercept_ : float
        The constant, that due to the dummy feature included.
    used_features_ : (k,) int ndarray
        The features in some product of non-zero entries of a column.
    used_interactions_ : dict of int to int
        The number of sets of distinct features that can be assigned to the factors of some column with all
        entries non-zero, by size.
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
    >>> y = X[:, 0] ** 2 - X[:, 1] * X[:, 2]
    >>> lifted = fmviz.LiftedRegressor(rank=4, max_iter=2000, random_state=0).fit(X, y)
    >>> lifted.interactions(top=2).iloc[:, :2].astype(int).values.tolist()
    [[0, 0], [1, 2]]
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        kernel: str = "polynomial",
        degree: int = 2,
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


class LiftedClassifier(_Lifted, ModelClassifier):
    """Lifted kernel expansion for classes.

    Two classes are taken as -1 and +1; more are fitted one against the rest. Objective, parameters and
    attributes are those of `LiftedRegressor`, with these differences.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic" or "squared_hinge"; the losses for regression take the labels -1 and +1 as numbers.
    class_weight : dict or "balanced", optional
        As for `FactorizationMachineClassifier`.
    rank, kernel, degree, augment, loss_param, regularizer, regularizer_params, solver, solver_params
        As for `LiftedRegressor`.
    lambda_w, lambda_p, lambda_sparse, fit_linear, fit_intercept, init_scale, max_iter, tol, warm_start
        As for `LiftedRegressor`.
    early_stopping, validation_fraction, n_iter_no_change, verbose, random_state, callback, dtype
        As for `LiftedRegressor`.

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
    >>> lifted = fmviz.LiftedClassifier(rank=4, max_iter=2000, random_state=0).fit(X, y)
    >>> lifted.interactions(top=1).iloc[0, :2].astype(int).tolist()
    [0, 1]
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        kernel: str = "polynomial",
        degree: int = 2,
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
