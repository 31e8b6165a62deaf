"""Lifted kernel expansions as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.counting import features_in_products, used_matchings
from fmviz.engine.errors import whole_number
from fmviz.engine.matchings import matching_weight, ranked_matchings
from fmviz.engine.snapshot import Parameters, Snapshot

from .base import FactorEstimator, ModelClassifier, ModelRegressor, with_parameters

__all__ = ["LiftedClassifier", "LiftedRegressor"]

if TYPE_CHECKING:
    import pandas as pd


class _Lifted(FactorEstimator):
    """What regression and classification share."""

    _model = "lifted"

    kernel: str
    degree: int
    augment: bool

    factors_: dict[int, np.ndarray]
    coefficients_: dict[int, np.ndarray]
    used_interactions_: dict[int, int]
    _parameters: Parameters

    __init__ = with_parameters(
        FactorEstimator.__init__,
        kernel="polynomial",
        degree=2,
        augment=False,
        regularizer="l2",
        lambda_sparse=0.0,
        init_scale=0.1,
    )

    def _dummies(self) -> int:
        return int(bool(self.augment))

    def _problem(self) -> dict[str, Any]:
        if self.augment not in (True, False):
            raise ValueError(f"augment = {self.augment!r} is neither True nor False.")
        return {**super()._problem(), "model_params": {"kernel": self.kernel, "degree": self.degree}}

    def _fitted(self) -> Parameters:
        return self._parameters

    def _keep(self, last: Snapshot) -> None:
        found, model = last.parameters, self._model_of_fit
        self._parameters = found
        d = found.w.size - self._fitted_dummies
        self.P_ = found.P[:d]
        self.w_ = found.w[:d].copy()
        self.intercept_ = found.intercept + float(found.w[d:].sum())
        whole = model.factors(found.P)
        self.U_ = whole[:, :d]
        self.factors_, self.coefficients_ = {}, {}
        for order in range(model.degree, -1, -1):
            if order < model.degree and not self._fitted_dummies:
                break
            U, c = _beside_dummy(whole, order)
            if order >= 2:
                c = 0.5 * c if model.distinct else c
                self.factors_[order], self.coefficients_[order] = U[:, :d], c
            elif order == 1:
                self.w_ += U[0, :d] @ c * (0.5 if model.distinct else 1.0)
            elif not model.distinct:
                self.intercept_ += float(c.sum())
        self.used_interactions_ = {m: used_matchings(self._weighed(m)) for m in self.factors_}
        self.n_used_interactions_ = sum(self.used_interactions_.values())
        self.used_features_ = self._used_features()

    @property
    def _model_of_fit(self) -> Any:
        return self._fitted_model

    def _weighed(self, order: int) -> np.ndarray:
        """Return the factors of an order with the coefficients in the first."""
        U = self.factors_[order].copy()
        U[0] *= self.coefficients_[order]
        return U

    def _used_features(self) -> np.ndarray:
        distinct = self._model_of_fit.distinct
        used = [features_in_products(self._weighed(order), distinct) for order in self.factors_]
        return np.flatnonzero(np.any(used, axis=0))

    def interactions(self, top: int | None = None, order: int | None = None) -> pd.DataFrame:
        """Return the used products of features, largest weight first.

        Parameters
        ----------
        top : int, optional
            The most products; without it all, however many.
        order : int, optional
            The number of features in a product; by default the degree.

        Returns
        -------
        DataFrame
            Columns ``feature_1``, …, ``feature_m`` (names where the training data had them, else indices, in
            the order of the features) and ``weight``, what their product is multiplied by in f, sorted by
            falling |weight|. With the kernel "polynomial" this includes products that hold a feature
            repeatedly.

        Raises
        ------
        ValueError
            If the model has no such order, or the search is too long or its result too large.
        """
        check_is_fitted(self)
        chosen = max(self.factors_) if order is None else whole_number("order", order, 2, 10)
        if top is not None:
            whole_number("top", top, 1)
        if chosen not in self.factors_:
            has = ", ".join(str(m) for m in self.factors_)
            raise ValueError(f"order = {chosen} is not in this model; it has products of order {has}.")
        found, weight = ranked_matchings(self._weighed(chosen), top, repeated=not self._model_of_fit.distinct)
        names = self._names()
        table = {f"feature_{t + 1}": names[found[:, t]] for t in range(chosen)}
        import pandas as pd

        return pd.DataFrame({**table, "weight": weight})

    def interaction_weight(self, features: Sequence[Any]) -> float:
        """Return what the product of some distinct features is multiplied by in f.

        Parameters
        ----------
        features : sequence
            Names where the training data had them, or indices.

        Returns
        -------
        float
            0 where the model has no products of so many features.

        Raises
        ------
        ValueError
            If a feature does not exist or is named twice, or fewer than two are named.
        """
        check_is_fitted(self)
        chosen = self._places(features)
        return matching_weight(self._weighed(len(chosen)), chosen) if len(chosen) in self.factors_ else 0.0


def _beside_dummy(factors: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors and coefficients of the products of `order` features beside a last one, always 1.

    Every choice of the factors that take the dummy gives as many columns; none takes it where the order is
    the degree.
    """
    m = factors.shape[0]
    parts, weights = [], []
    for taken in combinations(range(m), order):
        rest = [t for t in range(m) if t not in taken]
        parts.append(factors[list(taken)])
        weights.append(factors[rest, -1].prod(axis=0) if rest else np.ones(factors.shape[2]))
    return np.concatenate(parts, axis=2), np.concatenate(weights)


