"""Higher-order factorization machines as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fmviz.engine.errors import whole_number
from fmviz.engine.losses import Loss
from fmviz.engine.penalties import Penalty
from fmviz.engine.solvers import Solver

from .base import Callback, RandomState
from .classifier import ModelClassifier, Weights
from .fitting import keep_parameters
from .kernel_sums import KernelSumEstimator
from .regressor import ModelRegressor


class _HigherOrderFM(KernelSumEstimator):
    """Common base of the regressor and the classifier."""

    def _model_choice(self) -> tuple[str, dict[str, Any]]:
        order = whole_number("order", self.order, 2, 10)
        if self._switch("shared"):
            return "expansion", {"kernel": "anova", "degree": order, "coefficients": self.coefficients}
        if self.coefficients != "ones":
            raise ValueError(
                f"coefficients = {self.coefficients!r} needs one P for all orders: set shared=True, or leave "
                "coefficients='ones'."
            )
        # Orders beyond the number of features have no products.
        return "hofm", {"order": max(2, min(order, getattr(self, "n_features_in_", order)))}

    def _dummies(self) -> int:
        return whole_number("order", self.order, 2, 10) - 1 if self.shared else 0


class HigherOrderFMRegressor(_HigherOrderFM, ModelRegressor):
    """Factorization machine with interactions of any order, for regression.

    Minimises (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p‖P‖²_F + λ Ω(P) over P, w and the bias b, with
    f(x) = b + ⟨w, x⟩ + Σ_{m=2}^{M} Σ_s A^m(p^(m)_s, x), where A^m sums the products of m distinct features
    (atarashi2021, Section 6.1). Every order has separate factors, and Ω applies to each in its form for
    products of m features. With `shared` one P serves all orders: f(x) = b + ⟨w, x⟩ + Σ_s λ_s A^M(p̃_s, x̃),
    with M − 1 dummy features in x̃ that are always 1, which sums A^1 to A^M with weights learned by column
    (blondel2016, Section 8); the factors of the dummy features are penalised as all others are. The losses
    are those of `FactorizationMachineRegressor`.

    Fits depend on the units of X and y. Where y is multiplied by b and X by a, the factors of order m are
    multiplied by b^{1/m}/a, so that a common λ_p or λ shrinks some orders more and others less than before.
    Bring the features and the target to unit variance, for instance with scikit-learn's StandardScaler and
    TransformedTargetRegressor.

    Parameters
    ----------
    rank : int, default=10
        The number of columns of P for each order.
    order : int, default=3
        M, from 2 to 10. Unless `shared` is true, orders beyond the number of features, which have no
        products, are dropped.
    shared : bool, default=False
        Whether one P serves all orders.
    coefficients : {"ones", "signs", "fitted"}, default="ones"
        λ_s of a shared P: all 1, random signs, or fitted, which takes the regularizer "l2" with
        ``lambda_sparse=0`` and then minimises λ_p Σ_s |λ_s|‖p̃_s‖^M in place of λ_p‖P‖²_F.
    regularizer : str or Penalty, default="omega_ti"
        Ω, a name from `fmviz.list_regularizers` or a value such as ``TI(axis="rows")``;
        `fmviz.why_not(regularizer, model="hofm")` tells which suit.
    lambda_w, lambda_p, lambda_sparse : float, optional
        λ_w, λ_p and λ, all ≥ 0. By default they are derived from the data: λ_w as for
        `FactorizationMachineRegressor`, λ_p and λ are 0.02 of the value that outweighs the gain of the best
        single column.
    init_scale : float, optional
        The standard deviation of the normal distribution from which the entries of P start; by default 0.1
        of the size of those of the best single column: more than for order 2, since the gradient in the
        factors of order m shrinks with its power m − 1.
    loss, loss_param, regularizer_params, solver, solver_params, fit_linear, fit_intercept, max_iter, tol
        As for `FactorizationMachineRegressor`.
    warm_start, early_stopping, validation_fraction, n_iter_no_change, verbose, random_state, callback, dtype
        As for `FactorizationMachineRegressor`.

    Attributes
    ----------
    P_ : (d, columns) ndarray
        The factors of all orders.
    factors_ : dict of int to (d, rank) ndarray
        The factors of each order.
    coefficients_ : dict of int to (rank,) ndarray
        The weights of the columns' kernels of each order:
        f(x) = b + ⟨w, x⟩ + Σ_m Σ_s λ_ms A^m(p_ms, x), λ_m = ``coefficients_[m]``.
    w_ : (d,) ndarray
        The linear weights, those due to dummy features included.
    intercept_ : float
        The constant, that due to dummy features included.
    used_features_ : (m,) int ndarray
        The features whose row of P is not zero in a column with a coefficient other than 0.
    used_interactions_ : dict of int to int
        The number of sets of distinct features that share a column in which all their factors are non-zero,
        by size.
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
    >>> y = X[:, 0] * X[:, 1] * X[:, 2]
    >>> machine = fmviz.HigherOrderFMRegressor(rank=4, max_iter=2000, random_state=0).fit(X, y)
    >>> machine.interactions(top=1).iloc[0, :3].astype(int).tolist()
    [0, 1, 2]
    >>> round(machine.interaction_weight([0, 1, 2]), 1)
    1.0
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        order: int = 3,
        shared: bool = False,
        coefficients: str = "ones",
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


class HigherOrderFMClassifier(_HigherOrderFM, ModelClassifier):
    """Factorization machine with interactions of any order, for classes.

    Two classes are taken as -1 and +1; more are fitted one against the rest. Objective, parameters and
    attributes are those of `HigherOrderFMRegressor`, with these differences.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic" or "squared_hinge"; the losses for regression take the labels -1 and +1 as numbers.
    class_weight : dict or "balanced", optional
        As for `FactorizationMachineClassifier`.
    rank, order, shared, coefficients, loss_param, regularizer, regularizer_params, solver
        As for `HigherOrderFMRegressor`.
    solver_params, lambda_w, lambda_p, lambda_sparse, fit_linear, fit_intercept, init_scale, max_iter
        As for `HigherOrderFMRegressor`.
    tol, warm_start, early_stopping, validation_fraction, n_iter_no_change, verbose, random_state
        As for `HigherOrderFMRegressor`.
    callback, dtype
        As for `HigherOrderFMRegressor`.

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
    >>> y = X[:, 0] * X[:, 1] * X[:, 2] > 0
    >>> machine = fmviz.HigherOrderFMClassifier(rank=4, max_iter=2000, random_state=0).fit(X, y)
    >>> machine.interactions(top=1).iloc[0, :3].astype(int).tolist()
    [0, 1, 2]
    >>> machine.predict([[1, 1, 1, 0, 0], [-1, 1, 1, 0, 0]]).tolist()
    [True, False]
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        order: int = 3,
        shared: bool = False,
        coefficients: str = "ones",
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
