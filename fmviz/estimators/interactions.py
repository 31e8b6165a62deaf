"""Express fits in the features of X: attributes of estimators, ranked interactions, weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import factorial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from fmviz.engine.counting import features_in_products
from fmviz.engine.errors import one_of, whole_number
from fmviz.engine.interactions.weights import Interactions, pairs_of
from fmviz.engine.models import AllSubsets, HigherOrder, Lifted, Model, PolynomialNetwork
from fmviz.engine.parameters import Parameters
from fmviz.metrics import used_pairs
from fmviz.paths.scaling import Scale

OutputFit: TypeAlias = tuple[Model, Parameters, int, bool]
"""A model, its parameters for one output, the number of dummy features (the last ones), and whether pair
weights are entries of W even if these are half of the product's weight."""
PRODUCTS = (HigherOrder, PolynomialNetwork, Lifted, AllSubsets)
"""Models with products of any order; all others have pairs."""


def attributes(model: Model, parameters: Parameters, n_dummies: int) -> dict[str, Any]:
    """Return the attributes of a fit with one output, by name without the trailing underscore."""
    result = {**parameters, "intercept": parameters.intercept}
    if parameters.W is not None:
        del result["P"]
        return {**result, "used_features": np.flatnonzero(used_pairs(parameters).any(axis=1))}
    if not isinstance(model, PRODUCTS):
        live = parameters.P
        if parameters.coefficients is not None:
            live = live[:, parameters.coefficients != 0]
            result["rank"] = live.shape[1]
        return {**result, "used_features": np.flatnonzero(live.any(axis=1))}
    result["w"], result["intercept"], orders = _split(model, parameters, n_dummies)
    result["P"] = parameters.P[: result["w"].size]
    if model.order is not None:
        # Without squares, every product of a lifted model occurs in both orders of its features.
        share = 0.5 if isinstance(model, Lifted) and not model.repeats else 1.0
        blocks = [each for each in _blocks(model, parameters, result["w"].size) if each[0] in orders]
        result["factors"] = {m: factors for m, factors, _, _ in blocks}
        result["coefficients"] = {m: share * weights for m, _, weights, _ in blocks}
    if isinstance(model, Lifted):
        result["U"] = model.factors(result["P"])
    counts = {m: each.n_used() for m, each in orders.items()}
    return {
        **result,
        "used_features": np.unique(np.concatenate([_features(each) for each in orders.values()])),
        "used_interactions": counts,
        "n_used_interactions": sum(counts.values()),
    }


def _features(interactions: Interactions) -> np.ndarray:
    """Return the indices of the features in any product, ascending."""
    if len(interactions.factors) == 1:
        return interactions.rows
    return interactions.rows[features_in_products(interactions.factors, not interactions.repeats)]


def _split(
    model: Model, parameters: Parameters, n_dummies: int, order: int = 2
) -> tuple[np.ndarray, float, dict[int, Interactions]]:
    """Return w, the bias and the products of two or more features by order, in terms of the features of X.

    All subsets have products of all orders with the same factors; `order` is included besides 2 and 3.
    """
    d, distinct = parameters.w.size - n_dummies, isinstance(model, Lifted) and not model.repeats
    w, intercept = parameters.w[:d].copy(), parameters.intercept + float(parameters.w[d:].sum())
    if isinstance(model, AllSubsets):
        rows, P, ones = np.arange(d), parameters.P[None], np.ones(parameters.P.shape[1])
        return w, intercept, {m: Interactions(rows, d, m, P, ones) for m in sorted({2, 3, order})}
    orders: dict[int, Interactions] = {}
    for m, factors, coefficients, repeats in _blocks(model, parameters, d):
        if m >= 2:
            times = factorial(m) if repeats else 1
            each = factors if factors.ndim == 3 else factors[None]
            orders[m] = Interactions(np.arange(d), d, m, each, coefficients, repeats, times)
        elif m == 1:
            w += (0.5 if distinct else 1.0) * (factors.reshape(d, -1) @ coefficients)
        elif not distinct:
            intercept += float(coefficients.sum())
    return w, intercept, orders