class LiftedRegressor(_Lifted, ModelRegressor):
    """Lifted kernel expansion for regression: the factors of a symmetrised tensor.

    Minimises (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + (λ_p/m) Σ_t‖U^t‖²_F + λ̃ Ω([U¹ … U^m]) over
    U¹, …, U^m, w and the bias, with f(x) = b + ⟨w, x⟩ + Σ_s Π_t ⟨u_s^t, x⟩, or with the kernel "anova"
    f(x) = b + ⟨w, x⟩ + Σ_{i<j} ½(UVᵀ + VUᵀ)_ij x_i x_j (blondel2016, Sections 5 and 7, D.3). f is linear
    in every single U^t, so that `cd` and `pcd` take powers, too. For m = 2 the minimum is that of the
    polynomial network or the machine with fitted λ at the same λ_p, and of λ_p times the trace norm of W;
    every local minimum of enough columns is that one (Theorem 2).

    Parameters
    ----------
    rank : int, default=10
        Columns of each U^t.
    kernel : {"polynomial", "anova"}, default="polynomial"
        Products of features with repetition, or, for degree 2, without.
    degree : int, default=2
        m, from 2 to 10.
    augment : bool, default=False
        Whether there is a dummy feature that is always 1, which adds products of all lower degrees.
    loss : str, default="squared"
        "squared" or "huber".
    regularizer : str, default="l2"
        Ω, a name from `fmviz.list_regularizers`; `fmviz.why_not(regularizer, model="lifted")` says what
        suits.
    lambda_sparse : float, default=0
        λ̃ ≥ 0.
    init_scale : float, default=0.1
        The factors start with independent N(0, init_scale²) entries.
    solver, lambda_w, lambda_p, fit_linear, fit_intercept, max_iter, tol, warm_start, random_state
        As in `FactorizationMachineRegressor`.
    callback, regularizer_params, loss_param, solver_params
        As in `FactorizationMachineRegressor`.

    Attributes
    ----------
    U_ : (m, d, rank) ndarray
        U¹, …, U^m, the dummy feature's rows left out.
    P_ : (d, m·rank) ndarray
        The same side by side.
    factors_ : dict of int to (order, d, columns) ndarray
        The factors of each order: of the degree, and with `augment` of all lower ones from 2 up.
    coefficients_ : dict of int to (columns,) ndarray
        What the columns of each order are multiplied by: f(x) = intercept_ + ⟨w_, x⟩ +
        Σ_m Σ_s coefficients_[m]_s Π_t ⟨factors_[m][t]_:,s, x⟩, without squares with the kernel "anova".
    w_ : (d,) ndarray
        The linear weights, those due to the dummy feature included.
    intercept_ : float
        The constant, that due to the dummy feature included.
    used_features_ : (k,) int ndarray
        The features in some product that a column makes of non-zero entries.
    used_interactions_ : dict of int to int
        Sets of distinct features that can be dealt out to the factors of some column with all entries
        non-zero, by size.
    n_used_interactions_ : int
        Their sum.
    history_, certificate_, status_, n_iter_, n_features_in_, feature_names_in_
        As in `FactorizationMachineRegressor`. Its counts are of
        the augmented data, where there is a dummy feature.

    Examples
    --------
    >>> import numpy as np, fmviz
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> lifted = fmviz.LiftedRegressor(rank=4, random_state=0).fit(X, X[:, 0] ** 2 - X[:, 1] * X[:, 2])
    >>> lifted.interactions(top=2).iloc[:, :2].astype(int).values.tolist()
    [[0, 0], [1, 2]]
    """


class LiftedClassifier(_Lifted, ModelClassifier):
    """Lifted kernel expansion for two classes.

    Objective, parameters and attributes are those of `LiftedRegressor`, with the labels taken as -1 and +1,
    and these differences.

    Parameters
    ----------
    loss : str, default="logistic"
        "logistic" or "squared_hinge", or a regression loss on the labels -1 and +1.

    Attributes
    ----------
    classes_ : (2,) ndarray
        The labels; the second is the positive one.
    """

    __init__ = with_parameters(_Lifted.__init__, loss="logistic")
