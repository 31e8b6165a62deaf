"""What the estimators of models that are sums of kernels of the columns of P share."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.counting import used_subsets
from fmviz.engine.errors import whole_number
from fmviz.engine.snapshot import Parameters, Snapshot
from fmviz.engine.tensors import ranked_subsets, subset_weight

from .base import FactorEstimator

if TYPE_CHECKING:
    import pandas as pd


class KernelSumEstimator(FactorEstimator):
    """What the models that are sums of column kernels share.

    Subclasses say in `_settings` what model they mean.
    """

    # Whether products of features may hold one of them twice.
    _repeated: ClassVar[bool] = False

    factors_: dict[int, np.ndarray]
    coefficients_: dict[int, np.ndarray]
    used_interactions_: dict[int, int]
    _parameters: Parameters

    def _settings(self) -> dict[str, Any]:
        """Return the model's own parameters."""
        return {}

    def _problem(self) -> dict[str, Any]:
        return {**super()._problem(), "model_params": self._settings()}

    def _fitted(self) -> Parameters:
        return self._parameters

    def _keep(self, last: Snapshot) -> None:
        self._parameters = last.parameters
        self._split(last.parameters)
        self.used_interactions_ = {m: self._used_of_order(m) for m in self._orders()}
        self.n_used_interactions_ = sum(self.used_interactions_.values())
        self.used_features_ = self._used_features()

    def _split(self, found: Parameters) -> None:
        """Store f by the orders of its products, in the features of the data alone."""
        model: Any = self._fitted_model
        d = found.w.size - self._fitted_dummies
        self.P_, self.w_ = found.P[:d], found.w[:d].copy()
        self.intercept_ = found.intercept + float(found.w[d:].sum())
        self.factors_, self.coefficients_ = {}, {}
        for columns, kernel in model.parts(found.P.shape[1]):
            for order, weights in kernel.split(found.P[d:, columns]).items():
                coefficients = found.multipliers[columns] * weights
                if order == 0:
                    self.intercept_ += float(coefficients.sum())
                elif order == 1:
                    self.w_ += self.P_[:, columns] @ coefficients
                elif order == kernel.degree or self._fitted_dummies:
                    self.factors_[order] = self.P_[:, columns]
                    self.coefficients_[order] = coefficients

    def _orders(self) -> tuple[int, ...]:
        """Return the orders of products whose number is reported."""
        return tuple(self.factors_)

    def _of_order(self, order: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return factors and coefficients of the products of so many features, None where f has none."""
        return (self.factors_[order], self.coefficients_[order]) if order in self.factors_ else None

    def _live(self, order: int) -> np.ndarray:
        """Return the factors of an order with zeros in the columns that it does not use."""
        found = self._of_order(order)
        assert found is not None, "asked of the orders there are"
        return np.where(found[1] != 0, found[0], 0.0)

    def _used_of_order(self, order: int) -> int:
        return used_subsets(self._live(order), order)[order]

    def _used_features(self) -> np.ndarray:
        return np.flatnonzero(np.any([self._live(m).any(axis=1) for m in self._orders()], axis=0))

    def interactions(self, top: int | None = None, order: int | None = None) -> pd.DataFrame:
        """Return the used products of features, largest weight first.

        Parameters
        ----------
        top : int, optional
            The most products; without it all, however many.
        order : int, optional
            The number of features in a product; by default the highest that `used_interactions_`
            tells of.

        Returns
        -------
        DataFrame
            Columns ``feature_1``, …, ``feature_m`` (names where the training data had them, else indices, in
            the order of the features) and ``weight``, what their product is multiplied by in f, sorted by
            falling |weight|. For polynomial networks this includes products that hold a feature repeatedly.

        Raises
        ------
        ValueError
            If the model has no such order, or the search is too long or its result too large; see
            `fmviz.ranked_subsets`.
        """
        check_is_fitted(self)
        chosen = max(self._orders()) if order is None else whole_number("order", order, 2, 10)
        part = self._of_order(chosen)
        if part is None:
            has = ", ".join(str(m) for m in self._orders())
            raise ValueError(f"order = {chosen} is not in this model; it has products of order {has}.")
        found, weight = ranked_subsets(part[0], chosen, part[1], top, repeated=self._repeated)
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
        order = len(chosen)
        part = self._of_order(order)
        if part is None:
            return 0.0
        return (factorial(order) if self._repeated else 1) * subset_weight(part[0], chosen, part[1])