def _blocks(model: Any, parameters: Parameters, d: int) -> Iterator[tuple[int, np.ndarray, np.ndarray, bool]]:
    """Yield the blocks of products: order, factors, coefficients, and whether features repeat."""
    augmented = parameters.w.size > d
    if isinstance(model, Lifted):
        for order in range(model.degree, -1 if augmented else model.degree - 1, -1):
            U, weights = _beside_dummy(model.factors(parameters.P), order)
            yield order, U[:, :d], weights, model.repeats
        return
    for columns, kernel in model.parts(parameters.P.shape[1]):
        for order, weights in kernel.split(parameters.P[d:, columns]).items():
            if order == kernel.degree or augmented:
                coefficients = parameters.multipliers[columns] * weights
                yield order, parameters.P[:d, columns], coefficients, not kernel.multilinear


def _beside_dummy(factors: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors and coefficients of the products of `order` features, with a constant last feature.

    Every choice of factors for the dummy feature gives a set of columns; if the order is the degree, no
    column includes it.
    """
    m = factors.shape[0]
    parts, weights = [], []
    for taken in combinations(range(m), order):
        others = [t for t in range(m) if t not in taken]
        parts.append(factors[list(taken)])
        weights.append(factors[others, -1].prod(axis=0) if others else np.ones(factors.shape[2]))
    return np.concatenate(parts, axis=2), np.concatenate(weights)


def ranked(
    fit: OutputFit, names: np.ndarray, top: int | None, order: int | None, scale: Scale
) -> pd.DataFrame:
    """Return the table of `ModelEstimator.interactions` for one output."""
    wanted = 2 if order is None else whole_number("order", order, 2, 10)
    if top is not None:
        whole_number("top", top, 1)
    orders = products_of(fit, wanted)
    chosen = max(orders) if order is None else wanted
    if chosen not in orders:
        raise ValueError(
            f"order = {chosen} is not an order of this model, which has products of order "
            f"{', '.join(map(str, orders))}."
        )
    products, many = orders[chosen], isinstance(fit[0], PRODUCTS)
    features, weight, *_ = products.ranked(top, **({"repeated": True} if many else {}))
    titles = [f"feature_{t + 1}" for t in range(chosen)] if many else ["feature_i", "feature_j"]
    table = pd.DataFrame({**dict(zip(titles, names[features].T, strict=True)), "weight": weight})
    if chosen == fit[0].order or not scale.center.any():
        # Larger products of centred columns would contribute to it.
        table["weight_in_units"] = weight / scale.scale[features].prod(axis=1)
    return table


def products_of(fit: OutputFit, order: int) -> dict[int, Any]:
    """Return the products of features by order, for all subsets including this order."""
    model, parameters, n_dummies, entries = fit
    if isinstance(model, PRODUCTS):
        return {**_split(model, parameters, n_dummies, order)[2]}
    d = parameters.w.size - n_dummies
    alone = parameters.replace(P=np.ascontiguousarray(parameters.P[:d]), w=parameters.w[:d])
    return {2: pairs_of(model, alone, entries=entries)}


def indices_of(names: np.ndarray, features: Sequence[Any]) -> list[int]:
    """Return the indices of two or more distinct features, given by name or index, or raise ValueError."""
    chosen = [_index(names, feature) for feature in features]
    if len(set(chosen)) < max(2, len(chosen)):
        raise ValueError(
            f"features = {list(features)!r} must contain at least two features, without repetition."
        )
    return chosen


def _index(names: np.ndarray, feature: Any) -> int:
    if isinstance(feature, str):
        known = names.astype(str).tolist()
        return known.index(one_of("feature", feature, known))
    return whole_number("feature", feature, 0, names.size - 1)
