"""Base classes of estimators with tables of ranked pairs, or of ranked products of any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fmviz.engine.errors import one_of, whole_number
from fmviz.engine.interactions.weights import pairs_of
from fmviz.engine.parameters import Parameters
from fmviz.engine.snapshot import Snapshot

from .base import FactorEstimator, ModelEstimator


class PairEstimator(ModelEstimator):
    """An estimator whose interactions are pairs."""

    # Whether the weight of a pair is its entry of W where that is half of the product's weight.
    _entries: ClassVar[bool] = True

    def interactions(self, top: int | None = None, output: Any = None) -> pd.DataFrame:
        """Return the used pairs of features, largest |weight| first.

        The strengths λ and λ_p shrink weights towards 0, all the more where there are few rows.

        Parameters
        ----------
        top : int, optional
            The number of pairs to return; by default all that are used.
        output : label or int, optional
            One of several outputs, by its class or number; by default all are concatenated.

        Returns
        -------
        DataFrame
            Columns ``feature_i`` and ``feature_j``, i < j, by name where the training data had names, else by
            index, and ``weight``, ⟨p_i, p_j⟩ or w_ij. For several outputs ``output`` is the first column.

        Raises
        ------
        ValueError
            If `top` is not a positive whole number, or there is no such output.
        """
        return self._table(lambda estimator: estimator._pairs(top), output)

    def _pairs(self, top: int | None) -> pd.DataFrame:
        if top is not None:
            whole_number("top", top, 1)
        ranking = pairs_of(self._fitted_model, self._fitted_parameters(), entries=self._entries).ranked(top)
        i, j = ranking.sets.T
        names = self._names()
        return pd.DataFrame({"feature_i": names[i], "feature_j": names[j], "weight": ranking.weight})


class WeightedPairEstimator(PairEstimator):
    """An estimator of W = P diag(λ) Pᵀ."""

    regularizer = "l2"
    _settable = ("P", "coefficients", "w", "intercept")

    def _store(self, end: Snapshot) -> None:
        self.P_ = end.parameters.P
        self.coefficients_ = end.parameters.multipliers
        super()._store(end)

    def _fitted_parameters(self) -> Parameters:
        return Parameters(self.P_, self.w_, self.intercept_, coefficients=self.coefficients_)

    def _used_features(self) -> np.ndarray:
        return np.flatnonzero(self.P_[:, self.coefficients_ != 0].any(axis=1))


class ProductEstimator(FactorEstimator):
    """An estimator whose interactions are products of features, in one or more orders.

    Subclasses split f by the orders of its products, in the features of X alone, in `_split`, and return the
    `fmviz.engine.interactions.weights.Interactions` of an order in `_interactions`.
    """

    def _orders(self) -> tuple[int, ...]:
        """Return the orders that `used_interactions_` reports."""
        return tuple(self.factors_)

    def _has_order(self, order: int) -> bool:
        return order in self.factors_

    def _indices(self, features: Sequence[Any]) -> list[int]:
        """Return the indices of two or more distinct features, given by name or index; else ValueError."""
        names = getattr(self, "feature_names_in_", None)
        places = {} if names is None else {name: j for j, name in enumerate(names)}
        for name in features:
            if isinstance(name, str):
                one_of("feature", name, places)
        chosen = [
            whole_number("feature", places.get(feature, feature), 0, self.w_.size - 1) for feature in features
        ]
        if len(chosen) < 2:
            raise ValueError(f"features = {list(features)!r} must name at least two; w_ has single weights.")
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"features = {list(features)!r} must name at least two, and none twice.")
        return chosen

    def _store(self, end: Snapshot) -> None:
        self._parameters = end.parameters
        self._split(end.parameters)
        self.used_interactions_ = {m: self._interactions(m).n_used() for m in self._orders()}
        self.n_used_interactions_ = sum(self.used_interactions_.values())
        self.used_features_ = self._used_features()

    def _fitted_parameters(self) -> Parameters:
        return self._parameters

    def interactions(
        self, top: int | None = None, order: int | None = None, output: Any = None
    ) -> pd.DataFrame:
        """Return the used products of features, largest |weight| first.

        Parameters
        ----------
        top : int, optional
            The number of products to return; by default all that are used.
        order : int, optional
            The number of features in a product; by default the largest key of `used_interactions_`.
        output : label or int, optional
            One of several outputs, by its class or number; by default all are concatenated.

        Returns
        -------
        DataFrame
            Columns ``feature_1``, …, ``feature_m``, by name where the training data had names, else by index,
            in the order of the features, and ``weight``, that of their product in f. Models
            with powers of features, polynomial networks and lifted models with the kernel "polynomial", list
            products in which a feature is repeated, too. For several outputs ``output`` is the first column.

        Raises
        ------
        ValueError
            If the model has no such order or output, or the search takes too long or its result too much
            memory; see `fmviz.Interactions.ranked`.
        """
        return self._table(lambda estimator: estimator._products(top, order), output)

    def _products(self, top: int | None, order: int | None) -> pd.DataFrame:
        chosen = max(self._orders()) if order is None else whole_number("order", order, 2, 10)
        if top is not None:
            whole_number("top", top, 1)
        if not self._has_order(chosen):
            has = ", ".join(str(m) for m in self._orders())
            raise ValueError(f"order = {chosen} is not in this model; it has products of order {has}.")
        features, weight, *_ = self._interactions(chosen).ranked(top, repeated=True)
        names = self._names()
        table = {f"feature_{t + 1}": names[features[:, t]] for t in range(chosen)}
        return pd.DataFrame({**table, "weight": weight})

    def interaction_weight(self, features: Sequence[Any], output: Any = None) -> float:
        """Return the weight of the product of distinct features in f.

        Parameters
        ----------
        features : sequence
            Two or more features, by name where the training data had names, or by index.
        output : label or int, optional
            Which of several outputs, by its class or number.

        Returns
        -------
        float
            0 where the model has no products of this many features.

        Raises
        ------
        ValueError
            If a feature does not exist or is named twice, fewer than two are named, or there is no such
            output.
        """
        estimator = self._of_output(output)
        chosen = estimator._indices(features)
        return (
            estimator._interactions(len(chosen)).entry(chosen)
            if estimator.P_.size and estimator._has_order(len(chosen))
            else 0.0
        )
