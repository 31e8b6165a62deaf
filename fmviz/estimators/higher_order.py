"""Higher-order factorization machines as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

from fmviz.engine.errors import whole_number

from .base import FactorEstimator, ModelClassifier, ModelRegressor, with_parameters
from .kernel_sums import KernelSumEstimator


class _HigherOrderFM(KernelSumEstimator):
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
