"""The pairwise interactions of a fitted model of any kind."""

from __future__ import annotations

import numpy as np

from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.lab.interpretation.pair_weights import FactoredPairs, GivenPairs, PairWeights
from fmviz.lab.interpretation.subsets import LiftedFactors, factors_of, orders_of

__all__ = ["pairs_of"]


def pairs_of(model: Model, parameters: Parameters) -> PairWeights:
    """Return the weights of the products of two distinct features in f, W never being formed.

    Raises
    ------
    ValueError
        If f has no such products, with a sentence.
    """
    if parameters.W is not None:
        rows = np.flatnonzero(parameters.W.any(axis=1))
        return GivenPairs(rows, parameters.W.shape[0], parameters.W[np.ix_(rows, rows)])
    orders = orders_of(model)
    if 2 not in orders:
        raise ValueError(
            f"This model, {model.label.lower()}, multiplies {orders[0]} features at a time and has no "
            "weights of pairs. “One row” takes its predictions apart, and Train shows its sets of features."
        )
    factors = factors_of(model, parameters, 2)
    if isinstance(factors, LiftedFactors):
        U, V = factors.values
        left, right = np.hstack([U, V]) * (0.5 * factors.multiplicity), np.hstack([V, U])
    else:
        live = factors.coefficients != 0
        right = factors.values[:, live]
        left = right * (factors.coefficients[live] * factors.multiplicity)
    kept = left.any(axis=1)
    return FactoredPairs(
        factors.rows[kept], factors.n_features, left[kept], right[kept], repeats=factors.repeats
    )
