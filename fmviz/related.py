"""Models related to the factorization machine as scikit-learn estimators: sums of kernels of columns of P."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmviz._columns import ColumnEstimator
from fmviz._estimator import FactorEstimator, ModelClassifier, ModelRegressor, with_parameters
from fmviz.engine.errors import whole_number
from fmviz.engine.parameters import Parameters

__all__ = [
    "AllSubsetsClassifier",
    "AllSubsetsRegressor",
    "HigherOrderFMClassifier",
    "HigherOrderFMRegressor",
    "PolynomialNetworkClassifier",
    "PolynomialNetworkRegressor",
]


class _HigherOrderFM(ColumnEstimator):
    """What regression and classification share."""

    order: int
    shared: bool
    coefficients: str

    __init__ = with_parameters(
        FactorEstimator.__init__,
        order=3,
        shared=False,
        coefficients="ones",
        regularizer="omega_ti",
        init_scale=0.1,
    )

    _model = "hofm"

    def _problem(self) -> dict[str, Any]:
        return {**super()._problem(), "model": "expansion" if self.shared else self._model}

    def _dummies(self) -> int:
        return whole_number("order", self.order, 2, 10) - 1 if self.shared else 0

    def _settings(self) -> dict[str, Any]:
        if self.shared not in (True, False):
            raise ValueError(f"shared = {self.shared!r} is neither True nor False.")
        if self.shared:
            return {"kernel": "anova", "degree": self.order, "coefficients": self.coefficients}
        if self.coefficients != "ones":
            raise ValueError(
                f"coefficients = {self.coefficients!r} needs one P for all orders: set shared=True, or leave "
                "coefficients='ones'."
            )
        return {"order": self.order}


class HigherOrderFMRegressor(_HigherOrderFM, ModelRegressor):
    r"""Factorization machine with interactions of any order, for regression.

    Minimises (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p‖P‖²_F + λ̃ Ω(P) over P, w and the bias, with
    f(x) = b + ⟨w, x⟩ + Σ_{m=2}^{M} Σ_s A^m(p^(m)_s, x), where A^m sums the products of m distinct features
    (atarashi2021, Section 6.1). Every order has factors of its own, and Ω is applied to each in the form that
    it has for products of m features. With `shared` one P serves all orders: f(x) = b + ⟨w, x⟩ +
    Σ_s λ_s A^M(p̃_s, x̃), with M − 1 dummy features in x̃ that are always 1, which sums A^1 to A^M with weights
    learned by column (blondel2016, Section 8); their factors are penalised as all others are.

    Parameters
    ----------
    rank : int, default=10
        Columns of P, for each order.
    order : int, default=3
        M, from 2 to 10; the data must have as many features, or `shared` must be true.
    shared : bool, default=False
        Whether one P serves all orders.
    coefficients : {"ones", "signs", "fitted"}, default="ones"
        λ_s of a shared P: all 1, random signs, or fitted, which takes the regularizer "l2" with
        ``lambda_sparse=0`` and then minimises λ_p Σ_s |λ_s|‖p̃_s‖^M in place of λ_p‖P‖²_F.
    loss : str, default="squared"
        "squared" or "huber".
    regularizer : str, default="omega_ti"
        Ω, a name from `fmviz.list_regularizers`; `fmviz.why_not(regularizer, model="hofm")` says what suits.
    lambda_sparse : float, default=1e-3
        λ̃ ≥ 0.
    init_scale : float, default=0.1
        P starts with independent N(0, init_scale²) entries.
        The slope in P of order m shrinks with its power m − 1.
    solver, lambda_w, lambda_p, fit_linear, fit_intercept, max_iter, tol, warm_start, random_state
        As in `FactorizationMachineRegressor`.
    callback, regularizer_params, loss_param, solver_params, dtype
        As in `FactorizationMachineRegressor`.

    Attributes
    ----------
    P_ : (d, columns) ndarray
        The factors of all orders.
    factors_ : dict of int to (d, rank) ndarray
        The factors of each order.
    coefficients_ : dict of int to (rank,) ndarray
        What the columns' kernels of each order are multiplied by:
        f(x) = intercept_ + ⟨w_, x⟩ + Σ_m Σ_s coefficients_[m]_s K_m(factors_[m]_:,s, x).
    w_ : (d,) ndarray
        The linear weights, those due to dummy features included.
    intercept_ : float
        The constant, that due to dummy features included.
    used_features_ : (m,) int ndarray
        The features whose row of P is not zero, columns with a coefficient of 0 left out.
    used_interactions_ : dict of int to int
        Sets of distinct features that share a column in which all their factors are non-zero, by size.
    n_used_interactions_ : int
        Their sum.
    history_, certificate_, status_, n_iter_, n_features_in_, feature_names_in_
        As in `FactorizationMachineRegressor`. Its counts are of
        the augmented data, where there are dummy features.

    Examples
    --------
    >>> import numpy as np, fmviz
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y = X[:, 0] * X[:, 1] * X[:, 2]
    >>> machine = fmviz.HigherOrderFMRegressor(rank=4, random_state=0).fit(X, y)
    >>> machine.interactions(top=1).iloc[0, :3].astype(int).tolist()
    [0, 1, 2]
    """


class HigherOrderFMClassifier(_HigherOrderFM, ModelClassifier):
    """Factorization machine with interactions of any order, for two classes.

    Objective, parameters and attributes are those of `HigherOrderFMRegressor`, with the labels taken as -1
    and +1, and these differences.

    Parameters
    ----------
    loss : str, default="logistic"
        "logistic" or "squared_hinge", or a regression loss on the labels -1 and +1.

    Attributes
    ----------
    classes_ : (2,) ndarray
        The labels; the second is the positive one.
    """

    __init__ = with_parameters(_HigherOrderFM.__init__, loss="logistic")


class _PolynomialNetwork(ColumnEstimator):
    """What regression and classification share."""

    _model = "expansion"
    _repeated = True

    degree: int
    coefficients: str
    augment: bool

    __init__ = with_parameters(
        FactorEstimator.__init__,
        degree=2,
        coefficients="fitted",
        augment=False,
        regularizer="l2",
        lambda_sparse=0.0,
        init_scale=0.1,
    )

    def _dummies(self) -> int:
        return int(bool(self.augment))

    def _settings(self) -> dict[str, Any]:
        if self.augment not in (True, False):
            raise ValueError(f"augment = {self.augment!r} is neither True nor False.")
        return {"kernel": "polynomial", "degree": self.degree, "coefficients": self.coefficients}


class PolynomialNetworkRegressor(_PolynomialNetwork, ModelRegressor):
    """Polynomial network for regression.

    Minimises (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p Σ_s |λ_s|‖p_s‖² + λ̃ Ω(P) over P, λ, w and the bias,
    with f(x) = b + ⟨w, x⟩ + Σ_s λ_s⟨p_s, x⟩^m (blondel2016, Eq. 1 and 13). With fitted λ and m > 2 the
    shrinkage is λ_p Σ_s |λ_s|‖p_s‖^m: that of the square could be brought to 0 at the same f by moving the
    scale of p_s into it, this one does not depend on the scale, and for m = 2 the two are one. With `augment`
    a dummy feature that is always 1 turns ⟨p_s, x⟩^m into (γ_s + ⟨p_s, x⟩)^m, products of all degrees up to
    m, with γ_s learned and penalised as all other factors are (Section 8).

    Parameters
    ----------
    rank : int, default=10
        Columns of P.
    degree : int, default=2
        m, from 2 to 10.
    coefficients : {"fitted", "ones", "signs"}, default="fitted"
        λ_s is fitted, 1, or a random sign. For odd m the functions are the same with all three.
    augment : bool, default=False
        Whether there is a dummy feature.
    loss : str, default="squared"
        "squared" or "huber".
    regularizer : str, default="l2"
        Ω. With fitted λ_s it must be "l2", and ``lambda_sparse=0``: λ_p binds both.
    lambda_sparse : float, default=0
        λ̃ ≥ 0.
    init_scale : float, default=0.1
        P starts with independent N(0, init_scale²) entries.
    solver, lambda_w, lambda_p, fit_linear, fit_intercept, max_iter, tol, warm_start, random_state
        As in `FactorizationMachineRegressor`.
    callback, regularizer_params, loss_param, solver_params, dtype
        As in `FactorizationMachineRegressor`.

    Attributes
    ----------
    P_ : (d, columns) ndarray
        The factors of all orders.
    factors_ : dict of int to (d, rank) ndarray
        The factors of each order.
    coefficients_ : dict of int to (rank,) ndarray
        What the columns' kernels of each order are multiplied by:
        f(x) = intercept_ + ⟨w_, x⟩ + Σ_m Σ_s coefficients_[m]_s K_m(factors_[m]_:,s, x).
    w_ : (d,) ndarray
        The linear weights, those due to dummy features included.
    intercept_ : float
        The constant, that due to dummy features included.
    used_features_ : (m,) int ndarray
        The features whose row of P is not zero, columns with a coefficient of 0 left out.
    used_interactions_ : dict of int to int
        Sets of distinct features that share a column in which all their factors are non-zero, by size.
        Products that hold a feature repeatedly are not counted; `interactions` ranks them, too.
    n_used_interactions_ : int
        Their sum.
    history_, certificate_, status_, n_iter_, n_features_in_, feature_names_in_
        As in `FactorizationMachineRegressor`. Its counts are of
        the augmented data, where there are dummy features.

    Examples
    --------
    >>> import numpy as np, fmviz
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> network = fmviz.PolynomialNetworkRegressor(rank=4, random_state=0).fit(X, X[:, 0] ** 2 - X[:, 1] ** 2)
    >>> network.score(X, X[:, 0] ** 2 - X[:, 1] ** 2) > 0.99
    True
    """


class PolynomialNetworkClassifier(_PolynomialNetwork, ModelClassifier):
    """Polynomial network for two classes.

    Objective, parameters and attributes are those of `PolynomialNetworkRegressor`, with the labels taken as
    -1 and +1, and these differences.

    Parameters
    ----------
    loss : str, default="logistic"
        "logistic" or "squared_hinge", or a regression loss on the labels -1 and +1.

    Attributes
    ----------
    classes_ : (2,) ndarray
        The labels; the second is the positive one.
    """

    __init__ = with_parameters(_PolynomialNetwork.__init__, loss="logistic")


class _AllSubsets(ColumnEstimator):
    """What regression and classification share."""

    _model = "all_subsets"

    __init__ = with_parameters(FactorEstimator.__init__, regularizer="omega_ti")

    def _split(self, found: Parameters) -> None:
        self.P_, self.w_, self.intercept_ = found.P, found.w, found.intercept

    def _orders(self) -> tuple[int, ...]:
        return (2, 3)

    def _of_order(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        return self.P_, np.ones(self.P_.shape[1])


class AllSubsetsRegressor(_AllSubsets, ModelRegressor):
    """All-subsets model for regression: interactions of every order from one P.

    Minimises (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p‖P‖²_F + λ̃ Ω(P) over P, w and the bias, with
    f(x) = b + ⟨w, x⟩ + Σ_s Π_j (1 + p_js x_j): the product of the features of any subset S is multiplied by
    Σ_s Π_{j∈S} p_js (atarashi2021, Section 6.2). The empty subset and those of one feature are among them, a
    constant equal to the rank and linear weights Σ_s p_js besides b and w.

    The products grow exponentially with the number of large features: where a fit diverges, scale the
    features or choose a smaller `init_scale`.

    Parameters
    ----------
    rank : int, default=10
        Columns of P.
    loss : str, default="squared"
        "squared" or "huber".
    regularizer : str, default="omega_ti"
        Ω, a name from `fmviz.list_regularizers`; `fmviz.why_not(regularizer, model="all_subsets")`
        says what suits.
    lambda_sparse : float, default=1e-3
        λ̃ ≥ 0.
    init_scale : float, default=0.01
        P starts with independent N(0, init_scale²) entries.
    solver, lambda_w, lambda_p, fit_linear, fit_intercept, max_iter, tol, warm_start, random_state
        As in `FactorizationMachineRegressor`.
    callback, regularizer_params, loss_param, solver_params, dtype
        As in `FactorizationMachineRegressor`.

    Attributes
    ----------
    P_ : (d, rank) ndarray
        The factors.
    w_ : (d,) ndarray
        The linear weights w.
    intercept_ : float
        The bias b.
    used_features_ : (m,) int ndarray
        The features whose row of P is not zero, columns with a coefficient of 0 left out.
    used_interactions_ : dict of int to int
        Pairs and triples of features that share a column in which all their factors are non-zero.
    n_used_interactions_ : int
        Their sum.
    history_, certificate_, status_, n_iter_, n_features_in_, feature_names_in_
        As in `FactorizationMachineRegressor`.

    Examples
    --------
    >>> import numpy as np, fmviz
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 6))
    >>> y = (1 + X[:, 0]) * (1 - X[:, 1]) * (1 + X[:, 2])
    >>> fitted = fmviz.AllSubsetsRegressor(rank=3, random_state=0).fit(X, y)
    >>> round(fitted.interaction_weight([0, 1, 2]), 1)
    -1.0
    """


class AllSubsetsClassifier(_AllSubsets, ModelClassifier):
    """All-subsets model for two classes.

    Objective, parameters and attributes are those of `AllSubsetsRegressor`, with the labels taken as -1 and
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

    __init__ = with_parameters(_AllSubsets.__init__, loss="logistic")
