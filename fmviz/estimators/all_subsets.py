"""All-subsets models as scikit-learn estimators."""

from __future__ import annotations

import numpy as np

from fmviz.engine.snapshot import Parameters

from .base import FactorEstimator, ModelClassifier, ModelRegressor, with_parameters
from .kernel_sums import KernelSumEstimator


class _AllSubsets(KernelSumEstimator):
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
