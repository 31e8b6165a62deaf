"""Base class of estimators whose models are sums of kernels of the columns of P."""

from __future__ import annotations

from math import factorial
from typing import Any, ClassVar

import numpy as np

from fmviz.engine.interactions.weights import Interactions
from fmviz.engine.parameters import Parameters

from .base import StrengthsOfData
from .interactions import ProductEstimator


class KernelSumEstimator(StrengthsOfData, ProductEstimator):
    """An estimator of Σ_s c_s K(p_s, x), with one kernel or several."""

    # Whether a feature may be repeated in a product.
    _repeated: ClassVar[bool] = False

    def _split(self, parameters: Parameters) -> None:
        model: Any = self._fitted_model
        d = parameters.w.size - self._fitted_dummies
        self.P_, self.w_ = parameters.P[:d], parameters.w[:d].copy()
        self.intercept_ = parameters.intercept + float(parameters.w[d:].sum())
        self.factors_, self.coefficients_ = {}, {}
        for columns, kernel in model.parts(parameters.P.shape[1]):
            for order, weights in kernel.split(parameters.P[d:, columns]).items():
                coefficients = parameters.multipliers[columns] * weights
                if order == 0:
                    self.intercept_ += float(coefficients.sum())
                elif order == 1:
                    self.w_ += self.P_[:, columns] @ coefficients
                elif order == kernel.degree or self._fitted_dummies:
                    self.factors_[order] = self.P_[:, columns]
                    self.coefficients_[order] = coefficients

    def _of_order(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors and coefficients of an order that the model has."""
        return self.factors_[order], self.coefficients_[order]

    def _live(self, order: int) -> np.ndarray:
        """Return the factors of an order, columns with a coefficient of 0 set to 0."""
        factors, coefficients = self._of_order(order)
        return np.where(coefficients != 0, factors, 0.0)

    def _interactions(self, order: int) -> Interactions:
        factors, coefficients = self._of_order(order)
        d = factors.shape[0]
        times = factorial(order) if self._repeated else 1
        return Interactions(np.arange(d), d, order, factors[None], coefficients, self._repeated, times)

    def _used_features(self) -> np.ndarray:
        return np.flatnonzero(np.any([self._live(m).any(axis=1) for m in self._orders()], axis=0))
