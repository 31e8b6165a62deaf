"""Polynomial networks as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

from .base import FactorEstimator, ModelClassifier, ModelRegressor, with_parameters
from .kernel_sums import KernelSumEstimator


class _PolynomialNetwork(KernelSumEstimator):
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
